"""Pooled estimates: exact moments, precision against each version and against the best weights, coverage."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.ldp.question_versions import hashed, of, texts, version
from tests.support.refusals.ldp.pooled_estimates import counted, pooled
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions import questions_of
from uldp_transforms.ldp.versions.pooled_estimate import _fit, pool
from uldp_transforms.ldp.versions.version_weights import _symbols, version_weights

MECHANISMS = ("krr", "rappor", "hr", "ss", "urr", "urap", "uss")


def outcomes(model: Collection, frequencies: np.ndarray, n: int) -> Iterator[tuple[float, CohortCounts]]:
    """All counts of n reports of a mechanism that reports one symbol, with their probabilities."""
    law = model.mechanism.response(frequencies)
    for reports in itertools.combinations_with_replacement(range(len(law)), n):
        cells = np.bincount(reports, minlength=len(law))
        ways = math.factorial(n) / math.prod(map(math.factorial, cells.tolist()))
        yield ways * float(np.prod(law**cells)), counted(cells.tolist())


def weighed(versions: Sequence[Collection], sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    values = versions[-1].alphabet.known_values
    assert values is not None
    return version_weights(tuple(versions), values).of(np.array(sizes))


@pytest.mark.parametrize("others", [("krr", 2.0), ("urr", 0.5)], ids=lambda pair: pair[0])
def test_mean_and_variance_by_enumeration(others: tuple[str, float]) -> None:
    """For every population the mean is the truth, and the variance that of the weighted sum."""
    versions = [version(1, "krr", 1.0, texts(3)), version(2, *others, texts(3))]
    frequencies, sizes = np.array([0.7, 0.2, 0.1]), (2, 3)
    found = [
        (a * b, pooled(versions, [one, other]).estimate.raw_frequencies)
        for a, one in outcomes(versions[0], frequencies, sizes[0])
        for b, other in outcomes(versions[1], frequencies, sizes[1])
    ]
    chances, raw = np.array([chance for chance, _ in found]), np.array([each for _, each in found])
    mean = chances @ raw
    assert mean == pytest.approx(frequencies, abs=1e-12)
    weights, _ = weighed(versions, sizes)
    exact = sum(w**2 * one.mechanism.variances(frequencies) / n for w, n, one in zip(weights, sizes, versions))
    assert chances @ (raw - mean) ** 2 == pytest.approx(exact, rel=1e-9)


def populations(size: int, *key: object) -> np.ndarray:
    """Uniform, one value, two values, falling like 1 / rank, and random ones of all concentrations."""
    rng, one = generator("populations", size, *key), np.eye(size)
    drawn = [rng.dirichlet(np.full(size, weight)) for weight in (0.02, 0.1, 0.5, 1, 5) for _ in range(20)]
    ranks = 1 / np.arange(1, size + 1)
    mixed = [(1 - share) * one[0] + share * one[-1] for share in (0.01, 0.1, 0.5)]
    return np.array([np.full(size, 1 / size), ranks / ranks.sum(), one[0], one[-1], *mixed, *drawn])


def squared_errors(one: Collection, shares: np.ndarray, n: int) -> np.ndarray:
    """The variance of each share, and the square of what one more counted report would change."""
    errors: np.ndarray = one.mechanism.variances(shares) / n + (one.mechanism.jumps / n) ** 2
    return errors


@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(MECHANISMS, 2)), ids="-".join)
@pytest.mark.parametrize("epsilons", [(0.5, 3.0), (3.0, 1.0), (1.0, 8.0)], ids=str)
@pytest.mark.parametrize("sizes", [(1000, 400), (20_000, 50)], ids=str)
def test_the_loss_bounds_the_pooled_variance_for_every_population(
    pair: tuple[str, str], epsilons: tuple[float, float], sizes: tuple[int, int]
) -> None:
    values = texts(20)
    versions = [version(number, *one, values) for number, one in enumerate(zip(pair, epsilons), 1)]
    weights, loss = weighed(versions, sizes)
    shares = populations(20, pair, epsilons, sizes)
    alone = np.array([squared_errors(one, shares, n) for one, n in zip(versions, sizes)])
    together = (weights[:, np.newaxis] ** 2 * alone).sum(axis=0)
    assert (together <= loss * alone.min(axis=0) * (1 + 1e-9)).all()


CHANNEL = {"id": "channel", "matrix": [["0.8", "0.3", "0.1"], ["0.1", "0.6", "0.2"], ["0.1", "0.1", "0.7"]]}


def test_the_loss_holds_for_channels_and_many_versions() -> None:
    """Values in another order, and a channel in which each value has another noise."""
    rng = generator("many versions")
    versions = [
        version(number, "krr", epsilon, texts(3)) for number, epsilon in enumerate((0.5, 1.0, 1.0, 2.0, 5.0), 1)
    ]
    form = {"id": "q", "version": 6, "alphabet": {"id": "closed", "values": texts(3)[::-1]}, "mechanism": CHANNEL}
    versions.append(Collection.from_json(form))
    orders = [[one.alphabet.known_values.index(value) for value in texts(3)] for one in versions]
    for _ in range(20):
        sizes = np.round(10 ** rng.uniform(0.5, 5, len(versions))).astype(int).tolist()
        weights, loss = version_weights(tuple(versions), tuple(texts(3))).of(np.array(sizes))
        assert weights.sum(axis=0) == pytest.approx(1)
        for people in populations(3, *sizes):
            errors = []
            for one, order, n in zip(versions, orders, sizes):
                held = np.zeros(3)
                held[order] = people
                errors.append(squared_errors(one, held, n)[order])
            together = (weights**2 * errors).sum(axis=0)
            assert (together <= loss * np.min(errors, axis=0) * (1 + 1e-9)).all()


def test_how_precise_values_are_compared_with_their_symbols() -> None:
    """A hashed value is known from its h of k buckets: h (1 - h / k) times, if not more than half of them are its own.
    A value with a symbol of its own is as precise as this; the other holder has the next bucket, if there is one."""
    listed = {"non_sensitive": ["n0", "n1"]}
    urr = {"mechanism": {"id": "urr", "epsilon": 1.0}}
    cases = (
        (hashed(1, 1.0), ("x", "y"), [0, 0], [0, 0], [1, 1], [7 / 8, 7 / 8]),
        (hashed(1, 1.0, num_buckets=2), ("x",), [0], [0], [1], [0.5]),
        (
            Collection.from_json(hashed(1, 1.0, **listed).to_json() | urr),
            ("n1", "x"),
            [3, 0],
            [9, 0],
            [9, 1],
            [1, 7 / 8],
        ),
        (version(1, "krr", 1.0, texts(3)), ("v02", "v00"), [2, 2], [2, 0], [2, 0], [1, 1]),
        (version(1, "urr", 1.0, texts(3)), ("v02", "v00"), [3, 2], [2, 0], [2, 0], [1, 1]),
    )
    for model, values, labels, symbols, others, scale in cases:
        found = _symbols(model, values)
        assert [part.tolist() for part in found[:3]] == [labels, symbols, others]
        np.testing.assert_allclose(found[3], scale)


@pytest.mark.parametrize("mechanism", ["krr", "rappor", "ss"])
@pytest.mark.parametrize("size", [2, 3, 20, 100])
def test_how_large_the_loss_is(mechanism: str, size: int) -> None:
    """The figures of docs/roll-out.md: over all ratios of the numbers of reports from 1:1000 to 1000:1.

    The cost is the variance in a uniform population, in units of the least one.
    """
    ratios, even = np.logspace(-3, 3, 61), np.full(size, 1 / size)
    for epsilon, limit, cost in ((1.5, 1.0, 1.01), (2.0, 1.0, 1.01), (3.0, 1.0, 1.15), (4.0, 1.6, 1.4), (8.0, 9.5, 5)):
        versions = [version(1, mechanism, 1.0, texts(size)), version(2, mechanism, epsilon, texts(size))]
        found = []
        for ratio in ratios:
            old = round(1_000_000 * ratio / (1 + ratio))
            weights, loss = weighed(versions, (old, 1_000_000 - old))
            found.append(loss.max())
            alone = np.array([one.mechanism.variances(even)[0] / n for one, n in zip(versions, (old, 1_000_000 - old))])
            assert weights[:, 0] ** 2 @ alone <= cost / (1 / alone).sum()
        assert max(found) <= limit + 1e-9
        weights, loss = weighed(versions, (1000, 1000))
        assert loss.max() <= 1 + 1e-9
        alone = np.array([one.mechanism.variances(even)[0] for one in versions])
        assert weights[:, 0] ** 2 @ alone <= min(cost, 1.25) / (1 / alone).sum()


def test_no_fixed_weights_are_safe_between_few_good_and_many_bad_reports() -> None:
    """With ratios r and r' of the variances in two populations, weights exist if and only if (r - 1) (r' - 1) <= 4."""
    versions = [version(1, "krr", 1.0, texts(2)), version(2, "krr", 8.0, texts(2))]
    ends = np.array([squared_errors(one, np.array([0.0, 1.0]), n)[0] for one, n in zip(versions, (5000, 100))])
    middle = np.array([squared_errors(one, np.array([0.5, 0.5]), n)[0] for one, n in zip(versions, (5000, 100))])
    assert ends[1] < ends[0]
    assert middle[0] < middle[1]
    assert (ends[0] / ends[1] - 1) * (middle[1] / middle[0] - 1) > 4
    for weight in np.linspace(0, 1, 2001):
        both = np.array([weight, 1 - weight]) ** 2
        assert max(both @ ends / ends.min(), both @ middle / middle.min()) > 1
    assert weighed(versions, (5000, 100))[1].max() > 1


@pytest.mark.parametrize("estimator", ["empirical", "eb", "projected", "normalized", "threshold"])
@pytest.mark.parametrize("is_open", [False, True])
def test_one_version_with_reports_has_its_own_estimate(estimator: str, *, is_open: bool) -> None:
    """Also if another version has none; to the last digits that sums of weights lose."""
    values = texts(30)
    versions = [hashed(1, 1.0), hashed(2, 2.0)] if is_open else [version(n, "krr", n, values) for n in (1, 2)]
    rng = generator("alone", estimator, is_open)
    counts = versions[0].count(versions[0].perturb(rng.choice(values[:9], 4000).tolist(), rng))
    window = pooled(versions[::-1], [versions[1].count(versions[1].perturb([])), counts], estimator, tuple(values))
    own = versions[0].estimate(counts, estimator, values if is_open else None)
    assert (window.used, window.agreement) == ((0,), None)
    for name in ("frequencies", "raw_frequencies", "standard_errors", "ci_low", "ci_high"):
        assert getattr(window.estimate, name) == pytest.approx(getattr(own, name), abs=1e-9), name
    assert window.estimate.values == own.values
    assert window.estimate.unexplained_mass == (None if own.unexplained_mass is None else pytest.approx(own.left_over))
    assert window.estimate.unexplained_standard_error == pytest.approx(own.unexplained_standard_error)


def test_values_may_be_in_another_order() -> None:
    names, rng = texts(4), generator("order")
    versions = [version(1, "krr", 1.0, names), version(2, "krr", 1.0, names[::-1])]
    cells = rng.integers(5, 90, 4).tolist()
    window = pooled(versions, [counted(cells), counted(cells[::-1])])
    own = versions[0].estimate(counted(cells)).raw_frequencies
    assert window.estimate.values == tuple(names[::-1])  # that of the newest
    assert window.estimate.raw_frequencies[::-1] == pytest.approx(own, abs=1e-12)
    assert window.agreement is not None
    assert window.agreement.p_value == pytest.approx(1)


def test_the_number_of_a_version_does_not_decide_its_weight() -> None:
    counts = [counted([30, 50, 20]), counted([120, 20, 60])]
    given = [version(1, "krr", 1.0, texts(3)), version(2, "krr", 2.0, texts(3))]
    swapped = [version(2, "krr", 1.0, texts(3)), version(1, "krr", 2.0, texts(3))]
    one, other = (pooled(versions, counts).estimate for versions in (given, swapped))
    assert one.raw_frequencies == pytest.approx(other.raw_frequencies, abs=1e-12)


def test_hash_noise_of_the_same_hash_functions_does_not_average_out() -> None:
    """Half of the reports under another epsilon leave the noise of few cohorts as it is."""
    versions, rng = [hashed(1, 3.0, cohorts=8), hashed(2, 3.0, cohorts=8)], generator("hash noise")
    people = rng.choice(["x", "y", *texts(12)], 400_000).tolist()
    counts = [one.count(one.perturb(people[place::2], rng)) for place, one in enumerate(versions)]
    asked = tuple(texts(12))
    together = pooled(versions, counts, asked=asked).estimate
    alone = [one.estimate(each, "empirical", asked) for one, each in zip(versions, counts)]
    assert together.common_variances is not None
    least = np.min([np.sqrt(np.maximum(each.common_variances, 0)) for each in alone], axis=0)
    assert (np.sqrt(together.common_variances) >= least - 1e-12).all()
    assert (together.standard_errors >= least - 1e-12).all()


def test_a_version_that_cannot_be_estimated_is_left_out_and_named() -> None:
    versions, rng = [hashed(1, 2.0), hashed(2, 2.0)], generator("left out")
    counts = [one.count(one.perturb(["v01"] * size, rng)) for one, size in zip(versions, (5000, 1))]
    window = pooled(versions, counts, asked=tuple(texts(30)))
    assert (window.used, window.left_out, window.estimate.num_reports) == ((0,), (1,), 5000)
    with pytest.raises(Exception, match="cohorts") as caught:
        pooled(versions[1:], counts[1:], asked=tuple(texts(30)))
    assert caught.value.status == "insufficient_cohorts"


@pytest.mark.parametrize("size", [64, 65])
def test_how_versions_with_few_and_with_many_values_agree_by_the_formula(size: int) -> None:
    """Up to 64 values by all of them together, with 63 degrees of freedom for each version but one. Beyond, by the
    value that differs most: its chi-square probability for 3 versions, times the number of values, at most 1. Its
    distance is that at which a normal variable is as rare as a Poisson count."""
    versions = [version(number, "krr", epsilon, texts(size)) for number, epsilon in enumerate((1.0, 2.0, 3.0), 1)]
    rng = generator("agreement", size)
    for extra in (5, 900):
        cells = rng.integers(50, 60, (3, size))
        cells[1, 7] += extra
        counts = [counted(row.tolist()) for row in cells]
        found = pooled(versions, counts).agreement
        assert found is not None
        if size == 64:
            assert found.degrees == 2 * 63
            continue
        each = [one.estimate(part, "empirical") for one, part in zip(versions, counts)]
        raw, errors = (
            np.array([getattr(one, name) for one in each]) for name in ("raw_frequencies", "standard_errors")
        )
        mean = np.average(raw, axis=0, weights=errors**-2.0)
        jumps = np.array([[one.mechanism.jumps[0] / part.total] for one, part in zip(versions, counts)])
        distances, fewest = (((raw - mean) / errors) ** 2).sum(axis=0), ((errors / jumps) ** 2).min(axis=0)
        excess = np.sqrt(distances / fewest)
        largest = (2 * fewest * ((1 + excess) * np.log(1 + excess) - excess)).max()
        assert (found.statistic, found.degrees) == (pytest.approx(largest), 2)
        assert found.p_value == pytest.approx(min(1.0, size * math.exp(-largest / 2)))
        assert (found.p_value < 1) == (extra == 900)


def test_the_fit_of_versions_is_the_worst_one_times_their_number() -> None:
    for given, expected in (((0.2, None, 0.05), 0.1), ((0.6, 0.9), 1.0), ((0.3,), 0.3), ((None, None), None)):
        estimates: Any = [SimpleNamespace(fit_p_value=p_value) for p_value in given]
        assert _fit(estimates) == (None if expected is None else pytest.approx(expected))


def test_reports_of_the_same_people_count_for_less_in_their_version() -> None:
    """One report of a person if nothing is said."""
    fresh = version(2, "krr", 1.0, texts(3))
    memos = {"version": 1, "mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0}, "client_window": "1d"}
    versions = [Collection.from_json(fresh.to_json() | memos), fresh]
    counts = [counted([30, 50, 20]), counted([120, 20, 60])]

    def errors(*times: int | None) -> np.ndarray:
        return pool(ESTIMATORS["empirical"](), versions, counts, None, times).estimate.standard_errors

    once = pooled(versions, counts).estimate.standard_errors.tolist()
    assert errors().tolist() == errors(1, 1).tolist() == once
    assert (errors(7, 1) > errors(2, 1)).all() and (errors(2, 1) > once).all() and (errors(1, 2) > once).any()
    with pytest.raises(ValueError, match="zip"):
        pool(ESTIMATORS["empirical"](), versions, counts[:1])


def missed(versions: Sequence[Collection], frequencies: np.ndarray, sizes: Sequence[int], windows: int) -> np.ndarray:
    """Windows in which the interval of each value misses its share."""
    rng, number = generator("coverage", *sizes), np.zeros(len(frequencies))
    laws = [one.mechanism.response(frequencies) for one in versions]
    for _ in range(windows):
        counts = [counted(rng.multinomial(n, law / law.sum()).tolist()) for n, law in zip(sizes, laws)]
        estimate = pooled(versions, counts, "projected").estimate
        low, high = estimate.unclipped(0.95)
        number += (frequencies < low) | (frequencies > high)
    return number


ZIPF = 1 / np.arange(1, 21) / (1 / np.arange(1, 21)).sum()


def test_intervals_hold_in_some_windows() -> None:
    versions = [version(number, "krr", epsilon, texts(20)) for number, epsilon in enumerate((0.5, 1.0, 3.0), 1)]
    _, high = binomial_limits(np.full(20, 100), np.full(20, 0.06))
    assert (missed(versions, ZIPF, (3000, 2000, 1000), 100) <= high).all()


@pytest.mark.slow
def test_intervals_hold_in_94_to_96_per_cent_of_windows() -> None:
    """5,000 windows; each value within the binomial limits around 4 to 6 % of misses."""
    versions = [version(number, "krr", epsilon, texts(20)) for number, epsilon in enumerate((0.5, 1.0, 3.0), 1)]
    number = missed(versions, ZIPF, (3000, 2000, 1000), 5000)
    print(f"covered: {1 - number.max() / 5000:.4f} to {1 - number.min() / 5000:.4f}")
    (least, _), (_, most) = (binomial_limits(np.full(20, 5000), np.full(20, rate)) for rate in (0.04, 0.06))
    assert within(number, (least, most)).all()


@pytest.mark.slow
def test_intervals_of_an_open_alphabet_hold() -> None:
    """500 windows of 12 listed and 4 unlisted texts, with new hash functions in each."""
    values, rng, number = texts(12), generator("open coverage"), np.zeros(12)
    shares = 1 / np.arange(1, 17)
    shares /= shares.sum()
    for window in range(500):
        versions = [hashed(place, epsilon, 32, seed=window) for place, epsilon in enumerate((1.0, 3.0), 1)]
        people = [rng.choice([*values, "w", "x", "y", "z"], 4000, p=shares).tolist() for _ in versions]
        counts = [one.count(one.perturb(each, rng)) for one, each in zip(versions, people)]
        low, high = pooled(versions, counts, "eb", tuple(values)).estimate.unclipped(0.95)
        number += (shares[:12] < low) | (shares[:12] > high)
    print(f"covered: {1 - number.max() / 500:.3f} to {1 - number.min() / 500:.3f}, mean {1 - number.mean() / 500:.4f}")
    assert (number <= binomial_limits(np.full(12, 500), np.full(12, 0.06))[1]).all()


# ---------------------------------------------------------------------- which versions are pooled


def test_questions_are_those_that_collections_name() -> None:
    first, second = version(2, "krr", 1.0, texts(3)), version(1, "krr", 2.0, texts(3))
    other = version(1, "krr", 1.0, texts(3), question="another")
    alone = version(1, "krr", 1.0, texts(3), question=None)
    found = questions_of([first, second, other, alone])
    assert [(one.id, [v.version for v in one.collections]) for one in found] == [("another", [1]), ("asked", [1, 2])]
    assert [one.fingerprint for one in found] == [
        hashlib.sha256(b"question\0" + name).digest() for name in (b"another", b"asked")
    ]  # rows that were written earlier have it


def test_versions_with_other_values_are_not_pooled() -> None:
    old, new = version(1, "krr", 1.0, texts(3)), version(2, "krr", 1.0, texts(4))
    assert of(old, new).pooled == (new,)
    assert of(old, version(2, "krr", 1.0, texts(3)[::-1])).pooled[0] == old
    opened = [hashed(1, 1.0, non_sensitive=["a"]), hashed(2, 1.0)]
    assert of(*opened).pooled == (opened[1],)


def test_the_question_is_not_part_of_the_fingerprint() -> None:
    one, other = version(1, "krr", 1.0, texts(3)), version(1, "krr", 1.0, texts(3), question="another")
    assert one.fingerprint == other.fingerprint
    assert one != other
    assert Collection.from_json(one.to_json()) == one
    assert "question" not in one.canonical


def test_groups_keep_their_numbers_whatever_versions_there_are():
    """Streams hold counts under them while versions are added and removed; without names there are no groups."""
    form = {"alphabet": {"id": "closed", "values": ["0", "1"]}, "mechanism": {"id": "krr", "epsilon": 1}, "id": "q"}
    arms = (None, ["a", "b"], ["c", "b"])
    versions = [
        Collection.from_json(
            form
            | {"version": number, "question": "q"}
            | ({} if values is None else {"dimensions": [{"name": "arm", "values": values}]})
        )
        for number, values in enumerate(arms, 1)
    ]
    [whole] = questions_of(versions)
    numbers = whole.groups_by(("arm",))
    assert sorted(numbers) == [("a",), ("b",), ("c",), ("other",)]
    assert len(set(numbers.values())) == 4 and 0 <= min(numbers.values()) <= max(numbers.values()) < 1 << 32
    for part in (versions[:2], versions[1:2], versions[2:], versions[::-1]):
        [question] = questions_of(part)
        found = question.groups_by(("arm",))
        assert found.items() <= numbers.items() and len(found) >= 3
    assert whole.groups_by(()) == whole.groups_by(("place",)) == {}


def test_groups_with_the_same_hash_have_two_numbers(monkeypatch):
    monkeypatch.setattr(hashlib, "sha256", lambda _: SimpleNamespace(digest=lambda: bytes([255] * 32)))
    form = {"alphabet": {"id": "closed", "values": ["0", "1"]}, "mechanism": {"id": "krr", "epsilon": 1}, "id": "q"}
    of = Collection.from_json(
        form | {"version": 1, "question": "q", "dimensions": [{"name": "arm", "values": ["a", "b"]}]}
    )
    [question] = questions_of([of])
    assert question.groups_by(("arm",)) == {("a",): (1 << 32) - 1, ("b",): 0, ("other",): 1}
