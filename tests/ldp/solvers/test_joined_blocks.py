"""Estimates of values in public blocks, from those within the blocks."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.support.sites import PAGES, SITES, counted, sites
from tests.support.tolerance import generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.mechanisms.public_blocks.within_blocks import WithinBlocks, ends_of_product

LISTED = ("a.org/0", "c.org/1")


def alone(item: Collection, counts: CohortCounts, block: int, estimator: str) -> tuple[Estimate, float]:
    """The estimate of a collection of the people of one block, and their share."""
    mechanism = item.mechanism
    assert isinstance(mechanism, WithinBlocks)
    part, own = mechanism.part_and_counts(counts, block)
    members = item.alphabet.block_members[block]
    lone = dataclasses.replace(item, alphabet=members, mechanism=part)
    asked = [page for page in PAGES if page.startswith(SITES[block])]
    return lone.estimate(own, estimator, asked), own.total / counts.total


@pytest.mark.parametrize("mechanism", ["krr", "ss", "rappor"])
def test_a_share_is_that_of_the_block_times_that_within_it(mechanism: str) -> None:
    item = sites(mechanism)
    counts, _ = counted(item, 8_000)
    for estimator in ("empirical", "projected"):
        found = item.estimate(counts, estimator, PAGES)
        for block, site in enumerate(SITES):
            own, mass = alone(item, counts, block, estimator)
            here = [value.startswith(site) for value in found.values]
            np.testing.assert_allclose(found.frequencies[here], mass * own.frequencies, atol=1e-12)
            variances = (mass * own.standard_errors) ** 2
            variances += np.clip(own.raw_frequencies, 0, 1) ** 2 * mass * (1 - mass) / counts.total
            np.testing.assert_allclose(found.standard_errors[here] ** 2, variances, rtol=1e-9)


@pytest.mark.parametrize("members", [{}, {"non_sensitive": list(LISTED)}], ids=["all", "listed"])
def test_intervals_hold_the_shares_of_texts_and_of_unlisted_ones(members: dict[str, Any]) -> None:
    item, windows, people = sites("urr" if members else "krr", **members), 150, 4_000
    rng, texts = generator("cover of sites", *members), (*PAGES, "a.org/other", "b.org")
    law = 1 / np.arange(1.0, len(texts) + 1)
    law /= law.sum()
    shares = dict(zip(texts, law))
    rows, rests = [], []
    for _ in range(windows):
        found = item.estimate(item.count(item.perturb(rng.choice(texts, people, p=law), rng)), "eb", PAGES)
        truth = np.array([shares[value] for value in found.values])
        rows.append(np.mean((found.ci_low <= truth) & (truth <= found.ci_high)))
        rests.append((found.raw_unexplained_mass - law[-2:].sum()) / found.unexplained_standard_error)
    assert 0.94 - student_limit(windows, 2) * np.std(rows, ddof=1) / np.sqrt(windows) <= np.mean(rows) < 1
    assert abs(np.mean(rests)) <= student_limit(windows) * np.std(rests, ddof=1) / np.sqrt(windows)
    assert 0.5 < np.std(rests) < 1.5


def test_a_value_that_everybody_in_the_block_may_hold_may_have_the_share_of_the_block() -> None:
    """Of one report in five the share of the block is at most .716, whatever little is known within the block."""
    inside, mass = np.zeros(3), 0.2
    ends, shares = (np.full(3, -2.5), np.array([0.9, 2.5, 5.0])), (np.full(3, 0.005), np.full(3, 0.716))
    low, high = ends_of_product(inside, ends, mass, shares)
    np.testing.assert_allclose(low, -0.5)
    np.testing.assert_allclose(high, [0.18, 0.716, 1.0])


def test_a_block_without_reports_may_still_hold_a_value() -> None:
    item = sites()
    counts, _ = counted(item, 2_000, without="d.org")
    for estimator in ("eb", "em", "projected", "threshold", "normalized"):
        found = item.estimate(counts, estimator, PAGES)
        empty = np.array([value.startswith("d.org") for value in found.values])
        assert not found.frequencies[empty].any() and not found.raw_frequencies[empty].any()
        assert (found.ci_high[empty] > 3 / 2_000).all() and (found.ci_high[empty] < 5 / 2_000).all()
        assert (found.standard_errors > 0).all()


def test_blocks_of_eb_sum_to_their_people() -> None:
    blocks = {f"b{i}": [f"b{i}-{j}" for j in range(8)] for i in range(6)}
    spec = {"id": "list", "version": 1, "alphabet": {"id": "blocks", "blocks": blocks}}
    item = Collection.from_json(spec | {"mechanism": {"id": "ss", "epsilon": 1.0}})
    rng = generator("sums of blocks")
    values = [value for own in blocks.values() for value in own]
    counts = item.count(item.perturb(rng.choice(values[8:], 3_000), rng))
    assert isinstance(item.mechanism, WithinBlocks)
    reports = item.mechanism.reports_of(counts)[0]
    for estimator in ("eb", "projected", "threshold", "normalized"):
        found = item.estimate(counts, estimator)
        np.testing.assert_allclose(found.frequencies.reshape(6, 8).sum(axis=1), reports / 3_000, atol=1e-12)


def test_a_small_block_is_drawn_towards_what_is_usual_in_all() -> None:
    """All shares are even, and the few reports of the last block alone could not tell."""
    blocks = {f"b{i}": [f"b{i}-{j}" for j in range(10)] for i in range(8)}
    spec = {"id": "list", "version": 1, "alphabet": {"id": "blocks", "blocks": blocks}}
    item = Collection.from_json(spec | {"mechanism": {"id": "ss", "epsilon": 1.0}})
    rng = generator("small block")
    many = [f"b{i}-{j}" for i in range(7) for j in range(10)] * 300
    few, errors = [f"b7-{j}" for j in range(10)] * 5, []
    for _ in range(30):
        counts = item.count(item.perturb(many + few, rng))
        shared = item.estimate(counts, "eb").frequencies[70:] / (50 / len(many + few))
        assert isinstance(item.mechanism, WithinBlocks)
        part, own = item.mechanism.part_and_counts(counts, 7)
        closed = {"id": "closed", "values": blocks["b7"]}
        lone = Collection.from_json(spec | {"alphabet": closed, "mechanism": part.to_json()})
        apart = lone.estimate(own, "eb").frequencies
        errors.append([np.abs(shares - 0.1).sum() for shares in (shared, apart)])
    together, alone_ = np.mean(errors, axis=0)
    assert together < 0.5 * alone_


def test_even_shares_are_alike_in_blocks_of_any_size() -> None:
    sizes = (4, 10, 20, 30)
    blocks = {f"b{i}": [f"b{i}-{j}" for j in range(size)] for i, size in enumerate(sizes)}
    spec = {"id": "list", "version": 1, "alphabet": {"id": "blocks", "blocks": blocks}}
    item = Collection.from_json(spec | {"mechanism": {"id": "ss", "epsilon": 1.0}})
    rng = generator("even shares")
    people = [value for own in blocks.values() for value in own * (6_000 // len(own))]
    truth = np.repeat(1 / (4 * np.array(sizes)), sizes)
    errors = []
    for _ in range(10):
        counts = item.count(item.perturb(people, rng))
        found = [item.estimate(counts, estimator).frequencies for estimator in ("eb", "projected")]
        errors.append([np.abs(shares - truth).sum() for shares in found])
    of_eb, of_projected = np.mean(errors, axis=0)
    assert of_eb < of_projected / 4
