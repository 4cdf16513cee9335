"""What dashboards show and when somebody is called: one table, from which all files of this folder are written.

Names of metrics are those of ``docs/operations.md``; tests refuse others. Flink calls a counter of Beam
``flink_taskmanager_job_task_operator_uldp_NAME``, with the operator among the labels; its reporter says 0 for every
distribution. Recording rules add up what several queries need, so that each query is short. After a restart all
counters begin anew: reports received before are accepted after it. ``scrape`` shows what Flink really says.
"""

from __future__ import annotations

from typing import NamedTuple

FLINK = "flink_taskmanager_job_task_operator_uldp_"
"""Prefix of our metrics in Prometheus."""

OF_FLINK = (
    "flink_jobmanager_job_numRestarts",
    "flink_jobmanager_job_numberOfCompletedCheckpoints",
    "flink_jobmanager_job_numberOfFailedCheckpoints",
    "flink_taskmanager_job_task_backPressuredTimeMsPerSecond",
    "flink_taskmanager_job_task_currentInputWatermark",
)
"""Metrics of the engine itself, by the names that it shows."""

OF_GOOGLE = (
    "dataflow.googleapis.com/job/backlog_bytes",
    "dataflow.googleapis.com/job/data_watermark_age",
    "dataflow.googleapis.com/job/system_lag",
    "pubsub.googleapis.com/subscription/oldest_unacked_message_age",
)
"""The same of Dataflow and Pub/Sub."""


class Panel(NamedTuple):
    """One graph.

    Attributes:
        title, unit: of the graph, the unit by Grafana's name.
        query: PromQL.
        names: metrics of ours that the graph on Dataflow shows.
        google: metric of Google's that it shows instead.
    """

    title: str
    unit: str
    query: str
    names: tuple[str, ...] = ()
    google: str = ""


class Recorded(NamedTuple):
    """A series that Prometheus computes before the alerts.

    Attributes:
        name: of the series: labels that are kept, metric, operation.
        query: PromQL.
    """

    name: str
    query: str


class Alert(NamedTuple):
    """Somebody is called.

    Attributes:
        name: heading of the row in docs/operations.md.
        query: PromQL that has results while something is wrong.
        minutes: for how long it must be wrong.
        severity: "page" or "ticket".
        summary: one sentence.
    """

    name: str
    query: str
    minutes: int
    severity: str
    summary: str


def summed(name: str) -> Recorded:
    """The counter of this name, of all operators and tasks of a job; ``rejected_.+``: all of a kind.

    Args:
        name: of a metric of ours, or of Flink.
    """
    full_name = name if name in OF_FLINK else FLINK + name
    selector = f'{{__name__=~"{full_name}"}}' if "+" in name else full_name
    return Recorded(total(name), f"sum by (job_name) ({selector})")


def total(name: str, before: str = "") -> str:
    """PromQL: the series that ``summed`` records, perhaps at an offset such as ``offset 10m``."""
    kind = name.removesuffix("_.+").removeprefix("flink_jobmanager_job_")
    return f"job_name:uldp_{kind}:sum{before and ' '}{before}"


def changed(now: str, before: str) -> str:
    """PromQL: the difference to what was; what was not there was 0."""
    return f"({now} - ({before} or 0 * {now}))"


def grown(name: str, minutes: int) -> str:
    """PromQL: by how much ``total`` grew at least; a counter that fell was restarted, and began at 0."""
    return f"({changed(total(name), total(name, f'offset {minutes}m'))} >= 0 or {total(name)})"


def by_kind(name: str) -> str:
    """PromQL: reports or rows of each kind since the job began, such as one line for each reason."""
    return f'sum by (__name__) ({{__name__=~"{FLINK}{name}_.+"}})'


_RESTARTS, _FAILED, _COMPLETED = (
    f"flink_jobmanager_job_{name}"
    for name in ("numRestarts", "numberOfFailedCheckpoints", "numberOfCompletedCheckpoints")
)
_LAG = "time() - min by (job_name) (flink_taskmanager_job_task_currentInputWatermark{}) / 1000"
_BUSY = "max by (job_name) (flink_taskmanager_job_task_backPressuredTimeMsPerSecond) / 1000"
_RECEIVED, _REJECTED, _UNREAD = (grown(name, 10) for name in ("received", "rejected_.+", "unread_messages_.+"))


def _unsettled() -> str:
    """PromQL: reports received and in no other bin; fewer than none if they were received before a restart."""
    received = total("received")
    bins = (f"({total(name)} or 0 * {received})" for name in ("accepted", "duplicates", "rejected_.+"))
    return f"{received} - {' - '.join(bins)}"


