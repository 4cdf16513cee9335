"""Few values: what looks alike is drawn together, and the default is never much worse than the best fixed estimator."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators.few_values import FEW, drawn_together, shares_beside_noise
from uldp_transforms.ldp.sampling import SeededSource
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex

TEXTS = tuple(f"value {i}" for i in range(40))
ALLOWED = 1.05  # times the mean squared error of the best of the two
NOTHING = 1e-12  # of errors below this there is no ratio: one value that is held, and of which only holders are counted


def shapes(size: int) -> dict[str, np.ndarray]:
    rank = np.arange(1, size + 1.0)
    weights = {
        "zipf": 1 / rank,
        "geometric": 0.5**rank,
        "uniform": np.ones(size),
        "one": rank == 1,
        "two": rank <= 2,
        "half": np.where(rank == 1, size, 1.0),
        "rising": 1 / rank[::-1],
    }
    return {name: weight / weight.sum() for name, weight in weights.items()}


def closed(mechanism: str, size: int, epsilon: float, sensitive: int) -> Collection:
    alphabet = {"id": "closed", "values": list(TEXTS[:size]), "sensitive": list(TEXTS[:sensitive])}
    fields = {"id": mechanism, "epsilon": epsilon}
    return made(alphabet, fields)


def hashed(epsilon: float, num_buckets: int) -> Collection:
    alphabet = {"id": "hashed", "num_buckets": num_buckets, "seed": 1}
    fields = {"id": "krr", "epsilon": epsilon}
    return made(alphabet, fields, num_cohorts=64)


def window(item: Collection, texts: tuple[str, ...], shares: np.ndarray, n: int, rng: np.random.Generator):
    """Counts of n people; of those whose report is one symbol by one draw for each symbol."""
    cohorts = np.sort(rng.integers(item.num_cohorts, size=n))
    held = rng.choice(len(texts), n, p=shares)
    table = np.broadcast_to(item.alphabet.symbol_table(texts, item.num_cohorts), (item.num_cohorts, len(texts)))
    symbols = table[cohorts, held]
    if item.mechanism.id not in ("krr", "urr"):
        return item.count_groups(item.mechanism.perturb(symbols, SeededSource(rng)), cohorts, 1)[0]
    own = np.bincount(cohorts * item.num_cells + symbols, minlength=item.num_cohorts * item.num_cells)
    channel = np.array([item.mechanism.response(row) for row in np.eye(item.num_cells)])
    drawn = rng.multinomial(own, np.tile(channel / channel.sum(axis=1, keepdims=True), (item.num_cohorts, 1)))
    cells = drawn.reshape(item.num_cohorts, item.num_cells, item.num_cells).sum(axis=1)
    return CohortCounts(np.bincount(cohorts, minlength=item.num_cohorts), cells)


def excess(
    item: Collection, shares: np.ndarray, n: int, unlisted: float, runs: int, name: str
) -> tuple[float, float, float]:
    """Mean of (eb - 1.05 best) in units of the best, by how much it may be above 0 by chance, and the ratio."""
    texts, size, losses = TEXTS if unlisted else TEXTS[: len(shares)], len(shares), []
    everybody = np.append((1 - unlisted) * shares, np.full(len(texts) - size, unlisted / max(len(texts) - size, 1)))
    rng = generator("few values", name)
    for _ in range(runs):
        counts = window(item, texts, everybody, n, rng)
        found = [item.estimate(counts, of, texts[:size]).frequencies for of in ("eb", "projected", "empirical")]
        losses.append([((estimate - everybody[:size]) ** 2).sum() for estimate in found])
    ours, *others = np.array(losses).T
    best = min(others, key=np.mean)
    least = best.mean() + NOTHING
    over = (ours - ALLOWED * best) / least
    slack = student_limit(runs) * float(over.std(ddof=1)) / np.sqrt(runs)
    return float(over.mean()), slack, float((ours.mean() + NOTHING) / least)


FAST = [("krr", 4, 4, 1.0, 300), ("rappor", 8, 8, 1.0, 300), ("urr", 4, 1, 1.0, 1000), ("uss", 5, 2, 2.0, 300)]


@pytest.mark.parametrize(("mechanism", "size", "sensitive", "epsilon", "n"), FAST)
@pytest.mark.parametrize("shape", ["zipf", "geometric"])
def test_few_values_lose_little(mechanism, size, sensitive, epsilon, n, shape):
    item = closed(mechanism, size, epsilon, sensitive)
    name = f"fast {mechanism} {shape}"
    over, slack, _ = excess(item, shapes(size)[shape], n, 0.0, 60, name)
    assert over <= slack


KINDS = [("krr", 0), ("rappor", 0), ("ss", 0), ("urr", 1), ("urap", 2), ("uss", 2)]


def assert_near_the_best(
    label: str, settings: Iterable[tuple[str, Collection, np.ndarray, int]], unlisted: float, runs: int
) -> None:
    """No setting (its name, the collection, what listed people hold, reports) is further off than chance explains.

    Prints the ratios (pytest -s).
    """
    wrong, ratios = {}, []
    for name, item, shares, n in settings:
        over, slack, ratio = excess(item, shares, n, unlisted, runs, name)
        ratios.append(ratio)
        if over > slack:
            wrong[name] = (over, slack)
    print("|", label, "|", len(ratios), "|", " | ".join(f"{q:.2f}" for q in np.quantile(ratios, [0, 0.5, 1])), "|")
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4, 8, 12])
@pytest.mark.parametrize(("mechanism", "sensitive"), KINDS)
def test_the_default_is_near_the_best_of_few_values(mechanism, sensitive, size):
    """All shapes at epsilon 0.5 to 4 and 100 to 100,000 people; limits at the suite's rate of false alarms."""
    people = (100, 1000, 10_000, 100_000) if mechanism in ("krr", "urr") else (100, 1000)
    settings = (
        (f"{mechanism} {size} {epsilon} {n} {shape}", closed(mechanism, size, epsilon, sensitive or size), shares, n)
        for epsilon, n in itertools.product((0.5, 1.0, 2.0, 4.0), people)
        for shape, shares in shapes(size).items()
    )
    assert_near_the_best(f"{mechanism} | {size}", settings, 0.0, 40)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 5, 6, 8, 12])
