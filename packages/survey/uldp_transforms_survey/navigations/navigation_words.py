"""Estimates of navigations in words: shares, loading times and their intervals, rates, what does not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.ldp.estimators.display import interval_text, one_sided

Row = Mapping[str, Any]

DIFFERENT = 1e-3
"""Largest p-value at which the shares of rates are said to differ."""

_SMALLEST_P = 1e-15  # smaller ones depend on the approximation


def shown(number: Mapping[str, float | None]) -> tuple[str, str]:
    """A number of milliseconds and its interval, with as many digits as tell the ends apart."""
    ends = (number["low"], number["high"])
    known = [end for end in ends if end is not None]
    digits = _digits(known[1] - known[0]) if len(known) == 2 else 0
    value, low, high = (
        None if (each := number[name]) is None else f"{each:,.{digits}f}" for name in ("value", "low", "high")
    )
    if low is None and high is None:
        return value or "-", "not known"
    if len(known) == 2 and known[0] == known[1]:
        return f"{known[0]:,.6g}", f"exactly {known[0]:,.6g}"
    between = f"{low} to {high}" if low and high else (f"at least {low}" if low else f"at most {high}")
    return value or "-", between


def _digits(length: float) -> int:
    """Digits after the point that an interval of this length needs."""
    return 0 if length >= 2 or length <= 0 else min(1 - math.floor(math.log10(length)), 9)


def share_in_words(row: Row) -> str:
    """The share with its interval, or how far the answers are from fitting."""
    if row["misfit"] is not None:
        return f"does not fit: {row['misfit']}"
    share = row["frequency"]
    return f"{share:.4f} ({interval_text(share, row['ci_low'], row['ci_high'])})"


def percent_in_words(row: Row) -> tuple[str, str]:
    """The share and its interval in percent, for a page."""
    if row["misfit"] is not None:
        return "does not fit", row["misfit"]
    share, low, high = row["frequency"], row["ci_low"], row["ci_high"]
    bound = one_sided(share, low, high)
    between = f"{100 * low:.1f} to {100 * high:.1f}" if bound is None else f"{bound[0]} {100 * bound[1]:.1f}"
    return f"{100 * share:.1f} %", f"{between} %"


def rate_in_words(row: Row) -> str:
    return "others" if row["rate"] is None else f"{row['rate']:.6g}"


def sentences_about(row: Row) -> list[str]:
    """What a reader of a row should know before its numbers: answers that do not fit, and rates that differ."""
    found = [
        f"The answers{of} do not fit {whose} ({each['misfit']}), so there is no estimate: the rate is wrong, or many "
        "lines were not sent by browsers."
        for each, of, whose in _parts(row)
        if each["misfit"] is not None
    ]
    p_value = row["agreement"]
    if p_value is not None and p_value < DIFFERENT:
        found.append(
            f"The shares of the rates differ ({_p_in_words(p_value)}): browsers of different rates had different "
            "navigations, or a rate is wrong. The share of all navigations above counts each of them once."
        )
    elif p_value is not None:
        found.append(f"The shares of the rates agree ({_p_in_words(p_value)}).")
    return found


def _parts(row: Row) -> list[tuple[Row, str, str]]:
    of_rates: Sequence[Row] = row["rates"] if len(row["rates"]) > 1 else ()
    return [
        (row, "", "their rates"),
        *((each, f" of rate {rate_in_words(each)}", "it") for each in of_rates if each["rate"] is not None),
        *((each, " of the other rates", "them") for each in of_rates if each["rate"] is None),
    ]


def _p_in_words(p_value: float) -> str:
    return f"p < {_SMALLEST_P:.0e}" if p_value < _SMALLEST_P else f"p = {p_value:.2g}"
