"""What false reports can do to an estimate, and what is known of honest people in spite of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.model import Model

_NOTHING = 1e-300
_NEARLY_ALL = 1 - 1e-9  # the bounds then are those of nothing known


def need_of_liars(model: Model) -> str | None:
    """What ``honest_bounds`` needs and this collection does not have; None if it has everything.

    The unbiased estimate of each value must be a mean over reports, to which each report adds a known range of numbers.
    """
    alphabet = model.alphabet
    if alphabet.known_values is None or not alphabet.has_own_symbol(alphabet.known_values).all():
        return "a list of all values, each with a symbol of its own"
    if alphabet.bin_edges is not None:
        return "values that are not numbers"
    if alphabet.redistribution(np.full(alphabet.num_symbols, 1 / alphabet.num_symbols)) is not None:
        return "values that clients name, without tags"
    if model.mechanism.smallest_effects is None:
        return "a mechanism that states the smallest effect of a report"
    return None


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Lies:
    """What false reports can do to the estimates of S values from the reports of A versions; a collection is one.

    Attributes:
        share: largest share of false reports among all, in [0, 1), whatever versions they are of; may be (S,).
        sizes: (A,) or (A, S), share of each version in all reports; they sum to 1.
        weights: (A, S), of the estimates of each version in those of the values; they sum to 1.
        least, most: (A, S), smallest and largest number that one report adds to n times the estimate of its version,
            which has n reports.
    """

    share: Any
    sizes: np.ndarray
    weights: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, model: Model, values: tuple[str, ...], share: float) -> Lies:
        """The effects of reports on these values of a collection without ``need_of_liars``."""
        return cls.of_versions([model], values, share, np.ones(1), np.ones((1, len(values))))

    @classmethod
    def of_versions(
        cls, models: Sequence[Model], values: tuple[str, ...], share: float, sizes: np.ndarray, weights: np.ndarray
    ) -> Lies:
        """The effects of reports on these values of pooled versions, all without ``need_of_liars``."""
        effects = [_effects(model, values) for model in models]
        least, most = (np.array(each) for each in zip(*effects))
        return cls(share=share, sizes=sizes / sizes.sum(), weights=weights, least=least, most=most)

    @functools.cached_property
    def largest_weight(self) -> np.ndarray:
        """(S,) largest weight that false reports can have in the estimate of each value."""
        largest: np.ndarray = (self.weights * self._false_shares(self.weights)).sum(axis=0)
        return largest

    def among(self, parts: np.ndarray, sizes: np.ndarray, weights: np.ndarray) -> Lies:
        """The same lies if all of them can be in a part of the reports, one part for each value.

        Args:
            parts: (S,), shares of these parts in all reports.
            sizes, weights: (A, S), of the versions within them.
        """
        share = np.minimum(self.share / np.maximum(parts, _NOTHING), _NEARLY_ALL)
        return dataclasses.replace(self, share=share, sizes=sizes, weights=weights)

    def bounds(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (S,), (S,) of the shares among honest people, see ``honest_bounds``.

        Args:
            low, high: (S,), ends of intervals of the estimates from all reports, not clipped.
        """
        return self.furthest(low, up=False).share, self.furthest(high, up=True).share

    def furthest(self, end: np.ndarray, up: bool) -> Pushed:
        """Largest or smallest (end - sum_v w_v b_v A_v) / (1 - sum_v w_v b_v), over all false shares b_v of versions.

        In each step, lies fill one version after the other, in the order of what a lie changes if the share is that of
        the last step (Dinkelbach 1967, for a continuous knapsack). The share moves in one direction, and there are
        finitely many orders.

        Args:
            end: (S,), estimates from all reports, or ends of their intervals, not clipped.
            up: the largest shares; otherwise the smallest ones.
        """
        effects, way = (self.least, 1) if up else (self.most, -1)
        share, weight, effect = end, np.zeros(len(end)), effects.mean(axis=0)
        while True:
            lied = self.weights * self._false_shares(way * self.weights * (share - effects))
            weights = lied.sum(axis=0)
            found = (end - (lied * effects).sum(axis=0)) / (1 - weights)
            better = way * (found - share) > 0
            if not better.any():
                return Pushed(share=share, weight=weight, effect=effect)
            parts = lied / np.where(weights > 0, weights, 1)
            share = np.where(better, found, share)
            weight = np.where(better, weights, weight)
            effect = np.where(better, (parts * effects).sum(axis=0), effect)

    def _false_shares(self, gains: np.ndarray) -> np.ndarray:
        """(A, S) false shares of versions that gain most; all together, at most ``share`` of all reports are false.

        Args:
            gains: (A, S), what is gained if all reports of a version are false; where it is below 0, none are.
        """
        sizes = np.broadcast_to(self.sizes.reshape(len(self.sizes), -1), gains.shape)
        sizes = np.maximum(sizes, _NOTHING)
        order = np.argsort(-gains / sizes, axis=0, kind="stable")
        ordered = np.take_along_axis(sizes, order, axis=0)
        filled = np.clip((self.share - (np.cumsum(ordered, axis=0) - ordered)) / ordered, 0, 1)
        found = np.empty(gains.shape)
        np.put_along_axis(found, order, filled, axis=0)
        return np.where(gains < 0, 0.0, found)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Pushed:
    """The false reports that move the shares among honest people furthest from the estimates; all (S,).

    Attributes:
        share: among honest people, (estimate - weight effect) / (1 - weight).
        weight: of the false reports in the estimate.
        effect: mean of what they add.
    """

    share: np.ndarray
    weight: np.ndarray
    effect: np.ndarray


