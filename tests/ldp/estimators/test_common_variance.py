"""What hash functions add to an estimate: the same error in every window, of the variance in ``common_variances``.

Collections with different seeds are independent, so means over them are normal; limits are those of the suite for
Student's law.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from labs.experiments.drawn_counts import draw_counts
from tests.support.ldp.made_collections import made
from tests.support.tolerance import RATE, generator
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.solvers.observation import common_noise, signed_common_noise

LISTED = tuple(f"listed {i}" for i in range(12))
SEEDS, WINDOWS, PEOPLE = 80, 3, 3000


def collection(seed: int) -> Collection:
    return made(
        {"id": "hashed", "num_buckets": 8, "seed": seed}, {"id": "krr", "epsilon": 4.0}, num_cohorts=8, id="open"
    )


def of_seed(seed: int, hidden: float) -> tuple[float, float]:
    """Mean square over values of the error that windows have in common, and the mean common variance."""
    of, rng = collection(seed), generator("common", seed, hidden)
    shares = np.array([*np.full(12, (1 - hidden) / 12), hidden])
    errors, told = [], []
    for _ in range(WINDOWS):
        counts = draw_counts(of, (*LISTED, "hidden"), rng.multinomial(PEOPLE, shares), rng)
        estimate = of.estimate(counts, "empirical", LISTED)
        errors.append(estimate.raw_frequencies - shares[:-1])
        told.append(estimate.common_variances)
    products = [
        errors[i] * errors[j] for i in range(WINDOWS) for j in range(i)
    ]  # what windows do not share is 0 in mean
    return float(np.mean(products)), float(np.mean(told))


@pytest.mark.parametrize("hidden", [0.0, 0.5])
def test_common_variance_is_that_of_the_common_error(hidden: float) -> None:
    found, told = np.array([of_seed(seed, hidden) for seed in range(SEEDS)]).T
    limit = stats.t.isf(RATE / 2, SEEDS - 1) / np.sqrt(SEEDS)
    assert abs(np.mean(found - told)) <= limit * np.std(found - told, ddof=1)
    assert (np.mean(told) > limit * np.std(told, ddof=1)) == (hidden > 0)


def test_closed_alphabets_have_none() -> None:
    of = made({"id": "closed", "values": ["a", "b", "c"]}, {"id": "krr", "epsilon": 1.0}, id="closed")
    batch = of.perturb(["a"] * 500, generator("closed"))
    assert of.estimate(of.count(batch), "empirical").common_variances is None


def test_to_first_order_it_is_the_common_noise_and_it_has_a_sign() -> None:
    rng = generator("signed")
    known, degrees = np.full(16, 0.5), 16 * 7.0
    for excess in (0.0, 0.3):
        squares = (known[0] + excess) * rng.chisquare(7, 16)
        signed = signed_common_noise(squares, degrees, known)
        assert max(signed, 0) == pytest.approx(common_noise(squares, degrees, known), abs=1e-9)
    assert signed_common_noise(np.full(16, 1.0), degrees, known) == pytest.approx(16 / degrees - 0.5)
