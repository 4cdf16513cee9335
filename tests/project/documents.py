"""The pages of the project, and how their examples are run."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import pytest
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.window import TimestampedValue

import uldp_transforms
from tests.rigs import prism

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security.md",
    "labs/data/README.md": "data.md",
    "labs/demo/data/README.md": "demo-data.md",
}
"""Pages outside docs/, and their places on the site."""


def pages() -> Iterator[Path]:
    """Every page, those of docs/ in order of their names."""
    yield from (ROOT / name for name in OUTSIDE)
    yield from sorted(DOCS.rglob("*.md"))


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Anchors of the headings of a page, as they are made in the repository and on the site."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", prose(text), flags=re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def sentences(text: str) -> list[str]:
    """The sentences of prose, without fenced blocks, tables and headings."""
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |[|#!]))", prose(text))
    parts = [" ".join(part.split()) for part in parts]
    return [
        sentence
        for part in parts
        if not part.startswith(("|", "#", "!"))
        for sentence in re.split(r"(?<=[.:!?])\s+(?=[A-Z`\[])", part)
    ]


class Block(NamedTuple):
    """A fenced block, the page where it stands, and what it needs (the comment ``run: ...`` before it)."""

    page: Path
    number: int
    needs: str
    code: str


def blocks(page: Path, language: str = "python") -> list[Block]:
    """The fenced blocks of a page."""
    pattern = rf"(?:<!-- run: (\w+) -->\n)?```{language}\n(.*?)```"
    found = re.findall(pattern, page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [Block(page, number, needs, code) for number, (needs, code) in enumerate(found)]


def require(needs: str) -> None:
    """Skip a test whose block needs something that is not installed."""
    if needs == "pandas":
        pytest.importorskip("pandas")
    elif needs == "Prism":
        if prism.missing() is not None:
            pytest.skip(str(prism.missing()))
    elif needs == "messages":
        if importlib.util.find_spec("uldp_transforms.messages") is None:
            pytest.skip("uldp_transforms.messages does not exist")
    elif needs and not hasattr(uldp_transforms, needs):
        pytest.skip(f"uldp_transforms.{needs} does not exist")


def stream(messages: list[bytes], arrival: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pub/Sub has these messages, which arrive at a time (seconds), and nothing else; what is published is printed."""
    events = TestStream().advance_watermark_to(arrival)
    events = events.add_elements([TimestampedValue(message, arrival) for message in messages])
    events = events.advance_watermark_to_infinity()
    monkeypatch.setattr(beam.io, "ReadFromPubSub", lambda subscription: events)
    monkeypatch.setattr(beam.io, "WriteToPubSub", lambda topic: beam.Map(_print))


def _print(message: bytes) -> None:
    print(message.decode())


def run(block: Block, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of a block that has run, on the local engine that it names or that fits."""
    if "runner=" not in block.code and "InteractiveRunner" not in block.code:
        endless = "ReadFromPubSub" in block.code or "TestStream" in block.code
        runner = "BundleBasedDirectRunner" if endless else "FnApiRunner"
        monkeypatch.setattr(beam, "Pipeline", functools.partial(beam.Pipeline, runner=runner))
    names: dict[str, Any] = {"__name__": f"{block.page.stem}_{block.number}"}
    code = block.code.replace('"--runner=PrismRunner"', ", ".join(map(repr, prism.options())))  # where it was built
    exec(code, names)
    return names
