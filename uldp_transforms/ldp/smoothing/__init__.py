"""Smoothing over windows: a Kalman filter forwards, and a smoother backwards.

The model of T consecutive windows and S values, each value by itself:

    y_t = f_t + noise of variance R_t        estimate from the reports of window t
    f_t = s_t + g_d(t) + N(0, W_t)           shares of the people who report in that window
    s_t = s_(t-1) + N(0, Q)                  drifting share

The mechanism gives R_t. W_t = w p + p (1 - p) / n_t is the variation between people and between days, Q = q p, with p
the mean share, and g is the effect of the weekday, if there is one. Displayed shares and alarms extend this model:

- Shares (``shares``) have a drift and a nugget for each value (``scales``), a season (``season``), and breaks
(``breaks``); they use all windows.
- Alarms (``alarm``, ``variation``) use the windows before each one only.

The summary that a stream keeps of forgotten windows has one q and one w for all values (``follow``). docs/smoothing.md
and docs/decisions/0068-smoothing-and-alarms.md derive all three. Arrays replace Python loops over values.
"""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.smoothing.alarm import LEAST_HISTORY as LEAST_HISTORY
from uldp_transforms.ldp.smoothing.alarm import SUDDEN as SUDDEN
from uldp_transforms.ldp.smoothing.alarm import Alarms as Alarms
from uldp_transforms.ldp.smoothing.alarm import Change as Change
from uldp_transforms.ldp.smoothing.alarm import Past as Past
from uldp_transforms.ldp.smoothing.alarm import change_of as change_of
from uldp_transforms.ldp.smoothing.alarm import judge as judge
from uldp_transforms.ldp.smoothing.course import Course as Course
from uldp_transforms.ldp.smoothing.course import course_of as course_of
from uldp_transforms.ldp.smoothing.course import own_shares as own_shares
from uldp_transforms.ldp.smoothing.drift_fit import Track as Track
from uldp_transforms.ldp.smoothing.drift_fit import fit as fit
from uldp_transforms.ldp.smoothing.drift_fit import log_likelihood as log_likelihood
from uldp_transforms.ldp.smoothing.drift_fit import track as track
from uldp_transforms.ldp.smoothing.scales import Scales as Scales
from uldp_transforms.ldp.smoothing.scales import scales_of as scales_of
from uldp_transforms.ldp.smoothing.season import Season as Season
from uldp_transforms.ldp.smoothing.season import season_of as season_of
from uldp_transforms.ldp.smoothing.series import LEAST_SHARE as LEAST_SHARE
from uldp_transforms.ldp.smoothing.series import Law as Law
from uldp_transforms.ldp.smoothing.series import Series as Series
from uldp_transforms.ldp.smoothing.smoothed_shares import Shares as Shares
from uldp_transforms.ldp.smoothing.smoothed_shares import filtered as filtered
from uldp_transforms.ldp.smoothing.smoothed_shares import smoothed as smoothed


def follow(series: Series, moved: np.ndarray | None = None) -> tuple[Law, float, Track]:
    """The law of a series, its nugget w and its track, with drift and nugget fitted given the changes (T, S)
    ``moved``."""
    law = series.law()
    moved = moved if moved is not None and moved.any() else None
    drift, nugget = fit(series, law, moved)
    return law, nugget, track(series, law, drift, nugget, moved)