def test_many_windows_of_one_mechanism(size):
    """k-RR, whose counts are one multinomial draw: 1,000 windows a setting, so that the ratios are known to 1 %."""
    rng, ratios, wrong = generator("many windows", size), [], {}
    for epsilon, n in itertools.product((0.5, 1.0, 2.0, 4.0), (100, 300, 1000, 10_000, 100_000)):
        mechanism = closed("krr", size, epsilon, size).mechanism
        variance = (mechanism.miss / mechanism.delta + 1 / size) / mechanism.delta / n
        for shape, shares in shapes(size).items():
            drawn = rng.multinomial(n, mechanism.miss + mechanism.delta * shares, size=1000)
            raw = (drawn / n - mechanism.miss) / mechanism.delta
            ours = project_onto_simplex(np.array([drawn_together(row, variance) for row in raw]))
            losses = [((found - shares) ** 2).sum(axis=1) for found in (ours, project_onto_simplex(raw))]
            over = (losses[0] - ALLOWED * losses[1]) / losses[1].mean()
            ratios.append(losses[0].mean() / losses[1].mean())
            if over.mean() > student_limit(1000) * over.std(ddof=1) / np.sqrt(1000):
                wrong[f"{epsilon} {n} {shape}"] = ratios[-1]
    quantiles = np.quantile(ratios, [0, 0.5, 1])
    print("| krr, 1,000 windows |", size, "|", len(ratios), "|", " | ".join(f"{q:.2f}" for q in quantiles), "|")
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 12])
@pytest.mark.parametrize("unlisted", [0.0, 0.3, 0.8])
@pytest.mark.parametrize(("epsilon", "num_buckets", "n"), [(1.0, 4, 20_000), (4.0, 56, 3000)])
def test_the_default_is_near_the_best_of_few_candidates(size, unlisted, epsilon, num_buckets, n):
    """Candidates of a hashed alphabet, where the unlisted share is known: five, of which one is held, too."""
    item = hashed(epsilon, num_buckets)
    settings = (
        (f"hashed {size} {unlisted} {epsilon} {shape}", item, shares, n) for shape, shares in shapes(size).items()
    )
    assert_near_the_best(f"hashed {unlisted} | {size}", settings, unlisted, 60)


