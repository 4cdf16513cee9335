"""Takes the picture of the demo's page for the documents, with Chromium: ``make demo``, then ``make shots``.

``python -m labs.demo.shots DIRECTORY`` takes it from another directory of the demo.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "demo-page.png"
WIDTH, HEIGHT = 1280, 1140
"""Pixels: the head of the page, and the first rows of its first table."""

PATIENCE = 120
COLORS = 256

_SOMETIMES = ("in_the_interval", "last_change")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def main(argv: Sequence[str]) -> int:
    """Write the picture; returns the exit code."""
    page = Path(argv[0] if argv else "demo-output") / "index.html"
    if CHROMIUM is None or not page.is_file():
        print(f"shots: need chromium, and the page of make demo, got no {'chromium' if page.is_file() else page}")
        return 2
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        size = [f"--window-size={WIDTH},{HEIGHT}", "--virtual-time-budget=8000"]
        command = [CHROMIUM, *options, *size, f"--screenshot={PICTURE}", page.resolve().as_uri()]
        subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)
    from PIL import Image  # noqa: PLC0415  # comes with matplotlib

    Image.open(PICTURE).convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(PICTURE, optimize=True)
    PICTURE.with_suffix(".txt").write_text("".join(f"{head}\n" for head in heads(page)), encoding="utf-8")
    return 0


def heads(page: Path) -> list[str]:
    """Names of the columns of the first table of a page, without those that depend on the estimates."""
    table = page.read_text("utf-8").partition("<thead>")[2].partition("</thead>")[0]
    return [name for name in re.findall(r'data-name="([^"]*)"', table) if name not in _SOMETIMES]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
