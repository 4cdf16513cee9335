"""Sentinels: p-values that hold exactly, computed power that is reached, and what nobody can see."""

from __future__ import annotations

import itertools
import json
import math
import types
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from attacks import (
    ATTACKS,
    CANARIES,
    LEVEL,
    POPULATIONS,
    UNSOUND,
    WATCHED,
    closed,
    honest_windows,
    missing_noise,
    one_symbol,
    times_seen,
    unary,
    window,
    with_canaries,
)
from calibration import windows
from cases import ALL_COLLECTIONS, VALUES, enumerated
from scipy import stats
from tolerance import binomial_limits, generator, normal_limit

from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.sentinels import (
    FALSE_ALARMS,
    SENTINELS,
    _people_with_sensitive_values,
    _tail_of_two_binomials,
    examine,
)
from uldp_transforms.ldp.utility.canaries import canary_share

PRIORS = [[0.6, 0.4], [0.3, 0.7]]

FEW = [  # mechanism, values, sensitive ones, cohorts, reports, fields: all windows of so many reports are looked at
    ("krr", 2, 2, 1, 12, {}),
    ("krr", 3, 3, 2, 6, {}),
    ("krr", 3, 3, 1, 8, {"epsilon": 16.0}),
    ("urr", 3, 1, 2, 6, {}),
    ("urr", 4, 3, 1, 7, {"epsilon": 2.0**-10}),
    ("rappor", 2, 2, 2, 4, {}),
    ("rappor", 2, 2, 1, 9, {"epsilon": 16.0}),
    ("rappor", 2, 2, 1, 9, {"theta": 0.5}),
    ("urap", 3, 2, 1, 6, {}),
    ("urap", 4, 2, 1, 6, {"epsilon": 16.0}),
    ("urap", 3, 2, 1, 4, {"inversion": "marginal"}),
    ("ss", 4, 4, 1, 4, {"subset_size": 2}),
    ("uss", 4, 3, 2, 3, {"subset_size": 2}),
    ("agrr", 2, 2, 2, 6, {"priors": PRIORS}),
    ("aoue", 2, 2, 1, 8, {"priors": PRIORS}),
    ("tsp", 3, 3, 2, 5, {"missing_rates": [0.4, 0.05]}),
    ("up", 3, 3, 2, 5, {}),
]


def small(mechanism: str, num_values: int, v: int, num_cohorts: int, fields: dict) -> Collection:
    values = list(VALUES[:num_values])
    alphabet = {"id": "closed", "values": values} | ({"sensitive": values[:v]} if v < num_values else {})
    spec = {"id": "few", "version": 1, "alphabet": alphabet, "num_cohorts": num_cohorts}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": 1.0} | fields})


def test_every_mechanism_is_among_the_small_ones():
    assert {case[0] for case in FEW} == set(MECHANISMS)


@pytest.mark.parametrize(("mechanism", "num_values", "v", "num_cohorts", "n", "fields"), FEW)
def test_p_values_hold_exactly(mechanism, num_values, v, num_cohorts, n, fields):
    """Every window of n reports is examined; Pr(p <= a) is summed over them for many populations, for every a."""
    item = small(mechanism, num_values, v, num_cohorts, fields)
    _, channel, cells, _ = enumerated(item.mechanism)
    kinds = len(cells) * num_cohorts
    parts = np.array(
        [np.diff((-1, *bars, n + kinds - 1)) - 1 for bars in itertools.combinations(range(n + kinds - 1), kinds - 1)]
    )
    assert len(parts) == math.comb(n + kinds - 1, n) and (parts.sum(axis=1) == n).all()
    tables = parts.reshape(-1, num_cohorts, len(cells))
    counts = [CohortCounts(table.sum(axis=1), table @ cells.astype(np.int64)) for table in tables]
    judged = [{finding.name: finding.p_value for finding in examine(item, one)} for one in counts]

    populations = [*np.eye(num_values), *generator("few", mechanism).dirichlet(np.ones(num_values), 30)]
    laws = np.array([channel @ shares for shares in populations]) / num_cohorts
    for law in laws:
        chances = stats.multinomial.pmf(parts, n, np.tile(law / law.sum() / num_cohorts, num_cohorts))
        assert chances.sum() == pytest.approx(1)
        for name in judged[0]:
            p_values = np.array([found[name] for found in judged])
            order = np.argsort(p_values)
            at_most = np.cumsum(chances[order])[np.searchsorted(p_values[order], p_values[order], side="right") - 1]
            assert (at_most <= p_values[order] * (1 + 1e-9) + 1e-12).all(), name


