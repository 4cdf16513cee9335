"""What a client really draws: the words it takes, the reports that come out, and the arithmetic in between.

Letters: n reports, K symbols of which v sensitive, W payload bytes. ``q[x]`` is the exact probability of a cell under
symbol x. With n = 100,000 reports a symbol and the limits of ``tolerance`` a probability near 1/2 that is wrong by
0.015 is found (8 standard deviations are 0.013), rare ones sooner.
"""

from __future__ import annotations

import functools
import multiprocessing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.cases import (
    MECHANISMS_TO_TEST,
    each_mechanism,
    instances,
    label,
    mechanisms,
)
from tests.support.ldp.made_collections import made
from tests.support.tolerance import RATE, binomial_limits, chi_square_limits, generator, normal_limit, within
from uldp_transforms.ldp.mechanisms import (
    KaryRR,
    Mechanism,
    Rappor,
    TwoStage,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
)
from uldp_transforms.ldp.sampling import (
    BIT_PLANES,
    WORD,
    SeededSource,
    SystemSource,
    below,
    bernoulli_planes,
    floor_weight,
    uniform_integers,
    word_source,
)

N = 50_000

words = st.integers(0, WORD - 1)


class CountingSource(SeededSource):
    """Counts the words that are drawn."""

    drawn = 0

    def words(self, *shape: int) -> np.ndarray:
        self.drawn += int(np.prod(shape))
        return super().words(*shape)


