"""A question with its versions: which of them are pooled, and what cannot be."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from uldp_transforms.ldp.alphabets.dimensions import num_groups, roll_up_of
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError

if TYPE_CHECKING:  # what estimates is imported by the first estimate
    from uldp_transforms.ldp.estimators import Estimator
    from uldp_transforms.ldp.estimators.estimator import Decoder
    from uldp_transforms.ldp.versions.pooled_estimate import PooledWindow

_NUMBER_BYTES = 4
"""Bytes of the number of a group, in the key of its counts."""


@dataclasses.dataclass(frozen=True, eq=False)
class VersionedQuestion:
    """Collections that name the same question.

    Attributes:
        id: the question.
        collections: all of them, the newest last: by version, then in the given order.
    """

    id: str
    collections: tuple[Collection, ...]

    def __post_init__(self) -> None:
        newest = self.collections[-1]
        for collection in self.collections:
            size = collection.alphabet.num_symbols
            if collection.alphabet.redistribution(np.full(size, 1 / size)) is not None:
                raise SpecError(
                    f"question {self.id!r} must have collections without tags, because nobody knows how people of "
                    f"another version would have used them; got {collection.id!r} version {collection.version}"
                )
            if (collection.alphabet.known_values is None) != (newest.alphabet.known_values is None):
                raise SpecError(f"question {self.id!r} must have only closed alphabets or only open ones, got both")

    @property
    def version(self) -> int:
        """0, which no collection has: rows of a question have it in the place of a version."""
        return 0

    @functools.cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that name the question in rows, whatever its versions are."""
        return hashlib.sha256(b"question\0" + self.id.encode("ascii")).digest()

    @functools.cached_property
    def pooled(self) -> tuple[Collection, ...]:
        """The collections with the values of the newest one; public values count, not their order.

        People who were asked for other values had other answers to choose from, so their reports are not pooled; nor
        are numbers in another unit.
        """
        newest = _values(self.collections[-1])
        return tuple(one for one in self.collections if _values(one) == newest)

    @functools.lru_cache(maxsize=16)  # noqa: B019  # questions live as long as their job
    def groups_by(self, names: tuple[str, ...]) -> Mapping[tuple[str, ...], int]:
        """The groups by these dimensions that any version has: values, one for each name -> number; none without names.

        A number is a hash of the values, so that groups keep theirs, under which streams hold counts, when versions are
        added or removed. (If two hashes are the same, the next number that is free is taken.)
        """
        rolled_up = [roll_up_of(one.dimensions, names) for one in self.collections]
        known = {each.values(number) for each in rolled_up if each for number in range(num_groups(each.kept))}
        found: dict[int, tuple[str, ...]] = {}
        for values in sorted(known):
            number = int.from_bytes(hashlib.sha256("\0".join(values).encode()).digest()[:_NUMBER_BYTES], "big")
            while number in found:
                number = (number + 1) % (1 << 8 * _NUMBER_BYTES)
            found[number] = values
        return {values: number for number, values in found.items()}

    def check_estimator(self, estimator: Estimator) -> None:
        """Refuse an estimator that cannot decode pooled estimates; raises SpecError."""
        from uldp_transforms.ldp.estimators.estimator import Decoder  # noqa: PLC0415  # as above

        if not isinstance(estimator, Decoder):
            raise SpecError(
                f"question {self.id!r} needs an estimator that decodes pooled estimates, such as eb or projected, "
                f"got {estimator.id!r}"
            )

    def estimate(
        self,
        counts: Mapping[bytes, CohortCounts],
        decoder: Decoder,
        candidates: tuple[str, ...] | None = None,
        times: Mapping[bytes, int | None] | None = None,
    ) -> PooledWindow:
        """Pool the counts of one window.

        Args:
            counts: by the fingerprint of a collection; others than ``pooled`` are ignored.
            decoder: estimator of the displayed shares.
            candidates: canonical values to estimate in open alphabets.
            times: by fingerprint, the maximum number of reports per person; None: 1.

        Raises:
            NoReportsError: if no version has reports.
            EstimationError: if no version can be estimated.
        """
        from uldp_transforms.ldp.versions.pooled_estimate import pool  # noqa: PLC0415  # as above

        present = [one for one in self.pooled if one.fingerprint in counts]
        of_people = {} if times is None else times
        window = pool(
            decoder,
            present,
            [counts[one.fingerprint] for one in present],
            candidates,
            [of_people.get(one.fingerprint, 1) for one in present],
        )
        return dataclasses.replace(window, estimate=dataclasses.replace(window.estimate, noun=self.pooled[-1].noun))


def questions_of(collections: Iterable[Collection]) -> tuple[VersionedQuestion, ...]:
    """The questions that collections name, in the order of their names; raises SpecError if one cannot be pooled."""
    versions: dict[str, list[Collection]] = {}
    for collection in collections:
        if collection.question is not None:
            versions.setdefault(collection.question, []).append(collection)
    return tuple(
        VersionedQuestion(name, tuple(sorted(found, key=lambda one: one.version)))
        for name, found in sorted(versions.items())
    )


def _values(collection: Collection) -> tuple[bool, str, frozenset[str]]:
    """Whether the list is complete, the unit of numbers, and the values of a closed alphabet or the public values of an
    open one."""
    alphabet = collection.alphabet
    known = alphabet.known_values
    return known is not None, alphabet.unit, frozenset(alphabet.clear_values if known is None else known)
