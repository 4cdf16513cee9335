"""The parts of forecasts: by hand, by cumulants, by integration, and six digits of what they were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.small_mechanisms import SIX_DIGITS, make, zipf
from uldp_transforms.ldp.planning import hashed_forecast
from uldp_transforms.ldp.planning.forecast import Estimates, Groups, PerReport, Shift, Together, rare_shift, told
from uldp_transforms.ldp.planning.planned_question import best_size, nearly_best_size, placeholders


def digits(number: float) -> Any:
    return pytest.approx(number, rel=SIX_DIGITS)


# ---------------------------------------------------------------------- groups of frequencies


def test_few_frequencies_are_grouped_if_equal_and_many_if_similar() -> None:
    few = Groups.of(np.array([0.5, 0.1, 0.1, 0.3]))
    assert (few.frequencies.tolist(), few.numbers.tolist(), few.total) == ([0.1, 0.3, 0.5], [2, 1, 1], 4)
    assert few.squares == pytest.approx(0.02 + 0.09 + 0.25)
    assert [len(Groups.of(zipf(size)).numbers) for size in (128, 129, 3000)] == [128, 97, 254]
    many = Groups.of(0.9 * zipf(3000))
    assert (many.frequencies[0], many.frequencies[-1]) == (digits(3.49731e-5), digits(0.104849))
    assert many.squares == digits(0.0180797)
    assert Groups.of(np.zeros(200)).frequencies.tolist() == [0]


def test_groups_are_joined_and_multiplied() -> None:
    one, other = Groups(np.array([0.1, 0.2]), np.array([3, 1])), Groups(np.array([0.5]), np.array([2]))
    both = one.joined(other)
    assert (both.frequencies.tolist(), both.numbers.tolist()) == ([0.1, 0.2, 0.5], [3, 1, 2])
    half = one.times(0.5)
    assert (half.frequencies.tolist(), half.numbers.tolist()) == ([0.05, 0.1], [3, 1])


# ---------------------------------------------------------------------- errors of estimates


def estimates(**fields: Any) -> Estimates:
    arrays = {name: np.array(value, dtype=float) for name, value in fields.items() if isinstance(value, list)}
    return Estimates(**fields | arrays)


def test_errors_of_estimates_by_hand() -> None:
    """Two values with the variance 0.01 and one with 0.04, of which so many reports are counted that all is normal."""
    one = estimates(numbers=[2, 1], variances=[0.01, 0.04], counted=[50, 900], steps=[0.02, 0.1], num_reports=1000)
    assert one.l2 == pytest.approx(0.06)
    assert (one.l1, one.normal_l1) == (pytest.approx(math.sqrt(2 / math.pi) * 0.4),) * 2
    z = stats.norm.isf(0.025)
    squares = 2 * (0.01 + (z * 0.01) ** 2) + 0.04 + (z * 0.05) ** 2
    assert one.half_width() == pytest.approx(z * math.sqrt(squares / 3))
    quantiles = stats.norm.isf(0.05 / 2 / 7) + stats.norm.isf(0.2)
    assert one.change(7) == pytest.approx(quantiles * math.sqrt(2 * 0.06 / 3))
    both = Together((one, one))
    assert (both.l1, both.l2, both.normal_l1) == (2 * one.l1, 2 * one.l2, 2 * one.normal_l1)


def test_a_report_is_scaled_to_many() -> None:
    one = PerReport(numbers=np.array([3]), variances=np.array([8.0]), rates=np.array([0.25]), steps=np.array([2.0]))
    many = one.of(400)
    assert (many.variances.tolist(), many.counted.tolist(), many.steps.tolist()) == ([0.02], [100], [0.005])
    assert (many.numbers.tolist(), many.num_reports, many.shift) == ([3], 400, None)


def test_people_who_tell_with_a_probability_by_hand() -> None:
    """R / (n q): of p it has the variance p / q - p^2, with steps of 1 / q."""
    found = told(Groups(np.array([0.2, 0.5]), np.array([1, 4])), 10, 0.25)
    np.testing.assert_allclose(found.variances, [(0.8 - 0.04) / 10, (2 - 0.25) / 10])
    np.testing.assert_allclose(found.counted, [0.5, 1.25])
    assert (found.steps.tolist(), found.numbers.tolist()) == ([0.4, 0.4], [1, 4])


@pytest.mark.parametrize(("counted", "l1"), [(3, 0.0159575), (49.99, 0.0159582), (50, 0.0159577)])
def test_golden_errors_of_few_counts(counted: float, l1: float) -> None:
    found = estimates(numbers=[2], variances=[1e-4], counted=[counted], steps=[1e-3], num_reports=200)
    assert found.l1 == digits(l1)


def test_rare_errors_have_the_cumulants_of_their_events() -> None:
    """Of a compound Poisson sum: the k-th one is the sum of the rates times the k-th powers of the sizes."""
    sizes, rates = np.array([0.3, 0.1, 0.01]), np.array([0.2, 1.0, 5.0])
    shift = rare_shift(sizes, rates, 0.02)
    scaled = sizes * math.sqrt(0.02 / (rates @ sizes**2))
    assert shift.weights.sum() == pytest.approx(1)
    assert shift.weights @ shift.errors == pytest.approx(0, abs=1e-12)
    for power in (2, 3):
        assert shift.weights @ shift.errors**power == pytest.approx(rates @ scaled**power, rel=1e-3)
    assert len(shift.errors) == 890
    assert (shift.errors[0], shift.errors[-1], shift.weights[0]) == (
        digits(-0.175919),
        digits(1.47918),
        digits(0.00202943),
    )
    assert (shift.variance, shift.weights @ np.abs(shift.errors)) == (digits(0.0200047), digits(0.111089))
    one = estimates(
        numbers=[2, 1], variances=[0.03, 0.05], counted=[100, 2], steps=[1e-3, 0.05], num_reports=200, shift=shift
    )
    assert one.l1 == digits(0.447232)


def test_a_shift_is_a_part_of_the_variance() -> None:
    """An error of 0.3 or -0.1 and a normal rest of variance 0.01: E |X| of both parts, by the normal law."""
    shift = Shift(np.array([0.3, -0.1]), np.array([0.25, 0.75]))
    one = estimates(numbers=[1], variances=[0.04], counted=[1000], steps=[0.001], num_reports=10_000, shift=shift)
    assert shift.variance == pytest.approx(0.03)

    def folded(mean: float, deviation: float) -> float:
        return float(stats.foldnorm.mean(abs(mean) / deviation, scale=deviation))

    assert one.l1 == pytest.approx(0.25 * folded(0.3, 0.1) + 0.75 * folded(-0.1, 0.1))
    alone = estimates(numbers=[1], variances=[0.02], counted=[1000], steps=[0.001], num_reports=10_000, shift=shift)
    assert alone.l1 == pytest.approx(0.25 * 0.3 + 0.75 * 0.1)  # no rest


# ---------------------------------------------------------------------- hashed candidates


# mechanism, k, n, C, S and unlisted share; the heaviest text; common, own, counted, delta, jump, l2, l1; the collisions
GOLDEN = [
    (
        "krr 4 1000 16 30 0.1",
        "",
        "1.35664e-3 0.806389 0.25 0.826731 1.20958 0.0413432 0.888549",
        "5.64388e-5 5.98961e-3",
    ),
    (
        "krr 300 50000 4 256 0.1",
        "0.05",
        "2.65645e-5 16.6628 3.33333e-3 0.0598132 16.7187 7.09972e-3 1.05578",
        "2.77787e-6 4.85805e-4",
    ),
    (
        "rappor 64 20000 64 100 0.3",
        "0.2",
        "2.34786e-5 0.984127 0.19235 0.635149 1.57443 2.38082e-3 0.388468",
        "3.41839e-6 1.48595e-3",
    ),
    ("krr 60 30000 1024 2000 0.1", "0.01", "9.72228e-6 4.07351 0.0166667 0.241328 4.14374 0.0195661 4.99045", ""),
    (
        "ss 8 10000 40 100 0.2",
        "0.2",
        "2.96519e-4 0.806389 0.25 0.708627 1.41118 0.0297126 1.3737",
        "2.20697e-4 0.0116995",
    ),
    ("krr 16 5000 2048 600 0", "0", "4.51431e-5 1.71578 0.0625 0.543972 1.83833 0.0274222 3.23562", ""),
]


@pytest.mark.parametrize(("case", "heaviest", "golden", "collisions"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_golden_noise_of_hashed_candidates(case: str, heaviest: str, golden: str, collisions: str) -> None:
    """Of short lists and long ones, with collisions that are normal, that are rare, and that stand out."""
    name, *sizes, share = case.split()
    (buckets, number, cohorts, size), unlisted_share = map(int, sizes), float(share)
    fields = {"subset_size": 2} if name == "ss" else {}
    mechanism = make(name, buckets, buckets, epsilon=3.0, **fields)
    candidates, unlisted = Groups.of(zipf(size) * (1 - unlisted_share)), Groups.of(zipf(size) * unlisted_share)
    if heaviest:
        rest = Groups.of(zipf(size) * max(unlisted_share - float(heaviest), 0))
        unlisted = Groups(np.array([float(heaviest)]), np.array([1])).joined(rest)
    noise = hashed_forecast.hashed_noise(mechanism, cohorts, number, candidates, unlisted_share, unlisted)
    forecast, shift = noise.of(candidates), noise.shift
    found = (noise.common, noise.own, noise.counted, noise.delta, noise.jump, forecast.l2, forecast.l1)
    assert found == tuple(digits(float(number)) for number in golden.split())
    rare = () if shift is None else (shift.variance, shift.weights @ np.abs(shift.errors))
    assert rare == tuple(digits(float(number)) for number in collisions.split())


def test_noise_of_candidates_grows_with_their_own_holders_by_hand() -> None:
    noise = hashed_forecast.HashedNoise(
        common=0.01, own=2.0, counted=0.25, delta=0.5, jump=3.0, num_reports=100, shift=None
    )
    found = noise.of(Groups(np.array([0.0, 0.4]), np.array([5, 2])))
    np.testing.assert_allclose(found.variances, [0.01, 0.01 + (0.8 - 0.16) / 100])
    np.testing.assert_allclose(found.counted, [25, 45])
    assert (found.steps.tolist(), found.numbers.tolist(), found.num_reports) == ([0.03, 0.03], [5, 2], 100)


@pytest.mark.parametrize(("cohorts", "reports"), [(1, 5), (2, 1), (64, 10), (64, 100_000)])
def test_cohorts_with_reports_are_those_that_are_not_missed(cohorts: int, reports: int) -> None:
    expected = cohorts * (1 - (1 - 1 / cohorts) ** reports)
    assert hashed_forecast._cohorts_with_reports(cohorts, reports) == pytest.approx(expected)


def test_noise_of_a_bucket_by_hand() -> None:
    """k-RR keeps with p and draws each other symbol with q. Compared with other buckets, the one in which everybody is
    has the noise p, and another one q, in units of (p - q)^2."""
    mechanism = make("krr", 4, 4, epsilon=math.log(5))
    p, q, unit = 5 / 8, 1 / 8, 1 / 4
    for mass in (1.0, 0.5):
        empty, slope = hashed_forecast._bucket_noise(mechanism, mass)
        assert (empty, slope) == (pytest.approx(q / unit), pytest.approx((p - q) / unit))
        assert hashed_forecast._counted(mechanism, mass) == pytest.approx(mass / 4 * (p - q) + q)
    assert hashed_forecast._bucket_noise(mechanism, 0.0)[1] == 0
    mixed = make("urr", 6, 4, epsilon=math.log(5))
    empty, _ = hashed_forecast._bucket_noise(mixed, 0.5)
    private = mixed.private_variances(np.array([0.5, 0, 0, 0, 0.25, 0.25]))
    assert empty == pytest.approx(private[1])
    assert hashed_forecast._counted(mixed, 0.5) == pytest.approx(mixed.response(np.array([0.125] * 4 + [0.25] * 2))[0])


def test_frequencies_that_are_not_known_yet_are_the_bayes_risk_of_the_prior() -> None:
    """By integration on a fine grid, within 2 %. What stands out by more than four errors costs its own variance."""
    prior, error = zipf(20), 0.05
    seen, low = np.linspace(-0.5, 1, 6001)[:, np.newaxis], prior[prior <= 4 * error]
    joint = stats.norm.pdf(seen, low, error)
    mean = joint @ low / joint.sum(axis=1)
    risk = (joint * (low - mean[:, np.newaxis]) ** 2).sum() * (seen[1, 0] - seen[0, 0])
    expected = risk + (len(prior) - len(low)) * error**2
    assert hashed_forecast._unknown(Groups.of(prior), error) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("error", "few", "many"), [(1e-4, 2e-7, 1.06677e-5), (1e-3, 2e-5, 2.59736e-4), (0.02, 3.51741e-3, 6.97619e-3)]
)
def test_golden_posterior_variances(error: float, few: float, many: float) -> None:
    assert hashed_forecast._unknown(Groups.of(zipf(20)), error) == digits(few)
    assert hashed_forecast._unknown(Groups.of(0.9 * zipf(3000)), error) == digits(many)


def test_golden_fixed_points_of_message_passing() -> None:
    many = Groups.of(0.9 * zipf(3000))
    assert hashed_forecast._fixed_point(1e-6, many, 5e-4, 500) == digits(3.01043e-6)
    assert hashed_forecast._fixed_point(1e-5, many, 0.0, 100) == digits(2.92551e-5)
    assert hashed_forecast._fixed_point(1e-9, Groups.of(zipf(600)), 0.0, 5000) == digits(1.13736e-9)


def test_many_atoms_are_merged_with_their_weight_and_mean_kept() -> None:
    atoms, weights = hashed_forecast._coarse(zipf(80), np.arange(80.0))
    assert (atoms.tolist(), weights.tolist()) == (zipf(80).tolist(), np.arange(80.0).tolist())
    atoms, weights = hashed_forecast._coarse(zipf(81), np.ones(81))
    assert (len(atoms), weights.sum(), atoms @ weights) == (46, 81, pytest.approx(1))
    assert (atoms.max(), atoms.min(), atoms @ atoms) == (digits(0.200891), digits(0.00248014), digits(0.0652552))
    tiny = np.append(zipf(100), 1e-12)  # more than 20 below the largest in logarithms
    atoms, weights = hashed_forecast._coarse(tiny, np.arange(101.0))
    assert (len(atoms), weights.sum(), atoms.min()) == (17, 5050, pytest.approx(1e-12))
    assert (atoms @ weights, atoms**2 @ weights) == (digits(18.2776), digits(0.131494))


# ---------------------------------------------------------------------- sizes and names


@pytest.mark.parametrize("largest", [1, 2, 3, 7, 100])
def test_the_best_size_is_that_of_the_least_loss(largest: int) -> None:
    for best in range(1, largest + 1):
        assert best_size(largest, lambda size, best=best: abs(size - best)) == best  # type: ignore[misc]  # mypy cannot infer the type of its default
    assert best_size(largest, lambda size: 0.0) == 1


@pytest.mark.parametrize("start", [1, 2, 50, 5000, 10**6])
@pytest.mark.parametrize("best", [2, 3, 60, 4321, 5000])
def test_a_nearly_best_size_is_within_4_percent(start: int, best: int) -> None:
    found = nearly_best_size(start, 5000, lambda size: abs(math.log(size / best)))
    assert 2 <= found <= 5000
    assert abs(found - best) <= max(0.04 * best, 0.5)


def test_impossible_sizes_are_passed_by_going_up() -> None:
    """Up to the largest one, and the same size is not asked for twice."""
    asked: list[int] = []

    def loss(size: int) -> float:
        asked.append(size)
        return math.inf if size < 700 else float(size)

    assert 700 <= nearly_best_size(2, 5000, loss) <= 728
    assert len(asked) == len(set(asked)) and all(2 <= size <= 5000 for size in asked)
    assert nearly_best_size(2, 5000, lambda size: math.inf) == 5000
    assert nearly_best_size(2, 5000, lambda size: math.inf if size < 5000 else 1.0) == 5000


@pytest.mark.parametrize(("number", "first", "last"), [(1, "001", "001"), (999, "001", "999"), (1000, "0001", "1000")])
def test_placeholders_have_one_length(number: int, first: str, last: str) -> None:
    names = placeholders(number)
    assert (names[0], names[-1], len(set(names))) == (f"value-{first}", f"value-{last}", number)
