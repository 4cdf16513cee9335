"""Checks dashboards with the types of Grafana's Foundation SDK, which are generated from its schema (Apache-2.0)."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

from tests.rigs.cache import CACHE, require_program

FOLDER = Path(__file__).parent
SOURCES = ("go.mod", "go.sum", "main.go")
OF_FILES = ("__inputs",)
"""Fields of a dashboard in a file, which Grafana replaces when somebody imports it; the schema does not know them."""


def binary() -> Path:
    """Where the check of these sources stands once it is built; other sources make another name."""
    content = b"".join((FOLDER / name).read_bytes() for name in SOURCES)
    return CACHE / f"grafana-{hashlib.sha256(content).hexdigest()[:12]}" / "dashboards"


def fetch() -> Path:
    """The check; built unless it is in the cache (two minutes). ``go.sum`` vouches for the module."""
    path = binary()
    if not path.exists():
        require_program("go", f"build {path}")
        command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(path), "."]
        subprocess.run(command, cwd=FOLDER, check=True)
    return path


def missing() -> str | None:
    """Why the check cannot run here; None if it can."""
    path = binary()
    return None if path.exists() else f"{path} is not there: make grafana builds it"


def fault_of(dashboard: dict[str, object]) -> str:
    """What is wrong with a dashboard: unknown and missing fields, wrong types; empty if nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "dashboard.json")
        file.write_text(json.dumps({name: it for name, it in dashboard.items() if name not in OF_FILES}), "utf-8")
        done = subprocess.run([str(binary()), str(file)], check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr
