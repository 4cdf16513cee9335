"""The collections of the runs of a directory, and their time zone."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.figures.window_names import clock


def collections_of(records: Iterable[RunRecord], others: Iterable[Collection]) -> dict[str, Collection]:
    """Fingerprint -> collection, for those of runs and others, which say what equal ones are called; unreadable ones of
    runs, of newer versions, are omitted."""
    found = {}
    for record in records:
        for given in record.specification.get("collections") or ():
            try:
                collection = Collection.from_json(given)
            except SpecError:  # collection of a newer version
                continue
            found[collection.fingerprint.hex()] = collection
    return found | {collection.fingerprint.hex(): collection for collection in others}


def zone_of(records: Sequence[RunRecord]) -> datetime.tzinfo:
    """The time zone of the latest run, in which texts name windows."""
    return clock(records[-1].specification.get("timezone") if records else None)
