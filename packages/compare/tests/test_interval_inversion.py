"""The search for p-values, against the distances at all quantiles of the grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.support.cases import ALL_COLLECTIONS
from tests.support.compared_sides import sides_of
from uldp_transforms_compare.comparisons import interval_inversion
from uldp_transforms_compare.comparisons.compare import _Pair
from uldp_transforms_compare.comparisons.interval_inversion import GRID, LEAST, ComparedSide, confidence_at, p_values_at


def at_all_quantiles(interval: Callable[[Any], Any]) -> np.ndarray:
    """The definition: between the last quantile before which each interval is without 0 and the next, linearly."""
    gaps = np.array([np.maximum(low, -high) for low, high in map(interval, GRID.tolist())])
    found = np.empty(gaps.shape[1])
    for column, gap in enumerate(gaps.T):
        within = np.flatnonzero(~(gap > 0))
        if len(within) and within[0] == 0:
            found[column] = 0
            continue
        first = within[0] if len(within) else len(GRID) - 1
        before = first - 1 if len(within) else 0
        step = gap[before] / (gap[before] - gap[first])
        found[column] = GRID[before] + step * (GRID[first] - GRID[before])
    return np.where(found > 0, np.maximum(2 * special.ndtr(-found), LEAST), 1)


@pytest.mark.parametrize(("number", "start"), [(100, 0), (3_000, 4), (60_000, 8)])
def test_p_values_are_those_of_all_quantiles(number: int, start: int) -> None:
    """Of an eighth of all pairs of a mechanism and an alphabet, with rare values, equal ones, and ones beyond the last
    quantile."""
    rng, compared = np.random.default_rng(number), 0
    for of in list(ALL_COLLECTIONS.values())[start::24]:
        pair = _Pair.of(*sides_of(of, number, rng), 0.95, None)

        def of_look(z: Any, pair: _Pair = pair) -> Any:
            return pair.of_look(confidence_at(z))

        np.testing.assert_allclose(p_values_at(of_look), at_all_quantiles(of_look), rtol=1e-9, atol=0)
        compared += 1
    assert compared > 5


def test_distances_that_are_far_from_linear_are_found_too() -> None:
    """Ends that grow by the fourth power, by a root, and by steps; each touches 0 somewhere else."""
    sizes = np.linspace(0.01, 9, 400)
    for width in (lambda z: z**4 / 500, lambda z: 3 * np.sqrt(z), lambda z: np.ceil(3 * z) / 3, np.expm1):

        def interval(z: Any, width: Callable[[Any], Any] = width) -> Any:
            return sizes - width(z) * np.ones(len(sizes)), sizes + width(z) * np.ones(len(sizes))

        np.testing.assert_allclose(p_values_at(interval), at_all_quantiles(interval), rtol=1e-12, atol=0)


def test_few_intervals_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search computes a sixteenth of the intervals of the whole grid, or fewer."""
    number = []
    distances = interval_inversion._distances

    def counted(interval: Callable[[Any], Any], z: Any) -> np.ndarray:
        found = distances(interval, z)
        number.append(np.count_nonzero(~np.isnan(np.broadcast_to(z, found.shape))))
        return found

    monkeypatch.setattr(interval_inversion, "_distances", counted)
    of, size = ALL_COLLECTIONS["closed-krr"], 0
    for seed in range(20):
        size += len(_Pair.of(*sides_of(of, 3_000, np.random.default_rng(seed)), 0.95, None).differences(0.95).subjects)
    assert sum(number) * 16 <= len(GRID) * size


def test_ends_of_a_side_are_computed_once_for_all_its_pairs() -> None:
    of = ALL_COLLECTIONS["closed-krr"]
    first, _ = sides_of(of, 3_000, np.random.default_rng(1))
    side = ComparedSide(first)
    for level in (0.5, 0.95):
        assert all(a is b for a, b in zip(side.by_chance(level), side.by_chance(level)))
        np.testing.assert_array_equal(side.by_chance(level), first.unclipped(level))
    alone = side.by_chance(np.where(np.arange(len(first.values)) == 1, 0.95, np.nan))
    assert np.isnan(alone[0]).sum() == len(first.values) - 1
    np.testing.assert_allclose([end[1] for end in alone], [end[1] for end in side.by_chance(0.95)], rtol=1e-12)
