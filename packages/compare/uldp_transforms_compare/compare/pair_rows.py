"""Rows of compared pairs: a row for each pair and difference, with q-values and intervals after selection over all."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms import JobSpec
from uldp_transforms.jobs.reestimate.stored_counts import simulated_of
from uldp_transforms.ldp.confidence import error_rate
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED
from uldp_transforms.ldp.estimators.number_estimates import QUANTILES, limits_within
from uldp_transforms.ldp.estimators.number_sums import NumberSums
from uldp_transforms.windows import moment_of
from uldp_transforms_compare.compare.kept_windows import KEPT
from uldp_transforms_compare.compare.row_columns import RowColumns
from uldp_transforms_compare.compare.row_texts import name_of
from uldp_transforms_compare.compare.sides import Family, Pair, Side
from uldp_transforms_compare.comparisons.compare import (
    differences_of_sides,
    p_values_of_sides,
    q_values,
    selected_confidence,
)
from uldp_transforms_compare.comparisons.compare_numbers import differences_of_numbers
from uldp_transforms_compare.comparisons.difference_columns import Differences
from uldp_transforms_compare.comparisons.stacked_pairs import p_values_of_pairs
from uldp_transforms_compare.comparisons.sum_differences import differences_of_sums

_TOGETHER = KEPT // 2
"""Maximum number of pairs whose p-values are computed together."""

Done = Callable[[], object]
"""What is called when a pair is done."""


def rows_of_pairs(
    spec: JobSpec,
    families: Sequence[tuple[Family, Sequence[Pair]]],
    scale: int | None,
    done: Done = lambda: None,
) -> list[Iterator[RowColumns]]:
    """The rows of each family, pair by pair, which are made when they are asked for.

    All pairs are compared twice: for the p-values, of which the q-values need all, and for the rows. So only one number
    for each row is in memory.

    Args:
        spec: what is estimated.
        families: each with the pairs to compare.
        scale: of intervals for many looks; None: one look.
        done: called after each pair, twice for each.
    """
    p_values, parts = array("d"), array("q")
    for _, pairs in families:
        for begin in range(0, len(pairs), _TOGETHER):
            for of_pair in _p_values(spec, pairs[begin : begin + _TOGETHER], scale):
                for of_part in of_pair:
                    p_values.extend(of_part)
                    parts.append(len(of_part))
                done()
    every = np.frombuffer(p_values, dtype=np.float64)
    adjusted = q_values(every)
    rate = error_rate(spec.confidence)
    level = selected_confidence(adjusted <= rate, rate)
    ends = np.cumsum(parts).tolist()
    of_parts = ((every[end - part : end], adjusted[end - part : end]) for part, end in zip(parts, ends))
    return [_rows_of_family(spec, family, pairs, scale, level, of_parts, done) for family, pairs in families]


Known = Iterator[tuple[np.ndarray, np.ndarray]]
"""P-values and q-values of each part of each pair, in their order."""


def _rows_of_family(
    spec: JobSpec,
    family: Family,
    pairs: Sequence[Pair],
    scale: int | None,
    level: float,
    known: Known,
    done: Done,
) -> Iterator[RowColumns]:
    """The rows of one family, which takes its part of what is known; ``level`` is that of selected intervals."""
    interval = FIXED if scale is None else ANYTIME
    for pair in pairs:
        shared = _shared(family, *pair) | {"confidence": spec.confidence, "interval": interval}
        for of, q in _differences(spec, pair, scale, known):
            yield _rows(shared, family.alphabet.unit, of, q, level)
        done()


def _p_values(spec: JobSpec, pairs: Sequence[Pair], scale: int | None) -> Iterator[list[np.ndarray]]:
    """The p-values of what ``_differences`` has, for each pair."""
    of_shares = p_values_of_pairs([(a.compared, b.compared) for a, b in pairs], scale)
    for (a, b), shares in zip(pairs, of_shares):
        found, bins = list[np.ndarray](), 0
        if a.numbers is not None and b.numbers is not None:
            bins = a.numbers.bins
            of_numbers = differences_of_numbers(a.numbers, b.numbers, *_figures(spec, a.numbers), smooth=False)
            found.append(of_numbers.columns["p_value"])
        if a.sums is not None and b.sums is not None:
            found.append(p_values_of_sides(a.sums.compared, b.sums.compared, scale))
        yield [*found, shares[bins:]]


def _differences(
    spec: JobSpec, pair: Pair, scale: int | None, known: Known
) -> Iterator[tuple[Differences, np.ndarray]]:
    """The differences of figures of numbers and of sums, if there are any, and of the shares of values that are no
    bins; each with the q-values."""
    a, b = pair
    bins = 0
    if a.numbers is not None and b.numbers is not None:
        bins = a.numbers.bins
        p, q = next(known)
        figures = _figures(spec, a.numbers)
        yield differences_of_numbers(a.numbers, b.numbers, *figures, spec.confidence, p_values=p), q
    if a.sums is not None and b.sums is not None:
        p, q = next(known)
        yield differences_of_sums(a.sums, b.sums, spec.confidence, scale, p), q
    p, q = next(known)
    every = np.append(np.ones(bins), p)
    yield differences_of_sides(a.compared, b.compared, spec.confidence, scale, every).from_place(bins), q


def _figures(spec: JobSpec, numbers: NumberSums) -> tuple[Sequence[float], Sequence[float]]:
    """Limits and quantiles to compare."""
    limits = limits_within(spec.limits or (), numbers.reports[0].model.alphabet)
    return limits, QUANTILES if spec.quantiles is None else spec.quantiles


def _rows(shared: dict[str, Any], unit: str, of: Differences, q: np.ndarray, level: float) -> RowColumns:
    """A row for each difference.

    Args:
        shared: fields of all rows of the pair.
        unit: of the numbers.
        of: the differences.
        q: their q-values.
        level: confidence of intervals after the selection.
    """
    low, high = of.selected(q <= error_rate(shared["confidence"]), level)
    figures, places = [[getattr(one, name) for one in of.subjects] for name in ("figure", "at")]
    return RowColumns(
        shared,
        {"value": [name_of(one, unit) for one in of.subjects], "figure": figures},
        {
            **of.columns,
            "q_value": q,
            "selected_low": low,
            "selected_high": high,
            "figure_at": np.array(places, dtype=np.float64),
        },
    )


def _shared(family: Family, a: Side, b: Side) -> dict[str, Any]:
    """The fields of all rows of a pair."""
    (start, end), (start_of_b, end_of_b) = (
        [side.sample.place[name] for name in ("window_start", "window_end")] for side in (a, b)
    )
    if start is not None and start_of_b is not None:
        start, end = min(start, start_of_b, key=moment_of), max(end, end_of_b, key=moment_of)
    return {
        "collection_id": family.name,
        "collection_version": family.owner.named.version,
        "window_start": start,
        "window_end": end,
        "group_a": a.name,
        "group_b": b.name,
        "simulated": simulated_of([a.sample.simulated, b.sample.simulated]),
        "liars": a.asked.liars,
    }
