"""The fit of hashed estimates: even p-values where all is well, and small ones as often as computed where it is not."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.campaigns.attacks import window
from tests.support.calibration import windows
from tests.support.cases import ALL_COLLECTIONS, VALUES
from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection

WORDS = tuple(f"word {i}" for i in range(60))
ZIPF = 1 / np.arange(1, 61)
SHARES = ZIPF / ZIPF.sum()
K, C, N = 8, 32, 200_000
LEVEL = 1e-3


def hashed(epsilon: float = 1.0) -> Collection:
    alphabet = {"id": "hashed", "num_buckets": K, "seed": 3}
    return made(alphabet, {"id": "krr", "epsilon": epsilon}, num_cohorts=C, id="words")


def bucket_shares(item: Collection, shares: np.ndarray) -> np.ndarray:
    """(C, K): which share of the people of a cohort is in which bucket."""
    result = np.zeros((C, K))
    np.add.at(result, (np.arange(C)[:, np.newaxis], item.alphabet.symbol_table(WORDS, C)), shares)
    return result


def report_law(item: Collection, buckets: np.ndarray) -> np.ndarray:
    """k-RR."""
    gain = math.expm1(item.mechanism.epsilon)
    return (1 + gain * buckets) / (K + gain)


def misfit(item: Collection, counts: CohortCounts, words: tuple[str, ...]) -> tuple[float, float]:
    """Residuals of weighted least squares over centred equations, and degrees of freedom; k-RR, whole matrices.

    The residuals are a weighted sum of chi-squares, with the eigenvalues of the covariance of a report as weights.
    """
    gain = math.expm1(item.mechanism.epsilon)
    frequencies = ((K + gain) * counts.cells / counts.num_reports[:, np.newaxis] - 1) / gain
    members = item.alphabet.symbol_table(words, C)[:, np.newaxis, :] == np.arange(K)[:, np.newaxis]
    matrix = (members - members.mean(axis=1, keepdims=True)).reshape(C * K, len(words))
    weights = np.sqrt(np.repeat(counts.num_reports, K))
    target = (frequencies - frequencies.mean(axis=1, keepdims=True)).ravel()
    solution = np.linalg.lstsq(matrix * weights[:, np.newaxis], target * weights, rcond=None)[0]
    residuals = float((weights**2 * (target - matrix @ solution) ** 2).sum())
    plausible = np.maximum((matrix @ solution).reshape(C, K) + 1 / K, 0)
    laws = report_law(item, plausible / plausible.sum(axis=1, keepdims=True))
    covariances = [((K + gain) / gain) ** 2 * (np.diag(law) - np.outer(law, law)) for law in laws]
    eigenvalues = np.concatenate([np.linalg.eigvalsh(covariance)[1:] for covariance in covariances])
    mean, spread = eigenvalues.mean(), (eigenvalues**2).mean()
    degrees = C * (K - 1) - len(words)
    return residuals * mean / spread, degrees * mean**2 / spread


def honest(rng: np.random.Generator, item: Collection, shares: np.ndarray, n: int) -> CohortCounts:
    law = report_law(item, bucket_shares(item, shares))
    return window(rng, n, C, lambda rng, sizes: rng.multinomial(sizes, law))


def p_value(item: Collection, counts: CohortCounts, words: tuple[str, ...] = WORDS) -> float:
    found = item.estimate(counts, "empirical", words).fit_p_value
    assert found is not None
    return found


HONEST = [*itertools.product(("zipf", "even", "skewed"), (10_000, N), (1.0, 4.0))]
FAST = (("zipf", N, 1.0), ("even", 10_000, 4.0), ("skewed", 10_000, 1.0))


@pytest.mark.parametrize(
    ("population", "n", "epsilon"),
    [case if case in FAST else pytest.param(*case, marks=pytest.mark.slow) for case in HONEST],
)
def test_honest_windows_have_even_p_values(population, n, epsilon):
    """Complete lists; as many below 5 % and 50 % as there should be, also where one bucket has most people."""
    skewed = np.array([0.9, *np.full(59, 0.1 / 59)])
    shares = {"zipf": SHARES, "even": np.full(60, 1 / 60), "skewed": skewed}[population]
    item, rng, num_windows = hashed(epsilon), generator("honest", population, n, epsilon), 150
    found = np.array([p_value(item, honest(rng, item, shares, n)) for _ in range(num_windows)])
    for level in (0.05, 0.5):
        low, high = binomial_limits(num_windows, level)
        assert (low if epsilon == 1 else 0) <= (found <= level).sum() <= high  # above 1 they are a little too large


@pytest.mark.parametrize("name", ["hashed-rappor", "hashed-ss", "hashed-listed-urr", "hashed-listed-urap",
                                  "hashed-clear-uss", "permuted-krr", "permuted-rappor"])  # fmt: skip
def test_every_mechanism_fits_its_own_reports(name):
    item, num_windows = ALL_COLLECTIONS[name], 100
    known = item.alphabet.known_values
    rng = generator("own", name)
    shares = np.array([0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    found = [
        item.estimate(counts, "empirical", None if known else VALUES).fit_p_value
        for counts in windows(item, VALUES, shares, num_windows, 2000, rng=rng)
    ]
    low, high = binomial_limits(num_windows, 0.5)
    assert low <= sum(p <= 0.5 for p in found) <= high
    assert sum(p <= 0.05 for p in found) <= binomial_limits(num_windows, 0.05)[1]


def seen(rng: np.random.Generator, words: tuple[str, ...], law: np.ndarray, stuck: int, num_windows: int = 40):
    """In how many windows the fit is below the level, and the power of a chi-square test of the expected counts."""
    item = hashed()
    sizes = np.full(C, (N - stuck) / C)
    expected = sizes[:, np.newaxis] * law
    expected[0, 3] += stuck
    sizes[0] += stuck
    shift, degrees = misfit(item, CohortCounts(*(np.rint(a).astype(np.int64) for a in (sizes, expected))), words)
    power = float(stats.ncx2.sf(stats.chi2.isf(LEVEL, degrees), degrees, shift))
    found = 0
    for _ in range(num_windows):
        counts = window(rng, N - stuck, C, lambda rng, sizes: rng.multinomial(sizes, law))
        counts.num_reports[0] += stuck
        counts.cells[0, 3] += stuck
        found += p_value(item, counts, words) < LEVEL
    return found, power, num_windows


@pytest.mark.parametrize("share", [0.002, 0.01])
def test_clients_that_are_stuck_in_one_cohort_are_seen(share):
    found, power, num_windows = seen(
        generator("stuck", share), WORDS, report_law(hashed(), bucket_shares(hashed(), SHARES)), round(share * N)
    )
    assert found >= binomial_limits(num_windows, 0.9 * power)[0]  # power: the variance of honest people
    assert power > (0.99 if share == 0.01 else 0)


def test_a_word_that_is_missing_from_the_list_is_seen():
    """The second one, of a tenth of the people."""
    words = (WORDS[0], *WORDS[2:])
    found, power, num_windows = seen(
        generator("missing"), words, report_law(hashed(), bucket_shares(hashed(), SHARES)), 0
    )
    assert power > 0.99
    assert found >= binomial_limits(num_windows, power)[0]


def test_fakes_that_send_even_noise_are_not_seen():
    """They make everybody's shares smaller by one factor, which the equations allow."""
    law = 0.95 * report_law(hashed(), bucket_shares(hashed(), SHARES)) + 0.05 / K
    found, power, num_windows = seen(generator("noise"), WORDS, law, 0)
    assert power == pytest.approx(LEVEL, rel=0.01)
    assert found <= binomial_limits(num_windows, LEVEL)[1]
