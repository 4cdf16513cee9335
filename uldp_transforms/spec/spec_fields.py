"""The table of all fields of a specification: type, default, help, and the fields that each one needs or excludes.

These rows generate command lines, the parameters of the Dataflow template, the keys of YAML and JSON, the error
messages for values and contradictions, and the table in ``docs/estimate-reports.md``. To add a field, add a row here,
an attribute of ``JobSpec`` and a key of ``SpecValues``; then run ``make golden``.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES
from uldp_transforms.messages.refusal_causes import REJECTED_SHARE_OF_FILES, REJECTED_SHARE_OF_STREAMS
from uldp_transforms.windows import FUTURE_SKEW, LATENESS_SLACK, duration_text

CORRECTED, FINAL = "corrected", "final"
"""How results are released: one row at the end of each window and corrections for late reports, or a single final
row.
"""

ALLOWED_LATENESS = 3_600_000
"""Default milliseconds for which a stream accepts late reports."""

LATE_EVERY = 60_000
"""Default milliseconds of processing time between two corrections of a window."""

PARTS, MAX_PARTS = 16, 1 << 32
"""Number of deduplication shards per base period: default and maximum."""

BY_REPORTS, BY_FINGERPRINTS = "reports", "fingerprints"
"""What deduplication keeps of each counted report: all of it, or 8 bytes of its id."""

ALARM_EVERY = 1_000
"""Default mean number of windows between two false alarms about a change."""

ESTIMATOR = "eb"
"""Default estimator."""

MIN_REPORTS = 100
"""Default minimum number of reports for a published estimate."""

SHOW = 10_000
"""Default maximum number of values per row."""


class Kind(enum.Enum):
    """Type of a field's value, as users write it."""

    COLLECTIONS = enum.auto()
    LENGTH = enum.auto()
    """A duration, or a number of calendar days, weeks or months."""
    DURATION = enum.auto()
    SWITCH = enum.auto()
    COUNT = enum.auto()
    SHARE = enum.auto()
    CONFIDENCE = enum.auto()
    """A number between 0 and 1, without either."""
    CHOICE = enum.auto()
    TEXT = enum.auto()
    NUMBERS = enum.auto()
    """A list of numbers, or a text with commas between them."""
    NAMES = enum.auto()
    """A list of texts, or a text with commas between them."""
    CANDIDATES = enum.auto()
    SUMS = enum.auto()
    """Sums over chosen values by name, or the path of a JSON file with them."""
    MOMENT = enum.auto()


class Section(enum.Enum):
    """Group of fields. The fields of ``JOB`` are not options: a command-line program sets them itself."""

    WINDOWS = enum.auto()
    COUNTING = enum.auto()
    ESTIMATES = enum.auto()
    JOB = enum.auto()


