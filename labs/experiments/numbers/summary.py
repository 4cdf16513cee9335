"""Print a line for each epsilon and number of people, from the table of ``uldp reproduce numbers``: docs/numbers.md.

``python -m labs.experiments.numbers.summary reproduce-output/numbers.csv``
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping

import numpy as np


def lines(rows: Iterable[Mapping[str, str]]) -> list[list[str]]:
    """W1 relative to the published decoder, mean and least coverage, and length relative to unbiased."""
    groups: dict[tuple[str, str], dict[str, list[Mapping[str, str]]]] = {}
    for row in rows:
        groups.setdefault((row["epsilon"], row["people"]), {}).setdefault(row["method"], []).append(row)
    found = []
    for (epsilon, people), of in groups.items():
        smooth, unbiased, published = (of[method] for method in ("smooth", "unbiased", "published"))
        covered = [_column(smooth, name) for name in ("cover_shares", "cover_mean", "cover_quantiles")]
        found.append(
            [
                f"{float(epsilon):g}",
                f"{int(people):,}",
                f"{_ratio(smooth, published, 'w1'):.2f}",
                *(f"{column.mean():.3f} ({column.min():.2f})" for column in covered),
                f"{_column(unbiased, 'cover_shares').mean():.3f}",
                f"{_ratio(smooth, unbiased, 'half_shares'):.2f}",
            ]
        )
    return found


def _column(rows: list[Mapping[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def _ratio(rows: list[Mapping[str, str]], others: list[Mapping[str, str]], name: str) -> float:
    """Geometric mean over populations."""
    return float(np.exp(np.log(_column(rows, name) / _column(others, name)).mean()))


if __name__ == "__main__":
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        for line in lines(csv.DictReader(file)):
            print(f"| {' | '.join(line)} |")
