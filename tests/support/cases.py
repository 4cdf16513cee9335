"""Small instances of every mechanism, alphabet and estimator, and the collections that they make.

A new mechanism, alphabet or estimator is one line here; a test asserts that each registered id has one.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import operator
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.golden_records import WRITE, Records, text_of
from tests.support.together import together
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets import Alphabet, Blocks, Closed, Hashed, Ordered, Permuted, Prefixes, Tagged
from uldp_transforms.ldp.estimators import (
    Empirical,
    EmpiricalBayes,
    ExpectationMaximization,
    MaximumLikelihood,
    Normalized,
    Projected,
    Threshold,
)
from uldp_transforms.ldp.estimators.estimator import PostProcessed
from uldp_transforms.ldp.mechanisms import (
    MECHANISMS,
    AttributeGRR,
    AttributeOUE,
    DeclaredChannel,
    HadamardResponse,
    KaryRR,
    Mechanism,
    NestedLevels,
    Rappor,
    SetReportMechanism,
    SquareWave,
    SubsetSelection,
    TwoStage,
    UniformPerturbation,
    UtilityOptimizedHadamardResponse,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
    UtilityOptimizedSquareWave,
    UtilityOptimizedSubsetSelection,
)

GOLDEN = Path(__file__).parents[1] / "golden"

DECOMPOSED = "e\N{COMBINING ACUTE ACCENT}"
"""Two code points whose canonical form is one, é."""

VALUES = ("ant", "bee", "cat", "dog", "émeu", "fox")
TOKENS = ("a", "n", "t", "b", "e", "ee", "c", "at", "d", "o", "g", "mu", "f")
SENSITIVE = ("fox", "bee", "ant")

EPSILONS = (1.0, 2.0**-10, 16.0)
THETAS = (None, 0.5, 0.9)
ALL_SENSITIVE = ((2, 2), (3, 3), (5, 5))
PART_SENSITIVE = ((2, 1), (3, 2), (3, 3), (6, 4))
PRIORS = (((0.6, 0.3, 0.1), (0.2, 0.3, 0.5)), ((0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.25, 0.5, 0.25)))
PRIORS_OF_VALUES = ((0.3, 0.3, 0.2, 0.1, 0.1, 0.0), (0.1, 0.2, 0.2, 0.1, 0.2, 0.2))
CROSSWISE = (("0.1594625", "0.8405375"), ("0.8405375", "0.1594625"))
FORCED = (("5/6", "1/6"), ("1/6", "5/6"))
UNRELATED = (("0.9", "0.35"), ("0.1", "0.65"))
MORE_OUTPUTS = (("1/2", "1/8", "1/8"), ("1/4", "5/8", "1/8"), ("1/8", "1/8", "5/8"), ("1/8", "1/8", 1 << 61))
OF_VALUES = tuple(tuple("3/8" if row == column else "1/8" for column in range(6)) for row in range(6))
MANY_OUTPUTS = tuple(("1/512", "1/257") if row else ("1/2", "1/257") for row in range(257))
RANGE = (0, 1, 2, 3, 4, 5, 6)
OF_ALL_VALUES = ({"epsilon": 1.0, "values": VALUES[:2]}, {"epsilon": 2.0, "values": VALUES[2:]})
FAR_APART = ({"epsilon": 2.0**-10, "values": VALUES[:1]}, {"epsilon": 16.0, "values": VALUES[1:4]})
THREE_LEVELS = (*FAR_APART[:1], {"epsilon": 0.5, "values": VALUES[2:4]}, {"epsilon": 3, "values": VALUES[4:]})
TWO_VALUES = ({"epsilon": 1, "values": VALUES[:1]}, {"epsilon": 2, "values": VALUES[1:2]})
REST_FIRST = ({"epsilon": 0.7}, {"epsilon": 2.0, "values": VALUES[2:4]})
LEVELS_OF = ("urr", "uss", "urap")
MISSING_RATES = ((0.4, 0.05), (0.3, 0.2), (0.9, 0.5, 0.6))


def instances(cls: type[Mechanism], sizes: Sequence[tuple[int, int]], **fields: Sequence[Any]) -> list[Mechanism]:
    """Every combination of sizes (K, v) and values of the fields."""
    return [
        cls(num_symbols=num_symbols, num_sensitive=num_sensitive, **dict(zip(fields, chosen)))
        for num_symbols, num_sensitive in sizes
        for chosen in itertools.product(*fields.values())
    ]


def memos(cls: type[Mechanism], sizes: Sequence[tuple[int, int]], **fields: Sequence[Any]) -> list[Mechanism]:
    """The same with two guarantees, of one report and of all: near each other and far apart."""
    pairs = ((1.0, 2.0), (2.0**-10, 16.0), (4.0, 4.5))
    return [
        case
        for epsilon, epsilon_inf in pairs
        for case in instances(cls, sizes, epsilon=[epsilon], epsilon_inf=[epsilon_inf], **fields)
    ]


# the last part of each line but the memos is an instance that needs every bit of its one or two payload bytes, or more
MECHANISM_CASES: dict[str, list[Mechanism]] = {
    "krr": instances(KaryRR, ALL_SENSITIVE, epsilon=EPSILONS)
    + instances(KaryRR, [(257, 257)], epsilon=[1])
    + memos(KaryRR, [(2, 2), (5, 5)]),
    "urr": instances(UtilityOptimizedRR, PART_SENSITIVE, epsilon=EPSILONS)
    + instances(UtilityOptimizedRR, [(256, 7)], epsilon=[1])
    + memos(UtilityOptimizedRR, [(2, 1), (6, 4)]),
    "rappor": instances(Rappor, ALL_SENSITIVE, epsilon=EPSILONS, theta=THETAS)
    + instances(Rappor, [(5, 5)], epsilon=EPSILONS, theta=["optimal"])
    + instances(Rappor, [(9, 9)], epsilon=[1])
    + memos(Rappor, [(3, 3)], theta=THETAS),
    "urap": instances(UtilityOptimizedRappor, PART_SENSITIVE, epsilon=EPSILONS, theta=THETAS)
    + instances(UtilityOptimizedRappor, PART_SENSITIVE, epsilon=EPSILONS, inversion=["marginal"])
    + instances(UtilityOptimizedRappor, [(6, 4)], epsilon=[1], theta=["optimal", 0.5], inversion=["marginal"])
    + instances(UtilityOptimizedRappor, [(6, 4)], epsilon=EPSILONS, theta=["optimal"])
    + instances(UtilityOptimizedRappor, [(10, 8), (259, 4)], epsilon=[1])
    + instances(UtilityOptimizedRappor, [(10, 8)], epsilon=[1], inversion=["marginal"])
    + memos(UtilityOptimizedRappor, [(3, 2), (6, 4)], inversion=[None, "marginal"]),
    "ss": instances(SubsetSelection, ALL_SENSITIVE, epsilon=EPSILONS)
    + instances(SubsetSelection, [(5, 5)], epsilon=[1], subset_size=[1, 2, 4])
    + instances(SubsetSelection, [(5, 5)], epsilon=EPSILONS, subset_size=[1, 3], larger_share=[0.3])
    + instances(SubsetSelection, [(9, 9)], epsilon=[1])
    + memos(SubsetSelection, [(5, 5)]),
    "uss": instances(UtilityOptimizedSubsetSelection, PART_SENSITIVE, epsilon=EPSILONS)
    + instances(UtilityOptimizedSubsetSelection, [(6, 4)], epsilon=[1], subset_size=[2, 3])
    + instances(
        UtilityOptimizedSubsetSelection, [(3, 2), (6, 4)], epsilon=EPSILONS, subset_size=[1], larger_share=[0.2]
    )
    + instances(UtilityOptimizedSubsetSelection, [(6, 4)], epsilon=[1], subset_size=[2, 3], larger_share=[1e-6, 0.7])
    + instances(UtilityOptimizedSubsetSelection, [(10, 8), (259, 4)], epsilon=[1])
    + memos(UtilityOptimizedSubsetSelection, [(6, 4)], subset_size=[None, 2])
    + memos(UtilityOptimizedSubsetSelection, [(6, 4)], subset_size=[1], larger_share=[0.3]),
    "agrr": instances(AttributeGRR, [(3, 3)], epsilon=[0.5, 1, 2.0**-10], priors=PRIORS)
    + instances(AttributeGRR, [(6, 6)], epsilon=[1], priors=[PRIORS_OF_VALUES]),
    "aoue": instances(AttributeOUE, [(3, 3)], epsilon=[0.5, 1, 2.0**-10], priors=PRIORS)
    + instances(AttributeOUE, [(6, 6)], epsilon=[1], priors=[PRIORS_OF_VALUES]),
    "tsp": instances(TwoStage, [(3, 3), (6, 6)], epsilon=EPSILONS, missing_rates=MISSING_RATES)
    + instances(TwoStage, [(257, 257)], epsilon=[1], missing_rates=MISSING_RATES[:1]),
    "up": instances(UniformPerturbation, ALL_SENSITIVE, epsilon=EPSILONS) + memos(UniformPerturbation, [(3, 3)]),
    "channel": instances(DeclaredChannel, [(2, 2)], matrix=[CROSSWISE, FORCED, UNRELATED])
    + instances(DeclaredChannel, [(3, 3)], matrix=[MORE_OUTPUTS])
    + instances(DeclaredChannel, [(6, 6)], matrix=[OF_VALUES])
    + instances(DeclaredChannel, [(2, 2)], matrix=[MANY_OUTPUTS]),
    "sw": instances(SquareWave, [(2, 2), (6, 6)], epsilon=EPSILONS)
    + instances(SquareWave, [(6, 6)], epsilon=[1], half_width=[1, 6])
    + instances(SquareWave, [(6, 6)], epsilon=EPSILONS, num_others=[2])
    + instances(SquareWave, [(250, 250)], epsilon=[1], num_others=[1]),
    "usw": instances(UtilityOptimizedSquareWave, PART_SENSITIVE, epsilon=EPSILONS)
    + instances(UtilityOptimizedSquareWave, [(6, 4)], epsilon=[1], half_width=[1, 4])
    + instances(UtilityOptimizedSquareWave, [(8, 5), (7, 3)], epsilon=EPSILONS, num_others=[2])
    + instances(UtilityOptimizedSquareWave, [(250, 240)], epsilon=[1], num_others=[1]),
    "hr": instances(HadamardResponse, ALL_SENSITIVE, epsilon=EPSILONS)
    + instances(HadamardResponse, [(9, 9)], epsilon=[1])
    + memos(HadamardResponse, [(5, 5)]),
    "uhr": instances(UtilityOptimizedHadamardResponse, PART_SENSITIVE, epsilon=EPSILONS)
    + instances(UtilityOptimizedHadamardResponse, [(259, 4)], epsilon=[1])
    + memos(UtilityOptimizedHadamardResponse, [(6, 4)]),
    "levels": instances(NestedLevels, [(6, 6)], levels=[OF_ALL_VALUES], of=LEVELS_OF)
    + instances(NestedLevels, [(6, 4)], levels=[FAR_APART, REST_FIRST], of=LEVELS_OF)
    + instances(NestedLevels, [(5, 5)], levels=[THREE_LEVELS], of=LEVELS_OF)
    + instances(NestedLevels, [(3, 2)], levels=[TWO_VALUES], of=LEVELS_OF)
    + instances(NestedLevels, [(256, 4), (258, 4)], levels=[REST_FIRST], of=["urr", "uss"]),
}

ALPHABET_CASES: dict[str, list[tuple[str, Alphabet, int]]] = {  # id -> name, instance, number of cohorts
    "closed": [
        ("closed", Closed(values=VALUES), 1),
        ("closed-sensitive", Closed(values=VALUES, sensitive=SENSITIVE), 3),
    ],
    "permuted": [
        ("permuted", Permuted(values=VALUES, num_buckets=3, seed=5), 12),
        ("permuted-sensitive", Permuted(values=VALUES, num_buckets=3, seed=5, sensitive=VALUES[:0:-1]), 12),
        ("permuted-twice", Permuted(values=VALUES, num_buckets=5, seed=5, num_hashes=2), 12),
    ],
    "hashed": [
        ("hashed", Hashed(num_buckets=4, seed=7), 16),
        ("hashed-listed", Hashed(num_buckets=4, seed=7, non_sensitive=("dog", "cat", "yak")), 16),
        ("hashed-clear", Hashed(num_buckets=3, seed=7, non_sensitive=("dog", "cat", "yak"), num_clear_buckets=4), 16),
        ("hashed-twice", Hashed(num_buckets=8, seed=7, num_hashes=2), 16),
    ],
    "prefixes": [
        ("prefixes", Prefixes(num_buckets=4, seed=7, tokens=TOKENS, lengths=(1, 2, None)), 24),
        (
            "prefixes-listed",
            Prefixes(num_buckets=4, seed=7, tokens=TOKENS, lengths=(2, None), non_sensitive=("dog", "cat", "yak")),
            24,
        ),
    ],
    "tagged": [
        ("tagged", Tagged(values=VALUES, tags=("home", "work"), sensitive=SENSITIVE[:2]), 1),
        ("tagged-known", Tagged(values=VALUES, tags=("home", "work"), background={"home": {"dog": 1.0}}), 2),
    ],
    "blocks": [
        ("closed-blocks", Blocks(blocks={"winged": VALUES[:2], "legged": VALUES[2:]}), 1),
        (
            "closed-blocks-sensitive",
            Blocks(blocks={"winged": VALUES[:3], "legged": VALUES[3:]}, sensitive=SENSITIVE),
            3,
        ),
        ("closed-blocks-clear", Blocks(blocks={"a": VALUES[:1], "b": VALUES[1:]}, sensitive=VALUES[1:]), 1),
        ("hashed-blocks", Blocks(blocks=VALUES, members=Hashed(num_buckets=4, seed=7)), 16),
        (
            "hashed-blocks-listed",
            Blocks(blocks=VALUES, members=Hashed(num_buckets=3, seed=7, non_sensitive=("dog", "cat", "fox/yak"))),
            16,
        ),
        ("hashed-blocks-twice", Blocks(blocks=VALUES, members=Hashed(num_buckets=8, seed=7, num_hashes=2)), 16),
    ],
    "ordered": [
        ("ordered", Ordered(edges=(-1.5, 0, 0.1, 1e6), unit="kg", others=VALUES), 1),
        ("ordered-sensitive", Ordered(edges=RANGE, others=VALUES, sensitive=((None, 1), (3.5, 5), *VALUES[1:3])), 1),
    ],
}

ESTIMATOR_CASES = {
    "eb": [EmpiricalBayes()],
    "empirical": [Empirical()],
    "normalized": [Normalized()],
    "projected": [Projected()],
    "threshold": [Threshold()],
    "ml": [MaximumLikelihood()],
    "em": [ExpectationMaximization()],
}

# all; those of the set-report family; those of it whose promise is about symbols (the others': about declared states)
MECHANISMS_TO_TEST = [case for cases in MECHANISM_CASES.values() for case in cases]
SET_REPORTS_TO_TEST = [case for case in MECHANISMS_TO_TEST if isinstance(case, SetReportMechanism)]
PRIVATE_SYMBOLS_TO_TEST = [case for case in SET_REPORTS_TO_TEST if not case.names_values]
ALPHABETS_TO_TEST = [case[1:] for cases in ALPHABET_CASES.values() for case in cases]


# ids of mechanisms for values of any kind with fields that make reports of several symbols; and of those of them that
# leave symbols without protection
ANY_VALUES: dict[str, dict[str, Any]] = {
    name: {"subset_size": 2} if cls.takes("subset_size") else {}
    for name, cls in ((name, MECHANISMS[name]) for name in MECHANISMS)
    if not (cls.names_values or cls.last_is_missing)
}
UTILITY_OPTIMIZED = {name: fields for name, fields in ANY_VALUES.items() if not MECHANISMS[name].protects_all}


def label(case: Any) -> str:
    """Short name of a mechanism for test reports: its id, K, v and fields."""
    fields = [value for key, value in case.to_json().items() if key != "id"]
    return "-".join(str(field)[:60] for field in (case.id, case.num_symbols, case.num_sensitive, *fields))


def collection(alphabet: Any, num_cohorts: int, mechanism: str, **fields: Any) -> Collection:
    """The collection of an alphabet and a mechanism with epsilon 1 and these fields."""
    spec = {"id": "animals", "version": 1, "alphabet": alphabet.to_json(), "num_cohorts": num_cohorts}
    chosen = {"epsilon": 1.0} if MECHANISMS[mechanism].takes("epsilon") else {}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism} | chosen | fields})


ALPHABETS = {
    name: (alphabet, num_cohorts) for cases in ALPHABET_CASES.values() for name, alphabet, num_cohorts in cases
}


def fields_of(mechanism: str) -> dict[str, Any]:
    """Fields for VALUES that a mechanism cannot do without: those of its first instance with as many symbols."""
    needed = {field.name for field in MECHANISMS[mechanism].json_fields() if field.default is dataclasses.MISSING}
    if needed <= {"epsilon"}:
        return {}
    fitting = (case for case in MECHANISM_CASES[mechanism] if case.num_symbols == len(VALUES))
    return {name: value for name, value in next(fitting).to_json().items() if name in needed - {"epsilon"}}


def suits(name: str, alphabet: Alphabet, mechanism: str) -> bool:
    """Whether an alphabet of the table goes with a mechanism, by id."""
    cls = MECHANISMS[mechanism]
    if cls.names_values or cls.last_is_missing:
        in_order = cls.names_values and not fields_of(mechanism)
        declared = ("closed-sensitive", "ordered-sensitive") if in_order and not cls.protects_all else ()
        return name in ("closed", *declared) or (name == "ordered" and in_order)
    in_clear = alphabet.block_sizes is not None and not all(sensitive for _, sensitive in alphabet.block_sizes)
    return alphabet.num_hashes <= cls.max_hashes and not (in_clear and cls.protects_all)


# sets of two sizes, whose supports are weighed: reports of several kinds, which have more cells than symbols
TWO_SIZES = {
    f"{name}-two-sizes": collection(*ALPHABETS[name], mechanism, subset_size=1, larger_share=0.3)
    for name, mechanism in (
        ("closed-sensitive", "uss"),
        ("closed", "ss"),
        ("permuted", "ss"),
        ("hashed-listed", "uss"),
        ("hashed-clear", "uss"),
        ("prefixes-listed", "uss"),
        ("tagged", "uss"),
    )
}

ALL_COLLECTIONS = {
    f"{name}-{mechanism}": collection(alphabet, num_cohorts, mechanism, **fields_of(mechanism))
    for name, (alphabet, num_cohorts) in ALPHABETS.items()
    for mechanism in MECHANISM_CASES
    if suits(name, alphabet, mechanism)
} | {
    f"{name}-marginal": collection(*ALPHABETS[name], "urap", inversion="marginal")
    for name in ("closed-sensitive", "hashed-listed")
}
ALL_COLLECTIONS |= TWO_SIZES


def leveled(name: str, of: str, first: dict[str, Any], second: Sequence[str]) -> Collection:
    """The collection of an alphabet of the table with two levels."""
    return collection(*ALPHABETS[name], "levels", of=of, levels=[first, {"epsilon": 2.0, "values": second}])


# levels in another order than the alphabet's; a tag with a level of its own; buckets and texts of a public list
ALL_COLLECTIONS |= {
    "closed-sensitive-levels": leveled("closed-sensitive", "urap", {"epsilon": 0.5, "values": ["bee"]}, ["ant", "fox"]),
    "tagged-levels": leveled("tagged", "uss", {"epsilon": 1.0, "values": ["home", "fox"]}, ["work", "bee"]),
    "hashed-listed-levels": leveled("hashed-listed", "urr", {"epsilon": 1.0}, ["cat", "dog"]),
    "prefixes-listed-levels": leveled("prefixes-listed", "uss", {"epsilon": 1.0}, ["dog"]),
}

# those without public lists, tags and several hash functions: symbols are the values, or buckets, all of them sensitive
COLLECTIONS = {
    name: item
    for name, item in ALL_COLLECTIONS.items()
    if item.alphabet.num_hashes == 1 and not item.alphabet.clear_values and item.alphabet.id != "tagged"
}

# the estimators that map the unbiased estimate, whatever the mechanism is; and every pair that goes together
ESTIMATORS_TO_TEST = [case for cases in ESTIMATOR_CASES.values() for case in cases if isinstance(case, PostProcessed)]
ANSWERS_TO_TEST = [
    pytest.param(name, case, id=f"{name}-{case.id}")
    for name, item in ALL_COLLECTIONS.items()
    for cases in ESTIMATOR_CASES.values()
    for case in cases
    if case.supports(item)
]


def alphabet_of(name: str) -> str:
    """Id of the alphabet of one of ALL_COLLECTIONS."""
    return ALL_COLLECTIONS[name].alphabet.id


# decorators of tests: one test for each id of a mechanism or alphabet, which runs all instances
each_mechanism = functools.partial(together, "mechanism", ids=label, by=operator.attrgetter("id"))
mechanisms = each_mechanism(MECHANISMS_TO_TEST)
private_symbols = each_mechanism(PRIVATE_SYMBOLS_TO_TEST)
alphabets = pytest.mark.parametrize(("alphabet", "num_cohorts"), ALPHABETS_TO_TEST)
estimators = together("estimator", ESTIMATORS_TO_TEST, ids=lambda case: case.id)
collections = together("name", COLLECTIONS, by=alphabet_of)
all_collections = together("name", ALL_COLLECTIONS, by=alphabet_of)
answers = together(("name", "estimator"), ANSWERS_TO_TEST, by=lambda pair: pair[1].id)


@functools.cache
def exact_channel(mechanism: Mechanism) -> tuple[list[bytes], list[list[Fraction]]]:
    """``mechanism.channel()``, computed once."""
    return mechanism.channel()


@functools.cache
def e_below(epsilon: float) -> Fraction:
    """A rational number below e**epsilon, closer than 1e-100 for epsilon <= 16: a partial sum of the series."""
    term = total = Fraction(1)
    for i in range(1, 250):
        term = term * Fraction(epsilon) / i
        total += term
    return total


def as_array(payloads: list[bytes]) -> np.ndarray:
    """(Y, W) uint8."""
    return np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(len(payloads), -1)


@functools.cache
def enumerated(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All payloads (Y, W), their probabilities (Y, K) under each symbol, and the cells (Y, K) and the inverse (Y, K)
    of each payload as the only report of its cohort."""
    payloads, rows = exact_channel(mechanism)
    codes = as_array(payloads)
    cells = mechanism.count(codes, np.arange(len(codes)), len(codes))
    inverse = mechanism.invert(CohortCounts(np.ones(len(codes), dtype=np.int64), cells))
    return codes, np.array([[float(q) for q in row] for row in rows]), cells, inverse


def golden(name: str, propose: Callable[[], list[dict]], folder: Path | None = None) -> list[dict]:
    """The records of a golden file. A missing one is written as proposed, and fails until someone reviews it."""
    path = (folder or GOLDEN) / name
    if WRITE in os.environ:
        path.write_text(text_of(propose()), encoding="utf-8")
    elif not path.exists():
        path.write_text(text_of(propose()), encoding="utf-8")
        pytest.fail(f"{path.name} was missing and has been written: review and commit it")
    records = Records(json.loads(path.read_text(encoding="utf-8")))
    records.name = name
    return records
