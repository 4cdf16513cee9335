"""Rules and dashboard of gateways: each metric is one of a running gateway or a check, and each alert has its case."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from packages.gateway.tests.support.gateways import gateway
from tests.project.documents import ROOT
from tests.rigs.monitoring.__main__ import FOLDER, PAGE, runbook_of
from tests.rigs.monitoring.gateway_panels import ALERTS, CANARY, CHECK, GATEWAY, PANELS, RECORDED
from tests.support.messages_cases import single
from uldp_transforms.jobs.check import Told

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian: apt-get install prometheus)"
)
KEY = "key-of-the-app-0123456789"
NAVIGATION = b'{"confidence": "high", "rate": 0.5, "duration": 12.5}'
QUERIES = [each.query for each in (*PANELS, *ALERTS, *RECORDED)]


def test_every_metric_is_one_of_a_running_gateway(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{KEY} app\n", encoding="utf-8")
    options = [f"--spool={tmp_path / 'spool'}", "--pack_every=20ms", f"--token_file={tmp_path / 'keys'}"]
    with gateway([*options, "--app_requests=3"], tmp_path) as running:
        statuses = [running.send(body, Authorization=f"Bearer {KEY}").status for body in (single(), b"", b"", b"")]
        assert statuses == [202, 400, 400, 429]
        said = running.ask("GET", "/metrics").content
    (tmp_path / "pages").mkdir()
    with gateway([f"--navigations={tmp_path / 'navigations'}"], tmp_path / "pages", collection=None) as running:
        assert running.ask("POST", "/navigations", NAVIGATION + b"\n[]").content["refused"] == {"malformed": 1}
        said += running.ask("GET", "/metrics").content
    shown = set(re.findall(r"^(\w+)", said, re.M))
    named = {name for query in QUERIES for name in re.findall(rf"(?<!:)\b{GATEWAY}\w+", query)}
    assert named <= shown
    ours = {name for name in shown if name.startswith(GATEWAY)}
    assert {name for name in ours - named if not name.endswith(("_sum", "_count"))} == {
        f"{GATEWAY}reports_accepted_total",
        f"{GATEWAY}copies_total",
    }
    for query in QUERIES:
        for label in re.findall(r"by \(([\w, ]+)\)", query):
            assert set(label.split(", ")) - {"job"} <= set(re.findall(r"(\w+)=\"", said))


def test_every_recorded_series_is_used_and_there() -> None:
    used = {name for query in QUERIES for name in re.findall(r"job:\w+:\w+", query)}
    assert used == {rule.name for rule in RECORDED}


def test_the_numbers_of_a_check_are_there() -> None:
    named = {name for query in QUERIES for name in re.findall(rf"{CHECK}\w+", query)}
    assert named <= set(re.findall(r"^(\w+) ", Told().for_prometheus(0), re.M))
    of_canary = {name for query in QUERIES for name in re.findall(rf"{CANARY}(\w+)", query)}
    written = (ROOT / "deploy/canary/check.py").read_text("utf-8").split("gauges = {")[1].split("}")[0]
    assert of_canary == set(re.findall(r'^ +"(\w+)":', written, re.M))


# ---------------------------------------------------------------------- by Prometheus itself

MINUTES = 180


def steady(start: float, step: float) -> str:
    return f"{start}+{step}x{MINUTES}"


def named(metric: str, **labels: str) -> str:
    pairs = [f'{name}="{text}"' for name, text in {"job": "gateway", "instance": "a:8080", **labels}.items()]
    return f"{metric}{{{','.join(pairs)}}}"


HEALTHY = {
    named("up"): steady(1, 0),
    named(f"{GATEWAY}requests_total", status="202"): steady(0, 600),
    named(f"{GATEWAY}requests_total", status="400"): steady(0, 6),
    named(f"{GATEWAY}reports_received_total"): steady(0, 600),
    named(f"{GATEWAY}reports_refused_total", reason="malformed"): steady(0, 6),
    named(f"{GATEWAY}reports_delivered_total"): steady(0, 594),
    named(f"{GATEWAY}messages_delivered_total"): steady(0, 60),
    named(f"{GATEWAY}messages_forwarded_total"): steady(0, 60),
    named(f"{GATEWAY}bytes_delivered_total"): steady(0, 6000),
    named(f"{GATEWAY}delivery_failures_total"): steady(2, 0),
    named(f"{GATEWAY}connections_refused_total"): steady(3, 0),
    named(f"{GATEWAY}requests_waiting"): steady(5, 0),
    named(f"{GATEWAY}bytes_waiting"): steady(500, 0),
    named(f"{GATEWAY}app_requests_total", app="android"): steady(0, 600),
    named(f"{GATEWAY}app_limited_total", app="android"): steady(1, 0),
    named(f"{GATEWAY}navigation_requests_total", status="202"): steady(0, 60),
    named(f"{GATEWAY}navigations_accepted_total"): steady(0, 60),
    named(f"{GATEWAY}navigations_refused_total", reason="malformed"): steady(0, 1),
    named(f"{GATEWAY}request_seconds_bucket", le="0.25"): steady(0, 600),
    named(f"{GATEWAY}request_seconds_bucket", le="10.0"): steady(0, 606),
    named(f"{GATEWAY}request_seconds_bucket", le="+Inf"): steady(0, 606),
    f'{CANARY}frequency{{instance="a"}}': steady(0.99, 0),
    f'{CANARY}standard_error{{instance="a"}}': steady(0.007, 0),
    f'{CANARY}reports{{instance="a"}}': steady(1000, 0),
    f'{CANARY}window_end_seconds{{instance="a"}}': steady(0, 60),
    f'{CHECK}problems{{instance="a"}}': steady(0, 0),
    f'{CHECK}time_seconds{{instance="a"}}': steady(0, 60),
}

NO_NAVIGATIONS = {
    named(f"{GATEWAY}navigations_accepted_total"): steady(9, 0),
    named(f"{GATEWAY}navigations_refused_total", reason="malformed"): steady(1, 0),
}

TROUBLE: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "UldpGatewayDown": ({named("up"): steady(0, 0)}, {"instance": "a:8080"}),
    "UldpGatewayUndelivered": ({named(f"{GATEWAY}delivery_failures_total"): steady(0, 1)}, {}),
    "UldpGatewaySpoolGrows": ({named(f"{GATEWAY}messages_forwarded_total"): steady(0, 20)}, {}),
    "UldpGatewayNothingReceived": ({named(f"{GATEWAY}reports_received_total"): steady(9, 0)}, {}),
    "UldpGatewayNoNavigations": (NO_NAVIGATIONS, {}),
    "UldpGatewayNavigationsRefused": (
        {named(f"{GATEWAY}navigations_refused_total", reason="malformed"): steady(0, 6)},
        {},
    ),
    "UldpGatewayReportsRefused": ({named(f"{GATEWAY}reports_refused_total", reason="malformed"): steady(0, 60)}, {}),
    "UldpGatewayTurnsAway": ({named(f"{GATEWAY}requests_total", status="503"): steady(0, 60)}, {}),
    "UldpGatewaySlow": (
        {named(f"{GATEWAY}request_seconds_bucket", le="0.25"): steady(0, 300)},
        {},
    ),
    "UldpGatewayAppLimited": ({named(f"{GATEWAY}app_limited_total", app="android"): steady(0, 1)}, {"app": "android"}),
    "UldpGatewayConnectionsRefused": ({named(f"{GATEWAY}connections_refused_total"): steady(0, 1)}, {}),
    "UldpCheckProblems": ({f'{CHECK}problems{{instance="a"}}': steady(1, 0)}, {"instance": "a"}),
    "UldpCanaryOff": ({f'{CANARY}frequency{{instance="a"}}': steady(0.8, 0)}, {"instance": "a"}),
    "UldpCanaryMissing": ({f'{CANARY}window_end_seconds{{instance="a"}}': steady(-18000, 60)}, {"instance": "a"}),
    "UldpCheckOld": ({f'{CHECK}time_seconds{{instance="a"}}': steady(-7200, 0)}, {"instance": "a"}),
}
"""Series that differ from the healthy ones, and labels of the alert."""


def promtool(folder: Path, *cases: dict[str, Any]) -> str:
    """What ``promtool test rules`` says of cases; "" if all pass."""
    rules = {"rule_files": [str(FOLDER / "gateway_alerts.yml")], "evaluation_interval": "1m", "tests": list(cases)}
    (folder / "case.yml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    command = [str(PROMTOOL), "test", "rules", str(folder / "case.yml")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def case(changed: dict[str, str], fired: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Healthy series but for some, and the alerts that they must raise, by name: labels."""
    expected = []
    for alert in ALERTS:
        of_gateway = {"job": "gateway"} if alert.name.startswith("UldpGateway") else {}
        labels = {"severity": alert.severity, **of_gateway, **fired.get(alert.name, {})}
        texts = {"summary": alert.summary, "runbook_url": runbook_of(alert, PAGE)}
        alerts = [{"exp_labels": labels, "exp_annotations": texts}] if alert.name in fired else []
        expected.append({"eval_time": f"{MINUTES - 1}m", "alertname": alert.name, "exp_alerts": alerts})
    series = [{"series": name, "values": values} for name, values in (HEALTHY | changed).items()]
    return {"interval": "1m", "input_series": series, "alert_rule_test": expected}


@needs_promtool
def test_an_alert_fires_in_its_case_and_in_no_other(tmp_path: Path) -> None:
    cases = [case(changed, {name: labels}) | {"name": name} for name, (changed, labels) in TROUBLE.items()]
    assert not promtool(tmp_path, case({}, {}), *cases)


@needs_promtool
def test_a_missing_alert_is_found(tmp_path: Path) -> None:
    assert "UldpGatewaySlow" in promtool(tmp_path, case({}, {"UldpGatewaySlow": {}}))


@needs_promtool
def test_a_gateway_without_a_spool_has_none_that_grows(tmp_path: Path) -> None:
    """It forwards nothing; neither does one that only spools."""
    assert not promtool(tmp_path, case({named(f"{GATEWAY}messages_forwarded_total"): steady(0, 0)}, {}))


@needs_promtool
def test_a_gateway_for_navigations_alone_misses_no_reports(tmp_path: Path) -> None:
    """It never received one, and navigations come; without them, somebody is called."""
    none = {named(f"{GATEWAY}reports_received_total"): steady(0, 0)}
    none |= {named(f"{GATEWAY}reports_refused_total", reason="malformed"): steady(0, 0)}
    nothing = case(none | NO_NAVIGATIONS, {"UldpGatewayNothingReceived": {}, "UldpGatewayNoNavigations": {}})
    assert not promtool(tmp_path, case(none, {}), nothing)


