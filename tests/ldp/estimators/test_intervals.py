"""Intervals of hashed, permuted and listed values: they hold for rare values as well, and with uneven cohorts.

Each window has hash functions of its own. Values are put into classes by how many people are expected to hold them,
because an average over all values would hide the rare ones.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import RATE, generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals
from uldp_transforms.ldp.sampling import SeededSource
from uldp_transforms.ldp.solvers import intervals
from uldp_transforms.ldp.solvers.observation import OwnNoise, Solution

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
    return made(alphabet, {"id": mechanism, "epsilon": epsilon}, num_cohorts=num_cohorts)


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
        assert estimate.values[:size] == values  # those of a public list follow
        covered = (estimate.ci_low[:size] <= shares) & (shares <= estimate.ci_high[:size])
        classes = np.digitize(n * shares, [1, 3, 10])
        held[i] = np.bincount(classes[listed:], covered[listed:], len(CLASSES))
        among[i] = np.bincount(classes[listed:], minlength=len(CLASSES))
    return held, among


def assert_held(held: np.ndarray, among: np.ndarray, low: float = 0.94, high: float = 0.99, fewest: int = 300) -> None:
    """The share that is held is between limits, in each class with enough intervals.

    Intervals of one window are not independent; windows are. The error of the share is that of a ratio of sums over
    windows, and the limit on it Student's, at the rate of the suite.
    """
    wrong, judged = {}, 0
    for name, hits, sizes in zip(CLASSES, held.T, among.T):
        windows, total = np.count_nonzero(sizes), sizes.sum()
        if total < fewest or windows < 8:
            continue
        judged += 1
        share = hits.sum() / total
        error = np.sqrt(((hits - share * sizes) ** 2).sum() * windows / (windows - 1)) / total
        slack = stats.t.isf(RATE / 2, windows - 1) * max(error, np.sqrt(0.95 * 0.05 / total))
        if not low - slack <= share <= high + slack:
            wrong[name] = (share, slack)
    assert judged
    assert not wrong


def test_rare_values_with_hardly_any_noise_are_held():
    """The configuration that the planner gives for 277 values and epsilon 10: 22,027 buckets and 2 cohorts."""
    items = [spec_of({"id": "hashed", "num_buckets": 22_027, "seed": seed}, "krr", 10.0, 2) for seed in range(40)]
    held, among = coverage(items, 277, 1000, unlisted=0.0, uneven=False, rng=generator("277 values"))
    assert_held(held, among)
    assert held.sum() / among.sum() > 0.94


@pytest.mark.parametrize("n", [100, 300])
def test_few_reports_of_values_that_share_buckets_are_held(n):
    """Four candidates to a bucket and a few reports to a cohort, so that it is hardly known whose the reports are."""
    items = [spec_of({"id": "hashed", "num_buckets": 64, "seed": seed}, "krr", 8.0, 64) for seed in range(60)]
    held, among = coverage(items, 277, n, unlisted=0.0, uneven=False, rng=generator("few reports", n))
    shares = held.sum(axis=1) / among.sum(axis=1)
    assert shares.mean() >= 0.935 - student_limit(60) * shares.std(ddof=1) / np.sqrt(60)


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
    assert_held(held, among)


@pytest.mark.parametrize("epsilon", [6.0, 8.0])
def test_hashed_values_beside_a_public_list_are_held(epsilon):
    listed = [f"v{i}" for i in range(5)]
    alphabet = {"id": "hashed", "num_buckets": 400, "non_sensitive": listed}
    items = [spec_of(alphabet | {"seed": seed}, "urr", epsilon, 8) for seed in range(100)]
    held, among = coverage(items, 60, 1000, unlisted=0.1, uneven=False, listed=5, rng=generator("list", epsilon))
    assert_held(held, among)


GRID = [  # S, C, k, epsilon, n
    (60, 64, 3, 0.5, 1000),
    (277, 256, 3, 0.5, 1_000_000),
    (100, 512, 4, 1.0, 20_000),
    (100, 64, 56, 4.0, 20_000),
    (100, 8, 512, 6.0, 300),
    (277, 16, 400, 6.0, 1000),
    (600, 64, 400, 6.0, 10_000),
    (277, 4, 2981, 8.0, 100),
    (277, 2, 2981, 8.0, 3000),
    (277, 64, 64, 8.0, 100),
    (277, 64, 64, 8.0, 300),
    (277, 64, 512, 8.0, 1_000_000),
    (2000, 64, 2981, 8.0, 10_000),
    (277, 2, 22_027, 10.0, 1000),
    (277, 2, 65_536, 16.0, 1000),
    (2000, 64, 512, 16.0, 1_000_000),
]
PERMUTED = [  # v, C, k, epsilon, n
    (60, 8, 12, 0.5, 10_000),
    (60, 8, 12, 4.0, 300),
    (277, 16, 64, 8.0, 1000),
    (277, 16, 64, 8.0, 1_000_000),
    (277, 8, 128, 16.0, 300),
]
LISTS = [  # sensitive values, listed values, C, k, epsilon, n
    (60, 60, 32, 16, 1.0, 10_000),
    (60, 60, 8, 400, 6.0, 1000),
    (60, 60, 16, 400, 8.0, 300),
    (60, 60, 4, 4096, 16.0, 1000),
]
CORNERS = [(unlisted, uneven) for unlisted in (0.0, 0.15) for uneven in (False, True)]


def report(name: str, setting: tuple, parts: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Each part of a setting is held; prints how often in all of them (pytest -s)."""
    held, among = (sum(part[i].sum(axis=0) for part in parts) for i in (0, 1))
    shares = [f"{share:.3f}" if size >= 300 else "" for share, size in zip(held / np.maximum(among, 1), among)]
    print("|", " | ".join([name, *map(str, setting), *shares]), "|")
    for part in parts:
        assert_held(*part)


