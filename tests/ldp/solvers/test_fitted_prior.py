"""The fitted prior against direct enumeration, and what must hold of any data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.tolerance import generator, normal_limit
from uldp_transforms.ldp.solvers import fitted_prior as module
from uldp_transforms.ldp.solvers.fitted_prior import bounded_weights, posterior


def direct(noisy: np.ndarray, error: float, atoms: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and variances by Bayes' rule, one value at a time."""
    means, variances = [], []
    for y in noisy:
        exponents = -((y - atoms) ** 2) / (2 * error**2)
        joint = weights * np.exp(exponents - exponents.max())
        joint /= joint.sum()
        means.append(joint @ atoms)
        variances.append(joint @ (atoms - means[-1]) ** 2)
    return np.array(means), np.array(variances)


@pytest.mark.parametrize("error", [1e-4, 0.003, 0.2])
@pytest.mark.parametrize("size", [1, 7, 500])
def test_the_posterior_is_that_of_the_prior(monkeypatch, error, size):
    """Without bins, whose effect ``test_bins_move_no_mean_by_more_than_a_bin`` limits."""
    monkeypatch.setattr(module, "EXACT", size)
    rng = generator("posterior", error, size)
    truth = rng.dirichlet(np.full(size, 0.3)) if size > 1 else np.array([0.4])
    noisy = truth + error * rng.normal(size=size)
    found = posterior(noisy, error, 1 / size)
    means, variances = direct(noisy, error, found.atoms, found.weights)
    np.testing.assert_allclose(found.means, means, atol=1e-6 * max(error, 1 / size))
    np.testing.assert_allclose(found.variances, variances, atol=1e-6 * error**2 + 1e-12)


@given(
    st.lists(st.floats(-1, 2), min_size=1, max_size=60), st.floats(1e-6, 10), st.sampled_from([1e-6, 0.01, 0.3, 1.0])
)
def test_of_any_data(noisy, error, bound):
    found = posterior(np.array(noisy), error, bound)
    assert found.weights.sum() == pytest.approx(1)
    assert (found.weights >= 0).all()
    assert found.weights @ found.atoms <= bound * (1 + 1e-9)
    assert (found.means >= 0).all()
    assert (found.means <= found.atoms.max() * (1 + 1e-12)).all()
    assert (found.variances >= 0).all()
    assert 0 <= found.fitted <= len(noisy) * (1 + 1e-12)
    order = np.argsort(noisy)
    assert (np.diff(found.means[order]) >= -1e-9 * found.atoms.max()).all(), "a larger value has a larger mean"


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=40), st.floats(1e-5, 0.9), st.sampled_from([1e-9, 1e-3, 1.0, 1e6])
)
@example([0.0, 0.0, 1.0], 0.5, 0.001)
def test_a_bound_that_binds_is_attained_whatever_the_weight_of_zero(numbers, bound, of_zero):
    """By the level that halving a bracket finds too; without weight at 0 the bound can be out of reach from above."""
    shares = np.array(numbers) + 1e-9
    shares[0] *= of_zero
    shares /= shares.sum()
    atoms = np.append(0.0, np.geomspace(1e-7, 1, len(shares) - 1))
    weights = bounded_weights(shares, atoms, bound)
    if shares @ atoms <= bound:
        assert weights is shares
        return
    low, high = 0.0, 1 / bound
    for _ in range(50):
        level = (low + high) / 2
        low, high = (level, high) if shares @ ((atoms - bound) / (1 + level * (atoms - bound))) > 0 else (low, level)
    expected = shares[1:] / (1 + high * (atoms[1:] - bound))
    assert weights[1:] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert weights @ atoms == pytest.approx(bound, rel=1e-6) or high * bound == pytest.approx(1)


@pytest.mark.parametrize(("size", "error"), [(97, 0.005), (500, 1e-3), (3000, 2e-4)])
def test_bins_move_no_mean_by_more_than_a_bin(monkeypatch, size, error):
    rng = generator("bins")
    truth = 1 / np.arange(1, size + 1)
    truth /= truth.sum()
    noisy = truth + error * rng.normal(size=size)
    binned = posterior(noisy, error, 1 / size)
    monkeypatch.setattr(module, "EXACT", size)
    exact = posterior(noisy, error, 1 / size)
    assert abs(binned.means - exact.means).max() <= module._BIN * error
    assert binned.fitted == pytest.approx(exact.fitted, rel=module._BIN)


def test_many_values_within_the_noise_do_not_sum_to_more_than_everybody():
    size, error = 20_000, 1e-3
    noisy = 1 / size + error * generator("sum").normal(size=size)
    assert np.maximum(noisy, 0).sum() > 5
    means = posterior(noisy, error, 1 / size).means
    assert means.sum() <= 1.05
    assert np.linalg.norm(means - 1 / size) < 0.05 * np.linalg.norm(noisy - 1 / size)


def test_means_are_nearer_to_the_truth_than_what_they_are_made_of():
    """In all of these."""
    rng = generator("nearer")
    for size in (50, 400, 5000):
        for power in (0.0, 1.0, 2.0):
            truth = np.arange(1, size + 1) ** -power
            truth /= truth.sum()
            for error in (0.1 / size, 1 / size, 10 / size):
                noisy = truth + error * rng.normal(size=size)
                means = posterior(noisy, error, 1 / size).means
                limit = size + normal_limit() * np.sqrt(2 * size)  # chi-square
                assert ((means - truth) ** 2).sum() <= limit * error**2
