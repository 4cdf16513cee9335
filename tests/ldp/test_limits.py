"""Both sides of the limits of configuration: the last value that is taken, and the next one, which is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from tests.support.vectors import Memory
from uldp_transforms.ldp import Budget, Client, Collection, SpecError
from uldp_transforms.ldp.alphabets import Closed, Hashed, Ordered, Permuted, Prefixes, Tagged
from uldp_transforms.ldp.alphabets.dimensions import MAX_GROUPS, Dimension, check_dimensions
from uldp_transforms.ldp.client_window import DAY
from uldp_transforms.ldp.collection import canonical_candidates
from uldp_transforms.ldp.mechanisms import (
    AttributeOUE,
    DeclaredChannel,
    KaryRR,
    Rappor,
    SquareWave,
    SubsetSelection,
    TwoStage,
    UtilityOptimizedRappor,
    UtilityOptimizedSquareWave,
    UtilityOptimizedSubsetSelection,
)
from uldp_transforms.ldp.mechanisms.declared_priors import checked_priors

ABC = ("a", "b", "c", "d", "e", "f")
SPEC = {
    "id": "c",
    "version": 1,
    "alphabet": {"id": "closed", "values": list(ABC)},
    "mechanism": {"id": "krr", "epsilon": 1.0},
}
WORD = 1 << 64
EPSILONS = (5e-324, -1.0, 0, 16.000000000000004, float("nan"), True, "1")


class Limits(NamedTuple):
    """A field, how an object with a value of it is made, values that are taken, and values that are not."""

    field: str
    make: Callable[[Any], object]
    taken: Sequence[Any]
    refused: Sequence[Any]


def texts(number: int) -> tuple[str, ...]:
    return tuple(map(str, range(number)))


def collection(**fields: Any) -> Collection:
    return Collection.from_json(SPEC | fields)


def client(epsilon: float = 1.0, period_ms: int = DAY, **fields: Any) -> Client:
    return Client(collection(), Memory(), Budget(epsilon=epsilon, period_ms=period_ms), **fields)


def hashed(**fields: Any) -> Hashed:
    return Hashed(**{"num_buckets": 4} | fields)


def prefixes(**fields: Any) -> Prefixes:
    given: dict[str, Any] = {"num_buckets": 4, "tokens": ("a", "b"), "lengths": (1, None)} | fields
    return Prefixes(**given)


def ordered(**fields: Any) -> Ordered:
    return Ordered(**{"low": 0, "high": 100, "num_bins": 4} | fields)


def urap(**fields: Any) -> UtilityOptimizedRappor:
    return UtilityOptimizedRappor(num_symbols=6, num_sensitive=4, epsilon=1.0, **fields)


def uss(**fields: Any) -> UtilityOptimizedSubsetSelection:
    return UtilityOptimizedSubsetSelection(num_symbols=6, num_sensitive=4, epsilon=1.0, **fields)


def answers(pair: Sequence[Any]) -> DeclaredChannel:
    """Two answers, kept and changed with these probabilities if the first value is held."""
    return DeclaredChannel(num_symbols=2, num_sensitive=2, matrix=((pair[0], "1/7"), (pair[1], "6/7")))


def many(number: int, matrix: Sequence[Any] = ()) -> DeclaredChannel:
    return DeclaredChannel(num_symbols=number, num_sensitive=number, matrix=tuple(matrix))


def nearly_alike(singular_value: float) -> DeclaredChannel:
    """Two answers with nearly equal chances; the smallest singular value is twice the square root of 2 times apart."""
    apart = round(WORD * singular_value / 8**0.5)
    more, less = (1 << 63) + apart, (1 << 63) - apart
    return many(2, [(more, less), (less, more)])


def two_of_three(singular_value: float) -> DeclaredChannel:
    """The first two of three answers are nearly alike, by twice the square root of 3 times apart."""
    apart = round(WORD * singular_value / 12**0.5)
    more, less = (1 << 63) + apart, (1 << 63) - apart
    return many(3, [(more, less, 0), (less, more, 0), (0, 0, WORD)])


def states(**fields: Any) -> AttributeOUE:
    return AttributeOUE(num_symbols=2, num_sensitive=2, epsilon=1.0, priors=((0.5, 0.5), (0.25, 0.75)), **fields)


def rows_of_two(number: int) -> DeclaredChannel:
    return many(2, [()] * number)


def two_stages(number: int = 3, rates: Sequence[Any] = (0.4, 0.2)) -> TwoStage:
    return TwoStage(num_symbols=number, num_sensitive=number, epsilon=1.0, missing_rates=tuple(rates))


def wave(number: int = 5, **fields: Any) -> SquareWave:
    return SquareWave(num_symbols=number, num_sensitive=number, epsilon=1.0, **fields)


def groups(sizes: Sequence[int], num_cohorts: int = 1, set_by: str = "client") -> None:
    listed = (Dimension(f"d{place}", texts(size - 1), set_by) for place, size in enumerate(sizes))
    check_dimensions(tuple(listed), num_cohorts)


ALPHABETS = [
    Limits("Closed.values", lambda n: Closed(values=texts(n)), [2], [1]),
    Limits("Closed.sensitive", lambda n: Closed(values=ABC, sensitive=ABC[:n]), [1, 6], [0]),
    Limits("Permuted.num_buckets", lambda n: Permuted(values=ABC, num_buckets=n), [2, 6], [1, 7]),
    Limits("Permuted.num_buckets", lambda n: Permuted(values=texts(n), num_buckets=n), [1 << 16], [(1 << 16) + 1]),
    Limits("Permuted.sensitive", lambda n: Permuted(values=ABC, num_buckets=2, sensitive=ABC[:n]), [2, 6], [0, 1]),
    Limits("Permuted.num_buckets", lambda n: Permuted(values=ABC, num_buckets=n, sensitive=ABC[:4]), [2, 4], [1, 5, 6]),
    Limits("Permuted.num_hashes", lambda n: Permuted(values=ABC, num_buckets=2, num_hashes=n), [1, 16], [0, 17]),
    Limits(
        "Permuted.num_hashes",
        lambda n: Permuted(values=ABC, num_buckets=2, num_hashes=n, sensitive=ABC[:4]),
        [1],
        [0, 2],
    ),
    Limits("Permuted.seed", lambda n: Permuted(values=ABC, num_buckets=2, seed=n), [0, WORD - 1], [-1, WORD]),
    Limits("Collection.num_cohorts", Permuted(values=ABC, num_buckets=3).check_cohorts, [3], [2]),
    Limits("Collection.num_cohorts", Permuted(values=ABC, num_buckets=2, seed=30).check_cohorts, [5], [4]),
    Limits(
        "Collection.num_cohorts",
        Permuted(values=ABC, num_buckets=2, seed=30, sensitive=ABC[2:]).check_cohorts,
        [3],
        [2],
    ),
    Limits("Hashed.num_buckets", lambda n: hashed(num_buckets=n), [2, 1 << 16], [1, (1 << 16) + 1]),
    Limits("Hashed.seed", lambda n: hashed(seed=n), [0, WORD - 1], [-1, WORD]),
    Limits("Hashed.num_hashes", lambda n: hashed(num_hashes=n), [1, 16], [0, 17]),
    Limits("Hashed.num_hashes", lambda n: hashed(num_hashes=n, non_sensitive=ABC), [1], [0, 2]),
    Limits("Hashed.non_sensitive", lambda n: hashed(non_sensitive=ABC[:n]), [1], [0]),
    Limits(
        "Hashed.num_clear_buckets",
        lambda n: hashed(non_sensitive=ABC, num_clear_buckets=n),
        [2, 1 << 16],
        [1, (1 << 16) + 1],
    ),
    Limits("Collection.num_cohorts", hashed().check_cohorts, [2], [1]),
    Limits("Ordered.num_bins", lambda n: ordered(num_bins=n), [2, 256], [1, 257]),
    Limits("Ordered.low", lambda x: ordered(low=x), [-999999999999999.9, 99.0], [-1e15, 100, 1e15, True]),
    Limits("Ordered.low", lambda x: ordered(low=1, high=x), [1.5, 999999999999999.9], [1, 0, 1e15]),
    Limits("Ordered.low", lambda x: ordered(low=x, scale="log"), [0.5], [0, -1]),
    Limits("Ordered.edges", lambda n: Ordered(edges=tuple(range(n))), [3, 257], [2, 258]),
    Limits("Ordered.edges", lambda x: Ordered(edges=(0, 1, x)), [2], [1, 0.5]),
    Limits("Ordered.unit", lambda n: ordered(unit="m" * n), [0, 20], [21]),
    Limits("Ordered.atoms", lambda x: ordered(atoms=(x,)), [0, 99.9], [-0.1, 100]),
    Limits(
        "Ordered.sensitive",
        lambda pair: ordered(sensitive=(pair,)),
        [(1, 2), (None, 2), (1, None), (None, None)],
        [(2, 2), (3, 2), (1e15, None), (1,), (1, 2, 3), (None, True)],
    ),
    Limits("Prefixes.num_buckets", lambda n: prefixes(num_buckets=n), [2, 4096], [1, 4097]),
    Limits("Prefixes.seed", lambda n: prefixes(seed=n), [0, WORD - 1], [-1, WORD]),
    Limits("Prefixes.tokens", lambda n: prefixes(tokens=texts(n)), [1, 1 << 16], [0, (1 << 16) + 1]),
    Limits("Prefixes.tokens", lambda text: prefixes(tokens=(text,)), ["a"], [""]),
    Limits("Prefixes.non_sensitive", lambda n: prefixes(non_sensitive=ABC[:n]), [1], [0]),
    Limits("Prefixes.lengths", lambda n: prefixes(lengths=(*range(1, n), None)), [1, 2, 8], [9]),
    Limits("Prefixes.lengths", lambda n: prefixes(lengths=(n, None)), [1, 64], [0, 65, True, "1", None]),
    Limits("Prefixes.lengths", lambda n: prefixes(lengths=(2, n, None)), [3], [2, 1]),
    Limits("Prefixes.lengths", lambda lengths: prefixes(lengths=lengths), [(None,)], [(), (1,), (1, 2), (None, None)]),
    Limits("Collection.num_cohorts", prefixes().check_cohorts, [4], [3]),
    Limits("Tagged.values and Tagged.tags", lambda n: Tagged(values=texts(n), tags=("x",)), [4095], [4096]),
    Limits("Tagged.sensitive", lambda n: Tagged(values=ABC, tags=("x",), sensitive=ABC[:n]), [0, 5], [6]),
    Limits("Tagged.tags", lambda n: Tagged(values=ABC, tags=("x", "y")[:n]), [1, 2], [0]),
    Limits(
        "Tagged.background",
        lambda share: Tagged(values=ABC, tags=("x",), background={"x": {"a": share, "b": 0.25}}),
        [0.75, 0.75 + 0.9e-9, 0.75 - 0.9e-9],
        [0.75 + 1.1e-9, 0.75 - 1.1e-9, -0.25, True],
    ),
    Limits(
        "Tagged.background",
        lambda share: Tagged(values=ABC, tags=("x",), background={"x": {"a": share}}),
        [1, 1.0],
        [1.0000000001, "1"],
    ),
]

DIMENSIONS = [
    Limits("Dimension.name", lambda n: Dimension("a" * n, ("x",)), [1, 32], [0, 33]),
    Limits("Dimension.name", lambda name: Dimension(name, ("x",)), ["a_9"], ["9", "_a", "A", "value", "event_time", 1]),
    Limits("dimension 'a': values", lambda n: Dimension("a", ABC[:n]), [1], [0]),
    Limits("dimension 'a': values", lambda n: Dimension("a", ("x" * n,)), [1, 256], [0, 257]),
    Limits("dimension 'a': values", lambda n: Dimension("a", ("\u00e9" * n,)), [128], [129]),
    Limits("dimension 'a': values", lambda x: Dimension("a", (x,)), ["a b"], ["a,", "a=", "\x1f", "\x7f", " a"]),
    Limits("dimension 'a': values", lambda x: Dimension("a", (x,)), ["others"], ["other", "e\u0301"]),
    Limits("Collection.dimensions", lambda n: groups([2] * n), [0, 8], [9]),
    Limits("Collection.dimensions", lambda n: groups([4, n], MAX_GROUPS // 4 // 16), [16], [17]),
    Limits("Collection.dimensions", lambda n: groups([n], 1024, "gateway"), [63], [64]),
]

COLLECTIONS = [
    Limits("Collection.id", lambda n: collection(id="a" * n), [1, 64], [0, 65]),
    Limits("Collection.id", lambda text: collection(id=text), ["a-z_0.9"], ["A", "a b", "\u00e9", "a\n", 1]),
    Limits("Collection.question", lambda n: collection(question="a" * n), [1, 64], [0, 65]),
    Limits("Collection.version", lambda n: collection(version=n), [1, (1 << 31) - 1], [0, 1 << 31, True, 1.0]),
    Limits("Collection.num_cohorts", lambda n: collection(num_cohorts=n), [1, 1 << 16], [0, (1 << 16) + 1]),
    Limits(
        "Collection.num_cohorts times the number of counted cells",
        lambda n: collection(num_cohorts=1 << 16, alphabet={"id": "closed", "values": texts(n)}),
        [64],
        [65],
    ),
    Limits(
        "Collection.client_window", lambda text: collection(client_window=text), ["365d", "52w", "1m"], ["366d", "53w"]
    ),
    Limits("candidates", lambda n: canonical_candidates(["x" * n]), [1, 4096], [4097]),
    Limits("candidates", lambda n: canonical_candidates(ABC[:n]), [1, 2], [0]),
]

CLIENTS = [
    Limits("Budget.epsilon", lambda x: Budget(epsilon=x), [5e-324, 1e300], [0, -1, float("inf"), float("nan"), None]),
    Limits("Budget.lifetime", lambda x: Budget(epsilon=1, lifetime=x), [5e-324, 1e300, None], [0, float("inf"), True]),
    Limits("Budget.period_ms", lambda n: Budget(epsilon=1, period_ms=n), [1, 1 << 53], [0, (1 << 53) + 1]),
    Limits("Client.window_ms", lambda n: client(period_ms=1 << 53, window_ms=n), [1 << 53], [(1 << 53) + 1]),
    Limits("Client.window_ms", lambda n: client(window_ms=n), [1, DAY], [0, DAY - 1, DAY + 1, (1 << 53) + 1]),
    Limits("Client.report_every", lambda n: client(report_every=n), [1, 1 << 31], [0, (1 << 31) + 1]),
    Limits("Client.distinct_values", lambda n: client(distinct_values=n), [1, 1 << 31], [0, (1 << 31) + 1]),
    Limits("Client.time_unit_ms", lambda n: client(time_unit_ms=n), [1, DAY], [0, DAY - 1, 2 * DAY, (1 << 53) + 1]),
    Limits("Client.secret", lambda n: client(secret=bytes(n)), [32], [31, 33]),
    Limits(
        "Client.report: event_time",
        lambda n: client().report("a", n),
        [1 << 53, -(1 << 53)],
        [(1 << 53) + 1, -(1 << 53) - 1],
    ),
]

MECHANISMS = [
    Limits("KaryRR.epsilon", lambda x: KaryRR(num_symbols=2, num_sensitive=2, epsilon=x), [1e-18, 16, 16.0], EPSILONS),
    Limits(
        "KaryRR.num_symbols",
        lambda n: KaryRR(num_symbols=n, num_sensitive=n, epsilon=1.0),
        [2, 1 << 20],
        [1, (1 << 20) + 1],
    ),
    Limits(
        "UtilityOptimizedRappor.num_sensitive",
        lambda n: UtilityOptimizedRappor(num_symbols=6, num_sensitive=n, epsilon=1.0),
        [1, 6],
        [0, 7],
    ),
    Limits(
        "Rappor.num_hashes",
        lambda n: Rappor(num_symbols=8, num_sensitive=8, num_hashes=n, epsilon=1.0),
        [1, 16],
        [0, 17],
    ),
    Limits("AttributeOUE.num_hashes", lambda n: states(num_hashes=n), [1], [0, 2]),
    Limits("UtilityOptimizedRappor.num_hashes", lambda n: urap(num_hashes=n), [1], [0, 2]),
    Limits("UtilityOptimizedRappor.num_others", lambda n: urap(num_others=n), [0, 4], [-1, 5]),
    Limits(
        "UtilityOptimizedRappor.epsilon_inf",
        lambda x: urap(epsilon_inf=x),
        [1.0000000000000002, 16, None],
        [1.0, 0.5, 16.000000000000004, float("nan"), True],
    ),
    Limits(
        "UtilityOptimizedRappor.theta",
        lambda x: urap(theta=x),
        [1e-9, 1 - 1e-9, "optimal", None],
        [0, 1, -0.5, float("nan"), "best", True],
    ),
    Limits("UtilityOptimizedRappor.inversion", lambda x: urap(inversion=x), ["aware", "marginal", None], ["other", 1]),
    Limits("UtilityOptimizedSubsetSelection.subset_size", lambda n: uss(subset_size=n), [1, 3, None], [0, 4, 1.0]),
    Limits(
        "SubsetSelection.subset_size",
        lambda n: SubsetSelection(num_symbols=2, num_sensitive=2, epsilon=1.0, subset_size=n),
        [1],
        [0, 2],
    ),
    Limits(
        "UtilityOptimizedSubsetSelection.larger_share",
        lambda x: uss(subset_size=2, larger_share=x),
        [1e-6, 1 - 1e-6, None],
        [0.99e-6, 1 - 0.99e-6, 0, 1, float("nan"), True],
    ),
    Limits(
        "UtilityOptimizedSubsetSelection.larger_share",
        lambda n: uss(subset_size=n, larger_share=0.5),
        [1, 2, 3],
        [None],
    ),
    Limits(
        "SubsetSelection.larger_share",
        lambda n: SubsetSelection(num_symbols=4, num_sensitive=4, epsilon=1.0, subset_size=n, larger_share=0.5),
        [1, 2],
        [3, None],
    ),
    Limits(
        "X.priors",
        lambda share: checked_priors("X", [[share, 0.25], [1.0, 0]], 2),
        [0.75, 0.75 + 0.9e-9, 0.75 - 0.9e-9],
        [0.75 + 1.1e-9, 0.75 - 1.1e-9, -0.75, True, "0.75"],
    ),
    Limits("X.priors", lambda share: checked_priors("X", [[share, 1 - share]] * 2, 2), [0, 1.0], [1.25, -0.25]),
    Limits("X.priors", lambda n: checked_priors("X", [[0.5, 0.5]] * n, 2), [2, 3], [0, 1]),
]

CHANNELS = [
    Limits("DeclaredChannel.num_symbols", many, [], [1025]),
    Limits("DeclaredChannel.matrix must be a list of at least 1024 rows", many, [], [1024]),
    Limits("DeclaredChannel.matrix must have at most 1048576 entries", rows_of_two, [], [(1 << 19) + 1]),
    Limits("DeclaredChannel.matrix must have rows of 2", rows_of_two, [], [2, 1 << 19]),
    Limits(
        "DeclaredChannel.matrix must have probabilities",
        lambda text: answers((text, "1/6")),
        ["5/6", "05/6"],
        ["5/7/8", "5e-1", "-1", "7/6", "1/0", "", "1 ", " 1", "1/" + "9" * 41, 0.5, True, None, -1, WORD + 1],
    ),
    Limits(
        "DeclaredChannel.matrix must have probabilities",
        answers,
        [("0." + "8" * 40, "0." + "1" * 39 + "2"), ("1", "0"), (WORD, 0), (1, WORD - 1)],
        [("0." + "8" * 41, "0." + "1" * 40 + "2")],
    ),
    Limits(
        "DeclaredChannel.matrix must have columns that sum to exactly 1",
        answers,
        [("1/2", 1 << 63)],
        [("1/2", (1 << 63) - 1), ("1/2", (1 << 63) + 1)],
    ),
    Limits("DeclaredChannel.matrix must have columns that tell the symbols apart", nearly_alike, [1.2e-6], [0.8e-6]),
    Limits("DeclaredChannel.matrix must have columns that tell the symbols apart", two_of_three, [1.2e-6], [0.8e-6]),
    Limits("TwoStage.num_symbols", two_stages, [3], [2, 1025]),
    Limits("TwoStage.missing_rates", lambda n: two_stages(n, [0]), [], [3, 1024]),
    Limits("TwoStage.missing_rates", lambda x: two_stages(3, [0.4, x]), [0.2, 0.999], [0, 1, -0.1, float("nan"), True]),
    Limits("TwoStage.missing_rates", lambda n: two_stages(3, [0.4, 0.2, 0.3][:n]), [2, 3], [0, 1]),
    Limits("SquareWave.num_symbols", wave, [2], [1025]),
    Limits("SquareWave.half_width", lambda n: wave(n, half_width=0), [], [2, 1024]),
    Limits("SquareWave.num_symbols", lambda n: wave(3, num_others=n), [0, 1], [2]),
    Limits("SquareWave.half_width", lambda n: wave(5, num_others=1, half_width=n), [1, 4, None], [0, 5]),
    Limits(
        "UtilityOptimizedSquareWave.num_symbols",
        lambda n: UtilityOptimizedSquareWave(num_symbols=5, num_sensitive=3, num_others=n, epsilon=1.0),
        [0, 2],
        [3],
    ),
]


ALL = [*ALPHABETS, *DIMENSIONS, *COLLECTIONS, *CLIENTS, *MECHANISMS, *CHANNELS]


@pytest.mark.parametrize("limits", ALL, ids=[f"{number}-{limits.field}" for number, limits in enumerate(ALL)])
def test_the_last_value_is_taken_and_the_next_one_refused(limits: Limits) -> None:
    for value in limits.taken:
        limits.make(value)
    for value in limits.refused:
        with pytest.raises(SpecError) as caught:
            limits.make(value)
        assert str(caught.value).startswith(limits.field), value