@pytest.mark.slow
@pytest.mark.parametrize("setting", GRID, ids=str)
def test_every_class_of_hashed_values_is_held(setting):
    size, num_cohorts, k, epsilon, n = setting
    parts = []
    for unlisted, uneven in CORNERS:
        alphabet = {"id": "hashed", "num_buckets": k}
        items = [spec_of(alphabet | {"seed": seed}, "krr", epsilon, num_cohorts) for seed in range(60)]
        rng = generator("grid", *setting, unlisted, uneven)
        parts.append(coverage(items, size, n, unlisted=unlisted, uneven=uneven, rng=rng))
    report("hashed", setting, parts)


@pytest.mark.slow
@pytest.mark.parametrize("setting", PERMUTED, ids=str)
def test_every_class_of_permuted_values_is_held(setting):
    size, num_cohorts, k, epsilon, n = setting
    alphabet = {"id": "permuted", "values": [f"v{i}" for i in range(size)], "num_buckets": k}
    parts = []
    for uneven in (False, True):
        items = [spec_of(alphabet | {"seed": seed}, "krr", epsilon, num_cohorts) for seed in range(60)]
        rng = generator("permuted grid", *setting, uneven)
        parts.append(coverage(items, size, n, unlisted=0.0, uneven=uneven, rng=rng))
    report("permuted", setting, parts)


@pytest.mark.slow
@pytest.mark.parametrize("clear", [False, True], ids=["hashed beside a list", "of the list"])
@pytest.mark.parametrize("setting", LISTS, ids=str)
def test_every_class_beside_and_of_a_public_list_is_held(setting, clear):
    size, listed, num_cohorts, k, epsilon, n = setting
    names = [f"v{i}" for i in range(0 if clear else size, listed if clear else size + listed)]
    alphabet = {"id": "hashed", "num_buckets": k, "non_sensitive": names}
    parts = []
    for unlisted, uneven in CORNERS:
        items = [spec_of(alphabet | {"seed": seed}, "urr", epsilon, num_cohorts) for seed in range(60)]
        rng = generator("listed grid", *setting, clear, unlisted, uneven)
        whole = coverage(items, listed if clear else size, n, unlisted=unlisted, uneven=uneven, rng=rng)
        parts.append(whole)
    report("listed" if clear else "beside a list", (listed if clear else size, *setting[2:]), parts)


# ---------------------------------------------------------------------- the formula


SQUARE = stats.norm.isf(0.025) ** 2
SKEW = (SQUARE - 1) / 6  # of a count, where hardly any of the reports are counted


