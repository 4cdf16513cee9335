"""The numbers of earlier windows from which later ones are smoothed, in the database of the counts.

Each collection and question, and each of their groups, has the summary that a stream keeps of it (``Neighbours``): the
numbers of its last windows, at most 64, and what older ones leave. It changes in the transaction that puts the rows of
a window into the outbox. Its key is that of the counts, which for everybody is the fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uldp_transforms.rows.row_types import WindowedEstimate, WindowHealth
from uldp_transforms.rows.samples.sample import Owner
from uldp_transforms.rows.samples.smoothed_owners import filter_window
from uldp_transforms.rows.window_health import with_change
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms_follow.state import FollowState

_TABLE = "CREATE TABLE IF NOT EXISTS smoothing (fingerprint BLOB PRIMARY KEY, windows BLOB NOT NULL) WITHOUT ROWID"


class SmoothingState:
    """The earlier windows of a directory.

    Args:
        state: database of the directory.
        spec: specification of the job, with ``smooth``.
    """

    def __init__(self, state: FollowState, spec: JobSpec):
        self._database, self._alarm_every = state.database, spec.alarm_every
        self._database.execute(_TABLE)

    def smooth(self, owners: Iterable[Owner], rows: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Smooth the rows of windows in their order, in the open transaction; a row of a known window replaces it.

        Args:
            owners: whose rows these are.
            rows: rows by kind, with the estimate and health of each owner in the same order.
        """
        pairs = zip(owners, rows["estimates"], rows["health"], strict=True)
        found = [self._smooth(owner, row, health) for owner, row, health in pairs]
        return {**rows, "estimates": [row for row, _ in found], "health": [health for _, health in found]}

    def _smooth(
        self, owner: Owner, row: WindowedEstimate, health: WindowHealth
    ) -> tuple[WindowedEstimate, WindowHealth]:
        found = self._database.execute("SELECT windows FROM smoothing WHERE fingerprint = ?", (owner.key,)).fetchone()
        later, row, change = filter_window(owner, found and found[0], row, self._alarm_every)
        if later is not None:
            self._database.execute("INSERT OR REPLACE INTO smoothing VALUES (?, ?)", (owner.key, later))
        return row, health if change is None else with_change(health, change)
