"""Rows of folded known lists: what is compared, at which frequencies, and which row is recommended."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.ldp.small_mechanisms import make
from uldp_transforms.ldp import Collection
from uldp_transforms_planner.planning import ClosedQuestion, closed_question, hashed_forecast, least_epsilon, plan
from uldp_transforms_planner.planning.cpu_time import client_seconds, window_seconds
from uldp_transforms_planner.planning.folded_lists import FOLDS, LONG_BESIDE_OTHERS, LONG_LIST, FoldedList
from uldp_transforms_planner.planning.forecast import Groups
from uldp_transforms_planner.planning.planned_question import Setup
from uldp_transforms_planner.planning.planning import BYTE_COST, NEARLY_BEST

N = 200_000


def rows(**fields: int) -> dict[str, Callable[[float], Setup | None]]:
    found = ClosedQuestion(**fields).setups(N)
    return {name: make for name, make in found.items() if ", permuted" in name or ", hashed" in name}


def setup_of(name: str, epsilon: float = 2.0, **fields: int) -> Setup:
    found = rows(**fields)[name](epsilon)
    assert found is not None
    return found


def test_long_lists_are_folded_in_both_ways() -> None:
    """Mechanisms whose report is a symbol, and subsets beside values in clear; not with one cohort alone."""
    everybody = {"krr, permuted", "krr, hashed"}
    some = {f"{name}, {fold}" for name in ("urr", "uss") for fold in ("permuted", "hashed")}
    assert set(rows(num_values=LONG_LIST + 1, num_sensitive=LONG_LIST + 1)) == everybody
    assert set(rows(num_values=LONG_LIST + 9, num_sensitive=LONG_LIST + 1)) == everybody | some
    assert set(rows(num_values=LONG_LIST, num_sensitive=LONG_BESIDE_OTHERS + 1)) == some
    assert not rows(num_values=1000, num_sensitive=LONG_BESIDE_OTHERS)
    assert not rows(num_values=LONG_LIST, num_sensitive=LONG_LIST)
    assert not rows(num_values=1000, num_sensitive=1000, max_cohorts=1)
    few = setup_of("krr, permuted", num_values=1000, num_sensitive=1000, max_cohorts=20)
    assert few.num_cohorts <= 20


@pytest.mark.parametrize(("v", "epsilon", "name"), [(200, 1.0, "uss, permuted"), (200, 3.0, "urr, permuted")])
def test_some_sensitive_values_among_many_are_folded(v: int, epsilon: float, name: str) -> None:
    """Of 2,000: 2 or 10 bytes instead of 27, for at most 5 % of the loss, in which a byte is 0.1 %; other values keep a
    symbol of their own."""
    found = plan(ClosedQuestion(num_values=2000, num_sensitive=v), epsilon, N)
    assert found.best.name == name
    (flat,) = [row for row in found.rows if row.name == "uss"]
    assert found.best.setup is not None and flat.setup is not None
    assert 2 * found.best.setup.mechanism.payload_size < flat.setup.mechanism.payload_size == 27
    assert flat.l2 < found.best.l2 < NEARLY_BEST * (1 + 27 * BYTE_COST) * flat.l2
    assert found.best.setup.mechanism.num_symbols - found.best.setup.mechanism.num_sensitive == 2000 - v


def test_a_row_comes_from_the_table_of_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A further kind of alphabet or mechanism is one more entry."""
    question = ClosedQuestion(num_values=3, num_sensitive=3)
    (best,) = [row for row in plan(question, 1.0, 100).rows if row.name == "krr"]
    assert best.setup is not None
    setup = best.setup
    better = dataclasses.replace(setup, forecast=lambda n: setup.forecast(9 * n), alphabet={"id": "of another branch"})

    def new(needed: bool) -> closed_question.Candidate:
        return closed_question.Candidate(lambda _: needed, lambda *_: {"new" if needed else "old": lambda _: better})

    more = (*closed_question.CANDIDATES, new(True), new(False))
    monkeypatch.setattr(closed_question, "CANDIDATES", more)
    found = plan(ClosedQuestion(num_values=3, num_sensitive=3), 1.0, 100)
    assert (found.rows[-1].name, found.best.name) == ("new", "new")
    assert "old" not in {row.name for row in found.rows}, "the question does not have what it needs"
    assert found.collection["alphabet"] == {
        "id": "of another branch",
        "values": ["value-001", "value-002", "value-003"],
    }