def test_equal_shares_of_few_values_are_nearer_than_projected_ones():
    """12 equal values; the James-Stein way takes most of the noise off."""
    item, shares, losses = closed("krr", 12, 4.0, 12), np.full(12, 1 / 12), []
    rng = generator("equal shares")
    for _ in range(150):
        counts = window(item, TEXTS[:12], shares, 2000, rng)
        found = [item.estimate(counts, of).frequencies for of in ("eb", "projected")]
        losses.append([((estimate - shares) ** 2).sum() for estimate in found])
    ours, projected = np.array(losses).T
    gain = 0.7 * projected - ours
    assert gain.mean() > student_limit(150) * gain.std(ddof=1) / np.sqrt(150)
    assert len(shares) <= FEW


# ------------------------------------------------------------------------------- where the unlisted share is noise

BESIDE_NOISE = {1: 2.3, 2: 1.2, 3: 1.13, 4: 1.08, 5: 1.05, 8: 1.05, 12: 1.05}
"""Times the least of ``projected`` and ``empirical``, by the number of candidates."""


@pytest.mark.slow
@pytest.mark.parametrize("size", BESIDE_NOISE)
def test_beside_noise_the_default_is_near_the_best(size):
    """Normal estimates of candidates; the rest has standard errors of 0.13 to 2, and is nobody to everybody."""
    rng, wrong, ratios, allowed = generator("beside noise", size), {}, [], BESIDE_NOISE[size]
    for error, rest in itertools.product((0.13, 0.2, 0.3, 0.5, 1.0, 2.0), (0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1)):
        for shape in ("zipf", "one", "uniform"):
            shares, variances = (1 - rest) * shapes(size)[shape], np.full(size, error**2 / size)
            raw = shares + np.sqrt(variances) * rng.standard_normal((1000, size))
            listed = project_onto_simplex(np.column_stack([raw, np.zeros(len(raw))]))[:, :-1]
            found = (shares_beside_noise(raw, variances), listed, raw)
            ours, *others = (((shown - shares) ** 2).sum(axis=1) for shown in found)
            best = min(others, key=np.mean)
            over = ours - allowed * best
            ratios.append(ours.mean() / best.mean())
            if over.mean() > student_limit(1000) * over.std(ddof=1) / np.sqrt(1000):
                wrong[f"{error} {rest} {shape}"] = ratios[-1]
    bound = f"{bound_beside_noise(size, 0.2):.2f}" if size < 5 else ""  # more of them cannot all be far from 0
    quantiles = (f"{q:.2f}" for q in np.quantile(ratios, [0, 0.5, 1]))
    print("|", size, "|", len(ratios), "|", " | ".join(quantiles), "|", bound, "|")
    assert not wrong


