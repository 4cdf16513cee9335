"""What is believed of prefixes before they are scored."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from tests.support.tolerance import generator
from uldp_transforms.ldp.alphabets import Prefixes
from uldp_transforms.ldp.alphabets.prefixes import END
from uldp_transforms.ldp.discovery.belief import Beliefs, evidence
from uldp_transforms.ldp.discovery.discover import false_discovery_rates

ALPHABET = Prefixes(num_buckets=4, tokens=("a", "b", "c", "d"), lengths=(2, 3, None))


@pytest.mark.parametrize("score", [-4.0, -1.0, 0.0, 1.5, 4.0, 9.0])
def test_evidence_is_the_likelihood_ratio_of_a_half_normal_mean(score):
    """Against the integral over means, of standard deviation 5, of normal scores around them."""
    density = integrate.quad(lambda mean: 2 * stats.norm.pdf(mean / 5) / 5 * stats.norm.pdf(score - mean), 0, 60)[0]
    expected = np.log(density) - stats.norm.logpdf(score)
    assert float(evidence(np.array([score]))[0]) == pytest.approx(expected, rel=1e-6)


def test_a_prefix_is_followed_by_an_end_or_by_any_token():
    """What is believed of all continuations of a prefix is together what is believed of the prefix."""
    beliefs = Beliefs(ALPHABET)
    for last in (False, True):
        assert np.exp(beliefs.of_block([(1, 2)], last)).sum() == pytest.approx(np.exp(beliefs.of((1, 2))))
    beliefs.learn({(1, 2): 8.0}, [(1, 2)])
    known = np.exp(beliefs.of_block([(1, 2)], last=False))
    assert 0.99 < known.sum() < 1
    assert known[0, END] == pytest.approx(0.2 * known.sum())
    assert np.exp(beliefs.of((1, 2, 3))) == pytest.approx(0.2 * known.sum())  # four tokens, of four parts in five
    assert np.exp(beliefs.of((1, 2, 3, 4, END))) == pytest.approx(0.2 * known[0, 3])


def test_blocks_say_what_single_sequences_say():
    beliefs = Beliefs(ALPHABET)
    beliefs.learn({(1, 2): 5.0, (3,): 1.0, (1, 2, END): 4.0}, [(1, 2)])
    beliefs.learn({(1, 2, 4): 6.0}, [(1, 2, 4)])
    for parent in ((), (1,), (1, 2)):
        block = beliefs.of_block([parent], last=False)[0]
        assert block == pytest.approx([beliefs.of((*parent, number)) for number in range(5)])
    block = beliefs.of_block([(1, 2, 4)], last=True)[0]
    endings = [(END,), *((number, END) for number in range(1, 5))]
    assert block == pytest.approx([beliefs.of((1, 2, 4, *ending)) for ending in endings])


def test_weighted_false_discovery_rates_hold_for_unequal_hypotheses():
    """10,000 repetitions of 40 nulls and 4 values that people hold; weights favour some of either, and add up."""
    rng, weights = generator("weights"), np.repeat([4.0, 0.5], [6, 38]) / 43 * 44
    shares = []
    for _ in range(10_000):
        scores = rng.normal(size=44)
        scores[4:8] += 3.5
        rates = false_discovery_rates(stats.norm.sf(scores), 44 / weights)
        false = np.delete(rates <= 0.05, np.s_[4:8]).sum()
        shares.append(false / max((rates <= 0.05).sum(), 1))
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) <= 0.05 + stats.norm.isf(1e-6) * error
    assert np.mean(shares) >= 0.05 * 0.5  # it would not hold without the division by the weights
