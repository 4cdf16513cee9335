"""Refusals of ``planning`` and ``utility``: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from packages.planner.tests.support import structured_questions
from tests.support.cases import COLLECTIONS
from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Closed, Ordered, Tagged
from uldp_transforms.ldp.mechanisms import (
    DeclaredChannel,
    KaryRR,
    Rappor,
    TwoStage,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
)
from uldp_transforms_planner import planning, utility
from uldp_transforms_planner.planning import ClosedQuestion, least_epsilon
from uldp_transforms_planner.planning.number_forecast import forecast_numbers, needed_for_mean, plan_numbers

CLOSED, BITS = COLLECTIONS["closed-krr"], COLLECTIONS["closed-rappor"]
TWO_VALUES = Collection(
    id="c",
    version=1,
    alphabet=Closed(values=("a", "b")),
    mechanism=KaryRR(num_symbols=2, num_sensitive=2, epsilon=1),
)
OF_NUMBERS = Collection.from_json(
    {
        "id": "c",
        "version": 1,
        "alphabet": Ordered(edges=(0, 1, 2), others=("none",)).to_json(),
        "mechanism": {"id": "krr", "epsilon": 1},
    }
)
OF_LOGARITHMS = Collection.from_json(
    OF_NUMBERS.to_json() | {"alphabet": {"id": "ordered", "low": 1, "high": 9, "num_bins": 2, "scale": "log"}}
)
TWICE = Collection.from_json(
    BITS.to_json() | {"alphabet": {"id": "hashed", "num_buckets": 8, "num_hashes": 2}, "num_cohorts": 9}
)
URR = UtilityOptimizedRR(num_symbols=3, num_sensitive=2, epsilon=1)
URAP = UtilityOptimizedRappor(num_symbols=3, num_sensitive=2, epsilon=1)
TSP = TwoStage(num_symbols=3, num_sensitive=3, epsilon=1, missing_rates=(0.4, 0.1))
BLOOM = Rappor(num_symbols=3, num_sensitive=3, num_hashes=2, epsilon=1)
TAGS = Tagged(values=("a", "b"), tags=("t",))
THREE = np.array([0.5, 0.3, 0.2])
BEHIND = np.array([[0.0], [0.5], [0.5]])
NO_EPSILON, NO_REPORTS = "must be a number in (0, 16], got 17", f"must be an integer in [1, {1 << 62}], got 0"


def calling(function: Callable[..., Any], *args: Any, **fields: Any) -> Callable[[], Any]:
    return lambda: function(*args, **fields)


def identity() -> DeclaredChannel:
    return DeclaredChannel(num_symbols=2, num_sensitive=2, matrix=(("1", "0"), ("0", "1")))


REFUSED: list[Refusal] = [
    (
        lambda: utility.variance_of_mean(CLOSED.mechanism, np.full(6, 1 / 6), 0),
        "variance_of_mean.num_windows must be an integer in [1, 2147483648], got 0",
    ),
    (
        lambda: utility.variance_of_mean(CLOSED.mechanism, np.full(5, 1 / 5), 1),
        "variance_of_mean.frequencies must have 6 entries along its last axis, got the shape (5,)",
    ),
    (
        lambda: utility.variance_of_mean(TWICE.mechanism, np.full(8, 1 / 8), 1),
        "variance_of_mean.mechanism must give every value one symbol, got 2 hash functions",
    ),
    (lambda: plan_numbers(TWO_VALUES, 1, 9), "numbers need the alphabet ordered, got closed"),
    (lambda: plan_numbers(TWO_VALUES, 0, 9), "plan_numbers.epsilon must be "),
    (lambda: forecast_numbers(TWO_VALUES, 0), "forecast_numbers.num_reports must be "),
    (
        lambda: least_epsilon(ClosedQuestion(num_values=4, num_sensitive=2), 9),
        "least_epsilon.target must be given, got none",
    ),
    (
        lambda: ClosedQuestion(num_values=4, num_sensitive=2, max_cohorts=0),
        "ClosedQuestion.max_cohorts must be an integer in [1, 65536], got 0",
    ),
    (
        lambda: planning.plan(ClosedQuestion(num_values=4, num_sensitive=2), 1, 9, byte_cost=-1.0),
        "plan.byte_cost must be a number of at least 0, got -1.0",
    ),
    (lambda: needed_for_mean(OF_NUMBERS, 1.0, 0), "needed_for_mean.num_reports must be "),
    (lambda: needed_for_mean(OF_NUMBERS, 0.0, 9), "needed_for_mean.half_width must be a number above 0, got 0.0"),
    (
        lambda: needed_for_mean(OF_LOGARITHMS, 1.0, 9),
        "a half width can be planned for a mean only, and numbers on the scale log have none",
    ),
    (
        calling(utility.expected_l1, URR, THREE, 9, method="best"),
        'expected_l1.method must be "normal" or "exact", got \'best\'',
    ),
    *(
        (
            calling(utility.expected_l1, mechanism, THREE, 9, model=model, method="exact"),
            'expected_l1.method can be "exact" only in the model "population" and where each estimate follows from one '
            f'count, got the model "{model}" and {type(mechanism).__name__}',
        )
        for mechanism, model in ((URR, "sample"), (URAP, "population"), (TSP, "population"))
    ),
    (
        calling(utility.expected_l2, BLOOM, THREE, 9),
        "expected loss: mechanism must give every value one symbol, got 2 hash functions",
    ),
    (
        calling(utility.expected_l2, URR, THREE[:2], 9),
        "expected loss: frequencies must have 3 entries along its last axis, got the shape (2,)",
    ),
    *(
        (
            calling(utility.expected_l2, URR, frequencies, 9),
            "expected loss: frequencies must be non-negative shares that sum to 1, got other numbers",
        )
        for frequencies in ([0.5, 0.5, 0.1], [1.5, -0.5, 0], [1, float("nan"), 0])
    ),
    (calling(utility.expected_l2, URR, THREE, 0), f"expected loss: num_reports {NO_REPORTS}"),
    (
        calling(utility.expected_l2, URR, THREE, 9, model="all"),
        'expected loss: model must be "population", "sample" or "without_replacement", got \'all\'',
    ),
    *(
        (
            calling(utility.expected_l2, URR, THREE, 9, model="without_replacement", population_size=size),
            f"expected loss: population_size must be an integer in [9, {1 << 62}], got {size}",
        )
        for size in (8, None)
    ),
    (
        calling(utility.expected_l2, URR, THREE, 9, population_size=10),
        'expected loss: population_size must be absent in the model "population", got 10',
    ),
    *(
        (calling(function, *args, 0), f"{function.__name__}.num_reports {NO_REPORTS}")
        for function, *args in (
            (utility.l1_without_privacy, THREE),
            (utility.l2_without_privacy, THREE),
            (utility.worst_case_l1, URR),
            (utility.worst_case_l2, URR),
            (utility.l2_minimax_without_privacy, 2),
        )
    ),
    *(
        (
            calling(function, np.float64(1), 9),
            f"{function.__name__}.frequencies must have one or more entries along its last axis, got the shape ()",
        )
        for function in (utility.l1_without_privacy, utility.l2_without_privacy)
    ),
    (
        lambda: utility.worst_case_l1(identity(), 9),
        "TwoBlocks.of: mechanism must treat all symbols of a block alike, got channel, which need not",
    ),
    (
        calling(utility.worst_case_l1, BLOOM, 9),
        "TwoBlocks.of: mechanism must give every value one symbol, got 2 hash functions",
    ),
    (
        calling(utility.worst_case_distribution, URR, "l3"),
        'worst_case_distribution.loss must be "l1" or "l2", got \'l3\'',
    ),
    *(
        (calling(function, *args, 17), f"{function.__name__}.epsilon {NO_EPSILON}")
        for function, *args in (
            (utility.optimal_theta, 3),
            (utility.uldp_minimax, 3, 2),
            (utility.ldp_minimax, 3),
            (planning.best_num_buckets,),
        )
    ),
    *(
        (calling(function, 0, *rest), f"{function.__name__}.{name} must be an integer in {allowed}, got 0")
        for function, rest, name, allowed in (
            (utility.optimal_theta, (1,), "num_sensitive", "[1, 1048576]"),
            (utility.uldp_minimax, (1, 1), "num_values", "[2, 1048576]"),
            (utility.ldp_minimax, (1,), "num_values", "[2, 1048576]"),
            (utility.l2_minimax_without_privacy, (1,), "num_values", "[2, 1048576]"),
            (planning.cohorts_needed, (2,), "num_candidates", "[1, 1048576]"),
            (planning.distinguishable_share, (1, 1), "num_buckets", "[2, 65536]"),
        )
    ),
    (calling(utility.uldp_minimax, 3, 4, 1), "uldp_minimax.num_sensitive must be an integer in [1, 3], got 4"),
    (calling(utility.optimal_theta, 3, 1, 1.5), "optimal_theta.sensitive_share must be a number in [0, 1], got 1.5"),
    (
        calling(utility.optimal_theta, 3, 1, inversion="best"),
        'optimal_theta.inversion must be "aware" or "marginal", got \'best\'',
    ),
    (calling(utility.Guarantee, epsilon=0), "Guarantee.epsilon must be a number above 0, got 0"),
    (
        calling(utility.Guarantee, epsilon=1, kind="pure"),
        'Guarantee.kind must be "ldp", "uldp" or "osldp", got \'pure\'',
    ),
    *(
        (
            calling(utility.Guarantee, epsilon=1, kind=kind, non_sensitive=frozenset(values)),
            f'Guarantee.non_sensitive must be empty for "ldp" and only there, got {len(values)} value(s) for {kind!r}',
        )
        for kind, values in (("ldp", "ab"), ("uldp", ""), ("osldp", ""))
    ),
    *(
        (
            calling(getattr(utility.Guarantee(epsilon=1), name), 0),
            f"Guarantee.{name}: number must be an integer in [1, {1 << 31}], got 0",
        )
        for name in ("for_reports", "per_report")
    ),
    (
        calling(
            utility.Guarantee(epsilon=1).joined_with,
            utility.Guarantee(epsilon=1, kind="osldp", non_sensitive=frozenset("a")),
        ),
        "Guarantee.joined_with must be two-sided on both sides (\"ldp\" or \"uldp\"), got 'ldp' and 'osldp'",
    ),
    (calling(planning.best_num_buckets, 1, -1), "best_num_buckets.sensitive_share must be a number in [0, 1], got -1"),
    (
        calling(planning.best_num_buckets, 1, 1, 0),
        "best_num_buckets.num_candidates must be an integer in [1, 1048576], got 0",
    ),
    (
        calling(planning.best_num_buckets, 1, 0.5, 9, 0.6),
        "best_num_buckets.candidate_share must be a number in [0, 0.5], got 0.6",
    ),
    (
        lambda: planning.OpenQuestion(num_candidates=9, heaviest_unlisted=0.2),
        "OpenQuestion.heaviest_unlisted must be a number in [0, 0.1], the unlisted share, got 0.2",
    ),
    (calling(planning.cohorts_needed, 5, 3, 1), "cohorts_needed.max_cohorts must be an integer in [2, 65536], got 1"),
    (calling(planning.cohorts_needed, 5, 1), "cohorts_needed.num_buckets must be an integer in [2, 65536], got 1"),
    *(
        (calling(planning.hashed_variance, mechanism, *args, **fields), f"hashed_variance.{sentence}")
        for mechanism, args, fields, sentence in (
            (BLOOM, (9, 9, 9), {}, "mechanism must give every value one symbol, got 2 hash functions"),
            (URR, (0, 9, 9), {}, f"num_reports {NO_REPORTS}"),
            (URR, (9, 1, 9), {}, "num_cohorts must be an integer in [2, 65536], got 1"),
            (URR, (9, 9, 9), {}, "num_candidates must be an integer in [1, 8], got 9"),
            (URR, (9, 9, 3), {"sensitive_share": 2}, "sensitive_share must be a number in [0, 1], got 2"),
            (URR, (9, 9, 3), {"unlisted_squares": "0"}, "unlisted_squares must be a number in [0, 1], got '0'"),
            (
                TSP,
                (9, 9, 3),
                {"sensitive_share": 0.5},
                "sensitive_share must be 1 if every symbol is sensitive, got 0.5",
            ),
        )
    ),
    (
        calling(planning.distinguishable_share, 2, 0, 1),
        "distinguishable_share.num_cohorts must be an integer in [1, 65536], got 0",
    ),
    (
        calling(planning.distinguishable_share, 2, 1, 0),
        "distinguishable_share.num_candidates must be an integer in [1, 1048576], got 0",
    ),
    (
        calling(planning.cohorts_to_distinguish, 2, 9, 1),
        "cohorts_to_distinguish.target must be a number in (0, 1), got 1",
    ),
    (
        calling(utility.tagged_l1_bound, TAGS, THREE, THREE[:1], BEHIND),
        "tagged_l1_bound.true must have 3 entries along its last axis, got the shape (1,)",
    ),
    (
        calling(utility.tagged_l1_bound, TAGS, THREE[:1], THREE, BEHIND),
        "tagged_l1_bound.estimated must have the shape (3,), got (1,)",
    ),
    *(
        (
            calling(utility.tagged_l1_bound, TAGS, THREE, THREE, behind),
            "tagged_l1_bound.behind must have a column of non-sensitive values for each of 1 tag(s), "
            f"got the shape {behind.shape} or weight on sensitive ones",
        )
        for behind in (BEHIND[[1, 0, 2]], np.repeat(BEHIND, 2, axis=1))
    ),
    (
        calling(utility.tagged_l2, TAGS, URR, THREE * 2, 9, BEHIND),
        "tagged_l2.frequencies must be non-negative shares that sum to 1, got other numbers",
    ),
    (calling(utility.tagged_l2, TAGS, URR, THREE, 0, BEHIND), f"tagged_l2.num_reports {NO_REPORTS}"),
    *(
        (calling(planning.ClosedQuestion, **fields), f"ClosedQuestion.{sentence}")
        for fields, sentence in (
            ({"num_values": 1, "num_sensitive": 1}, "num_values must be an integer in [2, 1048576], got 1"),
            ({"num_values": 3, "num_sensitive": 4}, "num_sensitive must be an integer in [1, 3], got 4"),
            (
                {"num_values": 3, "num_sensitive": 2, "sensitive_share": 2},
                "sensitive_share must be a number in [0, 1], got 2",
            ),
            (
                {"num_values": 3, "num_sensitive": 3, "sensitive_share": 1},
                "sensitive_share must be absent if all values are sensitive, got 1",
            ),
            (
                {"num_values": 3, "num_sensitive": 2, "frequencies": (0.5, 0.5)},
                "frequencies must have 3 entries along its last axis, got the shape (2,)",
            ),
            (
                {"num_values": 2, "num_sensitive": 1, "frequencies": (0.5, 0.5), "sensitive_share": 0.5},
                "sensitive_share must be absent if frequencies are given, got 0.5",
            ),
            (
                {"num_values": 3, "num_sensitive": 2, "names": ("ant", "bee", "ant")},
                "names must be 3 different texts, got 2",
            ),
        )
    ),
    *(
        (calling(planning.OpenQuestion, **fields), f"OpenQuestion.{sentence}")
        for fields, sentence in (
            ({"num_candidates": 0}, "num_candidates must be an integer in [1, 1048576], got 0"),
            (
                {"num_candidates": 1_048_000, "num_non_sensitive": 577},
                "num_non_sensitive must be an integer in [0, 576], got 577",
            ),
            (
                {"num_candidates": 3, "num_non_sensitive": 2, "sensitive_share": 2},
                "sensitive_share must be a number in [0, 1], got 2",
            ),
            (
                {"num_candidates": 3, "sensitive_share": 1},
                "sensitive_share must be absent if all texts are sensitive or frequencies are given, got 1",
            ),
            (
                {"num_candidates": 3, "num_non_sensitive": 2, "sensitive_share": 0.2, "unlisted_share": 0.3},
                "sensitive_share must be at least the unlisted share 0.3, got 0.2",
            ),
            ({"num_candidates": 3, "unlisted_share": 1.5}, "unlisted_share must be a number in [0, 1], got 1.5"),
            ({"num_candidates": 3, "max_cohorts": 1}, "max_cohorts must be an integer in [2, 65536], got 1"),
            ({"num_candidates": 3, "law": "normal"}, 'law must be "zipf" or "flat", got \'normal\''),
            (
                {"num_candidates": 2, "frequencies": (0.5, 0.6)},
                "frequencies must be non-negative shares that sum to 1, got other numbers",
            ),
            ({"num_candidates": 3, "names": ("ant",)}, "names must be 0 texts, got 1"),
        )
    ),
    *(
        (calling(planning.plan, planning.OpenQuestion(num_candidates=3), *args, **fields), f"plan.{sentence}")
        for args, fields, sentence in (
            ((17, 9), {}, f"epsilon {NO_EPSILON}"),
            ((1, 0), {}, f"num_reports {NO_REPORTS}"),
            ((1, 9), {"target_l1": 0}, "target_l1 must be a number above 0, got 0"),
            (
                (1, 9),
                {"confidence": 95},
                "confidence must be a number between 0 and 1, at most 0.999999, such as 0.95, got 95",
            ),
            ((1, 9), {"target_l2": float("inf")}, "target_l2 must be a number above 0, got inf"),
            (
                (1, 9),
                {"target_l1": 1, "target_l2": 2},
                "target must be given at most once, got l1, l2",
            ),
        )
    ),
    *structured_questions.REFUSED,
]
