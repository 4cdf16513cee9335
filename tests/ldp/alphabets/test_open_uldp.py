"""Estimates over hashed alphabets with a public list, whose texts have clear symbols of their own or clear buckets.

Letters: C cohorts, K symbols, v sensitive buckets, U unknowns (candidates and the whole public list).
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.calibration import assert_calibrated, assert_covered, excess_slack, windows
from tests.support.cases import UTILITY_OPTIMIZED
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate

LISTED = ("n0", "n1", "n2", "n3")
SENSITIVE = ("a", "b", "c", "d")
SHARES = {"a": 0.2, "b": 0.15, "c": 0.05, "d": 0.0, "n0": 0.3, "n1": 0.2, "n2": 0.08, "n3": 0.02}
FIELDS = UTILITY_OPTIMIZED
FORMS = pytest.mark.parametrize("clear", [None, 3], ids=["own", "buckets"])
MECHANISMS = pytest.mark.parametrize("mechanism", FIELDS)
LINEAR = ("empirical", "normalized", "projected", "threshold")
ESTIMATORS = pytest.mark.parametrize("estimator", [*LINEAR, "em"])


def collection(
    mechanism: str = "urr",
    clear: int | None = None,
    *,
    listed: tuple[str, ...] = LISTED,
    num_buckets: int = 5,
    num_cohorts: int = 12,
    epsilon: float = 2.0,
    seed: int = 3,
) -> Collection:
    alphabet = {"id": "hashed", "num_buckets": num_buckets, "seed": seed, "non_sensitive": list(listed)}
    if clear is not None:
        alphabet["num_clear_buckets"] = clear
    fields = {"id": mechanism, "epsilon": epsilon} | FIELDS[mechanism]
    return made(alphabet, fields, num_cohorts=num_cohorts)


def shares_of_symbols(item: Collection, shares: dict[str, float]) -> np.ndarray:
    """(C, K)."""
    table = np.broadcast_to(
        item.alphabet.symbol_table(tuple(shares), item.num_cohorts), (item.num_cohorts, len(shares))
    )
    return np.stack([np.bincount(row, list(shares.values()), item.num_cells) for row in table])


def exact_counts(item: Collection, shares: dict[str, float] = SHARES) -> CohortCounts:
    """What 10**12 and more reports count in each cohort, rounded to whole reports."""
    n = 10**12 * (1 + np.arange(item.num_cohorts))
    cells = n[:, np.newaxis] * item.mechanism.response(shares_of_symbols(item, shares))
    return CohortCounts(n, np.rint(cells).astype(np.int64))


def with_public(asked: tuple[str, ...]) -> tuple[str, ...]:
    """The values of an estimate: the candidates, and then the rest of the public list."""
    return (*asked, *(text for text in LISTED if text not in asked))


ASKED = [
    SENSITIVE,
    LISTED,
    LISTED[:1],
    ("n2", "a", "n0", "d"),
    (*SENSITIVE, *LISTED),
    ("c",),
]


@FORMS
@pytest.mark.parametrize(
    ("mechanism", "estimator"),
    [(mechanism, name) for mechanism in FIELDS for name in LINEAR] + [("urr", "em")],
)
@pytest.mark.parametrize("asked", ASKED, ids="-".join)
def test_exact_counts_give_the_truth(clear, mechanism, estimator, asked):
    """The public list belongs to the estimate whatever the candidates are, so nobody is unexplained; here all texts
    are listed or candidates, because others leave a trace in any one set of hash functions."""
    shares = {text: share for text, share in SHARES.items() if text in asked or text in LISTED}
    shares = {text: share / sum(shares.values()) for text, share in shares.items()}
    item = collection(mechanism, clear)
    counts = exact_counts(item, shares)
    estimate = item.estimate(counts, estimator, asked)
    assert estimate.values == with_public(asked)
    truth = np.array([shares[text] for text in estimate.values])
    tolerance = 1e-5 if estimator == "em" else 1e-8
    np.testing.assert_allclose(estimate.frequencies, truth, atol=tolerance)
    np.testing.assert_allclose(estimate.raw_frequencies, truth, atol=1e-8)
    assert estimate.unexplained_mass == pytest.approx(0, abs=tolerance)
    assert (abs(estimate.ci_low - truth) < 1e-4).all()
    assert (abs(estimate.ci_high - truth) < 1e-4).all()


# ---------------------------------------------------------------------- errors, by one dense system


def dense_covariance(item: Collection, counts: CohortCounts, unknowns: tuple[str, ...]) -> np.ndarray:
    """(U, U): sensitive unknowns by centred least squares, clear ones by inversion or by least squares.

    One linear map of all symbols of all cohorts, and the exact covariance of one report's inverse.
    """
    v, size = item.mechanism.num_sensitive, len(unknowns)
    table = np.broadcast_to(item.alphabet.symbol_table(unknowns, item.num_cohorts), (item.num_cohorts, size))
    own = item.alphabet.has_own_symbol(unknowns)
    roots = np.sqrt(counts.num_reports)
    H = np.stack([np.arange(item.num_cells)[:, np.newaxis] == row for row in table]).astype(float)
    J = np.eye(item.num_cells)
    J[:v, :v] -= 1 / v
    system = np.concatenate([root * J @ block for root, block in zip(roots, H)])
    linear = np.linalg.pinv(system)
    for i in np.flatnonzero(own):
        linear[i] = np.concatenate([root * block[:, i] for root, block in zip(roots, H)]) / counts.total
    shares = shares_of_symbols(item, SHARES)
    noise = np.zeros((system.shape[0],) * 2)
    for c in range(item.num_cohorts):
        rows = slice(c * item.num_cells, (c + 1) * item.num_cells)
        noise[rows, rows] = J @ report_covariance(item, shares[c]) @ J
    return linear @ noise @ linear.T


def report_covariance(item: Collection, shares: np.ndarray) -> np.ndarray:
    """(K, K): of one report's inverse, by the variances of all sums of two symbols."""
    pairs = np.eye(item.num_cells)[:, np.newaxis] + np.eye(item.num_cells)[np.newaxis]
    of_sums = item.mechanism.variance_of(pairs, shares)
    single = np.diag(of_sums) / 4
    return (of_sums - single[:, np.newaxis] - single[np.newaxis]) / 2


