"""The largest effects of false reports, and bounds in spite of them, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.ldp.made_collections import made
from tests.support.ldp.small_mechanisms import make
from uldp_transforms.ldp.utility import amplification, honest_bounds

KRR = made({"id": "closed", "values": ["a", "b", "c"]}, {"id": "krr", "epsilon": math.log(4)})


def test_a_false_report_counts_for_the_symbol_that_it_moves_most() -> None:
    """Of this channel the inverse is known: its middle column has the largest entries."""
    channel = make("channel", 3, 3, matrix=[["0.9", "0.2", "0"], ["0.1", "0.6", "0.1"], ["0", "0.2", "0.9"]])
    inverse = np.linalg.inv([[0.9, 0.2, 0], [0.1, 0.6, 0.1], [0, 0.2, 0.9]])
    assert inverse.max() == inverse[1, 1] > inverse[[0, 2]].max() + 0.1
    assert amplification(channel).sensitive == pytest.approx(inverse[1, 1])
    assert amplification(channel).clear is None


def test_kinds_of_symbols_have_their_own_effects() -> None:
    """urr keeps a sensitive value with p and draws another with q, and lets a clear value speak with 1 - v q."""
    mechanism = make("urr", 5, 3, epsilon=math.log(4))
    p, q = 4 / 6, 1 / 6
    found = amplification(mechanism)
    assert found.sensitive == pytest.approx((1 - q) / (p - q))
    assert found.clear == pytest.approx(1 / (1 - 3 * q))


def test_bounds_of_honest_people_by_hand() -> None:
    """k-RR of three values keeps with 2/3 and draws each other one with 1/6: a report adds (1 - q) / (p - q) = 5/3 to
    its value, and -q / (p - q) = -1/3 to each other one. A fifth of the reports lie."""
    low, high = honest_bounds(KRR, ("c", "a"), np.array([0.5, 0.1]), np.array([0.7, 0.2]), 0.2)
    assert low == pytest.approx([(0.5 - 0.2 * 5 / 3) / 0.8, (0.1 - 0.2 * 5 / 3) / 0.8])
    assert high == pytest.approx([(0.7 + 0.2 / 3) / 0.8, (0.2 + 0.2 / 3) / 0.8])
