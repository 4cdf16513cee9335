"""Output of the demo: a table of one day, and sentences about precision and coverage over all days."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Iterator
from typing import Any

import numpy as np

from labs.demo.demo_outcome import Outcome
from uldp_transforms.ldp.confidence import INTERVAL


def cell(outcome: Outcome, day: int, value: str) -> dict[str, float]:
    """One value on one day, shares in percent; empty if the value is not a candidate."""
    if value not in outcome.values:
        return {}
    at = day, outcome.values.index(value)
    return {name: 100 * float(getattr(outcome, name)[at]) for name in ("truth", "estimate", "low", "high", "covered")}


def shown_values(closed: Outcome, day: int, number: int) -> tuple[list[str], list[str]]:
    """The values with the most people on a day, in descending order, and the sensitive ones."""
    order = np.argsort(-closed.truth[day], kind="stable")
    return [closed.values[i] for i in order[:number]], [closed.values[i] for i in np.flatnonzero(closed.sensitive)]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def date_text(day: datetime.date) -> str:
    return f"{day:%A}, {day.day} {day:%B %Y}"


def spread(numbers: np.ndarray) -> str:
    return f"{numbers.min():,} to {numbers.max():,}"


def day_table(outcomes: list[Outcome], day: int) -> Iterator[str]:
    """A table of the 12 busiest airports of one day and some sensitive ones."""
    closed = outcomes[1]
    common, sensitive = shown_values(closed, day, 12)
    yield f"{date_text(closed.days[day])}: share of departures in percent, {INTERVAL}s"
    yield f"{'':15}" + "".join(f"  {outcome.collection.id:^27}" for outcome in outcomes)
    yield "airport   truth" + "    estimate        interval " * len(outcomes)
    for value in [*common, *sensitive[:5]]:
        line = f"{value} {'*' if value in sensitive else ' '}  {cell(closed, day, value)['truth']:8.2f}"
        for entry in (cell(outcome, day, value) for outcome in outcomes):
            if not entry:
                line += f"    {'not a candidate':25}"
                continue
            miss = " " if entry["covered"] else "!"
            line += f"    {entry['estimate']:8.2f}  {entry['low']:5.2f} to {entry['high']:5.2f}{miss}"
        yield line.rstrip()
    yield f"others {100 * outcomes[0].unlisted[day]:8.2f}    {100 * outcomes[0].unexplained[day]:8.2f}"
    yield f"* sensitive   ! truth outside the interval   others: all but the {len(outcomes[0].values)} candidates"


def coverage(outcomes: list[Outcome]) -> Iterator[tuple[Outcome, str, int, int]]:
    """Yield collection, group, number of intervals that contain the truth, and number of intervals, over all days."""
    for outcome in outcomes:
        for group, mask in outcome.groups.items():
            yield outcome, group, int(outcome.covered[:, mask].sum()), outcome.covered[:, mask].size


def summary(outcomes: list[Outcome], ledger: dict[str, collections.Counter[Any]], randomness: str) -> Iterator[str]:
    """Describe reports, guarantee, precision, coverage and ledger."""
    for outcome in outcomes:
        yield (
            f"{outcome.collection.id}: epsilon {outcome.epsilon:g}, {spread(outcome.num_reports)} reports a day, total "
            f"variation distance {percent(outcome.total_variation.mean())} (mean of {len(outcome.days)} days)"
        )
    for outcome, group, covered, number in coverage(outcomes):
        share = percent(covered / number)
        yield f"{outcome.collection.id}, {group}: {covered:,} of {number:,} intervals contain the truth ({share})"
    for outcome in outcomes:
        held, name = outcome.covered_smoothed, outcome.collection.id
        yield (
            f"{name}, smoothed over days: {held.sum():,} of {held.size:,} intervals ({percent(held.mean())}), "
            f"squared l2 distance {outcome.gain:.1f} times smaller"
        )
        yield from (f"{name}, {date_text(day)}: {sentence}" for day, sentence in outcome.changes.items())
    for name, account in ledger.items():
        yield (
            f"{name}, ledger: {account['received']:,} received = {account['accepted']:,} accepted + "
            f"{account['rejected']:,} rejected: {balance(account)}"
        )
    yield f"randomness of the reports: {randomness}"


def balance(account: collections.Counter[Any]) -> str:
    """Describe whether the ledger balances, that is, no report was lost or added."""
    complete = account["sent"] == account["received"] == account["accepted"] + account["rejected"]
    return "balanced" if complete else "NOT BALANCED"
