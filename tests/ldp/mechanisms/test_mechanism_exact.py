"""Small instances of every mechanism against the complete enumeration of their reports, in exact numbers.

Laws that hold of the mechanisms of other packages too are in ``packages/conformance/tests/test_conformance.py``.

Letters: K symbols of which v sensitive, W payload bytes, Y payloads that a client can send, E = e**epsilon.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from tests.support.cases import (
    MECHANISMS_TO_TEST,
    PRIVATE_SYMBOLS_TO_TEST,
    as_array,
    e_below,
    each_mechanism,
    enumerated,
    exact_channel,
    instances,
    label,
    mechanisms,
    private_symbols,
)
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.mechanisms import (
    MECHANISMS,
    KaryRR,
    Mechanism,
    Rappor,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
)
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import BIT_PLANES, WORD, exp_bounds

GOLDEN_DIGITS = 6
"""Significant digits of the numbers that were computed independently of this program."""


def distributions(num_symbols: int) -> np.ndarray:
    """(K + 2, K): every certain symbol, equal shares, and shares that fall like 1 / rank."""
    zipf = 1 / np.arange(1, num_symbols + 1)
    return np.vstack([np.eye(num_symbols), np.full(num_symbols, 1 / num_symbols), zipf / zipf.sum()])


# ---------------------------------------------------------------------- the channel


@mechanisms
def test_probabilities_of_every_symbol_sum_to_exactly_one(mechanism):
    _, rows = exact_channel(mechanism)
    for column in zip(*rows):
        whole = math.lcm(*{share.denominator for share in column})
        assert sum(share.numerator * (whole // share.denominator) for share in column) == whole


@private_symbols
def test_protected_reports_obey_epsilon_exactly_and_nearly_reach_it(mechanism):
    protected = [row for row in exact_channel(mechanism)[1] if all(row)]
    assert len(protected) == len(list(mechanism.noise_law()))
    largest = max(max(row) / min(row) for row in protected)
    assert largest == mechanism.exact_ratio <= e_below(mechanism.epsilon)
    assert math.log(largest) == pytest.approx(mechanism.effective_epsilon, rel=1e-9)
    assert mechanism.epsilon - 1e-8 <= mechanism.effective_epsilon <= mechanism.epsilon


@private_symbols
def test_no_better_coin_would_be_private(mechanism):
    """The next coin that every mechanism can toss: equal slices of noise for v symbols change it by v words."""
    first, second, v = mechanism.keep_weight, mechanism.repeat_weight, mechanism.num_sensitive
    better = Fraction(first + v, WORD)
    assert better / (1 - better) / mechanism.noise_rate > exp_bounds(mechanism.coin_epsilon)[1] - 1
    better = Fraction(first * (second + v), WORD**2)
    if mechanism.epsilon_inf is not None:
        assert better / (1 - better) / mechanism.noise_rate > exp_bounds(mechanism.epsilon)[1] - 1


@pytest.mark.parametrize("epsilon", [2.0**-30, 2.0**-10, 1.0, 16.0])
def test_rational_bounds_enclose_the_exponential(epsilon):
    low, high = exp_bounds(epsilon)
    assert low < e_below(epsilon) < high
    assert 1 < (high - low) / high * 10**70 < 3


@functools.cache
def all_payloads(width: int) -> np.ndarray:
    """(256 ** width, width) uint8: all bytes of this length."""
    return np.arange(256**width, dtype="<u4").view(np.uint8).reshape(-1, 4)[:, :width].copy()


@mechanisms
def test_valid_payloads_are_exactly_those_that_a_client_can_send(mechanism):
    width = mechanism.payload_size
    assert width <= 2, "too many payloads to try them all"
    everything = all_payloads(width)
    accepted = {payload.tobytes() for payload in everything[mechanism.is_valid(everything)]}
    payloads, _ = exact_channel(mechanism)
    assert accepted == set(payloads)
    assert len(payloads) == len(set(payloads)) == mechanism.num_outputs


def test_a_mechanism_with_other_checks_has_no_tail():
    def violations(self, payloads):
        yield Reason.VALUE_DOMAIN, payloads[:, 0] == 1

    for base, symbols in ((KaryRR, 3), (Rappor, 8)):
        own = type("Own", (base,), {"violations": violations})
        assert base(num_symbols=symbols, num_sensitive=symbols, epsilon=1.0).tail == (1, 3 if symbols == 3 else 256)
        assert own(num_symbols=symbols, num_sensitive=symbols, epsilon=1.0).tail == (0, 0)


# ---------------------------------------------------------------------- what follows from the channel


@mechanisms
def test_inverse_of_one_report_is_unbiased(mechanism):
    _, probabilities, _, inverse = enumerated(mechanism)
    np.testing.assert_allclose(
        probabilities.T @ inverse, np.eye(mechanism.num_symbols), atol=1e-13 * abs(inverse).max()
    )


# ---------------------------------------------------------------------- what the likelihood needs


CLOSED_FORM = [
    mechanism for mechanism in MECHANISMS_TO_TEST if mechanism.has_closed_form and mechanism.num_symbols < 10
]


def gradient(mechanism: UtilityOptimizedRR, cells: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Of sum_y T_y ln Pr(y | p), from the exact channel."""
    _, rows, counted, _ = enumerated(mechanism)
    seen = cells[counted.argmax(axis=1)]
    expected = rows @ p
    return (seen[seen > 0] / expected[seen > 0]) @ rows[seen > 0]


