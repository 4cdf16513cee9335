"""Sentinels: p-values that hold exactly, computed power that is reached, and what nobody can see."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import types
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.campaigns.attacks import (
    ATTACKS,
    closed,
    honest_windows,
    level,
    patterns_of,
    times_seen,
)
from tests.support.cases import ALL_COLLECTIONS, VALUES, enumerated
from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection, sentinels
from uldp_transforms.ldp.counts.discrete_tails import Binomial
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.sentinels import (
    FALSE_ALARMS,
    SENTINELS,
    Finding,
    _bound_of_tail,
    _people_with_sensitive_values,
    _tail_of_two_binomials,
    examine,
)

PRIORS = [[0.6, 0.4], [0.3, 0.7]]

FEW = [  # mechanism, values, sensitive ones, cohorts, reports, fields: all windows of so many reports are looked at
    ("krr", 2, 2, 1, 12, {}),
    ("krr", 3, 3, 2, 6, {}),
    ("krr", 3, 3, 1, 8, {"epsilon": 16.0}),
    (
        "levels",
        4,
        3,
        1,
        7,
        {"of": "urr", "levels": [{"epsilon": 1, "values": ["ant"]}, {"epsilon": 2, "values": ["bee", "cat"]}]},
    ),
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
    ("channel", 2, 2, 2, 6, {"matrix": [["0.9", "0.35"], ["0.1", "0.65"]]}),
    ("channel", 2, 2, 1, 8, {"matrix": [["1/2", "1/8"], ["1/4", "3/4"], ["1/4", "1/8"]]}),
    ("channel", 3, 3, 1, 8, {"matrix": [["0", "1", "0"], ["1", "0", "0"], ["0", "0", "1"]]}),
]


MOST_WINDOWS = 1000


def by_default(mechanism: str) -> tuple[str, int, int, int, int, dict]:
    """A case for a mechanism that has none by hand: three sensitive values, with another one if that may be."""
    cls = MECHANISMS[mechanism]
    num_values = 3 if cls.protects_all else 4
    kinds = cls(num_symbols=num_values, num_sensitive=3, epsilon=1.0).num_outputs
    n = next(n for n in itertools.count(1) if math.comb(n + kinds, n + 1) > MOST_WINDOWS)
    return mechanism, num_values, 3, 1, n, {}


FEW += [by_default(name) for name in MECHANISMS if name not in {case[0] for case in FEW}]


def small(mechanism: str, num_values: int, v: int, num_cohorts: int, fields: dict) -> Collection:
    values = list(VALUES[:num_values])
    alphabet = {"id": "closed", "values": values} | ({"sensitive": values[:v]} if v < num_values else {})
    spec = {"id": "few", "version": 1, "alphabet": alphabet, "num_cohorts": num_cohorts}
    chosen = {"epsilon": 1.0} if MECHANISMS[mechanism].takes("epsilon") else {}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism} | chosen | fields})


@pytest.mark.parametrize(("mechanism", "num_values", "v", "num_cohorts", "n", "fields"), FEW)
def test_p_values_hold_exactly(mechanism, num_values, v, num_cohorts, n, fields):
    """Every window of n reports is examined; Pr(p <= a) is summed over them for many populations, for every a."""
    item = small(mechanism, num_values, v, num_cohorts, fields)
    codes, channel, cells, _ = enumerated(item.mechanism)
    kinds = len(cells) * num_cohorts
    parts = np.array(
        [np.diff((-1, *bars, n + kinds - 1)) - 1 for bars in itertools.combinations(range(n + kinds - 1), kinds - 1)]
    )
    assert len(parts) == math.comb(n + kinds - 1, n) and (parts.sum(axis=1) == n).all()
    tables = parts.reshape(-1, num_cohorts, len(cells))
    patterns = patterns_of(item.mechanism)
    np.testing.assert_array_equal(item.mechanism.count_patterns(codes, np.arange(len(codes)), len(codes)), patterns)
    counts = [CohortCounts(table.sum(axis=1), table @ cells, table.sum(axis=0) @ patterns) for table in tables]
    judged = [{finding.name: finding.p_value for finding in examine(item, one)} for one in counts]

    populations = [*np.eye(num_values), *generator("few", mechanism).dirichlet(np.ones(num_values), 30)]
    laws = np.array([channel @ shares for shares in populations]) / num_cohorts
    for law in laws:
        chances = stats.multinomial.pmf(parts, n, np.tile(law / law.sum() / num_cohorts, num_cohorts))
        assert chances.sum() == pytest.approx(1)
        for name in judged[0]:
            assert_valid(np.array([found[name] for found in judged]), chances)


@pytest.mark.parametrize("epsilon", [4.0, 16.0])
def test_p_values_of_several_hash_functions_hold_exactly(epsilon):
    """Two of three bits, or one twice, are a person's own, other ones in each cohort; all windows of 3 reports."""
    item = made(
        {"id": "hashed", "num_buckets": 3, "num_hashes": 2},
        {"id": "rappor", "epsilon": epsilon},
        num_cohorts=2,
        id="twice",
    )
    root = math.exp(epsilon / 4)  # each bit has half the budget
    own, noise = root / (1 + root), 1 / (1 + root)
    bits = np.array(list(itertools.product((0, 1), repeat=3)))[:, ::-1]  # the first bit is the lowest one
    sets = np.array([held for held in bits if 1 <= held.sum() <= 2])  # own bits of a person in one cohort
    rates = np.where(sets == 1, own, noise)[:, np.newaxis]
    channel = np.prod(np.where(bits == 1, rates, 1 - rates), axis=2)
    n, kinds = 3, 2 * len(bits)
    parts = np.array(
        [np.diff((-1, *bars, n + kinds - 1)) - 1 for bars in itertools.combinations(range(n + kinds - 1), kinds - 1)]
    )
    weights = bits.sum(axis=1)[:, np.newaxis] == np.arange(4)
    judged = []
    for table in parts.reshape(-1, 2, len(bits)):
        counts = CohortCounts(table.sum(axis=1), table @ bits, table.sum(axis=0) @ weights)
        judged.append({finding.name: finding.p_value for finding in examine(item, counts)})
    assert set(judged[0]) == {"floor", "weight", "histogram", "cohorts"}
    rng = generator("few", "twice", epsilon)
    for held in [*np.eye(len(sets))[:, np.newaxis].repeat(2, axis=1), *rng.dirichlet(np.ones(len(sets)), (20, 2))]:
        chances = stats.multinomial.pmf(parts, n, (held @ channel / 2).ravel())
        assert chances.sum() == pytest.approx(1)
        for name in judged[0]:
            assert_valid(np.array([found[name] for found in judged]), chances)