def test_there_are_as_few_false_alarms_as_stated():
    """The rate of a window, all sentinels together; and each sentinel at the level of 5 %, which is closer by."""
    alarms, below = [], {name: [] for name in SENTINELS}
    for item, counts in honest_windows(3):
        findings = examine(item, counts)
        alarms.append(any(finding.fired for finding in findings))
        for finding in findings:
            below[finding.name].append(finding.p_value <= 0.05)
    assert sum(alarms) <= binomial_limits(len(alarms), FALSE_ALARMS)[1]
    for name, hits in below.items():
        assert sum(hits) <= binomial_limits(len(hits), 0.05)[1], name


@pytest.mark.parametrize("mechanism", ["krr", "rappor", "urap"])
def test_thousands_of_symbols_are_no_reason_for_an_alarm(mechanism):
    """The chances that belong to sets of thousands of symbols are far below the smallest number of 64 bits."""
    num_values, n = 4096, 1_000_000
    v = num_values // 2 if mechanism == "urap" else num_values
    item, rng = closed(mechanism, num_values, v), generator("thousands", mechanism)
    law, shares = one_symbol if mechanism == "krr" else unary, np.full(num_values, 1 / num_values)
    counts = window(rng, n, 1, lambda rng, sizes: law(rng, sizes, shares, v))
    assert not any(finding.fired for finding in examine(item, counts))
    missing = counts.cells.copy()
    missing[0, :20] //= 2
    if mechanism == "krr":
        missing[0, 20] += n - missing.sum()
    assert next(f for f in examine(item, CohortCounts(counts.num_reports, missing)) if f.name == "floor").fired


def test_real_reports_of_several_hash_functions_are_not_suspicious():
    item = ALL_COLLECTIONS["hashed-twice-rappor"]
    rng = generator("two hashes")
    for shares in POPULATIONS.values():
        found = [
            {finding.name: finding.p_value for finding in examine(item, counts)}
            for counts in windows(item, VALUES, shares, 60, 500, rng=rng)
        ]
        assert set(found[0]) == {"floor", "weight", "cohorts"}
        for name in found[0]:
            assert sum(one[name] <= 0.05 for one in found) <= binomial_limits(60, 0.05)[1]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attacks_are_seen_as_often_as_computed(attack):
    """Or at most as often as honest windows, where nobody can see them."""
    num_windows = 40
    seen = times_seen(attack, num_windows)
    if attack.power is None:
        assert seen <= binomial_limits(num_windows, FALSE_ALARMS if attack.sentinel == "any" else LEVEL)[1]
    else:
        assert seen >= binomial_limits(num_windows, attack.power)[0]


def test_the_attacks_that_have_to_be_seen_are_seen():
    """Power 0.99 at 2 % (uRR, one of 50 values; uRAP, 5 bits) and 1 % (one cohort), and every sentinel has one."""
    power = {attack.name: attack.power for attack in ATTACKS}
    assert power["urr, v 50: 2.0% report one sensitive value; the others are rare"] > 0.99
    assert power["urap, v 32: 2.0% set 5 target bits and no other"] > 0.99
    assert power["krr, K 8, C 32: 1.0% always send one symbol in one cohort"] > 0.99
    assert {attack.sentinel for attack in ATTACKS if attack.power} == set(SENTINELS)


# ---------------------------------------------------------------------- who can judge what

FLOOR, WEIGHT, CEILING, COHORTS, HOMOGENEITY = "floor", "weight", "ceiling", "cohorts", "homogeneity"
ABLE = {  # of mechanisms over an alphabet with values that are not sensitive, and where all are
    "krr": ({FLOOR}, {FLOOR}),
    "urr": ({FLOOR, CEILING}, {FLOOR}),
    "rappor": ({FLOOR, WEIGHT}, {FLOOR, WEIGHT}),
    "urap": ({FLOOR, CEILING, WEIGHT}, {FLOOR, WEIGHT}),
    "ss": ({FLOOR}, {FLOOR}),
    "uss": ({FLOOR, CEILING}, {FLOOR}),
}


@pytest.mark.parametrize("mechanism", ABLE)
@pytest.mark.parametrize("num_cohorts", [1, 3])
@pytest.mark.parametrize("num_sensitive", [3, 6])
def test_which_sentinels_judge_what(mechanism, num_cohorts, num_sensitive):
    item = closed(mechanism, 6, num_sensitive, num_cohorts)
    counts = item.count(item.perturb(["value 1"] * 50, generator(mechanism, num_cohorts)))
    expected = ABLE[mechanism][num_sensitive == 6] | ({COHORTS, HOMOGENEITY} if num_cohorts > 1 else set())
    assert {finding.name for finding in examine(item, counts)} == expected


