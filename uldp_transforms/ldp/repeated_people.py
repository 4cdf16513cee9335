"""Effect of repeated reports of the same people, with and without memos, on the uncertainty of estimates.

For n reports of people with r_i <= m reports each, n times the variance of the mean is

    (V - L) + L sum_i r_i^2 / n  <=  V + (m - 1) L,

with V the variance of one report and L the covariance of two reports of a person: the variance of memos for people with
    constant values (see ``utility.variance_of_mean``), less for others; f (1 - f) without memos. Equality holds if all
    people report m times.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.model import Model, keeps_memos
from uldp_transforms.ldp.solvers.intervals import ShownIntervals
from uldp_transforms.ldp.solvers.question import Intervals

_SHARES = np.linspace(0, 1, 65)


def with_repeated_people(model: Model, estimate: Estimate, times: int | None) -> Estimate:
    """The estimate of a window in which each person sends at most ``times`` reports.

    Standard errors and intervals are those of the worst case, in which everybody sends that number. The noise of memos
    is part of the common variances, because windows with the same people share it. Displayed shares are unchanged.

    Args:
        model: the collection's alphabet and mechanism.
        estimate: estimate that treats all reports as those of different people.
        times: m, at least 1. None: unknown; the intervals are those for 1. The goodness of fit assumes independent
            reports, so with memos it is tested only for 1.
    """
    if keeps_memos(model) and times != 1:
        estimate = dataclasses.replace(estimate, fit_p_value=None)
    times = times or 1
    if times == 1 and not keeps_memos(model):
        return estimate
    lasting = _lasting(model, estimate)
    stretch = np.sqrt(1 + (times - 1) * lasting)
    widest = float(stretch.max(initial=1.0))
    changed = dataclasses.replace(
        estimate,
        standard_errors=estimate.standard_errors * stretch,
        unexplained_standard_error=estimate.unexplained_standard_error * widest,
        common_variances=_common(estimate, lasting, times) if keeps_memos(model) else estimate.common_variances,
    )
    if times == 1:
        return changed
    raw, rest = estimate.raw_frequencies, estimate.raw_unexplained_mass
    is_plain = model.alphabet.has_own_symbol(estimate.values) & (not keeps_memos(model))
    unclipped = functools.partial(_longer, estimate.unclipped, raw, stretch)
    return dataclasses.replace(
        changed,
        intervals=ShownIntervals(unclipped, raw, estimate.frequencies),
        unclipped=unclipped,
        in_blocks=estimate.in_blocks and estimate.in_blocks.repeated(times, is_plain),
        unexplained_intervals=functools.partial(_stretched, estimate.unexplained_intervals, rest, widest),
    )


def _common(estimate: Estimate, lasting: np.ndarray, times: int) -> np.ndarray:
    """(S,): the variance that windows of the same people share, relative to the shares of these people.

    It is L / n without the sampling variance of people, f (1 - f) / n, plus that of hash functions. In hashed alphabets
    it also includes the random assignment of people to the cohorts in which they stay.
    """
    hashed = np.maximum(0.0 if estimate.common_variances is None else estimate.common_variances, 0)
    shares = np.clip(estimate.raw_frequencies, 0, 1)
    of_people = lasting * np.maximum(estimate.standard_errors**2 - hashed, 0)
    common: np.ndarray = hashed + times * np.maximum(of_people - shares * (1 - shares) / estimate.num_reports, 0)
    return common


def _lasting(model: Model, estimate: Estimate) -> np.ndarray:
    """(S,): L / V, the share of the variance of a report that all reports of a person have in common.

    For a value with shared hashed symbols, the frequency is that of its symbol, other values included.
    """
    alphabet, mechanism = model.alphabet, model.mechanism
    if mechanism.num_hashes > 1:
        return np.ones(len(estimate.values))
    own = alphabet.has_own_symbol(estimate.values)
    listed = frozenset(alphabet.clear_values)
    clear = np.array([value in listed for value in estimate.values], dtype=bool)
    symbols = np.zeros(len(own), dtype=np.int64)  # of hashed values, the first bucket represents all
    if own.any():
        symbols[own] = alphabet.symbol_table(tuple(value for value, single in zip(estimate.values, own) if single), 1)[
            0
        ]
        clear[own] = symbols[own] >= mechanism.num_sensitive
    clear &= mechanism.num_sensitive < mechanism.num_symbols
    shares = np.clip(estimate.raw_frequencies, 0, 1)
    buckets = np.where(clear, mechanism.num_symbols - mechanism.num_sensitive, alphabet.num_sensitive)
    shares = np.where(own, shares, shares + (1 - shares) / buckets)
    lasting = np.zeros(len(shares))
    protected = [(~clear & np.isin(symbols, one.symbols), one.symbols[0]) for one in mechanism.guarantees]
    for chosen, symbol in (*protected, (clear, mechanism.num_symbols - 1)):
        if chosen.any():
            lasting[chosen] = np.interp(shares[chosen], _SHARES, _curve(mechanism, symbol))
    return lasting


@functools.lru_cache(maxsize=64)
def _curve(mechanism: Mechanism, symbol: int) -> np.ndarray:
    """L / V of a symbol at the shares ``_SHARES``: the largest of the cases that all others are sensitive, of one level
    if there are levels, or none is."""
    size, v = mechanism.num_symbols, mechanism.num_sensitive
    memo = mechanism.memo if isinstance(mechanism, SetReportMechanism) and mechanism.epsilon_inf is not None else None
    lasting = np.zeros(len(_SHARES))
    for others in (*(one.symbols for one in mechanism.guarantees), range(v, size)):
        places = np.array([place for place in others if place != symbol], dtype=np.int64)
        if not len(places):
            continue
        for at, share in enumerate(_SHARES):
            frequencies = np.zeros(size)
            frequencies[places], frequencies[symbol] = (1 - share) / len(places), share
            whole = max(float(mechanism.variances(frequencies)[symbol]), 1e-300)
            stays = share * (1 - share) if memo is None else float(memo.variances(frequencies)[symbol])
            lasting[at] = max(lasting[at], stays / whole)
    return lasting


def _longer(
    intervals: Intervals,
    centres: np.ndarray,
    stretch: np.ndarray,
    confidence: Confidence,
    strict: bool = False,
    at_edge: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals extended on both sides of an estimate by the factor ``stretch``."""
    low, high = intervals(confidence, strict, at_edge)
    centres = np.clip(centres, 0, 1) if at_edge else centres
    return np.minimum(low, centres + stretch * (low - centres)), np.maximum(high, centres + stretch * (high - centres))


def _stretched(
    ends: Callable[[float], tuple[float, float]], centre: float, stretch: float, confidence: float
) -> tuple[float, float]:
    """The interval of one share, extended on both sides of ``centre`` and cut to [0, 1]."""
    low, high = ends(confidence)
    longer_low, longer_high = (float(np.clip(centre + stretch * (end - centre), 0, 1)) for end in (low, high))
    return min(low, longer_low), max(high, longer_high)