def assert_valid(p_values: np.ndarray, chances: np.ndarray) -> None:
    """Pr(p <= a) <= a for every a that occurs."""
    order = np.argsort(p_values)
    at_most = np.cumsum(chances[order])[np.searchsorted(p_values[order], p_values[order], side="right") - 1]
    assert (at_most <= p_values[order] * (1 + 1e-9) + 1e-12).all()


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


PARTLY_CLEAR = {
    name: item
    for name, item in ALL_COLLECTIONS.items()
    if 0 < item.mechanism.num_sensitive < item.mechanism.num_symbols and item.mechanism.num_hashes == 1
}


@pytest.mark.parametrize("name", PARTLY_CLEAR)
def test_people_with_one_value_send_as_many_clear_reports_as_expected(name):
    """Of 100,000 people, whichever the value: also next to sensitive numbers, and in public blocks without any."""
    mechanism, n = PARTLY_CLEAR[name].mechanism, 100_000
    clear = []
    for shares in np.eye(mechanism.num_symbols):
        counts = CohortCounts(np.array([n]), np.rint(n * mechanism.response(shares))[np.newaxis].astype(np.int64))
        found, reports, rates = mechanism.clear_reports(counts)
        assert (found <= np.ceil(reports * rates)).all()
        clear.append(found.sum())
        judgement = sentinels.ceiling(types.SimpleNamespace(mechanism=mechanism), counts)
        assert judgement is None or judgement.p_value > 0.4
    v = mechanism.num_sensitive
    assert not any(clear[:v]) and (max(clear[v:]) > 0 or not len(rates))


