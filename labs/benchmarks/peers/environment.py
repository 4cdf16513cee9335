"""The Python that has the other libraries; ``make`` builds it from ``requirements/peers.txt``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / "build" / "peers" / "bin" / "python"


def install() -> None:
    """Fetch what is missing.

    Raises:
        CalledProcessError: if that fails.
    """
    subprocess.run(["make", "--silent", f"PYTHON={sys.executable}", "build/peers/.installed"], cwd=ROOT, check=True)


def ask(name: str, task: dict[str, Any]) -> list[dict[str, Any]]:
    """What ``others.py`` makes of a task.

    Raises:
        CalledProcessError: if it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "task.json").write_text(json.dumps(task), encoding="utf-8")
        subprocess.run([str(PYTHON), str(Path(__file__).with_name("others.py")), name, folder], check=True)
        answer: list[dict[str, Any]] = json.loads(Path(folder, f"{name}.json").read_text(encoding="utf-8"))
    return answer