@needs_promtool
def test_no_gateway_at_all_is_found(tmp_path: Path) -> None:
    """Nobody counts what is not there, but somebody is called."""
    asked = case({}, {})
    asked["input_series"] = [{"series": f'{CHECK}problems{{instance="a"}}', "values": steady(0, 0)}]
    [down] = [alert for alert in ALERTS if alert.name == "UldpGatewayDown"]
    texts = {"summary": down.summary, "runbook_url": runbook_of(down, PAGE)}
    asked["alert_rule_test"] = [
        {
            "eval_time": f"{MINUTES - 1}m",
            "alertname": down.name,
            "exp_alerts": [{"exp_labels": {"severity": "page"}, "exp_annotations": texts}],
        }
    ]
    assert not promtool(tmp_path, asked)


def test_every_alert_has_a_case() -> None:
    assert list(TROUBLE) == [alert.name for alert in ALERTS]


@needs_promtool
def test_every_query_of_the_dashboard_has_an_answer(tmp_path: Path) -> None:
    asked = [{"expr": panel.query, "eval_time": "170m", "exp_samples": []} for panel in PANELS]
    said = promtool(tmp_path, case({}, {}) | {"promql_expr_test": asked})
    assert "got: nil" not in said and said.count("got:") == len(PANELS)
