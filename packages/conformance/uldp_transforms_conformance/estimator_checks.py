"""Check that an estimator keeps the laws of estimators on small collections."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from uldp_transforms.ldp.alphabets import Alphabet, Blocks, Closed, Hashed, Ordered, Permuted, Prefixes, Tagged
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.errors import ConformanceError
from uldp_transforms.ldp.estimators import Estimator
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.sampling import WordSource
from uldp_transforms_conformance.estimator_laws import VALUES, laws_of_estimators

_TOKENS = ("a", "n", "t", "b", "ee", "c", "at", "d", "o", "g", "e", "l", "k")


def check_estimator(
    tested: type[Estimator] | Estimator,
    collections: Iterable[Collection] | None = None,
    rng: np.random.Generator | WordSource | None = None,
) -> None:
    """Check that an estimator keeps the laws of estimators on every collection that it supports.

    - Shares are finite, not below 0, and sum to 1 with that of unlisted values, unless they are the unbiased ones.
    - Noiseless counts give the truth.
    - Raw frequencies, standard errors, and what is said of unlisted values are those of the linear estimate; so are
      intervals, extended to contain the shares.
    - The estimate has the requested values in their order, and then further ones of a public list; of a complete list,
      they are picked from that of all values.
    - The order in which values are requested changes no share.
    - Equal counts give equal shares: of a copy, of the model alone, in ``estimate_each``; of ``PostProcessed``
      estimators, also twice as many equal reports.
    - A few reports give an estimate or an ``EstimationError``, without warnings; no reports a ``NoReportsError``.
    - If ``is_continuous``, shares have no jumps.

    Example:
        >>> from uldp_transforms.ldp.estimators import Projected
        >>> check_estimator(Projected)

    Args:
        tested: a class that can be built without arguments, or an instance.
        collections: collections whose alphabets contain ``VALUES``. None (default): every mechanism that needs no
            fields with a closed and a hashed alphabet, and one collection of each further alphabet.
        rng: source of the reports' randomness; None (default): the operating system's.

    Raises:
        ConformanceError: if the estimator has a fault; names the first one.
    """
    estimator = tested() if isinstance(tested, type) else tested
    offered = _collections() if collections is None else collections
    chosen = [of for of in offered if estimator.supports(of)]
    if not chosen:
        raise ConformanceError(f"{estimator!r} must support at least one of the collections, got none")
    for of in chosen:
        where = f"{estimator!r} on {of.alphabet.id!r} with {of.mechanism.id!r}"
        try:
            fault = next(laws_of_estimators(estimator, of, rng), None)
        except Exception as error:
            raise ConformanceError(f"{where} must not raise, got {type(error).__name__}: {error}") from error
        if fault is not None:
            raise ConformanceError(f"{where} must keep the laws of estimators, got {fault}")


def _collections() -> Iterator[Collection]:
    plain = (Closed(values=VALUES, sensitive=VALUES[::2]), 1), (Hashed(num_buckets=4, seed=7), 16)
    names = [name for name in MECHANISMS if _needs_no_fields(name)]
    for name in names:
        yield from (_collection(alphabet, num_cohorts, name) for alphabet, num_cohorts in plain)
    further: tuple[tuple[Alphabet, int], ...] = (
        (Permuted(values=VALUES, num_buckets=3, seed=5), 12),
        (Prefixes(num_buckets=4, seed=7, tokens=_TOKENS, lengths=(1, 2, None)), 24),
        (Hashed(num_buckets=4, seed=7, non_sensitive=("cat", "yak")), 16),
        (Tagged(values=VALUES, tags=("home", "work"), sensitive=VALUES[:2]), 1),
        (Ordered(edges=(-1.5, 0, 0.1, 1e6), others=VALUES), 1),
        (Blocks(blocks={"one": VALUES[:2], "other": VALUES[2:]}), 1),
    )
    for alphabet, num_cohorts in further:
        partly = alphabet.num_sensitive < alphabet.num_symbols
        name = next(name for name in names if MECHANISMS[name].protects_all != partly)
        yield _collection(alphabet, num_cohorts, name)


def _needs_no_fields(name: str) -> bool:
    """Whether the mechanism takes values of any kind, and needs no field but epsilon."""
    cls = MECHANISMS[name]
    needed = [field.name for field in cls.json_fields() if field.default is dataclasses.MISSING]
    return needed == ["epsilon"] and not cls.last_is_missing and not cls.names_values


def _collection(alphabet: Alphabet, num_cohorts: int, mechanism: str) -> Collection:
    spec: dict[str, Any] = {"id": "conformance", "version": 1, "num_cohorts": num_cohorts}
    return Collection.from_json(spec | {"alphabet": alphabet.to_json(), "mechanism": {"id": mechanism, "epsilon": 2.0}})
