"""Content of a page as plain data, collected by ``gathering`` and displayed by ``charts`` and ``web_page``.

Shares are in [0, 1]; times are RFC 3339; W windows in order of time.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence

from uldp_transforms.ldp.alphabets.noun import ANSWER, REPORT, Noun
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.rows.figures.figure import Figure, Trend
from uldp_transforms.version import __version__
from uldp_transforms_report.colours import colours_of_groups
from uldp_transforms_report.compared.compared_rows import Comparisons
from uldp_transforms_report.differences import Panel
from uldp_transforms_report.groups.group_facts import GroupPart
from uldp_transforms_report.groups.group_labels import GroupLabels
from uldp_transforms_report.levels import Levels
from uldp_transforms_report.numbers.number_facts import NumberPart
from uldp_transforms_report.texts_for_readers import shown
from uldp_transforms_report.trends.alarm_account import Watched
from uldp_transforms_report.trends.group_trends import GroupTrends


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of the page's content; the page states what it leaves out.

    Attributes:
        trends: maximum number of values with their own chart.
        windows: maximum number of windows in charts, the latest ones.
        rows: maximum number of rows of a table.
        numbers: maximum number of windows of a trend that are also in a table.
        cells: maximum number of windows times values that can be compared.
    """

    trends: int = 24
    windows: int = 400
    rows: int = 200
    numbers: int = 31
    cells: int = 100_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowLine:
    """One window of one collection.

    Attributes:
        start, end: bounds of the window; None for a global window.
        name: name of the window for readers.
        status: status of its row.
        num_reports: number of reports; None if withheld.
        unexplained: share of people with an unlisted value; its numbers may be unknown.
        is_open: whether the window had not ended when its row was emitted.
        holds_always: whether its intervals are anytime-valid rather than for a single look.
    """

    start: str | None
    end: str | None
    name: str
    status: str
    num_reports: int | None
    unexplained: Figure
    is_open: bool
    holds_always: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Latest:
    """The latest window with numbers, or the whole period as one window.

    Attributes:
        window: the window.
        entries: the displayed values, in descending order of share.
        others: number of estimated values that are not displayed.
        other_share: total share of those among them that are in the row.
        levels: confidence of the intervals.
        in_blocks: for each of the entries, its public block and its share there; empty without blocks.
    """

    window: WindowLine
    entries: Sequence[Figure]
    others: int
    other_share: float
    levels: Levels
    in_blocks: Sequence[tuple[str, Figure]] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alarm:
    """Finding of a sentinel in a window; of a change, also in a group."""

    window: str
    group: str
    name: str
    sentence: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """A discovered value, in the latest window with any."""

    figure: Figure
    q_value: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coverage:
    """Number of intervals that contain the truth."""

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
    noun: Noun = ANSWER
    received: int
    accepted: int
    duplicates: int
    rejected: dict[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CollectionPart:
    """Content about one version of one collection, or about a question with all its versions.

    ``numbers`` is what is said of an ordered alphabet, ``sums`` of sums over chosen values, and ``whole_numbers``
    and ``whole_sums`` the same of the whole period; None without. ``groups`` are those of the latest window and of
    the whole period, ``group_trends`` those over the windows. Sentinels examined ``judged`` windows; ``watched`` says
    which were examined for changes. ``changed`` has the name of the latest window in which a value
    changed. ``panel`` has the numbers for comparing windows; None if fewer than two windows have numbers. ``whole``
    has the shares of the whole period, if they are known. ``levels`` are the confidences of the windows' intervals.
    ``not_there`` are requested values without a chart. ``noun`` names what is counted.
    """

    id: str
    version: int
    fingerprint: str
    pooled: bool
    noun: Noun
    numbers: NumberPart | None
    whole_numbers: NumberPart | None
    sums: NumberPart | None
    whole_sums: NumberPart | None
    groups: Sequence[GroupPart]
    group_trends: Sequence[GroupTrends]
    asked: Sequence[tuple[str, str]]
    costs: Sequence[Cost]
    statuses: Sequence[tuple[str, int]]
    windows: Sequence[WindowLine]
    windows_left_out: int
    latest: Latest | None
    whole: Latest | None
    trends: Sequence[Trend]
    changed: Mapping[str, str]
    panel: Panel | None
    not_there: Sequence[str]
    alarms: Sequence[Alarm]
    alarms_left_out: int
    judged: int
    watched: Watched
    found: Sequence[Found]
    found_in: str
    found_left_out: int
    coverage: Sequence[Coverage]
    simulated: bool
    levels: Levels

    @property
    def which(self) -> str:
        """Which version it is, in words."""
        return "all versions" if self.pooled else f"version {self.version}"

    @property
    def source(self) -> str:
        """The collection with its windows and reports, for the line below a picture."""
        return self._source_of(self.windows)

    def source_of(self, window: WindowLine) -> str:
        """The collection with one window and its reports, for the line below a picture of it."""
        return self._source_of([window])

    def _source_of(self, windows: Sequence[WindowLine]) -> str:
        names = [line.name for line in windows]
        span = names[0] if len(names) == 1 else f"{len(names)} windows, {names[0]} to {names[-1]}" if names else ""
        numbers = [line.num_reports for line in windows if line.num_reports is not None]
        overlap = any((line.start or "") < (before.end or "") for before, line in itertools.pairwise(windows))
        reports = self.noun.or_else(REPORT).counted(sum(numbers)) if numbers and not overlap else ""
        return ", ".join(filter(None, (shown(self.id, 60), self.which, span, reports)))

    @property
    def labels(self) -> GroupLabels:
        """How its groups are called."""
        names = {group for of in self.group_trends for group in of.trends}
        return GroupLabels.of(names.union(*(part.names for part in self.groups)))

    def everybody(self, name: str) -> Trend | None:
        """The trend of a value or figure over all people; None if the page has none."""
        trends = [*self.trends, *(self.numbers.trends if self.numbers else ())]
        return next((trend for trend in trends if trend.figure.name == name), None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """Content of a page."""

    title: str
    note: str
    directory: str
    zone: str
    runs: Sequence[tuple[str, str, str, str, str]]
    runs_left_out: int
    accounts: Sequence[Account]
    balanced: bool | None
    unread: Sequence[str]
    parts: Sequence[CollectionPart]
    has_truth: bool
    compared: Sequence[Comparisons] = ()

    @property
    def what_this_is(self) -> str:
        """The first sentence of the page, for a reader who knows nothing of the job."""
        number = self._number or self.counted
        holds = f"in {self.levels} of cases."
        if self.has_truth:
            return f"Simulation of {number}; orange ticks are the truth, and intervals contain it {holds}"
        kind = "Simulation of" if any(part.simulated for part in self.parts) else "Estimates from private reports of"
        return f"{kind} {number}, with intervals that contain the true figure {holds}"

    @property
    def counted(self) -> str:
        """What the collections count, such as ``flights and nights``."""
        return " and ".join(dict.fromkeys(part.noun.many for part in self.parts)) or ANSWER.many

    @property
    def _number(self) -> str:
        """How much was counted, such as ``10 flights and 20 nights``; empty if no report is known."""
        numbers: dict[Noun, list[int]] = {}
        for account in self.accounts:
            if account.accepted:
                numbers.setdefault(account.noun, []).append(account.accepted)
        return " and ".join(_of_questions(noun, counts) for noun, counts in numbers.items())

    @property
    def source(self) -> str:
        """The directory and its latest run, for the line below a picture."""
        run = f"run {self.runs[-1][0]}, " if self.runs else ""
        return f"{shown(os.path.basename(os.path.abspath(self.directory)))}, {run}uldp_transforms {__version__}"

    @property
    def levels(self) -> Levels:
        """The confidences of the intervals of all collections."""
        return Levels(tuple(sorted({one for part in self.parts for one in part.levels.confidences})) or (CONFIDENCE,))

    @property
    def colours(self) -> dict[str, str]:
        """Group -> its colour in the whole page."""
        drawn = {group for part in self.parts for of in part.group_trends for group in of.trends}
        return colours_of_groups(
            drawn | {line.group for part in self.parts for groups in part.groups for line in groups.lines}
        )


def _of_questions(noun: Noun, counts: Sequence[int]) -> str:
    """The number of all, or that of each question if all have the same."""
    if len(counts) > 1 and len(set(counts)) == 1:
        return f"{noun.counted(counts[0])} for each of {len(counts)} questions"
    return noun.counted(sum(counts))
