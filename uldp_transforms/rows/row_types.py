"""The kinds of rows, one class each, with Beam schemas. ``make golden`` generates their fields.

``schemas/*.avsc`` defines the fields: edit them there. Annotations are real objects here, and ``Optional`` is written
out, because Beam derives schemas from nothing else.
"""

# ruff: noqa: UP045
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

from uldp_transforms.rows.renamed_fields import fill_replaced, with_attributes
from uldp_transforms.schemas import load


@with_attributes
class ValueEstimate(NamedTuple):
    """One value of an estimate."""

    value: str
    frequency: float
    standard_error: float
    ci_low: float
    ci_high: float
    raw_frequency: float
    display_low: Optional[float] = None
    display_high: Optional[float] = None
    common_variance: Optional[float] = None
    smoothed_frequency: Optional[float] = None
    smoothed_low: Optional[float] = None
    smoothed_high: Optional[float] = None
    block_frequency: Optional[float] = None


@with_attributes
class MeanFigure(NamedTuple):
    """Mean of the numbers of a window, with its interval."""

    value: Optional[float] = None
    low: Optional[float] = None
    high: Optional[float] = None
    half_bin: Optional[float] = None
    display_value: Optional[float] = None
    display_low: Optional[float] = None
    display_high: Optional[float] = None
    standard_error: Optional[float] = None
    people_variance: Optional[float] = None
    common_variance: Optional[float] = None
    smoothed_value: Optional[float] = None
    smoothed_low: Optional[float] = None
    smoothed_high: Optional[float] = None


@with_attributes
class QuantileFigure(NamedTuple):
    """Quantile of the numbers of a window, with its interval."""

    q: float
    value: Optional[float]
    low: Optional[float]
    high: Optional[float]
    display_value: Optional[float] = None
    display_low: Optional[float] = None
    display_high: Optional[float] = None
    smoothed_value: Optional[float] = None
    smoothed_low: Optional[float] = None
    smoothed_high: Optional[float] = None


@with_attributes
class ShareFigure(NamedTuple):
    """Share of people whose number is at least a limit, with its interval."""

    limit: float
    value: Optional[float]
    low: Optional[float]
    high: Optional[float]
    display_value: Optional[float] = None
    display_low: Optional[float] = None
    display_high: Optional[float] = None
    smoothed_value: Optional[float] = None
    smoothed_low: Optional[float] = None
    smoothed_high: Optional[float] = None


@with_attributes
class CurveBin(NamedTuple):
    """The share of people whose number is in one bin."""

    low: Optional[float]
    high: Optional[float]
    share: float
    display_low: float
    display_high: float


@with_attributes
class ShareBelow(NamedTuple):
    """The share of people whose number is below an edge between two bins."""

    edge: float
    value: float
    standard_error: float
    common_variance: Optional[float] = None


@with_attributes
class SumFigure(NamedTuple):
    """Sum of the numbers of all reports of a window, with its interval."""

    value: Optional[float] = None
    low: Optional[float] = None
    high: Optional[float] = None
    half_bins: Optional[float] = None


@with_attributes
class NumberFigures(NamedTuple):
    """Figures of the numbers of a window."""

    mean: MeanFigure = MeanFigure()
    quantiles: Sequence[QuantileFigure] = ()
    shares_above: Sequence[ShareFigure] = ()
    curve: Sequence[CurveBin] = ()
    below: Sequence[ShareBelow] = ()
    share: Optional[float] = None
    sum: SumFigure = SumFigure()


@with_attributes
class SumOfShares(NamedTuple):
    """A sum of the shares of chosen values, with its interval."""

    name: str
    is_share: bool
    value: float
    low: float
    high: float
    display_value: float
    display_low: float
    display_high: float
    standard_error: float
    least: float
    most: float
    people_variance: Optional[float] = None
    common_variance: Optional[float] = None
    smoothed_value: Optional[float] = None
    smoothed_low: Optional[float] = None
    smoothed_high: Optional[float] = None


@with_attributes
class ShareInBlock(NamedTuple):
    """Share of a value among the people of its public block, with its interval."""

    value: str
    block: str
    num_reports: int
    share: Optional[float] = None
    low: Optional[float] = None
    high: Optional[float] = None
    display_low: Optional[float] = None
    display_high: Optional[float] = None


