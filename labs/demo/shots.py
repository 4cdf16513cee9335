"""Takes the pictures of the demo's page for the documents, with Chromium: ``make demo``, then ``make shots``.

``python -m labs.demo.shots DIRECTORY`` takes them from another directory of the demo.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

IMAGES = Path(__file__).parents[2] / "docs" / "images"
HEADS = IMAGES / "demo-page.txt"
"""What the pictures show: lines that a test compares with the page."""


class Shot(NamedTuple):
    """A picture of the top of the page: name, CSS pixels, pixels for each of them, and the visitor's colours."""

    name: str
    width: int
    height: int
    scale: int
    dark: bool


SHOTS = (
    Shot("demo-page", 1440, 1100, 1, False),
    Shot("demo-page-dark", 1440, 1100, 1, True),
    Shot("demo-page-narrow", 390, 1240, 2, False),
    Shot("demo-page-narrow-dark", 390, 1240, 2, True),
)
"""For wide and narrow screens: the head of the page, and the first rows of its first table."""

PATIENCE = 120
COLORS = 64

_SOMETIMES = ("in_the_interval", "last_change")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def main(argv: Sequence[str]) -> int:
    """Write the pictures; returns the exit code."""
    page = Path(argv[0] if argv else "demo-output") / "index.html"
    if CHROMIUM is None or not page.is_file():
        print(f"shots: need chromium, and the page of make demo, got no {'chromium' if page.is_file() else page}")
        return 2
    for shot in SHOTS:
        take(shot, page.resolve().as_uri(), CHROMIUM)
    HEADS.write_text("".join(f"{head}\n" for head in heads(page)), encoding="utf-8")
    return 0


def take(shot: Shot, address: str, chromium: str) -> None:
    """Write one picture, with few colours."""
    path = IMAGES / f"{shot.name}.png"
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        options += [f"--window-size={shot.width},{shot.height}", f"--force-device-scale-factor={shot.scale}"]
        options += [f"--blink-settings=preferredColorScheme={0 if shot.dark else 1}", "--virtual-time-budget=8000"]
        command = [chromium, *options, f"--screenshot={path}", address]
        subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)
    from PIL import Image  # noqa: PLC0415  # comes with matplotlib

    Image.open(path).convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


def heads(page: Path) -> list[str]:
    """The title of a page, its first sentence without numbers, its first collection, its symbols, and the names of the
    columns of its first table, without those that depend on the estimates."""
    text = page.read_text("utf-8")
    top, _, rest = text.partition("<thead>")
    table = rest.partition("</thead>")[0]
    first = re.sub(r"\d[\d,]*", "N", top.partition("<p>")[2].partition("</p>")[0])
    titles = [first, *re.findall(r"<h[12][^>]*>(.*?)</h[12]>", top)]
    titles += re.findall(r"</svg>([^<]+)</li>", top)
    names = [name for name in re.findall(r'data-name="([^"]*)"', table) if name not in _SOMETIMES]
    return [*(re.sub(r"<[^>]+>", "", title).strip() for title in titles), *names]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
