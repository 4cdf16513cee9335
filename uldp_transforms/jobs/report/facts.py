"""What a page says, before it is a page: plain data, made in ``gathering``, shown by ``charts`` and ``web_page``.

Shares are in [0, 1]; times are RFC 3339; W windows in order of time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a page shows at most; what it leaves out it says.

    Attributes:
        trends: values with a chart of their own.
        windows: the latest ones, in charts.
        rows: of a table.
        numbers: windows of a trend that also stand in a table.
    """

    trends: int = 24
    windows: int = 400
    rows: int = 200
    numbers: int = 31


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """One value in one window.

    Attributes:
        value: as the collection or the list of candidates spells it.
        sensitive: None where nobody said what is.
        share: after post-processing.
        low, high: interval that holds the share, for values that are shown because they are the largest.
        smoothed, smoothed_low, smoothed_high: from the window and its neighbours; None: nobody asked for it.
        truth: of these people; None: not known.
    """

    value: str
    sensitive: bool | None
    share: float
    low: float
    high: float
    smoothed: float | None
    smoothed_low: float | None
    smoothed_high: float | None
    truth: float | None

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds the truth."""
        return None if self.truth is None else self.low <= self.truth <= self.high


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowLine:
    """One window of one collection.

    Attributes:
        start, end: None: one window for everything.
        name: in words.
        status: as of its row.
        num_reports: None where that is not told.
        unexplained, unexplained_low, unexplained_high: share of people whose value is none of the listed ones.
        unlisted: the true one, if that is known.
        is_open: whether it was not over when its row was made.
        holds_always: whether its intervals are for all looks at the window, and not for one.
    """

    start: str | None
    end: str | None
    name: str
    status: str
    num_reports: int | None
    unexplained: float | None
    unexplained_low: float | None
    unexplained_high: float | None
    unlisted: float | None
    is_open: bool
    holds_always: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trend:
    """One value through the windows; every array is (W,), nan where a window does not say.

    Attributes:
        entry: of the latest window with numbers.
        share, low, high, smoothed, smoothed_low, smoothed_high, truth: as of an entry.
        moved: bool, whether its share moved against the windows before.
    """

    entry: Entry
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    smoothed: np.ndarray
    smoothed_low: np.ndarray
    smoothed_high: np.ndarray
    truth: np.ndarray
    moved: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Latest:
    """The latest window with numbers.

    Attributes:
        window: which it is.
        entries: those that are shown, the largest first.
        others: how many values were estimated and are not shown.
        other_share: of the people with those of them that are in the row.
    """

    window: WindowLine
    entries: Sequence[Entry]
    others: int
    other_share: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alarm:
    """Finding of a sentinel in a window."""

    window: str
    name: str
    sentence: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """A value that nobody listed, in the latest window that has some."""

    value: str
    share: float
    low: float
    high: float
    q_value: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coverage:
    """How many intervals hold the truth."""

    what: str
    held: int
    number: int

    @property
    def share(self) -> float:
        return self.held / self.number


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cost:
    """Privacy cost of the reports of one person: their number, and their total epsilon."""

    reports: str
    epsilon: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Account:
    """Ledger sums of a collection, or of reports without a known collection."""

    name: str
    received: int
    accepted: int
    duplicates: int
    rejected: dict[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CollectionPart:
    """All about one version of one collection.

    ``judged`` windows were looked at by sentinels, ``watched`` of them for shares that move. ``not_there`` are values
    that somebody asked for and that have no chart.
    """

    id: str
    version: int
    fingerprint: str
    asked: Sequence[tuple[str, str]]
    costs: Sequence[Cost]
    statuses: Sequence[tuple[str, int]]
    windows: Sequence[WindowLine]
    windows_left_out: int
    latest: Latest | None
    trends: Sequence[Trend]
    not_there: Sequence[str]
    alarms: Sequence[Alarm]
    alarms_left_out: int
    judged: int
    watched: int
    found: Sequence[Found]
    found_in: str
    found_left_out: int
    coverage: Sequence[Coverage]
    simulated: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """All that a page says."""

    title: str
    note: str
    directory: str
    zone: str
    runs: Sequence[tuple[str, str, str, str, str]]
    runs_left_out: int
    accounts: Sequence[Account]
    balanced: bool | None
    parts: Sequence[CollectionPart]
    has_truth: bool
