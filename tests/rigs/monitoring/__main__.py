"""Writes dashboards and alert rules anew from ``panels``: ``python -m tests.rigs.monitoring``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.rigs.monitoring.panels import ALERTS, PANELS, Panel

FOLDER = Path(__file__).parents[3] / "deploy" / "monitoring"
_RUNBOOK = "docs/operations.md#alerts"


def grafana() -> dict[str, Any]:
    """A dashboard of Grafana; whoever imports it chooses the Prometheus."""
    source = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
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
        for number, panel in enumerate(panel for panel in PANELS if panel.query)
    ]
    asked = {"name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus"}
    return {
        "__inputs": [asked],
        "uid": "uldp",
        "title": "uldp_transforms on Flink",
        "schemaVersion": 38,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "panels": panels,
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


def rules() -> dict[str, Any]:
    """Alert rules of Prometheus."""
    alerts = [
        {
            "alert": alert.name,
            "expr": alert.query,
            "for": f"{alert.minutes}m",
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "runbook": _RUNBOOK},
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "uldp", "rules": alerts}]}


def files() -> dict[str, str]:
    """All files of the folder that are written: name -> text."""
    return {
        "grafana.json": json.dumps(grafana(), indent=2) + "\n",
        "cloud_monitoring.json": json.dumps(cloud_monitoring(), indent=2) + "\n",
        "alerts.yml": yaml.safe_dump(rules(), sort_keys=False, width=1000),
    }


def main() -> None:
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
