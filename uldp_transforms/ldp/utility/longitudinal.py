"""The same people, window after window: what that costs them, and how precise averages become.

With memos, the estimate of a window given all memos has the expectation of the estimate from the memos themselves: the
inverse for kappa = kappa_1 kappa_2 takes noise out of the second coin too. So, for people whose values stay,

    n Var(mean of T windows) = V(kappa_1) + (V(kappa) - V(kappa_1)) / T,    V(K) = n times the variance at rate K:

what the memos hide stays hidden, however long one averages. Fresh reports are the case kappa_1 = 1.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.utility.arguments import require_distribution, require_one_symbol

MAX_WINDOWS = 1 << 31

LIFETIMES = (1, 7, 30, 365)
"""Numbers of windows for which a loss is told."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Way:
    """One way to ask people again and again.

    Attributes:
        name: in words.
        losses: number of windows -> what all reports in so many windows in a row say about a symbol that stays.
        one_window: n times the variance of one window, in the mean over symbols; n people in all.
        mean_of_windows: the same for the mean of all windows.
    """

    name: str
    losses: dict[int, float]
    one_window: float
    mean_of_windows: float


def variance_of_mean(mechanism: Mechanism, frequencies: np.ndarray, num_windows: int) -> np.ndarray:
    """n times the variance of the mean of several windows' raw estimates, n people being asked in all of them.

    People are drawn from a population with these frequencies; their values stay, and their memos, if they have some.

    Args:
        mechanism: with ``epsilon_inf``, or without.
        frequencies: (..., K) summing to 1.
        num_windows: T.

    Returns:
        (..., K).

    Raises:
        SpecError: for arguments out of range.
    """
    require_one_symbol("variance_of_mean.mechanism", mechanism)
    shares = require_distribution("variance_of_mean.frequencies", frequencies, mechanism.num_symbols)
    require_int("variance_of_mean.num_windows", num_windows, 1, MAX_WINDOWS)
    lasting = shares * (1 - shares)
    if isinstance(mechanism, SetReportMechanism) and mechanism.epsilon_inf is not None:
        lasting = mechanism.memo.variances(shares)
    variances: np.ndarray = lasting + (mechanism.variances(shares) - lasting) / num_windows
    return variances


def ways(mechanism: SetReportMechanism, num_windows: int) -> list[Way]:
    """Fresh reports in every window, memos, and fresh reports in a few windows, beside each other.

    Errors are for equal shares of all symbols. A device that reports in one of w windows is one of n / w people there,
    and each window has others.

    Args:
        mechanism: with ``epsilon_inf``.
        num_windows: T; and w of the last way.

    Raises:
        SpecError: for arguments out of range.
    """
    fresh = dataclasses.replace(mechanism, epsilon_inf=None)
    shares = np.full(mechanism.num_symbols, 1 / mechanism.num_symbols)
    one, mean = (
        {item: float(variance_of_mean(item, shares, number).mean()) for item in (fresh, mechanism)}
        for number in (1, num_windows)
    )
    return [
        Way(
            name="fresh reports",
            losses={number: fresh.epsilon_after(number) for number in LIFETIMES},
            one_window=one[fresh],
            mean_of_windows=mean[fresh],
        ),
        Way(
            name=f"memos, epsilon_inf {mechanism.epsilon_inf:g}",
            losses={number: mechanism.epsilon_after(number) for number in LIFETIMES},
            one_window=one[mechanism],
            mean_of_windows=mean[mechanism],
        ),
        Way(
            name=f"one window of {num_windows}",
            losses={number: fresh.epsilon_after(math.ceil(number / num_windows)) for number in LIFETIMES},
            one_window=num_windows * one[fresh],
            mean_of_windows=one[fresh],
        ),
    ]