@each_mechanism(CLOSED_FORM)
def test_most_likely_frequencies_fulfil_the_conditions_of_a_maximum(mechanism):
    """It is concave: at the maximum over distributions the gradient is n where p > 0, and at most n elsewhere."""
    rng = generator("most likely", label(mechanism))
    K, v = mechanism.num_symbols, mechanism.num_sensitive
    cases = [rng.multinomial(10 ** (1 + i % 4), rng.dirichlet(np.full(K, 0.5))) for i in range(40)]
    cases += [*np.eye(K, dtype=np.int64), *(7 * np.eye(K, dtype=np.int64)), np.full(K, 3)]
    for cells in cases:
        p, n = mechanism.most_likely(cells), cells.sum()
        assert (p >= 0).all()
        assert p.sum() == pytest.approx(1)
        slope = gradient(mechanism, cells, p)
        np.testing.assert_allclose(slope[p > 1e-12], n, rtol=1e-6)
        assert (slope <= n * (1 + 1e-6)).all()
        assert ((p > 0) == (cells > 0))[v:].all()
        raw = mechanism.invert(CohortCounts(np.array([n]), cells[np.newaxis]))[0]
        if (raw >= 0).all():
            np.testing.assert_allclose(p, raw, atol=1e-9)


# ---------------------------------------------------------------------- limits that must coincide


def with_class(mechanism: Mechanism, cls: type[Mechanism]) -> Mechanism:
    """The mechanism of another class with the same parameters."""
    sizes = {"num_symbols": mechanism.num_symbols, "num_sensitive": mechanism.num_sensitive}
    return cls(**sizes, **{key: value for key, value in mechanism.to_json().items() if key != "id"})


@each_mechanism([m for m in PRIVATE_SYMBOLS_TO_TEST if m.protects_all])
def test_without_clear_symbols_some_utility_optimized_form_is_the_plain_one(mechanism):
    fields = {field.name for field in mechanism.json_fields()}
    forms = [MECHANISMS[name] for name in MECHANISMS if not MECHANISMS[name].protects_all]
    fitting = [with_class(mechanism, cls) for cls in forms if fields <= {field.name for field in cls.json_fields()}]
    assert any(exact_channel(form) == exact_channel(mechanism) for form in fitting)


@each_mechanism([m for m in MECHANISMS_TO_TEST if m.protects_all])
def test_plain_mechanisms_protect_every_symbol(mechanism):
    fields = {key: value for key, value in mechanism.to_json().items() if key != "id"}
    sizes = {"num_symbols": mechanism.num_symbols, "num_others": mechanism.num_others}
    assert type(mechanism)(**sizes, num_sensitive=1, **fields) == mechanism


@pytest.mark.parametrize(
    "mechanism", [m for m in MECHANISMS_TO_TEST if isinstance(m.to_json().get("theta"), float)], ids=label
)
def test_own_bit_is_one_with_probability_theta_and_others_with_psi(mechanism):
    e, theta = math.exp(mechanism.epsilon), mechanism.theta
    rounding = 2.0 ** -(BIT_PLANES + 1)  # of psi; theta = E psi / (1 + (E - 1) psi) is steeper by at most E
    assert float(mechanism.noise_rate) == pytest.approx(theta / ((1 - theta) * e + theta), abs=rounding)
    assert mechanism.miss + mechanism.delta == pytest.approx(theta, abs=e * rounding)


