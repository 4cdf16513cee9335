"""Counts batches of reports per collection and base period, with array operations. No Beam."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from uldp_transforms.ldp.alphabets.dimensions import RollUp, roll_up_of
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.many_collections import count_cells
from uldp_transforms.ldp.counts.sparse_table import split_groups
from uldp_transforms.ldp.mechanisms.integer_reports import IntegerReportMechanism
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.group_keys import fingerprint_of, is_total, owner_of_group
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.windows import BasePeriods, split_by_owner_and_period, split_by_period, split_runs_by_period

_MAX_CELLS = 1 << 22
"""Maximum number of counters in the tables that are built in one pass."""

_SMALL = 1 << 15
"""Maximum number of counters of a batch for which a full table is always built."""

Reports = ReportBatch | MixedReports
"""Reports of one collection, or of several."""


def count_periods(
    collection: Collection, batch: ReportBatch, periods: BasePeriods | None, bit_patterns: bool = False
) -> Iterator[tuple[int | None, CohortCounts]]:
    """Yield the counts of each base period in a batch, in one pass over the reports if memory allows.

    Args:
        collection: collection of the batch.
        batch: n >= 1 reports.
        periods: base periods; None: all reports are in one period with start None.
        bit_patterns: also count patterns of bits within reports, see ``Collection.count``.

    Yields:
        (start in milliseconds, counts) of each base period.
    """
    starts, index = split_by_period(batch.event_times, periods)
    cohorts = collection.without_groups(batch.cohorts)
    yield from zip(starts, _count_groups(collection, batch.payloads, cohorts, index, len(starts), bit_patterns))


def count_batches(
    catalog: CollectionCatalog,
    batches: Sequence[Reports],
    periods: BasePeriods | None,
    bit_patterns: bool = False,
    by: Sequence[str] | None = None,
) -> Iterator[tuple[tuple[bytes, int | None], CohortCounts]]:
    """``count_periods`` for batches of many collections, in as few passes as ``CollectionCatalog.passes`` allows.

    Args:
        catalog: catalog of the job.
        batches: batches of at least one report each; several may have reports of one collection.
        periods, bit_patterns: as for ``count_periods``.
        by: names of the dimensions by which to count, besides the total, in collections that have them all.

    Returns:
        ((fingerprint, start in milliseconds), counts), once for each collection, base period and ``ReportBatch.times``;
        then the same with ``owner_of_group`` instead of the fingerprint, for each group that has reports. Counts
        become objects as they are taken, so that those of many collections need not be held at once.
    """
    found = count_strata(catalog, batches, periods, bit_patterns, by)
    if not by:
        return found
    return itertools.chain.from_iterable(split_strata(catalog, key, counts, by) for key, counts in found)


def count_strata(
    catalog: CollectionCatalog,
    batches: Sequence[Reports],
    periods: BasePeriods | None,
    bit_patterns: bool = False,
    by: Sequence[str] | None = None,
) -> Iterator[tuple[tuple[bytes, int | None], CohortCounts]]:
    """``count_batches`` before ``split_strata``: sums of these counts are split once instead of every batch's.

    Returns:
        ((fingerprint or ``owner_of_group``, start in milliseconds), counts). Collections whose groups are wanted have
        a row for each group and cohort; if those tables could be too large, or patterns are counted, total and groups
        are counted separately.
    """
    by_times: dict[int, list[Reports]] = {}
    for batch in batches:
        by_times.setdefault(_times_of(batch), []).append(batch)
    return itertools.chain.from_iterable(
        _repeated(itertools.chain.from_iterable(_count_passes(catalog, alike, periods, bit_patterns, by)), times)
        for times, alike in by_times.items()
    )


def _times_of(batch: Reports) -> int:
    """Number of reports that each report of a batch stands for."""
    return (batch.reports if isinstance(batch, MixedReports) else batch).times


def _repeated(
    found: Iterable[tuple[tuple[bytes, int | None], CohortCounts]], times: int
) -> Iterable[tuple[tuple[bytes, int | None], CohortCounts]]:
    """The counts if each report stands for this number of reports."""
    return found if times == 1 else ((key, counts.times(times)) for key, counts in found)


def _count_passes(
    catalog: CollectionCatalog,
    batches: Sequence[Reports],
    periods: BasePeriods | None,
    bit_patterns: bool,
    by: Sequence[str] | None,
) -> Iterator[Iterable[tuple[tuple[bytes, int | None], CohortCounts]]]:
    """``count_strata``, pass by pass."""
    mixed, grouped = _without_grouped(catalog, batches, by) if by else (list(map(_as_mixed, batches)), {})
    passes: dict[int, list[_Numbered]] = {}
    for part in mixed:
        for one in _passes_of(catalog, part):
            passes.setdefault(int(catalog.passes[one.numbers[0]]), []).append(one)
    for parts in passes.values():
        first = parts[0].numbers[0]
        if any(len(part.numbers) > 1 or part.numbers[0] != first for part in parts):
            yield _count_together(catalog, parts, periods, bit_patterns)
            continue
        batch = _joined([batch for part in parts for batch in part.reports.apart()])
        yield _count_alone(catalog.numbered[first], batch, periods, bit_patterns)
    for own in grouped.values():
        yield _count_grouped(catalog, _joined(own), periods, bit_patterns, by)


def _count_alone(
    collection: Collection, batch: ReportBatch, periods: BasePeriods | None, bit_patterns: bool
) -> Iterator[tuple[tuple[bytes, int | None], CohortCounts]]:
    """``count_batches`` of one collection."""
    for start, counts in count_periods(collection, batch, periods, bit_patterns):
        yield (batch.fingerprint, start), counts


class _Numbered(NamedTuple):
    """Reports, and the numbers (R,) of their collections in the catalog."""

    numbers: np.ndarray
    reports: MixedReports


def _as_mixed(batch: Reports) -> MixedReports:
    return batch if isinstance(batch, MixedReports) else MixedReports.of(batch)


def _without_grouped(
    catalog: CollectionCatalog, batches: Sequence[Reports], by: Sequence[str]
) -> tuple[list[MixedReports], dict[bytes, list[ReportBatch]]]:
    """The reports of the collections without the wanted groups, and the batches of each collection with them."""
    others: list[MixedReports] = []
    grouped: dict[bytes, list[ReportBatch]] = {}
    for batch in itertools.chain.from_iterable(_as_mixed(batch).apart() for batch in batches):
        if _roll_up(catalog, batch.fingerprint, by) is None:
            others.append(MixedReports.of(batch))
        else:
            grouped.setdefault(batch.fingerprint, []).append(batch)
    return others, grouped


def _passes_of(catalog: CollectionCatalog, part: MixedReports) -> Iterator[_Numbered]:
    """The reports of each pass."""
    numbers = part.numbers_in(catalog)
    passes = catalog.passes[numbers]
    if (passes == passes[0]).all():
        yield _Numbered(numbers, part)
        return
    bounds = [0, *(np.flatnonzero(np.diff(passes)) + 1).tolist(), len(passes)]
    for (first, last), own in zip(itertools.pairwise(bounds), part.between(bounds)):
        yield _Numbered(numbers[first:last], own)


def split_strata(
    catalog: CollectionCatalog, key: tuple[bytes, int | None], counts: CohortCounts, by: Sequence[str] | None
) -> Iterator[tuple[tuple[bytes, int | None], CohortCounts]]:
    """Total and groups of counts that have a row for each group and cohort; other counts as they are."""
    owner, start = key
    roll_up = _roll_up(catalog, owner, by) if is_total(owner) else None
    collection = catalog[fingerprint_of(owner)]
    if roll_up is None or counts.shape[0] == collection.num_cohorts:
        yield key, counts
        return
    total, groups = split_groups(counts, collection.num_cohorts, roll_up.table())
    yield key, total
    for number, own in groups:
        yield (owner_of_group(owner, number), start), own


def _roll_up(catalog: CollectionCatalog, fingerprint: bytes, by: Sequence[str] | None) -> RollUp | None:
    """The wanted groups of a collection; None if it lacks one of the dimensions."""
    return roll_up_of(catalog[fingerprint].dimensions, by) if by and fingerprint in catalog.grouped else None


def _count_grouped(
    catalog: CollectionCatalog,
    batch: ReportBatch,
    periods: BasePeriods | None,
    bit_patterns: bool,
    by: Sequence[str] | None,
) -> Iterator[tuple[tuple[bytes, int | None], CohortCounts]]:
    """Counts of one collection whose groups are wanted, in one pass if memory allows."""
    collection = catalog[batch.fingerprint]
    starts, index = split_by_period(batch.event_times, periods)
    counters = len(starts) * collection.num_strata * collection.num_cells
    if bit_patterns or (counters > _MAX_CELLS and not collection.mechanism.one_place):
        for start, counts in count_periods(collection, batch, periods, bit_patterns):
            yield (batch.fingerprint, start), counts
        roll_up = _roll_up(catalog, batch.fingerprint, by)
        assert roll_up is not None, "count_strata"
        yield from _count_by(collection, batch, periods, bit_patterns, roll_up)
        return
    strata = collection.num_strata
    found = _count_groups(collection, batch.payloads, batch.cohorts, index, len(starts), bit_patterns, strata)
    for start, counts in zip(starts, found):
        yield (batch.fingerprint, start), counts


def _count_by(
    collection: Collection, batch: ReportBatch, periods: BasePeriods | None, bit_patterns: bool, roll_up: RollUp
) -> Iterator[tuple[tuple[bytes, int | None], CohortCounts]]:
    """Counts of each group and base period of a batch."""
    groups = roll_up.table()[collection.groups_of(batch.cohorts)]
    of, starts, index = split_by_owner_and_period(groups, batch.event_times, periods)
    cohorts = collection.without_groups(batch.cohorts)
    found = _count_groups(collection, batch.payloads, cohorts, index, len(starts), bit_patterns)
    for group, start, counts in zip(of, starts, found):
        yield (owner_of_group(batch.fingerprint, group), start), counts


def _count_together(
    catalog: CollectionCatalog, parts: list[_Numbered], periods: BasePeriods | None, bit_patterns: bool
) -> Iterator[tuple[tuple[bytes, int | None], CohortCounts]]:
    """``count_batches`` of one pass."""
    numbers = _column([part.numbers for part in parts])
    sizes = _column([part.reports.sizes for part in parts])
    cohorts, payloads, times = (
        _column([getattr(part.reports.reports, name) for part in parts])
        for name in ("cohorts", "payloads", "event_times")
    )
    if catalog.grouped and (catalog.strata[numbers] != catalog.shapes[numbers, 0]).any():
        cohorts = cohorts % np.repeat(catalog.shapes[numbers, 0], sizes)
    if len(parts) > 1:  # a collection may occur in several
        lowest = int(numbers.min())
        of, starts, index = split_by_owner_and_period(np.repeat(numbers - lowest, sizes), times, periods)
        owners = lowest + np.array(of)
    else:
        of, starts, index = split_runs_by_period(sizes, times, periods)
        owners = numbers[of]
    first = catalog.numbered[owners[0]]
    if isinstance(first.mechanism, IntegerReportMechanism) and first.mechanism.one_place:
        cells = first.mechanism.integers(payloads)
        found = count_cells(cohorts, cells, index, catalog.shapes[owners])
    else:
        found = _count_groups(first, payloads, cohorts, index, len(starts), bit_patterns)
    fingerprints = catalog.fingerprints
    return zip(zip([fingerprints[owner] for owner in owners.tolist()], starts), found)


def _column(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _joined(batches: list[ReportBatch]) -> ReportBatch:
    return batches[0] if len(batches) == 1 else ReportBatch.concatenate(batches)


def _count_groups(
    collection: Collection,
    payloads: np.ndarray,
    cohorts: np.ndarray,
    index: np.ndarray,
    num_groups: int,
    bit_patterns: bool,
    num_strata: int | None = None,
) -> Iterator[CohortCounts]:
    """Counts of groups of reports, for instance base periods; ``index`` (n,) is the group of each report.
    ``num_strata`` is the number of rows of each (None: of cohorts)."""
    num_cohorts = num_strata or collection.num_cohorts
    patterns = collection.mechanism.num_patterns * bit_patterns
    counters = num_groups * (num_cohorts * collection.num_cells + patterns)
    if counters <= _SMALL or (counters <= _MAX_CELLS and collection.are_many(len(cohorts), num_groups, num_cohorts)):
        rows = cohorts if num_groups == 1 else index * num_cohorts + cohorts
        yield from collection.count_groups(payloads, rows, num_groups, bit_patterns, num_cohorts)
        return
    order = np.argsort(index, kind="stable")
    sizes = np.bincount(index)
    many = collection.are_many(sizes, 1, num_cohorts)
    rows_of_each = np.where(many, num_cohorts, np.minimum(sizes, num_cohorts))
    ends, costs = np.cumsum(sizes), np.cumsum(rows_of_each * collection.num_cells + patterns)
    first = 0
    while first < num_groups:
        spent = costs[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(costs, spent + _MAX_CELLS, side="right")))
        here = order[ends[first] - sizes[first] : ends[last - 1]]
        rows = (index[here] - first) * num_cohorts + cohorts[here]
        count = collection.count_groups if many[first:last].all() else collection.count_few
        yield from count(payloads[here], rows, last - first, bit_patterns, num_cohorts)
        first = last
