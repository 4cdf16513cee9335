"""``uldp estimate --follow --early_every`` writes rows of windows before their end; kills lose and repeat none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packages.follow.tests.support.spools import Followed, kill_at
from tests.support.messages_cases import NOON
from tests.support.spools import MINUTE
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms_follow.follow_job import follow_job

START = NOON // MINUTE * MINUTE
SECOND = 1_000

MOMENTS = (
    *((True, 1, []), (False, 5, []), (False, 6, ["EARLY"]), (False, 20, [])),
    *((True, 30, []), (False, 34, []), (False, 35, ["EARLY"]), (False, 59, [])),
    *((False, 60, ["ON_TIME"]), (False, 70, []), (True, 71, []), (False, 72, []), (False, 131, ["LATE"])),
)
"""Whether a file comes, seconds since the begin of the window, and the rows that the window then gets."""


class Early(Followed):
    """A job with windows of a minute, whose clock the test sets, and early rows 5 seconds after new reports."""

    moment = START

    def steps(self, number: int, reached: Callable[[str], None] = lambda point: None, **options: Any) -> None:
        given = {"clock": lambda: self.moment, "early_every": 5 * SECOND, "late_every": MINUTE}
        super().steps(number, reached, **given | options)

    def timings(self) -> list[str]:
        """Of the rows of the first collection, in their order."""
        rows = [row for row in self.rows("estimates") if row["collection_id"] == "krr"]
        assert [row["pane_index"] for row in rows] == list(range(len(rows)))
        return [row["pane_timing"] for row in rows]


def _run(followed: Early, reached: Callable[[str], None] | None = None) -> None:
    for comes, seconds, _ in MOMENTS:
        followed.moment = START + seconds * SECOND
        if comes:
            followed.add_file(minutes=1)
        if reached is None or followed.killed(1, reached):
            followed.steps(1)


def test_a_window_has_rows_before_its_end_at_its_end_and_afterwards(tmp_path: Path) -> None:
    """At its end although it has no new reports then; of collections and their question."""
    followed, expected = Early(tmp_path), list[str]()
    for comes, seconds, timings in MOMENTS:
        followed.moment = START + seconds * SECOND
        if comes:
            followed.add_file(minutes=1)
        followed.steps(1)
        expected += timings
        assert followed.timings() == expected, seconds
    rows = [row for row in followed.rows("estimates") if row["collection_id"] == "krr"]
    assert [row["num_reports"] for row in rows] == [60, 120, 120, 180]
    asked = [row["pane_timing"] for row in followed.rows("estimates") if row["collection_id"] == "asked"]
    assert asked == ["EARLY", "EARLY", "ON_TIME", "LATE"]
    followed.assert_exact()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Early:
    """A job that nothing kills."""
    followed = Early(tmp_path_factory.mktemp("whole"))
    _run(followed)
    return followed


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    "point",
    [
        *("before counts are committed", "in the transaction of counts", "after counts are committed"),
        *("before estimates are committed", "after estimates are committed"),
        *("before estimates", "after estimates", "before emptying", "after emptying"),
    ],
)
def test_a_kill_at_any_point_loses_and_repeats_no_row(point: str, number: int, whole: Early, tmp_path: Path) -> None:
    """The number counts the times at which a step reaches the point, so each step is killed that does."""
    followed = Early(tmp_path)
    _run(followed, kill_at(point, number))
    assert followed.timings() == whole.timings() == ["EARLY", "EARLY", "ON_TIME", "LATE"]
    rows = [
        [{name: value for name, value in row.items() if name != "run"} for row in each.rows("estimates")]
        for each in (followed, whole)
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(("options", "early"), [((), None), (("--early_every", "90s"), 90_000)])
def test_the_option_is_that_of_a_stream(options: tuple[str, ...], early: int | None, tmp_path: Path) -> None:
    """So is the number of parts of a step that only an engine divides among its workers."""
    parser = command_line()
    followed = Followed(tmp_path, "--deduplicate", "--deduplicate_parts", "3", *options)
    args, rest = parser.parse_known_args(followed.argv())
    job = follow_job(args, parser, rest)
    try:
        assert (job.early_every, job.late_every) == (early, 0)
    finally:
        job.state.close()
        job.directory.close()
