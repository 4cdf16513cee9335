"""Refusals of ``uldp compare``: calls and their sentences."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.jobs.reestimated import MINUTE, PERIOD
from tests.support.jobs.stored_periods import GROUPED, store, stored
from tests.support.messages_cases import write_files
from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs.reestimate.added_windows import Overlap
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.row_identity import fields_of_group
from uldp_transforms.rows.row_types import WindowCounts
from uldp_transforms_compare.compare import compare_command

BOTH = Collection.from_json(
    GROUPED.to_json() | {"dimensions": [{"name": "arm", "values": ["new", "control"]}, {"name": "c", "values": ["DE"]}]}
)
MEMOS_DAILY = Collection.from_json(
    GROUPED.to_json()
    | {"id": "memos", "client_window": "10m", "mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 3.0}}
)
MEMOS = Collection.from_json(
    GROUPED.to_json() | {"id": "memos", "mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 3.0}}
)
DAILY = Collection.from_json(GROUPED.to_json() | {"client_window": "10m"})


def row(of: Collection, start: int, cells: list[int], group: list[tuple[str, str]] | None = None) -> WindowCounts:
    return stored(of, start, cells)._replace(**fields_of_group(group or [], has_groups=bool(of.dimensions)))


def arms(control: list[int], new: list[int], of: Collection = GROUPED, start: int = 0) -> list[WindowCounts]:
    total = [a + b for a, b in zip(control, new)]
    return [row(of, start, total), row(of, start, control, [("arm", "control")]), row(of, start, new, [("arm", "new")])]


TIMES = Collection.from_json(
    {"id": "times", "version": 1, "mechanism": {"id": "sw", "epsilon": 2.0}}
    | {"alphabet": {"id": "ordered", "low": 0, "high": 80, "num_bins": 16, "unit": "ms", "others": ["error"]}}
    | {"dimensions": [{"name": "arm", "values": ["control", "new"]}]}
)


def latencies(shift: int, number: int = 4000) -> list[int]:
    """Counts of reports of latencies around 30 ms plus the shift, a tenth of them errors."""
    centres = 2.5 + 5 * np.arange(16)
    shares = np.exp(-(((centres - 30 - shift) / 12) ** 2) / 2)
    return np.rint(number * TIMES.mechanism.response(np.append(0.9 * shares / shares.sum(), 0.1))).astype(int).tolist()


def configured(*arguments: str) -> Callable[[], Any]:
    def call() -> Any:
        write_files(Path(), {"grouped.json": GROUPED})
        store(arms([300, 200, 100], [200, 300, 100]))
        return compare_command.configure(["job", *arguments])

    return call


def ran(rows: list[WindowCounts], of: Collection, *arguments: str) -> Callable[[], Any]:
    def call() -> Any:
        write_files(Path(), {"c.json": of})
        store(rows)
        return compare_command.job(compare_command.configure(["job", "--collection", "c.json", *arguments]))

    return call


def ran_with(before: Collection, now: Collection, *arguments: str) -> Callable[[], Any]:
    """The first collection in the directory ``before``, the second in ``job``."""

    def call() -> Any:
        store(arms([300, 200, 100], [200, 300, 100], before))
        shutil.rmtree("before", ignore_errors=True)
        Path("job").rename("before")
        return ran(arms([300, 200, 100], [200, 300, 100], now), now, *arguments)()

    return call


def nobody() -> Any:
    Path("empty").mkdir(exist_ok=True)
    return compare_command.configure(["empty", "--windows"])


_OVERLAPPING = [*arms([300, 200, 100], [200, 300, 100]), *arms([300, 200, 100], [200, 300, 100], start=MINUTE)]
_MANY = Collection.from_json(
    GROUPED.to_json() | {"dimensions": [{"name": "arm", "values": [f"a{number:02}" for number in range(60)]}]}
)
_ROWS_OF_MANY = [row(_MANY, 0, [6000, 6000, 6000]), *(
    row(_MANY, 0, [100, 100, 100], [("arm", f"a{number:02}")]) for number in range(60))]  # fmt: skip
REFUSED: list[Refusal] = [
    (configured(), "--by, --windows or --with must be given, got none"),
    (configured("--windows", "--with", "before"), "--with cannot be combined with --windows"),
    (configured("--with", "before", "--anytime"), "--anytime needs --by alone, got --with"),
    (
        configured("--with", "./job/", "--collection", "grouped.json"),
        "--with must be another directory, because reports do not differ from themselves, got ./job/",
    ),
    (
        ran_with(GROUPED, GROUPED, "--with", "before"),
        "--with must have other reports than DIR, because reports do not differ from themselves, got the counts of "
        "run a in both",
    ),
    (
        ran_with(BOTH, GROUPED, "--with", "before"),
        "--with must have counts of a collection of DIR (grouped) with the same fingerprint, got none, so that answers "
        "cannot be compared",
    ),
    (
        ran_with(MEMOS_DAILY, MEMOS_DAILY, "--with", "before"),
        "--with needs collections without epsilon_inf, because reports with the same memos are not independent, got "
        "'memos'",
    ),
    (configured("--windows", "--against", "arm=new"), "--against needs --by alone, got --windows"),
    (configured("--windows", "--anytime"), "--anytime needs --by alone, got --windows"),
    (
        ran(arms(latencies(0), latencies(9), TIMES), TIMES, "--by", "arm", "--anytime"),
        "--anytime needs collections without numbers, got 'times'",
    ),
    (
        ran(
            [*arms([60, 60, 60], [60, 60, 60], DAILY), *arms([60, 60, 60], [60, 60, 60], DAILY, PERIOD)],
            DAILY,
            "--by",
            "arm",
            "--anytime",
        ),
        "--anytime needs collections whose people report once, because later reports of a person depend on earlier "
        "ones, got 'grouped', whose people report 2 times",
    ),
    (nobody, "--collection must be given, because no run in empty names a collection, got none"),
    (
        ran(arms([300, 200, 100], [200, 300, 100]), GROUPED, "--by", "arm", "--against", "arm=old"),
        "--against must be a group of 'grouped' (arm=control, arm=new), got 'arm=old'",
    ),
    (
        ran(_ROWS_OF_MANY, _MANY, "--by", "arm"),
        "--by must make at most 1,000 pairs of groups, got 1,770; use --against or fewer dimensions",
    ),
    (
        Overlap,
        ran(_OVERLAPPING, GROUPED, "--by", "arm"),
        "DIR must have windows that do not overlap, because reports would count twice, got overlapping windows of "
        "'grouped'",
    ),
    (
        ran([row(GROUPED, 0, [60, 60, 60])._replace(window_start=None, window_end=None)], GROUPED, "--windows"),
        "--windows needs counts in windows, got one for everything of 'grouped'",
    ),
    (
        ran([row(MEMOS, 0, [60, 60, 60])], MEMOS, "--windows"),
        "--windows needs collections without epsilon_inf, because windows with the same memos are not independent, got "
        "'memos'",
    ),
    (
        ran(arms([60, 60, 60], [60, 60, 60], MEMOS), MEMOS, "--by", "arm"),
        "collection 'memos' with epsilon_inf must have a client_window and windows to be compared, because errors "
        "depend on the number of reports per person, got no such number",
    ),
]
