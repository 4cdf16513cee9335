"""Shares within public blocks: how often their intervals hold the truth, and what they are with other allowances."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from tests.support.sites import PAGES, SITES, counted, sites
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import Collection, Estimate
from uldp_transforms.ldp.estimators.anytime import confidence_of_look
from uldp_transforms.ldp.estimators.empirical_bayes import EmpiricalBayes
from uldp_transforms.ldp.versions.pooled_estimate import pool

SIZES = (2, 3, 5, 10, 20)
NAMES = [f"block {i}" for i in range(len(SIZES))]
STARTS = np.cumsum([0, *SIZES])
BLOCKS = {name: [f"v{j:02}" for j in range(low, high)] for name, (low, high) in zip(NAMES, itertools.pairwise(STARTS))}
VALUES = [f"v{j:02}" for j in range(STARTS[-1])]
BLOCK = np.repeat(np.arange(len(SIZES)), SIZES)
LAWS = {"1/rank": 1 / np.arange(1.0, 41), "flat": np.ones(40), "one heavy": np.r_[np.full(39, 1 / 78), 0.5]}
SOME = {"sensitive": [f"v{j:02}" for j in range(3, 40, 2)]}
RATE = 1e-9  # of false alarms, of each comparison


def listed(mechanism: str, **alphabet: Any) -> Collection:
    spec: dict[str, Any] = {"id": "unequal", "version": 1, "mechanism": {"id": mechanism, "epsilon": 1.0}}
    return Collection.from_json(spec | {"alphabet": {"id": "blocks", "blocks": BLOCKS} | alphabet})


def of_blocks(numbers: np.ndarray) -> np.ndarray:
    """The sum over the block of each value."""
    sums: np.ndarray = np.bincount(BLOCK, numbers)[BLOCK]
    return sums


def drawn(item: Collection, law: str, people: int, rng: np.random.Generator) -> Any:
    return item.count(item.perturb(rng.choice(VALUES, people, p=LAWS[law] / LAWS[law].sum()), rng))


def held(estimate: Estimate, truth: np.ndarray, confidence: float = 0.95) -> np.ndarray:
    assert estimate.in_blocks is not None
    low, high = estimate.in_blocks.intervals(confidence)
    found: np.ndarray = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
    return found


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("mechanism", "alphabet"), [("ss", {}), ("krr", {}), ("uss", SOME)], ids=str)
@pytest.mark.parametrize("estimator", ["eb", "empirical"])
def test_an_interval_holds_the_share_within_its_block(
    mechanism: str, alphabet: dict[str, Any], law: str, estimator: str
) -> None:
    """In 95 % of the windows, of each value: the promise, less what 150 windows can miss by chance."""
    item, windows, rng = listed(mechanism, **alphabet), 150, generator("in blocks", mechanism, law)
    truth = LAWS[law] / of_blocks(LAWS[law])
    counts = [drawn(item, law, 4_000, rng) for _ in range(windows)]
    hits = sum(held(item.estimate(each, estimator), truth).astype(int) for each in counts)
    assert (hits >= binomial_limits(windows, 0.95, RATE / len(VALUES))[0]).all(), hits / windows


def test_intervals_are_those_of_the_people_of_the_block_alone() -> None:
    """Given the number of reports of a block, as of a collection of its own: shorter than those of a ratio."""
    item, rng = listed("ss"), generator("alone")
    estimate = item.estimate(drawn(item, "one heavy", 5_000, rng))
    assert estimate.in_blocks is not None
    own, ends = estimate.in_blocks, estimate.in_blocks.intervals(0.95)
    np.testing.assert_allclose(own.frequencies * own.mass, estimate.frequencies)
    np.testing.assert_array_equal(own.num_reports, np.rint(own.mass * 5_000))
    assert own.names == tuple(NAMES[block] for block in BLOCK)
    heavy = int(np.argmax(estimate.frequencies))
    assert ends[1][heavy] - ends[0][heavy] < (estimate.ci_high[heavy] - estimate.ci_low[heavy]) / own.mass[heavy]


def test_texts_of_a_block_have_the_interval_of_a_collection_of_its_own() -> None:
    item = sites("krr")
    counts, _ = counted(item, 8_000)
    found = item.estimate(counts, "empirical", PAGES)
    part, own = item.mechanism.part_and_counts(counts, 0)  # type: ignore[attr-defined]
    lone = dataclasses.replace(item, alphabet=item.alphabet.block_members[0], mechanism=part)
    here = [value.startswith(SITES[0]) for value in found.values]
    alone = lone.estimate(own, "empirical", [page for page in PAGES if page.startswith(SITES[0])])
    assert found.in_blocks is not None
    for ends, expected in zip(found.in_blocks.intervals(0.9), alone.intervals(0.9)):
        np.testing.assert_allclose(ends[here], expected)


@pytest.mark.parametrize("times", [10, 2])
def test_reports_of_the_same_people_are_covered(times: int) -> None:
    """Everybody sends the true value's report several times, which is the worst case that is allowed for."""
    from uldp_transforms.ldp.repeated_people import with_repeated_people  # noqa: PLC0415

    item, windows, rng = listed("ss"), 200, generator("again", times)
    law, hits = LAWS["1/rank"] / LAWS["1/rank"].sum(), 0
    for _ in range(windows):
        values = np.repeat(rng.choice(VALUES, 1_000, p=law), times)
        estimate = with_repeated_people(item, item.estimate(item.count(item.perturb(values, rng)), "eb"), times)
        hits = hits + held(estimate, law / of_blocks(law)).astype(int)
    assert (hits >= binomial_limits(windows, 0.95, RATE / len(VALUES))[0]).all(), hits / windows


