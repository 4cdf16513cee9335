"""Smoothing of the windows of one owner: a collection or question, everybody or one group; the same in every program.

Each owner is a series of its own: it is smoothed from its own windows, and its alarms are about itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uldp_transforms.ldp.sentinels import Finding
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.rows.samples.sample import Owner
from uldp_transforms.rows.smoothed_rows import filter_row, smooth_rows
from uldp_transforms.rows.window_history import Neighbours, traits_of


def smooth_windows(
    owner: Owner, rows: Sequence[WindowedEstimate], alarm_every: int
) -> Iterator[tuple[WindowedEstimate, Finding | None]]:
    """The rows of all windows, smoothed in both directions, and their findings about changes.

    Args:
        owner: whose rows these are.
        rows: one row per window, in any order, which is kept.
        alarm_every: mean number of windows between two false alarms of the total; see ``windows_between_alarms``.
    """
    jump, memos = traits_of(owner.versions)
    yield from smooth_rows(rows, jump, windows_between_alarms(owner, alarm_every), memos)


def filter_window(
    owner: Owner, held: bytes | None, row: WindowedEstimate, alarm_every: int
) -> tuple[bytes | None, WindowedEstimate, Finding | None]:
    """The next window of a stream, smoothed with those before it, and its finding about changes.

    Args:
        owner: whose row this is.
        held: the windows before it, as this function returned them; None: there are none.
        row: of another window or pane.
        alarm_every: as for ``smooth_windows``.

    Returns:
        the windows to hold from now on (None if they stay as they are), the row, and the finding.
    """
    before = Neighbours.from_bytes(held) if held else Neighbours.of([], *traits_of(owner.versions))
    later, smoothed, change = filter_row(before, row, windows_between_alarms(owner, alarm_every))
    return None if later is before else later.to_bytes(), smoothed, change


def windows_between_alarms(owner: Owner, alarm_every: int) -> int:
    """Mean number of windows between two false alarms of an owner.

    All groups by the same dimensions together raise as many false alarms as the total, on average, with or without
    reports. So the total has the same alarms whether or not there are groups.
    """
    return alarm_every * owner.num_groups
