"""Refusals of comparisons on pages: calls and their sentences."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_report.compared.compared_rows import comparisons_of


def _read(content: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "comparisons.jsonl").write_text(content, "utf-8")
        return comparisons_of(folder, 9)


SAID = "comparisons.jsonl must contain rows of uldp compare (the content is not shown)"
REFUSED: list[tuple[type[Exception], Callable[[], object], str]] = [
    (SpecError, functools.partial(_read, "[]\n"), SAID),
]
