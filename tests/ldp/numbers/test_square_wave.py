"""The square wave against fractions and golden values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.support.cases import MECHANISM_CASES, e_below, exact_channel, label
from tests.support.vectors import Words
from uldp_transforms.ldp.mechanisms import SquareWave, UtilityOptimizedRR, UtilityOptimizedSquareWave
from uldp_transforms.ldp.sampling import WORD

P = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
CENTRES = (np.arange(8) + 0.5) / 8
EIGHT = SquareWave(num_symbols=8, num_sensitive=8, epsilon=1)


@pytest.mark.parametrize(("epsilon", "reach"), [(0.5, 11), (1, 8), (2, 4), (4, 1)])
def test_half_widths_of_32_bins(epsilon: float, reach: int):
    assert SquareWave(num_symbols=32, num_sensitive=32, epsilon=epsilon).reach == reach


def test_golden_values_of_eight_bins():
    """From an implementation in floating point, b = 2."""
    assert (EIGHT.reach, EIGHT.num_outputs) == (2, 12)
    assert EIGHT.noise_weight / WORD == pytest.approx(0.0485639420, abs=1e-10)
    assert EIGHT.near_weight / WORD == pytest.approx(0.1320104812, abs=1e-10)
    weights = [-1.066155, -0.929775, -0.335512, -0.248983, -0.162453, 0.431810]
    assert CENTRES @ EIGHT.inverse == pytest.approx([*weights, *(1 - weight for weight in reversed(weights))], abs=1e-6)
    assert EIGHT.variance_of(CENTRES, P) == pytest.approx(0.883288, abs=1e-6)
    assert EIGHT.variance_of((CENTRES < 0.5).astype(float), P) == pytest.approx(6.420553, abs=1e-6)


@pytest.mark.parametrize("mechanism", MECHANISM_CASES["sw"], ids=label)
def test_channel_is_the_definition(mechanism: SquareWave):
    """By the definition: w near outputs, one output of w shares for each other symbol, ratios of at most E."""
    _, rows = exact_channel(mechanism)
    b, others = mechanism.reach, mechanism.num_others
    bins, w = mechanism.num_symbols - others, 2 * mechanism.reach + 1
    far = mechanism.noise_weight
    for output, row in enumerate(rows):
        shares = 1 if output < bins + 2 * b else w
        for symbol, probability in enumerate(row):
            near = symbol <= output <= symbol + 2 * b if symbol < bins else output == symbol + 2 * b
            near = near and (output < bins + 2 * b) == (symbol < bins)
            assert near or probability * WORD == shares * far
            if near:
                assert shares * far < probability * WORD <= shares * far * e_below(mechanism.epsilon)
    for column in zip(*rows):
        assert sum(column) == 1


@pytest.mark.parametrize("mechanism", MECHANISM_CASES["usw"], ids=label)
def test_the_utility_optimized_channel_is_the_definition(mechanism: UtilityOptimizedSquareWave):
    """Sensitive symbols have the square wave among themselves; noise of the others is what is far from a number."""
    _, rows = exact_channel(mechanism)
    v, others, b = mechanism.num_sensitive, mechanism.num_others, mechanism.reach
    if v - others >= 2:
        alone = SquareWave(num_symbols=v, num_sensitive=v, num_others=others, epsilon=mechanism.epsilon, half_width=b)
        assert [row[:v] for row in rows[: v + 2 * b]] == exact_channel(alone)[1]
    for output, row in enumerate(rows[: v + 2 * b]):
        shares = 1 if output < v - others + 2 * b else 2 * b + 1
        noise = Fraction(shares * mechanism.noise_weight, WORD)
        assert set(row[v:]) <= {noise}


@pytest.mark.parametrize("mechanism", [*MECHANISM_CASES["sw"], *MECHANISM_CASES["usw"]], ids=label)
def test_the_client_draws_each_output_with_the_words_of_its_weight(mechanism: UtilityOptimizedSquareWave):
    """Words between two cuts give one output: the first and the last of them are tried; of many symbols, the ends."""
    noise, near, width = mechanism.noise_weight, mechanism.near_weight, 2 * mechanism.reach + 1
    far = (WORD - width * near) // noise
    ends = [*(noise * shares for shares in range(far + width + 1)), *(noise * far + near * n for n in range(width + 1))]
    cuts = np.array(sorted({end for end in ends if end < WORD}), dtype=object)
    lengths = np.diff([*cuts, WORD])
    place = mechanism.as_payloads(np.arange(mechanism.num_outputs)).tolist().index
    K, v = mechanism.num_symbols, mechanism.num_sensitive
    for symbol in range(K) if K <= 16 else sorted({0, 1, v - 1, v % K, K - 2, K - 1}):
        symbols = np.full(len(cuts), symbol)
        first, last = (mechanism.perturb(symbols, Words(of.tolist())).tolist() for of in (cuts, cuts + lengths - 1))
        assert first == last
        found = [0] * mechanism.num_outputs
        for payload, length in zip(first, lengths):
            found[place(payload)] += length
        assert found == [row[symbol] for row in mechanism.weights]


def test_one_sensitive_bin_of_two_is_mangats_randomized_response():
    """The outputs that only the sensitive bin favours are one."""
    sizes = {"num_symbols": 2, "num_sensitive": 1, "epsilon": 1.0}
    wave, mangat = (cls(**sizes).probabilities for cls in (UtilityOptimizedSquareWave, _AsMatrix))
    assert wave[:-1].sum(axis=0) == pytest.approx(mangat[0], abs=1e-15)
    assert wave[-1] == pytest.approx(mangat[1], abs=1e-15)


class _AsMatrix(UtilityOptimizedRR):
    @property
    def probabilities(self) -> np.ndarray:
        return np.array([[float(share) for share in row] for row in self.channel()[1]])
