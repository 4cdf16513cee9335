"""Small instances of every mechanism against the complete enumeration of their reports, in exact numbers.

Letters: K symbols of which v sensitive, W payload bytes, Y payloads that a client can send, E = e**epsilon.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import MECHANISMS_TO_TEST, as_array, enumerated, exact_channel, instances, label, mechanisms

from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.estimators import Normalized, Projected
from uldp_transforms.ldp.mechanisms import (
    KaryRR,
    Rappor,
    SetReportMechanism,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
)
from uldp_transforms.ldp.sampling import BIT_PLANES, WORD, exp_bounds

GOLDEN_DIGITS = 6
"""Significant digits of the numbers that were computed independently of this program."""


@functools.cache
def e_below(epsilon: float) -> Fraction:
    """A rational number below e**epsilon, closer than 1e-100 for epsilon <= 16: a partial sum of the series."""
    term = total = Fraction(1)
    for i in range(1, 250):
        term = term * Fraction(epsilon) / i
        total += term
    return total


def distributions(num_symbols: int) -> np.ndarray:
    """(K + 2, K): every certain symbol, equal shares, and shares that fall like 1 / rank."""
    zipf = 1 / np.arange(1, num_symbols + 1)
    return np.vstack([np.eye(num_symbols), np.full(num_symbols, 1 / num_symbols), zipf / zipf.sum()])


# ---------------------------------------------------------------------- the channel


@mechanisms
def test_probabilities_of_every_symbol_sum_to_exactly_one(mechanism):
    _, rows = exact_channel(mechanism)
    assert [sum(column) for column in zip(*rows)] == [1] * mechanism.num_symbols


@mechanisms
def test_protected_reports_obey_epsilon_exactly_and_nearly_reach_it(mechanism):
    protected = [row for row in exact_channel(mechanism)[1] if all(row)]
    assert len(protected) == len(list(mechanism.noise_law()))
    largest = max(max(row) / min(row) for row in protected)
    assert largest <= e_below(mechanism.epsilon)
    assert math.log(largest) == pytest.approx(mechanism.effective_epsilon, rel=1e-9)
    assert mechanism.epsilon - 1e-8 <= mechanism.effective_epsilon <= mechanism.epsilon


@mechanisms
def test_no_better_coin_would_be_private(mechanism):
    """The next coin that every mechanism can toss: equal slices of noise for v symbols change it by v words."""
    better = mechanism.keep_weight + mechanism.num_sensitive
    assert Fraction(better, WORD - better) / mechanism.noise_rate > exp_bounds(mechanism.epsilon)[1] - 1


@mechanisms
def test_clear_reports_come_from_one_symbol_which_is_not_sensitive(mechanism):
    clear = [row for row in exact_channel(mechanism)[1] if not all(row)]
    senders = [[symbol for symbol, probability in enumerate(row) if probability] for row in clear]
    assert senders == [[symbol] for symbol in range(mechanism.num_sensitive, mechanism.num_symbols)]


@pytest.mark.parametrize("epsilon", [2.0**-30, 2.0**-10, 1.0, 16.0])
def test_rational_bounds_enclose_the_exponential(epsilon):
    low, high = exp_bounds(epsilon)
    assert low < e_below(epsilon) < high
    assert high - low < high / 10**69


@mechanisms
def test_valid_payloads_are_exactly_those_that_a_client_can_send(mechanism):
    width = mechanism.payload_size
    assert width <= 2, "too many payloads to try them all"
    everything = as_array([bytes(payload) for payload in itertools.product(range(256), repeat=width)])
    accepted = {payload.tobytes() for payload in everything[mechanism.is_valid(everything)]}
    payloads, _ = exact_channel(mechanism)
    assert accepted == set(payloads)
    assert len(payloads) == len(set(payloads))


@mechanisms
def test_log_prob_is_the_channel(mechanism):
    codes, probabilities, _, _ = enumerated(mechanism)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(mechanism.log_prob(codes), np.log(probabilities), rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------- what follows from the channel


@mechanisms
def test_each_report_counts_what_it_supports(mechanism):
    codes, _, cells, _ = enumerated(mechanism)
    np.testing.assert_array_equal(cells, mechanism.supports(codes))


@mechanisms
def test_response_is_the_expected_count(mechanism):
    _, probabilities, cells, _ = enumerated(mechanism)
    shares = distributions(mechanism.num_symbols)
    np.testing.assert_allclose(mechanism.response(shares), shares @ probabilities.T @ cells, atol=1e-14)


@mechanisms
def test_inverse_of_one_report_is_unbiased(mechanism):
    _, probabilities, _, inverse = enumerated(mechanism)
    np.testing.assert_allclose(
        probabilities.T @ inverse, np.eye(mechanism.num_symbols), atol=1e-13 * abs(inverse).max()
    )


@mechanisms
def test_inverse_of_exact_counts_is_the_truth(mechanism):
    n = 10**15
    shares = distributions(mechanism.num_symbols)
    counts = CohortCounts(np.full(len(shares), n), np.rint(n * mechanism.response(shares)).astype(np.int64))
    np.testing.assert_allclose(mechanism.invert(counts), shares, atol=mechanism.num_symbols * 1e-15 / mechanism.delta)


@mechanisms
def test_inverse_of_no_reports_is_zero(mechanism):
    assert not mechanism.invert(CohortCounts.empty(2, mechanism.num_symbols)).any()


@mechanisms
def test_variances_are_those_of_the_inverse(mechanism):
    _, probabilities, _, inverse = enumerated(mechanism)
    shares = distributions(mechanism.num_symbols)
    expected = shares @ probabilities.T @ inverse**2 - shares**2
    np.testing.assert_allclose(mechanism.variances(shares), expected, rtol=1e-9, atol=1e-13 * (inverse**2).max())


@mechanisms
def test_private_variances_are_the_covariance_seen_by_contrasts(mechanism):
    _, probabilities, _, inverse = enumerated(mechanism)
    v = mechanism.num_sensitive
    contrast = np.eye(v) - 1 / v
    for shares in distributions(mechanism.num_symbols)[[0, -3, -2, -1]]:
        sensitive = shares[:v]
        covariance = (inverse[:, :v].T * (probabilities @ shares)) @ inverse[:, :v] - np.outer(sensitive, sensitive)
        short = np.diag(mechanism.private_variances(shares)) - np.outer(sensitive, sensitive)
        np.testing.assert_allclose(
            contrast @ short @ contrast, contrast @ covariance @ contrast, atol=1e-13 * (inverse**2).max()
        )


@mechanisms
def test_variance_of_a_sum_is_that_of_the_summed_inverse(mechanism):
    _, probabilities, _, inverse = enumerated(mechanism)
    K, v = mechanism.num_symbols, mechanism.num_sensitive
    symbols = np.arange(K)
    for members in (symbols < v, symbols >= v, symbols % 2 == 0, symbols == K - 1, symbols >= 0, symbols < 0):
        for shares in distributions(K)[[0, -3, -2, -1]]:
            summed = inverse[:, members].sum(axis=1)
            expected = summed**2 @ probabilities @ shares - shares[members].sum() ** 2
            computed = mechanism.variance_of_sum(shares, members)
            assert computed == pytest.approx(expected, rel=1e-9, abs=1e-13 * K**2 * (inverse**2).max())


@mechanisms
def test_distributions_may_be_stacked(mechanism):
    shares = distributions(mechanism.num_symbols)
    for function in (mechanism.response, mechanism.variances, mechanism.private_variances):
        np.testing.assert_array_equal(function(shares[np.newaxis])[0], function(shares))
        np.testing.assert_allclose(function(shares)[-1], function(shares[-1]), rtol=1e-15)


@mechanisms
def test_json_form_makes_an_equal_mechanism(mechanism):
    fields = {key: value for key, value in mechanism.to_json().items() if key != "id"}
    sizes = {"num_symbols": mechanism.num_symbols, "num_sensitive": mechanism.num_sensitive}
    assert type(mechanism)(**sizes, **fields) == mechanism


# ---------------------------------------------------------------------- limits that must coincide


def with_class(mechanism: SetReportMechanism, cls: type[SetReportMechanism]) -> SetReportMechanism:
    """The mechanism of another class with the same parameters."""
    sizes = {"num_symbols": mechanism.num_symbols, "num_sensitive": mechanism.num_sensitive}
    return cls(**sizes, **{key: value for key, value in mechanism.to_json().items() if key != "id"})


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS_TO_TEST if m.protects_all], ids=label)
def test_without_clear_symbols_the_utility_optimized_form_is_the_plain_one(mechanism):
    assert exact_channel(with_class(mechanism, type(mechanism).__base__)) == exact_channel(mechanism)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS_TO_TEST if m.protects_all], ids=label)
def test_plain_mechanisms_protect_every_symbol(mechanism):
    fields = {key: value for key, value in mechanism.to_json().items() if key != "id"}
    assert type(mechanism)(num_symbols=mechanism.num_symbols, num_sensitive=1, **fields) == mechanism


def test_two_symbols_make_warners_randomized_response():
    truth = math.e / (1 + math.e)
    _, probabilities, _, _ = enumerated(KaryRR(num_symbols=2, num_sensitive=2, epsilon=1))
    np.testing.assert_allclose(probabilities, [[truth, 1 - truth], [1 - truth, truth]], rtol=1e-15)


def test_one_sensitive_symbol_of_two_makes_mangats_randomized_response():
    lie = math.exp(-1)
    _, probabilities, _, _ = enumerated(UtilityOptimizedRR(num_symbols=2, num_sensitive=1, epsilon=1))
    np.testing.assert_allclose(probabilities, [[1, lie], [0, 1 - lie]], rtol=1e-15)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS_TO_TEST if m.to_json().get("theta")], ids=label)
def test_own_bit_is_one_with_probability_theta_and_others_with_psi(mechanism):
    e, theta = math.exp(mechanism.epsilon), mechanism.theta
    rounding = 2.0 ** -(BIT_PLANES + 1)  # of psi; theta = E psi / (1 + (E - 1) psi) is steeper by at most E
    assert float(mechanism.noise_rate) == pytest.approx(theta / ((1 - theta) * e + theta), abs=rounding)
    assert mechanism.miss + mechanism.delta == pytest.approx(theta, abs=e * rounding)


@pytest.mark.parametrize("mechanism", instances(Rappor, [(4, 4)], epsilon=[0.5, 1.0, 4.0]), ids=label)
def test_rappor_is_symmetric_by_default(mechanism):
    assert mechanism.miss + mechanism.delta == pytest.approx(1 - mechanism.miss, abs=1e-8)


@pytest.mark.parametrize("theta", [1e-12, 1 - 1e-12])
@pytest.mark.parametrize("cls", [Rappor, UtilityOptimizedRappor])
def test_extreme_thetas_keep_noise_in_every_bit_and_stay_private(cls, theta):
    mechanism = cls(num_symbols=3, num_sensitive=2, epsilon=1, theta=theta)
    assert 0 < mechanism.noise_rate < 1
    assert Fraction(mechanism.keep_weight, WORD - mechanism.keep_weight) / mechanism.noise_rate <= e_below(1) - 1


# ---------------------------------------------------------------------- numbers computed elsewhere


def agree(values: np.ndarray, expected: list[float], digits: int = GOLDEN_DIGITS) -> None:
    """Assert that values round to the expected numbers, to half a unit (and a little) in the last digit."""
    expected = np.array(expected, dtype=np.float64)
    size = 10.0 ** np.floor(np.log10(np.maximum(abs(expected), 1e-300)))
    assert (abs(values - expected) <= 0.51 * size * 10.0 ** (1 - digits)).all(), (values, expected)


def test_tiny_urr():
    _, probabilities, _, _ = enumerated(UtilityOptimizedRR(num_symbols=3, num_sensitive=2, epsilon=math.log(2)))
    np.testing.assert_allclose(3 * probabilities, [[2, 1, 1], [1, 2, 1], [0, 0, 1]], atol=1e-14)


class TestTinyUrap:
    """uRAP with v = 2, theta = 2/3, E = 4: psi = 1/3 and rho = 1/2, up to the 32 bits of psi."""

    @staticmethod
    def mechanism(num_symbols: int) -> UtilityOptimizedRappor:
        return UtilityOptimizedRappor(num_symbols=num_symbols, num_sensitive=2, epsilon=math.log(4), theta=2 / 3)

    def test_constants(self):
        mechanism = self.mechanism(5)
        computed = [float(mechanism.noise_rate), mechanism.kappa, mechanism.miss, mechanism.delta]
        np.testing.assert_allclose(computed, [1 / 3, 1 / 2, 1 / 3, 1 / 3], rtol=1e-9)

    def test_variances(self):
        variances = self.mechanism(5).variances(np.array([0.3, 0.2, 0.25, 0.2, 0.05]))
        np.testing.assert_allclose(variances, [1.71, 1.66, 0.4375, 0.36, 0.0975], rtol=1e-8)

    def test_revealed_aware_inverse(self):
        counts = CohortCounts(np.array([1000]), np.array([[260, 220, 150, 90, 10]]))
        np.testing.assert_allclose(self.mechanism(5).invert(counts)[0], [0.03, -0.09, 0.3, 0.18, 0.02], atol=1e-9)


def test_urr_decoders():
    mechanism = UtilityOptimizedRR(num_symbols=6, num_sensitive=3, epsilon=1)
    raw = mechanism.invert(CohortCounts(np.array([2000]), np.array([[700, 520, 380, 250, 100, 50]])))[0]
    agree(raw, [0.379099, 0.131965, -0.0602500, 0.343241, 0.137297, 0.0686483])
    agree(Projected().post_process(raw), [0.367049, 0.119915, 0, 0.331191, 0.125247, 0.0565983])
    agree(Normalized().post_process(raw), [0.357556, 0.124466, 0, 0.323736, 0.129494, 0.0647472])


def test_krr_decoders():
    mechanism = KaryRR(num_symbols=4, num_sensitive=4, epsilon=1)
    raw = mechanism.invert(CohortCounts(np.array([1000]), np.array([[500, 300, 120, 80]])))[0]
    agree(raw, [1.08198, 0.416395, -0.182628, -0.315744])
    agree(Projected().post_process(raw), [0.832791, 0.167209, 0, 0])


def test_coins():
    urr = UtilityOptimizedRR(num_symbols=20, num_sensitive=5, epsilon=1)
    assert 0 <= 4717977891582421986 - urr.keep_weight < 5  # equal slices of noise leave up to v - 1 words unused
    assert urr.kappa == pytest.approx(0.255762, rel=1e-5)
    rappor, oue = (Rappor(num_symbols=20, num_sensitive=20, epsilon=1, theta=theta) for theta in (None, 0.5))
    agree(float(rappor.noise_rate), 0.377541)
    agree(rappor.kappa, 0.393469)
    agree(float(oue.noise_rate), 0.268941)
    agree(oue.kappa, 0.316060)


@pytest.mark.parametrize(
    ("cls", "theta", "expected"),
    [
        (KaryRR, None, 0.0758483),
        (Rappor, None, 0.0396153),
        (Rappor, 0.5, 0.0377653),
        (UtilityOptimizedRR, None, 0.00636584),
        (UtilityOptimizedRappor, None, 0.00910624),
        (UtilityOptimizedRappor, 0.5, 0.00929460),
        (UtilityOptimizedRappor, 0.582752, 0.00904514),
    ],
)
def test_mean_squared_error_of_a_zipf_distribution(cls, theta, expected):
    mechanism = cls(num_symbols=20, num_sensitive=5, epsilon=1, **({} if theta is None else {"theta": theta}))
    agree(mechanism.variances(distributions(20)[-1]).sum() / 2000, expected)


@pytest.mark.parametrize(("k", "epsilon"), [(8, 0.780924), (16, 1.55811), (64, 2.69217), (256, 3.67139)])
def test_krr_and_rappor_are_equally_precise_at_the_crossover(k, epsilon):
    krr, rappor = (cls(num_symbols=k, num_sensitive=k, epsilon=epsilon) for cls in (KaryRR, Rappor))
    uniform = np.full(k, 1 / k)
    assert krr.variances(uniform).sum() == pytest.approx(rappor.variances(uniform).sum(), rel=1e-5)