@with_attributes
class DimensionValue(NamedTuple):
    """A dimension of a group."""

    name: str
    value: str


@with_attributes
class WindowedEstimate(NamedTuple):
    """Estimated distribution of one collection in one window and pane, as one row.

    The fields are those of ``schemas/windowed_estimate.avsc``.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateReports, ReadReportFiles
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     estimated = files | EstimateReports(
        ...         collections=["C.json"], window="1d"
        ...     )
        ...     rows = estimated.estimates
        ...     _ = rows | beam.Map(lambda row: print(row.window_start))
        2001-09-09T00:00:00Z
    """

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: Optional[str]
    window_end: Optional[str]
    pane_index: int
    pane_timing: str
    num_reports: Optional[int]
    simulated: Optional[bool]
    estimator: str
    unexplained_mass: Optional[float]
    unexplained_standard_error: Optional[float]
    redistributed_mass: Optional[float]
    fit_p_value: Optional[float]
    status: str
    software: str
    estimates: Sequence[ValueEstimate]
    run: Optional[str] = None
    num_values: Optional[int] = None
    unexplained_low: Optional[float] = None
    unexplained_high: Optional[float] = None
    unexplained_status: Optional[str] = None
    interval: Optional[str] = None
    numbers: NumberFigures = NumberFigures()
    pooled: Optional[bool] = None
    dimensions: Sequence[DimensionValue] = ()
    group: Optional[str] = None
    liars: Optional[float] = None
    borrowed: Optional[float] = None
    confidence: Optional[float] = None
    sums: Sequence[SumOfShares] = ()
    in_blocks: Sequence[ShareInBlock] = ()


@with_attributes
class EstimatedValue(NamedTuple):
    """Estimate of one value in one window and pane, as one flat row.

    The fields are those of ``schemas/estimated_value.avsc``.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateReports, ReadReportFiles
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     estimated = files | EstimateReports(
        ...         collections=["C.json"], window="1d"
        ...     )
        ...     rows = estimated.values
        ...     hiv = rows | beam.Filter(lambda row: row.value == "hiv")
        ...     _ = hiv | beam.Map(lambda row: print(row.num_reports))
        10000
    """

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: Optional[str]
    window_end: Optional[str]
    pane_index: int
    pane_timing: str
    status: str
    num_reports: Optional[int]
    simulated: Optional[bool]
    estimator: str
    value: str
    frequency: float
    standard_error: float
    ci_low: float
    ci_high: float
    raw_frequency: float
    run: Optional[str] = None
    display_low: Optional[float] = None
    display_high: Optional[float] = None
    num_values: Optional[int] = None
    common_variance: Optional[float] = None
    smoothed_frequency: Optional[float] = None
    smoothed_low: Optional[float] = None
    smoothed_high: Optional[float] = None
    interval: Optional[str] = None
    pooled: Optional[bool] = None
    dimensions: Sequence[DimensionValue] = ()
    group: Optional[str] = None
    liars: Optional[float] = None
    borrowed: Optional[float] = None
    confidence: Optional[float] = None
    block_frequency: Optional[float] = None


CHANGE = "change"
"""Name of the finding about values that changed."""

REPEATS = "repeats"
"""Name of the finding about people who report twice."""


@with_attributes
class HealthFinding(NamedTuple):
    """Finding of one sentinel."""

    name: str
    statistic: float
    p_value: float
    fired: bool
    sentence: str
    judged: Optional[int] = None


@with_attributes
class WindowHealth(NamedTuple):
    """Findings of all sentinels for one window; the fields are those of ``schemas/health.avsc``."""

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: Optional[str]
    window_end: Optional[str]
    pane_index: int
    pane_timing: str
    num_reports: Optional[int]
    status: str
    findings: Sequence[HealthFinding]
    run: Optional[str] = None
    pooled: Optional[bool] = None
    dimensions: Sequence[DimensionValue] = ()
    group: Optional[str] = None


@with_attributes
class WindowCounts(NamedTuple):
    """The counts of one collection in one window; the fields are those of ``schemas/counts.avsc``."""

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: Optional[str]
    window_end: Optional[str]
    pane_index: int
    pane_timing: str
    complete: bool
    num_reports: Sequence[int]
    cells: Sequence[int]
    run: Optional[str] = None
    simulated: Optional[bool] = None
    dimensions: Sequence[DimensionValue] = ()
    group: Optional[str] = None


