"""The rows of a job that follows a source, as files of the same forms and names as those of a stream."""

from __future__ import annotations

import dataclasses
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uldp_transforms.collector.owners import Owners
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.messages.group_keys import fingerprint_of, is_total
from uldp_transforms.rows import row_types
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Sample, counts_of_window
from uldp_transforms.rows.windowed_estimate import flat
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import rfc3339
from uldp_transforms_follow.joined_files import joined_files
from uldp_transforms_follow.state import FollowState, PendingWindow

_SCHEMAS = {
    "ledger": row_types.LEDGER_SCHEMA,
    "rejected": row_types.REJECTED_SCHEMA,
    "estimates": row_types.ESTIMATE_SCHEMA,
    "values": row_types.VALUE_SCHEMA,
    "health": row_types.HEALTH_SCHEMA,
    "discovered": row_types.DISCOVERED_SCHEMA,
    "counts": row_types.COUNTS_SCHEMA,
}
"""Kinds of rows, in the order in which they are written."""


def samples_of(
    spec: JobSpec, owners: Owners, window: PendingWindow, counts: Mapping[bytes, CohortCounts], *, simulated: bool
) -> list[Sample]:
    """The samples of a window of a collection or question: first everybody, then its groups.

    Args:
        spec: specification of the job.
        owners: of the job.
        window: the window.
        counts: by key; of a question, those of its versions.
        simulated: whether some reports are.
    """
    place = {
        "window_start": rfc3339(window.start),
        "window_end": rfc3339(window.stop),
        "pane_index": window.panes,
        "pane_timing": window.timing,
        "run": spec.run,
    }
    sums: dict[bytes, dict[bytes, CohortCounts]] = {}
    for key, own in counts.items():
        owner = key if fingerprint_of(key) == window.fingerprint else owners.in_question(key)
        assert owner is not None, "a window has the counts of its versions"
        sums.setdefault(owner, {})[fingerprint_of(key)] = own
    keys = sorted(sums, key=lambda owner: (not is_total(owner), owner))
    return [Sample(owner=owners.of(key), place=place, counts=sums[key], simulated=simulated) for key in keys]


def rows_of_windows(spec: JobSpec, samples: Sequence[Sample], *, with_counts: bool) -> dict[str, list[Any]]:
    """The rows of samples by kind; as windows can have later rows, their intervals hold simultaneously.

    Groups have a row of health if they are smoothed.

    Args:
        spec: specification of the job.
        samples: of whole windows.
        with_counts: whether to make rows with the counts of collections.
    """
    rows: dict[str, list[Any]] = defaultdict(list)
    asked = dataclasses.replace(spec.asked(), anytime_scale=spec.min_reports)
    for sample, found in zip(samples, rows_of(samples, asked)):
        rows["estimates"].append(found.estimate)
        if spec.discover:
            rows["discovered"] += found.discovered
        if spec.smooth or not sample.owner.group:
            rows["health"].append(found.health)
        if with_counts and sample.owner.question is None:
            [own] = sample.counts.values()
            stored = counts_of_window(sample.owner, own, sample.place, complete=True)
            rows["counts"].append(stored._replace(simulated=sample.simulated))
    return rows


def put_rows(state: FollowState, run: str, rows: Mapping[str, Sequence[Any]], forms: RowForms) -> None:
    """Put rows into the outbox, in the transaction that is open; a kind without rows has no file.

    Args:
        state: its transaction is open.
        run: name of the run.
        rows: rows by kind; values follow from estimates.
        forms: in which they are written.
    """
    number, found = state.next_number(), dict(rows)
    if forms.of_kind("values"):
        found["values"] = [value for row in rows.get("estimates", ()) for value in flat(row)]
    for kind, schema in _SCHEMAS.items():
        for form in forms.of_kind(kind) if found.get(kind) else ():
            state.put(f"{kind}-{run}-{number:010}.{form}", file_of(found[kind], form, schema))


def write_outbox(state: FollowState, directory: str, reached: Callable[[str], None]) -> None:
    """Write all rows of the outbox to disk, in one file for each kind and form; raises OSError.

    The first transaction names a file. If this is repeated before the outbox is empty, the file of that name is written
    again, with the same rows and with those that were put in since.
    """
    names = state.outbox()
    together: dict[tuple[str, str], list[str]] = {}
    for name in names:
        together.setdefault((name.partition("-")[0], name.rpartition(".")[2]), []).append(name)
    for (kind, form), own in together.items():
        reached(f"before {kind}")
        with whole_file(os.path.join(directory, own[0])) as file:
            file.write(joined_files([state.content(name) for name in own], form))
        reached(f"after {kind}")
    if not names:
        return
    with state:
        for name in names:
            state.written(name)
        reached("before emptying")
    reached("after emptying")
