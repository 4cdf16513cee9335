"""What the dashboard of gateways shows and when somebody is called, as ``panels`` has it for jobs on Flink.

Names of metrics are those of ``docs/gateway.md``, of ``uldp check --prometheus`` and of ``deploy/canary/check.py``. A
test compares them with what a running gateway and a check say.
"""

from __future__ import annotations

from tests.rigs.monitoring.panels import Alert, Panel, Recorded

GATEWAY, CHECK, CANARY = "uldp_gateway_", "uldp_check_", "uldp_canary_"
"""Prefixes of metrics."""


def rate(metric: str, by: str = "job", matching: str = "") -> str:
    """PromQL: how much a counter grows in a second, in the last 5 minutes, over all processes of a job."""
    return f"sum by ({by}) (rate({GATEWAY}{metric}{matching}[5m]))"


_REQUESTS, _TURNED_AWAY, _RECEIVED, _REFUSED, _SLOWEST = (
    f"job:{GATEWAY}{what}"
    for what in (
        "requests:rate5m",
        "requests_turned_away:rate5m",
        "reports_received:rate5m",
        "reports_refused:rate5m",
        "request_seconds:p99",
    )
)

_AWAY = '{status=~"408|429|503"}'

RECORDED = (
    Recorded(_REQUESTS, rate("requests_total")),
    Recorded(_TURNED_AWAY, f"{rate('requests_total', matching=_AWAY)} or 0 * {_REQUESTS}"),
    Recorded(_RECEIVED, rate("reports_received_total")),
    Recorded(_REFUSED, f"{rate('reports_refused_total')} or 0 * {_RECEIVED}"),
    Recorded(_SLOWEST, f"histogram_quantile(0.99, {rate('request_seconds_bucket', 'job, le')})"),
)
"""In their order: some are computed from others."""


def grown(metric: str, minutes: int, by: str = "job") -> str:
    """PromQL: by how much a counter grew."""
    return f"sum by ({by}) (increase({GATEWAY}{metric}[{minutes}m]))"


_NAVIGATIONS = grown("navigations_accepted_total", 30)
_NEVER_REPORTS = f"sum by (job) ({GATEWAY}reports_received_total) == 0"

PANELS = (
    Panel("Requests per second", "reqps", _REQUESTS),
    Panel("Requests per second, by status", "reqps", rate("requests_total", "status")),
    Panel("Share of requests that are asked to come again", "percentunit", f"{_TURNED_AWAY} / ({_REQUESTS} > 0)"),
    Panel("Time within which 99 % of requests are answered", "s", _SLOWEST),
    Panel("Reports received per second", "short", _RECEIVED),
    Panel("Share of reports that are refused", "percentunit", f"{_REFUSED} / ({_RECEIVED} > 0)"),
    Panel("Refused reports per second, by reason", "short", rate("reports_refused_total", "reason")),
    Panel("Reports delivered per second", "short", rate("reports_delivered_total")),
    Panel("Packed messages delivered per second", "short", rate("messages_delivered_total")),
    Panel("Packed messages of the spool that were published, per second", "short", rate("messages_forwarded_total")),
    Panel("Bytes delivered per second", "Bps", rate("bytes_delivered_total")),
    Panel("Failures of delivery in 10 minutes", "short", grown("delivery_failures_total", 10)),
    Panel("Requests that wait for an answer", "short", f"sum by (job) ({GATEWAY}requests_waiting)"),
    Panel("Bytes that wait for an answer", "bytes", f"sum by (job) ({GATEWAY}bytes_waiting)"),
    Panel("Requests of each app per second", "reqps", rate("app_requests_total", "app")),
    Panel("Requests above the limit of their app, in 10 minutes", "short", grown("app_limited_total", 10, "app")),
    Panel("Connections refused in 10 minutes", "short", grown("connections_refused_total", 10)),
    Panel("Requests with navigations per second, by status", "reqps", rate("navigation_requests_total", "status")),
    Panel("Navigations accepted per second", "short", rate("navigations_accepted_total")),
    Panel("Refused navigations per second, by reason", "short", rate("navigations_refused_total", "reason")),
)

ALERTS = (
    Alert("UldpGatewayDown", f'up{{job="gateway"}} == 0 or absent({GATEWAY}requests_waiting)', 5, "page",
          "A gateway does not answer Prometheus, or there is none."),
    Alert("UldpGatewayUndelivered", f"{grown('delivery_failures_total', 10)} > 0", 5, "page",
          "A gateway could not publish or spool packed messages."),
    Alert("UldpGatewaySpoolGrows", f"{grown('messages_forwarded_total', 60)} < 0.5 * "
          f"{grown('messages_delivered_total', 60)} and sum by (job) ({GATEWAY}messages_forwarded_total) > 0",
          30, "ticket", "In an hour, fewer than half of the spooled messages were published: the spool grows."),
    Alert("UldpGatewayNothingReceived", f"{grown('reports_received_total', 30)} == 0 unless "
          f"({_NEVER_REPORTS} and {_NAVIGATIONS} > 0)", 30, "page",
          "No report came to the gateways for an hour."),
    Alert("UldpGatewayNoNavigations", f"{_NAVIGATIONS} == 0", 30, "page",
          "No navigation came for an hour to gateways that receive them."),
    Alert("UldpGatewayNavigationsRefused", f"{rate('navigations_refused_total')} > 0.05 * "
          f"({rate('navigations_refused_total')} + {rate('navigations_accepted_total')})", 10, "ticket",
          "More than 5 % of the navigations were refused by the gateways."),
    Alert("UldpGatewayReportsRefused", f"{_REFUSED} > 0.05 * {_RECEIVED} and {_RECEIVED} > 0.2", 10, "ticket",
          "More than 5 % of the reports were refused by the gateways."),
    Alert("UldpGatewayTurnsAway", f"{_TURNED_AWAY} > 0.01 * {_REQUESTS}", 10, "page",
          "More than 1 % of the requests were asked to come again (408, 429 or 503)."),
    Alert("UldpGatewaySlow", f"{_SLOWEST} > 5", 15, "ticket",
          "More than 1 % of the requests wait longer than 5 seconds for their answer."),
    Alert("UldpGatewayAppLimited", f"{grown('app_limited_total', 10, 'job, app')} > 0", 10, "ticket",
          "An app sends more than it may."),
    Alert("UldpGatewayConnectionsRefused", f"{grown('connections_refused_total', 10)} > 0", 10, "ticket",
          "Connections were closed because there were too many."),
    Alert("UldpCheckProblems", f"{CHECK}problems > 0", 0, "page",
          "uldp check found a problem of an output directory; run it and read its sentences."),
    Alert("UldpCanaryOff", f"abs({CANARY}frequency - 1) > 6 * {CANARY}standard_error", 0, "page",
          "The estimate of the canary is not the value that it sends."),
    Alert("UldpCanaryMissing", f"time() - {CANARY}window_end_seconds > 14400 or {CANARY}reports < 500", 0, "page",
          "No window of the canary was estimated for four hours, or reports of it are missing."),
    Alert("UldpCheckOld", f"time() - {CHECK}time_seconds > 10800", 0, "ticket",
          "uldp check has not run for three hours."),
)  # fmt: skip
