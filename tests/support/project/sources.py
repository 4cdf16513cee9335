"""Sources of this repository: the file of a module, its statements."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from requirements.companions import companions

ROOT = Path(__file__).parents[3]
PLACES = {
    "packages": ROOT,
    **dict.fromkeys(("labs", "pipelines", "requirements", "tests", "uldp_transforms"), ROOT),
    **{each.package: each.folder for each in companions(ROOT)},
}
"""Names that are imported, and the folders in which they are."""


def path_of(module: str, root: Path | None = None) -> Path | None:
    """The file or folder of a module, None if there is none; ``root`` is where all are (default: their places)."""
    place = (root or PLACES.get(module.partition(".")[0], ROOT)) / module.replace(".", "/")
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py", place) if path.exists()), None)


def statements(body: Iterable[ast.AST], inside: bool = True) -> Iterator[ast.AST]:
    """Statements with those of their blocks; ``inside`` functions and classes too."""
    for node in body:
        yield node
        if inside or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for block in ("body", "orelse", "handlers", "finalbody", "cases"):
                yield from statements(getattr(node, block, ()), inside)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """A source, read once."""
    return ast.parse(path.read_text(encoding="utf-8"))
