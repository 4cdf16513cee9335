"""What is compared: groups or everything over the whole period, or consecutive windows, with counts and estimates."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Iterator, Sequence

from uldp_transforms import JobSpec
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import Row, StoredCounts
from uldp_transforms.ldp import CohortCounts, Collection, SpecError
from uldp_transforms.ldp.alphabets.dimensions import RollUp, group_text
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimate
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms.ldp.repeated_people import keeps_memos, with_repeated_people
from uldp_transforms.rows.row_identity import reports_of_a_person
from uldp_transforms.windows import rfc3339


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """One group or window of a comparison.

    Attributes:
        name: group as text, or ``window=`` and its start, or ``directory=`` and its name.
        start, end: of its windows, in milliseconds; None without windows.
        counts: of its reports.
        estimate: of the frequencies.
        sums: of numbers; None for other alphabets.
    """

    name: str
    start: int | None
    end: int | None
    counts: CohortCounts
    estimate: Estimate
    sums: NumberSums | None = None


@dataclasses.dataclass(kw_only=True)
class Family:
    """The sides of one collection, in an order in which the baseline comes first.

    Attributes:
        pairs: which sides to compare; None: all pairs, or each with the one before.
        left_out: a sentence for each group or window that cannot be compared.
        times: maximum number of reports per person in all windows.
    """

    collection: Collection
    sides: list[Side] = dataclasses.field(default_factory=list)
    pairs: list[tuple[Side, Side]] | None = None
    left_out: list[str] = dataclasses.field(default_factory=list)
    times: int = 1


def groups_of(spec: JobSpec, stored: StoredCounts, by: tuple[str, ...]) -> Iterator[Family]:
    """The groups of each collection that has some, in the order of the declared values, over all complete windows.

    Raises:
        SpecError: if windows overlap, or people repeat memos unknown times.
    """
    for names, keys in _by_collection(stored):
        of_groups = [key for key in keys if key[GROUP]]
        if not of_groups:
            continue
        family = Family(collection=_collection(spec, stored.windows[of_groups[0]]))
        _check_apart(names[0], of_groups)
        family.times = _times(family.collection, of_groups)
        roll_up = RollUp(family.collection.dimensions, by)
        grouped = itertools.groupby(of_groups, key=operator.itemgetter(GROUP))  # keys are sorted
        found = {name: list(same) for name, same in grouped}
        for number in range(max(roll_up.table()) + 1):
            name = group_text(list(roll_up.pairs(number)))
            if name in found:
                _add(family, spec, name, stored, found[name], family.times)
        yield family


def totals_of(spec: JobSpec, stored: StoredCounts) -> Iterator[Family]:
    """Each collection with one side, the sum of all complete windows, which has no name.

    Raises:
        SpecError: if windows overlap, or people repeat memos unknown times.
    """
    for names, keys in _by_collection(stored):
        totals = [key for key in keys if not key[GROUP]]
        family = Family(collection=_collection(spec, stored.windows[totals[0]]))
        _check_apart(names[0], totals)
        family.times = _times(family.collection, totals)
        _add(family, spec, "", stored, totals, family.times)
        yield family


def windows_of(spec: JobSpec, stored: StoredCounts) -> Iterator[Family]:
    """The windows of each collection, in order of time.

    Raises:
        SpecError: if windows overlap, there are none, or people repeat memos.
    """
    for names, keys in _by_collection(stored):
        totals = [key for key in keys if not key[GROUP]]
        family = Family(collection=_collection(spec, stored.windows[totals[0]]))
        if keeps_memos(family.collection):
            raise SpecError(
                f"--windows needs collections without epsilon_inf, because windows with the same memos are not "
                f"independent, got {names[0]!r}"
            )
        if totals[0][-1] == 0:
            raise SpecError(f"--windows needs counts in windows, got one for everything of {names[0]!r}")
        _check_apart(names[0], totals)
        for key in totals:
            name = f"window={rfc3339(key[-2])}"
            _add(family, spec, name, stored, [key], _times(family.collection, [key]))
        yield family


def _by_collection(stored: StoredCounts) -> Iterator[tuple[Key, list[Key]]]:
    for names, keys in itertools.groupby(sorted(stored.windows), key=lambda key: key[:GROUP]):
        yield names, list(keys)


def _collection(spec: JobSpec, rows: Sequence[Row]) -> Collection:
    return spec.catalog[bytes.fromhex(rows[0]["fingerprint"])]


def _check_apart(name: str, keys: Sequence[Key]) -> None:
    for before, after in itertools.pairwise(sorted({key[-2:] for key in keys})):
        if after[0] < before[1]:
            raise SpecError(
                f"DIR must have windows that do not overlap, because their reports are not independent, got "
                f"overlapping windows of {name!r}"
            )


def _times(collection: Collection, keys: Sequence[Key]) -> int:
    """Maximum number of reports per person; raises SpecError if it is unknown and matters."""
    start, end = min(key[-2] for key in keys), max(key[-1] for key in keys)
    place = {"window_start": rfc3339(start) if end else None, "window_end": rfc3339(end) if end else None}
    times = reports_of_a_person(collection, place)
    if times is None:
        raise SpecError(
            f"collection {collection.id!r} with epsilon_inf must have a client_window and windows to be compared, "
            "because errors depend on the number of reports per person, got no such number"
        )
    return times


def _add(family: Family, spec: JobSpec, name: str, stored: StoredCounts, keys: Sequence[Key], times: int) -> None:
    """Estimate a side from its complete windows, or say why it is left out."""
    rows = [row for key in keys if key in stored.whole for row in stored.windows[key]]
    if not rows:
        family.left_out.append(f"{name or 'the total'} is left out, because it has no complete window")
        return
    counts = functools.reduce(operator.add, (row["counts"] for row in rows))
    if counts.total < spec.min_reports:
        few = f"it has fewer than {spec.min_reports:,} reports"
        family.left_out.append(f"{name or 'the total'} is left out, because {few}")
        return
    asked = spec.candidates if family.collection.alphabet.known_values is None else None
    try:
        estimate = ESTIMATORS[spec.estimator]().estimate(family.collection, counts, asked)
    except EstimationError as error:
        family.left_out.append(f"{name or 'the total'} is left out, because it has no estimate ({error.status})")
        return
    estimate = with_repeated_people(family.collection, estimate, times)
    if spec.liars is not None:
        estimate = estimate.with_liars(family.collection, spec.liars)
    reports = NumberReports(family.collection, counts, times)
    starts, ends = ([row[field] for row in rows] for field in ("window_start", "window_end"))
    family.sides.append(
        Side(
            name=name,
            start=None if None in starts else min(starts),
            end=None if None in ends else max(ends),
            counts=counts,
            estimate=estimate,
            sums=None if family.collection.alphabet.bin_edges is None else NumberSums([reports]),
        )
    )
