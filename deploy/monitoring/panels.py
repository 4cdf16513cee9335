"""What dashboards show and when somebody is called: one table, from which all files of this folder are written.

Names of metrics are those of ``docs/operations.md``; tests refuse others. Flink calls a counter of Beam
``flink_taskmanager_job_task_operator_uldp_NAME``, with the operator among the labels; its Prometheus reporter leaves
distributions out, which are no numbers.
"""

from __future__ import annotations

from typing import NamedTuple

FLINK = "flink_taskmanager_job_task_operator_uldp_"
"""Prefix of our metrics in Prometheus."""

OF_FLINK = (
    "flink_jobmanager_job_numRestarts",
    "flink_jobmanager_job_numberOfFailedCheckpoints",
    "flink_taskmanager_job_task_backPressuredTimeMsPerSecond",
    "flink_taskmanager_job_task_currentInputWatermark",
)
"""Metrics of the engine itself, by the names in its documentation."""

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


def total(name: str, before: str = "") -> str:
    """PromQL: the counter of this name, of all operators and tasks of a job; ``rejected_.+``: all of a kind."""
    selector = f'{{__name__=~"{FLINK}{name}"}}' if "+" in name else f"{FLINK}{name}"
    return f"sum by (job_name) ({selector}{before})"


def grown(name: str, minutes: int) -> str:
    """PromQL: by how much ``total`` grew; a counter that is new began at 0, one that fell was restarted."""
    now = total(name)
    return f"clamp_min({now} - ({total(name, f' offset {minutes}m')} or 0 * {now}), 0)"


def by_kind(name: str) -> str:
    """PromQL: reports or rows of each kind since the job began, such as one line for each reason."""
    return f'sum by (__name__) ({{__name__=~"{FLINK}{name}_.+"}})'


_LAG = "time() - min by (job_name) (flink_taskmanager_job_task_currentInputWatermark > 0) / 1000"
_BUSY = "max by (job_name) (flink_taskmanager_job_task_backPressuredTimeMsPerSecond) / 1000"
_RECEIVED, _REJECTED = grown("received", 10), grown("rejected_.+", 10)
_SETTLED = " - ".join(
    f"({total(name)} or 0 * {total('received')})" for name in ("accepted", "duplicates", "rejected_.+")
)
_UNSETTLED = f"{total('received')} - {_SETTLED}"

PANELS = (
    Panel("Reports received in 10 minutes", "short", _RECEIVED, ("received",)),
    Panel("Share of reports that are refused", "percentunit", f"{_REJECTED} / ({_RECEIVED} > 0)"),
    Panel("Refused reports, by reason", "short", by_kind("rejected"), ("rejected_*",)),
    Panel("Duplicates in 10 minutes", "short", grown("duplicates", 10), ("duplicates",)),
    Panel("Age of the watermark", "s", _LAG, google="dataflow.googleapis.com/job/data_watermark_age"),
    Panel("Share of time in which steps wait for others", "percentunit", _BUSY),
    Panel("Age of the oldest message", "s", "", google="pubsub.googleapis.com/subscription/oldest_unacked_message_age"),
    Panel("Backlog", "bytes", "", google="dataflow.googleapis.com/job/backlog_bytes"),
    Panel("Time that an element waits", "s", "", google="dataflow.googleapis.com/job/system_lag"),
    Panel("Windows, by status", "short", by_kind("windows"), ("windows_*",)),
    Panel("Alarms of sentinels", "short", by_kind("alarms"), ("alarms_*",)),
    Panel("Received and in no other bin", "short", _UNSETTLED, ("received", "accepted", "duplicates", "rejected_*")),
    Panel("Rows after the only one of a window", "short", total("after_release"), ("after_release",)),
    Panel("Milliseconds of an estimate", "ms", "", ("estimate_ms",)),
    Panel("Milliseconds too late, the worst", "ms", "", ("too_old_off_by_ms",)),
    Panel("Milliseconds too early, the worst", "ms", "", ("too_early_off_by_ms",)),
    Panel("Restarts", "short", "sum by (job_name) (flink_jobmanager_job_numRestarts)"),
    Panel("Failed checkpoints", "short", "sum by (job_name) (flink_jobmanager_job_numberOfFailedCheckpoints)"),
)

ALERTS = (
    Alert("UldpReportsRefused", f"{_REJECTED} > 0.05 * {_RECEIVED} and {_RECEIVED} > 100", 10, "ticket",
          "More than 5 % of the reports of 10 minutes were refused."),
    Alert("UldpNothingReceived", f"{grown('received', 30)} == 0 or absent({FLINK}received)", 30, "page",
          "No report came for an hour."),
    Alert("UldpWatermarkStuck", f"{_LAG} > 900", 10, "page",
          "The watermark is more than 15 minutes behind the clock: windows do not end."),
    Alert("UldpBacklog", f"{_BUSY} > 0.5", 15, "ticket",
          "A step waits for others more than half of its time: reports come faster than they are counted."),
    Alert("UldpSentinelAlarm", f"{grown('alarms_.+', 60)} > 0", 0, "ticket",
          "A sentinel fired in a window of the last hour."),
    Alert("UldpLedgerImbalance", f"abs({_UNSETTLED}) > 100 + 0.01 * {_RECEIVED}", 30, "page",
          "For half an hour reports received were not accepted, duplicates or refused, or the reverse."),
    Alert("UldpAfterRelease", f"{grown('after_release', 60)} > 0", 0, "ticket",
          "A row came after the only one of its window was released, and was dropped."),
    Alert("UldpRestarts", "sum by (job_name) (flink_jobmanager_job_numRestarts) - "
          "sum by (job_name) (flink_jobmanager_job_numRestarts offset 1h) > 3", 0, "page",
          "The job was restarted more than three times within an hour."),
    Alert("UldpCheckpointsFail", "sum by (job_name) (flink_jobmanager_job_numberOfFailedCheckpoints) - "
          "sum by (job_name) (flink_jobmanager_job_numberOfFailedCheckpoints offset 1h) > 3", 0, "page",
          "More than three checkpoints failed within an hour."),
)  # fmt: skip
