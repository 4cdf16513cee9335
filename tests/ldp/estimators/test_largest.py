"""Of the R largest values at most 5 % are missed by their intervals, for every R; numbers are in their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

from tests.support.cases import (
    ALL_COLLECTIONS,
    ANSWERS_TO_TEST,
    UTILITY_OPTIMIZED,
    VALUES,
)
from tests.support.tolerance import RATE, generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.discovery import discover
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators.estimator import Estimator
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.sampling import WORD, SeededSource
from uldp_transforms.rows.windowed_estimate import value_estimates

LARGEST = (1, 3, 10, 30, 100)


def most_wrong(windows: int, rate: float = RATE) -> float:
    """The limit of a mean of so many independent shares of wrong ones, each expected to be 5 % at most.

    It is exceeded in a share ``rate`` of cases: by Chernoff's bound, since of all numbers in [0, 1] with a mean the
    largest exponential moments have those that are 0 or 1.
    """
    needed = -np.log(rate) / windows
    if needed >= -np.log(0.05):
        return 1.0
    return float(optimize.brentq(lambda x: special.rel_entr([x, 1 - x], [0.05, 0.95]).sum() - needed, 0.05, 1 - 1e-12))


def shares_of(name: str, size: int) -> np.ndarray:
    """What people hold: all alike, like 1 / rank, or five values and hardly any other."""
    rank = np.arange(1, size + 1)
    weights = {"uniform": np.ones(size), "zipf": 1 / rank, "five": np.where(rank <= 5, 0.18, 0.1 / max(size - 5, 1))}
    return weights[name] / weights[name].sum()


def window(
    item: Collection, texts: tuple[str, ...], shares: np.ndarray, n: int, rng: np.random.Generator
) -> CohortCounts:
    """The counts of n people with these texts, drawn as a whole where a report is one number."""
    table = item.alphabet.symbol_table(texts, item.num_cohorts)
    if item.mechanism.one_place:
        symbols = np.array([np.bincount(row, shares, item.mechanism.num_symbols) for row in table])
        expected = np.maximum(item.mechanism.response(symbols), 0)
        sizes = rng.multinomial(n, np.full(item.num_cohorts, 1 / item.num_cohorts))
        cells = rng.multinomial(sizes, expected / expected.sum(axis=1, keepdims=True))
        return CohortCounts(sizes, cells.astype(np.int64))
    cohorts = rng.integers(0, item.num_cohorts, n)
    symbols = table[cohorts if len(table) > 1 else 0, rng.choice(len(texts), n, p=shares)]
    return item.count_groups(item.mechanism.perturb(symbols, SeededSource(rng)), cohorts, 1)[0]


def wrong_among_the_largest(estimate: Estimate, truth: dict[str, float]) -> Iterator[float]:
    """For each R the share of intervals of the R largest that miss."""
    low, high = estimate.display_intervals(len(estimate.values))
    held = np.array([truth[value] for value in estimate.values])
    ranked = np.argsort(-estimate.frequencies, kind="stable")
    missed = ((held < low) | (held > high))[ranked]
    return (float(missed[:number].mean()) for number in LARGEST)


def always(item: Collection) -> Callable[[int], Collection]:
    return lambda seed: item


def spec_of(alphabet: dict[str, Any], mechanism: dict[str, Any], num_cohorts: int = 1) -> Collection:
    cohorts = {"num_cohorts": num_cohorts} if num_cohorts > 1 else {}
    return Collection.from_json({"id": "c", "version": 1, "alphabet": alphabet, "mechanism": mechanism} | cohorts)


def simulated(
    collection: Callable[[int], Collection],
    size: int,
    shares: np.ndarray,
    n: int,
    windows: int,
    estimator: str,
    *name: object,
) -> np.ndarray:
    """(windows, R) shares that are wrong; people hold ``shares`` of texts, and the first ``size`` are asked for.

    Each window has hash functions of its own, the collection being a function of their seed.
    """
    rng, texts = generator("largest", *name, n, estimator), tuple(f"v{i}" for i in range(len(shares)))
    truth, wrong = dict(zip(texts, shares.tolist())), []
    for seed in rng.integers(0, 1 << 31, windows).tolist():
        item = collection(seed)
        counts = window(item, texts, shares, n, rng)
        asked = None if item.alphabet.known_values is not None else texts[:size]
        wrong.append(list(wrong_among_the_largest(item.estimate(counts, estimator, asked), truth)))
    return np.array(wrong)


def assert_few_wrong(wrong: np.ndarray, *name: object) -> None:
    """Prints the shares that are missed (pytest -s)."""
    print("|", " | ".join([*map(str, name), *(f"{100 * share:.1f}" for share in wrong.mean(axis=0))]), "|")
    assert (wrong.mean(axis=0) <= most_wrong(len(wrong))).all()


# ---------------------------------------------------------------------- closed alphabets

CLOSED: dict[str, dict[str, Any]] = {
    **{name: {} for name in MECHANISMS},
    "ss, two sizes": {"id": "ss", "subset_size": 1, "larger_share": 0.3},
    "oue": {"id": "rappor", "theta": 0.5},
    "urap, marginal": {"id": "urap", "inversion": "marginal"},
}


def closed(name: str, size: int, epsilon: float) -> Collection:
    """Of utility-optimized mechanisms every other value is sensitive; priors are of a state with few of the values."""
    values, fields = [f"v{i}" for i in range(size)], {"id": name.split(",", maxsplit=1)[0]} | CLOSED[name]
    alphabet: dict[str, Any] = {"id": "closed", "values": values}
    if fields["id"] in UTILITY_OPTIMIZED:
        alphabet["sensitive"] = values[::2]
    if MECHANISMS[fields["id"]].takes("missing_rates"):
        fields["missing_rates"] = [0.4, 0.05]
    if MECHANISMS[fields["id"]].takes("priors"):
        fields["priors"] = [shares_of("uniform", size).tolist(), shares_of("zipf", size).tolist()]
    if MECHANISMS[fields["id"]].takes("matrix"):
        rest = round(WORD / (size - 1 + math.exp(epsilon)))
        fields["matrix"] = [[WORD - (size - 1) * rest if x == y else rest for x in range(size)] for y in range(size)]
    if MECHANISMS[fields["id"]].takes("levels"):
        alphabet["sensitive"] = values[::2]
        fields["levels"] = [{"epsilon": epsilon}, {"epsilon": 2 * epsilon, "values": values[::4]}]
    if MECHANISMS[fields["id"]].takes("epsilon"):
        fields["epsilon"] = epsilon
    return spec_of(alphabet, fields)


@pytest.mark.parametrize("name", ["krr", "urr"])
def test_of_the_largest_of_a_closed_alphabet_few_are_missed(name):
    wrong = simulated(always(closed(name, 142, 1.0)), 142, shares_of("uniform", 142), 3000, 60, "projected", name)
    assert_few_wrong(wrong, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLOSED)
def test_of_the_largest_of_every_closed_collection_few_are_missed(name):
    """300 to 30,000 reports (a million where a report is one number), all populations, several estimators."""
    parts = []
    for size, epsilon in ((142, 1.0), (60, 4.0), (142, 8.0)):
        item = closed(name, size, epsilon)
        most = [1_000_000] if item.mechanism.one_place else [30_000]
        for n, windows in zip((300, 3000, *most), (80, 40, 10)):
            for population in ("uniform", "zipf", "five"):
                shares = shares_of(population, size)
                setting = (name, size, epsilon, population)
                parts.append(simulated(always(item), size, shares, n, windows, "projected", *setting))
                parts.append(simulated(always(item), size, shares, n, windows // 10, "eb", *setting))
    assert_few_wrong(np.concatenate(parts), name)


# ---------------------------------------------------------------------- open alphabets

OPEN = [  # S, C, k, epsilon
    (60, 64, 3, 0.5),
    (142, 64, 4, 1.0),
    (100, 64, 56, 4.0),
    (277, 16, 400, 6.0),
    (142, 4, 2981, 8.0),
    (142, 2, 65_536, 16.0),
]


def hashed(num_buckets: int, epsilon: float, num_cohorts: int, **fields: Any) -> Callable[[int], Collection]:
    alphabet = {"id": "hashed", "num_buckets": num_buckets} | fields
    mechanism = {"id": "urr" if fields else "krr", "epsilon": epsilon}
    return lambda seed: spec_of(alphabet | {"seed": seed}, mechanism, num_cohorts)


def test_of_the_largest_of_an_open_alphabet_few_are_missed():
    """Few reports in many cohorts, of which 15 % are texts that nobody listed."""
    shares = np.append(0.85 * shares_of("uniform", 100), np.full(300, 0.15 / 300))
    assert_few_wrong(simulated(hashed(56, 4.0, 64), 100, shares, 300, 40, "projected", "open"), "open")


@pytest.mark.slow
@pytest.mark.parametrize("unlisted", [0, 1000])
@pytest.mark.parametrize("setting", OPEN, ids=str)
def test_of_the_largest_of_every_open_collection_few_are_missed(setting, unlisted):
    size, num_cohorts, k, epsilon = setting
    collection, parts = hashed(k, epsilon, num_cohorts), []
    for n, windows in ((300, 80), (3000, 40), (30_000, 10), (1_000_000, 10)):
        for population in ("uniform", "zipf", "five"):
            shares = shares_of(population, size) * (0.85 if unlisted else 1)
            shares = np.append(shares, np.full(unlisted, 0.15 / max(unlisted, 1)))
            name = (*setting, unlisted, population)
            parts.append(simulated(collection, size, shares, n, windows, "projected", *name))
            parts.append(simulated(collection, size, shares, n, windows // 10, "eb", *name))
    assert_few_wrong(np.concatenate(parts), *setting, unlisted)


@pytest.mark.slow
@pytest.mark.parametrize("clear", [None, 512], ids=["own symbols", "clear buckets"])
def test_of_the_largest_of_a_public_list_and_hashed_values_few_are_missed(clear):
    listed = [f"v{i}" for i in range(60)]
    fields = {"non_sensitive": listed} | ({} if clear is None else {"num_clear_buckets": clear})
    collection, parts = hashed(400, 6.0, 16, **fields), []
    for n, windows in ((300, 80), (3000, 40), (30_000, 10), (1_000_000, 10)):
        for population in ("uniform", "zipf", "five"):
            shares = shares_of(population, 120)
            parts.append(simulated(collection, 120, shares, n, windows, "projected", clear, population))
    assert_few_wrong(np.concatenate(parts), "beside a list", clear)


HEAVY = {  # S, C, k, epsilon, n, windows
    "many cohorts": (277, 16, 400, 6.0, 300, 1500),
    "few cohorts": (142, 4, 2981, 8.0, 3000, 1000),
    "few equations": (142, 8, 50, 4.0, 300, 1500),
    "few equations, many reports": (142, 8, 50, 4.0, 10_000, 3000),
    "long list": (600, 16, 100, 5.0, 3000, 400),
    "messages": (600, 24, 100, 5.0, 3000, 400),
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", HEAVY)
def test_beside_one_heavy_text_that_nobody_listed_few_of_the_largest_are_missed(setting):
    """It is 15 % of people, and all listed shares are alike: where it meets a listed one, that is the largest."""
    size, num_cohorts, k, epsilon, n, windows = HEAVY[setting]
    shares = np.append(0.85 * shares_of("uniform", size), 0.15)
    wrong = simulated(hashed(k, epsilon, num_cohorts), size, shares, n, windows, "projected", "heavy", setting)
    assert_few_wrong(wrong, "heavy", setting)


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [1, 1000])
def test_of_the_largest_of_values_with_hashed_prefixes_few_are_missed(heavy):
    """Of 60 values 10 are whole in both levels; 15 % of people hold one other text, or one of 1,000."""
    tokens, parts = ["v", *map(str, range(10))], []
    alphabet = {"id": "prefixes", "num_buckets": 150, "tokens": tokens, "lengths": [2, None]}
    for population in ("uniform", "zipf", "five"):
        shares = np.append(0.85 * shares_of(population, 60), np.full(heavy, 0.15 / heavy))
        for n, windows in ((300, 200), (3000, 100)):
            name = ("prefixes", heavy, population)
            parts.append(simulated(prefixes(alphabet), 60, shares, n, windows, "projected", *name))
    assert_few_wrong(np.concatenate(parts), "prefixes", heavy)


def prefixes(alphabet: dict[str, Any]) -> Callable[[int], Collection]:
    return lambda seed: spec_of(alphabet | {"seed": seed}, {"id": "krr", "epsilon": 5.0}, 16)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permuted", "two hash functions"])
def test_of_the_largest_of_values_that_share_symbols_few_are_missed(kind):
    """Permuted values are all there are; of texts with two hash functions 15 % are not listed."""
    fields: dict[str, Any] = {"id": "permuted", "num_buckets": 12, "values": [f"v{i}" for i in range(60)]}
    mechanism, unlisted, parts = "krr", 0, []
    if kind == "two hash functions":
        fields, mechanism, unlisted = {"id": "hashed", "num_buckets": 32, "num_hashes": 2}, "rappor", 300
    for epsilon in (2.0, 5.0):
        for n, windows in ((300, 100), (3000, 50), (30_000, 10)):
            for population in ("uniform", "zipf", "five"):
                shares = shares_of(population, 60) * (0.85 if unlisted else 1)
                shares = np.append(shares, np.full(unlisted, 0.15 / max(unlisted, 1)))
                name = (kind, epsilon, population)
                item = seeded(fields, {"id": mechanism, "epsilon": epsilon}, 32)
                parts.append(simulated(item, 60, shares, n, windows, "projected", *name))
    assert_few_wrong(np.concatenate(parts), kind)


def seeded(alphabet: dict[str, Any], mechanism: dict[str, Any], num_cohorts: int) -> Callable[[int], Collection]:
    return lambda seed: spec_of(alphabet | {"seed": seed}, mechanism, num_cohorts)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_of_the_largest_of_values_that_may_be_behind_tags_few_are_missed(epsilon):
    """A fifth of those with a value that is not sensitive to all send one of two tags, whose background is right."""
    values, parts = [f"v{i}" for i in range(60)], []
    for population in ("uniform", "zipf", "five"):
        shares, hidden = shares_of(population, 60), np.arange(60) >= 20
        behind = np.where(hidden, shares, 0) / shares[hidden].sum()
        alphabet = {"id": "tagged", "values": values, "sensitive": values[:20], "tags": ["home", "work"]}
        background = {"home": {value: float(share) for value, share in zip(values, behind) if share}}
        item = spec_of(alphabet | {"background": background}, {"id": "urr", "epsilon": epsilon})
        sent = np.zeros(item.mechanism.num_symbols)
        sent[item.alphabet.symbol_table(tuple(values), 1)[0]] = np.where(hidden, 0.8, 1) * shares
        sent[20:22] = 0.1 * shares[hidden].sum()
        rates, rng = item.mechanism.response(sent), generator("largest behind tags", epsilon, population)
        for n, windows in ((300, 200), (3000, 200), (1_000_000, 50)):
            for cells in rng.multinomial(n, rates / rates.sum(), size=windows):
                estimate = item.estimate(CohortCounts(np.array([n]), cells[np.newaxis]), "projected")
                parts.append(list(wrong_among_the_largest(estimate, dict(zip(values, shares.tolist())))))
    assert_few_wrong(np.array(parts), "tagged", epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("population", ["zipf", "five", "uniform"])
def test_of_the_largest_discovered_values_few_are_missed(population):
    """Of 100 (all alike: 30) words of one to four of 40 syllables; nobody lists them."""
    syllables = tuple(f"{a}{b}" for a in "bdfgklmn" for b in "aeiou")
    rng, wrong, size = generator("largest discovered", population), [], 30 if population == "uniform" else 100
    shares = shares_of(population, size)
    alphabet = {"id": "prefixes", "num_buckets": 32, "tokens": [*"abdefgiklmnou", *syllables], "lengths": [2, 3, None]}
    for seed in range(60):
        words = {"".join(rng.choice(syllables, rng.integers(1, 5))) for _ in range(3 * size)}
        texts = tuple(rng.permutation(sorted(words)).tolist()[:size])
        item = spec_of(alphabet | {"seed": seed}, {"id": "krr", "epsilon": 4.0}, 96)
        found, truth = discover(item, window(item, texts, shares, 20_000, rng)), dict(zip(texts, shares.tolist()))
        held = np.array([truth.get(text, 0.0) for text in found.values])
        missed = (held < found.ci_low) | (held > found.ci_high)
        wrong.append([float(missed[:number].mean()) if len(missed) else 0.0 for number in LARGEST])
        assert len(found.values) >= 3
    assert_few_wrong(np.array(wrong), "discovered", population)


# ---------------------------------------------------------------------- numbers and their intervals


@pytest.mark.parametrize(("name", "estimator"), ANSWERS_TO_TEST)
def test_each_number_is_in_its_own_intervals(name: str, estimator: Estimator) -> None:
    """Of every mechanism, alphabet and estimator, whatever the counts; for one look and for all; in rows too."""
    item, rng = ALL_COLLECTIONS[name], generator("own interval", name, estimator.id)
    texts = item.alphabet.known_values or VALUES
    for n in (30, 1000):
        held = rng.choice(np.array(texts, dtype=object), n, p=rng.dirichlet(np.full(len(texts), 0.3))).tolist()
        counts = item.count(item.perturb(held, rng))
        try:
            estimate = estimator.estimate(item, counts, None if item.alphabet.known_values else VALUES)
        except EstimationError:  # too few cohorts reported
            assert n == 30
            continue
        for look in (estimate, estimate.anytime(10), estimate.anytime(10, True), estimate.anytime(10, False)):
            for entry in value_estimates(look):
                assert entry.display_low is not None and entry.display_high is not None
                assert entry.display_low <= entry.ci_low <= entry.frequency <= entry.ci_high <= entry.display_high
                if 0 <= entry.frequency <= 1:
                    assert entry.display_low >= 0 and entry.display_high <= 1
