"""Repeated reports of the same people: their privacy loss, and the precision of averages over windows.

With memos, the conditional expectation of a window's estimate given all memos is the estimate from the memos
themselves: the inverse for kappa = kappa_1 kappa_2 also removes the noise of the second coin. So, for people with
constant values,

    n Var(mean of T windows) = V(kappa_1) + (V(kappa) - V(kappa_1)) / T,    V(K) = n times the variance at rate K:

averaging over windows never removes the noise of the memos. Fresh reports are the case kappa_1 = 1.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms_planner.utility.arguments import require_distribution, require_one_symbol

MAX_WINDOWS = 1 << 31

LIFETIMES = (1, 7, 30, 365)
"""Numbers of windows for which the loss is reported."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Way:
    """One way to collect repeated reports.

    Attributes:
        name: description in words.
        losses: number of windows -> privacy loss about a constant symbol from all reports in that number of windows.
        one_window: n times the variance of one window, averaged over symbols; n is the total number of people.
        mean_of_windows: n times the variance of the mean of all windows, averaged over symbols.
    """

    name: str
    losses: dict[int, float]
    one_window: float
    mean_of_windows: float


def variance_of_mean(mechanism: Mechanism, frequencies: np.ndarray, num_windows: int) -> np.ndarray:
    """n times the variance of the mean of several windows' raw estimates if the same n people report in all of them.

    People are sampled from a population with these frequencies; their values are constant, and so are memos, if any.

    Args:
        mechanism: mechanism with or without ``epsilon_inf``.
        frequencies: (..., K) summing to 1.
        num_windows: T.

    Returns:
        (..., K).

    Raises:
        SpecError: if an argument is out of range.
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
    """Compare fresh reports in every window, memos, and fresh reports in a few windows.

    Errors are for equal frequencies of all symbols. If each device reports in one of w windows, n / w people report in
    each window, different ones in each.

    Args:
        mechanism: mechanism with ``epsilon_inf``.
        num_windows: T; also w of the last way.

    Raises:
        SpecError: if an argument is out of range.
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


def fresh_ways(mechanism: Mechanism, num_windows: int) -> list[Way]:
    """Fresh reports in every window, or in one of w windows as in ``ways``; once for each guarantee of a mechanism.

    Args:
        mechanism: mechanism without ``epsilon_inf``.
        num_windows: T; also w of the last ways.

    Raises:
        SpecError: if an argument is out of range.
    """
    shares = np.full(mechanism.num_symbols, 1 / mechanism.num_symbols)
    one, mean = (variance_of_mean(mechanism, shares, number) for number in (1, num_windows))
    guarantees, found = mechanism.guarantees, []
    for fraction, name in ((1, "fresh reports"), (num_windows, f"one window of {num_windows}")):
        after = {number: mechanism.epsilons_after(math.ceil(number / fraction)) for number in LIFETIMES}
        for place, guarantee in enumerate(guarantees):
            symbols = list(guarantee.symbols) if len(guarantees) > 1 else slice(None)
            found.append(
                Way(
                    name=f"{name}, {guarantee.of}" if len(guarantees) > 1 else name,
                    losses={number: losses[place] for number, losses in after.items()},
                    one_window=fraction * float(one[symbols].mean()),
                    mean_of_windows=float((mean if fraction == 1 else one)[symbols].mean()),
                )
            )
    return found
