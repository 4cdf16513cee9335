"""Intervals of hashed, permuted and listed values: they hold for rare values as well, and with uneven cohorts.

Each window has hash functions of its own. Values are put into classes by how many people are expected to hold them,
because an average over all values would hide the rare ones.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from tests.support.tolerance import RATE, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import intervals
from uldp_transforms.ldp.estimators.observation import OwnNoise, Solution
from uldp_transforms.ldp.sampling import SeededSource

CLASSES = ("below 1", "1 to 3", "3 to 10", "above 10")
POPULATIONS = ("zipf", "steep", "flat", "half")
UNLISTED = 40


def shares_of(population: str, size: int) -> np.ndarray:
    ranks = np.arange(1, size + 1)
    shares = {
        "zipf": 1 / ranks,
        "steep": 1 / ranks**2,
        "flat": np.ones(size),
        "half": np.where(ranks == 1, size - 1, 1),
    }[population]
    return shares / shares.sum()


def spec_of(alphabet: dict, mechanism: str, epsilon: float, num_cohorts: int) -> Collection:
    spec = {"id": "c", "version": 1, "alphabet": alphabet, "num_cohorts": num_cohorts}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": epsilon}})


def window(
    item: Collection, texts: tuple[str, ...], shares: np.ndarray, n: int, uneven: bool, rng: np.random.Generator
) -> CohortCounts:
    """n people; uneven: sizes of cohorts are spread over three powers of ten, and every tenth has none."""
    sizes = np.ones(item.num_cohorts)
    if uneven:
        sizes = np.exp(rng.uniform(0, np.log(1000), item.num_cohorts))
        sizes[5::10] = 0
    cohorts = rng.choice(item.num_cohorts, n, p=sizes / sizes.sum())
    table = np.broadcast_to(item.alphabet.symbol_table(texts, item.num_cohorts), (item.num_cohorts, len(texts)))
    symbols = table[cohorts, rng.choice(len(texts), n, p=shares)]
    return item.count_groups(item.mechanism.perturb(symbols, SeededSource(rng)), cohorts, 1)[0]


def coverage(
    collections: list[Collection],
    size: int,
    n: int,
    *,
    unlisted: float,
    uneven: bool,
    listed: int = 0,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """(windows, classes) how many intervals hold the truth, and how many there are; ``listed`` values are left out."""
    values = tuple(f"v{i}" for i in range(size))
    texts = (*values, *(f"unlisted {i}" for i in range(UNLISTED if unlisted else 0)))
    held, among = np.zeros((2, len(collections), len(CLASSES)))
    for i, (item, population) in enumerate(zip(collections, itertools.cycle(POPULATIONS))):
        shares = (1 - unlisted) * shares_of(population, size)
        everybody = np.append(shares, np.full(len(texts) - size, unlisted / UNLISTED))
        try:
            estimate = item.estimate(window(item, texts, everybody, n, uneven, rng), candidates=values)
        except EstimationError:  # hardly any reports in one of few cohorts: no interval is published
            continue
        covered = (estimate.ci_low <= shares) & (shares <= estimate.ci_high)
        classes = np.digitize(n * shares, [1, 3, 10])
        held[i] = np.bincount(classes[listed:], covered[listed:], len(CLASSES))
        among[i] = np.bincount(classes[listed:], minlength=len(CLASSES))
    return held, among


def assert_held(
    held: np.ndarray, among: np.ndarray, low: float = 0.94, high: float = 0.99, *, fewest: int = 300
) -> None:
    """The share that is held is between limits, in each class with enough intervals.

    Intervals of one window are not independent; windows are. The error of the share is that of a ratio of sums over
    windows, and the limit on it Student's, at the rate of the suite.
    """
    wrong = {}
    for name, hits, sizes in zip(CLASSES, held.T, among.T):
        windows, total = np.count_nonzero(sizes), sizes.sum()
        if total < fewest or windows < 8:
            continue
        share = hits.sum() / total
        error = np.sqrt(((hits - share * sizes) ** 2).sum() * windows / (windows - 1)) / total
        slack = stats.t.isf(RATE / 2, windows - 1) * max(error, np.sqrt(0.95 * 0.05 / total))
        if not low - slack <= share <= high + slack:
            wrong[name] = (share, slack)
    assert not wrong


def test_rare_values_with_hardly_any_noise_are_held():
    """The configuration that the planner gives for 277 values and epsilon 10: 22,027 buckets and 2 cohorts."""
    items = [spec_of({"id": "hashed", "num_buckets": 22_027, "seed": seed}, "krr", 10.0, 2) for seed in range(40)]
    held, among = coverage(items, 277, 1000, unlisted=0.0, uneven=False, rng=generator("277 values"))
    assert_held(held[:, :3], among[:, :3], high=1.0)
    assert held.sum() / among.sum() > 0.94


@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_uneven_cohorts_are_held(epsilon):
    """Noise that hashing adds is the same in all cohorts, however many reports they have."""
    items = [spec_of({"id": "hashed", "num_buckets": 16, "seed": seed}, "krr", epsilon, 64) for seed in range(100)]
    held, among = coverage(items, 60, 50_000, unlisted=0.15, uneven=True, rng=generator("uneven", epsilon))
    assert_held(held, among)


@pytest.mark.parametrize(("epsilon", "n"), [(2.0, 3000), (8.0, 100)])
def test_permuted_values_are_held(epsilon, n):
    values = [f"v{i}" for i in range(60)]
    alphabet = {"id": "permuted", "values": values, "num_buckets": 12}
    items = [spec_of(alphabet | {"seed": seed}, "krr", epsilon, 8) for seed in range(150)]
    held, among = coverage(items, 60, n, unlisted=0.0, uneven=False, rng=generator("permuted", epsilon))
    assert_held(held, among, high=1.0)


@pytest.mark.parametrize("epsilon", [6.0, 8.0])
def test_hashed_values_beside_a_public_list_are_held(epsilon):
    listed = [f"v{i}" for i in range(5)]
    alphabet = {"id": "hashed", "num_buckets": 400, "non_sensitive": listed}
    items = [spec_of(alphabet | {"seed": seed}, "urr", epsilon, 8) for seed in range(100)]
    held, among = coverage(items, 60, 1000, unlisted=0.1, uneven=False, listed=5, rng=generator("list", epsilon))
    assert_held(held, among, high=1.0)


GRID = [  # S, C, k, epsilon, n
    (277, 256, 3, 0.5, 1_000_000),
    (100, 512, 4, 1.0, 20_000),
    (100, 64, 56, 4.0, 20_000),
    (100, 8, 512, 6.0, 300),
    (277, 16, 400, 6.0, 1000),
    (600, 64, 400, 6.0, 10_000),
    (277, 4, 2981, 8.0, 100),
    (277, 2, 2981, 8.0, 3000),
    (277, 64, 512, 8.0, 1_000_000),
    (2000, 64, 2981, 8.0, 10_000),
    (277, 2, 22_027, 10.0, 1000),
    (277, 2, 65_536, 16.0, 1000),
]


@pytest.mark.slow
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("unlisted", [0.0, 0.15])
@pytest.mark.parametrize(("size", "num_cohorts", "k", "epsilon", "n"), GRID)
def test_every_class_of_values_is_held(size, num_cohorts, k, epsilon, n, unlisted, uneven):
    """Above 99 % where there is almost no noise: of a value that hardly anybody holds, counts are 0, 1 and 2."""
    alphabet = {"id": "hashed", "num_buckets": k}
    items = [spec_of(alphabet | {"seed": seed}, "krr", epsilon, num_cohorts) for seed in range(60)]
    rng = generator("grid", size, num_cohorts, k, epsilon, n, unlisted, uneven)
    held, among = coverage(items, size, n, unlisted=unlisted, uneven=uneven, rng=rng)
    assert_held(held, among, high=1.0 if epsilon >= 8 else 0.99)


# ---------------------------------------------------------------------- the formula


def solution(**fields) -> Solution:
    own = OwnNoise(
        null=np.array([4e-4, 1e-6]), slope=np.array([0.01, 0.002]), curvature=np.full(2, 1e-3), least=np.zeros(2)
    )
    given = {
        "frequencies": np.array([0.2, 0.001]),
        "variances": np.array([2e-3, 1e-6]),
        "own": own,
        "jump": 0.001,
        "variance_of_sum": 0.0,
        "misfit": 0.0,
        "degrees": 0.0,
        "spare": np.inf,
    }
    return Solution(**given | fields)


@pytest.mark.parametrize(("spare", "z"), [(np.inf, stats.norm.isf(0.025)), (7.0, stats.t.isf(0.025, 7))])
def test_both_ends_are_as_far_away_as_they_may_be(spare, z):
    given = solution(spare=spare)
    for end in intervals.score_intervals(given, 0.95):
        distance = (given.frequencies - end) ** 2
        np.testing.assert_allclose(distance, z**2 * (given.own.at(end) + given.jump**2 / 2), rtol=1e-9)


def test_without_a_law_of_the_own_noise_the_interval_is_normal():
    low, high = intervals.score_intervals(solution(own=None), 0.95)
    np.testing.assert_allclose(high - low, 2 * stats.norm.isf(0.025) * np.sqrt([2e-3, 1e-6]))


@pytest.mark.parametrize(("half", "least"), [(0.5, 0.94), (0.0, 0.8386)])
def test_half_a_jump_squared_is_what_counts_without_noise_need(half, least):
    """The smallest probability, over all means, that the interval from a Poisson count holds the mean."""
    counts = np.arange(300.0)
    own = OwnNoise(null=np.zeros(300), slope=np.ones(300), curvature=np.zeros(300), least=np.zeros(300))
    low, high = intervals.score_intervals(solution(frequencies=counts, own=own, jump=np.sqrt(2 * half)), 0.95)
    means = np.linspace(0, 60, 60_001)[1:, np.newaxis]
    held = (low <= means) & (means <= high)
    assert (stats.poisson.pmf(counts, means) * held).sum(axis=1).min() == pytest.approx(least, abs=5e-4)