def test_symbols_that_are_independent_in_pairs_are_no_reason_for_an_alarm():
    """Bits of hr are rare or common in pairs and triples as independent ones are, but a report has half of them."""
    item, rng, windows = closed("hr", 4096, 4096), generator("in pairs"), 300
    found = []
    for _ in range(windows):
        batch = item.perturb([f"value {i}" for i in rng.integers(0, 4096, 100)], rng)
        found.append(examine(item, item.count(batch, bit_patterns=True)))
    assert {finding.name for findings in found for finding in findings} == {"floor"}
    assert sum(finding.fired for findings in found for finding in findings) <= binomial_limits(windows, FALSE_ALARMS)[1]


HEAVY = ("rappor, v 32: 1.0% set 12 bits", "urap, v 32: 2.0% set 5", "rappor, v 32: 0.5% set 12 bits")


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=attack.name, marks=[pytest.mark.slow] if attack.name.startswith(HEAVY) else [])
        for attack in ATTACKS
    ],
)
def test_attacks_are_seen_as_often_as_computed(attack):
    """Or at most as often as honest windows, where nobody can see them."""
    num_windows = 12 if attack.judges >= 4 else 40  # drawing the reports of 200,000 people, bit by bit, takes longer
    seen = times_seen(attack, num_windows)
    if attack.power is None:
        rate = FALSE_ALARMS if attack.sentinel == "any" else level(attack.judges)
        assert seen <= binomial_limits(num_windows, rate)[1]
    else:
        assert seen >= binomial_limits(num_windows, attack.power)[0]


def test_the_attacks_that_have_to_be_seen_are_seen():
    """Power 0.99 at 2 % (uRR, one of 50 values; uRAP, 5 bits) and 1 % (one cohort), and every sentinel has one."""
    power = {(attack.name, attack.sentinel): attack.power for attack in ATTACKS}
    assert power["urr, v 50: 2.0% report one sensitive value; the others are rare", "floor"] > 0.99
    assert power["urap, v 32: 2.0% set 5 target bits and no other", "weight"] > 0.99
    assert power["urap, v 32: 0.2% set 5 target bits and no other", "histogram"] > 0.9
    assert power["rappor, v 32: 1.0% set 5 target bits, and others up to the usual weight", "pairs"] > 0.9
    assert power["krr, K 8, C 32: 1.0% always send one symbol in one cohort", "cohorts"] > 0.99
    assert {attack.sentinel for attack in ATTACKS if attack.power} == set(SENTINELS)


# ---------------------------------------------------------------------- who can judge what

FLOOR, WEIGHT, CEILING, COHORTS, HOMOGENEITY = "floor", "weight", "ceiling", "cohorts", "homogeneity"
INSIDE = {"histogram", "pairs"}
ABLE = {  # of mechanisms over an alphabet with values that are not sensitive, and where all are
    "krr": ({FLOOR}, {FLOOR}),
    "urr": ({FLOOR, CEILING}, {FLOOR}),
    "rappor": ({FLOOR, WEIGHT}, {FLOOR, WEIGHT}),
    "urap": ({FLOOR, CEILING, WEIGHT}, {FLOOR, WEIGHT}),
    "ss": ({FLOOR}, {FLOOR}),
    "uss": ({FLOOR, CEILING}, {FLOOR}),
    "hr": ({FLOOR}, {FLOOR}),
    "uhr": ({FLOOR, CEILING}, {FLOOR}),
}


