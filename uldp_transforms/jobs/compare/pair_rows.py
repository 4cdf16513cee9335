"""Rows of compared pairs: a row for each pair and value, with q-values and intervals after selection over all rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms import JobSpec
from uldp_transforms.jobs.compare.figure_rows import figure_rows
from uldp_transforms.jobs.compare.sides import Family, Side
from uldp_transforms.jobs.reestimate.stored_counts import simulated_of
from uldp_transforms.ldp import compare
from uldp_transforms.ldp.comparisons.compare import (
    difference_at,
    noticeable_difference,
    q_values,
    selected_confidence,
)
from uldp_transforms.ldp.comparisons.compare_numbers import compare_numbers
from uldp_transforms.ldp.comparisons.p_values import is_found
from uldp_transforms.ldp.confidence import error_rate
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED
from uldp_transforms.ldp.estimators.number_estimates import QUANTILES, limits_within
from uldp_transforms.rows.row_types import ComparedValue
from uldp_transforms.windows import rfc3339

Pair = tuple[Side, Side]
"""Sides (a, b) of a comparison: b is the baseline, or comes first."""


def rows_of_pairs(
    spec: JobSpec, families: Sequence[tuple[Family, Sequence[Pair]]], scale: int | None
) -> list[list[ComparedValue]]:
    """The rows of each family.

    Args:
        spec: what is estimated, and the declared share of liars.
        families: each with the pairs to compare.
        scale: of intervals for many looks; None: one look.
    """
    rows = _with_q_values([list(_rows(spec, family, pairs, scale)) for family, pairs in families])
    return _with_selected(spec, families, rows, scale)


def _figures(spec: JobSpec, family: Family) -> tuple[Sequence[float], Sequence[float]]:
    """Limits and quantiles of the figures of numbers."""
    quantiles = QUANTILES if spec.quantiles is None else spec.quantiles
    return limits_within(spec.limits or (), family.collection.alphabet), quantiles


def _values(family: Family, a: Side) -> range:
    """Places of the values that have a row: of numbers only those that are no bins."""
    alphabet = family.collection.alphabet
    return range(alphabet.num_symbols - alphabet.num_others if a.sums is not None else 0, len(a.estimate.values))


def _rows(spec: JobSpec, family: Family, pairs: Sequence[Pair], scale: int | None) -> Iterator[ComparedValue]:
    """A row for each pair and value, or figure of numbers; the q-values are those of the pair alone."""
    for a, b in pairs:
        shared = _shared(family, a, b) | {"confidence": spec.confidence}
        if a.sums is not None and b.sums is not None:
            for row in figure_rows(shared, a.sums, b.sums, *_figures(spec, family), spec.confidence):
                length = None if row.low is None or row.high is None else row.high - row.low
                yield row._replace(noticeable=length and noticeable_difference(length, spec.confidence), interval=FIXED)
        found = compare(a.estimate, b.estimate, spec.confidence, scale)
        for at in _values(family, a):
            yield ComparedValue(
                **shared,
                value=found.values[at],
                difference=float(found.differences[at]),
                low=float(found.low[at]),
                high=float(found.high[at]),
                p_value=float(found.p_values[at]),
                q_value=float(found.q_values[at]),
                lift=_finite(found.lifts[at]),
                lift_low=_finite(found.lift_low[at]),
                lift_high=_finite(found.lift_high[at]),
                noticeable=float(found.noticeable[at]),
                interval=FIXED if scale is None else ANYTIME,
                liars=spec.liars,
            )


def _shared(family: Family, a: Side, b: Side) -> dict[str, Any]:
    """The fields of all rows of a pair."""
    times = [rfc3339(end) for end in (min(_known(a.start, b.start)), max(_known(a.end, b.end)))] if a.end else None
    return {
        "collection_id": family.name,
        "collection_version": family.version,
        "window_start": times[0] if times else None,
        "window_end": times[1] if times else None,
        "group_a": a.name,
        "group_b": b.name,
        "simulated": simulated_of([a.simulated, b.simulated]),
    }


def _known(*moments: int | None) -> list[int]:
    return [moment for moment in moments if moment is not None]


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _with_q_values(families: Sequence[Sequence[ComparedValue]]) -> list[list[ComparedValue]]:
    """The rows with q-values over all of them."""
    p_values = np.array([row.p_value for rows in families for row in rows])
    adjusted = iter(q_values(p_values).tolist() if len(p_values) else [])
    return [[row._replace(q_value=next(adjusted)) for row in rows] for rows in families]


def _with_selected(
    spec: JobSpec,
    families: Sequence[tuple[Family, Sequence[Pair]]],
    rows_of: Sequence[Sequence[ComparedValue]],
    scale: int | None,
) -> list[list[ComparedValue]]:
    """The rows, of which those that are found have an interval after the selection from all rows."""
    rate = error_rate(spec.confidence)
    level = selected_confidence(np.array([row.q_value <= rate for rows in rows_of for row in rows]), rate)
    selected = []
    for (family, pairs), rows in zip(families, rows_of):
        ends = {
            (a.name, b.name, *key): both
            for a, b in pairs
            if any(row.q_value <= rate for row in rows if (row.group_a, row.group_b) == (a.name, b.name))
            for key, both in _ends(spec, family, (a, b), level, scale)
        }
        selected.append([_after_selection(row, ends) for row in rows])
    return selected


_Key = tuple[str | float | None, ...]
_Ends = tuple[float | None, float | None]


def _ends(spec: JobSpec, family: Family, pair: Pair, level: float, scale: int | None) -> Iterator[tuple[_Key, _Ends]]:
    """The intervals of a pair at another level, by figure, place of the figure, and value."""
    a, b = pair
    if a.sums is not None and b.sums is not None:
        for one in compare_numbers(a.sums, b.sums, *_figures(spec, family), level, smooth=False):
            yield (one.figure, one.at, None), (one.low, one.high)
    low, high = difference_at(a.estimate, b.estimate, level, scale)
    for at in _values(family, a):
        yield (None, None, a.estimate.values[at]), (float(low[at]), float(high[at]))


def _after_selection(row: ComparedValue, ends: Mapping[_Key, _Ends]) -> ComparedValue:
    if not is_found(row.q_value, row.confidence):
        return row
    key = (row.group_a, row.group_b, row.figure, row.at, None if row.figure else row.value)
    return row._replace(selected_low=ends[key][0], selected_high=ends[key][1])