def test_homogeneity_looks_at_symbols_that_mean_the_same_everywhere():
    """In a hashed alphabet these are the public values with symbols of their own, if there are any."""
    for name, alike in (("hashed-krr", False), ("permuted-krr", False), ("hashed-clear-urr", False),
                        ("hashed-listed-urr", True), ("tagged-known-urr", True)):  # fmt: skip
        item = ALL_COLLECTIONS[name]
        counts = item.count(item.perturb(["dog", "cat"] * 50, generator(name)))
        assert ("homogeneity" in {finding.name for finding in examine(item, counts)}) == alike, name
    item = ALL_COLLECTIONS["hashed-listed-urr"]
    shares = np.zeros(item.num_cells)
    shares[item.alphabet.num_sensitive :] = 1 / 3
    cells = np.rint(np.outer(np.full(16, 1000), item.mechanism.response(shares))).astype(np.int64)
    cells[2, -1] += 400
    cells[2, 0] -= 400 if cells[2, 0] >= 400 else 0
    findings = {f.name: f.fired for f in examine(item, CohortCounts(cells.sum(axis=1), cells))}
    assert findings["homogeneity"]


def test_the_page_explains_every_sentinel():
    page = (Path(__file__).parent.parent / "docs" / "sentinels.md").read_text(encoding="utf-8")
    for name, (_, meaning) in SENTINELS.items():
        assert f"| `{name}` | {meaning[0].lower()}{meaning[1:-1]} |" in page
    for attack in ATTACKS:
        assert f"| {attack.name} | {attack.sentinel} |" in page


def test_a_window_without_reports_says_nothing():
    item = closed("urap", 6, 3, 4)
    assert examine(item, CohortCounts.empty(4, 6)) == []


@pytest.mark.parametrize("name", sorted(set(ALL_COLLECTIONS) - {"hashed-twice-rappor"}))
def test_findings_are_finite_however_strange_the_window(name):
    """All reports alike, each kind of them once, in one cohort; one report, and a million."""
    item = ALL_COLLECTIONS[name]
    _, _, cells, _ = enumerated(item.mechanism)
    for kind, n in itertools.product((0, len(cells) // 2, len(cells) - 1), (1, 1_000_000)):
        counts = CohortCounts.empty(item.num_cohorts, item.num_cells)
        counts.num_reports[0], counts.cells[0] = n, n * cells[kind]
        for finding in examine(item, counts):
            assert math.isfinite(finding.statistic) and 0 <= finding.p_value <= 1
            assert finding.fired == (finding.p_value < LEVEL)
            assert finding.sentence == (SENTINELS[finding.name][1] if finding.fired else "Nothing unusual.")
            json.dumps(vars(finding), allow_nan=False)


# ---------------------------------------------------------------------- the parts


def p_value(name: str, item: Collection, cells: list[int], n: int) -> float:
    counts = CohortCounts(np.array([n]), np.array([cells]))
    return next(finding.p_value for finding in examine(item, counts) if finding.name == name)


@pytest.mark.parametrize("mechanism", ["urr", "rappor"])
def test_the_floor_is_the_least_of_all_sets(mechanism):
    """Every set of symbols by itself, from the papers' probabilities."""
    n, cells = 1000, [300, 150, 90, 120, 340] if mechanism == "urr" else [410, 330, 310, 390, 500]
    item = closed(mechanism, 5, 5)
    noise = 1 / (5 + math.expm1(1)) if mechanism == "urr" else 1 / (1 + math.exp(0.5))
    found = []
    for j in range(1, 6):
        for chosen in itertools.combinations(cells, j):
            law = stats.binom(n, j * noise) if mechanism == "urr" else stats.binom(n * j, noise)
            found.append(5 * math.comb(5, j) * law.cdf(sum(chosen)))
    assert p_value("floor", item, cells, n) == pytest.approx(min(found), rel=1e-6)
    assert min(found) < 0.05


def test_what_confidence_limits_leave_out_is_in_the_p_value():
    assert p_value("weight", closed("rappor", 5, 5), [0] * 5, 10_000) < 1e-15
    assert p_value("weight", closed("urap", 6, 5), [0] * 6, 10_000) == pytest.approx(1e-5)


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.9])
@pytest.mark.parametrize("total", [1, 30, 200])
def test_the_limits_of_sensitive_people_hold(total, rate):
    """For every true number: both limits fail with at most half of 1e-5, by exact binomial sums."""
    mechanism = types.SimpleNamespace(num_sensitive=3, num_symbols=6, reveal_rate=rate)
    limits = [_people_with_sensitive_values(mechanism, total, clear) for clear in range(total + 1)]
    fewest, most = np.array(limits).T
    assert (fewest <= most).all()
    for others in range(total + 1):
        chances = stats.binom.pmf(np.arange(total + 1), others, rate)
        assert chances[fewest > total - others].sum() <= 0.5e-5
        assert chances[most < total - others].sum() <= 0.5e-5
    assert _people_with_sensitive_values(closed("krr", 6, 6).mechanism, total, 0) == (total, total)


