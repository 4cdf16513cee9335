"""Groups of questions that borrow: as a collection with one version, the risk by enumeration, errors and coverage."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from labs.experiments.drawn_counts import draw_counts
from tests.support.ldp.borrowing_estimators import EB, EMPIRICAL, PROJECTED, all_signs
from tests.support.ldp.question_versions import of, texts, version
from tests.support.refusals.ldp.borrowed_versions import PAIR
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.borrowing import borrow
from uldp_transforms.ldp.borrowing.borrow import Side
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.estimators.estimator import Decoder
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize
from uldp_transforms.ldp.versions.borrowed_versions import _side, borrow_versions, borrowed_of_versions
from uldp_transforms.ldp.versions.version_weights import version_weights

ByVersion = dict[bytes, CohortCounts]


def drawn(versions: Sequence[Collection], people: Sequence[np.ndarray], rng: np.random.Generator) -> ByVersion:
    """Counts of people (S,) of each version, in the order of the first version's values; of nobody, none."""
    values = versions[0].alphabet.known_values or ()
    return {one.fingerprint: draw_counts(one, values, own, rng) for one, own in zip(versions, people) if own.sum()}


def together(groups: Sequence[ByVersion]) -> ByVersion:
    """The sum of all groups."""
    total: ByVersion = {}
    for mark, counts in itertools.chain.from_iterable(group.items() for group in groups):
        total[mark] = total[mark] + counts if mark in total else counts
    return total


# ---------------------------------------------------------------------------------------------------------- one version


@pytest.mark.parametrize("absent", [False, True], ids=["one version", "a second one without reports"])
@pytest.mark.parametrize("estimator", [EB, PROJECTED, ESTIMATORS["normalized"]()], ids=lambda one: one.id)
@pytest.mark.parametrize(("mechanism", "size"), [("krr", 4), ("urr", 40), ("uss", 12), ("rappor", 18)])
def test_one_version_borrows_as_a_collection_to_the_bit(
    mechanism: str, size: int, estimator: Any, absent: bool
) -> None:
    values = texts(size)[::-1]
    model = version(2 if mechanism == "krr" else 1, mechanism, 1.5, values)
    rng = generator("one version borrows", mechanism, size)
    people = [np.round(number * rng.dirichlet(np.ones(size))).astype(int) for number in (300, 900, 5_000)]
    groups = [drawn([model], [own], rng) for own in people]
    other = [version(3, mechanism, 1.5, values)] if absent else []
    found = borrow_versions([model, *other], together(groups), groups, estimator)
    mark = model.fingerprint
    expected = borrow(model, together(groups)[mark], [each[mark] for each in groups], estimator)
    assert [one.weight for one in found] == [one.weight for one in expected]
    for one, two in zip(found, expected):
        assert one.frequencies.tolist() == two.frequencies.tolist()
    assert max(one.weight for one in found) > 0.05


# ------------------------------------------------------------------------------------------------------ parts of it

OTHERS = (version(1, "krr", 3.0, list("abcd")), version(2, "uss", 1.0, list("dbca")))


def side_of(versions: Sequence[Collection], counts: ByVersion, decoder: Decoder) -> Side:
    return _side(decoder, versions, tuple("abcd"), counts)


def covariances(versions: Sequence[Collection], shares: np.ndarray) -> list[np.ndarray]:
    """(A, K, K) of one report, in the order a, b, c, d."""
    found = []
    for one in versions:
        symbols = one.alphabet.symbol_table(tuple("abcd"), 1)[0]
        placed = np.empty(4)
        placed[symbols] = shares
        found.append(one.mechanism.covariance(placed)[np.ix_(symbols, symbols)])
    return found


