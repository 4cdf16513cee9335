"""Sentinels: do the counts of a window look like those of clients that follow the protocol?

Each one compares the counts with all populations of honest people at once. Its p-value comes from binomial and
hypergeometric tails, not from a limit law, so it holds for every population, every number of reports and cohorts:
honest clients make p <= a with probability at most a. docs/sentinels.md derives them.

None changes an estimate. An attacker who follows the protocol with false values is invisible to all of them; they see
broken clients, biased random generators, wrong epsilons and crude attacks.

Letters: n reports, C cohorts, K symbols of which v sensitive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.model import Model

FALSE_ALARMS = 1e-3
"""Largest probability that any sentinel fires in a window of honest reports; shared equally by those that can judge.

Which ones can depends on the collection and on what was counted, never on the reports.
"""

NOTHING_UNUSUAL = "Nothing unusual."

_OUTSIDE = 1e-5  # probability that the people with sensitive values are more or fewer than the limits say
_LEFT_OUT = 1e-18  # probability that a sum over a binomial law leaves out at each end
_TERMS = 4096  # of that sum, at most
_SMALLEST = 1e-300


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """What one sentinel says of one window.

    Attributes:
        name: of the sentinel.
        statistic: z-score or chi-square.
        p_value: honest clients make it at most a with probability at most a, whatever their values are.
        fired: p_value is below the sentinel's share of ``FALSE_ALARMS``.
        sentence: what it means, for a person.
    """

    name: str
    statistic: float
    p_value: float
    fired: bool
    sentence: str


@dataclasses.dataclass(frozen=True)
class _Judgement:
    statistic: float
    p_value: float


Sentinel = Callable[[Model, CohortCounts], _Judgement | None]


def examine(model: Model, counts: CohortCounts) -> list[Finding]:
    """The findings of all sentinels that can judge this collection; none for a window without reports."""
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
    """Sensitive symbols cannot be rarer than noise makes them: the j rarest together, for every j.

    j symbols that nobody holds are supported binomially often, j symbols that somebody holds more often. There are
    v over j sets of j symbols, and v sizes: the p-value is that of the most unusual size times both (union bound).
    That is known where a report is one symbol, and where its bits are independent; elsewhere it is one symbol alone.
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
    sets = special.gammaln(v + 1) - special.gammaln(sizes + 1) - special.gammaln(v - sizes + 1) + np.log(len(sizes))
    shares = supports / np.maximum(trials, 1)
    distances = special.rel_entr(shares, rates) + special.rel_entr(1 - shares, 1 - rates)
    bounds = np.where(shares < rates, -trials * distances, 0.0)  # of ln of the tails (Chernoff)
    best = int(np.argmin(bounds + sets))
    count, n, rate = supports[best], trials[best], rates[best]
    tail = stats.binom.cdf(count, n, rate)
    log_tail = np.log(tail) if tail > 0 else bounds[best]
    return _judgement(count - n * rate, np.sqrt(n * rate * (1 - rate)), np.exp(min(log_tail + sets[best], 0.0)))