@pytest.mark.parametrize("theta", [1e-12, 1 - 1e-12])
@pytest.mark.parametrize("cls", [Rappor, UtilityOptimizedRappor])
def test_extreme_thetas_keep_noise_in_every_bit_and_stay_private(cls, theta):
    mechanism = cls(num_symbols=3, num_sensitive=2, epsilon=1, theta=theta)
    assert 0 < mechanism.noise_rate < 1
    assert Fraction(mechanism.keep_weight, WORD - mechanism.keep_weight) / mechanism.noise_rate <= e_below(1) - 1


# ---------------------------------------------------------------------- the marginal form of uRAP

MARGINAL = [m for m in MECHANISMS_TO_TEST if isinstance(m, UtilityOptimizedRappor) and m.inversion == "marginal"]


@each_mechanism(MARGINAL)
def test_marginal_bits_are_inverted_one_by_one(mechanism):
    """As in the paper: (T_x / n - psi) / (theta - psi), with the variance of one bit of n reports."""
    v, psi, theta = mechanism.num_sensitive, mechanism.miss, mechanism.miss + mechanism.delta
    assert psi == pytest.approx(float(mechanism.noise_rate))
    cells = generator("marginal", label(mechanism)).integers(0, 1000, (5, mechanism.num_symbols))
    inverted = mechanism.invert(CohortCounts(np.full(5, 1000), cells))
    np.testing.assert_allclose(inverted[:, :v], (cells[:, :v] / 1000 - psi) / (theta - psi), rtol=1e-9)
    np.testing.assert_allclose(inverted[:, v:], cells[:, v:] / 1000 / mechanism.kappa, rtol=1e-9)
    shares = distributions(mechanism.num_symbols)
    m = psi + (theta - psi) * shares[:, :v]
    np.testing.assert_allclose(mechanism.variances(shares)[:, :v], m * (1 - m) / (theta - psi) ** 2, rtol=1e-9)


@each_mechanism(MARGINAL)
def test_marginal_and_aware_reports_differ_in_the_noise_of_clear_ones_alone(mechanism):
    """The same coin and protected reports; a clear one has the channel of the aware form times that of v noise bits."""
    v, K = mechanism.num_sensitive, mechanism.num_symbols
    fields = {"epsilon": mechanism.epsilon, "theta": 0.4}
    aware, marginal = (
        UtilityOptimizedRappor(num_symbols=K, num_sensitive=v, inversion=i, **fields) for i in (None, "marginal")
    )
    of_aware, of_marginal = (dict(zip(*exact_channel(m))) for m in (aware, marginal))
    psi = aware.noise_rate
    for payload, row in of_marginal.items():
        bits, clear = payload[: aware.bit_bytes], payload[aware.bit_bytes :]
        if any(clear):
            ones = sum(byte.bit_count() for byte in bits)
            noise = psi**ones * (1 - psi) ** (v - ones)
            assert row == [noise * q for q in of_aware[bytes(aware.bit_bytes) + clear]]
        else:
            assert row == of_aware[payload]
    assert len(of_marginal) == 2**v * (1 + K - v)


@each_mechanism(MARGINAL)
def test_the_aware_inversion_is_never_less_precise(mechanism):
    aware, marginal = (
        UtilityOptimizedRappor(num_symbols=m.num_symbols, num_sensitive=m.num_sensitive, epsilon=m.epsilon, inversion=i)
        for m, i in ((mechanism, "aware"), (mechanism, "marginal"))
    )
    assert aware.inversion is None
    shares = distributions(mechanism.num_symbols)
    slack = 1e-12 * marginal.variances(shares).max()
    assert (aware.variances(shares) <= marginal.variances(shares) + slack).all()


# ---------------------------------------------------------------------- the optimal theta


def worst_error(cls: type[Mechanism], v: int, epsilon: float, theta: float | str | None, **fields: str) -> float:
    """n times the mean squared error over the symbols, without the part that no theta changes, for the least favourable
    share of people with sensitive values. K - v = v symbols are not sensitive unless the mechanism protects all."""
    all_sensitive = cls is Rappor
    mechanism = cls(num_symbols=v if all_sensitive else 2 * v, num_sensitive=v, epsilon=epsilon, theta=theta, **fields)
    errors = []
    for sensitive in (1.0,) if all_sensitive else (0.0, 0.3, 1.0):
        shares = np.full(v, sensitive / v)
        shares = shares if all_sensitive else np.append(shares, np.full(v, (1 - sensitive) / v))
        errors.append(float((mechanism.variances(shares) + shares**2).sum()))
    return max(errors)