@pytest.mark.parametrize("versions", [PAIR, OTHERS], ids=["krr and ss", "krr and uss"])
@pytest.mark.parametrize("alone", [False, True], ids=["both versions", "group of one version"])
def test_traces_and_errors_are_those_of_matrices(versions: Sequence[Collection], alone: bool) -> None:
    rng = generator("matrices", alone)
    numbers = [np.array([90, 60, 40, 30]), np.array([50, 50, 60, 70])]
    small = drawn(versions, [numbers[0] // 3, numbers[1] // (100 if alone else 2)], rng)
    total = together([small, drawn(versions, numbers, rng)])
    with mock.patch("uldp_transforms.ldp.borrowing.borrow._signs", all_signs):
        group, everybody = side_of(versions, small, EMPIRICAL), side_of(versions, total, PROJECTED)
        shares = clip_and_normalize(group.raw)
        marks = [one.fingerprint for one in versions]
        sizes, alls = ([float(of[mark].total) if mark in of else 0.0 for mark in marks] for of in (small, total))
        present = [place for place, size in enumerate(sizes) if size]
        models = tuple(versions[place] for place in present)
        own = version_weights(models, tuple("abcd")).of(np.array([sizes[place] for place in present]))[0]
        of_all = version_weights(tuple(versions), tuple("abcd")).of(np.array(alls))[0]
        each = covariances(versions, shares)
        covariance, shared = np.zeros((4, 4)), np.zeros((4, 4))
        for row, place in enumerate(present):
            covariance += np.diag(own[row]) @ each[place] @ np.diag(own[row]) / sizes[place]
            shared += np.diag(own[row]) @ each[place] @ np.diag(of_all[place]) / alls[place]
        assert group.trace == pytest.approx(np.trace(covariance))
        np.testing.assert_allclose(group.errors(shares), np.sqrt(np.diag(covariance)))
        along = np.array([0.3, -0.2, 0.5, 0.1])
        assert group.variance(along) == pytest.approx(along @ covariance @ along)
        kept = everybody.shares > 0
        slope = np.diag(kept.astype(float)) - np.outer(kept, kept) / kept.sum()
        assert group.trace_of_all(everybody) == pytest.approx(np.trace(shared @ slope))
        assert group.part_of_all(everybody) == pytest.approx(np.trace(shared) / np.trace(covariance))
        assert everybody.part_of_all(everybody) == pytest.approx(1)


def test_the_estimate_of_the_risk_is_right_on_average() -> None:
    """Over all counts of 25 people of one version and 35 of another: the mean of the estimated gain is the true one.

    The estimator is linear near these shares, so only rounding and probabilities that are left out remain.
    """
    versions = (version(1, "krr", 2.0, list("ab")), version(2, "krr", 3.0, list("ab")))
    truth, numbers, rest = np.array([0.6, 0.4]), (25, 35), [np.array([200, 200]), np.array([90, 110])]
    laws = [
        stats.binom.pmf(np.arange(n + 1), n, float(one.mechanism.response(truth)[0]))
        for one, n in zip(versions, numbers)
    ]
    likely = [np.flatnonzero(law > 1e-4).tolist() for law in laws]
    estimated = true = 0.0
    for first in itertools.product(*likely):
        own = {one.fingerprint: pair(yes, n - yes) for one, yes, n in zip(versions, first, numbers)}
        total = together([own, {one.fingerprint: pair(*cells) for one, cells in zip(versions, rest)}])
        side, everybody = (_side(PROJECTED, versions, ("a", "b"), each) for each in (own, total))
        apart = side.shares - everybody.shares
        chance = laws[0][first[0]] * laws[1][first[1]]
        gain = (side.shares - side.raw) @ apart + side.trace - side.trace_of_all(everybody)
        estimated += chance * float(gain)
        true += chance * float((side.shares - truth) @ apart)
    assert estimated == pytest.approx(true, rel=0.02)


def pair(*cells: int) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)]), np.array([cells], dtype=np.int64))


# -------------------------------------------------------------------------------------------------- errors and coverage

MANY = (version(1, "krr", 1.0, texts(10)), version(2, "uss", 2.0, texts(10)))


def people_of(sizes: Sequence[Sequence[int]], shares: np.ndarray) -> list[list[np.ndarray]]:
    """Numbers (S,) of each group and version, with the shares (G, S)."""
    return [
        [np.round(number * own / own.sum()).astype(int) for number in of_group] for of_group, own in zip(sizes, shares)
    ]


