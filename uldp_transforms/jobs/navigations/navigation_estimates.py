"""Estimates of navigations: of a whole table, and of its windows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from uldp_transforms.jobs.navigations.navigations_table import Navigations
from uldp_transforms.ldp.clear_numbers import Bounded, mean_of, quantile_of, share_of, two_answer_weights
from uldp_transforms.windows import rfc3339


def estimates(found: Navigations, q: float) -> dict[str, Any]:
    """The share of "high", and of each class the mean and a quantile of the loading time; null: the noise leaves a
    number or an end of an interval open."""
    share, error = share_of(found.high, found.rates)
    weights = {
        "high": two_answer_weights(found.high, found.rates),
        "low": two_answer_weights(~found.high, found.rates),
        "all": np.ones(len(found.high)),
    }
    return {
        "num_reports": len(found.high),
        "value": "high",
        "frequency": min(max(share.value, 0.0), 1.0),
        "raw_frequency": share.value,
        "standard_error": error,
        "ci_low": share.low,
        "ci_high": share.high,
        "durations": [
            {
                "class": name,
                "mean": _plain(mean_of(own, found.durations)),
                "quantile": {"q": q} | _plain(quantile_of(own, found.durations, q)),
            }
            for name, own in weights.items()
        ],
    }


def estimates_of_windows(found: Navigations, q: float, size: int) -> Iterator[dict[str, Any]]:
    """The estimates of each window of ``size`` milliseconds that has navigations, in the order of time.

    Windows begin at multiples of their size since 1970, UTC.
    """
    numbers = found.times // size
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=numbers[order][:1] - 1))
    for rows in np.split(order, starts[1:]):
        part = dataclasses.replace(
            found,
            high=found.high[rows],
            rates=found.rates[rows],
            durations=found.durations[rows],
            times=found.times[rows],
        )
        begin = int(numbers[rows[0]]) * size
        yield {"window_start": rfc3339(begin), "window_end": rfc3339(begin + size)} | estimates(part, q)


def _plain(number: Bounded) -> dict[str, float | None]:
    return {name: each if math.isfinite(each) else None for name, each in number._asdict().items()}


def shown(number: Mapping[str, float | None]) -> tuple[str, str]:
    """A number and its interval, in words for ends that the noise leaves open."""
    value, low, high = (None if (each := number[name]) is None else f"{each:,.0f}" for name in ("value", "low", "high"))
    if low is None and high is None:
        return value or "-", "not known"
    between = f"{low} to {high}" if low and high else (f"at least {low}" if low else f"at most {high}")
    return value or "-", between
