"""Windows that contradict their neighbours: their smoothed intervals are extended to their own (docs/smoothing.md).

A band through such intervals would have a spike on a single day, as if the days beside it were uncertain too. A chart
draws these intervals as lines of their own, beside a band that has the width of the neighbours' intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from uldp_transforms.rows.figures.figure import Trend

_BESIDE = 4  # windows on each side with which a window is compared
_LONGER = 1.5  # times their usual length from the smoothed number to an end


class Smooth(NamedTuple):
    """What a chart shows of smoothed numbers: (W,) each, NaN where nothing is drawn.

    Attributes:
        low, high: ends of the band.
        alone_low, alone_high: smoothed intervals of the windows that stand out.
    """

    low: np.ndarray
    high: np.ndarray
    alone_low: np.ndarray
    alone_high: np.ndarray


def smooth_of(trend: Trend) -> Smooth:
    """The band of a smoothed trend, and the intervals of windows that stand out.

    A window stands out if its smoothed interval extends 1.5 times as far to one side as the median of the nine windows
    around it. The band never exceeds an interval; it ends where a window's own interval excludes the smoothed one.
    """
    is_hidden = trend.contradicted | np.isnan(trend.smoothed_low) | np.isnan(trend.smoothed_high)
    low, high = (np.where(is_hidden, np.nan, end) for end in (trend.smoothed_low, trend.smoothed_high))
    below, above = _usual(trend.smoothed - low), _usual(high - trend.smoothed)
    stands_out = (trend.smoothed - low > _LONGER * below) | (high - trend.smoothed > _LONGER * above)
    return Smooth(
        low=np.where(stands_out, np.maximum(low, trend.smoothed - below), low),
        high=np.where(stands_out, np.minimum(high, trend.smoothed + above), high),
        alone_low=np.where(stands_out, low, np.nan),
        alone_high=np.where(stands_out, high, np.nan),
    )


def smooth_columns(trend: Trend) -> dict[str, np.ndarray]:
    """What a chart draws of smoothed numbers, by the names of its columns; ``alone`` are those of windows that stand
    out, without smoothing."""
    smooth = smooth_of(trend)
    return {
        "smoothed": np.where(trend.contradicted, np.nan, trend.smoothed),
        "smoothed_low": smooth.low,
        "smoothed_high": smooth.high,
        "alone_low": smooth.alone_low,
        "alone_high": smooth.alone_high,
        "alone": np.where(np.isnan(smooth.alone_low), np.nan, trend.value),
    }


def _usual(lengths: np.ndarray) -> np.ndarray:
    """(W,) running medians of (W,) lengths; NaN where there is none."""
    padded = np.pad(lengths, _BESIDE, constant_values=np.nan)
    around = np.sort(np.lib.stride_tricks.sliding_window_view(padded, 2 * _BESIDE + 1), axis=1)
    known = np.isfinite(around).sum(axis=1)
    middle = np.maximum(known - 1, 0) // 2
    return np.where(known > 0, around[np.arange(len(lengths)), middle], np.nan)