@pytest.mark.parametrize("mechanism", ABLE)
@pytest.mark.parametrize("num_cohorts", [1, 3])
@pytest.mark.parametrize("num_sensitive", [3, 6])
def test_which_sentinels_judge_what(mechanism, num_cohorts, num_sensitive):
    item = closed(mechanism, 6, num_sensitive, num_cohorts)
    counts = item.count(item.perturb(["value 1"] * 50, generator(mechanism, num_cohorts)))
    expected = ABLE[mechanism][num_sensitive == 6] | ({COHORTS, HOMOGENEITY} if num_cohorts > 1 else set())
    assert {finding.name for finding in examine(item, counts)} == expected
    batch = item.perturb(["value 1"] * 50, generator(mechanism, num_cohorts))
    inside = INSIDE if mechanism in ("rappor", "urap") else set()
    assert {finding.name for finding in examine(item, item.count(batch, bit_patterns=True))} == expected | inside


@pytest.mark.parametrize(
    ("mechanism", "v", "able"),
    [("rappor", 256, INSIDE), ("rappor", 257, {"histogram"}), ("urap", 1, {"histogram"}), ("urap", 2, INSIDE)],
)
def test_pairs_are_counted_of_2_to_256_bits(mechanism, v, able):
    item = closed(mechanism, v + (mechanism == "urap"), v)
    counts = item.count(item.perturb(["value 0"] * 9, generator("wide", v)), bit_patterns=True)
    assert {finding.name for finding in examine(item, counts)} & INSIDE == able