@FORMS
@MECHANISMS
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_standard_errors_are_those_of_one_dense_system(clear, mechanism, epsilon):
    """Where there are so many reports that the point of the variance is the truth.

    Between sums of sensitive and of clear values the sampling of people is all there is, -p_x p_z / n; in clear buckets
    that is so on average over hash functions only.
    """
    item = collection(mechanism, clear, epsilon=epsilon)
    counts = exact_counts(item)
    unknowns = (*SENSITIVE, *LISTED)
    covariance = dense_covariance(item, counts, unknowns)
    for asked in (unknowns, SENSITIVE, ("n2", *SENSITIVE[::-1], "n0")):
        estimate = item.estimate(counts, candidates=asked)
        places = [unknowns.index(text) for text in with_public(asked)]
        expected = np.sqrt(np.diag(covariance)[places])
        np.testing.assert_allclose(estimate.standard_errors, expected, rtol=1e-4)
        together = np.sqrt(covariance[np.ix_(places, places)].sum())
        assert estimate.unexplained_standard_error == pytest.approx(together, rel=1e-4 if clear is None else 0.2)


def test_the_standard_error_of_the_rest_is_right_on_average_over_hash_functions_of_clear_buckets():
    ratios = []
    for seed in range(30):
        item = collection(clear=4, epsilon=4.0, num_cohorts=24, seed=seed)
        counts = exact_counts(item)
        covariance = dense_covariance(item, counts, (*SENSITIVE, *LISTED))
        estimate = item.estimate(counts, candidates=(*SENSITIVE, *LISTED))
        ratios.append(estimate.unexplained_standard_error**2 / covariance.sum())
    assert np.mean(ratios) == pytest.approx(1, abs=0.03)


# ---------------------------------------------------------------------- calibration

UNLISTED = tuple(f"unlisted {i}" for i in range(30))
ALL = np.array([*(0.85 * np.array(list(SHARES.values()))), *np.full(30, 0.005)])


def many_windows(
    mechanism: str, clear: int | None, epsilon: float, n: int, *, repeats: int, asked: tuple[str, ...]
) -> list[Estimate]:
    """Estimates with hash functions of their own: the noise of unlisted texts is that of these."""
    rng = generator("open", mechanism, clear, epsilon, n)
    estimates = []
    for seed in range(repeats):
        item = collection(mechanism, clear, epsilon=epsilon, seed=seed)
        (counts,) = windows(item, (*SHARES, *UNLISTED), ALL, 1, n, rng=rng)
        estimates.append(item.estimate(counts, candidates=asked))
    return estimates


@FORMS
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "n"),
    [("urr", 0.7, 2000), ("urr", 16.0, 300), ("urap", 2.0, 500), ("uss", 8.0, 500)],
)
def test_standard_errors_and_intervals(clear, mechanism, epsilon, n):
    """15 % of the people hold unlisted texts. A sensitive text and one of the public list are not among the
    candidates; the latter is estimated all the same."""
    asked = ("a", "b", "d", "n0", "n1", "n3")
    values = with_public(asked)
    truth = 0.85 * np.array([SHARES[text] for text in values])
    estimates = many_windows(mechanism, clear, epsilon, n, repeats=250, asked=asked)
    in_clear = np.array([text in LISTED for text in values])
    assert_calibrated(
        estimates,
        truth,
        1 - truth.sum(),
        slack=excess_slack(12 * 4 - 3),
        cautious=in_clear | (truth == 0),  # of counts, or two people more; or an interval that is cut at 0
        cautious_rest=clear is not None,
    )


@pytest.mark.parametrize(
    ("num_clear", "num_cohorts", "epsilon", "n"),
    [(4, 8, 3.0, 100), (4, 8, 16.0, 1000), (32, 4, 0.7, 100), (32, 4, 3.0, 1000)],
)
def test_intervals_of_clear_buckets_cover_rare_texts(num_clear, num_cohorts, epsilon, n):
    """An empty bucket rules its texts out, and many are empty. Intervals may be too long, never too short."""
    listed = tuple(f"n{i}" for i in range(10))
    shares = np.array([0, 0.0005, 0.002, 0.005, 0.01, 0.03, 0.1, 0.1, 0.2, 0.2525])
    rng = generator("rare", num_clear, num_cohorts, epsilon, n)
    estimates = []
    for seed in range(200):
        item = collection(
            clear=num_clear, listed=listed, num_buckets=3, num_cohorts=num_cohorts, epsilon=epsilon, seed=seed
        )
        (counts,) = windows(item, (*listed, "secret"), [*shares, 0.3], 1, n, rng=rng)
        estimates.append(item.estimate(counts, candidates=listed))
    assert_covered(estimates, shares, np.ones(10, dtype=bool))
    errors = np.array([estimate.raw_frequencies - shares for estimate in estimates])
    reported = np.array([estimate.standard_errors for estimate in estimates])
    assert (abs(errors.sum(axis=0)) <= 8 * np.sqrt((reported**2).sum(axis=0))).all(), "unbiased"
    assert (reported > 0).all(), "also where nothing was seen"


# ---------------------------------------------------------------------- what goes with what


@FORMS
@ESTIMATORS
def test_a_listed_text_has_the_same_estimate_whatever_else_is_asked(clear, estimator):
    """Sensitive and clear buckets are separate systems; the whole public list is always solved for."""
    item = collection(clear=clear)
    (counts,) = windows(item, list(SHARES), list(SHARES.values()), 1, 3000, rng=generator("same"))
    everything = item.estimate(counts, estimator, (*SENSITIVE, *LISTED))
    for asked in (LISTED[2:3], ("a", "n2"), ("n2", "d", "n0")):
        some = item.estimate(counts, estimator, asked)
        ends = ("ci_low", "ci_high") if estimator == "empirical" else ()  # others reach what is shown
        for field in ("raw_frequencies", "standard_errors", *ends):
            here, there = getattr(some, field)[asked.index("n2")], getattr(everything, field)[6]
            assert here == pytest.approx(there, rel=1e-9)
    if estimator != "empirical":
        assert everything.frequencies.sum() + everything.unexplained_mass == pytest.approx(1)
