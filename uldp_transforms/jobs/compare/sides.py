"""What is compared: groups or everything over the whole period, or consecutive windows, with counts and estimates."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from uldp_transforms import JobSpec
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import Row, StoredCounts, simulated_of
from uldp_transforms.ldp import CohortCounts, Collection, SpecError
from uldp_transforms.ldp.alphabets.dimensions import RollUp, group_text
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimate
from uldp_transforms.ldp.estimators.estimator import Decoder
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms.ldp.model import keeps_memos
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.rows.row_identity import reports_of_a_person
from uldp_transforms.windows import rfc3339


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """One group or window of a comparison.

    Attributes:
        name: group as text, or ``window=`` and its start, or ``directory=`` and its name.
        start, end: of its windows, in milliseconds; None without windows.
        counts: of its reports, by the fingerprint of a collection.
        estimate: of the frequencies.
        sums: of numbers; None for other alphabets.
        simulated: whether some reports are; None: not known.
    """

    name: str
    start: int | None
    end: int | None
    counts: dict[bytes, CohortCounts]
    estimate: Estimate
    sums: NumberSums | None = None
    simulated: bool | None = None

    @property
    def num_reports(self) -> int:
        """Number of reports of all versions."""
        return sum(each.total for each in self.counts.values())


@dataclasses.dataclass(kw_only=True)
class Family:
    """The sides of one collection or question, in an order in which the baseline comes first.

    Attributes:
        collection: the collection; of a question the newest version.
        question: the question whose versions are pooled; None for a collection.
        pairs: which sides to compare; None: all pairs, or each with the one before.
        left_out: a sentence for each group or window that cannot be compared.
        times: maximum number of reports per person in all windows.
    """

    collection: Collection
    question: VersionedQuestion | None = None
    sides: list[Side] = dataclasses.field(default_factory=list)
    pairs: list[tuple[Side, Side]] | None = None
    left_out: list[str] = dataclasses.field(default_factory=list)
    times: int = 1

    @property
    def name(self) -> str:
        """Id of the collection or question."""
        return self.collection.id if self.question is None else self.question.id

    @property
    def version(self) -> int:
        """Version of the collection, or 0 for a question."""
        return self.collection.version if self.question is None else self.question.version

    @property
    def fingerprint(self) -> bytes:
        """Of the collection or question."""
        return self.collection.fingerprint if self.question is None else self.question.fingerprint

    @property
    def versions(self) -> Sequence[Collection]:
        """The collections whose reports count."""
        return [self.collection] if self.question is None else self.question.pooled


def groups_of(spec: JobSpec, stored: StoredCounts, by: tuple[str, ...]) -> Iterator[Family]:
    """The groups of each collection or question that has some, in the order of the declared values, over all complete
    windows.

    Raises:
        SpecError: if windows overlap, or people repeat memos unknown times.
    """
    for family, keys in _families(spec, stored):
        of_groups = [key for key in keys if key[GROUP]]
        if not of_groups:
            continue
        _check_apart(family, of_groups)
        times = _times(family, stored, of_groups)
        roll_up = RollUp(family.collection.dimensions, by)
        names = [group_text(list(roll_up.pairs(number))) for number in range(max(roll_up.table()) + 1)]
        found = {key[GROUP] for key in of_groups}
        for name in dict.fromkeys((*names, *sorted(found))):
            if name in found:
                _add(family, spec, name, stored, [key for key in of_groups if key[GROUP] == name], times)
        yield family


def totals_of(spec: JobSpec, stored: StoredCounts) -> Iterator[Family]:
    """Each collection or question with one side, the sum of all complete windows, which has no name.

    Raises:
        SpecError: if windows overlap, or people repeat memos unknown times.
    """
    for family, keys in _families(spec, stored):
        totals = [key for key in keys if not key[GROUP]]
        _check_apart(family, totals)
        _add(family, spec, "", stored, totals, _times(family, stored, totals))
        yield family


def windows_of(spec: JobSpec, stored: StoredCounts) -> Iterator[Family]:
    """The windows of each collection or question, in order of time.

    Raises:
        SpecError: if windows overlap, there are none, or people repeat memos.
    """
    for family, keys in _families(spec, stored):
        totals = [key for key in keys if not key[GROUP]]
        if any(map(keeps_memos, family.versions)):
            raise SpecError(
                f"--windows needs collections without epsilon_inf, because windows with the same memos are not "
                f"independent, got {family.name!r}"
            )
        if totals[0][-1] == 0:
            raise SpecError(f"--windows needs counts in windows, got one for everything of {family.name!r}")
        _check_apart(family, totals)
        for start, end in sorted({key[-2:] for key in totals}):
            of_window = [key for key in totals if key[-2:] == (start, end)]
            _add(family, spec, f"window={rfc3339(start)}", stored, of_window, _times(family, stored, of_window))
        yield family


def _families(spec: JobSpec, stored: StoredCounts) -> Iterator[tuple[Family, list[Key]]]:
    """The questions with two versions or more that have counts, and the collections that are in none of them."""
    by_collection = {
        _collection(spec, stored.windows[(same := list(keys))[0]]).fingerprint: same
        for _, keys in itertools.groupby(sorted(stored.windows), key=lambda key: key[:GROUP])
    }
    families: list[tuple[Family, list[Key]]] = []
    for question in spec.questions:
        found = [one for one in question.pooled if one.fingerprint in by_collection]
        if len(found) > 1:
            keys = itertools.chain(*(by_collection.pop(one.fingerprint) for one in found))
            families.append((Family(collection=found[-1], question=question), sorted(keys)))
    families += [(Family(collection=spec.catalog[mark]), keys) for mark, keys in by_collection.items()]
    yield from sorted(families, key=lambda pair: (pair[0].name, pair[0].version))


def _collection(spec: JobSpec, rows: Sequence[Row]) -> Collection:
    return spec.catalog[bytes.fromhex(rows[0]["fingerprint"])]


def _check_apart(family: Family, keys: Sequence[Key]) -> None:
    """Refuse overlapping windows: of a question, those of all versions must be the same or apart."""
    for before, after in itertools.pairwise(sorted({key[-2:] for key in keys})):
        if after[0] < before[1]:
            raise SpecError(
                f"DIR must have windows that do not overlap, because their reports are not independent, got "
                f"overlapping windows of {family.name!r}"
            )


def _times(family: Family, stored: StoredCounts, keys: Sequence[Key]) -> dict[bytes, int]:
    """Maximum number of reports per person by fingerprint; raises SpecError if one is unknown and matters.

    ``Family.times`` becomes the largest of all.
    """
    times: dict[bytes, int] = {}
    for collection in family.versions:
        own = [key for key in keys if stored.windows[key][0]["fingerprint"] == collection.fingerprint.hex()]
        if not own:
            continue
        start, end = min(key[-2] for key in own), max(key[-1] for key in own)
        place = {"window_start": rfc3339(start) if end else None, "window_end": rfc3339(end) if end else None}
        found = reports_of_a_person(collection, place)
        if found is None:
            raise SpecError(
                f"collection {collection.id!r} with epsilon_inf must have a client_window and windows to be compared, "
                "because errors depend on the number of reports per person, got no such number"
            )
        times[collection.fingerprint] = found
    family.times = max(family.times, *times.values())
    return times


def _add(
    family: Family, spec: JobSpec, name: str, stored: StoredCounts, keys: Sequence[Key], times: dict[bytes, int]
) -> None:
    """Estimate a side from its complete windows, or say why it is left out."""
    text = name or "the total"
    rows = [row for key in keys if key in stored.whole for row in stored.windows[key]]
    if not rows:
        family.left_out.append(f"{text} is left out, because it has no complete window")
        return
    counts: dict[bytes, CohortCounts] = {}
    for row in rows:
        mark = bytes.fromhex(row["fingerprint"])
        counts[mark] = counts[mark] + row["counts"] if mark in counts else row["counts"]
    if sum(each.total for each in counts.values()) < spec.min_reports:
        family.left_out.append(f"{text} is left out, because it has fewer than {spec.min_reports:,} reports")
        return
    try:
        estimate = _estimate(family, spec, counts, times)
    except EstimationError as error:
        family.left_out.append(f"{text} is left out, because it has no estimate ({error.status})")
        return
    is_numbers = family.collection.alphabet.bin_edges is not None
    if len({spec.catalog[mark].alphabet.known_values for mark in counts}) > 1 and is_numbers:
        family.left_out.append(f"{text} is left out, because versions list the texts beside numbers in other orders")
        return
    reports = [NumberReports(spec.catalog[mark], each, times[mark]) for mark, each in counts.items()]
    starts, ends = ([row[field] for row in rows] for field in ("window_start", "window_end"))
    family.sides.append(
        Side(
            name=name,
            start=None if None in starts else min(starts),
            end=None if None in ends else max(ends),
            counts=counts,
            estimate=estimate,
            sums=NumberSums(reports) if is_numbers else None,
            simulated=simulated_of([row["simulated"] for row in rows]),
        )
    )


def _estimate(family: Family, spec: JobSpec, counts: dict[bytes, CohortCounts], times: dict[bytes, int]) -> Estimate:
    """The estimate of a side; of a question, from all versions together."""
    asked = spec.candidates if family.collection.alphabet.known_values is None else None
    estimator = ESTIMATORS[spec.estimator]()
    if family.question is not None:
        assert isinstance(estimator, Decoder), "VersionedQuestion.check_estimator"
        window = family.question.estimate(counts, estimator, asked, dict(times))
        return window.estimate if spec.liars is None else window.estimate.with_lies(window.lies(spec.liars))
    [(mark, of_collection)] = counts.items()
    estimate = estimator.estimate(family.collection, of_collection, asked)
    estimate = with_repeated_people(family.collection, estimate, times[mark])
    return estimate if spec.liars is None else estimate.with_liars(family.collection, spec.liars)
