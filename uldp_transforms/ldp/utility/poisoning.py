"""The largest effect of false reports on an estimate, and what is known of honest people in spite of them."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.model import Model


@dataclasses.dataclass(frozen=True, kw_only=True)
class Amplification:
    """Largest increase of n times the estimate of one symbol by one arbitrary report; an honest one adds 1 on average.

    A share b of fake reports raises the estimate of a frequency f by at most b (amplification - f). The noise that
    protects honest people also hides false reports, so a small epsilon means a large amplification.

    Attributes:
        sensitive: (1 - miss) / delta, for sensitive symbols; of the symbol with the largest effect, if they differ.
        clear: 1 / kappa, for non-sensitive symbols; None if all symbols are sensitive.

    Source: Cao, Jia and Gong 2021 (maximal gain attack), for this library's inversion.
    """

    sensitive: float
    clear: float | None


def amplification(mechanism: Mechanism) -> Amplification:
    """The largest effect of one false report on the estimate of any symbol of a kind."""
    sensitive, clear = np.split(mechanism.largest_effects, [mechanism.num_sensitive])
    return Amplification(sensitive=float(sensitive.max()), clear=float(clear.max()) if len(clear) else None)


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
    """What false reports can do to the estimates of S values.

    Attributes:
        share: largest share of false reports, in [0, 1).
        least, most: (S,), smallest and largest number that one report adds to n times each estimate.
    """

    share: float
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, model: Model, values: tuple[str, ...], share: float) -> Lies:
        """The effects of reports on these values of a collection without ``need_of_liars``."""
        least, most = model.mechanism.smallest_effects, model.mechanism.largest_effects
        assert least is not None, "need_of_liars"
        symbols = model.alphabet.symbol_table(values, 1)[0]
        return cls(share=share, least=least[symbols], most=most[symbols])


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
    lies = Lies.of(model, values, liars)
    return (low - liars * lies.most) / (1 - liars), (high - liars * lies.least) / (1 - liars)
