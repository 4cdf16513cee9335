"""The list of planted faults does not rot: each can be planted, in code that Python reads, before tests that exist."""

from __future__ import annotations

import ast
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.campaigns.javascript_mutations import javascript_mutants
from tests.campaigns.mutants import LIBRARY, ROOMS, draw, files_of_room, find_mutants, in_process, room_of, shares
from tests.campaigns.planted import PLANTED, Plant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("plant", PLANTED, ids=[plant.name for plant in PLANTED])
def test_a_fault_can_be_planted(plant: Plant) -> None:
    source = (ROOT / plant.path).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(plant.apply(source))) != ast.dump(ast.parse(source))
    assert all((ROOT / test.partition("::")[0]).is_file() for test in plant.tests)


def test_a_fault_that_lost_its_place_is_told() -> None:
    for source, number in (("", 0), (PLANTED[0].old * 2, 2)):
        with pytest.raises(ValueError, match=rf"{PLANTED[0].path} must have the old text once, got {number}"):
            PLANTED[0].apply(source)


def test_faults_have_names_of_their_own() -> None:
    assert len({plant.name for plant in PLANTED}) == len(PLANTED)


def test_faults_are_drawn_from_files_that_exist() -> None:
    assert all((ROOT / LIBRARY / target).exists() for target in ROOMS)
    assert all((ROOT / place).is_dir() for places in ROOMS.values() for place in places)


def test_faults_are_drawn_from_every_room() -> None:
    """Each can be planted: the file with it is still Python."""
    mutants = find_mutants()
    drawn = draw(mutants, 160, random.Random(1))
    rooms = Counter(room_of(mutant.path) for mutant in drawn)
    assert len(drawn) == 160 and len(set(drawn)) == 160
    assert {"jobs/gateway", "jobs/follow", "ldp/smoothing", "calendar_windows.py", "clients/javascript"} <= set(rooms)
    assert set(rooms) == {room_of(mutant.path) for mutant in mutants}
    assert min(rooms.values()) >= 2 or len(drawn) < 2 * len(rooms)
    for mutant in drawn:
        source = (ROOT / mutant.path).read_bytes()
        assert mutant.apply(source) != source
        if mutant.path.endswith(".py"):
            ast.parse(mutant.apply(source))


def test_faults_that_no_test_calls_meet_the_tests_of_their_room() -> None:
    near = files_of_room(ROOT, "uldp_transforms/jobs/gateway/serve.py")
    assert "tests/jobs/gateway/test_gateway.py" in near and not any("kafka" in test for test in near)
    assert files_of_room(ROOT, "uldp_transforms/jobs/check.py") == ["tests/jobs/commands/test_check.py"]


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


def test_a_hang_is_no_kill(tmp_path: Path) -> None:
    """Its programs end with it; and shares say what was killed alone."""
    sleeps = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"]
    assert in_process(sleeps, tmp_path, {}, 0.5) is None
    assert in_process([sys.executable, "-c", "raise SystemExit(3)"], tmp_path, {}) == 3
    fates = {"ldp/client": Counter(killed=3, hung=1), "messages": Counter(killed=1, survived=1, uncalled=2)}
    assert [" ".join(line.split()) for line in shares(fates)] == [
        "ldp/client 3 of 4 killed ( 75%) hung 1",
        "messages 1 of 4 killed ( 25%) survived 1, uncalled 2",
        "all 4 of 8 killed ( 50%) hung 1, survived 1, uncalled 2",
    ]
