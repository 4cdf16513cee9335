"""What a page without alarms says: which windows were judged for changes, and which not yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from packages.report.tests.support.report_page import page_of
from tests.support import report_rows as rows
from tests.support.html_tree import tree_of
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.smoothing import LEAST_HISTORY
from uldp_transforms.rows.figures.alarm_history import RULE
from uldp_transforms.rows.window_health import UNKNOWN_REPEATS

NOT_YET = f"Changes are not judged yet: {RULE}; so far 5."
SOME = f"Nothing unusual in what was judged (1 of 2): {RULE}."


def quiet(of: Collection, window: int, sentence: str = "Nothing unusual.", **fields: Any) -> dict[str, Any]:
    """A row of health whose only finding, about changes, did not fire."""
    row = rows.finding(of, window, sentence)
    return row | {"status": "ok", "findings": [row["findings"][0] | {"fired": False} | fields]}


def text_of(folder: Path, windows: int, health: list[dict[str, Any]]) -> str:
    rows.survey(folder, ["a", "b"], windows)
    rows.write(folder, "health.jsonl", health)
    return tree_of(page_of(folder)).text


def of() -> Collection:
    return rows.collection(["a", "b"])


CASES = {
    "none yet": (
        5,
        [quiet(of(), at, NOT_YET, judged=0) for at in range(5)],
        NOT_YET,
        f"No window was also judged against earlier ones. {NOT_YET}",
    ),
    "some": (
        10,
        [quiet(of(), at, judged=2 * (at > 7)) for at in range(10)],
        f"No change was found in 2 of the 10 windows shown; the others were not judged, because {RULE}.",
        f"2 windows were also judged against earlier ones; 8 could not be, because {RULE}.",
    ),
    "some values": (
        9,
        [quiet(of(), at, NOT_YET, judged=0) for at in range(8)] + [quiet(of(), 8, SOME, judged=1)],
        f"No change was found in 1 of the 9 windows shown; the others were not judged, because {RULE}.",
        f"One window was also judged against earlier ones. {SOME}",
    ),
    "all": (
        2,
        [quiet(of(), at, judged=2) for at in range(2)],
        "No change was found in the 2 windows shown.",
        "2 windows were also judged against earlier ones.",
    ),
    "rows of older versions": (
        LEAST_HISTORY + 1,
        [quiet(of(), at) for at in range(LEAST_HISTORY + 1)],
        f"No change was found in 1 of the 9 windows shown; the others were not judged, because {RULE}.",
        f"One window was also judged against earlier ones; 8 could not be, because {RULE}.",
    ),
    "a value of the table": (
        2,
        [rows.finding(of(), 1, "Shares moved, in percentage points: 'a' +1.00 (+.5 to +1.5).")],
        "At least 1 value changed in the windows shown.",
        "One window was also judged against earlier ones.",
    ),
    "something else": (
        2,
        [rows.finding(of(), 1, "Sums moved: 'score' +1.00 (+.5 to +1.5).")],
        "Something changed in 1 of the 2 windows shown; see “Changes and alarms”.",
        "One window was also judged against earlier ones.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_no_alarm_is_no_comfort_where_nothing_was_judged(case: str, tmp_path: Path) -> None:
    windows, health, summary, account = CASES[case]
    text = text_of(tmp_path, windows, health)
    assert f"told apart from 0. {summary}" in text
    assert f"sent such reports. {account}" in text
    assert text.lower().count("no change was found") == summary.count("No change was found")


def test_findings_about_changes_or_repeats_are_no_check_of_a_sentinel(tmp_path: Path) -> None:
    """The page does not say that no sentinel fired where none could look."""
    repeats = quiet(of(), 1)
    repeats["findings"] = [{**vars(UNKNOWN_REPEATS)}]
    text = text_of(tmp_path, 2, [quiet(of(), 0, judged=0), repeats])
    assert "No window was checked." in text and "No sentinel fired" not in text
