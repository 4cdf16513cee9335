"""Checks dashboards with the types of Grafana's Foundation SDK, which are generated from its schema (Apache-2.0)."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from tests.rigs.cache import CACHE, GoProgram

CHECK = GoProgram(source=Path(__file__).parent, folder=CACHE / "grafana", name="dashboards", command="make grafana")
OF_FILES = ("__inputs",)
"""Fields of a dashboard in a file, which Grafana replaces when somebody imports it; the schema does not know them."""


def fault_of(dashboard: dict[str, object]) -> str:
    """What is wrong with a dashboard: unknown and missing fields, wrong types; empty if nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "dashboard.json")
        file.write_text(json.dumps({name: it for name, it in dashboard.items() if name not in OF_FILES}), "utf-8")
        done = subprocess.run([str(CHECK.binary), str(file)], check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr
