"""Where one solver hands over to another, and the steps of each by hand: limits on both sides, exact values."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.errors import IllConditionedError
from uldp_transforms.ldp.solvers import (
    hash_chance,
    intervals,
    least_squares,
    linear,
    observation,
    overfull,
    packed,
    prefix_parts,
    sharpened,
)
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.fitted_prior import Noisy
from uldp_transforms.ldp.solvers.observation import Observation
from uldp_transforms.ldp.solvers.question import ask, symbol_table

# ---------------------------------------------------------------------- which solver


@pytest.mark.parametrize(("cells", "kept"), [(1 << 10, 5), (1 << 22, 5), ((1 << 22) + 1, 2)])
def test_of_large_symbol_tables_only_two_are_kept(cells: int, kept: int) -> None:
    """A job with many collections or candidates would hold gigabytes."""

    class OneText:
        num_hashes = 1

        def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
            return np.zeros((num_cohorts, len(values)), dtype=np.int8)

    alphabets: list[Any] = [OneText() for _ in range(5)]
    tables = [weakref.ref(symbol_table(one, ("text",), cells)) for one in alphabets]
    gc.collect()
    assert sum(table() is not None for table in tables) == kept


def counted(*sizes: int, k: int = 2) -> CohortCounts:
    return CohortCounts(np.array(sizes), np.zeros((len(sizes), k), dtype=np.int64))


def test_message_passing_needs_five_hundred_equations_and_sixteen_equal_cohorts() -> None:
    """Cohorts without reports have no equations; lists that are too long for matrices need no equal cohorts."""
    suits = linear._suits_message_passing
    assert [suits(counted(*[9] * 25, *[0] * 9), k, 600) for k in (20, 21)] == [False, True]
    assert [suits(counted(*[9] * size), 90, 600) for size in (15, 16)] == [False, True]
    uneven = counted(*[9] * 8, *[1] * 90)  # (72 + 90)^2 / (648 + 90) = 35.6; of one with 1,000 reports more it is 1.2
    assert suits(uneven, 90, 600)
    heavy = dataclasses.replace(uneven, num_reports=uneven.num_reports + 1000 * (np.arange(98) == 0))
    assert [suits(heavy, 90, size) for size in (8192, 8193)] == [False, True]


@pytest.mark.parametrize(("spare", "z"), [(np.inf, stats.norm.isf(0.025)), (9.0, stats.t.isf(0.025, 9))])
def test_a_rest_is_noise_if_its_interval_is_longer_than_a_half(spare: float, z: float) -> None:
    nothing: Any = np.zeros(1)
    for length, expected in ((0.4999, False), (0.5001, True)):
        found = linear.LinearEstimate(*[nothing] * 5, nothing, rest_standard_error=length / 2 / z, rest_spare=spare)
        assert found.rest_is_noise == expected


def test_a_level_takes_part_with_two_equations_for_each_unknown() -> None:
    part: Any = SimpleNamespace(cohorts=slice(1, None, 2), values=("",) * 6)
    sizes = [5, 7, 5, 0, 5, 8, 5, 9]  # three cohorts with 24 reports
    assert [prefix_parts._reports(part, counted(*sizes), k) for k in (4, 5)] == [0, 24]


@pytest.fixture
def question() -> Any:
    alphabet = {"id": "hashed", "num_buckets": 8, "seed": 5}
    item = made(alphabet, {"id": "krr", "epsilon": 4.0}, num_cohorts=80)
    counts = item.count(item.perturb(["a"] * 600 + ["b"] * 300 + ["c"] * 100, generator("solver limits")))
    return lambda *values: ask(item, counts, values)


def test_up_to_512_values_are_sharpened(question: Any) -> None:
    texts = tuple(f"v{number}" for number in range(513))
    for asked, same in ((texts[:513], True), (texts[:512], False)):
        found = linear.estimate_linear(few := question(*asked))
        assert (sharpened.sharpened(few, found) is found) == same


# ---------------------------------------------------------------------- packed tables


def test_codes_have_sixteen_bits_and_are_not_more_than_unknowns() -> None:
    cases = {(2, 10**6): 16, (2, 70_000): 16, (2, 4): 2, (3, 10**6): 10, (256, 10**6): 2, (257, 10**6): 1, (9, 2): 1}
    assert {asked: packed._group_size(*asked) for asked in cases} == cases


# ---------------------------------------------------------------------- cells that are left out


@dataclasses.dataclass
class Given:
    """What ``leave_out`` asks of an observation: cohorts of 4 cells, and candidates in all but the first of these."""

    num_reports: np.ndarray
    buckets: Any
    inverted: np.ndarray

    @classmethod
    def of(cls, cohorts: int = 40, num_hashes: int = 1) -> Given:
        buckets = SimpleNamespace(num_hashes=num_hashes, num_buckets=4, collect=lambda cells: cells.sum(axis=0)[1:])
        return cls(np.full(cohorts, 100), buckets, np.zeros((cohorts, 4)))


def fit_of(kept: np.ndarray, error: float) -> Any:
    return SimpleNamespace(kept=kept, error=error, weights=np.ones(len(kept)))


def left_out(
    monkeypatch: pytest.MonkeyPatch, rounds: list[Any], errors: list[float], given: Any = None
) -> tuple[Any, Any, int]:
    """The fit after cells (C, 4) stand out round by round, the first fit, and how often it was fitted again."""
    given = given or Given.of()
    first = fit_of(np.ones((len(given.num_reports), 4)), 1.0)
    found, refits = iter(rounds), []

    def again(asked: Any, last: Any, kept: np.ndarray) -> Any:
        refits.append(kept)
        return fit_of(kept, errors[len(refits) - 1])

    monkeypatch.setattr(overfull, "overfull", lambda *_: next(found))
    monkeypatch.setattr(overfull, "hidden", lambda given, fit, unseen: np.zeros((len(unseen), 4)))
    return overfull.leave_out(given, first, again), first, len(refits)


def cells(*columns: int, cohorts: int = 40, of: int = 40) -> np.ndarray:
    """The columns of so many cohorts."""
    found = np.zeros((of, 4), dtype=bool)
    found[:cohorts, list(columns)] = True
    return found


def test_cells_are_left_out_as_long_as_the_error_falls_by_half_a_per_cent(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all cohorts, so that nothing is hidden in others. A fit whose error hardly falls is not taken."""
    one, nothing = cells(0), cells()
    for error, taken in ((0.995, True), (0.996, False)):
        fit, first, _ = left_out(monkeypatch, [one, nothing], [error])
        assert (fit is not first) == taken
    fit, first, refits = left_out(monkeypatch, [nothing], [])
    assert fit is first and refits == 0
    falling = [0.9, 0.8, 0.7, 0.6, 0.5]
    steps = [cells(0, cohorts=size) for size in (31, 32, 33, 34, 35)]
    fit, _, refits = left_out(monkeypatch, steps, falling)
    assert refits == 5, "four rounds, and once with what is hidden in the other cohorts"
    assert np.count_nonzero(fit.kept == 0) == 34


def test_a_candidate_keeps_half_of_its_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those of 40 cohorts: one in whose cell something stands out."""
    for cohorts, taken in ((20, True), (21, False)):
        fit, first, _ = left_out(monkeypatch, [cells(1, cohorts=cohorts), cells()], [0.5, 0.5])
        assert (fit is not first) == taken


@pytest.mark.parametrize(("cohorts", "taken"), [(19, False), (20, True)])
def test_a_text_is_seen_in_half_of_the_cohorts(monkeypatch: pytest.MonkeyPatch, cohorts: int, taken: bool) -> None:
    """With fewer all cells are used; with more the others are fitted again without what is hidden there."""
    fit, first, refits = left_out(monkeypatch, [cells(0, cohorts=cohorts), cells()], [0.5, 0.4])
    assert (fit is not first) == taken
    assert refits == (2 if taken else 1)


def test_what_is_hidden_is_the_rest_of_a_normal_content_that_is_cut_off() -> None:
    """Four steps of the share for which the mean of a content above its limit is the mean that is seen."""
    rng = generator("hidden content")
    num_reports, inverted, fitted = np.array([400, 0, 900, 500]), rng.normal(0.1, 0.01, (4, 3)), rng.random((4, 3)) / 20
    kept = np.ones((4, 3))
    kept[0, :2] = kept[2, 2] = kept[1] = 0
    inverted[0, :2], inverted[2, 2] = 0.35, 0.4
    given = SimpleNamespace(
        num_reports=num_reports,
        inverted=inverted,
        jump=0.5,
        noise_law=(0.0, 3.0),
        plausible=lambda x: np.maximum(x, 0),
        noise=lambda x: 1 + 2 * x,
    )
    fit = SimpleNamespace(kept=kept, fitted=fitted, common=1e-3)
    unseen = np.array([False, False, False, True])
    found = overfull.hidden(given, fit, unseen)
    excess = inverted - fitted
    means = [(excess[c] * kept[c]).sum() / max(kept[c].sum(), 1) for c in range(4)]
    seen = np.mean([excess[0, 0] - means[0], excess[0, 1] - means[0], excess[2, 2] - means[2]])
    share, here, z = seen, [0, 2, 3], stats.norm.isf(0.05 / 9)
    for _ in range(4):
        density, chance, below = 0.0, 0.0, np.zeros((4, 3))
        for c in here:
            for b in range(3):
                variance = (1 + 2 * fitted[c, b]) / num_reports[c] + 1e-3
                limit = z * np.sqrt(variance) + (z**2 - 1) / 6 * 0.5 / num_reports[c]
                spread = np.sqrt(variance + share * 3 / num_reports[c])
                below[c, b] = (limit - share) / spread
                density += spread * stats.norm.pdf(below[c, b])
                chance += stats.norm.sf(below[c, b])
        share = max(seen - density / chance, 0)
    chances = stats.norm.cdf(below[3])
    assert share > 0.05
    np.testing.assert_allclose(found[3], share * chances / chances.sum(), rtol=1e-9)
    assert (found[:3] == 0).all()


# ---------------------------------------------------------------------- least squares


def test_systems_are_solved_up_to_a_condition_of_a_hundred_million() -> None:
    """The condition in the norm of largest column sums: that of a diagonal is the ratio of its ends."""
    inverse, offset = least_squares.solver(np.diag([1.0, 1 / 0.9e8]), complete=False, owner="c")
    np.testing.assert_allclose(inverse, np.diag([1.0, 0.9e8]))
    assert offset.tolist() == [0, 0]
    with pytest.raises(IllConditionedError, match=r"condition number below 1e\+08, got 1\.1e\+08"):
        least_squares.solver(np.diag([1.0, 1 / 1.1e8]), complete=False, owner="c")


def test_systems_whose_solutions_sum_to_one_are_as_easy_as_others() -> None:
    """Of 200 equal unknowns: the deviations from the mean, and the mean itself."""
    inverse, offset = least_squares.solver(np.eye(200), complete=True, owner="c")
    np.testing.assert_allclose(inverse, np.eye(200) - 1 / 200, atol=1e-12)
    np.testing.assert_allclose(offset, np.full(200, 1 / 200))


def test_fits_to_the_cells_that_are_left_are_those_of_whole_matrices() -> None:
    """Means are taken over the cells of a cohort that are kept, for the unknowns, the noise and the sum alike."""
    given = observed(14)
    kept = (generator("cells left").random((14, 5)) < 0.8).astype(float)
    kept[:, 0] = 1
    whole = least_squares._settle(given, np.ones((14, 5)), 14 * 4 - 4)
    fit = least_squares._settle(given, kept, int(kept.sum()) - 14 - 4)
    found = least_squares._solution(given, fit, whole, np.array([True, True, False, True]))
    gram, pulls, noise = np.zeros((4, 4)), np.zeros(4), np.zeros((4, 4))
    for c, weight in enumerate(fit.weights):
        members = (given.buckets.table[c] == np.arange(5)[:, np.newaxis]).astype(float)
        centre = np.diag(kept[c]) - np.outer(kept[c], kept[c]) / kept[c].sum()
        shares = given.plausible(given.buckets.forward(fit.frequencies))[c]
        covariance = np.diag(given.noise(shares)) - np.outer(shares, shares)
        gram += weight * members.T @ centre @ members
        pulls += weight * members.T @ centre @ given.inverted[c]
        own = covariance / given.num_reports[c] + fit.common * np.eye(5)
        noise += weight**2 * members.T @ centre @ own @ centre @ members
    np.testing.assert_allclose(found.frequencies, np.linalg.solve(gram, pulls), rtol=1e-8)
    inverse = np.linalg.inv(gram)
    variances = np.diag(inverse @ noise @ inverse)
    np.testing.assert_allclose(found.variances - found.jump**2, variances, rtol=1e-4)
    summed = inverse @ np.array([1.0, 1, 0, 1])
    assert found.variance_of_sum == pytest.approx(summed @ noise @ summed, rel=1e-6)
    assert (found.spare, found.misfit) == (
        kept.sum() - 14 - 4,
        pytest.approx(whole.effective * whole.squares / whole.privacy),
    )


def observed(cohorts: int, k: int = 5, size: int = 4, **fields: Any) -> Observation[Buckets]:
    rng = generator("observed", cohorts)
    buckets = Buckets(rng.integers(0, k, (cohorts, size)), k)
    given: dict[str, Any] = {"noise": lambda shares: 0.5 + 2 * shares, "mass": 0.9, "centred": True, "complete": False}
    inverted = buckets.forward(np.full(size, 0.2)) + rng.normal(0, 0.05, (cohorts, k))
    given |= {"owner": "c", "num_reports": rng.integers(50, 200, cohorts), "jump": 1.5, "counted": 0.3}
    return Observation(buckets=buckets, inverted=inverted, **given | fields)


def test_the_noise_of_an_estimate_is_a_parabola_in_its_own_frequency() -> None:
    """From the whole covariance of the cells: a value whose holders take people evenly from all others."""
    given, weights = observed(6), np.array([1.0, 2, 3, 1, 2, 5])
    law = observation.own_noise(given, weights, given.num_reports, np.array([1.0, 0.7]), 1.0)

    def variance(p: float) -> float:
        shares = np.full(5, (0.9 - p) / 5) + p * np.eye(5)[0]
        own = np.eye(5)[0] - 1 / 5
        covariance = np.diag(0.5 + 2 * shares) - np.outer(shares, shares)
        each = own @ covariance @ own
        return float((weights**2 / given.num_reports).sum() * each / (weights.sum() * 4 / 5) ** 2)

    bend = (variance(0.2) - 2 * variance(0.1) + variance(0)) / 0.02
    slope = (variance(0.1) - variance(0) - bend * 0.01) / 0.1
    np.testing.assert_allclose(law.curvature, np.array([1, 0.49]) * -bend, rtol=1e-9)
    np.testing.assert_allclose(law.slope, np.array([1, 0.49]) * slope, rtol=1e-9)
    least = (weights**2 / given.num_reports).sum() * 0.5 * 4 / 5 / (weights.sum() * 4 / 5) ** 2
    np.testing.assert_allclose(law.least, np.array([1, 0.49]) * least, rtol=1e-9)
    assert law.null.tolist() == [0, 0] and given.noise_law == pytest.approx((0.5, 2.0))
    through = dataclasses.replace(law, null=np.zeros(2)).through(np.full(2, 0.1), np.array([0.5, 0.0]))
    assert through.at(np.full(2, 0.1))[0] == pytest.approx(0.5) and through.null[1] == law.least[1]


def test_without_reports_of_its_own_an_unknown_has_an_error() -> None:
    """That of one report, as if one more had been counted; in equal cohorts it moves an estimate by an n-th."""
    given = observed(12, num_reports=np.full(12, 100))
    found, plain = (
        least_squares.least_squares(dataclasses.replace(given, jump=jump), np.ones(4, dtype=bool)) for jump in (1.5, 0)
    )
    assert (found.jump, plain.jump) == (pytest.approx(1.5 / 1200), 0)
    np.testing.assert_allclose(found.variances - plain.variances, found.jump**2, rtol=1e-6)


@pytest.mark.parametrize("disturbed", [0.0, 0.3])
def test_noise_of_hash_functions_is_unbiased_and_may_be_below_zero(disturbed: float) -> None:
    """The signed excess of the squares, in the units of each unknown."""
    given = observed(40)
    exact = given.buckets.forward(np.full(4, 0.2))
    given = dataclasses.replace(given, inverted=exact + disturbed * generator("signed").normal(size=exact.shape))
    fit = least_squares._settle(given, np.ones_like(exact), 4 * 40 - 4)
    known = fit.privacy / given.num_reports
    squares = (fit.residuals**2).sum(axis=1)
    signed = observation.signed_common_noise(squares, 156, known)
    found = least_squares.least_squares(given, np.ones(4, dtype=bool)).common
    weights = (fit.weights**2).sum() / fit.weights.sum()
    assert found is not None and (found > 0).all() == (disturbed > 0)
    np.testing.assert_allclose(found, signed * weights * np.diag(fit.inverse), rtol=1e-6)


def test_common_noise_makes_squares_as_many_as_their_degrees() -> None:
    squares, known = np.array([3.0, 5.0, 4.0]), np.array([0.1, 0.3, 0.2])
    found = observation.common_noise(squares, 8.0, known)
    assert (squares / (known + found)).sum() == pytest.approx(8, rel=1e-6)
    assert observation.common_noise(squares, 100.0, known) == 0
    signed = observation.signed_common_noise(squares, 100.0, known)
    assert signed == pytest.approx(((squares / known).sum() - 100) / 100 * 3 / (1 / known).sum()) and signed < 0


def test_what_belongs_to_unknowns_is_not_more_than_there_is() -> None:
    given = observed(6)
    assert least_squares._held(given, np.array([0.5, -0.1, 0.2, 0.1])) == pytest.approx([0.5, 0, 0.2, 0.1])
    assert least_squares._held(given, np.array([0.9, -0.1, 0.3, 0.1])) == pytest.approx([0.8, -0.1, 0.2, 0.0])


# ---------------------------------------------------------------------- chance, likelihood, intervals


def test_tails_near_the_mean_are_normal_and_the_largest_sum_is_counted() -> None:
    cells = generator("near tail").normal(size=(5, 6))
    cells[:, 0] += 3
    cells -= cells.mean(axis=1, keepdims=True)
    deviation = np.sqrt((cells**2).mean(axis=1).sum())
    assert hash_chance.tail(cells, 0.0) == hash_chance.tail(np.zeros((5, 6)), 1.0) == 1
    assert hash_chance.tail(np.array([[1.0, -1.0]] * 4), 1.0) != special.ndtr(-0.5), "from half a deviation on"
    assert hash_chance.tail(cells, 0.499 * deviation) == pytest.approx(special.ndtr(-0.499))
    assert abs(hash_chance.tail(cells, 0.501 * deviation) - special.ndtr(-0.501)) > 3e-4
    assert hash_chance.tail(cells, cells.max(axis=1).sum()) == pytest.approx(6.0**-5)


def test_the_law_of_counts_has_two_more_reports() -> None:
    raw, variances = np.array([0.3, 0.0, -0.1]), np.array([0.02, 0.005, 0.001])
    law = intervals._law_of_counts(raw, variances)
    np.testing.assert_allclose(law.slope * (np.maximum(raw, 0) + 2 * law.slope), variances)
    assert law.null.tolist() == law.curvature.tolist() == [0, 0, 0]


# ---------------------------------------------------------------------- the fitted prior


def laws() -> Noisy:
    return Noisy(np.array([0.1, -0.02, 0.5]), np.array([1e-4, 4e-4, 0.0]), np.array([0.01, 0.0, 0.02]), 300.0)


def test_more_than_96_frequencies_are_binned_by_a_twentieth_of_a_standard_error() -> None:
    """And by laws whose null or slope differ by 10 %."""
    rng = generator("binned")
    estimates, kinds = rng.normal(0, 3, 2049), rng.integers(0, 2, 2049)
    null = np.where(kinds == 1, 1.0, 2.0)
    noisy = Noisy(estimates, null, 0.1 * null, np.inf)
    few = Noisy(estimates[:96], null[:96], 0.1 * null[:96], np.inf)
    same, ones, member = few.binned()
    assert same is few and (ones == 1).all() and len(ones) == 96 and member is None
    points, counts, member = noisy.binned()
    assert member is not None
    keys = list(zip(np.floor(noisy.distances / 0.05).tolist(), null.tolist()))
    assert len(counts) == len(set(keys)) and counts.sum() == 2049
    assert len(set(zip(keys, member.tolist()))) == len(counts)
    own = member == member[0]
    assert points.estimates[member[0]] == pytest.approx(estimates[own].mean())
    assert (points.null[member[0]], points.slope[member[0]]) == pytest.approx((null[0], 0.1 * null[0]))
