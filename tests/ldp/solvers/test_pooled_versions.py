"""Pooled versions: exact moments by enumeration, the best of all weights, coverage, and the test of agreement."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.refusals.ldp.pooled_solvers import MIXED, counted, krr, texts, version
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.counts.enough_reports import merged_values
from uldp_transforms.ldp.errors import NoReportsError
from uldp_transforms.ldp.solvers.pooled_versions import PooledVersions

# Answers (0, 1) of MTURK in the R package GLMMRR 0.6.0 (Hoeglinger and Jann, University of Bern social sciences working
# papers 8 and 17), all designs but direct questions: crosswise .1594625, .1971293, (.1974625), forced, unrelated.
MTURK = {
    "dice": [(291, 859), (340, 816), (1278, 248), (327, 52), (322, 53), (329, 62), (331, 59)],
    "voting": [(483, 680), (250, 323), (243, 327), (899, 626), (237, 156), (238, 152), (236, 140), (236, 139)],
    "shoplifting": [(562, 604), (542, 605), (706, 815), (171, 207), (183, 208), (180, 197), (181, 207)],
    "taxes": [(339, 801), (364, 806), (1108, 418), (294, 90), (284, 96), (290, 100), (286, 92)],
}
UNRELATED = ["0.49", "0.493", "0.495", "0.521"]


def two_by_two(yes: float, no: float) -> Collection:
    """Of Pr(answer 1 | yes) and Pr(answer 1 | no); columns no, yes."""
    digits = [f"{rate:.12f}" for rate in (no, yes)]
    others = [f"{1 - float(rate):.12f}" for rate in digits]
    return version({"id": "channel", "clients": "foreign", "matrix": [others, digits]}, ["no", "yes"])


def designs(question: str) -> PooledVersions:
    crosswise = [0.1594625, 0.1971293, *([0.1974625] if question == "voting" else [])]
    keep = [(0.75, 2 / 3), *((0.778, float(rate)) for rate in UNRELATED)]
    of_crosswise = [two_by_two(q, 1 - q) for q in crosswise]
    return PooledVersions(of_crosswise + [two_by_two(p + (1 - p) * yes, (1 - p) * yes) for p, yes in keep])


def drawn(pooled: PooledVersions, frequencies: np.ndarray, n: int, rng: np.random.Generator) -> list[CohortCounts]:
    """Counts of n reports of each version, for mechanisms whose report is one cell."""
    laws = [each.mechanism.response(frequencies) for each in pooled.versions]
    return [counted(rng.multinomial(n, law / law.sum())) for law in laws]


@pytest.mark.parametrize(
    "mechanisms", list(itertools.combinations(MIXED, 2)), ids=lambda pair: "-".join(m["id"] for m in pair)
)
def test_mean_and_covariance_by_enumeration(mechanisms):
    frequencies = np.array([0.7, 0.2, 0.1])
    pooled = PooledVersions([version(each, texts(3)) for each in mechanisms])
    outcomes = []
    for each in pooled.versions:
        payloads, rows = each.mechanism.channel()
        arrays = np.array([list(payload) for payload in payloads], dtype=np.uint8)
        cells = each.mechanism.count(arrays, np.arange(len(arrays)), len(arrays))
        chances = np.array([[float(entry) for entry in row] for row in rows]) @ frequencies
        one = [CohortCounts(np.ones(1, np.int64), cells[i : i + 1]) for i in range(len(cells))]
        outcomes.append(list(zip(chances, one)))
    mean, square = np.zeros(3), np.zeros((3, 3))
    for (p, first), (q, second) in itertools.product(*outcomes):
        raw = pooled.estimate([first, second]).raw_frequencies
        mean += p * q * raw
        square += p * q * np.outer(raw, raw)
    np.testing.assert_allclose(mean, frequencies, atol=1e-9)
    covariance = pooled.covariance([1, 1], frequencies)
    np.testing.assert_allclose(square - np.outer(mean, mean), covariance, atol=1e-9 * np.abs(covariance).max())


@pytest.mark.parametrize("seed", range(20))
def test_uniform_population_is_never_less_precise_than_a_version(seed):
    rng = np.random.default_rng(seed)
    size, number = int(rng.integers(2, 12)), int(rng.integers(2, 6))
    ids, epsilons = rng.choice(["krr", "rappor", "ss"], number), rng.uniform(0.2, 6, number)
    pooled = PooledVersions(
        [version({"id": str(name), "epsilon": float(e)}, texts(size)) for name, e in zip(ids, epsilons)]
    )
    sizes = rng.integers(1, 10_000, number).tolist()
    even = np.full(size, 1 / size)
    together = pooled.covariance(sizes, even)
    for index, n in enumerate(sizes):
        alone = pooled.covariance_of_report(index, even) / n
        gaps = np.linalg.eigvalsh(alone - together)
        assert gaps[0] >= -1e-9 * np.abs(alone).max()


def test_fixed_weights_can_lose_on_a_concentrated_population():
    pooled, one = krr(2, 1.0, 8.0), np.array([1.0, 0.0])
    best = min(pooled.covariance_of_report(index, one)[0, 0] for index in range(2))
    assert pooled.covariance([1, 1], one)[0, 0] > 10 * best  # the limit that the module's docstring states


def test_values_may_be_in_another_order():
    first, second = version(MIXED[0], ["a", "b", "c"]), version(MIXED[0], ["c", "a", "b"])
    pooled = PooledVersions([first, second])
    estimate = pooled.estimate([counted(np.array([50, 30, 20])), counted(np.array([20, 50, 30]))])
    alone = first.mechanism.invert(counted(np.array([50, 30, 20])))[0]
    np.testing.assert_allclose(estimate.raw_frequencies, alone, atol=1e-12)
    assert estimate.values == ("a", "b", "c")
    assert estimate.agreement.p_value == pytest.approx(1)


MANY = [
    [("krr", 1.0), ("krr", 2.0), ("rappor", 2.0)],
    [("hr", 1.0), ("ss", 0.5)],
    [("urr", 0.5), ("krr", 1.0), ("urap", 2.0)],
    [("uss", 1.0), ("uhr", 3.0)],
    [("krr", 8.0), ("channel", 1.0), ("urr", 6.0)],
]


@pytest.mark.parametrize("size", [2, 3, 8, 64])
@pytest.mark.parametrize("mechanisms", MANY, ids=lambda mix: "-".join(name for name, _ in mix))
def test_the_test_of_agreement_is_that_of_dense_pseudo_inverses(mechanisms, size):
    """Also for values in other orders, clear ones, and those that nobody holds, which are merged."""
    rng, values, sizes = (
        np.random.default_rng(size),
        texts(size),
        np.array([1000.0, 20_000.0, 300.0])[: len(mechanisms)],
    )
    pooled = PooledVersions(
        [some_sensitive(*one, rng.permutation(values).tolist()) for one in mechanisms], tuple(values)
    )
    for population in (np.full(size, 1 / size), np.eye(size)[0], np.eye(size)[-1], rng.dirichlet(np.full(size, 0.2))):
        held = population + 0.5 / sizes.sum()
        held /= held.sum()
        covariances = [pooled.covariance_of_report(index, held) for index in range(len(sizes))]
        noise = [np.linalg.svd(each, hermitian=True) for each in covariances]
        alone = np.array(
            [population + u @ (np.sqrt(s / n) * rng.normal(size=size)) for (u, s, _), n in zip(noise, sizes)]
        )
        jumps = [each.mechanism.jumps[each.alphabet.symbol_table(tuple(values), 1)[0]] for each in pooled.versions]
        sums = [merged_values(*each) for each in zip(covariances, jumps, sizes)]
        merged = [each @ covariance @ each.T for each, covariance in zip(sums, covariances)]
        inverses = [
            n * each.T @ np.linalg.pinv(covariance, 1e-10, hermitian=True) @ each
            for each, covariance, n in zip(sums, merged, sizes)
        ]
        found = pooled.agreement(alone, population, sizes)
        if sum(len(each) > 0 for each in sums) < 2:
            assert found is None
            continue
        contrasts = np.eye(size)[:-1] - np.eye(size)[-1]
        pulls = sum(contrasts @ each @ (own - 1 / size) for each, own in zip(inverses, alone))
        steps = np.linalg.pinv(contrasts @ sum(inverses) @ contrasts.T, 1e-10, hermitian=True) @ pulls
        gaps = alone - (1 / size + contrasts.T @ steps)
        assert found.statistic == pytest.approx(sum(g @ each @ g for g, each in zip(gaps, inverses)), rel=1e-9)
        ranks = sum(np.linalg.matrix_rank(each, 1e-10 * np.trace(each), hermitian=True) for each in merged if len(each))
        seen = np.linalg.matrix_rank(np.concatenate([np.ones((1, size)), *sums])) - 1
        assert found.degrees == ranks - seen


def some_sensitive(mechanism: str, epsilon: float, values: list[str]) -> Collection:
    """A version that protects the first quarter of its values, or all, depending on the mechanism."""
    if mechanism == "channel":  # half of the people answer at random
        size = len(values)
        rows = [[f"{1 + size * (own == answer)}/{2 * size}" for own in range(size)] for answer in range(size)]
        return version({"id": "channel", "clients": "foreign", "matrix": rows}, values)
    alphabet: dict[str, object] = {"id": "closed", "values": values}
    if mechanism.startswith("u"):
        alphabet["sensitive"] = values[: -(-len(values) // 4)]
    return made(alphabet, {"id": mechanism, "epsilon": epsilon}, id="q")


def test_version_without_reports_says_nothing():
    pooled, some = krr(3, 1.0, 2.0), counted(np.array([50, 30, 20]))
    estimate = pooled.estimate([counted(np.zeros(3, int)), some])
    np.testing.assert_allclose(estimate.raw_frequencies, pooled.versions[1].mechanism.invert(some)[0], atol=1e-12)
    assert estimate.agreement is None
    with pytest.raises(NoReportsError, match="the versions of this question have no reports"):
        pooled.estimate([counted(np.zeros(3, int))] * 2)


def test_designs_of_a_real_survey_agree_unless_people_do_not_follow_one():
    p_values = {
        question: designs(question).estimate([counted(np.array(pair)) for pair in answers]).agreement.p_value
        for question, answers in MTURK.items()
    }
    assert p_values.pop("dice") < 1e-9
    assert min(p_values.values()) >= 0.01


def test_intervals_are_as_long_on_both_sides():
    estimate = krr(3, 1.0, 2.0).estimate([counted(np.array([50, 30, 20])), counted(np.array([70, 10, 0]))])
    for confidence, quantile in ((0.95, 1.959964), (0.5, 0.6744898)):
        low, high = estimate.intervals(confidence)
        half = quantile * np.sqrt(np.diag(estimate.covariance))
        np.testing.assert_allclose((low, high), estimate.raw_frequencies + np.outer([-1, 1], half), rtol=1e-6)


@pytest.mark.slow
def test_intervals_hold_and_p_values_are_uniform():
    """2,000 windows; false alarm 1e-3 of each bound."""
    pooled, rng, windows = krr(20, 0.5, 1.0, 3.0), np.random.default_rng(20), 2000
    frequencies = 1 / np.arange(1.0, 21)
    frequencies /= frequencies.sum()
    held, p_values = np.zeros(20), []
    for _ in range(windows):
        estimate = pooled.estimate(drawn(pooled, frequencies, 20_000, rng))
        low, high = estimate.intervals()
        held += (low <= frequencies) & (frequencies <= high)
        p_values.append(estimate.agreement.p_value)
    assert 0.94 <= held.mean() / windows <= 0.96
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_power_where_clients_of_one_version_send_noise():
    """5 % of one of three versions, 20,000 reports each, epsilon 2; one of two values is held by 90 %."""
    pooled, rng, windows = krr(2, 2.0, 2.0, 2.0), np.random.default_rng(5), 1000
    frequencies, found = np.array([0.9, 0.1]), 0
    for _ in range(windows):
        counts = drawn(pooled, frequencies, 20_000, rng)
        law = 0.95 * pooled.versions[0].mechanism.response(frequencies) + 0.05 / 2
        counts[0] = counted(rng.multinomial(20_000, law / law.sum()))
        found += pooled.estimate(counts).agreement.p_value < 0.05
    assert found / windows >= 0.9
