"""Dashboards and alerts: every metric exists, every query can be evaluated, every alert fires when it should."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project.documents import ROOT, anchors
from tests.rigs.monitoring import gateway_panels
from tests.rigs.monitoring.__main__ import FOLDER, PAGE, RUNBOOK, TAG, files, runbook_of
from tests.rigs.monitoring.panels import ALERTS, FLINK, OF_FLINK, OF_GOOGLE, PANELS, RECORDED
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.ldp.reasons import Reason

OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
OF_PAGE = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|(.*)\| (?:counter|distribution) \|", OPERATIONS, re.M))))
"""Names of metrics in docs/operations.md, which another test compares with what the code shows."""

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian: apt-get install prometheus)"
)


def kind_of(name: str) -> str:
    """``rejected_REASON`` of a name, a pattern or a prefix that stands for some of these."""
    of_reasons = (metrics.REJECTED, metrics.UNREAD_MESSAGES, metrics.UNREAD_FILES)
    kinds = dict.fromkeys(of_reasons, "REASON") | {metrics.WINDOWS: "STATUS", metrics.ALARMS: "NAME"}
    for kind, what in kinds.items():
        if re.fullmatch(rf"{kind}_(\.\+|\*|\w+)", name):
            rest = name.removeprefix(f"{kind}_")
            assert kind not in of_reasons or rest in {".+", "*"} | {reason.code for reason in Reason}
            return f"{kind}_{what}"
    return name


def test_the_files_are_what_the_table_says() -> None:
    for name, text in files().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "python -m tests.rigs.monitoring"


def test_every_metric_exists() -> None:
    queries = [each.query for each in (*PANELS, *ALERTS, *RECORDED)]
    recorded = {name for query in queries for name in re.findall(r"\bjob_name:\w+:sum\b", query)}
    assert recorded == {rule.name for rule in RECORDED}
    of_us = {name for query in queries for name in re.findall(rf"{FLINK}([\w.+]+)", query)}
    of_us |= {name for panel in PANELS for name in panel.names}
    assert {kind_of(name) for name in of_us} == OF_PAGE
    of_flink = {
        name for query in queries for name in re.findall(r"flink_\w+", query) if not name.startswith(FLINK[:-1])
    }
    assert of_flink == set(OF_FLINK)
    assert {panel.google for panel in PANELS if panel.google} == set(OF_GOOGLE)
    assert len(OF_PAGE) == 12


def test_rules_are_short_enough_to_read() -> None:
    for name in ("alerts.yml", "gateway_alerts.yml"):
        [group] = yaml.safe_load((FOLDER / name).read_text("utf-8"))["groups"]
        assert max(len(rule["expr"]) for rule in group["rules"]) < 450


def test_a_metric_that_does_not_exist_is_found() -> None:
    assert kind_of("recieved") not in OF_PAGE
    with pytest.raises(AssertionError):
        kind_of("rejected_nonsense")


def test_distributions_are_not_asked_of_flink() -> None:
    """Its reporter leaves them out."""
    text = "".join((FOLDER / name).read_text("utf-8") for name in ("grafana.json", "alerts.yml"))
    assert "_ms" not in text.replace("TimeMsPerSecond", "")


def test_dashboards_have_no_panel_twice_and_none_without_a_query() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text("utf-8"))
    assert all(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(places)) == len({panel["id"] for panel in dashboard["panels"]}) == len(places)
    layout = json.loads((FOLDER / "cloud_monitoring.json").read_text("utf-8"))["mosaicLayout"]
    for tile in layout["tiles"]:
        assert tile["xPos"] + tile["width"] <= layout["columns"]
        assert all(
            each["timeSeriesQuery"]["timeSeriesFilter"]["filter"] for each in tile["widget"]["xyChart"]["dataSets"]
        )


def addresses() -> dict[str, str]:
    """Where each alert of the files has its runbook."""
    groups = [yaml.safe_load(path.read_text("utf-8"))["groups"] for path in sorted(FOLDER.glob("*alerts.yml"))]
    rules = [rule for [group] in groups for rule in group["rules"] if "alert" in rule]
    return {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules}


def test_every_alert_leads_to_a_heading_of_the_page() -> None:
    runbook = OPERATIONS.split("### Alerts")[1].split("\n## ")[0]
    headings = re.findall(r"^#### `(Uldp\w+)`\n\n(?=\w|`)", runbook, re.M)
    assert headings == [alert.name for alert in (*ALERTS, *gateway_panels.ALERTS)]
    assert set(addresses()) == set(headings) and len(headings) == 25
    for name, address in addresses().items():
        page, _, anchor = address.partition("#")
        assert page == RUNBOOK and anchor in anchors(OPERATIONS) and anchor == name.lower()
    assert re.findall(r"\$externalLabels\.(\w+)", RUNBOOK) == re.findall(r"external\slabel\s`(\w+)`", runbook)
    assert PAGE in RUNBOOK and (ROOT / PAGE).is_file()


def test_the_site_makes_the_anchors_of_alerts() -> None:
    """By its own Markdown and slugs, if ``make docs`` has installed them."""
    markdown = pytest.importorskip("markdown", reason="make docs installs it")
    slugify = pytest.importorskip("pymdownx.slugs").slugify(case="lower")
    page = markdown.Markdown(extensions=["toc", "tables"], extension_configs={"toc": {"slugify": slugify}})
    made = set(re.findall(r' id="([^"]+)"', page.convert(OPERATIONS)))
    assert {address.partition("#")[2] for address in addresses().values()} <= made


def test_dashboards_of_job_and_gateway_link_to_one_another() -> None:
    for name in ("grafana.json", "gateway_grafana.json"):
        dashboard = json.loads((FOLDER / name).read_text("utf-8"))
        (link,) = dashboard["links"]
        assert link["tags"] == dashboard["tags"] == [TAG] and link["keepTime"] and link["includeVars"]
        (variable,) = dashboard["templating"]["list"]
        sources = {target["datasource"]["uid"] for panel in dashboard["panels"] for target in panel["targets"]}
        assert sources == {f"${{{variable['name']}}}"} and variable["query"] == "prometheus"


# ---------------------------------------------------------------------- by Prometheus itself

HOURS = 3
"""Of synthetic data, a sample a minute."""

LABELS = '{job_name="estimate",operator_name="Decode",subtask_index="%d"}'
MINUTES = 60 * HOURS


def steady(start: int, step: int) -> str:
    return f"{start}+{step}x{MINUTES}"


HEALTHY = {
    f"{FLINK}received": steady(0, 1000),
    f"{FLINK}accepted": steady(0, 989),
    f"{FLINK}duplicates": steady(0, 10),
    f"{FLINK}rejected_too_old": steady(0, 1),
    f"{FLINK}unread_messages_malformed": steady(3, 0),
    f"{FLINK}unread_files_bad_magic": steady(2, 0),
    f"{FLINK}windows_ok": steady(0, 1),
    f"{FLINK}after_release": steady(0, 0),
    f"{FLINK}alarms_cohorts": steady(3, 0),
    "flink_taskmanager_job_task_currentInputWatermark": steady(0, 60_000),
    "flink_taskmanager_job_task_backPressuredTimeMsPerSecond": steady(100, 0),
    "flink_jobmanager_job_numRestarts": steady(1, 0),
    "flink_jobmanager_job_numberOfFailedCheckpoints": steady(2, 0),
    "flink_jobmanager_job_numberOfCompletedCheckpoints": steady(0, 6),
}
"""Of each of two tasks."""

TROUBLE: dict[str, dict[str, str | None]] = {
    "UldpReportsRefused": {f"{FLINK}accepted": steady(0, 890), f"{FLINK}rejected_too_old": steady(0, 100)},
    "UldpMessagesUnread": {f"{FLINK}unread_messages_malformed": steady(0, 2)},
    "UldpNothingReceived": {f"{FLINK}{name}": steady(5, 0) for name in ("received", "accepted")}
    | {f"{FLINK}{name}": steady(0, 0) for name in ("duplicates", "rejected_too_old")},
    "UldpWatermarkStuck": {"flink_taskmanager_job_task_currentInputWatermark": steady(60_000, 0)},
    "UldpBacklog": {"flink_taskmanager_job_task_backPressuredTimeMsPerSecond": steady(700, 0)},
    "UldpSentinelAlarm": {f"{FLINK}alarms_cohorts": f"_x{MINUTES - 30} 1x40"},  # a series that was not there before
    "UldpLedgerImbalance": {f"{FLINK}accepted": steady(0, 900)},
    "UldpAfterRelease": {f"{FLINK}after_release": f"0x{MINUTES - 30} 1x40"},
    "UldpRestarts": {"flink_jobmanager_job_numRestarts": steady(0, 1)},
    "UldpCheckpointsFail": {"flink_jobmanager_job_numberOfFailedCheckpoints": steady(0, 1)},
}


def series(changed: dict[str, str | None]) -> list[dict[str, str]]:
    shown = HEALTHY | changed
    return [
        {"series": name + LABELS % task, "values": values}
        for name, values in shown.items()
        if values
        for task in (0, 1)
    ]


def promtool(folder: Path, *cases: dict[str, Any]) -> str:
    """What ``promtool test rules`` says of cases; "" if all pass."""
    content = {"rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": "1m", "tests": list(cases)}
    path = folder / "case.yml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, "test", "rules", str(path)], check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def expected(fired: list[str], page: str = PAGE) -> list[dict[str, Any]]:
    found = []
    for alert in ALERTS:
        labels = {"exp_labels": {"job_name": "estimate", "severity": alert.severity}}
        texts = {"exp_annotations": {"summary": alert.summary, "runbook_url": runbook_of(alert, page)}}
        alerts = [labels | texts] if alert.name in fired else []
        found.append({"eval_time": f"{MINUTES - 1}m", "alertname": alert.name, "exp_alerts": alerts})
    return found


def case(name: str, fired: list[str], changed: dict[str, str | None]) -> dict[str, Any]:
    """Healthy series but for some, and the alerts that must fire."""
    return {"name": name, "interval": "1m", "input_series": series(changed), "alert_rule_test": expected(fired)}


@needs_promtool
def test_an_alert_fires_in_its_case_and_in_no_other(tmp_path: Path) -> None:
    cases = [case(name, [name], changed) for name, changed in TROUBLE.items()]
    assert not promtool(tmp_path, case("healthy", [], {}), *cases)


def restarted(minute: int) -> dict[str, str | None]:
    """Counters begin anew, and 500 reports that were received before are accepted after it."""
    rates = {"received": 1000, "accepted": 989, "duplicates": 10, "rejected_too_old": 1, "windows_ok": 1}
    anew = {
        f"{FLINK}{name}": f"0+{rate}x{minute} {500 * (name == 'accepted')}+{rate}x{MINUTES - minute}"
        for name, rate in rates.items()
    }
    return anew | {"flink_jobmanager_job_numRestarts": f"1x{minute} 2x{MINUTES - minute}"}


SEEN_ON_FLINK: dict[str, tuple[list[str], dict[str, str | None]]] = {
    "messages that cannot be read, for the first time": (
        ["UldpMessagesUnread"],
        {f"{FLINK}unread_messages_malformed": f"_x{MINUTES - 30} 0+2x40"},
    ),
    "few messages among many that cannot be read": ([], {f"{FLINK}unread_messages_malformed": steady(0, 1)}),
    "half an hour after a restart": ([], restarted(MINUTES - 30)),
    "an hour after a restart": ([], restarted(MINUTES - 75)),
    "checkpoints that fail while a job starts": (
        [],
        {
            "flink_jobmanager_job_numberOfFailedCheckpoints": f"_x{MINUTES - 20} 4x30",
            "flink_jobmanager_job_numberOfCompletedCheckpoints": f"_x{MINUTES - 20} 0+30x30",
        },
    ),
    "restarts in the first hour": (
        ["UldpRestarts"],
        {"flink_jobmanager_job_numRestarts": f"_x{MINUTES - 20} 0+1x30"},
    ),
    "a watermark that never came": (
        ["UldpWatermarkStuck"],
        {"flink_taskmanager_job_task_currentInputWatermark": steady(-(2**63), 0)},
    ),
    "an alarm after a restart, fewer than before": (
        ["UldpSentinelAlarm"],
        {f"{FLINK}alarms_cohorts": f"5x{MINUTES - 30} 1x40"},
    ),
}
"""What ``tests.rigs.monitoring.scrape`` found that alerts must bear, or see: who is called, and the series."""


@needs_promtool
def test_starts_and_restarts_call_nobody_for_nothing(tmp_path: Path) -> None:
    assert not promtool(tmp_path, *(case(name, *seen) for name, seen in SEEN_ON_FLINK.items()))


@needs_promtool
def test_a_missing_alert_is_found(tmp_path: Path) -> None:
    """Whatever case it belongs to."""
    said = promtool(tmp_path, case("healthy", [], {}), case("busy", ["UldpBacklog"], {}))
    assert "UldpBacklog" in said and "busy" in said and "healthy" not in said


@needs_promtool
def test_a_label_of_prometheus_says_where_runbooks_are(tmp_path: Path) -> None:
    page = "https://docs.example.org/operations.html"
    busy = case("busy", [], TROUBLE["UldpBacklog"]) | {"alert_rule_test": expected(["UldpBacklog"], page)}
    assert not promtool(tmp_path, busy | {"external_labels": {"uldp_runbook": page}})
    assert PAGE in promtool(tmp_path, busy)


def test_every_alert_has_a_case() -> None:
    assert list(TROUBLE) == [alert.name for alert in ALERTS]


VALUES: dict[str, list[float]] = {
    "Reports received in 10 minutes": [20_000],
    "Share of reports that are refused": [0.001],
    "Refused reports, by reason": [2 * 179],
    "Unread messages, by reason": [6],
    "Unread files, by reason": [4],
    "Duplicates in 10 minutes": [200],
    "Age of the watermark": [0],
    "Share of time in which steps wait for others": [0.1],
    "Windows, by status": [2 * 179],
    "Alarms of sentinels": [6],
    "Received and in no other bin": [0],
    "Rows after the only one of a window": [0],
    "Restarts": [2],
    "Failed checkpoints": [4],
}
"""What the panels show of two healthy tasks after 179 minutes, by hand."""


@needs_promtool
def test_every_query_of_the_dashboard_has_an_answer(tmp_path: Path) -> None:
    queries = {panel.title: panel.query for panel in PANELS if panel.query}
    assert set(queries) == set(VALUES)
    asked = []
    for title, query in queries.items():
        label = "__name__" if "by (__name__)" in query else "job_name"
        kind = re.findall(rf"{FLINK}(\w+)_\.\+", query)
        of = {"rejected": "rejected_too_old", "windows": "windows_ok", "alarms": "alarms_cohorts"}
        of |= {"unread_messages": "unread_messages_malformed", "unread_files": "unread_files_bad_magic"}
        labels = f"{FLINK}{of[kind[0]]}" if label == "__name__" else '{job_name="estimate"}'
        labels = f"{query}{labels}" if query in {rule.name for rule in RECORDED} else labels
        samples = [{"labels": labels, "value": value} for value in VALUES[title]]
        asked.append({"expr": query, "eval_time": f"{MINUTES - 1}m", "exp_samples": samples})
    assert not promtool(tmp_path, case("healthy", [], {}) | {"promql_expr_test": asked})
