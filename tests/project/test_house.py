"""A capability has few hooks outside its room: the limits, and how they are counted."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.campaigns.house import CAPABILITIES, House, main

LIMIT, WIDE = 0.1, 0.15
"""Largest number of hooks per own line of a capability; of numbers and groups, which most rows have."""

ABOVE = {
    "numbers": (
        0.36,
        "A third of the hooks are other numbers, such as those of messages and cells; the others are what a side, a "
        "page and a comparison need beside shares.",
    ),
    "groups": (0.31, "Dimensions are part of a collection, of each count and of each row."),
    "versions of questions": (
        0.17,
        "Solvers, samples, borrowing and bounds of lies take a list of versions, of which a collection is one.",
    ),
    "liars": (0.87, "Intervals of shares contain the allowance: the room has its bounds alone, and is small."),
    "memos and clients": (0.25, "Mechanisms draw memos themselves: a second epsilon is a field of each."),
    "sentinels and health": (0.13, "Counts of a period carry the bits for sentinels inside reports."),
    "records and ledger": (0.18, "Each step of the pipeline has an output for the ledger."),
}
"""Capabilities above the limit, which must not become worse: hooks / own lines, and what they are."""


@functools.cache
def house() -> House:
    return House()


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda one: one.name)
def test_a_capability_has_few_hooks(capability) -> None:
    own, hooks, ratio = house().price(capability)
    limit = WIDE if capability.name in ("numbers", "groups") else LIMIT
    highest, why = ABOVE.get(capability.name, (limit, ""))
    assert own > 0, "no file is in the room"
    assert ratio <= highest + 0.005, f"{hooks} hooks for {own} own lines; python -m tests.campaigns.house --hooks NAME"
    assert not why or ratio > limit, "this capability is no longer above the limit: remove it from the list"


def test_there_are_no_circles() -> None:
    assert house().is_without_circles
    assert sum(map(len, house().arrows.values())) > len(house().sources)


def _write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / "uldp_transforms" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "tests").mkdir()
    return folder


def test_hooks_are_code_lines_elsewhere(tmp_path: Path) -> None:
    """Not in docstrings, comments, imports, the own row of the table, nor where capabilities may be named."""
    table = """ROWS = (
    SpecField(
        name="liars",
        help="liars",
    ),
    SpecField(name="show"),
)
"""
    root = _write(
        tmp_path,
        ldp__utility__poisoning='"""Liars."""\n\n\ndef bound(liars):\n    return liars  # liars\n',
        ldp__model='"""Of liars."""\n\nfrom x import liars\n\n# liars\nCOUNT = 1\nSHARE = liars\n',
        spec__spec_fields=table + "OTHER = liars\n",
        rows__samples__asked="liars: float = 0\n",
        rows__row_types="liars: float = 0\n",
    )
    [capability] = [one for one in CAPABILITIES if one.name == "liars"]
    counted = House(root)
    assert counted.hooks(capability) == {"ldp/model.py": [7], "spec/spec_fields.py": [8]}
    assert counted.price(capability) == (2, 2, 1.0)
    assert counted.code == 2 + 2 + 8 + 1 + 1


def test_circles_are_found(tmp_path: Path) -> None:
    root = _write(tmp_path, a="from uldp_transforms.b import x\n", b="from uldp_transforms import a\n", c="import a\n")
    assert House(root).arrows == {
        "uldp_transforms.a": {"uldp_transforms.b"},
        "uldp_transforms.b": {"uldp_transforms.a"},
        "uldp_transforms.c": set(),
    }
    assert not House(root).is_without_circles


def test_the_program_prints_a_line_for_each_capability(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = _write(
        tmp_path, ldp__utility__poisoning="def bound(liars):\n    return liars\n", ldp__model="SHARE = liars\n"
    )
    files = {"setup.py": "", "ours/__init__.py": "A = 1\n", "tests/test_ours.py": "B = 1\nC = 1\n"}
    beside = {"labs/trial.py": "D = 1\n", "labs/tests/test_trial.py": "E = 1\n\nF = 1\nG = 1\n"}
    for name, text in ({f"packages/ours/{name}": text for name, text in files.items()} | beside).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert main([str(root)]) == 0
    head, labs, companion, arrows, _, *lines = capsys.readouterr().out.splitlines()
    assert head == "3 code lines in 2 files, 0 of tests"
    assert labs == "labs: 1 code lines in 1 files, 3 of tests"
    assert companion == "ours: 1 code lines in 1 files, 2 of tests"
    assert arrows == "0 import arrows, no circle"
    for one, line in zip(CAPABILITIES, lines, strict=True):
        assert line.removeprefix(one.name).split() == (
            ["1", "2", "1", "0.50"] if one.name == "liars" else ["0"] * 3 + ["0.00"]
        )
    assert main([str(root), "--hooks", "liars"]) == 0
    assert capsys.readouterr().out == "   1 ldp/model.py\n          1 SHARE = liars\n"
