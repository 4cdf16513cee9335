"""The numbers of earlier windows from which later ones are smoothed, in the database of the counts.

Each collection and question has the summary that a stream keeps of it (``Neighbours``): the numbers of its last
windows, at most 64, and what older ones leave. It changes in the transaction that puts the rows of a window into the
outbox.
"""

from __future__ import annotations

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

    def smooth(self, fingerprint: bytes, rows: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        """Smooth the rows of the next window, in the transaction that is open; a row of a known window replaces it.

        Args:
            fingerprint: of a collection or question.
            rows: rows by kind, with one estimate and its health.
        """
        [row], [health] = rows["estimates"], rows["health"]
        row, health = self._smooth(fingerprint, row, health)
        return rows | {"estimates": (row,), "health": (health,)}

    def _smooth(
        self, fingerprint: bytes, row: WindowedEstimate, health: WindowHealth
    ) -> tuple[WindowedEstimate, WindowHealth]:
        held = self._database.execute("SELECT windows FROM smoothing WHERE fingerprint = ?", (fingerprint,)).fetchone()
        if held is None:
            windows = Neighbours.of([], *traits_of(self._spec.models_of(fingerprint)))
        else:
            windows = Neighbours.from_bytes(held[0])
        later, row, change = filter_row(windows, row, self._spec.alarm_every)
        if later is not windows:
            self._database.execute("INSERT OR REPLACE INTO smoothing VALUES (?, ?)", (fingerprint, later.to_bytes()))
        return row, health if change is None else with_change(health, change)
