"""The table of all fields of a specification: what each is, its default, and which others it needs or excludes.

Command lines, the parameters of the Dataflow template, the keys of YAML and JSON, the refusals of values and of
contradictions, and the table in ``docs/estimate-reports.md`` are made from these rows. A new field is a row here, an
attribute of ``JobSpec`` and a key of ``SpecValues``; then run ``make golden``.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES
from uldp_transforms.messages.refusal_causes import REJECTED_SHARE_OF_FILES, REJECTED_SHARE_OF_STREAMS
from uldp_transforms.windows import FUTURE_SKEW, LATENESS_SLACK, duration_text

CORRECTED, FINAL = "corrected", "final"
"""How results are released: a row at the end of each window and further ones for late reports, or one row."""

ALLOWED_LATENESS = 3_600_000
"""Default milliseconds for which a stream accepts late reports."""

LATE_EVERY = 60_000
"""Default milliseconds of the clock between two corrections of a window."""

PARTS, MAX_PARTS = 16, 1 << 32
"""Number of deduplication shards per base period: default and maximum."""

ALARM_EVERY = 1_000
"""Default number of windows between two false alarms of a change, in the mean."""

ESTIMATOR = "eb"
"""Default estimator."""

MIN_REPORTS = 100
"""Default minimum of reports behind a published estimate."""

SHOW = 10_000
"""Default number of values that a row has at most."""


class Kind(enum.Enum):
    """What a value is, as users write it."""

    COLLECTIONS = enum.auto()
    LENGTH = enum.auto()
    """A duration; or days, weeks or months of a calendar."""
    DURATION = enum.auto()
    SWITCH = enum.auto()
    COUNT = enum.auto()
    SHARE = enum.auto()
    CHOICE = enum.auto()
    TEXT = enum.auto()
    CANDIDATES = enum.auto()
    MOMENT = enum.auto()


class Section(enum.Enum):
    """What fields are about. Those of ``JOB`` are no options: a command line settles them by itself."""

    WINDOWS = enum.auto()
    COUNTING = enum.auto()
    ESTIMATES = enum.auto()
    JOB = enum.auto()


@dataclasses.dataclass(frozen=True)
class Exclusion:
    """A field that another one cannot go with.

    Attributes:
        name: of the field.
        value: only with this value; None: with any.
        because: relative clause that says why; empty if the name says it.
    """

    name: str
    value: Any = None
    because: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpecField:
    """One field of a specification.

    Attributes:
        name: key in YAML and JSON, keyword of ``JobSpec.of``, and option ``--name``.
        kind: what its values are.
        section: what it is about.
        label: title in a form.
        help: meaning and cost, without a full stop; names of other fields stand in backticks.
        default: value if none is given; None: there is none, or ``default_text`` describes it.
        default_text: the default in words, where the value does not say it.
        low, high: limits of a number, or of the milliseconds of a duration.
        whole_seconds: whether a duration must be whole seconds, because Beam's clock has no parts of them.
        choices: all allowed values.
        listed: values that the help lists, when somebody reads it; other packages may add to them.
        files: whether a bounded input uses, ignores or refuses it; what it does not use is for streams only.
        streams_need: why an unbounded input needs the field; empty if it does not.
        needs: fields without which it means nothing.
        excludes: fields that it cannot go with.
        page: page and section that say more, below ``docs/``.
    """

    name: str
    kind: Kind
    section: Section
    label: str
    help: str
    default: Any = None
    default_text: str = ""
    low: int = 0
    high: int | None = None
    whole_seconds: bool = False
    choices: tuple[str, ...] = ()
    listed: Iterable[str] = ()
    files: Literal["use", "ignore", "refuse"] = "use"
    streams_need: str = ""
    needs: tuple[str, ...] = ()
    excludes: tuple[Exclusion, ...] = ()
    page: str = ""

    @property
    def streams_only(self) -> bool:
        """Whether it changes nothing where the input ends."""
        return self.files != "use"

    @property
    def full_help(self) -> str:
        """The help and the values that it lists; raises SpecError if a class of another package cannot be loaded."""
        return ": ".join(filter(None, (self.help, ", ".join(sorted(self.listed)))))

    @property
    def may_repeat_default(self) -> bool:
        """Whether giving the default is the same as giving nothing, so that a form may fill it in."""
        return self.kind is Kind.SWITCH or not (self.needs or self.excludes or self.files == "refuse")


_ROWS = (
    SpecField(
        name="collections",
        kind=Kind.COLLECTIONS,
        section=Section.JOB,
        label="Collections",
        help="list of collections: paths of JSON files, the objects in them, or `Collection` objects",
    ),
    SpecField(
        name="window",
        kind=Kind.LENGTH,
        section=Section.WINDOWS,
        label="Length of a window",
        help="length of a window, such as 15m, 1h, 1d, 1w, 1mo or P1D, at most 365d; short windows show changes "
        "sooner, long ones have smaller errors",
        default_text="one window for everything, for files only",
        streams_need="an endless stream without windows has no estimate",
        page="windows.md",
    ),
    SpecField(
        name="slide",
        kind=Kind.LENGTH,
        section=Section.WINDOWS,
        label="Time between the starts of two windows",
        help="time between the starts of two windows; if it is shorter than `window`, windows overlap and each report "
        "counts in several",
        default_text="`window`",
        needs=("window",),
        page="windows.md",
    ),
    SpecField(
        name="window_offset",
        kind=Kind.LENGTH,
        section=Section.WINDOWS,
        label="Offset of windows",
        help="time by which windows start after 1970-01-01T00:00:00Z and its multiples; with `timezone`, after "
        "Monday, 1970-01-05, there",
        default_text="0s",
        needs=("window",),
        page="windows.md",
    ),
    SpecField(
        name="timezone",
        kind=Kind.TEXT,
        section=Section.WINDOWS,
        label="Time zone",
        help="time zone such as Europe/Berlin; windows are then days, weeks or months of that place",
        default_text="days of UTC",
        needs=("window",),
        page="windows.md#days-of-a-place",
    ),
    SpecField(
        name="allowed_lateness",
        kind=Kind.DURATION,
        section=Section.COUNTING,
        label="Allowed lateness",
        help="how long a report is accepted after the end of its base period, which is the longest time that divides "
        "`window` and `slide`; more late reports are counted, but windows stay open and keep state for longer",
        default=duration_text(ALLOWED_LATENESS),
        files="ignore",
        page="windows.md",
    ),
    SpecField(
        name="early_every",
        kind=Kind.DURATION,
        section=Section.COUNTING,
        label="Time between early estimates",
        help="also estimate unfinished windows at this interval; costs further rows and further estimation",
        default_text="never",
        low=1_000,
        whole_seconds=True,
        files="refuse",
        excludes=(Exclusion("release", FINAL),),
    ),
    SpecField(
        name="late_every",
        kind=Kind.DURATION,
        section=Section.COUNTING,
        label="Time between corrections of a window",
        help="shortest time between two corrections of a window; 0s corrects it for each bundle with late reports; "
        "shorter times cost more rows",
        default=duration_text(LATE_EVERY),
        whole_seconds=True,
        files="refuse",
        excludes=(Exclusion("release", FINAL),),
    ),
    SpecField(
        name="release",
        kind=Kind.CHOICE,
        section=Section.COUNTING,
        label="Release",
        help="when rows appear: corrected releases a row when the watermark passes the end of a window, and further "
        "rows while late reports change it; final releases one row, after the allowed lateness",
        default=CORRECTED,
        choices=(CORRECTED, FINAL),
        files="ignore",
    ),
    SpecField(
        name="deduplicate",
        kind=Kind.SWITCH,
        section=Section.COUNTING,
        label="Count each report id once",
        help="count each report id once per base period; costs a shuffle, and state for each report",
        default=False,
    ),
    SpecField(
        name="deduplicate_parts",
        kind=Kind.COUNT,
        section=Section.COUNTING,
        label="Deduplication shards",
        help="number of deduplication shards per base period; more shards use more workers, and each is read whole "
        "after a restart; a running job cannot change it",
        default=PARTS,
        low=1,
        high=MAX_PARTS,
        needs=("deduplicate",),
    ),
    SpecField(
        name="bit_patterns",
        kind=Kind.SWITCH,
        section=Section.COUNTING,
        label="Look inside reports",
        help="count how many bits reports of rappor, urap and aoue have set, and which together, for two more "
        "sentinels; costs time for each report",
        default=False,
        page="sentinels.md#inside-reports",
    ),
    SpecField(
        name="smooth",
        kind=Kind.SWITCH,
        section=Section.ESTIMATES,
        label="Smooth",
        help="also estimate each window from its neighbours, in a stream from those before it, in files from all, and "
        "raise an alarm when a share moves; smaller errors, if shares change slowly",
        default=False,
        needs=("window",),
        excludes=(Exclusion("slide", because="which makes windows overlap"),),
        page="smoothing.md",
    ),
    SpecField(
        name="alarm_every",
        kind=Kind.COUNT,
        section=Section.ESTIMATES,
        label="Windows between false alarms",
        help="mean number of windows of a collection between two false alarms that a share moved; a larger number "
        "means fewer false alarms and later true ones",
        default=ALARM_EVERY,
        low=1,
        high=1 << 31,
        needs=("smooth",),
        page="smoothing.md",
    ),
    SpecField(
        name="candidates",
        kind=Kind.CANDIDATES,
        section=Section.ESTIMATES,
        label="Candidates",
        help=f"values to estimate in open alphabets: a text file with one value per line, at most {MAX_CANDIDATES:,}",
        default_text="none",
    ),
    SpecField(
        name="discover",
        kind=Kind.SWITCH,
        section=Section.ESTIMATES,
        label="Search for values that nobody listed",
        help="also search alphabets of prefixes for frequent values that nobody listed, for rows `discovered`; takes "
        "up to a minute for each window and pane",
        default=False,
        page="discovery.md",
    ),
    SpecField(
        name="estimator",
        kind=Kind.TEXT,
        section=Section.ESTIMATES,
        label="Estimator",
        help="how frequencies are made from unbiased ones",
        listed=ESTIMATORS,
        default=ESTIMATOR,
        page="estimation.md",
    ),
    SpecField(
        name="min_reports",
        kind=Kind.COUNT,
        section=Section.ESTIMATES,
        label="Minimum of reports",
        help="windows with fewer reports are suppressed",
        default=MIN_REPORTS,
        low=1,
        high=1 << 62,
    ),
    SpecField(
        name="show",
        kind=Kind.COUNT,
        section=Section.ESTIMATES,
        label="Values of a row",
        help="number of most frequent values to keep per row; intervals allow for this choice",
        default=SHOW,
        low=1,
        high=MAX_CANDIDATES,
        page="consume.md#the-largest-of-many",
    ),
    SpecField(
        name="max_rejected_share",
        kind=Kind.SHARE,
        section=Section.ESTIMATES,
        label="Maximum share of rejected reports",
        help="share of rejected reports that indicates a wrong configuration: a stream fails if more of 1,000 "
        "consecutive reports are rejected for one reason, so that they stay in their queue; a job over files ends "
        "with exit code 4; 1 means never",
        default_text=f"{REJECTED_SHARE_OF_STREAMS} for streams, {REJECTED_SHARE_OF_FILES} for files",
        page="operations.md#nearly-everything-is-rejected",
    ),
    SpecField(
        name="bounded",
        kind=Kind.SWITCH,
        section=Section.JOB,
        label="Bounded",
        help="whether the input ends: files do, streams do not",
        default_text="as the input",
    ),
    SpecField(
        name="future_skew",
        kind=Kind.DURATION,
        section=Section.JOB,
        label="Future skew",
        help="how far the clock of a client may be ahead; reports from further ahead are rejected",
        default=duration_text(FUTURE_SKEW),
        files="ignore",
    ),
    SpecField(
        name="lateness_slack",
        kind=Kind.DURATION,
        section=Section.JOB,
        label="Lateness slack",
        help="how long state outlives the allowed lateness; it must exceed the time by which the watermark runs ahead "
        "of the clock, or the runner drops late reports before they are counted as rejected",
        default_text=f"{duration_text(LATENESS_SLACK)}; ten years on local engines, whose watermark is the clock",
        low=1,
        files="ignore",
    ),
    SpecField(
        name="run",
        kind=Kind.TEXT,
        section=Section.JOB,
        label="Run",
        help="name of this run of the job, in all its rows: 1 to 64 letters, digits, `.`, `_` and `-`, a letter or "
        "digit first; later runs must sort after earlier ones as text, because readers take the rows of the latest",
        default_text="rows name no run",
    ),
    SpecField(
        name="partial_before",
        kind=Kind.MOMENT,
        section=Section.JOB,
        label="Partial before",
        help="time in RFC 3339; windows that begin before it are `partial`, because an earlier run acknowledged some "
        "of their reports, which never come again",
        default_text="no earlier run",
        files="refuse",
    ),
)

SPEC_FIELDS: Mapping[str, SpecField] = {row.name: row for row in _ROWS}
"""Name -> field, in the order of pages and JSON."""
