"""The list of planted faults does not rot: each can be planted, in code that Python reads, before tests that exist."""

from __future__ import annotations

import ast
import dataclasses
import functools
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.campaigns.c_mutations import c_mutants
from tests.campaigns.equivalents import EQUIVALENTS, key_of
from tests.campaigns.javascript_mutations import javascript_mutants
from tests.campaigns.mutant_rooms import JAVASCRIPT, TESTS_OF_ROOM, by_room, draw, find_mutants, judges_of, room_of
from tests.campaigns.mutants import in_process, shares
from tests.campaigns.mutations import Mutant
from tests.campaigns.planted import PLANTED
from tests.campaigns.planted import plant as plant_module
from tests.campaigns.planted.plant import Plant, path_of_test, planted
from tests.support.project.sources import tree_of
from tests.support.together import together

ROOT = Path(__file__).parents[2]

LEAST_PLANTED = 4
"""Of each room."""


@functools.cache
def starts_of(path: str) -> list[int]:
    """First lines of the statements at the top of a file."""
    body = tree_of(ROOT / path).body
    return [min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) for node in body]


def touched(source: str, faulty: str, starts: list[int]) -> tuple[str, str]:
    """The statements that a fault changes, as they are and with it."""
    old, new = source.splitlines(), faulty.splitlines()
    same, rest = (
        next((at for at, (one, other) in enumerate(zip(*pair)) if one != other), min(len(old), len(new)))
        for pair in ((old, new), (old[::-1], new[::-1]))
    )
    begin = max((at for at in starts if at <= same + 1), default=1) - 1
    end = min((at for at in starts if at > max(same + 1, len(old) - rest)), default=len(old) + 1) - 1
    return "\n".join(old[begin:end]), "\n".join(new[begin : end + len(new) - len(old)])


@functools.cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the functions and classes of a file of tests."""
    defined = (ast.FunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(tree_of(ROOT / path)) if isinstance(node, defined))


@together("plant", PLANTED, ids=lambda plant: plant.name)
def test_a_fault_can_be_planted(plant: Plant) -> None:
    path, source, faulty = planted(plant)
    assert faulty != source
    if path.endswith(".py"):
        before, after = touched(source, faulty, starts_of(path))
        assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))
    for test in plant.tests:
        file, _, name = path_of_test(test).partition("::")
        assert name.partition("[")[0] in {"", *functions_of(file)}, test


def test_a_fault_is_found_by_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """In another file, with other line breaks and indentation; a name tells apart what stands twice."""
    text = (
        "def f():\n    if a:\n        return g(\n            a,\n            [1, 2],\n        )\n\n\nN = g(a, [1, 2])\n"
    )
    monkeypatch.setattr(plant_module, "_sources", lambda: {"b/moved.py": text, "b/page.js": "let a = g(1);"})
    plant_module._definitions.cache_clear()
    fault = Plant("name", "return g(a, [1, 2])", "b = 1\nreturn b", "why", ())
    path, _, faulty = planted(fault)
    assert path == "b/moved.py"
    assert ast.unparse(ast.parse(faulty)) == "def f():\n    if a:\n        b = 1\n        return b\nN = g(a, [1, 2])"
    twice = dataclasses.replace(fault, old="g(a, [1, 2])", new="1")
    for within in ("f", "moved.f", "N"):
        assert planted(dataclasses.replace(twice, within=within)).faulty.count("g(") == 1
    with pytest.raises(ValueError, match=r"one place must have its old code, got 2 \(b/moved.py, b/moved.py\)"):
        planted(twice)
    with pytest.raises(ValueError, match=r"one place must have its old code, got 0 \(no file\)"):
        planted(dataclasses.replace(twice, within="g"))
    assert planted(dataclasses.replace(twice, old="g(1)", within="page")).path == "b/page.js"
    plant_module._definitions.cache_clear()


def test_a_test_is_found_by_its_name() -> None:
    assert path_of_test("test_planted.py::test_a") == "tests/project/test_planted.py::test_a"
    with pytest.raises(ValueError, match=r"one file must be the test test_no_such.py, got none"):
        path_of_test("test_no_such.py")


def test_faults_have_names_of_their_own() -> None:
    assert len({plant.name for plant in PLANTED}) == len(PLANTED)


def test_each_room_has_planted_faults() -> None:
    counts = Counter(room_of(planted(plant).path) for plant in PLANTED)
    rooms = [*TESTS_OF_ROOM, str(JAVASCRIPT)]
    assert {room: counts[room] for room in rooms if counts[room] < LEAST_PLANTED} == {}


@pytest.fixture(scope="module")
def rooms() -> dict[str, list[Mutant]]:
    return by_room(find_mutants())


def test_each_room_has_tests(rooms: dict[str, list[Mutant]]) -> None:
    assert rooms.keys() - TESTS_OF_ROOM.keys() == {"clients/javascript"}
    assert not TESTS_OF_ROOM.keys() - rooms.keys()
    for room in TESTS_OF_ROOM:
        tests = judges_of(ROOT, room)
        assert len(tests) >= len(TESTS_OF_ROOM[room]), room


def test_a_room_is_a_folder() -> None:
    for path, room in (
        ("uldp_transforms/windows.py", ""),
        ("uldp_transforms/ldp/mechanisms/channels/square_wave.py", "ldp/mechanisms/channels"),
        ("packages/report/uldp_transforms_report/page.js", "packages/report/*.js"),
        ("packages/gateway/uldp_transforms_gateway/web.py", "packages/gateway"),
        ("packages/gateway/uldp_transforms_gateway/apps/uses.py", "packages/gateway/apps"),
        ("labs/live/ask.js", "labs/live/*.js"),
        ("tests/servers/pubsub/pubsub_server.py", "tests/servers/pubsub"),
        ("clients/javascript/src/form.js", "clients/javascript"),
        ("native/split_reports.c", "native"),
    ):
        assert room_of(path) == room and (ROOT / path).is_file()


def test_faults_are_drawn_from_every_room(rooms: dict[str, list[Mutant]]) -> None:
    """Each can be planted: the file with it is still Python. What is drawn in a room depends on nothing else."""
    for room, mutants in rooms.items():
        drawn = draw(mutants, room, 3, 1)
        assert len(set(drawn)) == 3 and drawn == draw(mutants, room, 3, 1)
        for mutant in drawn:
            source = (ROOT / mutant.path).read_bytes()
            assert mutant.apply(source) != source
            if mutant.path.endswith(".py"):
                ast.parse(mutant.apply(source))


def test_each_equivalent_is_one_mutant(rooms: dict[str, list[Mutant]]) -> None:
    """Its line stands in its function, as it is said to, in as many files as there are entries."""
    listed = Counter(each[:3] for each in EQUIVALENTS)
    functions, texts = {each.function for each in EQUIVALENTS}, functools.cache(lambda path: (ROOT / path).read_bytes())
    mutants = [each for room in rooms.values() for each in room if each.function in functions]
    found = Counter(key_of(each, texts(each.path)) for each in mutants)
    assert {key: found[key] for key, number in listed.items() if found[key] != number} == {}
    assert all(each.why for each in EQUIVALENTS)


def test_faults_of_javascript_are_none_of_its_texts() -> None:
    source = """// 1 < 2
