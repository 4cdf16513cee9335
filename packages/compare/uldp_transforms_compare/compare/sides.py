"""What is compared: groups or everything over the whole period, or consecutive windows, each a sample."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, overload

from uldp_transforms import JobSpec
from uldp_transforms.jobs.reestimate.added_windows import added, check_apart
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts
from uldp_transforms.ldp import CohortCounts, Collection, SpecError
from uldp_transforms.ldp.alphabets import Alphabet
from uldp_transforms.ldp.alphabets.dimensions import group_text, num_groups, roll_up_of
from uldp_transforms.ldp.estimators.empirical import Empirical
from uldp_transforms.ldp.estimators.number_sums import NumberSums
from uldp_transforms.ldp.model import keeps_memos
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import SampleRows, rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.windows import rfc3339
from uldp_transforms_compare.compare.kept_windows import KEPT, kept_sample
from uldp_transforms_compare.comparisons.interval_inversion import ComparedSide
from uldp_transforms_compare.comparisons.sum_differences import ComparedSums


class Solved(NamedTuple):
    """The rows of a side, and its estimate with the ends of intervals that all its pairs need."""

    rows: SampleRows
    compared: ComparedSide
    sums: ComparedSums | None


@functools.lru_cache(maxsize=KEPT)
def _solved(sample: Sample, asked: Asked) -> Solved:
    [rows] = rows_of([sample], asked)
    assert rows.shown is not None, "Side: it has an estimate"
    sums = None if rows.sums is None else ComparedSums(rows.sums, ComparedSide(rows.sums_as_shares))
    return Solved(rows, ComparedSide(rows.shown), sums)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One group or window of a comparison; it is estimated when it is compared.

    Attributes:
        name: group as text, or ``window=`` and its start, or ``directory=`` and its name.
        sample: its counts, and whose they are; they have an estimate.
        asked: what is estimated.
    """

    name: str
    sample: Sample
    asked: Asked

    @property
    def compared(self) -> ComparedSide:
        """The estimate of the frequencies, and the ends of its intervals that all pairs of this side need."""
        return _solved(self.sample, self.asked).compared

    @property
    def numbers(self) -> NumberSums | None:
        """Sums of numbers; None for other alphabets."""
        return _solved(self.sample, self.asked).rows.numbers

    @property
    def sums(self) -> ComparedSums | None:
        """Sums over chosen values; None without any."""
        return _solved(self.sample, self.asked).sums

    @property
    def times(self) -> int:
        """Maximum number of reports per person."""
        return max(self.sample.times[one.fingerprint] or 1 for one in self.sample.present)


Pair = tuple[Side, Side]
"""Sides (a, b) of a comparison: b is the baseline, or comes first."""


