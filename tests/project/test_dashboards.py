"""Every dashboard for Grafana is one by Grafana's own schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.project.documents import ROOT
from tests.rigs.grafana import dashboards

FILES = ("monitoring/grafana.json", "monitoring/gateway_grafana.json", "results/grafana.json")

needs_check = pytest.mark.skipif(dashboards.CHECK.missing() is not None, reason=str(dashboards.CHECK.missing()))


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "deploy" / name).read_text("utf-8"))
    return found


def test_all_dashboards_are_checked() -> None:
    there = {str(path.relative_to(ROOT / "deploy")) for path in (ROOT / "deploy").rglob("*grafana*.json")}
    assert there == set(FILES)


@needs_check
@pytest.mark.parametrize("name", FILES)
def test_a_dashboard_is_one(name: str) -> None:
    assert dashboards.fault_of(read(name)) == ""


@needs_check
def test_faults_are_found() -> None:
    dashboard = read(FILES[0])
    assert "unexpected field 'tilte'" in dashboards.fault_of(dashboard | {"tilte": "x"})
    panel = dashboard["panels"][0] | {"gridPos": {"x": "left", "y": 0, "w": 12, "h": 8}}
    assert "gridPos" in dashboards.fault_of(dashboard | {"panels": [panel]})
    del dashboard["annotations"]
    assert "annotations: required field is missing" in dashboards.fault_of(dashboard)
