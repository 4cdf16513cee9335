"""Sentinels: tests whether the counts of a window are consistent with clients that follow the protocol.

Each test holds for all populations of honest people. Its p-value is based on binomial and hypergeometric tails, not on
an asymptotic distribution, so it is valid for every number of reports and cohorts: for honest clients, p <= a with
probability at most a. docs/decisions/0012-sentinels.md has the derivations.

Sentinels do not change estimates. They cannot detect an attacker who follows the protocol with false values; they
detect broken clients, biased random generators, wrong epsilons and crude attacks.

Notation: n reports, C cohorts, K symbols, v of them sensitive.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.discrete_tails import Binomial, Hypergeometric, NegativeBinomial
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.model import Model

FALSE_ALARMS = 1e-3
"""Maximum probability that any sentinel fires in a window of honest reports; divided equally by the applicable ones.

Which sentinels apply depends on the collection and on the kinds of counts, never on the reports.
"""

NOTHING_UNUSUAL = "Nothing unusual."

_OUTSIDE = 1e-5  # probability that the number of people with sensitive values is outside its confidence limits
_LEFT_OUT = 1e-18  # probability that a sum over a binomial distribution omits at each end
_TERMS = 4096  # maximum number of terms of that sum
_SMALLEST = 1e-300


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """Result of one sentinel for one window.

    Attributes:
        name: name of the sentinel.
        statistic: z-score or chi-square.
        p_value: for honest clients, at most a with probability at most a, for any values of the people.
        fired: whether p_value is below the sentinel's share of ``FALSE_ALARMS``.
        sentence: explanation for readers.
        judged: of a change, number of values that could be judged; None of sentinels, which judge whole windows.
    """

    name: str
    statistic: float
    p_value: float
    fired: bool
    sentence: str
    judged: int | None = None


@dataclasses.dataclass(frozen=True)
class _Judgement:
    statistic: float
    p_value: float


Sentinel = Callable[[Model, CohortCounts], _Judgement | None]


def examine(model: Model, counts: CohortCounts) -> list[Finding]:
    """The findings of all sentinels that apply to this collection; none for a window without reports."""
    if not counts.total:
        return []
    asked = {name: judge(model, counts) for name, (judge, _) in SENTINELS.items()}
    judgements = {name: judgement for name, judgement in asked.items() if judgement is not None}
    findings = []
    for name, judgement in judgements.items():
        fired = bool(judgement.p_value < FALSE_ALARMS / len(judgements))
        findings.append(
            Finding(
                name=name,
                statistic=float(judgement.statistic),
                p_value=float(judgement.p_value),
                fired=fired,
                sentence=SENTINELS[name][1] if fired else NOTHING_UNUSUAL,
            )
        )
    return findings


def floor(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Test that sensitive symbols are not rarer than noise alone: the j rarest together, for every j.

    The count of reports that support any of j symbols is binomial if nobody holds them, and larger otherwise. There are
    v over j sets of j symbols, and v sizes: the p-value is that of the most unusual size times both (union bound). All
    sizes are tested if a report is one symbol or has independent bits; otherwise only single symbols are.
    """
    mechanism = model.mechanism
    rate = mechanism.floor_rate
    if rate is None or not isinstance(mechanism, SetReportMechanism):
        return None
    v = mechanism.num_sensitive
    rarest = np.sort(counts.cells[:, :v].sum(axis=0))
    protected = counts.total - _in_clear(mechanism, counts)
    sizes = np.arange(1, v + 1)
    trials, rates = np.full(v, counts.total), sizes * rate
    if mechanism.independent_bits:
        trials, rates = protected * sizes, np.full(v, rate)
    elif mechanism.support_size != 1:
        sizes, trials, rates = sizes[:1], np.array([protected]), rates[:1]
    supports = np.cumsum(rarest)[: len(sizes)]
    sets = _log_sets(v, len(sizes))
    shares = supports / np.maximum(trials, 1)
    distances = special.rel_entr(shares, rates) + special.rel_entr(1 - shares, 1 - rates)
    bounds = np.where(shares < rates, -trials * distances, 0.0)  # upper bounds of ln of the tails (Chernoff)
    best = int(np.argmin(bounds + sets))
    count, n, rate = supports[best], trials[best], rates[best]
    tail = Binomial.cdf(count, n, rate)
    log_tail = np.log(tail) if tail > 0 else bounds[best]
    return _judgement(count - n * rate, np.sqrt(n * rate * (1 - rate)), np.exp(min(log_tail + sets[best], 0.0)))