def simulated(people: Any, decoder: Decoder, runs: int, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(R, G) squared errors alone, and of what is shown; and (R, G, S) whether intervals miss the shares."""
    rng, question = generator(name), of(*MANY)
    found = []
    for _ in range(runs):
        groups = [drawn(MANY, own, rng) for own in people]
        shown = borrow_versions(MANY, together(groups), groups, decoder)
        for own, counts, each in zip(people, groups, shown):
            truth = sum(own) / sum(one.sum() for one in own)
            plain = question.estimate(counts, decoder).estimate
            borrowed = plain.with_borrowed(each.frequencies, each.weight)
            errors = (((one - truth) ** 2).sum() for one in (plain.frequencies, each.frequencies))
            found.append([*errors, *((borrowed.ci_low > truth) | (borrowed.ci_high < truth))])
    columns = np.array(found, dtype=np.float64).reshape(runs, len(people), -1)
    return columns[:, :, 0], columns[:, :, 1], columns[:, :, 2:]


ALIKE = np.tile(1 / np.arange(1.0, 11), (4, 1))
SIZES = [(60, 140), (2_000, 3_000), (5_000, 0), (1_500, 2_500)]


@pytest.mark.parametrize("decoder", [EB, PROJECTED], ids=["eb", "projected"])
def test_groups_that_are_alike_borrow_and_small_ones_most(decoder: Decoder) -> None:
    """A group of 200 people beside 13,800: without borrowing its error is many times as large."""
    alone, shown, _ = simulated(people_of(SIZES, ALIKE), decoder, 8, "alike")
    assert shown[:, 0].mean() < 0.2 * alone[:, 0].mean()
    assert shown.mean() < 0.3 * alone.mean()


def test_groups_that_differ_keep_their_shares() -> None:
    apart = np.array([np.roll(row, 3 * place) for place, row in enumerate(ALIKE)])
    sizes = [(20_000, 30_000), (40_000, 10_000), (50_000, 0), (10_000, 40_000)]
    alone, shown, _ = simulated(people_of(sizes, apart), PROJECTED, 6, "apart")
    assert shown.mean() < 1.1 * alone.mean()


@pytest.mark.parametrize("runs", [15, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["alike", "one apart"])
def test_intervals_cover_as_often_as_promised(name: str, runs: int) -> None:
    """They are those of the group's own reports, which are independent, and only reach the shown shares."""
    shares = ALIKE.copy()
    shares[1] = shares[1][:: -1 if name == "one apart" else 1]
    _, _, misses = simulated(people_of(SIZES, shares), PROJECTED, runs, f"coverage, {name}")
    _, most = binomial_limits(runs * len(SIZES), 0.05)
    assert (misses.sum(axis=(0, 1)) <= most).all()


def test_groups_with_enough_reports_have_borrowed_shares() -> None:
    rng = generator("enough")
    sizes = [(0, 0), (3, 5), (10, 10), (30, 60)]
    groups = {place: drawn(MANY, own, rng) for place, own in enumerate(people_of(sizes, ALIKE))}
    total = together(list(groups.values()))
    numbers = {place: sum(counts.total for counts in own.values()) for place, own in groups.items()}
    for least in (0, 1, numbers[2], numbers[2] + 1):
        shown = [place for place, number in numbers.items() if number >= max(least, 1)]
        found = borrowed_of_versions(MANY, total, groups, PROJECTED, least)
        assert list(found) == shown
        expected = borrow_versions(MANY, total, [groups[place] for place in shown], PROJECTED)
        for one, two in zip(found.values(), expected):
            assert (one.frequencies.tolist(), one.weight) == (two.frequencies.tolist(), two.weight)
    assert borrowed_of_versions(MANY, total, groups, PROJECTED, 1_000) == {}
    part = {MANY[0].fingerprint: total[MANY[0].fingerprint]}
    assert borrowed_of_versions(MANY, part, groups, PROJECTED, 1) == {}, "all reports lack those of a version"


def test_shares_are_in_the_order_of_the_newest_values() -> None:
    """Whose sensitive values have the first symbols."""
    newest = Collection.from_json(PAIR[1].to_json() | {"alphabet": {"id": "closed", "values": list("dbca")}})
    rng = generator("order of versions")
    own = drawn([PAIR[0], newest], [np.array([500, 200, 60, 20])] * 2, rng)
    [shown] = borrow_versions([PAIR[0], newest], own, [own], PROJECTED)
    np.testing.assert_allclose(shown.frequencies, of(PAIR[0], newest).estimate(own, PROJECTED).estimate.frequencies)
    assert shown.frequencies[-1] > 0.5 > shown.frequencies[0]