const a = "1 < 2" + `${3} < 4`; /* 5 */
if (a === 6n && b <= 7) { x => x; y += /8/.test(a); return true; }
"""
    found = javascript_mutants("a.js", source)
    assert [(mutant.line, mutant.kind, mutant.text) for mutant in found] == [
        (2, "arithmetic", "-"),
        (3, "comparison", "!=="),
        (3, "constant", "7n"),
        (3, "condition", "||"),
        (3, "comparison", "<"),
        (3, "constant", "8"),
        (3, "constant", "false"),
    ]
    assert b"if (a !== 6n &&" in found[1].apply(source.encode())


def test_faults_of_c_are_none_of_its_texts() -> None:
    source = """#define A 1
/* 1 < 2 */
if (a->b < 3 && c[0] != 0x10)
    return x << 4;
for (int i = 0; i < 5; i++)
    y += "6";
"""
    found = c_mutants("a.c", source)
    assert [(mutant.line, mutant.kind, mutant.text) for mutant in found] == [
        (3, "check dropped", "0"),
        (3, "comparison", "<="),
        (3, "constant", "4"),
        (3, "condition", "||"),
        (3, "constant", "1"),
        (3, "comparison", "=="),
        (3, "constant", "17"),
        (4, "arithmetic", ">>"),
        (4, "constant", "5"),
        (5, "constant", "1"),
        (5, "comparison", "<="),
        (5, "constant", "6"),
    ]
    assert b"if (0)\n    return" in found[0].apply(source.encode())


def test_lines_of_a_fault() -> None:
    """Those that are replaced, and what stands there instead: also where a fault has fewer lines."""
    [mutant, *_] = c_mutants("a.c", "x;\nif (a <\n    b)\n    return;\n")
    assert mutant.lines(b"x;\nif (a <\n    b)\n    return;\n") == ("if (a < b)", "if (0)")
    assert mutant.show(b"x;\nif (a <\n    b)\n    return;\n").endswith("\n    - if (a < b)\n    + if (0)")


def test_a_hang_is_no_kill(tmp_path: Path) -> None:
    """Its programs end with it; and shares say what was killed alone."""
    sleeps = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"]
    assert in_process(sleeps, tmp_path, {}, 0.5) is None
    assert in_process([sys.executable, "-c", "raise SystemExit(3)"], tmp_path, {}) == 3
    fates = {"ldp/client": Counter(killed=3, hung=1, equivalent=2), "": Counter(killed=1, survived=1, unbuilt=2)}
    assert [" ".join(line.split()) for line in shares(fates)] == [
        "uldp_transforms 1 of 2 killed ( 50%) survived 1, unbuilt 2",
        "ldp/client 3 of 4 killed ( 75%) equivalent 2, hung 1",
        "all 4 of 6 killed ( 67%) equivalent 2, hung 1, survived 1, unbuilt 2",
    ]