def solution(**fields) -> Solution:
    own = OwnNoise(
        null=np.array([4e-4, 1e-6]), slope=np.array([0.01, 0.002]), curvature=np.full(2, 1e-3), least=np.zeros(2)
    )
    given = {
        "frequencies": np.array([0.2, 0.001]),
        "variances": np.array([2e-3, 1e-6]),
        "own": own,
        "jump": 0.001,
        "counted": 0.0,
        "variance_of_sum": 0.0,
        "misfit": 0.0,
        "degrees": 0.0,
        "spare": np.inf,
    }
    return Solution(**given | fields)


@pytest.mark.parametrize(("spare", "z"), [(np.inf, stats.norm.isf(0.025)), (7.0, stats.t.isf(0.025, 7))])
@pytest.mark.parametrize(("counted", "shifts"), [(0.0, (SKEW, SKEW - 0.5)), (0.6, (0.5 - 0.2 * SKEW, -0.2 * SKEW))])
def test_both_ends_are_as_far_away_as_they_may_be(spare, z, counted, shifts):
    """From raw, corrected for skewness; at the end that is away from the nearer of 0 and all, less half a count."""
    given = solution(spare=spare, counted=counted)
    for end, shift in zip(intervals.score_intervals(given, 0.95), shifts):
        distance = (given.frequencies - shift * given.jump - end) ** 2
        np.testing.assert_allclose(distance, z**2 * given.own.at(end), rtol=1e-9)


def test_without_a_law_of_the_own_noise_the_interval_is_normal():
    low, high = intervals.score_intervals(solution(own=None), 0.95)
    np.testing.assert_allclose(high - low, 2 * stats.norm.isf(0.025) * np.sqrt([2e-3, 1e-6]))


COUNTS = np.arange(400.0)
MEANS = np.concatenate([np.geomspace(1e-3, 1, 2000), np.linspace(1, 100, 20_001)])[:, np.newaxis]


@pytest.fixture(scope="module")
def law() -> np.ndarray:
    """(means, counts) probabilities, which take a while."""
    found: np.ndarray = stats.poisson.pmf(COUNTS, MEANS)
    return found


def least_coverage(law: np.ndarray, confidence: float) -> np.ndarray:
    """The least probability of any run of counts that has at least the confidence, for each row of a law (M, X).

    Whatever the rule, the counts whose interval holds a given mean are such a run, as both ends rise with the count.
    So no rule that holds every mean with this confidence holds it less often.
    """
    sums = np.append(np.zeros((len(law), 1)), np.cumsum(law, axis=1), axis=1)
    runs = sums[:, np.newaxis, :] - sums[:, :, np.newaxis]
    return np.where(runs >= confidence - 1e-12, runs, np.inf).min(axis=(1, 2))


def of_poisson_counts() -> tuple[np.ndarray, np.ndarray]:
    """Intervals of hashed values where there is no noise: a count, from 0 up, whose variance is its mean."""
    zeros, ones = np.zeros(len(COUNTS)), np.ones(len(COUNTS))
    own = OwnNoise(null=zeros, slope=ones, curvature=zeros, least=zeros)
    return intervals.score_intervals(solution(frequencies=COUNTS, own=own, jump=1.0), 0.95)


def of_binomial_counts() -> tuple[np.ndarray, np.ndarray]:
    """Intervals of clear values, as counts, if a million report."""
    low, high = binomial_intervals(COUNTS.astype(np.int64), 10**6, 0.95)
    return 1e6 * low, 1e6 * high


@pytest.mark.parametrize("rule", [of_poisson_counts, of_binomial_counts])
def test_counts_without_noise_are_held_hardly_more_often_than_they_must_be(rule, law):
    """Every mean with probability 93.9 % at least; over means below 1 hardly more often than any 95 % rule must."""
    low, high = rule()
    held = (law * ((low <= MEANS) & (high >= MEANS))).sum(axis=1)
    assert held.min() > 0.939
    rare = MEANS[:, 0] <= 1
    forced = least_coverage(law[rare, :40], 0.95)
    assert forced.mean() == pytest.approx(0.986, abs=1e-3)
    assert held[rare].mean() < forced.mean() + 0.0025
    assert held[~rare].mean() < 0.965
