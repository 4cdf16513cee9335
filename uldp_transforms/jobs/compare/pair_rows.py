"""Rows of compared pairs: a row for each pair and difference, with q-values and intervals after selection over all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms import JobSpec
from uldp_transforms.jobs.compare.row_texts import name_of
from uldp_transforms.jobs.compare.sides import Family, Pair, Side
from uldp_transforms.jobs.reestimate.stored_counts import simulated_of
from uldp_transforms.ldp.comparisons.compare import differences_of_sides, q_values, selected_confidence
from uldp_transforms.ldp.comparisons.compare_numbers import differences_of_numbers
from uldp_transforms.ldp.comparisons.difference_columns import Differences, known
from uldp_transforms.ldp.confidence import error_rate
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED
from uldp_transforms.ldp.estimators.number_estimates import QUANTILES, limits_within
from uldp_transforms.rows.row_types import ComparedValue
from uldp_transforms.windows import moment_of


def rows_of_pairs(
    spec: JobSpec, families: Sequence[tuple[Family, Sequence[Pair]]], scale: int | None
) -> list[list[ComparedValue]]:
    """The rows of each family.

    Args:
        spec: what is estimated.
        families: each with the pairs to compare.
        scale: of intervals for many looks; None: one look.
    """
    compared = [[(pair, of) for pair in pairs for of in _differences(spec, pair, scale)] for _, pairs in families]
    p_values = [of.columns["p_value"] for own in compared for _, of in own]
    adjusted = q_values(np.concatenate([np.empty(0), *p_values]))
    rate = error_rate(spec.confidence)
    level = selected_confidence(adjusted <= rate, rate)
    parts = iter(np.split(adjusted, np.cumsum([len(each) for each in p_values])))
    return [
        [
            row._replace(interval=FIXED if scale is None else ANYTIME)
            for (pair, of), q in zip(own, parts)
            for row in _rows(family, pair, of, q, spec.confidence, level)
        ]
        for (family, _), own in zip(families, compared)
    ]


def _differences(spec: JobSpec, pair: Pair, scale: int | None) -> Iterator[Differences]:
    """The differences of figures of numbers, if there are any, and of the shares of values that are no bins."""
    a, b = pair
    bins = 0
    if a.numbers is not None and b.numbers is not None:
        bins, alphabet = a.numbers.bins, a.numbers.reports[0].model.alphabet
        limits, quantiles = limits_within(spec.limits or (), alphabet), spec.quantiles
        asked = QUANTILES if quantiles is None else quantiles
        yield differences_of_numbers(a.numbers, b.numbers, limits, asked, spec.confidence)
    yield differences_of_sides(a.compared, b.compared, spec.confidence, scale).from_place(bins)


def _rows(
    family: Family, pair: Pair, of: Differences, q: np.ndarray, confidence: float, level: float
) -> Iterator[ComparedValue]:
    """A row for each difference.

    Args:
        family, pair: what is compared.
        of: the differences.
        q: their q-values.
        confidence: of their intervals.
        level: confidence of intervals after the selection.
    """
    shared, unit = _shared(family, *pair) | {"confidence": confidence}, family.alphabet.unit
    selected = zip(*map(known, of.selected(q <= error_rate(confidence), level)))
    for one, q_value, (low, high) in zip(of, q.tolist(), selected):
        own = vars(one) | {"value": name_of(one, unit), "figure_at": one.at}
        yield ComparedValue(**shared, **own, q_value=q_value, selected_low=low, selected_high=high)


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
        "liars": a.estimate.liars,
    }
