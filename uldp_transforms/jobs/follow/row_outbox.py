"""The rows of a job that follows a source, as files of the same forms and names as those of a stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uldp_transforms.collector.row_bytes import file_of, joined_files
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs.follow.state import FollowState, PendingWindow
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.borrowing import BorrowedShares, borrowed_shares
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.messages.group_keys import fingerprint_of, pairs_of
from uldp_transforms.rows import row_types
from uldp_transforms.rows.pooled_rows import estimate_question
from uldp_transforms.rows.row_identity import fields_of_group
from uldp_transforms.rows.window_counts import counts_of_window
from uldp_transforms.rows.window_health import health_of_window
from uldp_transforms.rows.windowed_estimate import (
    ON_TIME,
    Solved,
    estimate_window,
    flat,
    reason_to_withhold,
    solve_windows,
)
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import rfc3339

_LATE = "LATE"
_FORMS = {
    "ledger": (("jsonl",), row_types.LEDGER_SCHEMA),
    "rejected": (("avro",), row_types.REJECTED_SCHEMA),
    "estimates": (("jsonl", "avro"), row_types.ESTIMATE_SCHEMA),
    "values": ((), row_types.VALUE_SCHEMA),
    "health": (("jsonl",), row_types.HEALTH_SCHEMA),
    "counts": (("avro",), row_types.COUNTS_SCHEMA),
}
_NOT_IN_PARQUET = ("counts",)


def solve_pending(spec: JobSpec, windows: Sequence[Mapping[bytes, CohortCounts]]) -> list[dict[bytes, Solved]]:
    """The estimates of collections and groups in windows, solved together; none for those whose numbers are withheld.

    Args:
        spec: specification of the job.
        windows: counts by key, of each window of a collection.
    """
    owners = [
        (place, owner, counts)
        for place, sums in enumerate(windows)
        for owner, counts in sums.items()
        if reason_to_withhold(counts.total, spec.min_reports, False) is None
    ]
    together = [(spec.catalog[fingerprint_of(owner)], counts) for _, owner, counts in owners]
    found: list[dict[bytes, Solved]] = [{} for _ in windows]
    for (place, owner, _), solved in zip(
        owners, solve_windows(together, ESTIMATORS[spec.estimator](), spec.candidates)
    ):
        found[place][owner] = solved
    return found


def rows_of_window(
    spec: JobSpec,
    window: PendingWindow,
    counts: Mapping[bytes, CohortCounts],
    solved: Mapping[bytes, Solved],
    *,
    simulated: bool,
) -> dict[str, tuple[Any, ...]]:
    """The rows of a window of a collection and its groups, or of a question, by kind, from counts by key: first the
    collection, then its groups.

    As a window can have later rows, their intervals hold simultaneously. ``solved`` is from ``solve_pending``.
    """
    place = {
        "window_start": rfc3339(window.start),
        "window_end": rfc3339(window.stop),
        "pane_index": window.panes,
        "pane_timing": _LATE if window.panes else ON_TIME,
        "run": spec.run,
    }
    for question in spec.questions:
        if question.fingerprint == window.fingerprint:
            withheld = reason_to_withhold(sum(each.total for each in counts.values()), spec.min_reports, False)
            return _rows_of_question(spec, question, place, counts, withheld, simulated)
    shown = _borrowed(spec, counts)
    rows = [
        _rows_of_key(spec, owner, place, own, simulated, shown.get(owner), solved.get(owner))
        for owner, own in counts.items()
    ]
    estimates, health, stored = zip(*rows)
    return {"estimates": estimates, "health": health[:1], "counts": stored}


def _borrowed(spec: JobSpec, counts: Mapping[bytes, CohortCounts]) -> dict[bytes, BorrowedShares]:
    """The shares that the groups of a window show, if they borrow."""
    if not spec.borrow:
        return {}
    (owner, total), *groups = counts.items()
    estimator = ESTIMATORS[spec.estimator]()
    return borrowed_shares(spec.catalog[fingerprint_of(owner)], total, dict(groups), estimator, spec.min_reports)


def _rows_of_key(
    spec: JobSpec,
    owner: bytes,
    place: dict[str, Any],
    counts: CohortCounts,
    simulated: bool,
    borrowed: BorrowedShares | None,
    solved: Solved | None,
) -> tuple[Any, Any, Any]:
    """Estimate, health and counts of a collection or of a group in one window."""
    collection = spec.catalog[fingerprint_of(owner)]
    withheld, group = reason_to_withhold(counts.total, spec.min_reports, False), pairs_of(owner, collection, spec.by)
    row = estimate_window(
        collection,
        counts,
        place,
        ESTIMATORS[spec.estimator](),
        spec.candidates,
        withheld,
        show=spec.show,
        anytime_scale=spec.min_reports,
        limits=spec.limits,
        quantiles=spec.quantiles,
        liars=spec.liars,
        borrowed=borrowed,
        solved=solved,
        group=group,
    )
    health = health_of_window(collection, counts, place, withheld, row.fit_p_value)
    stored = counts_of_window(collection, counts, place, complete=True)._replace(simulated=simulated)
    return row._replace(simulated=simulated), health, stored._replace(**fields_of_group(collection, group))


def _rows_of_question(
    spec: JobSpec,
    question: VersionedQuestion,
    place: dict[str, Any],
    counts: Mapping[bytes, CohortCounts],
    withheld: str | None,
    simulated: bool,
) -> dict[str, tuple[Any, ...]]:
    row, health = estimate_question(
        question,
        counts,
        place,
        ESTIMATORS[spec.estimator](),
        spec.candidates,
        withheld,
        show=spec.show,
        anytime_scale=spec.min_reports,
        limits=spec.limits,
        quantiles=spec.quantiles,
    )
    return {"estimates": (row._replace(simulated=simulated),), "health": (health,)}


def put_rows(state: FollowState, run: str, rows: Mapping[str, Sequence[Any]], *, with_parquet: bool = False) -> None:
    """Put rows into the outbox, in the transaction that is open; a kind without rows has no file.

    Args:
        state: its transaction is open.
        run: name of the run.
        rows: rows by kind; values follow from estimates.
        with_parquet: whether to write Parquet files too, also with one row per value.
    """
    number, found = state.next_number(), dict(rows)
    if with_parquet:
        found["values"] = [value for row in rows.get("estimates", ()) for value in flat(row)]
    for kind, (forms, schema) in _FORMS.items():
        own = (*forms, "parquet") if with_parquet and kind not in _NOT_IN_PARQUET else forms
        for form in own if found.get(kind) else ():
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