RECORDED = (
    *map(summed, ("received", "accepted", "duplicates", "rejected_.+", "alarms_.+", "after_release")),
    summed("unread_messages_.+"),
    *map(summed, (_RESTARTS, _FAILED, _COMPLETED)),
    Recorded(total("unsettled"), _unsettled()),
)
"""In their order: the last one is computed from others."""


PANELS = (
    Panel("Reports received in 10 minutes", "short", _RECEIVED, ("received",)),
    Panel("Share of reports that are refused", "percentunit", f"{_REJECTED} / ({_RECEIVED} > 0)"),
    Panel("Refused reports, by reason", "short", by_kind("rejected"), ("rejected_*",)),
    Panel("Unread messages, by reason", "short", by_kind("unread_messages"), ("unread_messages_*",)),
    Panel("Unread files, by reason", "short", by_kind("unread_files"), ("unread_files_*",)),
    Panel("Duplicates in 10 minutes", "short", grown("duplicates", 10), ("duplicates",)),
    Panel("Age of the watermark", "s", _LAG.format(" > 0"), google="dataflow.googleapis.com/job/data_watermark_age"),
    Panel("Share of time in which steps wait for others", "percentunit", _BUSY),
    Panel("Age of the oldest message", "s", "", google="pubsub.googleapis.com/subscription/oldest_unacked_message_age"),
    Panel("Backlog", "bytes", "", google="dataflow.googleapis.com/job/backlog_bytes"),
    Panel("Time that an element waits", "s", "", google="dataflow.googleapis.com/job/system_lag"),
    Panel("Windows, by status", "short", by_kind("windows"), ("windows_*",)),
    Panel("Alarms of sentinels", "short", by_kind("alarms"), ("alarms_*",)),
    Panel(
        "Received and in no other bin",
        "short",
        total("unsettled"),
        ("received", "accepted", "duplicates", "rejected_*"),
    ),
    Panel("Rows after the only one of a window", "short", total("after_release"), ("after_release",)),
    Panel("Milliseconds of an estimate", "ms", "", ("estimate_ms",)),
    Panel("Milliseconds too late, the worst", "ms", "", ("too_old_off_by_ms",)),
    Panel("Milliseconds too early, the worst", "ms", "", ("too_early_off_by_ms",)),
    Panel("Restarts", "short", total(_RESTARTS)),
    Panel("Failed checkpoints", "short", total(_FAILED)),
)

ALERTS = (
    Alert("UldpReportsRefused", f"{_REJECTED} > 0.05 * {_RECEIVED} and {_RECEIVED} > 100", 10, "ticket",
          "More than 5 % of the reports of 10 minutes were refused."),
    Alert("UldpMessagesUnread", f"{_UNREAD} > clamp_min(0.001 * {_RECEIVED}, 5)", 10, "ticket",
          "More than 5 messages of 10 minutes could not be read, and more than one for each 1,000 reports."),
    Alert("UldpNothingReceived", f"{grown('received', 30)} == 0 or absent({FLINK}received)", 30, "page",
          "No report came for an hour."),
    Alert("UldpWatermarkStuck", f"{_LAG.format('')} > 900 and {total(_COMPLETED)} > 0", 10, "page",
          "The watermark is more than 15 minutes behind the clock, or not there: windows do not end."),
    Alert("UldpBacklog", f"{_BUSY} > 0.5", 15, "ticket",
          "A step waits for others more than half of its time: reports come faster than they are counted."),
    Alert("UldpSentinelAlarm", f"{grown('alarms_.+', 60)} > 0", 0, "ticket",
          "A sentinel fired, or shares changed, in a window of the last hour."),
    Alert("UldpLedgerImbalance", f"abs({changed(total('unsettled'), total('unsettled', 'offset 1h'))}) > "
          f"100 + 0.01 * {grown('received', 60)} unless {grown(_RESTARTS, 60)} > 0", 30, "page",
          "More than 1 % of the reports of an hour without restarts were not accepted, duplicates or refused."),
    Alert("UldpAfterRelease", f"{grown('after_release', 60)} > 0", 0, "ticket",
          "A row came after the only one of its window was released, and was dropped."),
    Alert("UldpRestarts", f"{grown(_RESTARTS, 60)} > 3", 0, "page",
          "The job was restarted more than three times within an hour."),
    Alert("UldpCheckpointsFail", f"{grown(_FAILED, 60)} > 3 + 0.1 * {grown(_COMPLETED, 60)}", 10, "page",
          "More than three checkpoints failed within an hour, and more than one of ten."),
)  # fmt: skip
