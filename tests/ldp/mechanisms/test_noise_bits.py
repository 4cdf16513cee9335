"""Tables of bit patterns: every fraction gives the pattern whose interval contains it, so probabilities are exact."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.support.tolerance import binomial_limits, chi_square_limits, generator, within
from uldp_transforms.ldp.mechanisms import Rappor, SubsetSelection
from uldp_transforms.ldp.mechanisms.noise_bits import MANY_REPORTS, PatternTable, noise_bits
from uldp_transforms.ldp.sampling import BIT_PLANES, SeededSource, bernoulli_planes

WHOLE = 1 << BIT_PLANES
ANY = [1, 171_798_691, WHOLE // 2, 1_623_345_678, WHOLE - 3]
RARE = [1, 77_309_411, WHOLE - 214_748_364]
TABLES = [(numerator, 8) for numerator in ANY] + [(numerator, 16) for numerator in RARE]


class ScriptedSource:
    """Gives prepared words, draw after draw."""

    def __init__(self, *draws: list[int]):
        self.draws = [np.array(draw, dtype=np.uint64) for draw in draws]

    def words(self, *shape: int) -> np.ndarray:
        return self.draws.pop(0).reshape(shape)


@functools.cache
def probability(ones: int, numerator: int, width: int) -> Fraction:
    """Of one pattern with this number of ones."""
    rate = Fraction(numerator, WHOLE)
    return rate**ones * (1 - rate) ** (width - ones)


@functools.cache
def intervals(numerator: int, width: int) -> tuple[list[int], list[int]]:
    """Patterns, the likeliest first, and the ends of their intervals times 2**(32 * width), by the definition."""
    whole = 1 << (BIT_PLANES * width)
    lengths = [int(probability(ones, numerator, width) * whole) for ones in range(width + 1)]
    order = sorted(range(1 << width), key=lambda pattern: -lengths[pattern.bit_count()])
    ends = list(itertools.accumulate(lengths[pattern.bit_count()] for pattern in order))
    assert ends[-1] == whole
    return order, ends


@pytest.mark.parametrize(("numerator", "width"), TABLES)
def test_drawn_patterns_are_those_of_the_fraction_at_and_around_every_end(numerator: int, width: int) -> None:
    """All digits of the fraction reach the draw: its first 16 as a cell, 48 in the next word, the rest if they tie."""
    table = PatternTable(numerator, width)
    shift, unsure = table.digits - 16, table.unsure.tolist()
    ends = intervals(numerator, width)[1][:-1]
    ends = ends if width == 8 else ends[:400] + ends[400:-1:997] + ends[-1:]
    fractions = sorted({u for end in ends for u in (end - 1, end, end + (1 << (table.digits - 64)))})
    fractions = [u for u in fractions if u >> shift in set(unsure)]
    for u in fractions:
        code = len(table.sure) + unsure.index(u >> shift)
        key, rest = u >> (table.digits - 64), u & ((1 << (table.digits - 64)) - 1)
        words = [rest >> (64 * place) & ((1 << 64) - 1) for place in range((table.digits - 64) // 64)]
        second = (key & ((1 << 48) - 1)) << 16 | 0xABCD  # 16 digits that nobody reads
        bits = table.draw(ScriptedSource([code], [second], words), 1, width)
        assert int.from_bytes(bits[0].tobytes(), "little") == table.pattern(u)
    assert fractions or numerator == WHOLE // 2


@pytest.mark.parametrize("num_bits", [1, 8, 13, 16, 64, 100])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.98])
def test_every_bit_of_a_batch_has_the_rate_and_spare_bits_are_0(num_bits: int, rate: float) -> None:
    n, numerator = 20_000, round(rate * WHOLE)
    packed = noise_bits(SeededSource(generator("noise bits", num_bits, rate)), n, num_bits, numerator)
    assert packed.shape == (n, -(-num_bits // 8))
    bits = np.unpackbits(packed, axis=1, bitorder="little")
    assert within(bits[:, :num_bits].sum(axis=0), binomial_limits(n, np.full(num_bits, numerator / WHOLE))).all()
    assert not bits[:, num_bits:].any()


def test_bits_are_independent_within_a_pattern_across_patterns_and_across_reports() -> None:
    n, v, numerator = 20_000, 40, round(0.2 * WHOLE)
    packed = noise_bits(SeededSource(generator("independent bits")), n, v, numerator)
    bits = np.unpackbits(packed, axis=1, bitorder="little", count=v).astype(np.int64)
    apart = np.stack([bits[:-1], bits[1:]]).reshape(2, -1)
    pairs = (bits.T @ bits)[np.triu_indices(v, 1)]
    assert within(pairs, binomial_limits(n, np.full(len(pairs), 0.04))).all()
    assert within(np.array([(apart[0] & apart[1]).sum()]), binomial_limits(apart.shape[1], np.array([0.04]))).all()
    ones = np.bincount(bits.sum(axis=1), minlength=v + 1)
    law = np.array([math.comb(v, k) * 0.2**k * 0.8 ** (v - k) for k in range(v + 1)])
    usual = law > 1e-3
    expected = n * np.append(law[usual], law[~usual].sum())
    observed = np.append(ones[usual], ones[~usual].sum())
    low, high = chi_square_limits(len(expected) - 1)
    assert low <= ((observed - expected) ** 2 / expected).sum() <= high


def test_few_reports_take_the_words_that_clients_specify() -> None:
    """Reports and memos of a client are drawn one at a time; their words must never change."""
    for n in (1, MANY_REPORTS - 1):
        same = [SeededSource(generator("few reports", n)) for _ in range(2)]
        assert (noise_bits(same[0], n, 70, 12_345) == bernoulli_planes(same[1], n, 70, 12_345)).all()
        assert (same[0].words(4) == same[1].words(4)).all()


@pytest.mark.parametrize("mechanism", [Rappor(num_symbols=1024, num_sensitive=1024, epsilon=each) for each in (1, 8)])
def test_a_batch_takes_few_words(mechanism: Rappor) -> None:
    """Each 8 bits take 16 random digits, or each 16 bits where the noise is rare, and few take more."""
    drawn = 0

    class Counting(SeededSource):
        def words(self, *shape: int) -> np.ndarray:
            nonlocal drawn
            drawn += math.prod(shape)
            return super().words(*shape)

    mechanism.perturb(np.zeros(2_000, dtype=np.int64), Counting(generator("few words")))
    least = 32 if mechanism.noise_rate > Fraction(1, 20) else 16
    assert least <= drawn / 2_000 - 1 < 1.1 * least


@pytest.mark.parametrize("num_symbols", [6, 4_097])
def test_subsets_of_a_batch_have_their_size_and_each_symbol_its_rate(num_symbols: int) -> None:
    """Keys of 16 bits, and words where there are more symbols; ties are drawn again."""
    mechanism = SubsetSelection(num_symbols=num_symbols, num_sensitive=num_symbols, epsilon=1, subset_size=2)
    n = MANY_REPORTS if num_symbols > 6 else 30_000
    bits = np.unpackbits(
        mechanism.draw_noise(n, SeededSource(generator("short keys", num_symbols))), axis=1, bitorder="little"
    )
    assert (bits.sum(axis=1) == 2).all()
    expected = np.full(num_symbols, float(mechanism.noise_rate))
    assert within(bits[:, :num_symbols].sum(axis=0), binomial_limits(n, expected)).all()
    if num_symbols == 6:
        pairs = (bits.T.astype(np.int64) @ bits)[:6, :6][np.triu_indices(6, 1)]
        assert within(pairs, binomial_limits(n, np.full(15, 1 / 15))).all()
