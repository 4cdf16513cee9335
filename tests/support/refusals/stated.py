"""The sentences that the ``raise`` and ``require_...`` statements of a file can say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.project.sources import tree_of


def pattern(node: ast.expr) -> str:
    """A regular expression for the texts that an expression can be: fixed parts literally, anything for the rest."""
    if isinstance(node, ast.Constant):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(pattern, node.values))
    return ".+"


def refusals(source: Path) -> Iterator[tuple[str, str]]:
    """(place, pattern of the sentence) of each ``raise`` and of each ``require_...`` in a file."""
    for node in ast.walk(tree_of(source)):
        place = f"{source.parent.name}/{source.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield place, pattern(node.exc.args[0])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("require_"):
            yield place, pattern(node.args[0]) + " (must|needs|takes) .+"
