"""Errors and coverage of means, quantiles and distribution functions, beside the published decoder."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, progress
from labs.experiments.numbers.others import estimates, wave
from labs.experiments.numbers.populations import FINEST, coarse, populations
from labs.experiments.numbers.published import em_with_smoothing
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators.number_estimates import NumberEstimate, estimate_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 32
EPSILONS, PEOPLE = (0.5, 1.0, 2.0), (10_000, 100_000)
QUANTILES = (0.1, 0.5, 0.9)
LEAST, NOT_MORE = 0.90, 0.80

_RUNS, _PUBLISHED_RUNS = 200, 30


class SmoothIntervals(Experiment):
    id = "numbers"
    title = "Means, quantiles and shares above limits of numbers: errors, and what intervals cover"
    source = "Li et al. 2020, section 6 (their decoder, and W1); intervals are ours"
    abstract = (
        "The square wave with 32 bins, seven populations (two of them real), epsilon 0.5, 1 and 2, 10,000 and 100,000 "
        "people. Estimates: the smooth posterior with its intervals, the unbiased one with its guaranteed intervals, "
        "EM with smoothing over 512 bins as published, EM without smoothing, k-ary randomized response, and a tree of "
        "it. W1 is the mean absolute error of the distribution function "
        "over the inner edges of the 32 bins."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        number = runs or (6 if reduced else _RUNS)
        settings = itertools.product((1.0,) if reduced else EPSILONS, PEOPLE[:1] if reduced else PEOPLE, populations())
        rows = [
            row
            for epsilon, people, name in progress(list(settings), "numbers")
            for row in of_setting(epsilon, people, name, number, rng)
        ]
        return Result(rows=rows, verdicts=[nearer(rows), smooth_cover(rows), unbiased_cover(rows), shorter(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        names = list(populations())
        for place, (epsilon, people) in enumerate(itertools.product(EPSILONS, PEOPLE)):
            here = [row for row in rows if (row["epsilon"], row["people"]) == (epsilon, people)]
            smooth = _of(here, "smooth")
            y = [names.index(row["population"]) + place / 12 for row in smooth]
            color, marker = f"C{EPSILONS.index(epsilon)}", "s" if people == PEOPLE[0] else "o"
            left.plot([row["cover_shares"] for row in smooth], y, marker, color=color, markersize=4)
            label = f"epsilon {epsilon:g}, {people:,} people"
            right.plot([_ratio(here, row) for row in smooth], y, marker, color=color, markersize=4, label=label)
        left.axvline(0.95, color="grey")
        left.set_xlabel("smooth intervals of shares that hold")
        left.set_yticks(range(len(names)), names)
        right.axvline(1, color="grey")
        right.set_xlabel("W1 / W1 as published")
        figure.legend(loc="outside lower center", ncols=3, fontsize=7)


def of_setting(epsilon: float, people: int, name: str, runs: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """A row for each method: means over the runs."""
    item, shares = collection(epsilon), populations()[name]
    truth = _Truth(coarse(shares, BINS))
    law = item.mechanism.response(truth.shares)
    found = []
    for _ in range(runs):
        cells = rng.multinomial(people, law)[np.newaxis]
        counts = CohortCounts(cells.sum(axis=1), cells)
        found.append(estimate_numbers(item, counts, limits=truth.limits, quantiles=QUANTILES))
    fine, fewer = wave(FINEST, epsilon), min(runs, _PUBLISHED_RUNS)
    published = em_with_smoothing(fine, rng.multinomial(people, fine @ shares, size=fewer))
    place = {"epsilon": epsilon, "people": people, "population": name}
    return [
        place | {"method": "smooth"} | truth.judged(found, "display_value", "display_low", "display_high"),
        place | {"method": "unbiased"} | truth.judged(found, "value", "low", "high"),
        place | {"method": "published"} | truth.errors(published.reshape(fewer, BINS, -1).sum(axis=2)),
        *(
            place | {"method": method} | truth.errors(estimated)
            for method, estimated in estimates(truth.shares, epsilon, people, fewer, rng)
        ),
    ]


class _Truth:
    """What is true of a population in bins on [0, 1], and what estimates of it are worth."""

    def __init__(self, shares: np.ndarray):
        self.shares = shares
        self.limits: list[float] = (np.arange(1, BINS) / BINS).tolist()
        self._centres = (np.arange(BINS) + 0.5) / BINS
        self._mean = float(shares @ self._centres)
        self._above = 1 - np.cumsum(shares)[:-1]
        edges = np.arange(BINS + 1) / BINS
        self._quantiles = np.interp(QUANTILES, np.append(0, np.cumsum(shares)), edges)

    def errors(self, shares: np.ndarray) -> dict[str, float]:
        """W1 and absolute error of the mean, on average over the estimates (R, K)."""
        above = 1 - np.cumsum(shares, axis=1)[:, :-1]
        return {
            "w1": float(np.abs(above - self._above).mean()),
            "mean_error": float(np.abs(shares @ self._centres - self._mean).mean()),
        }

    def judged(self, found: Sequence[NumberEstimate], value: str, low: str, high: str) -> dict[str, float]:
        """Errors of these fields, shares of the intervals that hold, and half of their lengths."""
        above, lows, highs = (_column([one.shares_above for one in found], name) for name in (value, low, high))
        means, mean_low, mean_high = (_column([[one.mean] for one in found], name) for name in (value, low, high))
        ends = [_column([one.quantiles for one in found], name) for name in (low, high)]
        inside = ~(ends[0] > self._quantiles) & ~(ends[1] < self._quantiles)  # an open end is NaN
        return {
            "w1": float(np.abs(above - self._above).mean()),
            "mean_error": float(np.abs(means - self._mean).mean()),
            "cover_shares": float(((lows <= self._above) & (self._above <= highs)).mean()),
            "cover_mean": float(((mean_low <= self._mean) & (self._mean <= mean_high)).mean()),
            "cover_quantiles": float(inside.mean()),
            "half_shares": float((highs - lows).mean() / 2),
            "half_mean": float((mean_high - mean_low).mean() / 2),
        }


def _column(figures: Iterable[Iterable[Any]], name: str) -> np.ndarray:
    return np.array([[getattr(one, name) for one in line] for line in figures], dtype=np.float64)


@functools.cache
def collection(epsilon: float) -> Collection:
    """Numbers on [0, 1] in 32 bins."""
    return Collection.from_json(
        {
            "id": "numbers",
            "version": 1,
            "alphabet": {"id": "ordered", "low": 0, "high": 1, "num_bins": BINS},
            "mechanism": {"id": "sw", "epsilon": epsilon},
        }
    )


def _of(rows: list[dict[str, Any]], method: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["method"] == method]


def _ratio(rows: list[dict[str, Any]], smooth: dict[str, Any]) -> float:
    """W1 of a smooth row, divided by that of the published decoder in the same setting."""
    place = {name: smooth[name] for name in ("epsilon", "people", "population")}
    [published] = [row for row in _of(rows, "published") if place.items() <= row.items()]
    return float(smooth["w1"] / published["w1"])


def _said(row: dict[str, Any]) -> str:
    return f"{row['population']}, epsilon {row['epsilon']:g}, {row['people']:,} people"


def nearer(rows: list[dict[str, Any]]) -> Verdict:
    ratios = [_ratio(rows, row) for row in _of(rows, "smooth")]
    mean = float(np.exp(np.log(ratios).mean()))
    return Verdict(
        claim="The smooth estimate has at most 0.80 of the published W1 in the geometric mean over settings.",
        holds=mean <= NOT_MORE,
        evidence=f"{mean:.2f}, from {min(ratios):.2f} to {max(ratios):.2f}.",
    )


def smooth_cover(rows: list[dict[str, Any]]) -> Verdict:
    worst = min(_of(rows, "smooth"), key=lambda row: row["cover_shares"])
    of_quantiles = min(row["cover_quantiles"] for row in _of(rows, "smooth"))
    return Verdict(
        claim="Smooth intervals of shares, and of quantiles, hold in at least 90 % of cases in every setting.",
        holds=min(worst["cover_shares"], of_quantiles) >= LEAST,
        evidence=f"Least: {worst['cover_shares']:.3f} ({_said(worst)}); of quantiles {of_quantiles:.3f}.",
    )


def unbiased_cover(rows: list[dict[str, Any]]) -> Verdict:
    covered = [row["cover_shares"] for row in _of(rows, "unbiased")]
    return Verdict(
        claim="Guaranteed intervals of shares hold in 94 to 96 % of cases.",
        holds=0.94 <= float(np.mean(covered)) <= 0.96,
        evidence=f"{np.mean(covered):.3f} on average, from {min(covered):.3f} to {max(covered):.3f} by setting.",
    )


def shorter(rows: list[dict[str, Any]]) -> Verdict:
    ratios = [a["half_shares"] / b["half_shares"] for a, b in zip(_of(rows, "smooth"), _of(rows, "unbiased"))]
    mean = float(np.exp(np.log(ratios).mean()))
    return Verdict(
        claim="Smooth intervals of shares are at most 0.6 times as long as guaranteed ones in the geometric mean.",
        holds=mean <= 0.6,
        evidence=f"{mean:.2f}, from {min(ratios):.2f} to {max(ratios):.2f}.",
    )
