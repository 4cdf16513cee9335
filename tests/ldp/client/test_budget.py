"""What reports cost, by enumeration; and that no answer and no silence of a client depends on a value."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.cases import (
    each_mechanism,
)
from tests.support.ldp.clients import NOON, answers, client, illness
from tests.support.ldp.memo_channels import MEMOS, TINY, memo_rows, second_step
from tests.support.vectors import MEMOS as COLLECTIONS
from tests.support.vectors import Memory
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.client.budget import cost_of_reports
from uldp_transforms.ldp.client_window import DAY
from uldp_transforms.ldp.mechanisms import KaryRR, Mechanism, SetReportMechanism

ROUNDING = 1 + 1e-9


# ---------------------------------------------------------------------- what reports cost


def dearest(mechanism: Mechanism, num_reports: int, num_symbols: int) -> float:
    """The largest sum of what the reports of each symbol say, over all ways to divide them; by recursion."""

    @functools.cache
    def rest(number: int, symbols: int) -> float:
        if number == 0 or symbols == 0:
            return 0.0 if number == 0 else -math.inf
        parts = range(1, number + 1)
        return max(mechanism.epsilon_after(part) + rest(number - part, symbols - 1) for part in parts)

    return max(rest(num_reports, symbols) for symbols in range(1, num_symbols + 1))


SPECIFIED = [Collection.from_json(spec).mechanism for spec in COLLECTIONS.values()]


@each_mechanism([*MEMOS, *SPECIFIED, illness(None).mechanism])
def test_no_history_costs_more(mechanism: Mechanism) -> None:
    """Over all ways to divide up to 12 reports; one report costs what one report says."""
    for number, symbols in itertools.product((1, 2, 3, 5, 12), (1, 2, 3, 7)):
        cost, needed = cost_of_reports(mechanism, number, symbols), dearest(mechanism, number, symbols)
        assert needed <= cost * ROUNDING
        assert cost <= symbols * mechanism.epsilon_after(number) * ROUNDING
    assert cost_of_reports(mechanism, 1, 5) == pytest.approx(mechanism.epsilon_after(1))


@each_mechanism([*MEMOS, *SPECIFIED])
def test_what_reports_say_has_one_largest_mean(mechanism: Mechanism) -> None:
    """f(t) / t rises and then falls, and h is concave: what the bound is made of."""
    said = np.array([mechanism.epsilon_after(t) for t in range(1, 80)])
    means = said / np.arange(1, 80)
    peak = int(means.argmax())
    slack = 1e-9 * means[peak]
    assert (np.diff(means[: peak + 1]) >= -slack).all()
    assert (np.diff(means[peak:]) <= slack).all()
    concave = [cost_of_reports(mechanism, t, 1) for t in range(1, 80)]
    assert (np.diff(concave, 2)[peak:] <= 1e-9).all()


def test_the_cost_grows_with_reports_and_values() -> None:
    for mechanism in (*SPECIFIED, illness(None).mechanism):
        costs = np.array([[cost_of_reports(mechanism, n, d) for d in (1, 2, 3, 8)] for n in range(1, 30)])
        assert (np.diff(costs, axis=0) >= -1e-9).all()
        assert (np.diff(costs, axis=1) >= -1e-9).all()


# ---------------------------------------------------------------------- pairs of histories

History = tuple[int, ...]


def laws(mechanism: SetReportMechanism, length: int) -> tuple[list[History], np.ndarray]:
    """All histories of symbols, (h,), and the probabilities of all sequences of reports under each, (h, Y**length)."""
    step, memos = np.array(second_step(mechanism), dtype=float), np.array(memo_rows(mechanism), dtype=float)
    histories = list(itertools.product(range(mechanism.num_symbols), repeat=length))
    sequences = np.indices((len(step),) * length).reshape(length, -1)
    of_subset = {}  # (symbol, when it was held) -> probabilities of the reports at these times, in all sequences
    for symbol, held in itertools.product(
        range(mechanism.num_symbols), itertools.product((False, True), repeat=length)
    ):
        of_memo = np.ones((len(step), sequences.shape[1]))
        for time in np.flatnonzero(held):
            of_memo *= step[sequences[time]].T
        of_subset[symbol, held] = memos[:, symbol] @ of_memo
    found = [
        math.prod(of_subset[symbol, tuple(held == symbol for held in history)] for symbol in set(history))
        for history in histories
    ]
    return histories, np.array(found)


def pattern(history: Sequence[int]) -> tuple[int, ...]:
    """When a symbol changes, and which are the same."""
    return tuple(map(list(dict.fromkeys(history)).index, history))


def most_said(mechanism: SetReportMechanism, length: int, same_pattern: bool) -> float:
    """ln of the largest ratio of two histories, over all reports that every history can make."""
    histories, found = laws(mechanism, length)
    found = found[:, (found > 0).all(axis=0)]
    groups: dict[Any, list[int]] = {}
    for place, history in enumerate(histories):
        groups.setdefault(pattern(history) if same_pattern else None, []).append(place)
    return max(float(np.log(found[of].max(axis=0) / found[of].min(axis=0)).max()) for of in groups.values())


@each_mechanism([case for case in TINY if case.num_outputs <= 6])
def test_histories_that_change_together_are_within_the_cost(mechanism: Any) -> None:
    for length in (1, 2, 3):
        cost = cost_of_reports(mechanism, length, mechanism.num_symbols)
        assert most_said(mechanism, length, same_pattern=True) <= cost * ROUNDING


def step_epsilon(mechanism: SetReportMechanism) -> float:
    """What one report says about the memo behind it."""
    repeat = mechanism.repeat_weight / 2**64
    return math.log1p(repeat / (1 - repeat) / float(min(share for _, share, _ in mechanism.noise_law() if share)))


@each_mechanism([case for case in TINY if case.num_outputs <= 6])
def test_any_two_histories_are_within_a_bound_that_grows_with_every_report(mechanism: Any) -> None:
    """epsilon for the first report; each other one can say at most what it says about its memo."""
    for length in (1, 2, 3):
        bound = mechanism.epsilon + (length - 1) * step_epsilon(mechanism)
        assert most_said(mechanism, length, same_pattern=False) <= bound * ROUNDING


def test_what_the_threat_model_quotes() -> None:
    """k-RR over 4 values, epsilon 1, epsilon_inf 2: cost, between any two histories, and the bound."""
    mechanism = KaryRR(num_symbols=4, num_sensitive=4, epsilon=1, epsilon_inf=2)
    rows = [
        (
            cost_of_reports(mechanism, n, 1),
            cost_of_reports(mechanism, n, 4),
            most_said(mechanism, n, same_pattern=True),
            most_said(mechanism, n, same_pattern=False),
            1 + (n - 1) * step_epsilon(mechanism),
        )
        for n in (1, 2, 3, 4, 5)
    ]
    assert np.round(rows, 3).tolist() == [
        [1.0, 1.0, 1.0, 1.0, 1.0],
        [1.678, 2.0, 2.0, 2.196, 2.573],
        [1.923, 3.0, 3.0, 3.443, 4.146],
        [1.984, 4.0, 4.0, 4.543, 5.72],
        [1.997, 4.678, 4.678, 5.789, 7.293],
    ]


@pytest.mark.parametrize(
    ("lifetime", "distinct", "num_reports"),
    [(5, 2, None), (5, 4, 5), (5, 64, 5), (10, 4, None), (10, 8, 10), (10, 64, 10), (20, 8, None), (20, 64, 20)],
)
def test_how_many_reports_a_lifetime_has(lifetime: float, distinct: int, num_reports: int | None) -> None:
    """k-RR over 64 values, epsilon 1, epsilon_inf 2; None: no end. Quoted in decision 71."""
    mechanism = KaryRR(num_symbols=64, num_sensitive=64, epsilon=1, epsilon_inf=2)
    within = [n for n in range(1, 1000) if cost_of_reports(mechanism, n, distinct) <= lifetime * ROUNDING]
    assert len(within) == (999 if num_reports is None else num_reports)


# ---------------------------------------------------------------------- silence

VALUES = ("flu", "cold", "gout", "none")
EIGHT_A_DAY = DAY // 8


def asked_days(collection: Collection, values: Sequence[str], **budget: Any) -> list[bool]:
    """Eight windows a day, one value each."""
    asked = client(Memory(), collection, window_ms=EIGHT_A_DAY, **budget)
    return [answers(asked, value, (160_000 + place) * EIGHT_A_DAY) for place, value in enumerate(values)]


BUDGETS: list[dict[str, Any]] = [
    {"epsilon": 2.5},
    {"epsilon": 100.0, "lifetime": 3.2},
    {"epsilon": 2.5, "lifetime": 6.1},
    {"epsilon": 1.9, "distinct_values": 1},
    {"epsilon": 1.7, "distinct_values": 2, "report_every": 2},
]


def histories_to_ask() -> Iterator[list[str]]:
    """All of five windows, each said three times in a row: two days."""
    for history in itertools.product(VALUES[:3], repeat=5):
        yield [value for value in history for _ in range(3)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("epsilon_inf", [2.0, None], ids=["memos", "fresh"])
def test_silence_is_the_same_for_all_values(epsilon_inf: float | None, budget: dict[str, Any]) -> None:
    """All 243 histories, of devices with one secret, whose turn and cohort are the same."""
    collection = illness(epsilon_inf)
    patterns = {tuple(asked_days(collection, values, secret=bytes(32), **budget)) for values in histories_to_ask()}
    [answered] = patterns
    assert True in answered
    assert False in answered


def test_after_a_refusal_everything_is_refused_until_the_period_ends() -> None:
    values = [value for value in VALUES for _ in range(6)]
    days = np.array(asked_days(illness(), values, epsilon=2.5)).reshape(3, 8)
    assert days.tolist() == [[True] * 2 + [False] * 6] * 3
    life = asked_days(illness(), values, epsilon=100.0, lifetime=3.2)
    assert life == [True] * 3 + [False] * 21


def test_silence_is_the_same_where_collections_share_a_budget() -> None:
    """Asked in turns; the values of one do not decide what the other answers."""
    one, other = illness(), illness(None, id="other")
    found = set()
    for values in itertools.product(VALUES[:3], repeat=5):
        store = Memory()
        pair = [client(store, each, 3.5, window_ms=EIGHT_A_DAY, secret=bytes(32)) for each in (one, other)]
        found.add(tuple(answers(pair[i % 2], value, i * EIGHT_A_DAY) for i, value in enumerate(values)))
    assert found == {(True, True, True, False, False)}


def test_what_is_stored_of_two_histories_differs_in_the_answers_alone() -> None:
    """So a device that is stolen tells no value that it has held."""
    states = []
    for values in (["flu"] * 16, [*VALUES] * 4):
        store = Memory()
        asked = client(store, illness(), window_ms=EIGHT_A_DAY, secret=bytes(32))
        for place, value in enumerate(values):
            asked.report(value, (160_000 + place) * EIGHT_A_DAY)
        states.append(json.loads(store.text or ""))
        assert [len(of) for of in states[-1]["answers"].values()] == [8]  # of the present day
    without = [{key: value for key, value in state.items() if key != "answers"} for state in states]
    assert without[0] == without[1]


@pytest.mark.parametrize(("missing", "answered"), [(0.0, True), (0.8e-9, True), (1.2e-9, False)])
def test_a_sum_may_exceed_a_budget_by_a_billionth(missing: float, answered: bool) -> None:
    """Costs that should equal the budget differ from it by rounding."""
    asked = client(Memory(), illness(None), epsilon=1.0 - missing)
    assert answers(asked, "flu", NOON) is answered