def bound_beside_noise(size: int, error: float) -> float:
    """What no estimator of the unlisted share stays below, in the test before, if all shares are far from 0.

    The estimate of the rest is normal around its share, in units of its error; its loss has ``size`` - 1 units of the
    differences beside it, which are another matter. Of any weights of shares the mean ratio under the rule that is
    best for them is such a bound; these are found by raising those where that rule is worst.
    """
    share, seen = np.linspace(0, 1 / error, 61)[:, np.newaxis], np.linspace(-6, 1 / error + 6, 500)
    law = stats.norm.pdf(seen - share) * (seen[1] - seen[0])
    listed = (law * (np.maximum(seen, 0) / (size + 1) - share) ** 2).sum(axis=1)
    best, weights, bound = size - 1 + np.minimum(listed, 1), np.full(len(share), 1 / len(share)), 0.0
    for step in range(1, 1500):
        parts = (weights / best)[:, np.newaxis]
        rule = (parts * share * law).sum(axis=0) / np.maximum((parts * law).sum(axis=0), 1e-300)
        ratios = (size - 1 + (law * (rule - share) ** 2).sum(axis=1)) / best
        bound = max(bound, float(weights @ ratios))
        weights = weights * np.exp((ratios - ratios.max()) * min(0.5, 2.5 / np.sqrt(step)))
        weights /= weights.sum()
    return bound


def test_one_to_four_candidates_cannot_be_near_the_best_of_both():
    """Whether a list is complete has to be guessed; with more candidates that is a small part of the loss."""
    bounds = [bound_beside_noise(size, 0.2) for size in (1, 2, 3, 4, 8)]
    assert bounds[0] > 1.3 and bounds[1] > 1.1 and bounds[2] > 1.06
    assert bounds[3] > ALLOWED > bounds[4]


# ------------------------------------------------------------------------------------------ from few to many values


def against(item: Collection, shares: np.ndarray, n: int, runs: int, names: tuple[str, ...]) -> np.ndarray:
    """(runs, 1 + names) squared errors of eb and of these, from the same counts of k-RR."""
    rng, channel, losses = generator("against", len(shares), n), item.mechanism.response(shares), []
    for cells in rng.multinomial(n, channel / channel.sum(), size=runs):
        counts = CohortCounts(np.array([n]), cells[np.newaxis])
        found = [item.estimate(counts, name).frequencies for name in ("eb", *names)]
        losses.append([((estimate - shares) ** 2).sum() for estimate in found])
    return np.array(losses)


def test_five_values_that_stand_out_of_many_keep_what_they_have():
    """5 of 40 values hold everything; the error is at most that of ``threshold``."""
    losses = against(closed("krr", 40, 1.0, 40), np.append(np.full(5, 0.2), np.zeros(35)), 15_000, 60, ("threshold",))
    over = losses[:, 0] - losses[:, 1]
    assert over.mean() <= student_limit(60) * over.std(ddof=1) / np.sqrt(60)


def test_equal_shares_of_many_values_are_nearly_found():
    """At most a fifth of the squared error of ``projected``."""
    losses = against(closed("krr", 40, 3.0, 40), np.full(40, 1 / 40), 15_000, 60, ("projected",))
    gain = 0.2 * losses[:, 1] - losses[:, 0]
    assert gain.mean() > student_limit(60) * gain.std(ddof=1) / np.sqrt(60)


@pytest.mark.slow
@pytest.mark.parametrize("size", [13, 14, 15, 16])
def test_the_step_from_few_to_many_values_is_small(size):
    """At most 1.1 times the best of ``projected`` and ``empirical``, beyond what 60 windows leave to chance."""
    wrong = {}
    for epsilon, n in itertools.product((1.0, 2.0, 4.0), (100, 1000, 10_000)):
        for shape, shares in shapes(size).items():
            losses = against(closed("krr", size, epsilon, size), shares, n, 60, ("projected", "empirical"))
            best = losses[:, 1:][:, np.argmin(losses[:, 1:].mean(axis=0))]
            over = losses[:, 0] - 1.1 * best
            if over.mean() > student_limit(60) * over.std(ddof=1) / np.sqrt(60):
                wrong[f"{epsilon} {n} {shape}"] = losses[:, 0].mean() / best.mean()
    assert not wrong