@functools.cache
def _log_sets(v: int, most: int) -> np.ndarray:
    """ln of the number of sets of 1 to ``most`` of v symbols, times ``most``."""
    sizes = np.arange(1, most + 1)
    sets = special.gammaln(v + 1) - special.gammaln(sizes + 1) - special.gammaln(v - sizes + 1)
    return np.asarray(sets + np.log(most))


def ceiling(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Test that the number of clear reports is not above the maximum that the reveal rate allows for any population.

    Kinds of public blocks are judged one by one; the p-value is that of the most unusual one times their number.
    """
    mechanism = model.mechanism
    parts = mechanism.clear_reports(counts)
    if mechanism.num_sensitive == mechanism.num_symbols or not len(parts[0]):
        return None
    tails = Binomial.sf(parts[0] - 1, *parts[1:])
    best = int(np.argmin(tails))
    clear, n, rate = (float(part[best]) for part in parts)
    return _judgement(clear - n * rate, np.sqrt(n * rate * (1 - rate)), len(tails) * tails[best])


def weight(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Test that the total number of set bits agrees with people and noise; for independent bits.

    For each person with a sensitive value, h own bits (1 to h, if hash functions collide) are set with one probability,
    and all others with another. The number of such people is known, or is within confidence limits from the clear
    reports. The test does not apply to mechanisms that report one symbol or a set of fixed size.
    """
    mechanism = model.mechanism
    if not isinstance(mechanism, SetReportMechanism) or not mechanism.independent_bits:
        return None
    v = mechanism.num_sensitive
    clear = _in_clear(mechanism, counts)
    bits = (counts.total - (0 if mechanism.clear_rate else clear)) * v
    ones = int(counts.cells[:, :v].sum())
    fewest, most = _people_with_sensitive_values(mechanism, counts.total, clear)
    noise, own = mechanism.miss, mechanism.miss + mechanism.delta
    outside = _OUTSIDE if v < mechanism.num_symbols else 0.0
    judgements = []
    for holders, upper in ((fewest, False), (most * min(mechanism.num_hashes, v), True)):
        tail = _tail_of_two_binomials(ones, (holders, own), (bits - holders, noise), upper=upper)
        excess = ones - holders * own - (bits - holders) * noise
        spread = np.sqrt(holders * own * (1 - own) + (bits - holders) * noise * (1 - noise))
        judgements.append(_judgement(max(excess, 0) if upper else min(excess, 0), spread, 2 * tail + outside))
    return min(judgements, key=lambda judgement: judgement.p_value)  # z is 0 if a number within the limits fits


def histogram(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Test that the number of reports of each weight (number of set bits) agrees with people and noise.

    It needs bit patterns. Given the person, a report has each weight with a known probability: one for people with
    sensitive values (one for each number of own bits, 1 to h), one for all others. The p-value is that of the most
    unusual weight, on either side, times two and the number of weights (union bound).
    """
    mechanism, v = model.mechanism, model.mechanism.num_sensitive
    if not isinstance(mechanism, SetReportMechanism) or not mechanism.independent_bits or not len(counts.patterns):
        return None
    silent = 0 if mechanism.clear_rate else _in_clear(mechanism, counts)
    weights = counts.patterns[: v + 1] - silent * (np.arange(v + 1) == 0)
    n = int(weights.sum())
    fewest, most = _people_with_sensitive_values(mechanism, counts.total, _in_clear(mechanism, counts))
    noise, *own = (_law_of_weight(mechanism, number) for number in range(min(mechanism.num_hashes, v) + 1))
    expected, tails = [], []
    for law, upper in ((np.max(own, axis=0), True), (np.min(own, axis=0), False)):
        holders = np.where((law > noise) == upper, most, fewest)
        expected.append(holders * law + (n - holders) * noise)
        tails.append(_bound_of_tail(weights, n, expected[-1], upper=upper))
    side, best = np.unravel_index(np.argmin(tails), (2, v + 1))
    mean = expected[side][best]
    outside = _OUTSIDE if v < mechanism.num_symbols else 0.0
    p_value = 2 * (v + 1) * tails[side][best] + outside
    return _judgement(weights[best] - mean, np.sqrt(max(mean * (1 - mean / max(n, 1)), 0)), p_value)


def pairs(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Test that no two bits are set together more often than independent bits; needs bit patterns.

    A person has at most one of the two bits as an own bit, so favouring one bit of a pair excludes favouring the other.
    Given the number of reports with each bit, the number with both is then at most that of two random sets of reports
    of these sizes: hypergeometric. The p-value is that of the most unusual pair, times the number of pairs
    (union bound).
    """
    mechanism, v = model.mechanism, model.mechanism.num_sensitive
    both = counts.patterns[v + 1 :]
    if not isinstance(mechanism, SetReportMechanism) or not mechanism.independent_bits or not len(both):
        return None
    n = max(counts.total - (0 if mechanism.clear_rate else _in_clear(mechanism, counts)), 1)
    ones = counts.cells[:, :v].sum(axis=0)
    first, second = (ones[bit] for bit in np.triu_indices(v, 1))
    a, b = first / n, second / n
    table = np.array([both, first - both, second - both, n - first - second + both])
    expected = n * np.array([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])
    surprise = np.where(both > expected[0], special.rel_entr(table, expected).sum(axis=0), 0.0)
    best = int(np.argmax(surprise))
    mean, spread = expected[0, best], np.sqrt(expected[0, best] * (1 - a[best]) * (1 - b[best]) * n / max(n - 1, 1))
    tail = float(Hypergeometric.sf(both[best] - 1, n, first[best], second[best]))
    return _judgement(both[best] - mean, spread, len(both) * tail)


def cohorts(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Test that clients draw their cohort uniformly.

    In sequence, each cohort's share of the remaining reports is binomial; the p-values are combined by Fisher's method,
    with 2 (C - 1) degrees of freedom.
    """
    num_cohorts = model.num_cohorts
    if num_cohorts < 2:
        return None
    left = counts.num_reports[::-1].cumsum()[::-1][:-1]
    p_values = _two_sided(Binomial, counts.num_reports[:-1], left, 1 / np.arange(num_cohorts, 1, -1))
    statistic = -2 * np.log(p_values).sum()
    return _Judgement(statistic, special.chdtrc(2 * len(p_values), statistic))


def homogeneity(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Test that each cohort has its share of each symbol, where symbols have the same meaning in all cohorts.

    Given the total count of a symbol, its count in one cohort is hypergeometric; the p-value is that of the most
    unusual cell times the number of cells (union bound).
    """
    alphabet = model.alphabet
    listed = alphabet.clear_values or alphabet.known_values
    if model.num_cohorts < 2 or not listed or not alphabet.has_own_symbol(listed).all():
        return None
    table = counts.cells[:, alphabet.num_sensitive if alphabet.clear_values else 0 : alphabet.num_symbols]
    sizes, totals, n = counts.num_reports, table.sum(axis=0), counts.total
    expected = np.outer(sizes, totals / n)
    cohort, symbol = np.unravel_index(np.argmax(special.kl_div(table, expected)), table.shape)
    count, size, total = table[cohort, symbol], sizes[cohort], totals[symbol]
    spread = np.sqrt(expected[cohort, symbol] * (1 - size / n) * (1 - total / n) * n / max(n - 1, 1))
    p_value = table.size * float(_two_sided(Hypergeometric, count, n, total, size))
    return _judgement(count - expected[cohort, symbol], spread, p_value)


SENTINELS: dict[str, tuple[Sentinel, str]] = {
    "floor": (floor, "Some sensitive symbols were reported less often than noise alone would report them."),
    "ceiling": (ceiling, "More reports were sent in clear than the protocol allows."),
    "weight": (weight, "Reports have more or fewer bits set than values and noise explain."),
    "histogram": (histogram, "Too many or too few reports have some particular number of bits set."),
    "pairs": (pairs, "Two bits are set in the same report more often than independent bits would be."),
    "cohorts": (cohorts, "Reports are not spread evenly over the cohorts."),
    "homogeneity": (homogeneity, "Cohorts report differently although their members hold the same values."),
}
"""Name -> sentinel, and the meaning of its alarm."""


def _judgement(difference: float, spread: float, p_value: float) -> _Judgement:
    """A z-score, 0 if the statistic cannot vary, and a p-value of at most 1."""
    return _Judgement(difference / spread if spread > 0 else 0.0, min(float(p_value), 1.0))


def _in_clear(mechanism: Mechanism, counts: CohortCounts) -> int:
    return int(counts.cells[:, mechanism.num_sensitive : mechanism.num_symbols].sum())


def _people_with_sensitive_values(mechanism: Mechanism, total: int, clear: int) -> tuple[int, int]:
    """Confidence limits of the number of people with sensitive values; each fails with probability _OUTSIDE / 2.

    Everybody else sends a clear report with the reveal rate, so the number of others up to their r-th clear report is
    negative binomial.
    """
    if mechanism.num_sensitive == mechanism.num_symbols:
        return total, total
    rate = mechanism.reveal_rate
    fewest_others = clear + float(NegativeBinomial.ppf(_OUTSIDE / 2, clear, rate)) if clear else 0
    most_others = clear + 1 + float(NegativeBinomial.isf(_OUTSIDE / 2, clear + 1, rate))
    return total - int(min(most_others, total)), total - int(min(fewest_others, total))


def _tail_of_two_binomials(ones: int, first: tuple[int, float], second: tuple[int, float], *, upper: bool) -> float:
    """Pr(X + Y >= ones) if ``upper``, else Pr(X + Y <= ones); X and Y binomial, as (trials, rate).

    If X has more than ``_TERMS`` possible values, neighbouring ones are grouped and the result is an upper bound: each
    group has its total probability and the tail of its most favourable value.
    """
    trials, rate = first
    lowest = Binomial.ppf(_LEFT_OUT, trials, rate)
    highest = trials - Binomial.ppf(_LEFT_OUT, trials, 1 - rate)  # isf would round 1 - _LEFT_OUT to 1
    groups = int(min(highest - lowest + 1, _TERMS))
    starts = np.rint(np.linspace(lowest, highest + 1, groups + 1))
    least, most = starts[:-1], starts[1:] - 1
    likeliest = np.clip(np.floor((trials + 1) * rate), least, most)
    tail = Binomial.sf(ones - 1 - most, *second) if upper else Binomial.cdf(ones - least, *second)
    masses = (most - least + 1) * Binomial.pmf(likeliest, trials, rate)
    return float(masses @ tail) + 2 * _LEFT_OUT


def _law_of_weight(mechanism: SetReportMechanism, own: int) -> np.ndarray:
    """(v + 1,): probabilities of the number of set bits in a report of a person with ``own`` own bits."""
    v, miss = mechanism.num_sensitive, mechanism.miss
    of_own = Binomial.pmf(np.arange(own + 1), own, miss + mechanism.delta)
    return np.convolve(of_own, Binomial.pmf(np.arange(v - own + 1), v - own, miss))


def _bound_of_tail(counts: np.ndarray, trials: int, means: np.ndarray, *, upper: bool) -> np.ndarray:
    """Upper bound of Pr(X >= counts) if ``upper``, else Pr(X <= counts); X sums independent trials with these means.

    Unequal trials have less spread than equal ones, so the binomial tail is an upper bound at distance one or more from
    the mean (Hoeffding 1956, theorem 4). Nearer to the mean the bound is 1, or the mean (Markov) if the count is 1.
    """
    if not upper:
        return _bound_of_tail(trials - counts, trials, trials - means, upper=True)
    means = np.clip(means, 0, trials)
    tails = Binomial.sf(counts - 1, trials, means / max(trials, 1))
    near = np.where(counts == 1, np.minimum(means, 1.0), 1.0)
    return np.where(counts >= means + 1, tails, near)


def _two_sided(law: Any, count: np.ndarray, *parameters: Any) -> np.ndarray:
    """Twice the smaller tail of discrete distributions, at most 1 and never 0."""
    tails = np.minimum(law.cdf(count, *parameters), law.sf(count - 1, *parameters))
    p_values: np.ndarray = np.clip(2 * tails, _SMALLEST, 1.0)
    return p_values
