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
from uldp_transforms.jobs.follow.state import FollowState, PendingWindow
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.messages.group_keys import fingerprint_of, is_total
from uldp_transforms.rows import row_types
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Sample
from uldp_transforms.rows.window_counts import counts_of_window
from uldp_transforms.rows.windowed_estimate import ON_TIME
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import rfc3339

_LATE = "LATE"
_FORMS = {
    "ledger": (("jsonl",), row_types.LEDGER_SCHEMA),
    "rejected": (("avro",), row_types.REJECTED_SCHEMA),
    "estimates": (("jsonl", "avro"), row_types.ESTIMATE_SCHEMA),
    "health": (("jsonl",), row_types.HEALTH_SCHEMA),
    "counts": (("avro",), row_types.COUNTS_SCHEMA),
}


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
        "pane_timing": _LATE if window.panes else ON_TIME,
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

    Args:
        spec: specification of the job.
        samples: of whole windows.
        with_counts: whether to make rows with the counts of collections.
    """
    rows: dict[str, list[Any]] = defaultdict(list)
    asked = dataclasses.replace(spec.asked(), anytime_scale=spec.min_reports)
    for sample, found in zip(samples, rows_of(samples, asked)):
        rows["estimates"].append(found.estimate)
        if not sample.owner.group:
            rows["health"].append(found.health)
        if with_counts and sample.owner.question is None:
            [own] = sample.counts.values()
            stored = counts_of_window(sample.owner, own, sample.place, complete=True)
            rows["counts"].append(stored._replace(simulated=sample.simulated))
    return rows


def put_rows(state: FollowState, run: str, rows: Mapping[str, Sequence[Any]]) -> None:
    """Put rows into the outbox, in the transaction that is open; a kind without rows has no file."""
    number = state.next_number()
    for kind, (forms, schema) in _FORMS.items():
        for form in forms if rows.get(kind) else ():
            state.put(f"{kind}-{run}-{number:010}.{form}", file_of(rows[kind], form, schema))


def write_outbox(state: FollowState, directory: str, reached: Callable[[str], None]) -> None:
    """Write all row files of the outbox to disk; a repetition writes the same bytes. Raises OSError."""
    names = state.outbox()
    for name in names:
        reached(f"before {name.partition('-')[0]}")
        with whole_file(os.path.join(directory, name)) as file:
            file.write(state.content(name))
        reached(f"after {name.partition('-')[0]}")
    if not names:
        return
    with state:
        for name in names:
            state.written(name)
        reached("before emptying")
    reached("after emptying")
