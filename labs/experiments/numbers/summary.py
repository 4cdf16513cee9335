"""Print two tables from that of ``uldp reproduce numbers``: a line for each epsilon and number of people (the one of
docs/numbers.md), and a line for each method.

``python -m labs.experiments.numbers.summary reproduce-output/numbers.csv``
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

PUBLISHED = "published"


def lines(rows: Iterable[Mapping[str, str]]) -> list[list[str]]:
    """W1 relative to the published decoder, mean and least coverage, and length relative to unbiased."""
    groups: dict[tuple[str, str], dict[str, list[Mapping[str, str]]]] = {}
    for row in rows:
        groups.setdefault((row["epsilon"], row["people"]), {}).setdefault(row["method"], []).append(row)
    found = []
    for (epsilon, people), of in groups.items():
        smooth, unbiased, published = (of[method] for method in ("smooth", "unbiased", PUBLISHED))
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


def of_methods(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """For each method, W1 relative to the published decoder at each epsilon, and in all settings."""
    epsilons, methods = ([*dict.fromkeys(row[name] for row in rows)] for name in ("epsilon", "method"))

    def w1(method: str, epsilons: Sequence[str]) -> str:
        of = (
            [row for row in rows if row["epsilon"] in epsilons and row["method"] == one] for one in (method, PUBLISHED)
        )
        return f"{_ratio(*of, 'w1'):.2f}"

    return [[method, *(w1(method, [one]) for one in epsilons), w1(method, epsilons)] for method in methods]


def _column(rows: list[Mapping[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def _ratio(rows: list[Mapping[str, str]], others: list[Mapping[str, str]], name: str) -> float:
    """Geometric mean over populations."""
    return float(np.exp(np.log(_column(rows, name) / _column(others, name)).mean()))


if __name__ == "__main__":
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for table in (lines(rows), of_methods(rows)):
        for line in table:
            print(f"| {' | '.join(line)} |")
        print()