FORMS = [(Rappor, {}), (UtilityOptimizedRappor, {}), (UtilityOptimizedRappor, {"inversion": "marginal"})]


@pytest.mark.parametrize(("v", "epsilon"), [(2, 1.0), (5, 1.0), (15, 1.0), (15, 6.0), (76, 2.0), (3, 0.05), (4, 12.0)])
@pytest.mark.parametrize(("cls", "fields"), FORMS)
def test_no_other_theta_has_a_smaller_worst_error(cls, fields, v, epsilon):
    best = worst_error(cls, v, epsilon, "optimal", **fields)
    found = optimize.minimize_scalar(
        lambda theta: worst_error(cls, v, epsilon, theta, **fields), bounds=(1e-6, 1 - 1e-6), method="bounded"
    )
    assert best <= found.fun * (1 + 1e-8)
    sizes = {"num_symbols": 2 * v, "num_sensitive": v, "epsilon": epsilon}
    optimal = cls(**sizes | ({"num_symbols": v} if cls is Rappor else {}), theta="optimal", **fields)
    theta = optimal.miss + optimal.delta
    for neighbour in (theta - 0.01 * min(theta, 1 - theta), theta + 0.01 * min(theta, 1 - theta), None, 0.5):
        assert worst_error(cls, v, epsilon, neighbour, **fields) >= best * (1 - 1e-9)


@pytest.mark.parametrize(("v", "epsilon", "theta"), [(15, 1.0, 0.513553), (15, 6.0, 0.840645)])
def test_golden_optimal_thetas_of_the_marginal_form(v, epsilon, theta):
    """Least favourable: nobody's value is sensitive."""
    mechanism = UtilityOptimizedRappor(
        num_symbols=2 * v, num_sensitive=v, epsilon=epsilon, theta="optimal", inversion="marginal"
    )
    agree(mechanism.miss + mechanism.delta, theta)


@pytest.mark.parametrize(("v", "epsilon"), [(5, 1.0), (15, 6.0), (76, 2.0)])
@pytest.mark.parametrize("cls", [Rappor, UtilityOptimizedRappor])
def test_optimal_theta_where_everybodys_value_is_sensitive(cls, v, epsilon):
    """theta = a / (a + b) with a**2 = E (v + E - 1) and b**2 = v E - E + 1."""
    e = math.exp(epsilon)
    a, b = math.sqrt(e * (v + e - 1)), math.sqrt(v * e - e + 1)
    mechanism = cls(num_symbols=v, num_sensitive=v, epsilon=epsilon, theta="optimal")
    assert mechanism.miss + mechanism.delta == pytest.approx(a / (a + b), abs=e * 2.0**-BIT_PLANES)


# ---------------------------------------------------------------------- several hash functions

BLOOM = instances(Rappor, [(4, 4), (6, 6)], num_hashes=[2, 3], epsilon=[0.5, 1.0, 4.0], theta=[None, 0.5, "optimal"])


def bit_sets(mechanism: Rappor) -> list[frozenset[int]]:
    """The own bits that a value can have: h of them, or fewer where its hash functions coincide."""
    sizes = range(1, mechanism.num_hashes + 1)
    return [frozenset(c) for size in sizes for c in itertools.combinations(range(mechanism.num_symbols), size)]


@functools.cache
def of_bit_set(mechanism: Rappor, own: frozenset[int]) -> list[Fraction]:
    """Exact probability of each of the 2**K reports of a value: its own bits have coins of their own."""
    kappa, psi = Fraction(mechanism.keep_weight, WORD), mechanism.noise_rate
    theta = kappa + (1 - kappa) * psi
    rates = [theta if bit in own else psi for bit in range(mechanism.num_symbols)]
    return [
        math.prod(rate if bit else 1 - rate for rate, bit in zip(rates, bits))
        for bits in itertools.product((0, 1), repeat=mechanism.num_symbols)
    ]


