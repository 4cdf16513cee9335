"""Builds the check of dashboards; needs Go."""

from __future__ import annotations

import sys

from tests.rigs.grafana.dashboards import CHECK

if __name__ == "__main__":
    print(f"{CHECK.fetch()} FILE.json...: whether they are dashboards")
    sys.exit(0)