@with_attributes
class DiscoveredValue(NamedTuple):
    """A frequent value that was discovered in one window, as one row.

    The fields are those of ``schemas/discovered_value.avsc``.

    Examples:
        >>> from uldp_transforms import DiscoveredValue
        >>> names = DiscoveredValue._fields
        >>> names[names.index("value") :][:5]
        ('value', 'frequency', 'standard_error', 'ci_low', 'ci_high')
    """

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: Optional[str]
    window_end: Optional[str]
    pane_index: int
    pane_timing: str
    num_reports: Optional[int]
    simulated: Optional[bool]
    value: str
    frequency: float
    standard_error: float
    ci_low: float
    ci_high: float
    q_value: float
    level: int
    num_scored: int
    run: Optional[str] = None
    confidence: Optional[float] = None


@with_attributes
class ComparedValue(NamedTuple):
    """Comparison of a value or figure in two groups or windows; fields as in ``schemas/compared_value.avsc``."""

    collection_id: str
    window_start: Optional[str]
    window_end: Optional[str]
    value: str
    group_a: str
    group_b: str
    difference: float
    low: Optional[float]
    high: Optional[float]
    p_value: float
    q_value: float
    lift: Optional[float]
    lift_low: Optional[float]
    lift_high: Optional[float]
    figure: Optional[str] = None
    at: Optional[float] = None
    display_difference: Optional[float] = None
    display_low: Optional[float] = None
    display_high: Optional[float] = None
    selected_low: Optional[float] = None
    selected_high: Optional[float] = None
    noticeable: Optional[float] = None
    interval: Optional[str] = None
    liars: Optional[float] = None
    collection_version: Optional[int] = None
    simulated: Optional[bool] = None
    confidence: Optional[float] = None
    figure_at: Optional[float] = None


@with_attributes
class LedgerRow(NamedTuple):
    """Numbers of reports of one collection and period; the fields are those of ``schemas/ledger.avsc``."""

    collection_id: Optional[str]
    collection_version: Optional[int]
    fingerprint: Optional[str]
    window_start: Optional[str]
    window_end: Optional[str]
    received: int
    accepted: int
    duplicates: int
    rejected: Mapping[str, int]
    run: Optional[str] = None
    in_transit: Optional[int] = None
    unread_messages: Mapping[str, int] = {}
    unread_files: Mapping[str, int] = {}


@with_attributes
class RejectedReport(NamedTuple):
    """Reports that were not counted; the fields are those of ``schemas/rejected_report.avsc``."""

    reason: str
    num_reports: int
    collection_id: Optional[str]
    collection_version: Optional[int]
    fingerprint: Optional[str]
    window_start: Optional[str]
    window_end: Optional[str]
    received_at: Optional[str]
    message_bytes: int
    source: str
    run: Optional[str] = None
    num_messages: Optional[int] = None
    num_files: Optional[int] = None


@with_attributes
class UndeliveredRow(NamedTuple):
    """A row that BigQuery refused; the fields are those of ``schemas/undelivered_row.avsc``."""

    table: str
    errors: Sequence[str]
    row: str


ESTIMATE_SCHEMA = load("windowed_estimate.avsc")
VALUE_SCHEMA = load("estimated_value.avsc")
HEALTH_SCHEMA = load("health.avsc")
COUNTS_SCHEMA = load("counts.avsc")
DISCOVERED_SCHEMA = load("discovered_value.avsc")
COMPARED_SCHEMA = load("compared_value.avsc")
LEDGER_SCHEMA = load("ledger.avsc")
REJECTED_SCHEMA = load("rejected_report.avsc")
UNDELIVERED_SCHEMA = load("undelivered_row.avsc")

for _row, _schema in (
    (WindowedEstimate, ESTIMATE_SCHEMA),
    (EstimatedValue, VALUE_SCHEMA),
    (WindowHealth, HEALTH_SCHEMA),
    (WindowCounts, COUNTS_SCHEMA),
    (DiscoveredValue, DISCOVERED_SCHEMA),
    (ComparedValue, COMPARED_SCHEMA),
    (LedgerRow, LEDGER_SCHEMA),
    (RejectedReport, REJECTED_SCHEMA),
    (UndeliveredRow, UNDELIVERED_SCHEMA),
):
    fill_replaced(_row, _schema)