def test_lies_can_all_be_in_one_block() -> None:
    """2 % of the reports are 1 of 5 in a block of a tenth of the people: its shares are bounded for these."""
    item, rng = listed("krr"), generator("lies in a block")
    honest = np.repeat(VALUES, [49 if block else 200 for block in BLOCK])
    mine, liars = [VALUES[3]], round(len(honest) * 0.02 / 0.98)
    part = item.perturb(honest, rng)
    lies = item.perturb(mine * liars, rng)
    symbol = int(item.alphabet.symbol_table(mine, 1)[0, 0])
    most = item.mechanism.log_prob(lies.payloads)[:, symbol].argmax()
    lies = dataclasses.replace(lies, payloads=np.repeat(lies.payloads[[most]], liars, axis=0))
    estimate = item.estimate(item.count(part) + item.count(lies), "eb")
    assert not held(estimate, 1 / np.bincount(BLOCK)[BLOCK])[3]
    assert held(estimate.with_liars(item, 0.02), 1 / np.bincount(BLOCK)[BLOCK])[3]
    assert estimate.in_blocks is not None
    low, high = estimate.with_liars(item, 0.5).in_blocks.intervals(0.95)  # type: ignore[union-attr]
    assert low[3] == 0 and high[3] == 1, "all its reports may be lies"


def test_intervals_at_all_looks_hold_for_each_block() -> None:
    """A block has seen only its own reports, so its level is that of their number."""
    item, rng = listed("ss"), generator("looks in blocks")
    estimate = item.estimate(drawn(item, "1/rank", 3_000, rng), "eb")
    own, looks = estimate.in_blocks, estimate.anytime(1_000).in_blocks
    assert own is not None and looks is not None
    levels = [float(confidence_of_look(0.95, number, 1_000)) for number in own.num_reports.tolist()]
    np.testing.assert_allclose(looks.intervals(0.95), own.intervals(np.array(levels)))
    assert len(set(levels)) == len(SIZES)