@dataclasses.dataclass(frozen=True)
class Exclusion:
    """A field that cannot be combined with another one.

    Attributes:
        name: name of the excluded field.
        value: the value that is excluded; None excludes all values.
        because: relative clause that gives the reason; empty if the name suffices.
    """

    name: str
    value: Any = None
    because: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpecField:
    """One field of a specification.

    Attributes:
        name: key in YAML and JSON, keyword of ``JobSpec.of``, and option ``--name``.
        kind: type of the value.
        section: group of the field.
        label: title in a form.
        help: meaning and cost, without a full stop, with the names of other fields in backticks.
        default: default value; None if there is none or ``default_text`` describes it.
        default_text: the default in words, if the value alone is not clear.
        low, high: limits of a number, or of a duration in milliseconds.
        whole_seconds: whether a duration must be a whole number of seconds, as Beam's timers require.
        choices: all allowed values.
        listed: function that returns further values for the help text; other packages may add some.
        files: whether a bounded input uses, ignores or refuses the field; fields that it does not use are for streams
            only.
        streams_need: why an unbounded input needs the field; empty if it does not.
        needs: fields without which this one has no effect.
        excludes: fields that cannot be combined with this one.
        page: page and section below ``docs/`` with details.
        is_common: whether most people need it, so that a short help shows its option.
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
    is_common: bool = False

    @property
    def streams_only(self) -> bool:
        """Whether the field has no effect on bounded input."""
        return self.files != "use"

    @property
    def full_help(self) -> str:
        """The help and the values that it lists; raises SpecError if a class of another package cannot be loaded."""
        return ": ".join(filter(None, (self.help, ", ".join(sorted(self.listed)))))

    @property
    def may_repeat_default(self) -> bool:
        """Whether giving the default is equivalent to omitting the field, so that a form may fill it in."""
        return self.kind is Kind.SWITCH or not (self.needs or self.excludes or self.files == "refuse")


_ROWS = (
    SpecField(
        name="collections",
        kind=Kind.COLLECTIONS,
        section=Section.JOB,
        label="Collections",
        help="list of collections: paths of JSON files, their JSON objects, or `Collection` objects",
    ),
    SpecField(
        name="window",
        kind=Kind.LENGTH,
        section=Section.WINDOWS,
        label="Length of a window",
        help="length of a window, such as 15m, 1h, 1d, 1w, 1mo or P1D, at most 365d; short windows show changes "
        "sooner, long ones have smaller errors",
        default_text="one window for everything, for files only",
        streams_need="an unbounded stream without windows has no estimate",
        page="windows.md",
        is_common=True,
    ),
    SpecField(
        name="slide",
        kind=Kind.LENGTH,
        section=Section.WINDOWS,
        label="Time between the starts of two windows",
        help="time between the starts of two windows; if it is shorter than `window`, windows overlap and each "
        "report counts in several of them",
        default_text="`window`",
        needs=("window",),
        page="windows.md",
    ),
    SpecField(
        name="window_offset",
        kind=Kind.LENGTH,
        section=Section.WINDOWS,
        label="Offset of windows",
        help="shift of the start of windows relative to 1970-01-01T00:00:00Z; with `timezone`, relative to "
        "Monday, 1970-01-05, local time",
        default_text="0s",
        needs=("window",),
        page="windows.md",
    ),
    SpecField(
        name="timezone",
        kind=Kind.TEXT,
        section=Section.WINDOWS,
        label="Time zone",
        help="time zone such as Europe/Berlin; windows are then local days, weeks or months of that time zone",
        default_text="UTC",
        needs=("window",),
        page="windows.md#days-of-a-place",
        is_common=True,
    ),
    SpecField(
        name="allowed_lateness",
        kind=Kind.DURATION,
        section=Section.COUNTING,
        label="Allowed lateness",
        help="how long a report is accepted after the end of its base period, which is the longest time that "
        "divides `window` and `slide`; longer times count more late reports, but windows stay open and "
        "keep state for longer",
        default=duration_text(ALLOWED_LATENESS),
        files="ignore",
        page="windows.md",
        is_common=True,
    ),
    SpecField(
        name="early_every",
        kind=Kind.DURATION,
        section=Section.COUNTING,
        label="Time between early estimates",
        help="also estimate unfinished windows at this interval; costs additional rows and estimation time",
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
        help="count each report id once per base period; costs a shuffle and state for each report",
        default=False,
        is_common=True,
    ),
    SpecField(
        name="deduplicate_parts",
        kind=Kind.COUNT,
        section=Section.COUNTING,
        label="Deduplication shards",
        help="number of deduplication shards per base period; more shards use more workers, and each shard is "
        "read as a whole after a restart; a running job cannot change the number",
        default=PARTS,
        low=1,
        high=MAX_PARTS,
        needs=("deduplicate",),
    ),
    SpecField(
        name="deduplicate_by",
        kind=Kind.CHOICE,
        section=Section.COUNTING,
        label="What deduplication keeps",
        help="what is kept of each counted report: reports keeps all of it, and of two different reports with one id "
        "the smaller one counts, whichever comes first; fingerprints keeps 8 bytes, the first one counts, and a report "
        "is lost with probability below n / 2^64 for n ids; a running job cannot change it",
        default=BY_REPORTS,
        choices=(BY_REPORTS, BY_FINGERPRINTS),
        needs=("deduplicate",),
        page="scale.md#state",
    ),
    SpecField(
        name="bit_patterns",
        kind=Kind.SWITCH,
        section=Section.COUNTING,
        label="Look inside reports",
        help="count how many bits are set in reports of rappor, urap and aoue, and which bits occur together, "
        "for two more sentinels; costs time for each report",
        default=False,
        page="sentinels.md#inside-reports",
    ),
    SpecField(
        name="by",
        kind=Kind.NAMES,
        section=Section.COUNTING,
        label="Groups",
        help="dimensions such as country,arm: each window also has a row for every group of people with the same "
        "values of them; costs counts and an estimate for each group",
        default_text="none, only the total",
        excludes=(Exclusion("discover", because="which searches all reports together"),),
        page="groups.md",
        is_common=True,
    ),
    SpecField(
        name="smooth",
        kind=Kind.SWITCH,
        section=Section.ESTIMATES,
        label="Smooth",
        help="also estimate each window from its neighbours (in a stream, from earlier windows; in files, from "
        "all), and raise an alarm when a share changes; errors are smaller if shares change slowly",
        default=False,
        needs=("window",),
        excludes=(Exclusion("slide", because="which makes windows overlap"),),
        page="smoothing.md",
        is_common=True,
    ),
    SpecField(
        name="alarm_every",
        kind=Kind.COUNT,
        section=Section.ESTIMATES,
        label="Windows between false alarms",
        help="mean number of windows of a collection (or of rows, where windows have several) between two false alarms "
        "that a share changed, and likewise for all its groups together; larger numbers give fewer false alarms and "
        "later detection",
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
        help="values to estimate in open alphabets, in addition to their public lists: a text file with one value per "
        f"line, at most {MAX_CANDIDATES:,}",
        default_text="none",
        is_common=True,
    ),
    SpecField(
        name="limits",
        kind=Kind.NUMBERS,
        section=Section.ESTIMATES,
        label="Limits of numbers",
        help="numbers such as 30,60; for ordered alphabets, rows then have the share of people whose number "
        "is at least each of these; intervals are shortest at bin edges",
        default_text="none",
        page="numbers.md",
    ),
    SpecField(
        name="quantiles",
        kind=Kind.NUMBERS,
        section=Section.ESTIMATES,
        label="Quantiles of numbers",
        help="shares such as 0.5,0.9; for ordered alphabets, rows then have the numbers below which these "
        "shares of people lie",
        default_text="0.1, 0.5 and 0.9",
        page="numbers.md",
    ),
    SpecField(
        name="sums",
        kind=Kind.SUMS,
        section=Section.ESTIMATES,
        label="Sums over chosen values",
        help='sums over values: a JSON file such as {"divorced": ["a", "b"]}; each name has a list of values, a '
        'pattern of them such as {"match": "a*"}, or weights such as {"weights": {"a": 3}}; values of open alphabets '
        "must be candidates",
        default_text="none",
        page="estimation.md#sums-over-chosen-values",
    ),
    SpecField(
        name="discover",
        kind=Kind.SWITCH,
        section=Section.ESTIMATES,
        label="Search for unlisted values",
        help="also search prefix alphabets for frequent unlisted values, which become rows `discovered`; takes "
        "up to a minute for each window and pane",
        default=False,
        page="discovery.md",
    ),
    SpecField(
        name="estimator",
        kind=Kind.TEXT,
        section=Section.ESTIMATES,
        label="Estimator",
        help="method that derives the published frequencies from the unbiased ones",
        listed=ESTIMATORS,
        default=ESTIMATOR,
        page="estimation.md",
    ),
    SpecField(
        name="min_reports",
        kind=Kind.COUNT,
        section=Section.ESTIMATES,
        label="Minimum number of reports",
        help="windows with fewer reports are suppressed",
        default=MIN_REPORTS,
        low=1,
        high=1 << 62,
        is_common=True,
    ),
    SpecField(
        name="show",
        kind=Kind.COUNT,
        section=Section.ESTIMATES,
        label="Values per row",
        help="number of most frequent values to keep per row; intervals account for this selection",
        default=SHOW,
        low=1,
        high=MAX_CANDIDATES,
        page="consume.md#the-largest-of-many",
    ),
    SpecField(
        name="liars",
        kind=Kind.SHARE,
        section=Section.ESTIMATES,
        label="Share of liars",
        help="largest share of reports, in every window and group, that may be false in any way, such as 0.01; "
        "intervals then cover shares among honest people, and are much longer if epsilon is small; of a question, the "
        "share of the reports of all its versions; needs values that each have a symbol of their own",
        default_text="none, all reports are taken as honest",
        excludes=(
            Exclusion("smooth", because="whose intervals and alarms take all reports as honest"),
            Exclusion("discover", because="which takes all reports as honest"),
        ),
        page="groups.md#if-some-reports-are-lies",
    ),
    SpecField(
        name="confidence",
        kind=Kind.CONFIDENCE,
        section=Section.ESTIMATES,
        label="Confidence of intervals",
        help="level of confidence of all intervals, such as 0.9 for shorter or 0.99 for longer ones; estimates do not "
        "depend on it",
        default=CONFIDENCE,
        page="estimation.md#the-confidence-of-intervals",
        is_common=True,
    ),
    SpecField(
        name="borrow",
        kind=Kind.SWITCH,
        section=Section.ESTIMATES,
        label="Borrow from all groups",
        help="draw the shown shares of each group towards those of all reports, as far as that is estimated to reduce "
        "their error; raw frequencies and intervals stay those of its own reports; costs 18 estimates for each group",
        default=False,
        needs=("by",),
        page="groups.md#borrow-from-all-groups",
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
        help="whether the input ends, as files do and streams do not",
        default_text="determined by the input",
    ),
    SpecField(
        name="future_skew",
        kind=Kind.DURATION,
        section=Section.JOB,
        label="Future skew",
        help="how far a client's clock may be ahead; reports from further ahead are rejected",
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
        help="name of this run of the job, in all its rows: 1 to 64 letters, digits, `.`, `_` and `-`, starting "
        "with a letter or digit; later runs must sort after earlier ones as text, because readers take the "
        "rows of the latest",
        default_text="rows do not name a run",
    ),
    SpecField(
        name="partial_before",
        kind=Kind.MOMENT,
        section=Section.JOB,
        label="Partial before",
        help="time in RFC 3339; windows that begin before it are `partial`, because an earlier run acknowledged some "
        "of their reports, which are not delivered again",
        default_text="no earlier run",
        files="refuse",
    ),
)

SPEC_FIELDS: Mapping[str, SpecField] = {row.name: row for row in _ROWS}
"""Name -> field, in the order of documents and JSON."""
