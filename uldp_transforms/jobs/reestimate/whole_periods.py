"""The whole period of stored counts: all windows of a collection, question or group as one sample."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from uldp_transforms import JobSpec
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.jobs.reestimate.added_windows import Overlap, sums_of
from uldp_transforms.jobs.reestimate.stored_counts import files_of_counts
from uldp_transforms.jobs.reestimate.windows_in_turn import windows_in_turn
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.false_reports import need_of_liars
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.row_types import DiscoveredValue, WindowedEstimate
from uldp_transforms.rows.samples.rows_of_samples import rows_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Period:
    """The windows of one collection, or of one of its groups, that are added up.

    Attributes:
        row: the estimate; its window is the time from the first to the last of them.
        number: how many.
        partial: how many are left out.
        discovered: frequent unlisted values in all of them, if they are searched.
    """

    row: WindowedEstimate
    number: int
    partial: int
    discovered: Sequence[DiscoveredValue] = ()


def periods(spec: JobSpec, jobs: Iterable[tuple[Sequence[str], Sequence[RunRecord]]]) -> Iterator[Period]:
    """The whole periods of collections, then of questions, and of their groups.

    Args:
        spec: what to estimate of each.
        jobs: files of counts of each job, and the records of its runs.

    Raises:
        SpecError: if windows overlap, or a file has other content.
    """
    known = {collection.fingerprint.hex(): collection for collection in spec.collections}
    sums = list(sums_of(spec, windows_in_turn(jobs, known, spec.by)))
    asked = dataclasses.replace(spec.asked(), anytime_scale=None)
    for one, found in zip(sums, rows_of([one.sample for one in sums], asked)):
        yield Period(row=found.estimate, number=one.number, partial=one.partial, discovered=found.discovered)


def rows_of_counts(
    directory: str, records: Sequence[RunRecord], collections: Iterable[Collection], settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The whole period of each collection whose values are known, as rows of ``FILE``; none if windows overlap.

    Args:
        directory: output directory with stored counts.
        records: records of its runs.
        collections: the collections; those with an open alphabet are left out, because they need candidates, and with
            a share of liars those whose estimates it does not bound.
        settings: values of ``JobSpec``.

    Raises:
        SpecError: if a file has other content.
    """
    closed = [collection for collection in collections if collection.alphabet.known_values is not None]
    if settings.get("liars") is not None:
        closed = [collection for collection in closed if need_of_liars(collection) is None]
    if not closed:
        return []
    spec = JobSpec.of(collections=closed, **settings)
    jobs = [(files_of_counts(directory.rstrip("/") + "/"), records)]
    try:
        return [json.loads(to_json(period.row)) for period in periods(spec, jobs)]
    except Overlap:
        return []