@pytest.mark.parametrize("mechanism", BLOOM, ids=lambda m: f"{m.num_hashes}-{label(m)}")
def test_several_own_bits_share_the_budget_exactly(mechanism):
    channel = [of_bit_set(mechanism, own) for own in bit_sets(mechanism)]
    assert all(sum(row) == 1 for row in channel)
    largest = max(max(column) / min(column) for column in zip(*channel))
    assert largest <= e_below(mechanism.epsilon)
    disjoint = 2 * mechanism.num_hashes <= mechanism.num_symbols
    if disjoint:
        assert largest == mechanism.exact_ratio
        assert math.log(largest) == pytest.approx(mechanism.effective_epsilon, rel=1e-9)
        assert mechanism.epsilon - 1e-8 <= mechanism.effective_epsilon <= mechanism.epsilon
    else:
        assert math.log(largest) < mechanism.effective_epsilon


@pytest.mark.parametrize("mechanism", BLOOM, ids=lambda m: f"{m.num_hashes}-{label(m)}")
def test_moments_of_several_own_bits(mechanism):
    """The inverse is unbiased for the rates of the bits; its covariance stays below the diagonal bound."""
    K = mechanism.num_symbols
    sets = bit_sets(mechanism)
    codes = as_array(
        [
            mechanism.bits_payload(frozenset(itertools.compress(range(K), bits)))
            for bits in itertools.product((0, 1), repeat=K)
        ]
    )
    cells = mechanism.count(codes, np.arange(len(codes)), len(codes))
    inverse = mechanism.invert(CohortCounts(np.ones(len(codes), dtype=np.int64), cells))
    channel = np.array([[float(q) for q in of_bit_set(mechanism, own)] for own in sets])
    pattern = np.array([[bit in own for bit in range(K)] for own in sets], dtype=np.float64)
    np.testing.assert_allclose(channel @ inverse, pattern, atol=1e-12 * abs(inverse).max())
    rng = generator("several", label(mechanism), mechanism.num_hashes)
    for held in (*np.eye(len(sets))[[0, -1]], *rng.dirichlet(np.full(len(sets), 0.3), 5)):
        rates = held @ pattern
        np.testing.assert_allclose(mechanism.response(rates), (held @ channel) @ cells, atol=1e-12)
        covariance = (inverse.T * (held @ channel)) @ inverse - np.outer(rates, rates)
        np.testing.assert_allclose(mechanism.variances(rates), np.diag(covariance), rtol=1e-9)
        bound = np.diag(mechanism.private_variances(rates)) - np.outer(rates, rates)
        assert np.linalg.eigvalsh(bound - covariance).min() >= -1e-12 * covariance.max()
    nobody = mechanism.null_variances(np.full(K, 0.3))
    np.testing.assert_allclose(nobody, mechanism.variances(np.zeros(K)), rtol=1e-12)


@pytest.mark.parametrize("mechanism", BLOOM, ids=lambda m: f"{m.num_hashes}-{label(m)}")
def test_the_likelihood_of_several_own_bits_is_not_linear(mechanism):
    payloads = np.zeros((3, mechanism.payload_size), dtype=np.uint8)
    assert mechanism.outcomes_of_reports(payloads, np.zeros(3, dtype=np.int64)) is None
    assert mechanism.outcomes_of_counts(CohortCounts.empty(1, mechanism.num_symbols)) is None


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 1.0, 0.7, 2.0**-10])
@pytest.mark.parametrize("num_hashes", range(1, 9))
def test_parts_of_the_budget_never_exceed_it(num_hashes, epsilon):
    mechanism = Rappor(num_symbols=16, num_sensitive=16, num_hashes=num_hashes, epsilon=epsilon)
    share = Fraction(mechanism.bit_epsilon)
    assert num_hashes * share <= Fraction(epsilon) < num_hashes * share + Fraction(epsilon) / 2**50


# ---------------------------------------------------------------------- numbers computed elsewhere


def agree(values: np.ndarray, expected: list[float], digits: int = GOLDEN_DIGITS) -> None:
    """Assert that values round to the expected numbers, to half a unit (and a little) in the last digit."""
    expected = np.array(expected, dtype=np.float64)
    size = 10.0 ** np.floor(np.log10(np.maximum(abs(expected), 1e-300)))
    assert (abs(values - expected) <= 0.51 * size * 10.0 ** (1 - digits)).all(), (values, expected)


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
