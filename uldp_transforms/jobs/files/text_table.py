"""Plain-text tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(lines: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Align cells in columns that are as wide as their widest cell.

    Args:
        lines: rows with the same number of cells.
        left: numbers of the left-aligned columns; all others are right-aligned.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width) for at, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    ]


def printable(text: str) -> str:
    """A text for terminals, which obey control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
