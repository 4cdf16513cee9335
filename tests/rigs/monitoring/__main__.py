"""Writes dashboards and alert rules anew from ``panels``: ``python -m tests.rigs.monitoring``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.rigs.monitoring import gateway_panels
from tests.rigs.monitoring.panels import ALERTS, PANELS, RECORDED, Alert, Panel, Recorded

FOLDER = Path(__file__).parents[3] / "deploy" / "monitoring"
PAGE = "docs/operations.md"
RUNBOOK = f"{{{{ with $externalLabels.uldp_runbook }}}}{{{{ . }}}}{{{{ else }}}}{PAGE}{{{{ end }}}}"
"""Address of the page with the runbooks: a label of the whole Prometheus, or the page's place in the repository."""

TAG = "uldp"
"""Of all dashboards of Grafana, which link to one another by it."""


def runbook_of(alert: Alert, page: str = RUNBOOK) -> str:
    """Address of the runbook of an alert: the heading of its name."""
    return f"{page}#{alert.name.lower()}"


def grafana(uid: str, title: str, shown: Sequence[Panel]) -> dict[str, Any]:
    """A dashboard of Grafana; its first variable is the Prometheus, also if a file of provisioning loads it."""
    source = {"type": "prometheus", "uid": "${prometheus}"}
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": panel.title,
            "datasource": source,
            "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": [{"refId": "A", "datasource": source, "expr": panel.query}],
        }
        for number, panel in enumerate(panel for panel in shown if panel.query)
    ]
    chosen = {"name": "prometheus", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": uid,
        "title": title,
        "tags": [TAG],
        "links": [_links()],
        "schemaVersion": 38,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "annotations": {"list": []},
        "templating": {"list": [chosen]},
        "panels": panels,
    }


def _links() -> dict[str, Any]:
    """The other dashboards, as buttons above the panels, for the same times."""
    return {
        "type": "dashboards",
        "title": "others",
        "tags": [TAG],
        "asDropdown": False,
        "icon": "external link",
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "tooltip": "",
        "url": "",
    }


def cloud_monitoring() -> dict[str, Any]:
    """A dashboard of Cloud Monitoring, for ``gcloud monitoring dashboards create --config-from-file``."""
    shown = [panel for panel in PANELS if panel.names or panel.google]
    tiles = [
        {
            "xPos": 24 * (number % 2),
            "yPos": 16 * (number // 2),
            "width": 24,
            "height": 16,
            "widget": {
                "title": panel.title,
                "xyChart": {"dataSets": [_data_set(query) for query in _filters(panel)]},
            },
        }
        for number, panel in enumerate(shown)
    ]
    return {"displayName": "uldp_transforms on Dataflow", "mosaicLayout": {"columns": 48, "tiles": tiles}}


def _filters(panel: Panel) -> list[str]:
    if panel.google:
        return [f'metric.type="{panel.google}"']
    counter = 'metric.type="dataflow.googleapis.com/job/user_counter" resource.type="dataflow_job"'
    return [f"{counter} metric.label.metric_name={_matching(name)}" for name in panel.names]


def _matching(name: str) -> str:
    """A distribution is shown by its largest value, whose name Dataflow ends in _MAX."""
    if name.endswith("*"):
        return f'starts_with("{name[:-1]}")'
    return f'"{name}_MAX"' if name.endswith("_ms") else f'"{name}"'


def _data_set(query: str) -> dict[str, Any]:
    reducer = "REDUCE_MAX" if "user_counter" not in query or "_MAX" in query else "REDUCE_SUM"
    label = "metric.label.metric_name" if "user_counter" in query else "resource.type"
    aggregation = {
        "alignmentPeriod": "60s",
        "perSeriesAligner": "ALIGN_MEAN",
        "crossSeriesReducer": reducer,
        "groupByFields": [label],
    }
    return {
        "plotType": "LINE",
        "timeSeriesQuery": {"timeSeriesFilter": {"filter": query, "aggregation": aggregation}},
    }


def rules(name: str, recorded: Sequence[Recorded], alerts: Sequence[Alert]) -> dict[str, Any]:
    """Recording rules and alert rules of Prometheus, in the order in which it evaluates them."""
    first = [{"record": rule.name, "expr": rule.query} for rule in recorded]
    called = [
        {
            "alert": alert.name,
            "expr": alert.query,
            "for": f"{alert.minutes}m",
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "runbook_url": runbook_of(alert)},
        }
        for alert in alerts
    ]
    return {"groups": [{"name": name, "rules": [*first, *called]}]}


def files() -> dict[str, str]:
    """All files of the folder that are written: name -> text."""
    dashboards = {
        "grafana.json": grafana("uldp", "uldp_transforms on Flink", PANELS),
        "gateway_grafana.json": grafana("uldp-gateway", "uldp gateway", gateway_panels.PANELS),
        "cloud_monitoring.json": cloud_monitoring(),
    }
    of_rules = {
        "alerts.yml": rules("uldp", RECORDED, ALERTS),
        "gateway_alerts.yml": rules("uldp_gateway", gateway_panels.RECORDED, gateway_panels.ALERTS),
    }
    return {name: json.dumps(content, indent=2) + "\n" for name, content in dashboards.items()} | {
        name: yaml.safe_dump(content, sort_keys=False, width=1000) for name, content in of_rules.items()
    }


def main() -> None:
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