def ceiling(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Not more reports can be in clear than the coin lets through, even if nobody held a sensitive value."""
    mechanism = model.mechanism
    rate = mechanism.reveal_rate
    if mechanism.num_sensitive == mechanism.num_symbols:
        return None
    clear, n = _in_clear(mechanism, counts), counts.total
    return _judgement(clear - n * rate, np.sqrt(n * rate * (1 - rate)), stats.binom.sf(clear - 1, n, rate))


def weight(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Bits set in all reports together are as many as people and noise explain; for independent bits.

    h own bits of each person with a sensitive value (1 to h, if hash functions collide) are set with one probability,
    all others with another. How many people that are is known, or within confidence limits from the clear reports.
    Mechanisms that report one symbol or a set of fixed size have nothing to weigh.
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
    return min(judgements, key=lambda judgement: judgement.p_value)  # z is 0 if the limits explain the bits


def histogram(model: Model, counts: CohortCounts) -> _Judgement | None:
    """For every weight, reports with so many bits set are as many as people and noise explain; needs bit patterns.

    Given its person, a report has a weight with a known probability: one for people with sensitive values (one for each
    number of own bits, 1 to h), one for the others. The p-value is that of the most unusual weight, on either side,
    times two and the number of weights (union bound).
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
    """No two bits are set together more often than independent bits; needs bit patterns.

    Nobody has two own bits, so who favours one bit of a pair does not favour the other. Given how often each of the two
    is set, they then meet at most as often as two random sets of reports of these sizes: hypergeometric. The p-value is
    that of the most unusual pair, times the number of pairs (union bound).
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
    tail = stats.hypergeom.sf(both[best] - 1, n, first[best], second[best])
    return _judgement(both[best] - mean, spread, len(both) * tail)


def cohorts(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Clients draw their cohort evenly.

    Cohort after cohort, its share of the reports that are left is binomial; Fisher's sum of the ln p, 2 (C - 1) degrees
    of freedom.
    """
    num_cohorts = model.num_cohorts
    if num_cohorts < 2:
        return None
    left = counts.num_reports[::-1].cumsum()[::-1][:-1]
    p_values = _two_sided(stats.binom, counts.num_reports[:-1], left, 1 / np.arange(num_cohorts, 1, -1))
    statistic = -2 * np.log(p_values).sum()
    return _Judgement(statistic, stats.chi2.sf(statistic, 2 * len(p_values)))


def homogeneity(model: Model, counts: CohortCounts) -> _Judgement | None:
    """Where symbols mean the same in all cohorts, a cohort has its share of each: the most unusual cell of all.

    Given how often a symbol was counted, its count in one cohort is hypergeometric; times the number of cells (union
    bound).
    """
    alphabet = model.alphabet
    listed = alphabet.known_values or alphabet.clear_values
    if model.num_cohorts < 2 or not listed or not alphabet.has_own_symbol(listed).all():
        return None
    table = counts.cells[:, 0 if alphabet.known_values else alphabet.num_sensitive : alphabet.num_symbols]
    sizes, totals, n = counts.num_reports, table.sum(axis=0), counts.total
    expected = np.outer(sizes, totals / n)
    cohort, symbol = np.unravel_index(np.argmax(special.kl_div(table, expected)), table.shape)
    count, size, total = table[cohort, symbol], sizes[cohort], totals[symbol]
    spread = np.sqrt(expected[cohort, symbol] * (1 - size / n) * (1 - total / n) * n / max(n - 1, 1))
    p_value = table.size * float(_two_sided(stats.hypergeom, count, n, total, size))
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
"""Name -> sentinel, and what it means when it fires."""


def _judgement(difference: float, spread: float, p_value: float) -> _Judgement:
    """A z-score, 0 where nothing can vary, and a p-value of at most 1."""
    return _Judgement(difference / spread if spread > 0 else 0.0, min(float(p_value), 1.0))


def _in_clear(mechanism: Mechanism, counts: CohortCounts) -> int:
    return int(counts.cells[:, mechanism.num_sensitive : mechanism.num_symbols].sum())


def _people_with_sensitive_values(mechanism: Mechanism, total: int, clear: int) -> tuple[int, int]:
    """Confidence limits of their number: everybody else is in clear with the reveal rate. Each fails with _OUTSIDE / 2.

    The reports up to the r-th clear one of the others are negative binomial.
    """
    if mechanism.num_sensitive == mechanism.num_symbols:
        return total, total
    rate = mechanism.reveal_rate
    fewest_others = clear + stats.nbinom.ppf(_OUTSIDE / 2, clear, rate) if clear else 0
    most_others = clear + 1 + stats.nbinom.isf(_OUTSIDE / 2, clear + 1, rate)
    return total - int(min(most_others, total)), total - int(min(fewest_others, total))


def _tail_of_two_binomials(ones: int, first: tuple[int, float], second: tuple[int, float], *, upper: bool) -> float:
    """Pr(X + Y >= ones) if ``upper``, else Pr(X + Y <= ones); X and Y binomial, as (trials, rate).

    Where X can be more than ``_TERMS`` numbers, neighbouring ones are taken together and the result is an upper bound:
    each group has the probability of its likeliest number and the tail of its most favourable one.
    """
    (trials, rate), other = first, stats.binom(*second)
    lowest = stats.binom.ppf(_LEFT_OUT, trials, rate)
    highest = trials - stats.binom.ppf(_LEFT_OUT, trials, 1 - rate)  # isf works with 1 - _LEFT_OUT, which is 1
    groups = int(min(highest - lowest + 1, _TERMS))
    starts = np.rint(np.linspace(lowest, highest + 1, groups + 1))
    least, most = starts[:-1], starts[1:] - 1
    likeliest = np.clip(np.floor((trials + 1) * rate), least, most)
    tail = other.sf(ones - 1 - most) if upper else other.cdf(ones - least)
    masses = (most - least + 1) * stats.binom.pmf(likeliest, trials, rate)
    return float(masses @ tail) + 2 * _LEFT_OUT


def _law_of_weight(mechanism: SetReportMechanism, own: int) -> np.ndarray:
    """(v + 1,): probability of each number of bits set in a report of a person with so many own bits."""
    v, miss = mechanism.num_sensitive, mechanism.miss
    of_own = stats.binom.pmf(np.arange(own + 1), own, miss + mechanism.delta)
    return np.convolve(of_own, stats.binom.pmf(np.arange(v - own + 1), v - own, miss))


def _bound_of_tail(counts: np.ndarray, trials: int, means: np.ndarray, *, upper: bool) -> np.ndarray:
    """At least Pr(X >= counts) if ``upper``, else Pr(X <= counts); X independent trials with these means in sum.

    Unequal trials spread less than equal ones, so the binomial tail is larger one or more from the mean (Hoeffding
    1956, theorem 4). Nearer to it the bound is 1, or the mean (Markov) where the count is 1.
    """
    if not upper:
        return _bound_of_tail(trials - counts, trials, trials - means, upper=True)
    means = np.clip(means, 0, trials)
    tails = stats.binom.sf(counts - 1, trials, means / max(trials, 1))
    near = np.where(counts == 1, np.minimum(means, 1.0), 1.0)
    return np.where(counts >= means + 1, tails, near)


def _two_sided(law: Any, count: np.ndarray, *parameters: Any) -> np.ndarray:
    """Twice the smaller tail of discrete laws, at most 1 and never 0."""
    tails = np.minimum(law.cdf(count, *parameters), law.sf(count - 1, *parameters))
    p_values: np.ndarray = np.clip(2 * tails, _SMALLEST, 1.0)
    return p_values