def _effects(model: Model, values: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(S,), (S,): smallest and largest number that one report adds to n times the estimate of each value."""
    least, most = model.mechanism.smallest_effects, model.mechanism.largest_effects
    assert least is not None, "need_of_liars"
    symbols = model.alphabet.symbol_table(values, 1)[0]
    return least[symbols], most[symbols]


def honest_bounds(
    model: Model, values: tuple[str, ...], low: np.ndarray, high: np.ndarray, liars: float
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the shares among honest people, from intervals of the estimates from all reports.

    Of n reports, n b come from liars, who send any valid reports and may know all others. The unbiased estimate is a
    mean over reports, so it is (1 - b) H + b A, with H the estimate from the honest reports alone and A the mean of
    what the liars' reports add, between a_min (``smallest_effects``) and a_max (``largest_effects``). Therefore

        (low - b a_max) / (1 - b)  <=  share among honest people  <=  (high - b a_min) / (1 - b)

    wherever [low, high] contains the mean of that estimate. No shorter interval is right for all liars: if all of them
    send the report with a_max, or all the one with a_min, an end is reached. As low is at most a_max and high at least
    a_min, the bounds also hold for a smaller share of liars.

    *Pooled versions* (``Lies.bounds``). Version v has the share s_v of all reports and the weight w_v, which depends on
    the numbers of reports and not on what they say, so both are known also if some reports are lies. Liars may be in
    any versions, with a share b_v of the reports of each: 0 <= b_v <= 1 and sum_v s_v b_v <= b. The pooled estimate is
    sum_v w_v ((1 - b_v) H_v + b_v A_v), so the share among honest people is at most the largest

        (high - sum_v w_v b_v a_min,v) / (1 - sum_v w_v b_v)

    over all such b_v, and at least the smallest one with low and a_max,v. It is reached where lies fill one version
    after the other. A small version with a large weight can consist of lies only; as b < 1, not all versions can. With
    one version, the bounds are those above.

    Args:
        model: a collection without ``need_of_liars``.
        values: S values of the collection.
        low, high: (S,), not clipped.
        liars: b, in [0, 1).

    Returns:
        low (S,), high (S,), not clipped.

    Source: the largest effect is the attack of Cheu, Smith and Ullman 2021 (Manipulation attacks in local differential
    privacy) and Cao, Jia and Gong 2021; the interval is the identification region of a mean under contamination by a
    share of at most b (Horowitz and Manski 1995).
    """
    return Lies.of(model, values, liars).bounds(low, high)