@pytest.mark.parametrize("name", ["krr, permuted", "krr, hashed", "urr, permuted", "urr, hashed", "uss, permuted"])
def test_planned_collections_can_be_read(name: str) -> None:
    """Mechanisms that protect everything fold all values; others those that are sensitive."""
    question = ClosedQuestion(num_values=700, num_sensitive=600)
    setup = question.setups(N)[name](2.0)
    assert setup is not None
    spec = {"id": "planned", "version": 1, "alphabet": question.named_alphabet(setup), "num_cohorts": setup.num_cohorts}
    item = Collection.from_json(spec | {"mechanism": setup.mechanism.to_json()})
    values = [f"value-{i:03}" for i in range(1, 701)]
    own = item.alphabet.has_own_symbol(tuple(values))
    assert own.sum() == (0 if item.mechanism.protects_all else 100)
    assert setup.needs_candidates == (item.alphabet.known_values is None)
    asked = item.alphabet.estimated_values(tuple(values[:600]) if setup.needs_candidates else None)
    assert set(values[:600]) <= set(asked)


def test_complete_lists_have_enough_cohorts() -> None:
    """C (k - 1) + 1 >= S, which a hashed list of more than 512 values does not need."""
    folded, hashed = (setup_of(f"krr, {fold.alphabet}", num_values=20_000, num_sensitive=20_000) for fold in FOLDS)
    assert folded.num_cohorts * (folded.mechanism.num_sensitive - 1) + 1 >= 20_000
    assert hashed.num_cohorts * (hashed.mechanism.num_sensitive - 1) + 1 < 20_000


def test_balanced_buckets_collide_less_often() -> None:
    """Exactly: one unknown less; and by message passing, the share (S - k) / (S - 1) of all collisions."""
    mechanism, nobody = make("krr", 16, 16, epsilon=2.0), Groups(np.zeros(1), np.zeros(1, dtype=np.int64))

    def common(size: int, cohorts: int, *, balanced: bool) -> float:
        values = Groups(np.array([1 / size]), np.array([size]))
        noise = hashed_forecast.hashed_noise(mechanism, cohorts, 10**9, values, 0.0, nobody, balanced=balanced)
        return noise.common

    equations = 40 * 15
    ratio = common(500, 40, balanced=True) / common(500, 40, balanced=False)
    assert ratio == pytest.approx((1 - 500 / equations) / (1 - 499 / equations), rel=1e-9)
    spread = Groups(np.geomspace(1e-7, 1e-2, 600), np.ones(600, dtype=np.int64))
    scaled = hashed_forecast._fixed_point(1e-9, spread, 0.0, 600 * 15 * 599 / 584)
    found = hashed_forecast.hashed_noise(mechanism, 600, 10**9, spread, 0.0, nobody, balanced=True)
    floor = hashed_forecast.hashed_noise(mechanism, 600, 10**9, spread, 0.0, nobody).common
    assert found.common < floor
    assert scaled < hashed_forecast._fixed_point(1e-9, spread, 0.0, 600 * 15)


