"""The alphabet of prefixes: tokens, words and levels against their specification, and estimates of a known list."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clients.independent import prefix_bucket, token_numbers
from tests.support.cases import ANY_VALUES, UTILITY_OPTIMIZED
from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, chi_square_limits, generator, normal_limit, within
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Prefixes
from uldp_transforms.ldp.alphabets.prefixes import OneLevel
from uldp_transforms.ldp.solvers import prefix_parts
from uldp_transforms.ldp.solvers.prefix_parts import OwnNoise

SPECIFICATION = Path(__file__).parents[3] / "docs" / "hashing.md"
TOKENS = ("a", "b", "ab", "abc", "é", "ba", "日本")
PLAIN = Prefixes(num_buckets=16, seed=3, tokens=TOKENS, lengths=(1, 3, None))

texts = st.text(st.sampled_from("abcdeé日本🦊"), max_size=12) | st.text(st.characters(exclude_categories=["Cs"]))


RULE = {"tokens": list(TOKENS), "lengths": list(PLAIN.lengths), "seed": 3, "num_buckets": 16}


@given(texts)
def test_tokens_are_those_of_greedy_matching_and_make_the_text_again(value):
    value = unicodedata.normalize("NFC", value)
    sequence = PLAIN.sequence(value)
    assert list(sequence) == token_numbers(list(TOKENS), value)
    assert PLAIN.text(sequence) == value  # so different texts have different sequences


@given(st.lists(texts, min_size=1, max_size=5))
def test_buckets_are_those_of_the_reference(values):
    values = tuple(dict.fromkeys(unicodedata.normalize("NFC", value) for value in values))
    table = PLAIN.symbol_table(values, 9)
    assert table.tolist() == [[prefix_bucket(RULE, value, cohort) for value in values] for cohort in range(9)]


def test_specification_lists_true_prefixes():
    section = SPECIFICATION.read_text(encoding="utf-8").split("## Golden prefixes\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip(" `") for cell in line.strip("| ").split("|")] for line in section.splitlines() if "| `" in line
    ]
    assert len(rows) >= 5
    alphabet = Prefixes(num_buckets=4096, tokens=("a", "at", "l"), lengths=(2, None))
    for text, cohort, numbers, bucket in rows:
        value, length = unicodedata.normalize("NFC", json.loads(text)), alphabet.lengths[int(cohort) % 2]
        assert list(alphabet.sequence(value)[:length]) == json.loads(numbers)
        assert alphabet.symbol_table((value,), 8)[int(cohort), 0] == int(bucket)


def test_values_with_the_same_prefix_are_one_in_the_cohorts_of_its_level_only():
    table = PLAIN.symbol_table(("abcba", "abcbb"), 300)  # abc ba, abc b b
    same = table[:, 0] == table[:, 1]
    assert same[0::3].all()
    assert not same[1::3].all()
    assert not same[2::3].all()


@pytest.mark.parametrize("k", [2, 5, 4096])
def test_buckets_are_uniform_and_those_of_pairs_independent(k):
    """Of 200 sequences in 300 cohorts; with words of 16 bits buckets differ by a sixteenth at most."""
    alphabet = Prefixes(num_buckets=k, seed=2, tokens=tuple("abcdefgh"), lengths=(None,))
    values = tuple(f"{a}{b}{c}" for a in "abcde" for b in "abcde" for c in "abcdefgh")
    table = alphabet.symbol_table(values, 300)
    sizes = np.bincount(np.arange(1 << 16) * k >> 16, minlength=k) / (1 << 16)
    expected = table.size * sizes
    low, high = chi_square_limits(k - 1)
    assert low <= ((np.bincount(table.ravel(), minlength=k) - expected) ** 2 / expected).sum() <= high
    pairs = np.array([(table[:, i] == table[:, i + 1]).sum() for i in range(len(values) - 1)])
    assert within(pairs, binomial_limits(np.full(len(pairs), 300), np.full(len(pairs), (sizes**2).sum()))).all()


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_alphabet_of_one_level_is_a_part_of_the_whole(level):
    values = ("ab", "abc", "", "xyz", "babab")
    one, cohorts = OneLevel(whole=PLAIN, level=level), len(range(level, 25, 3))
    np.testing.assert_array_equal(one.symbol_table(values, cohorts), PLAIN.symbol_table(values, 25)[level::3])
    np.testing.assert_array_equal(one.symbol_rows(values, cohorts), PLAIN.symbol_rows(values, 25)[:, level::3])
    assert (one.num_symbols, one.num_sensitive, one.client_rule) == (16, 16, PLAIN.client_rule)


# ---------------------------------------------------------------------- a known list

SHARES = {"ab": 0.2, "abcab": 0.1, "b": 0.15, "abaabb": 0.05, "abbbbb": 0.0}
UNLISTED = {"abab": 0.15, "abbbba": 0.2, "xyz": 0.1, "aaaaaa": 0.05}  # three of them begin like listed ones


def collection(seed: int, mechanism: str, **fields: object) -> Collection:
    alphabet = {"id": "prefixes", "num_buckets": 8, "seed": seed, "tokens": list(TOKENS), "lengths": [1, 3, None]}
    alphabet |= {"non_sensitive": ["b"]} if mechanism in UTILITY_OPTIMIZED else {}
    return made(alphabet, {"id": mechanism, "epsilon": 3.0} | fields, num_cohorts=36)


@pytest.mark.parametrize("estimator", ["empirical", "em"])
@pytest.mark.parametrize("mechanism", ANY_VALUES)
def test_a_known_list_is_estimated_without_bias_though_unlisted_values_begin_like_listed_ones(mechanism, estimator):
    """Over hash functions too: each window has a seed of its own."""
    rng, fields, everybody = generator("known list", mechanism), ANY_VALUES[mechanism], SHARES | UNLISTED
    truth, windows, n = np.array(list(SHARES.values())), 150, 4000
    errors, variances, covered = np.zeros(len(truth)), np.zeros(len(truth)), np.zeros(len(truth))
    if not estimator_goes(estimator, mechanism):
        estimator = "empirical"
    for seed in range(windows):
        item = collection(seed, mechanism, **fields)
        people = rng.choice(list(everybody), n, p=list(everybody.values())).tolist()
        found = item.estimate(item.count(item.perturb(people, rng)), estimator, list(SHARES))
        errors += found.raw_frequencies - truth
        variances += found.standard_errors**2
        covered += (found.ci_low <= truth) & (truth <= found.ci_high)
    assert (abs(errors) <= normal_limit(len(truth)) * np.sqrt(variances)).all(), errors / np.sqrt(variances)
    low, _ = binomial_limits(np.full(len(truth), windows), np.full(len(truth), 0.95))
    assert (covered >= low).all(), covered / windows


def estimator_goes(estimator: str, mechanism: str) -> bool:
    item = collection(0, mechanism, **ANY_VALUES[mechanism])
    return estimator != "em" or item.mechanism.outcomes_of_counts(item.count(item.perturb([]))) is not None


def test_the_most_likely_shares_come_from_cohorts_that_hash_whole_values():
    """Half of all people hold unlisted texts that begin like a listed one that nobody holds."""
    item, rng = collection(1, "krr"), generator("em of prefixes")
    people = ["abbbba"] * 30_000 + ["b"] * 30_000
    found = item.estimate(item.count(item.perturb(people, rng)), "em", ["abbbbb", "b"])
    limit = normal_limit(2) * found.standard_errors + 0.02  # what colliding unlisted texts add is in the residuals
    assert (abs(found.frequencies - [0, 0.5]) <= limit).all()


def test_the_mean_of_parts_has_the_sum_of_their_variances():
    """What the cohorts of a part have in common is part of its variance; values may be one unknown in a part."""
    shares = np.array([[0.25, 0.5], [0.75, 0.5]])
    found = []
    for share, member, scale in zip(shares, ([0, 0], [0, 1]), (1.0, 10.0)):
        each = scale * np.array([1.0, 2.0])
        own = OwnNoise(null=each, slope=2 * each, curvature=3 * each, least=4 * each)
        solution = {"frequencies": each, "variances": each, "common": each / 2, "own": own, "jump": scale}
        solution |= dict.fromkeys(("counted", "spare", "chance"), None) | {"degrees": 3, "misfit": 1.0}
        part = SimpleNamespace(member=np.array(member))
        found.append((part, share, SimpleNamespace(**solution, variance_of_sum=scale, common_of_sum=None)))
    mean = prefix_parts._mean(found, 2)
    assert mean.frequencies == pytest.approx([0.25 * 1 + 0.75 * 10, 0.5 * 1 + 0.5 * 20])
    variances = np.array([0.25**2 * 1 + 0.75**2 * 10, 0.5**2 * 1 + 0.5**2 * 20])
    assert mean.variances == pytest.approx(variances) and mean.common == pytest.approx(variances / 2)
    assert [getattr(mean.own, name) / variances for name in ("null", "slope", "curvature", "least")] == [
        pytest.approx([times, times]) for times in (1, 2, 3, 4)
    ]
    assert mean.jump == pytest.approx([7.5, 5]) and (mean.variance_of_sum, mean.degrees, mean.misfit) == (11, 6, 2)