def test_a_block_without_reports_has_no_shares_of_its_own() -> None:
    item = listed("ss")
    estimate = item.estimate(item.count(item.perturb(VALUES[2:] * 50, generator("none in block"))), "eb")
    found = estimate.columns_in_blocks(len(VALUES))
    assert found.pop("block")[0] == NAMES[0] and (found.pop("num_reports")[:2] == 0).all()
    for name, column in found.items():
        assert np.isnan(column[:2]).all() and np.isfinite(column[2:]).all(), name


def test_borrowed_shares_within_a_block_sum_to_1() -> None:
    item = listed("ss")
    estimate = item.estimate(drawn(item, "1/rank", 3_000, generator("borrowed")), "eb")
    other = estimate.with_borrowed(np.full(len(VALUES), 1 / len(VALUES)), 0.5)
    assert other.in_blocks is not None
    np.testing.assert_allclose(other.in_blocks.frequencies, 1 / np.bincount(BLOCK)[BLOCK])
    ends = other.in_blocks.intervals(0.95)
    assert ((ends[0] <= other.in_blocks.frequencies) & (other.in_blocks.frequencies <= ends[1])).all()


@pytest.mark.parametrize("windows", [10, 200])
def test_versions_are_pooled_within_blocks(windows: int) -> None:
    """The intervals of two versions together hold the truth and are shorter; other blocks are not pooled."""
    items, rng = [listed("ss"), listed("krr")], generator("versions in blocks")
    law = LAWS["1/rank"] / LAWS["1/rank"].sum()
    hits, shorter = np.zeros(len(VALUES), dtype=int), 0.0
    for _ in range(windows):
        counts = [drawn(item, "1/rank", 2_000, rng) for item in items]
        found = pool(EmpiricalBayes(), items, counts).estimate
        hits += held(found, law / of_blocks(law))
        one = items[0].estimate(counts[0], "eb")
        (low, high), (alone_low, alone_high) = (
            each.in_blocks.intervals(0.95)  # type: ignore[union-attr]
            for each in (found, one)
        )
        shorter += float(np.sum(high - low) / np.sum(alone_high - alone_low))
    assert (hits >= binomial_limits(windows, 0.95, RATE / len(VALUES))[0]).all(), hits / windows
    assert shorter / windows < 0.9
    whole = {"blocks": {"one": VALUES[:20], "two": VALUES[20:]}}
    others = [items[0], listed("ss", **whole)]
    counts = [drawn(item, "1/rank", 2_000, rng) for item in others]
    assert pool(EmpiricalBayes(), others, counts).estimate.in_blocks is None


def test_selected_values_have_longer_intervals() -> None:
    item = listed("uss", **SOME)
    estimate = item.estimate(drawn(item, "1/rank", 3_000, generator("selected")), "eb")
    found = estimate.columns_in_blocks(5)
    assert all(len(column) == 5 for column in found.values())
    assert (found["display_low"] <= found["low"]).all()
    assert (found["display_high"] >= found["high"]).all()
    assert (found["display_high"] > found["high"]).any()
    frame = estimate.to_frame()
    assert frame["block"].tolist()[:3] == [NAMES[BLOCK[at]] for at in np.argsort(-estimate.frequencies)[:3]]
    assert set(frame) >= {"block_reports", "in_block", "in_block_low", "in_block_display_high"}
    assert "share in block" in estimate._repr_html_()


def test_the_share_of_the_only_value_of_a_block_is_1() -> None:
    blocks = {"a": ["x"], "b": ["y", "z"]}
    spec: dict[str, Any] = {"id": "one", "version": 1, "mechanism": {"id": "uss", "epsilon": 1.0}}
    item = Collection.from_json(spec | {"alphabet": {"id": "blocks", "blocks": blocks, "sensitive": ["y"]}})
    estimate = item.estimate(item.count(item.perturb(["x", "y", "z"] * 100, generator("only value"))), "eb")
    found = estimate.columns_in_blocks(3)
    assert found["block"][0] == "a" and found["num_reports"][0] == 100
    assert all(found[name][0] == 1 for name in ("share", "low", "high", "display_low", "display_high"))