@dataclasses.dataclass(frozen=True, eq=False)
class CountsOfSides(Sequence[CohortCounts]):
    """The counts of one version on each side, which are read when they are asked for.

    Attributes:
        sides: all of them have reports of the version.
        fingerprint: of the version.
    """

    sides: Sequence[Side]
    fingerprint: bytes

    def __len__(self) -> int:
        return len(self.sides)

    @overload
    def __getitem__(self, place: int) -> CohortCounts: ...
    @overload
    def __getitem__(self, place: slice) -> CountsOfSides: ...
    def __getitem__(self, place: int | slice) -> CohortCounts | CountsOfSides:
        if isinstance(place, slice):
            return CountsOfSides(self.sides[place], self.fingerprint)
        return self.sides[place].sample.counts[self.fingerprint]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """The sides of one collection or question, in an order in which the baseline comes first.

    Attributes:
        owner: the collection or question, for everybody.
        sides: those that have an estimate.
        pairs: which sides to compare; None: all pairs, or each with the one before.
        left_out: a sentence for each group or window that cannot be compared.
    """

    owner: Owner
    sides: Sequence[Side] = ()
    pairs: Sequence[Pair] | None = None
    left_out: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Id of the collection or question."""
        return self.owner.named.id

    @property
    def alphabet(self) -> Alphabet:
        """The alphabet of the newest version."""
        return self.owner.versions[-1].alphabet

    @property
    def times(self) -> int:
        """Maximum number of reports per person on any side."""
        return max((side.times for side in self.sides), default=1)


def groups_of(spec: JobSpec, stored: StoredCounts, by: tuple[str, ...]) -> Iterator[Family]:
    """The groups of each collection or question that has some, in the order of the declared values, over all complete
    windows.

    Raises:
        SpecError: if windows overlap, or people repeat memos unknown times.
    """
    for owner, keys in _owners(spec, stored):
        windows: dict[str, list[Key]] = {name: [] for name in _declared(owner, by)}
        for key in sorted(keys, key=operator.itemgetter(GROUP)):
            if key[GROUP]:
                windows.setdefault(key[GROUP], []).append(key)
        samples = {name: added(stored, own, owner.named).sample for name, own in windows.items() if own}
        if samples:
            yield _family(spec, owner, samples)


def totals_of(spec: JobSpec, stored: StoredCounts) -> Iterator[Family]:
    """Each collection or question with one side, the sum of all complete windows, which has no name.

    Raises:
        SpecError: if windows overlap, or people repeat memos unknown times.
    """
    for owner, keys in _owners(spec, stored):
        total = added(stored, [key for key in keys if not key[GROUP]], owner.named).sample
        yield _family(spec, owner, {"": total})


def windows_of(spec: JobSpec, stored: StoredCounts) -> Iterator[Family]:
    """The windows of each collection or question, in order of time.

    Raises:
        SpecError: if windows overlap, there are none, or people repeat memos.
    """
    for owner, keys in _owners(spec, stored):
        name = owner.named.id
        if any(map(keeps_memos, owner.versions)):
            raise SpecError(
                f"--windows needs collections without epsilon_inf, because windows with the same memos are not "
                f"independent, got {name!r}"
            )
        windows: dict[tuple[int, int], list[Key]] = {}
        for key in sorted(keys, key=lambda key: key[-2:]):
            if not key[GROUP]:
                windows.setdefault(key[-2:], []).append(key)
        if (0, 0) in windows:
            raise SpecError(f"--windows needs counts in windows, got one for everything of {name!r}")
        check_apart(windows, name)
        samples = {
            f"window={rfc3339(start)}": kept_sample(stored, own, owner.named) for (start, _), own in windows.items()
        }
        yield _family(spec, owner, samples)


def _owners(spec: JobSpec, stored: StoredCounts) -> list[tuple[Owner, list[Key]]]:
    """The questions with two versions or more that have counts, and the collections that are in none of them, with the
    keys of their counts."""
    by_collection: dict[Collection, list[Key]] = {}
    catalog = {(one.id, one.version): one for one in spec.collections}
    for key in sorted(stored.windows):
        collection = catalog[key[:GROUP]]
        by_collection.setdefault(collection, []).append(key)
    owners: list[tuple[Owner, list[Key]]] = []
    for question in spec.questions:
        found = [one for one in question.pooled if one in by_collection]
        if len(found) > 1:
            owners.append((Owner(named=question), list(itertools.chain(*map(by_collection.pop, found)))))
    owners += [(Owner(named=collection), keys) for collection, keys in by_collection.items()]
    return sorted(owners, key=lambda pair: (pair[0].named.id, pair[0].named.version))


def _declared(owner: Owner, by: tuple[str, ...]) -> Iterator[str]:
    """The names of all groups in the order of the declared values, those of the newest version first."""
    for collection in reversed(owner.versions):
        roll_up = roll_up_of(collection.dimensions, by)
        if roll_up is not None:
            yield from (group_text(list(roll_up.pairs(number))) for number in range(num_groups(roll_up.kept)))


def _family(spec: JobSpec, owner: Owner, samples: Mapping[str, Sample]) -> Family:
    """The sides that can be estimated, and why others are left out.

    Args:
        spec: what is estimated.
        owner: the collection or question.
        samples: of each side, by its name.

    Raises:
        SpecError: if people repeat memos unknown times.
    """
    unknown = [one for sample in samples.values() for one in sample.present if sample.times[one.fingerprint] is None]
    if unknown:
        raise SpecError(
            f"collection {unknown[0].id!r} with epsilon_inf must have a client_window and windows to be compared, "
            "because errors depend on the number of reports per person, got no such number"
        )
    sides, left_out, rest = list[Side](), list[str](), iter(samples.items())
    asked = dataclasses.replace(spec.asked(), estimator=Empirical(), anytime_scale=None)
    while part := dict(itertools.islice(rest, KEPT)):
        for name, rows in zip(part, rows_of(part.values(), asked)):
            why = _why_left_out(rows)
            if why:
                left_out.append(f"{name or 'the total'} is left out, because {why}")
            else:
                sides.append(Side(name=name, sample=rows.sample, asked=asked))
    return Family(owner=owner, sides=sides, left_out=left_out)


def _why_left_out(rows: SampleRows) -> str | None:
    """Why a sample cannot be compared; None if it can."""
    if rows.shown is None:
        return {
            "partial": "it has no complete window",
            "suppressed": f"it has fewer than {rows.asked.min_reports:,} reports",
        }.get(rows.solution.status, f"it has no estimate ({rows.solution.status})")
    if rows.numbers is None and rows.sample.owner.versions[-1].alphabet.bin_edges is not None:
        return "versions list the texts beside numbers in other orders"
    return None
