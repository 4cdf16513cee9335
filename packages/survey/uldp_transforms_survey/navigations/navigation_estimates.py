"""Estimates of navigations: of a whole table, of each rate in it, and of its windows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from uldp_transforms.windows import rfc3339
from uldp_transforms_survey.clear_numbers import (
    MOST_OUTSIDE,
    UNKNOWN,
    Bounded,
    agreement_of,
    mean_of,
    outside,
    quantile_of,
    share_of,
    two_answer_weights,
)
from uldp_transforms_survey.navigations.navigations_table import Navigations

MOST_RATES = 10
"""Maximum number of rates with estimates of their own; rarer rates are estimated together."""


def estimates(found: Navigations, q: float) -> dict[str, Any]:
    """The row of all navigations, with the rows of each rate, and the p-value of the agreement of their shares.

    Each row has the share of "high", and of each class the mean and a quantile of the loading time; null: the noise
    leaves a number or an end of an interval open. If the answers do not fit their rates, ``misfit`` says how far, and
    all numbers that follow from the answers are null.
    """
    agreement = agreement_of(found.high, found.rates)
    return _estimates(found, q) | {
        "rates": list(_estimates_of_rates(found, q)),
        "agreement": None if agreement is None else agreement.p_value,
    }


def _estimates(found: Navigations, q: float) -> dict[str, Any]:
    share, error = share_of(found.high, found.rates)
    distance = outside(share.value, error)
    fits = abs(distance) <= MOST_OUTSIDE
    weights = {
        "high": two_answer_weights(found.high, found.rates),
        "low": two_answer_weights(~found.high, found.rates),
        "all": np.ones(len(found.high)),
    }
    shares = {
        "frequency": min(max(share.value, 0.0), 1.0),
        "raw_frequency": share.value,
        "standard_error": error,
        "ci_low": share.low,
        "ci_high": share.high,
    }
    return {
        "num_reports": len(found.high),
        "value": "high",
        **(shares if fits else dict.fromkeys(shares)),
        "misfit": None if fits else _misfit(distance),
        "durations": [
            {
                "class": name,
                "mean": _plain(mean_of(own, found.durations) if known else UNKNOWN),
                "quantile": {"q": q} | _plain(quantile_of(own, found.durations, q) if known else UNKNOWN),
            }
            for name, own in weights.items()
            for known in (fits or name == "all",)
        ],
    }


def _estimates_of_rates(found: Navigations, q: float) -> Iterator[dict[str, Any]]:
    """A row for each of the most frequent rates, and with the rate null one for all others together."""
    rates, place, numbers = np.unique(found.rates, return_inverse=True, return_counts=True)
    order = np.argsort(-numbers, kind="stable")
    alone = order if len(order) <= MOST_RATES else order[: MOST_RATES - 1]
    for at in alone:
        yield {"rate": float(rates[at])} | _estimates(_part(found, place == at), q)
    others = ~np.isin(place, alone)
    if others.any():
        yield {"rate": None} | _estimates(_part(found, others), q)


def _part(found: Navigations, rows: np.ndarray) -> Navigations:
    """Some of the navigations, chosen by their numbers or by a mask."""
    return dataclasses.replace(
        found,
        high=found.high[rows],
        rates=found.rates[rows],
        durations=found.durations[rows],
        times=found.times[rows] if len(found.times) else found.times,
    )


def estimates_of_windows(found: Navigations, q: float, size: int) -> Iterator[dict[str, Any]]:
    """The estimates of each window of ``size`` milliseconds that has navigations, in the order of time.

    Windows begin at multiples of their size since 1970, UTC.
    """
    numbers = found.times // size
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=numbers[order][:1] - 1))
    for rows in np.split(order, starts[1:]):
        begin = int(numbers[rows[0]]) * size
        window = {"window_start": rfc3339(begin), "window_end": rfc3339(begin + size)}
        yield window | estimates(_part(found, rows), q)


def _misfit(distance: float) -> str:
    size = f"{abs(distance):.1f}" if abs(distance) < 10 else f"{abs(distance):,.0f}"
    return f"{size} standard errors {'above 1' if distance > 0 else 'below 0'}"


def _plain(number: Bounded) -> dict[str, float | None]:
    return {name: each if math.isfinite(each) else None for name, each in number._asdict().items()}
