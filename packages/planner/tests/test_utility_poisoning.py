"""The largest effects of false reports, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.ldp.small_mechanisms import make
from uldp_transforms_planner.utility import amplification


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
