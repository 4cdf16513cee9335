"""Tables as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(lines: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Lines of cells in columns that are as wide as their widest cell.

    Args:
        lines: equally many cells in each.
        left: numbers of the columns whose cells stand on the left; in all others they stand on the right.
    """
    widths = [max(map(len, column)) for column in zip(*lines)]
    return [
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width) for at, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    ]
