"""The whole period of a directory: rows of ``uldp reestimate --window all``, or the same sums of stored counts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.files import stores
from uldp_transforms.jobs.records.run_records import RunRecord, files_of
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.renamed_fields import former_names, with_new_names
from uldp_transforms.schemas import load

FILE = "totals.jsonl"
_SETTINGS = ("estimator", "min_reports", "show", "limits", "quantiles", "sums", "liars", "confidence")


def totals_of(path: str, records: Sequence[RunRecord], known: Mapping[str, Collection]) -> dict[str, Mapping[str, Any]]:
    """Fingerprint -> row of the whole period, for the collections that have one.

    A file ``totals.jsonl`` of ``uldp reestimate --window all`` comes first. Without it, stored counts are added up with
    the settings of the latest run; of collections that need a list of candidates, which only the file can have used,
    there is no row.

    Args:
        path: output directory of a job.
        records: records of its runs.
        known: collections of the runs, by fingerprint.

    Raises:
        SpecError: if a file has other content.
        OSError: if a file cannot be read.
    """
    if written := written_totals(path):
        return {row["fingerprint"]: row for row in written if not row.get("group")}
    if not records or not known or not files_of(path, "counts*.avro"):
        return {}
    from uldp_transforms.jobs.reestimate.whole_periods import rows_of_counts  # noqa: PLC0415  # imports the specification of jobs

    of_run = records[-1].specification
    settings = {name: of_run[name] for name in _SETTINGS if of_run.get(name) is not None}
    return {row["fingerprint"]: row for row in rows_of_counts(path, records, known.values(), settings)}


def group_totals_of(path: str) -> dict[str, list[Mapping[str, Any]]]:
    """Fingerprint -> rows of the groups of the whole period, which only the file can have. Raises as ``totals_of``."""
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in written_totals(path):
        if row.get("group"):
            found[row["fingerprint"]].append(row)
    return dict(found)


def written_totals(path: str) -> list[Mapping[str, Any]]:
    """The rows of ``totals.jsonl`` in a directory, also of groups; none without the file. Raises as ``totals_of``."""
    return [row for file in files_of(path, FILE) for row in _rows(file)]


def _rows(path: str) -> list[Mapping[str, Any]]:
    with stores.opened(path) as file:
        try:
            former = former_names(load("windowed_estimate.avsc"))
            rows = [with_new_names({**json.loads(line)}, former) for line in file]
            for row in rows:
                for name in ("fingerprint", "window_start", "window_end", "status", "num_reports", "estimates"):
                    row[name]
        except (ValueError, TypeError, KeyError):
            of = "uldp reestimate --window all"
            raise SpecError(f"{path} must contain rows of {of} (the content is not shown)") from None
    return rows