def test_sentinels_that_judge_share_the_false_alarms():
    """The same p-value fires where two judge, and not where four do."""
    item, n = closed("rappor", 3, 3), 10_000
    usual = stats.binom(3 * n, (math.exp(0.5) + 2) / (3 * (1 + math.exp(0.5))))  # nearly: one own bit, two others
    for excess in range(int(3 * usual.std()), int(6 * usual.std())):
        cells = np.full((1, 3), (int(usual.mean()) + excess) // 3)
        few = {f.name: f for f in examine(item, CohortCounts(np.array([n]), cells))}
        if level(4) < few["weight"].p_value < level(2):
            break
    assert few["weight"].fired
    law = np.convolve([1 - 0.622459, 0.622459], stats.binom.pmf(np.arange(3), 2, 0.377541))
    weights = np.rint(n * law).astype(np.int64)
    both = np.full(3, cells[0, 0] ** 2 // n)
    more = {f.name: f for f in examine(item, CohortCounts(np.array([n]), cells, np.concatenate([weights, both])))}
    assert set(more) == {"floor", "weight", "histogram", "pairs"}
    assert more["weight"].p_value == few["weight"].p_value
    assert not any(finding.fired for finding in more.values())


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
    page = (Path(__file__).parents[2] / "docs" / "sentinels.md").read_text(encoding="utf-8")
    for name, (_, meaning) in SENTINELS.items():
        assert f"| `{name}` | {meaning[0].lower()}{meaning[1:-1]} |" in page
    named = {(attack.name, attack.sentinel) for attack in ATTACKS}
    attacks = page.partition("| clients | sentinel | computed power | measured |")[2].partition("\n\n")[0]
    shown = set(re.findall(r"^\| ([^-|][^|]*) \| (\w+) \|", attacks, flags=re.MULTILINE))
    assert shown <= named
    assert {sentinel for _, sentinel in shown} == {sentinel for _, sentinel in named}


def test_a_window_without_reports_says_nothing():
    item = closed("urap", 6, 3, 4)
    assert examine(item, CohortCounts.empty(4, 6)) == []


@pytest.mark.parametrize("name", sorted(set(ALL_COLLECTIONS) - {"hashed-twice-rappor", "permuted-twice-rappor"}))
def test_findings_are_finite_however_strange_the_window(name):
    """All reports alike, each kind of them once, in one cohort; one report, and a million."""
    item = ALL_COLLECTIONS[name]
    _, _, cells, _ = enumerated(item.mechanism)
    patterns = patterns_of(item.mechanism)
    for kind, n in itertools.product((0, len(cells) // 2, len(cells) - 1), (1, 1_000_000)):
        counts = CohortCounts.empty(item.num_cohorts, item.num_cells, item.mechanism.num_patterns)
        counts.num_reports[0], counts.cells[0], counts.patterns[:] = n, n * cells[kind], n * patterns[kind]
        findings = examine(item, counts)
        for finding in findings:
            assert math.isfinite(finding.statistic) and 0 <= finding.p_value <= 1
            assert finding.fired == (finding.p_value < FALSE_ALARMS / len(findings))
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


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("distance", [0, 2, 5, 8])
def test_the_tail_of_many_is_a_near_bound(monkeypatch, distance, upper):
    """Numbers that are taken together make it larger by less than 3 %, also where a sentinel fires."""
    n = 10**8
    sign = 1 if upper else -1
    ones = round(0.9 * n + sign * distance * np.sqrt(0.45 * n))
    bound = _tail_of_two_binomials(ones, (n, 0.3), (n, 0.6), upper=upper)
    monkeypatch.setattr(sentinels, "_TERMS", 10**6)
    exact = _tail_of_two_binomials(ones, (n, 0.3), (n, 0.6), upper=upper)
    assert exact <= bound <= 1.03 * exact


def test_the_weight_of_very_many_reports_is_judged_by_a_bounded_sum(monkeypatch):
    """10^11 reports: a few thousand terms, and still honest reports pass and a thousandth too many bits rings."""
    item, n, terms = closed("rappor", 8, 8), 10**11, []
    pmf = Binomial.pmf
    monkeypatch.setattr(Binomial, "pmf", lambda x, *law: terms.append(np.size(x)) or pmf(x, *law))
    cells = np.rint(n * item.mechanism.response(np.full(8, 1 / 8))).astype(np.int64)
    assert sentinels.weight(item, CohortCounts(np.array([n]), cells[np.newaxis])).p_value > 0.5
    assert sentinels.weight(item, CohortCounts(np.array([n]), cells[np.newaxis] * 1001 // 1000)).p_value < 1e-12
    assert max(terms) <= sentinels._TERMS


@pytest.mark.parametrize("ones", [63, 78, 105])
def test_the_weight_is_twice_the_tail_of_own_and_other_bits(ones):
    """Of three bits of each person one is the own one."""
    n, own = 60, math.exp(0.5) / (1 + math.exp(0.5))
    law = np.convolve(stats.binom.pmf(range(n + 1), n, own), stats.binom.pmf(range(2 * n + 1), 2 * n, 1 - own))
    counts = CohortCounts(np.array([n]), np.array([[ones // 3] * 3]))
    tails = law[: ones + 1].sum(), law[ones:].sum()
    assert sentinels.weight(closed("rappor", 3, 3), counts).p_value == pytest.approx(min(1, 2 * min(tails)), rel=1e-6)


def with_patterns(item: Collection, cells: list[int], n: int, patterns: list[int]) -> dict[str, Finding]:
    counts = CohortCounts(np.array([n]), np.array([cells]), np.array(patterns))
    return {finding.name: finding for finding in examine(item, counts)}


@pytest.mark.parametrize("weights", [[60, 300, 423, 217], [60, 330, 393, 217], [90, 290, 403, 217]])
def test_the_histogram_is_the_most_unusual_of_all_weights(weights):
    """Of three bits one is everybody's own; each weight by itself, from the papers' probabilities."""
    own = math.exp(0.5) / (1 + math.exp(0.5))
    rates = [own] + [1 - own] * 2
    law = [0.0] * 4
    for bits in itertools.product((0, 1), repeat=3):
        law[sum(bits)] += math.prod(rate if bit else 1 - rate for bit, rate in zip(bits, rates))
    tails = [min(stats.binom.cdf(count, 1000, p), stats.binom.sf(count - 1, 1000, p)) for count, p in zip(weights, law)]
    total = weights[1] + 2 * weights[2] + 3 * weights[3]
    found = with_patterns(closed("rappor", 3, 3), [total // 3] * 3, 1000, [*weights, 1, 1, 1])
    assert found["histogram"].p_value == pytest.approx(min(1.0, 8 * min(tails)), rel=1e-6)


def test_the_pairs_are_the_least_of_all_tables():
    """Every pair by itself; its count is one of a table with given margins."""
    ones, both = [420, 380, 400, 330], [170, 150, 140, 181, 120, 141]
    item = closed("rappor", 4, 4)
    found = with_patterns(item, ones, 1000, [200, 200, 200, 200, 200, *both])["pairs"]
    tails = []
    for (a, b), count in zip(itertools.combinations(ones, 2), both):
        ways = [math.comb(a, k) * math.comb(1000 - a, b - k) for k in range(count, min(a, b) + 1)]
        tails.append(Fraction(sum(ways), math.comb(1000, b)))
    assert found.p_value == pytest.approx(float(6 * min(tails)), rel=1e-9)
    a, b = (420, 400) if tails.index(min(tails)) == 1 else (380, 400)
    variance = a * b * (1000 - a) * (1000 - b) / (1000**2 * 999)
    assert found.statistic == pytest.approx((181 - a * b / 1000) / math.sqrt(variance))


@pytest.mark.parametrize(("theta", "psi"), [(0.62, 0.38), (0.5, 0.01), (0.999, 0.001), (0.99, 0.9)])
def test_bits_that_nobody_holds_together_meet_at_most_by_chance(theta, psi):
    """Given how often each of two bits is set: for all numbers of holders of one, of the other and of neither."""
    n = 6
    sizes = np.arange(n + 1)
    held = np.meshgrid(sizes, sizes, [0], indexing="ij")[:2]
    by_chance = stats.hypergeom.sf(sizes - 1, n, *held)  # (a, b, both)
    for first in range(n + 1):
        for second in range(n + 1 - first):
            law = np.zeros((n + 1,) * 3)  # reports with the one bit, with the other, with both
            law[0, 0, 0] = 1
            for person in range(n):
                one = theta if person < first else psi
                other = theta if first <= person < first + second else psi
                more = law * (1 - one) * (1 - other)
                more[1:] += law[:-1] * one * (1 - other)
                more[:, 1:] += law[:, :-1] * (1 - one) * other
                more[1:, 1:, 1:] += law[:-1, :-1, :-1] * one * other
                law = more
            tails = law[:, :, ::-1].cumsum(axis=2)[:, :, ::-1] / law.sum(axis=2, keepdims=True)
            assert (tails <= by_chance + 1e-12).all()


def test_unequal_trials_are_bounded_by_equal_ones():
    """Every count of every mixture of few trials, rare and common ones: the bound holds, and is the binomial tail."""
    rates = (0.0, 1e-6, 0.2, 0.7, 1 - 1e-6, 1.0)
    for trials in (1, 3, 5):
        for mixture in itertools.combinations_with_replacement(rates, trials):
            law = np.ones(1)
            for rate in mixture:
                law = np.convolve(law, [1 - rate, rate])
            counts, mean = np.arange(trials + 1), np.full(trials + 1, sum(mixture))
            above, below = (_bound_of_tail(counts, trials, mean, upper=upper) for upper in (True, False))
            assert (law[::-1].cumsum()[::-1] <= above + 1e-12).all()
            assert (law.cumsum() <= below + 1e-12).all()
            equal = stats.binom.sf(counts - 1, trials, sum(mixture) / trials)
            np.testing.assert_allclose(above[counts >= mean + 1], equal[counts >= mean + 1])


# ---------------------------------------------------------------------- the laws of cohorts

TAIL_ERROR = 1e-12
"""Relative error of a tail of scipy.stats; what it makes of a p-value is computed where it is used."""


def all_tables(*shape: int, n: int) -> np.ndarray:
    """(..., *shape): all tables of n reports."""
    kinds = math.prod(shape)
    bars = itertools.combinations(range(n + kinds - 1), kinds - 1)
    return np.array([np.diff((-1, *places, n + kinds - 1)) - 1 for places in bars]).reshape(-1, *shape)


def twice_the_smaller_tail(law: dict[int, Fraction], count: int) -> Fraction:
    below, above = (sum(law[k] for k in law if k <= count), sum(law[k] for k in law if k >= count))
    return min(Fraction(1), 2 * min(below, above) / sum(law.values()))


@pytest.mark.parametrize(("num_cohorts", "n"), [(2, 12), (3, 12), (4, 8), (5, 5)])
def test_cohorts_follow_their_joint_law(num_cohorts, n):
    """Each size given those before it, from the multinomial law of all: by itself no size is binomial any more."""
    item, tables = small("krr", 2, 2, num_cohorts, {}), all_tables(num_cohorts, n=n)
    joint = {tuple(t): Fraction(math.factorial(n), math.prod(map(math.factorial, t))) for t in tables.tolist()}
    conditional: dict[tuple[int, ...], dict[int, Fraction]] = {}
    for sizes, chance in joint.items():
        for place in range(num_cohorts - 1):
            law = conditional.setdefault(sizes[:place], {})
            law[sizes[place]] = law.get(sizes[place], Fraction(0)) + chance
    slack, gap, p_values = 2 * (num_cohorts - 1) * TAIL_ERROR, 0.0, []
    for sizes in joint:
        cells = np.array([[size, 0] for size in sizes])
        found = {f.name: f for f in examine(item, CohortCounts(np.array(sizes), cells))}["cohorts"]
        tails = [twice_the_smaller_tail(conditional[sizes[:place]], sizes[place]) for place in range(num_cohorts - 1)]
        statistic = -2 * math.fsum(math.log(tail) for tail in tails)
        assert found.statistic == pytest.approx(statistic, abs=slack)
        # the derivative of ln sf(x) is at most 1/2 from 2 degrees of freedom on
        assert found.p_value == pytest.approx(stats.chi2.sf(statistic, 2 * (num_cohorts - 1)), rel=slack + TAIL_ERROR)
        alone = [twice_the_smaller_tail(conditional[()], size) for size in sizes[:-1]]
        gap = max(gap, abs(statistic + 2 * math.fsum(math.log(tail) for tail in alone)))
        p_values.append(found.p_value)
    assert gap > 1e6 * slack or num_cohorts == 2  # of two cohorts the one size is all there is
    chances = np.array([float(chance / num_cohorts**n) for chance in joint.values()])
    assert chances.sum() == pytest.approx(1)
    assert_valid(np.array(p_values), chances)


@functools.cache
def of_margins(n: int, size: int, total: int, count: int) -> tuple[Fraction, float]:
    """P-values of a count of a table with these margins, by counting the ways to get it, and with replacement."""
    law = {k: Fraction(math.comb(total, k) * math.comb(n - total, size - k)) for k in range(min(size, total) + 1)}
    again = min(stats.binom.cdf(count, size, total / n), stats.binom.sf(count - 1, size, total / n))
    return twice_the_smaller_tail(law, count), 2 * float(again)


@pytest.mark.parametrize(("num_cohorts", "num_values", "n"), [(2, 2, 12), (2, 3, 6), (3, 2, 6)])
def test_cohorts_draw_their_symbols_without_replacement(num_cohorts, num_values, n):
    """A count of the least likely cell is the one of a table with given margins, by counting the ways to get it."""
    item, slack, gap = small("krr", num_values, num_values, num_cohorts, {}), 2 * TAIL_ERROR, 0.0
    for table in all_tables(num_cohorts, num_values, n=n):
        found = {f.name: f for f in examine(item, CohortCounts(table.sum(axis=1), table))}["homogeneity"]
        expected, least = [], 0.0
        for (row, column), count in np.ndenumerate(table):
            size, total = int(table[row].sum()), int(table[:, column].sum())
            mean = size * total / n
            surprise = count * math.log(count / mean) - count + mean if count else mean
            tail, with_replacement = of_margins(n, size, total, int(count))
            expected.append((surprise, min(1.0, float(table.size * tail))))
            least = max(least, surprise)
            gap = max(gap, abs(min(1.0, table.size * with_replacement) - expected[-1][1]))
        equally = [p_value for surprise, p_value in expected if surprise >= least - n * TAIL_ERROR]
        assert any(found.p_value == pytest.approx(p_value, rel=slack) for p_value in equally)
    assert gap > 1e6 * slack


def test_one_honest_window_in_a_thousand_may_raise_an_alarm():
    assert FALSE_ALARMS == 1e-3
