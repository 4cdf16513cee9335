"""Do versions agree, where one has few reports: false alarms and power; see docs/decisions/0085-pooled-versions.md."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.counts.enough_reports import chi_square_tail, merged_values
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.sentinels import FALSE_ALARMS
from uldp_transforms.ldp.solvers.pooled_versions import PooledVersions
from uldp_transforms.ldp.versions.pooled_estimate import PooledWindow, pool

MOST = 1.5 * FALSE_ALARMS
"""Maximum share of honest windows that ring."""

VALUES = ("a", "b", "c", "d", "e", "f")
Version = tuple[str, float, int]
"""Mechanism, epsilon, and number of reports."""

PAIRS: list[tuple[Version, Version]] = [
    (("urr", 1.0, 20), ("urr", 2.0, 20_000)),
    (("urr", 1.0, 60), ("urr", 2.0, 5000)),
    (("krr", 4.0, 20), ("krr", 4.0, 20_000)),
    (("krr", 1.0, 60), ("krr", 2.0, 5000)),
    (("krr", 1.0, 5000), ("uss", 2.0, 100)),
    (("uss", 2.0, 20), ("uss", 1.0, 20_000)),
    (("uss", 1.0, 60), ("krr", 2.0, 5000)),
    (("rappor", 4.0, 20), ("rappor", 2.0, 20_000)),
]


SMALL: list[Version] = [
    ("krr", 1.0, 60),
    ("krr", 4.0, 60),
    ("urr", 2.0, 60),
    ("uss", 1.0, 60),
    ("uss", 2.0, 100),
    ("rappor", 4.0, 60),
    ("rappor", 2.0, 100),
]


def shares(exponent: float) -> np.ndarray:
    weights = np.arange(1.0, len(VALUES) + 1) ** -exponent
    return weights / weights.sum()


def collection(mechanism: str, epsilon: float) -> Collection:
    """A third of the values is sensitive, if the mechanism distinguishes them."""
    alphabet: dict[str, object] = {"id": "closed", "values": VALUES}
    if mechanism.startswith("u"):
        alphabet["sensitive"] = VALUES[:2]
    return made(alphabet, {"id": mechanism, "epsilon": epsilon}, id="q")


class Windows:
    """Counts of one version, drawn from the exact distribution of its reports."""

    def __init__(self, version: Version) -> None:
        mechanism, epsilon, self.num_reports = version
        self.model = collection(mechanism, epsilon)
        payloads, rows = self.model.mechanism.channel()
        codes = np.array([list(payload) for payload in payloads], dtype=np.uint8)
        self._cells = self.model.mechanism.count(codes, np.arange(len(codes)), len(codes))
        self._channel = np.array([[float(entry) for entry in row] for row in rows])

    def drawn(self, frequencies: np.ndarray, windows: int, rng: np.random.Generator) -> list[CohortCounts]:
        law = self._channel @ frequencies
        reports = rng.multinomial(self.num_reports, law / law.sum(), size=windows)
        sizes = np.array([self.num_reports])
        return [CohortCounts(sizes, each[np.newaxis]) for each in reports @ self._cells]


def pooled(pair: tuple[Version, Version], exponent: float, number: int, moved: float = 0.0) -> list[PooledWindow]:
    """Windows in which this share of the people of the smaller version says the rarest value instead."""
    versions, population = [Windows(each) for each in pair], shares(exponent)
    rng, few = generator("few reports", pair, exponent, moved), min(each.num_reports for each in versions)
    other = (1 - moved) * population + moved * np.eye(len(VALUES))[-1]
    counts = [each.drawn(other if each.num_reports == few else population, number, rng) for each in versions]
    models = [each.model for each in versions]
    return [pool(ESTIMATORS["empirical"](), models, window) for window in zip(*counts)]


def alarms(windows: list[PooledWindow]) -> int:
    return sum(each.agreement is not None and each.agreement.p_value < FALSE_ALARMS for each in windows)


@pytest.mark.parametrize("pair", [PAIRS[0], PAIRS[5]], ids=str)
def test_twenty_reports_of_one_version_ring_as_seldom_as_many(pair: tuple[Version, Version]) -> None:
    """With urr and uss, 21 and 24 of 1,000 such windows rang when cells with hardly any report were compared."""
    number = 1500
    _, high = binomial_limits(np.array(number), np.array(MOST))
    assert alarms(pooled(pair, 2.5, number)) <= high


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [1.0, 2.5])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_honest_versions_ring_in_one_and_a_half_of_a_thousand_windows(
    pair: tuple[Version, Version], exponent: float
) -> None:
    number = 10_000
    _, high = binomial_limits(np.array(number), np.array(MOST))
    assert alarms(pooled(pair, exponent, number)) <= high


def tails(version: Version, exponent: float, draws: int) -> tuple[float, float]:
    """Alarms per 1,000 windows of one version whose population is known: by the chi-square law, and corrected."""
    drawn, population, (_, _, n) = Windows(version), shares(exponent), version
    model, law = drawn.model, drawn._channel @ population
    one = [model.estimate(CohortCounts(np.array([1000]), 1000 * cells[np.newaxis])) for cells in drawn._cells]
    reports = generator("tails", version, exponent).multinomial(n, law / law.sum(), size=draws)
    versions = PooledVersions([model, model])
    covariance, jumps = versions.covariance_of_report(0, population), model.mechanism.jumps
    sums = merged_values(covariance, jumps, n)
    if not len(sums):
        return 0.0, 0.0
    gaps = (reports @ np.array([each.raw_frequencies for each in one]) / n - population) @ sums.T
    spread = sums @ covariance @ sums.T
    degrees = int(np.linalg.matrix_rank(spread, tol=1e-9 * np.trace(spread)))
    statistics = n * np.einsum("ri,ij,rj->r", gaps, np.linalg.pinv(spread, rcond=1e-9), gaps)
    corrected = versions._corrections(0, population, sums, n)
    values = np.array([chi_square_tail(each, degrees, corrected) for each in statistics])
    rates = [1000 * float((each < FALSE_ALARMS).mean()) for each in (stats.chi2.sf(statistics, degrees), values)]
    return rates[0], rates[1]


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [1.0, 2.5])
@pytest.mark.parametrize("version", SMALL, ids=str)
def test_a_version_of_few_reports_rings_in_one_and_a_half_of_a_thousand_windows(
    version: Version, exponent: float
) -> None:
    """That of the rest is known. The plain chi-square law rings in up to 2.1."""
    number = 400_000
    _, high = binomial_limits(np.array(number), np.array(MOST))
    assert tails(version, exponent, number)[1] * number / 1000 <= high


def test_a_version_with_few_reports_does_not_blind_the_test_of_the_others() -> None:
    """Two versions of 20,000 reports that do not agree, beside one of 20."""
    versions = [Windows(("urr", 1.0, 20)), Windows(("krr", 2.0, 20_000)), Windows(("krr", 1.0, 20_000))]
    rng, populations = generator("not blind"), [shares(2.5), shares(2.5), shares(1.0)]
    counts = [each.drawn(p, 1, rng)[0] for each, p in zip(versions, populations)]
    models = [each.model for each in versions]
    found = pool(ESTIMATORS["empirical"](), models, counts).agreement
    assert found is not None and found.p_value < 1e-9 and found.degrees == len(VALUES) - 1
    assert pool(ESTIMATORS["empirical"](), models[:2], counts[:2]).agreement is None


@pytest.mark.slow
def test_a_long_list_rings_as_seldom_where_few_report_each_value() -> None:
    """100 values by k-RR at epsilon 2: of 500 old reports, 5 are expected to name a value that nobody holds."""
    model = made({"id": "closed", "values": [f"v{x:02d}" for x in range(100)]}, {"id": "krr", "epsilon": 2.0}, id="q")
    rng, law, number = generator("long list"), model.mechanism.response(np.eye(100)[0]), 20_000
    old, new = (rng.multinomial(n, law / law.sum(), size=number) for n in (500, 20_000))
    windows = [
        pool(ESTIMATORS["empirical"](), [model, model], [CohortCounts(x.sum(keepdims=True), x[None]) for x in pair])
        for pair in zip(old, new)
    ]
    _, high = binomial_limits(np.array(number), np.array(MOST))
    assert alarms(windows) <= high


def main() -> None:
    """Print the alarms per 1,000 windows; an argument is the number of windows, or ``tails`` for those of p-values."""
    if sys.argv[1:] == ["tails"]:
        print("| version | plain, 1 / rank | corrected | plain, 1 / rank^2.5 | corrected |\n|---|---|---|---|---|")
        for mechanism, epsilon, reports in SMALL:
            cells = [f"{rate:.2f}" for e in (1.0, 2.5) for rate in tails((mechanism, epsilon, reports), e, 200_000)]
            print(f"| {reports:,} {mechanism} at {epsilon:g} | " + " | ".join(cells) + " |", flush=True)
        return
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print("| versions | agree, 1 / rank | agree, 1 / rank^2.5 | 30 % differ, 1 / rank | 30 % differ, 1 / rank^2.5 |")
    print("|---|---|---|---|---|")
    for pair in PAIRS:
        settings = [(1.0, 0.0), (2.5, 0.0), (1.0, 0.3), (2.5, 0.3)]
        rates = [alarms(pooled(pair, exponent, number, moved)) / number * 1000 for exponent, moved in settings]
        name = " + ".join(f"{reports:,} {mechanism} at {epsilon:g}" for mechanism, epsilon, reports in pair)
        print(f"| {name} | " + " | ".join(f"{rate:.1f}" for rate in rates) + " |", flush=True)


if __name__ == "__main__":
    main()
