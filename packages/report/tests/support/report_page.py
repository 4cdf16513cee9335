"""The page of a directory of rows."""

from __future__ import annotations

from pathlib import Path

from uldp_transforms.jobs import uldp


def page_of(folder: Path, *options: str) -> str:
    """The page of a directory."""
    output = folder / "page.html"
    assert uldp.main(["report", str(folder), "--output", str(output), *options]) == 0
    return output.read_text("utf-8")