def test_the_tail_of_two_binomials_is_their_convolution():
    first, second = (7, Fraction(1, 3)), (9, Fraction(3, 5))

    def law(trials: int, rate: Fraction) -> list[Fraction]:
        return [math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(trials + 1)]

    both = [Fraction(0)] * 17
    for (i, a), (j, b) in itertools.product(enumerate(law(*first)), enumerate(law(*second))):
        both[i + j] += a * b
    parameters = [(trials, float(rate)) for trials, rate in (first, second)]
    for ones in range(17):
        upper = _tail_of_two_binomials(ones, *parameters, upper=True)
        lower = _tail_of_two_binomials(ones, *parameters, upper=False)
        assert upper == pytest.approx(float(sum(both[ones:])), rel=1e-9)
        assert lower == pytest.approx(float(sum(both[: ones + 1])), rel=1e-9)


# ---------------------------------------------------------------------- canaries


@pytest.mark.parametrize(("share", "epsilon"), UNSOUND)
def test_canaries_measure_who_sends_no_noise(share, epsilon):
    """Mean as computed, spread as reported; the standard error is the one of a binomial count."""
    rng, draw, num_windows = generator("canary", share, epsilon), with_canaries(share, epsilon), 40
    found = [canary_share(WATCHED, draw(rng), CANARIES) for _ in range(num_windows)]
    shares = np.array([item.share for item in found])
    noise = 10 / (50 + math.expm1(1))  # a canary, in an honest report
    error = math.sqrt((1 - noise) / (200_000 * noise))
    assert [item.standard_error for item in found] == pytest.approx([error] * num_windows, rel=1e-6)
    # clients of another epsilon send noise too: their variance differs by at most the share of them
    assert abs(shares.mean() - missing_noise(share, epsilon)) <= normal_limit() * 1.1 * error / math.sqrt(num_windows)


@pytest.mark.parametrize("mechanism", ["krr", "urr", "ss", "uss", "rappor", "urap"])
def test_the_share_of_silent_reports_is_exact(mechanism):
    """Expected counts of honest people who hold no canary, and silent protected reports among them."""
    item = closed(mechanism, 9, 6)
    shares = np.where(np.isin(np.arange(9), (2, 3)), 0.0, 1 / 7)
    n, fake = 10**12, 3 * 10**10
    cells = np.rint((n - fake) * item.mechanism.response(shares)).astype(np.int64)
    found = canary_share(item, CohortCounts(np.array([n]), cells[np.newaxis]), ["value 2", "value 3"])
    assert found.share == pytest.approx(0.03, rel=1e-6)


def test_canaries_of_unary_bits_are_compared_with_protected_reports():
    item = closed("urap", 9, 6)
    counts = CohortCounts(np.array([10_000]), np.array([[2900, 3000, 2500, 2700, 2800, 2900, 700, 500, 400]]))
    psi = 1 / (1 + math.exp(0.5))
    found = canary_share(item, counts, ["value 2", "value 3"])
    assert found.share == pytest.approx((2 * psi * 8400 - 5200) / (2 * psi * 10_000), rel=1e-6)


def test_canaries_that_cannot_speak():
    item = closed("urr", 6, 3)
    counts = item.count(item.perturb(["value 1"] * 20, generator("silent")))
    assert canary_share(item, counts, ["value 5"]) is None  # not sensitive
    assert canary_share(item, CohortCounts.empty(1, 6), ["value 2"]) is None
    buckets = ALL_COLLECTIONS["hashed-krr"]
    assert canary_share(buckets, buckets.count(buckets.perturb(["ant"] * 9, generator("b"))), ["yak"]) is None
    missing = ALL_COLLECTIONS["closed-tsp"]
    assert canary_share(missing, missing.count(missing.perturb(["ant"] * 9, generator("t"))), ["bee"]) is None
    with pytest.raises(SpecError, match=r"Closed\.values lists 6 values, got 1 value"):
        canary_share(item, counts, ["yak"])
    with pytest.raises(SpecError, match="candidates must"):
        canary_share(item, counts, [])
