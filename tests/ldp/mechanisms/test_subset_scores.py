"""Sets of two sizes: what supports in them weigh, and what the sizes say, against the score written out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import (
    as_array,
    enumerated,
    exact_channel,
    label,
)
from tests.support.ldp.subset_sizes import share_of, sizes_of_people, two_sizes
from tests.support.tolerance import RATE, binomial_limits, generator, normal_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.mechanisms import UtilityOptimizedSubsetSelection


def score_decoder(mechanism: UtilityOptimizedSubsetSelection, share: float) -> np.ndarray:
    """(Y, K): the estimate from each payload alone: the point with this share of sensitive symbols, all of a kind
    equally frequent, plus the score there, each of its three parts over its information."""
    K, v, gain = mechanism.num_symbols, mechanism.num_sensitive, mechanism.gain
    shares, d, sensitive = sizes_of_people(mechanism), np.arange(1.0, v + 1), np.arange(K) < v
    plain, mixed = d * gain + v, share * d * gain + v
    j1 = v * gain**2 / (v - 1) * (shares @ (d * (v - d) / (mixed * plain)))
    supports = mechanism.supports(enumerated(mechanism)[0]).astype(np.float64)
    size = supports[:, :v].sum(axis=1, keepdims=True)
    score = (1 + gain * supports * sensitive) / (1 + gain * share * size / v) * (size > 0)
    point = np.where(sensitive, share / v, (1 - share) / max(K - v, 1))
    own, other = (
        np.diag(group) - np.outer(group, group) / max(group.sum(), 1) for group in (1.0 * sensitive, 1.0 * ~sensitive)
    )
    if v == K:
        return point + score @ own / j1
    score = score + (K - v) / (1 - share) * supports * ~sensitive
    j2 = (K - v) * gain / (1 - share) * (shares @ (d / plain))
    j3 = v * (K - v) * gain / (K * (1 - share)) * (shares @ (d / mixed))
    between = np.where(sensitive, K - v, -v)
    return point + score @ own / j1 + score @ other / j2 + score @ np.outer(between, between) / (between @ between) / j3


def without_share_one(mechanism: UtilityOptimizedSubsetSelection) -> float:
    """The share, or one so near to 1 that the score is defined."""
    share = share_of(mechanism)
    return min(share, 1 - 1e-9) if mechanism.num_sensitive < mechanism.num_symbols else share


@two_sizes
def test_estimates_are_the_score_at_the_least_favourable_share(mechanism):
    inverse = enumerated(mechanism)[3]
    if mechanism.epsilon_inf is None:
        expected = score_decoder(mechanism, without_share_one(mechanism))
        np.testing.assert_allclose(inverse, expected, atol=1e-7 * abs(inverse).max())
    np.testing.assert_allclose(inverse.sum(axis=1), 1, atol=1e-13 * abs(inverse).max())


@two_sizes
def test_memos_are_weighed_as_the_reports_are(mechanism):
    """Given the memos, reports estimate on average what the memos would, by the memo's own numbers."""
    if mechanism.epsilon_inf is None:
        return
    payloads, rows = mechanism.memo.channel()  # not from the cache: a memo compares equal to its mechanism
    channel = np.array([[float(q) for q in row] for row in rows])
    repeat = mechanism.repeat_weight / 2.0**64
    inverse = dict(zip(exact_channel(mechanism)[0], enumerated(mechanism)[3]))
    noise = sum(float(share) * inverse[payload] for payload, share, _ in mechanism.noise_law())
    averages = np.array([repeat * inverse[payload] + (1 - repeat) * noise for payload in payloads])
    cells = mechanism.memo.count(as_array(payloads), np.arange(len(payloads)), len(payloads))
    counts = CohortCounts(np.ones(len(payloads), dtype=np.int64), cells)
    scale = abs(averages).max()
    np.testing.assert_allclose(mechanism.memo.invert(counts), averages, atol=1e-12 * scale)
    shares = generator("memo", label(mechanism)).dirichlet(np.ones(mechanism.num_symbols))
    expected = channel @ shares @ averages**2 - shares**2
    np.testing.assert_allclose(mechanism.memo.variances(shares), expected, atol=1e-12 * scale**2)


# ---------------------------------------------------------------------- what is made of them


CLOSED = Collection.from_json(
    {
        "id": "two-sizes",
        "version": 1,
        "alphabet": {"id": "closed", "values": list("abcdefg"), "sensitive": list("abcd")},
        "num_cohorts": 1,
        "mechanism": {"id": "uss", "epsilon": 1.0, "subset_size": 1, "larger_share": 0.3},
    }
)
FREQUENCIES = np.array([0.2, 0.1, 0.004, 0.0, 0.6, 0.096, 0.0])


def simulated(num_windows: int, num_reports: int) -> list[CohortCounts]:
    """Windows of people who hold FREQUENCIES; symbols are in the order of values, sensitive ones first."""
    rng = generator("two sizes", num_windows, num_reports)
    _, rows = exact_channel(CLOSED.mechanism)
    law = np.array([[float(q) for q in row] for row in rows]) @ FREQUENCIES
    numbers = rng.multinomial(num_reports, law / law.sum(), num_windows)
    cells = enumerated(CLOSED.mechanism)[2]
    return [CohortCounts(np.array([num_reports]), row[np.newaxis] @ cells) for row in numbers]


@pytest.mark.parametrize("num_reports", [300, 20_000])
def test_intervals_cover(num_reports):
    """From 94 to 99 % of windows; rare ones may be covered more often."""
    windows = 2000
    estimates = [CLOSED.estimate(counts, "empirical") for counts in simulated(windows, num_reports)]
    covered = sum((e.ci_low <= FREQUENCIES) & (e.ci_high >= FREQUENCIES) for e in estimates)
    fewest, _ = binomial_limits(windows, 0.94, RATE / len(FREQUENCIES))
    _, most = binomial_limits(windows, 0.99, RATE / len(FREQUENCIES))
    assert (covered >= fewest).all(), covered
    assert (covered[FREQUENCIES >= 0.09] <= most).all(), covered
    raw = np.array([e.raw_frequencies for e in estimates])
    errors = np.sqrt(CLOSED.mechanism.variances(FREQUENCIES) / num_reports / windows)
    assert (abs(raw.mean(axis=0) - FREQUENCIES) <= normal_limit(len(FREQUENCIES)) * errors).all()


def test_what_nobody_sent_in_clear_is_shown_as_nothing():
    """Sizes of sets move the raw frequencies of all non-sensitive values; decoders go by own counts."""
    (counts,) = simulated(1, 20_000)
    unseen = CLOSED.estimate(counts, "eb")
    assert not counts.cells[0, 6]
    assert unseen.raw_frequencies[6] != 0 and unseen.ci_low[6] == 0 < unseen.ci_high[6]
    assert 0 <= unseen.frequencies[6] < 1 / counts.total
    raw = CLOSED.estimate(counts, "empirical")
    np.testing.assert_array_equal(raw.frequencies, raw.raw_frequencies)
    assert raw.raw_frequencies.sum() == pytest.approx(1, abs=1e-12)
