"""Worst errors of subset selection with two sizes are the least that its reports allow."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ldp.minimax_game import game
from tests.support.ldp.subset_sizes import share_of, sizes_of_people, two_sizes
from uldp_transforms.ldp.mechanisms import UtilityOptimizedSubsetSelection
from uldp_transforms_planner.utility import worst_case_l2


@two_sizes
def test_the_worst_error_is_the_least_that_these_reports_allow(mechanism):
    """At every share the risk is at least that of the optimal estimate for it; the largest of these is reached."""
    K, v, sizes = mechanism.num_symbols, mechanism.num_sensitive, sizes_of_people(mechanism)[np.newaxis]
    epsilon = mechanism.effective_epsilon
    if v == K:
        d, gain = np.arange(1.0, v + 1), mechanism.gain
        information = v * gain**2 / (v - 1) * (sizes[0] @ (d * (v - d) / (d * gain + v) ** 2))
        least = (v - 1) / information
    else:
        at = np.append(np.linspace(0, 1 - 1e-6, 20_001), min(share_of(mechanism), 1 - 1e-6))
        least = max(float(game(K, v, epsilon, share, sizes)[0]) for share in at)
    assert worst_case_l2(mechanism, 1) == pytest.approx(least, rel=2e-6)


@pytest.mark.parametrize(
    ("w", "v", "d", "q", "epsilon"), [(20, 5, 1, 0.13, 2), (4, 3, 1, 0.15, 0.5), (9, 2, 1, 0.1, 2)]
)
def test_no_other_weights_have_a_smaller_worst_error(w, v, d, q, epsilon):
    def worst(weight: float, correction: float) -> float:
        mechanism = UtilityOptimizedSubsetSelection(
            num_symbols=w, num_sensitive=v, epsilon=epsilon, subset_size=d, larger_share=q
        )
        scores = mechanism.scores
        weights = scores.weights * np.array([1.0, weight])
        vars(mechanism)["scores"] = scores._replace(weights=weights, correction=scores.correction * correction)
        return worst_case_l2(mechanism, 1)

    best = worst(1, 1)
    for weight, correction in ((0.9, 1), (1.1, 1), (1, 0.8), (1, 1.2), (1, 0), (0.95, 1.1)):
        assert worst(weight, correction) >= best * (1 - 1e-9)
    assert worst(1, 0) > best * (1 + 1e-6)