@pytest.mark.parametrize("law", ["zipf", "flat", "half", "one"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_no_usual_distribution_is_worse_than_the_worst(law: str, epsilon: float) -> None:
    """Of the worst, people hold some values equally often; the forecast of others is at most 2 % above."""
    size, rank = 3000, np.arange(1.0, 3001)
    shares = {"zipf": 1 / rank, "flat": rank**0, "half": 1.0 * (rank <= 1500), "one": 1e-9 + 3000.0 * (rank == 1)}[law]
    shares = shares / shares.sum()
    worst = setup_of("krr, permuted", epsilon, num_values=size, num_sensitive=size)
    given = FoldedList(fold=FOLDS[0], num_candidates=size, frequencies=tuple(shares.tolist()))
    for n in (10_000, 1_000_000):
        found = given._setup(worst.mechanism, worst.num_cohorts).forecast(n)  # type: ignore[arg-type]
        assert found.l2 <= 1.02 * worst.forecast(n).l2
        assert found.l1 <= 1.02 * worst.forecast(n).l1
        assert worst.forecast(n).l2 == pytest.approx(worst.l2(n))


# ---------------------------------------------------------------------- what is recommended


def test_a_byte_instead_of_hundreds_is_recommended() -> None:
    """Of 2,000 values with the list in the collection; of 20,000 without the hashes of all others."""
    found = plan(ClosedQuestion(num_values=2000, num_sensitive=2000), 2.0, N)
    assert found.best.name == "krr, permuted"
    assert found.best.setup is not None and found.best.setup.mechanism.payload_size == 1
    assert found.collection["alphabet"]["values"][-1] == "value-2000"
    assert found.best.client_seconds <= 0.1
    many = plan(ClosedQuestion(num_values=20_000, num_sensitive=20_000), 4.0, 10 * N)
    assert many.best.name == "krr, hashed"
    (folded,) = [row for row in many.rows if row.name == "krr, permuted"]
    assert folded.client_seconds > 0.1 and folded.l2 <= many.best.l2 * 1.001


@pytest.mark.parametrize(
    ("byte_cost", "name"), [(0.0, "ss"), (0.001, "ss"), (0.01, "hr"), (math.nextafter(1, 0), "hr")]
)
def test_a_byte_may_cost_what_the_option_says(byte_cost: float, name: str) -> None:
    """Without folds: 2 bytes with 2.4 times the error of 250."""
    question = ClosedQuestion(num_values=2000, num_sensitive=2000, max_cohorts=1)
    found = plan(question, 2.0, N, byte_cost=byte_cost)
    assert found.best.name == name
    chosen = {row.name: row for row in found.rows}
    cost = {row: chosen[row].l2 * (1 + byte_cost * size) for row, size in (("ss", 250), ("hr", 2))}
    assert min(cost, key=cost.__getitem__) == name


def test_what_meets_the_target_is_recommended_whatever_its_bytes_cost() -> None:
    question = ClosedQuestion(num_values=2000, num_sensitive=2000, max_cohorts=1)
    found = plan(question, 2.0, N, target_l2=0.008, byte_cost=1.0)
    assert found.best.l2 <= 0.008 < min(row.l2 for row in found.rows if row.name in ("hr", "krr"))
    assert found.best.setup is not None and found.best.setup.mechanism.payload_size == 250
    reached = least_epsilon(question, N, target_l2=0.008)
    assert reached is not None and reached <= 2


# ---------------------------------------------------------------------- CPU time


def test_cpu_times_grow_with_their_steps() -> None:
    one, bits = make("krr", 8, 8, epsilon=1.0), make("ss", 2000, 2000, epsilon=1.0)
    assert client_seconds(one) < client_seconds(one, 1024, 1) < client_seconds(one, 1024, 2000)
    assert client_seconds(one) < client_seconds(bits)
    assert client_seconds(one, 1024, 4000) == pytest.approx(2 * client_seconds(one, 1024, 2000), rel=0.01)
    assert client_seconds(one, 64, 2000) < client_seconds(one, 1024, 2000) / 3
    assert window_seconds(one, N, 512, 1024) > 5 * window_seconds(one, N, 513, 1024), "matrices up to 512 values"
    assert window_seconds(bits, N, 2000) > 10 * window_seconds(one, N, 2000)
