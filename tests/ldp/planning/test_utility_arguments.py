"""The limits of what theory takes: the last good number, and the first that is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ldp.planning.test_utility_losses import make, zipf
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.utility import (
    Guarantee,
    expected_l2,
    l2_minimax_without_privacy,
    ldp_minimax,
    optimal_theta,
    uldp_minimax,
    variance_of_mean,
)
from uldp_transforms.ldp.utility.arguments import (
    require_distribution,
    require_epsilon,
    require_reports,
    require_share,
)

KRR = make("krr", 3, 3, epsilon=1.0)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda x: require_epsilon("e", x), (1e-9, 1, 16, 16.0), (0, -1, 16.000001, math.nan, math.inf, "1", True)),
        (lambda x: require_share("s", x), (0, 0.0, 0.5, 1, 1.0), (-1e-9, 1.000001, math.nan, None)),
        (lambda x: require_reports("n", x), (1, 1 << 62), (0, (1 << 62) + 1, 1.0, True)),
        (lambda x: Guarantee(epsilon=x), (1e-9, 1e9), (0, -1, math.inf, math.nan)),
        (lambda x: Guarantee(epsilon=1).for_reports(x), (1, 1 << 31), (0, (1 << 31) + 1)),
        (lambda x: Guarantee(epsilon=1).per_report(x), (1, 1 << 31), (0, (1 << 31) + 1)),
        (lambda x: variance_of_mean(KRR, zipf(3), x), (1, 1 << 31), (0, (1 << 31) + 1)),
        (lambda x: uldp_minimax(x, 1, 1.0), (2, 1 << 20), (1, (1 << 20) + 1)),
        (lambda x: uldp_minimax(5, x, 1.0), (1, 5), (0, 6)),
        (lambda x: ldp_minimax(x, 1.0), (2, 1 << 20), (1, (1 << 20) + 1)),
        (lambda x: l2_minimax_without_privacy(x, 9), (2, 1 << 20), (1, (1 << 20) + 1)),
        (lambda x: optimal_theta(x, 1.0), (1, 1 << 20), (0, (1 << 20) + 1)),
    ],
)
def test_limits(check: Callable[[Any], Any], good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    for value in good:
        check(value)
    for value in bad:
        with pytest.raises(SpecError):
            check(value)


def test_distributions_sum_to_1_to_nine_digits() -> None:
    for excess in (0.0, 9e-10, -9e-10):
        found = require_distribution("p", np.array([[0.5, 0.5 + excess], [0, 1]]), 2)
        assert found.dtype == np.float64 and found.shape == (2, 2)
    assert require_distribution("p", np.array([1])).tolist() == [1.0]
    for wrong in ([0.5, 0.5 + 1.2e-9], [0.5, 0.5 - 1.2e-9], [-0.5, 1.5], [[0.5, 0.5], [0.5, 0.6]], [0.5, math.nan]):
        with pytest.raises(SpecError, match=r"^p must be non-negative shares that sum to 1, got other numbers$"):
            require_distribution("p", np.array(wrong))
    with pytest.raises(SpecError, match=r"^p must have one or more entries along its last axis, got the shape \(\)$"):
        require_distribution("p", np.array(1.0))
    with pytest.raises(SpecError, match=r"^p must have 2 entries along its last axis, got the shape \(2, 3\)$"):
        require_distribution("p", np.array([[1, 0, 0], [0, 0, 1]]), 2)


@pytest.mark.parametrize(
    ("n", "size", "is_good"), [(1, 2, True), (2, 2, True), (5, 5, True), (1, 1, False), (3, 2, False)]
)
def test_a_sample_is_of_two_people_or_more(n: int, size: int, is_good: bool) -> None:
    """Of everybody, it has no sampling noise; of one person, all of it."""
    p = zipf(3)
    fields: dict[str, Any] = {"model": "without_replacement", "population_size": size}
    if not is_good:
        with pytest.raises(SpecError, match=r"^expected loss: population_size must be an integer in \[[23], "):
            expected_l2(KRR, p, n, **fields)
        return
    drawn = (p * (1 - p)).sum() * (0 if n == size else 1)
    assert expected_l2(KRR, p, n, **fields) == pytest.approx((KRR.variances(p).sum() - (p * (1 - p)).sum() + drawn) / n)