class RepeatingSource(SeededSource):
    """Broken on purpose: every second word repeats the one before. All single bits stay right."""

    def words(self, *shape: int) -> np.ndarray:
        result = super().words(*shape)
        result[..., 1::2] = result[..., : shape[-1] // 2 * 2 : 2]
        return result


class ScriptedSource:
    """Gives prepared words, draw after draw."""

    def __init__(self, *draws: np.ndarray):
        self.draws = list(draws)

    def words(self, *shape: int) -> np.ndarray:
        draw = np.asarray(self.draws.pop(0), dtype=np.uint64)
        return draw.reshape(shape)


# ---------------------------------------------------------------------- arithmetic


@given(st.lists(words, min_size=1), st.integers(0, WORD))
def test_below_is_integer_comparison(drawn, threshold):
    drawn += [word for word in (threshold - 1, threshold, threshold + 1) if 0 <= word < WORD]
    expected = [word < threshold for word in drawn]
    assert below(np.array(drawn, dtype=np.uint64), threshold).tolist() == expected


@given(st.fractions(0, 1))
def test_floor_weight_is_the_largest_threshold_with_at_most_the_probability(probability):
    threshold = floor_weight(probability)
    assert Fraction(threshold, WORD) <= probability < Fraction(threshold + 1, WORD)


@given(st.lists(words, min_size=1), st.integers(1, 1 << 32))
def test_uniform_integers_multiply_and_shift(drawn, bound):
    drawn += [0, WORD - 1, WORD // bound, WORD // bound - 1]
    drawn = [word % WORD for word in drawn]
    expected = [word * bound // WORD for word in drawn]
    assert uniform_integers(np.array(drawn, dtype=np.uint64), bound).tolist() == expected


@given(st.integers(1, (1 << BIT_PLANES) - 1), st.lists(st.integers(0, (1 << BIT_PLANES) - 1), max_size=60))
def test_one_bit_is_the_comparison_of_its_own_digits_with_the_rate(numerator, fractions):
    """Each bit is a bijective image of 32 random digits compared with the numerator: exactly numerator / 2**32."""
    fractions += [0, numerator - 1, numerator, (1 << BIT_PLANES) - 1]
    lanes = [sum((~(u >> plane) & 1) << lane for lane, u in enumerate(fractions)) for plane in range(BIT_PLANES)]
    packed = bernoulli_planes(ScriptedSource(*lanes), 1, len(fractions), numerator)
    bits = np.unpackbits(packed, axis=1, bitorder="little")[0]
    assert bits[: len(fractions)].tolist() == [u < numerator for u in fractions]
    assert not bits[len(fractions) :].any()


@pytest.mark.parametrize(("num_rows", "num_bits"), [(0, 5), (1, 1), (3, 64), (40_000, 65), (2, 3_000_000)])
def test_every_64_bits_of_every_row_have_their_own_words(num_rows, num_bits):
    source = CountingSource(generator("planes", num_bits))
    packed = bernoulli_planes(source, num_rows, num_bits, 1 << (BIT_PLANES - 1))
    assert packed.shape == (num_rows, -(-num_bits // 8))
    assert source.drawn == BIT_PLANES * num_rows * -(-num_bits // 64)


@pytest.mark.parametrize("symbol", [0, 2])
@pytest.mark.parametrize("epsilon", [2.0**-10, 1.0, 16.0])
def test_randomized_response_cuts_the_words_into_exact_slices(symbol, epsilon):
    mechanism = UtilityOptimizedRR(num_symbols=4, num_sensitive=3, epsilon=epsilon)
    keep, noise = mechanism.keep_weight, mechanism.noise_weight
    edges = [0, keep - 1, keep, keep + noise - 1, keep + noise, keep + 2 * noise - 1, keep + 2 * noise, WORD - 1]
    payloads = mechanism.perturb(np.full(len(edges), symbol), ScriptedSource(edges))
    assert payloads[:, 0].tolist() == [symbol, symbol, 0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    "mechanism", instances(TwoStage, [(5, 5)], epsilon=[2.0**-10, 1.0], missing_rates=[(0.4, 0.05)])
)
def test_two_stages_cut_the_words_into_exact_slices(mechanism):
    """Four answers and "missing", 4: others by their distance from the own answer, then "missing", then itself."""
    missing, other = mechanism.exact_weights["noise_weight"], mechanism.exact_weights["answer_noise_weight"]
    ends = [other, 2 * other, 3 * other, 3 * other + missing, WORD]
    edges = [edge for start, end in zip([0, *ends], ends) for edge in (start, end - 1)]
    payloads = mechanism.perturb(np.full(len(edges), 2), ScriptedSource(edges))
    assert payloads[:, 0].tolist() == [3, 3, 0, 0, 1, 1, 4, 4, 2, 2]
    ends = [missing, 2 * missing, 3 * missing, 4 * missing, WORD]
    edges = [edge for start, end in zip([0, *ends], ends) for edge in (start, end - 1)]
    payloads = mechanism.perturb(np.full(len(edges), 4), ScriptedSource(edges))
    assert payloads[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@each_mechanism(instances(UtilityOptimizedRappor, [(5, 3)], epsilon=[2.0**-10, 1.0]))
def test_unary_coin_is_exact(mechanism):
    """The word below the threshold is informative, the word at it is noise."""
    coins = [mechanism.keep_weight - 1, mechanism.keep_weight] * 2
    no_noise = [np.zeros(4)] * BIT_PLANES
    payloads = mechanism.perturb(np.array([1, 1, 4, 4]), ScriptedSource(coins, *no_noise))
    assert payloads.tolist() == [[0b010, 0], [0, 0], [0, 2], [0, 0]]


def test_marginal_reports_keep_their_noise_and_show_no_bit_of_a_clear_symbol():
    mechanism = UtilityOptimizedRappor(num_symbols=5, num_sensitive=3, epsilon=1, inversion="marginal")
    coins = [0, WORD - 1]
    noise = [np.full(2, 0b101)] * BIT_PLANES  # bits 0 and 2 of all digits: below any rate
    payloads = mechanism.perturb(np.array([4, 4]), ScriptedSource(coins, *noise))
    assert payloads[:, 1].tolist() == [2, 0]
    assert payloads[0, 0] == payloads[1, 0] == 0b101


def test_each_own_bit_has_a_coin_and_a_shared_one_has_the_first():
    mechanism = Rappor(num_symbols=6, num_sensitive=6, num_hashes=3, epsilon=1)
    yes, no = mechanism.keep_weight - 1, mechanism.keep_weight
    symbols = np.array([[0, 2, 5], [0, 2, 5], [0, 2, 5], [1, 1, 3], [1, 1, 3], [4, 2, 4], [3, 3, 3]])
    coins = [[yes, yes, yes], [no, yes, no], [no, no, yes], [no, yes, no], [yes, no, no], [no, no, yes], [no, yes, yes]]
    payloads = mechanism.perturb(symbols, ScriptedSource(coins, *[np.zeros(7)] * BIT_PLANES))
    assert payloads[:, 0].tolist() == [0b100101, 0b000100, 0b100000, 0, 0b000010, 0, 0]


@pytest.mark.parametrize("num_symbols", [2, 256, 257, 65_536, 65_537, 1 << 20])
@pytest.mark.parametrize("cls", [KaryRR, UtilityOptimizedRR, UtilityOptimizedRappor])
def test_informative_reports_carry_symbols_of_every_width(cls, num_symbols):
    mechanism = cls(num_symbols=num_symbols, num_sensitive=1, epsilon=1)
    symbols = np.array([0, num_symbols // 2, num_symbols - 1])
    payloads = mechanism.perturb(symbols, ScriptedSource(*[np.zeros(3)] * (1 + BIT_PLANES)))
    assert mechanism.is_valid(payloads).all()
    cells = mechanism.count(payloads, np.zeros(3, dtype=np.int64), 1)
    assert np.repeat(np.arange(num_symbols), cells[0]).tolist() == sorted(symbols)


# ---------------------------------------------------------------------- sources


def test_system_source_differs_between_calls_and_processes():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        draws = pool.map(system_words, [4] * 4)
    draws += [system_words(4), system_words(4)]
    assert len({word for draw in draws for word in draw}) == 4 * len(draws)


def system_words(size: int) -> list[int]:
    return SystemSource().words(size).tolist()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 2), (2, 3)])
@pytest.mark.parametrize("source", [SystemSource(), SeededSource(generator("shapes"))], ids=lambda source: source.name)
def test_sources_give_words_of_any_shape(source, shape):
    drawn = source.words(*shape)
    assert (drawn.dtype, drawn.shape) == (np.uint64, shape)


@pytest.mark.parametrize("source", [SystemSource(), SeededSource(generator("bits"))], ids=lambda source: source.name)
def test_all_64_bits_of_a_word_are_fair(source):
    ones = np.unpackbits(source.words(N).view(np.uint8).reshape(N, 8), axis=1).sum(axis=0, dtype=np.int64)
    assert within(ones, binomial_limits(N, np.full(64, 0.5))).all()


def test_source_behind_an_argument():
    own = ScriptedSource()
    assert isinstance(word_source(None), SystemSource)
    assert isinstance(word_source(generator("argument")), SeededSource)
    assert word_source(own) is own


@mechanisms
def test_every_input_draws_the_same_number_of_words(mechanism):
    """A client that draws more for one symbol than for another tells it by its running time."""
    K, v = mechanism.num_symbols, mechanism.num_sensitive
    ends = {0, 1, v - 1, v % K, K - 2, K - 1}
    inputs = [np.full(50, symbol) for symbol in (range(K) if K <= 16 else sorted(ends))] + [np.arange(50) % K]
    sources = [CountingSource(generator("count", label(mechanism), i)) for i in range(len(inputs))]
    for symbols, source in zip(inputs, sources):
        mechanism.perturb(symbols, source)
    assert len({source.drawn for source in sources}) == 1


def test_bits_that_coincide_draw_as_many_words_as_others():
    mechanism = Rappor(num_symbols=6, num_sensitive=6, num_hashes=2, epsilon=1)
    sources = [CountingSource(generator("coincide", i)) for i in range(3)]
    for source, symbols in zip(sources, ([0, 1], [3, 3], [5, 0])):
        mechanism.perturb(np.tile(symbols, (50, 1)), source)
    assert len({source.drawn for source in sources}) == 1


def test_a_collection_draws_the_same_number_of_words_for_every_value():
    spec = {"id": "closed", "values": ["a", "b", "c"], "sensitive": ["a"]}
    collection = made(spec, {"id": "urap", "epsilon": 1}, id="q")
    sources = [CountingSource(generator("collection", value)) for value in "abc"]
    for value, source in zip("abc", sources):
        collection.perturb([value] * 50, source)
    assert len({source.drawn for source in sources}) == 1


# ---------------------------------------------------------------------- distribution of the reports

SMALL = [case for case in MECHANISMS_TO_TEST if case.num_symbols <= 10 and case.epsilon == 1]
WIDE = [
    *instances(Rappor, [(70, 70)], epsilon=[1], theta=[None, 0.5]),
    *instances(UtilityOptimizedRappor, [(72, 70)], epsilon=[1], theta=[None, 0.5]),
]


@functools.lru_cache(maxsize=64)
def sample(mechanism: Mechanism, symbol: int, source=SeededSource) -> np.ndarray:
    """(N, W) payloads of one symbol."""
    return mechanism.perturb(np.full(N, symbol), source(generator("sample", label(mechanism), symbol)))


@each_mechanism([case for case in SMALL if case.num_symbols <= 6])
def test_sampled_payloads_follow_the_exact_channel(mechanism):
    payloads, rows = mechanism.channel()
    codes = [int.from_bytes(payload, "little") for payload in payloads]
    weights = 256 ** np.arange(mechanism.payload_size)
    for symbol in range(mechanism.num_symbols):
        counts = np.bincount(sample(mechanism, symbol) @ weights, minlength=max(codes) + 1)[codes]
        assert counts.sum() == N
        q = np.array([float(row[symbol]) for row in rows])
        assert within(counts, binomial_limits(N, q)).all(), symbol


@pytest.mark.parametrize("own", [(0, 3), (2, 2), (4, 1)])
def test_sampled_reports_of_two_own_bits_follow_their_coins(own):
    """All 32 reports, so also the joint law of the own bits."""
    mechanism = Rappor(num_symbols=5, num_sensitive=5, num_hashes=2, epsilon=1)
    payloads = mechanism.perturb(np.tile(own, (N, 1)), SeededSource(generator("two bits", *own)))
    psi, kappa = float(mechanism.noise_rate), mechanism.kappa
    rates = [kappa + (1 - kappa) * psi if bit in own else psi for bit in range(5)]
    reports = np.arange(32)[:, np.newaxis] >> np.arange(5) & 1
    q = np.prod(np.where(reports == 1, rates, 1 - np.array(rates)), axis=1)
    assert within(np.bincount(payloads[:, 0], minlength=32), binomial_limits(N, q)).all()


def pairs_within_limits(mechanism: Mechanism, symbol: int, source=SeededSource) -> np.ndarray:
    """Which pairs of bits are set together as often as independent bits are, for reports of one symbol."""
    v = mechanism.num_sensitive
    bits = mechanism.supports(sample(mechanism, symbol, source))[:, :v].astype(np.float32)
    together = bits.T @ bits  # below 2**24: exact
    psi, kappa = float(mechanism.noise_rate), mechanism.kappa
    if symbol < v:
        q = np.where(np.arange(v) == symbol, mechanism.miss + mechanism.delta, psi)
        expected = np.outer(q, q)
    else:
        expected = np.full((v, v), (1 - kappa) * psi**2)
    pair = np.triu_indices(v, k=1)
    return within(together[pair], binomial_limits(N, expected[pair]))


@each_mechanism(WIDE)
def test_all_pairs_of_bits_are_independent(mechanism):
    for symbol in (0, 69, mechanism.num_symbols - 1):
        assert pairs_within_limits(mechanism, symbol).all(), symbol


@each_mechanism(WIDE)
def test_the_pair_test_finds_a_source_that_repeats_words(mechanism):
    """A word has 32 bits of a batch, and in half of the reports the next word repeats it: the marginals are right,
    exactly pairs of bits at this distance are not.
    """
    cells = mechanism.count(sample(mechanism, 10, RepeatingSource), np.zeros(N, dtype=np.int64), 1)[0]
    assert within(cells, binomial_limits(N, mechanism.response(np.eye(mechanism.num_symbols)[10]))).all()
    first, second = np.triu_indices(mechanism.num_sensitive, k=1)
    fine = pairs_within_limits(mechanism, 10, RepeatingSource)
    np.testing.assert_array_equal(fine, second - first != 32)


def test_cohorts_are_uniform_and_independent_of_the_value():
    spec = {"id": "hashed", "num_buckets": 4}
    collection = made(spec, {"id": "krr", "epsilon": 1}, num_cohorts=7, id="q")
    batch = collection.perturb(["a", "b"] * (N // 2), generator("cohorts"))
    for value in (0, 1):
        sizes = np.bincount(batch.cohorts[value::2], minlength=7)
        assert within(sizes, binomial_limits(N // 2, np.full(7, 1 / 7))).all()


def test_report_ids_are_all_different():
    spec = {"id": "closed", "values": ["a", "b"]}
    collection = made(spec, {"id": "krr", "epsilon": 1}, id="q")
    ids = collection.perturb(["a"] * 1000).report_ids
    assert len(set(map(bytes, ids))) == 1000


# ---------------------------------------------------------------------- the limits themselves


@pytest.mark.parametrize("probability", [0.0, 1e-6, 0.01, 0.5, 1.0])
def test_binomial_limits_have_the_stated_tails(probability):
    low, high = binomial_limits(N, probability)
    assert stats.binom.cdf(low - 1, N, probability) <= RATE / 2 >= stats.binom.sf(high, N, probability)
    if 0 < probability < 1:
        assert stats.binom.sf(high - 1, N, probability) > RATE / 2


def test_normal_and_chi_square_limits_agree():
    limit = normal_limit()
    low, high = chi_square_limits(1)
    assert high == pytest.approx(normal_limit(rate=RATE / 2) ** 2)
    assert 0 < low < 1 < limit**2 < high


@pytest.mark.parametrize("at_once", [1, 8, 1000])
def test_bits_of_any_number_of_reports_take_32_words_for_each_64(at_once, monkeypatch):
    """However many reports are drawn at a time; 65 bits take two words."""
    monkeypatch.setattr("uldp_transforms.ldp.sampling._CHUNK_WORDS", at_once)
    source = CountingSource(np.random.default_rng(1))
    bits = bernoulli_planes(source, 11, 65, 1 << 31)
    assert bits.shape == (11, 9) and source.drawn == 11 * 2 * BIT_PLANES
    assert (bits[:, 8] <= 1).all() and len(np.unique(bits[:, :8], axis=0)) == 11
