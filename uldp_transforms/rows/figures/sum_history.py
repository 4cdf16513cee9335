"""Sums over chosen values over windows: series that are smoothed like shares.

Each series is a sum as a share of the way from the smallest number that it can be to the largest one. It is unbiased
with a known variance, as the share of one value is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.confidence import confidence_or_default
from uldp_transforms.ldp.smoothing import Alarms, Series, Shares, change_of
from uldp_transforms.ldp.solvers.intervals import cut, reaching
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_types import SumOfShares, WindowedEstimate
from uldp_transforms.rows.window_history import PEOPLE_VARIANCE, Neighbours

SUM = "sum "
"""Begin of the names of these series."""

_COLUMNS = ("raw_frequency", "standard_error", PEOPLE_VARIANCE, "common_variance")
_NAMED = 5  # maximum number of sums in a sentence


def has_sums(row: WindowedEstimate) -> bool:
    """Whether a row has sums that can be smoothed."""
    return any(map(_varies, row.sums))


def rows_of_sums(row: WindowedEstimate, names: Sequence[str] = ()) -> list[WindowedEstimate]:
    """The row with its sums, as shares of the way between their ends, in place of its entries.

    Args:
        row: with sums.
        names: of all series; they do not matter, because all are measured from the smaller end.
    """
    sums = [one for one in row.sums if _varies(one)]
    spans = np.array([one.most - one.least for one in sums])
    cells = np.array(
        [
            [(one.value - one.least) for one in sums] / spans,
            [one.standard_error for one in sums] / spans,
            np.array([one.people_variance for one in sums], dtype=float) / spans**2,
            np.array([one.common_variance for one in sums], dtype=float) / spans**2,
        ]
    )
    return [row._replace(estimates=EntryColumns(tuple(SUM + one.name for one in sums), _COLUMNS, cells))]


def _varies(one: SumOfShares) -> bool:
    """Whether windows can differ in a sum; that over all values is the same in all."""
    return one.most > one.least


def shown_sums(
    rows: Sequence[tuple[int, WindowedEstimate]], windows: Neighbours, shares: Shares
) -> Iterator[WindowedEstimate]:
    """Rows with smoothed sums. The rows come with their positions in ``shares``."""
    places = {name.removeprefix(SUM): at for at, name in enumerate(windows.values)}
    means = np.clip(shares.means, 0, 1)
    low, high = reaching(*cut(shares.low, shares.high, shares.means), means)
    ends = np.stack([means, low, high], axis=-1)
    for t, row in rows:
        yield row._replace(
            sums=tuple(_with_ends(one, ends[t, places[one.name]]) if one.name in places else one for one in row.sums)
        )


def _with_ends(one: SumOfShares, ends: np.ndarray) -> SumOfShares:
    value, low, high = (one.least + (one.most - one.least) * ends).tolist()
    return one._replace(smoothed_value=value, smoothed_low=low, smoothed_high=high)


def sentence_of_moved_sums(row: WindowedEstimate, windows: Neighbours, series: Series, alarms: Alarms, t: int) -> str:
    """Which sums moved, and by how much; intervals hold simultaneously for all of them.

    Args:
        row: of the window at position t, in which something moved.
        windows: of the sums.
        series, alarms: of all windows.
    """
    moved = np.flatnonzero(alarms.moved[t])
    change = change_of(series, alarms, t, moved)
    level = (1 - confidence_or_default(row.confidence)) / 2 / len(windows.values) / change.looks
    half = -special.ndtri(level) * change.error
    spans = np.stack([change.size, change.size - half, change.size + half], axis=1)
    by_name = {one.name: one for one in row.sums}
    order = np.argsort(-np.abs(change.size), kind="stable").tolist()
    told = []
    for place in order[:_NAMED]:
        one, since = by_name[windows.values[moved[place]].removeprefix(SUM)], int(change.windows[place])
        size, low, high = ((100 if one.is_share else one.most - one.least) * spans[place]).tolist()
        digits, unit = ("+.2f", " percentage points") if one.is_share else ("+.4g", "")
        after = f" over {since} windows" if since > 1 else ""
        told.append(f"{describe(one.name)} {size:{digits}} ({low:{digits}} to {high:{digits}}){unit}{after}")
    more = [f"and {len(moved) - _NAMED} more"] if len(moved) > _NAMED else []
    return f"Sums moved: {', '.join([*told, *more])}."
