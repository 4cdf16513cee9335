"""The limits of what theory takes: the last good number, and the first that is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.ldp.small_mechanisms import make, zipf
from uldp_transforms.ldp import SpecError
from uldp_transforms_planner.planning import (
    best_num_buckets,
    cohorts_needed,
    cohorts_to_distinguish,
    distinguishable_share,
    hashed_variance,
)
from uldp_transforms_planner.utility import (
    Guarantee,
    expected_l2,
    l2_minimax_without_privacy,
    ldp_minimax,
    optimal_theta,
    uldp_minimax,
    variance_of_mean,
)
from uldp_transforms_planner.utility.arguments import (
    require_epsilon,
    require_reports,
    require_share,
)

KRR, BUCKETS, LISTED = (make(*case, epsilon=1.0) for case in (("krr", 3, 3), ("krr", 4, 4), ("urr", 6, 4)))


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
        (lambda x: best_num_buckets(1, 0.5, 9, x), (0, 0.5), (-1e-9, 0.5001)),
        (lambda x: best_num_buckets(1, 0.5, x), (1, 1 << 20), (0, (1 << 20) + 1)),
        (lambda x: cohorts_needed(x, 4), (1, 1 << 20), (0, (1 << 20) + 1)),
        (lambda x: cohorts_needed(5, x), (2, 1 << 16), (1, (1 << 16) + 1)),
        (lambda x: cohorts_needed(5, 4, x), (2, 1 << 16), (1, (1 << 16) + 1)),
        (lambda x: hashed_variance(BUCKETS, 9, 2, x), (1, 5), (0, 6)),  # 2 (k - 1) equations
        (lambda x: hashed_variance(BUCKETS, 9, x, 2), (2, 1 << 16), (1, (1 << 16) + 1)),
        (lambda x: hashed_variance(BUCKETS, 9, 2, 3, unlisted_squares=x), (0, 1, 0.5), (-1e-9, 1.0001)),
        (lambda x: hashed_variance(BUCKETS, 9, 2, 3, sensitive_share=x), (1, 1.0), (0.9999, 0)),
        (lambda x: hashed_variance(LISTED, 9, 2, 3, sensitive_share=x), (0, 0.5, 1), (-1e-9, 1.0001)),
        (lambda x: distinguishable_share(x, 2, 3), (2, 1 << 16), (1, (1 << 16) + 1)),
        (lambda x: distinguishable_share(2, x, 3), (1, 1 << 16), (0, (1 << 16) + 1)),
        (lambda x: distinguishable_share(2, 3, x), (1, 1 << 20), (0, (1 << 20) + 1)),
        (lambda x: cohorts_to_distinguish(2, 3, x), (1e-9, 0.999999), (0, 1, -1, 2)),
    ],
)
def test_limits(check: Callable[[Any], Any], good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    for value in good:
        check(value)
    for value in bad:
        with pytest.raises(SpecError):
            check(value)


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


def test_texts_are_told_apart_by_as_few_cohorts_as_possible() -> None:
    """One text alone always is; of two, one cohort of two buckets tells half of the pairs apart."""
    assert distinguishable_share(2, 1, 1) == 1
    assert distinguishable_share(2, 1, 2) == pytest.approx(0.5)
    assert [cohorts_to_distinguish(2, 2, target) for target in (0.4, 0.51, 0.7501)] == [1, 2, 3]
