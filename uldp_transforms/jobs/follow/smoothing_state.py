"""The numbers of earlier windows from which later ones are smoothed, in the database of the counts.

Each collection and question has the summary that a stream keeps of it (``Neighbours``): the numbers of its last
windows, at most 64, and what older ones leave. It changes in the transaction that puts the rows of a window into the
outbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.jobs.follow.state import FollowState
from uldp_transforms.rows.row_types import WindowedEstimate, WindowHealth
from uldp_transforms.rows.smoothed_rows import filter_row
from uldp_transforms.rows.window_health import with_change
from uldp_transforms.rows.window_history import Neighbours, traits_of
from uldp_transforms.spec.job_spec import JobSpec

_TABLE = "CREATE TABLE IF NOT EXISTS smoothing (fingerprint BLOB PRIMARY KEY, windows BLOB NOT NULL) WITHOUT ROWID"


class SmoothingState:
    """The earlier windows of a directory.

    Args:
        state: database of the directory.
        spec: specification of the job, with ``smooth``.
    """

    def __init__(self, state: FollowState, spec: JobSpec):
        self._database, self._spec = state.database, spec
        self._database.execute(_TABLE)

    def smooth(self, rows: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Smooth the rows of windows in their order, in the open transaction; a row of a known window replaces it.

        Args:
            rows: rows by kind, with the health of each estimate in the same order.
        """
        found = [self._smooth(*pair) for pair in zip(rows["estimates"], rows["health"], strict=True)]
        return {**rows, "estimates": [row for row, _ in found], "health": [health for _, health in found]}

    def _smooth(self, row: WindowedEstimate, health: WindowHealth) -> tuple[WindowedEstimate, WindowHealth]:
        fingerprint = bytes.fromhex(row.fingerprint)
        held = self._database.execute("SELECT windows FROM smoothing WHERE fingerprint = ?", (fingerprint,)).fetchone()
        if held is None:
            windows = Neighbours.of([], *traits_of(self._spec.models_of(fingerprint)))
        else:
            windows = Neighbours.from_bytes(held[0])
        later, row, change = filter_row(windows, row, self._spec.alarm_every)
        if later is not windows:
            self._database.execute("INSERT OR REPLACE INTO smoothing VALUES (?, ?)", (fingerprint, later.to_bytes()))
        return row, health if change is None else with_change(health, change)
