"""What the planner forecasts is what the library does: against simulated collections, from people to raw estimates.

A forecast passes if it is within 10 % of the truth as far as the repetitions can tell: its distance from their mean is
at most 10 % of it and as many standard errors as the suite's rate of false alarms asks for.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.small_mechanisms import make
from tests.support.tolerance import generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets import Blocks
from uldp_transforms.ldp.mechanisms.nested.nested_channel import Level
from uldp_transforms.ldp.sampling import SeededSource
from uldp_transforms_planner.planning import ClosedQuestion, OpenQuestion, hashed_forecast
from uldp_transforms_planner.planning.forecast import Estimates, Groups, rare_shift, told
from uldp_transforms_planner.planning.planned_question import Forecast, Setup, placeholders
from uldp_transforms_planner.planning.structured_rows import values_by_symbol
from uldp_transforms_planner.utility import expected_l1, l1_without_privacy

WITHIN = 0.1
MANY = 200_000  # reports that are made at a time


@dataclasses.dataclass(frozen=True)
class Case:
    """A row of the planner at an epsilon and a number of reports."""

    question: ClosedQuestion | OpenQuestion
    row: str
    epsilon: float
    n: int
    repetitions: int = 100

    def __str__(self) -> str:
        fields = (getattr(self.question, field.name) for field in dataclasses.fields(self.question))
        shown = "-".join(str(value) for value in fields if isinstance(value, (int, float, str)))
        return f"{self.row}-{self.epsilon}-{self.n}-{shown}"

    @functools.cached_property
    def setup(self) -> Setup:
        setup = self.question.setups(self.n)[self.row](self.epsilon)
        assert setup is not None
        return setup


def open_case(size: int, row: str, epsilon: float, n: int, repetitions: int = 100, **fields: Any) -> Case:
    return Case(OpenQuestion(num_candidates=size, **fields), row, epsilon, n, repetitions)


def closed_case(w: int, v: int, row: str, epsilon: float, n: int, law: str = "zipf", repetitions: int = 100) -> Case:
    """Frequencies are given: sensitive values have every other rank, as far as there are as many."""
    p = 1 / np.arange(1.0, w + 1) if law == "zipf" else np.ones(w)
    p = np.roll(p / p.sum(), w // 3)
    return Case(
        ClosedQuestion(num_values=w, num_sensitive=v, frequencies=tuple(p.tolist())), row, epsilon, n, repetitions
    )


def shares(number: int, law: str) -> tuple[float, ...]:
    """The largest share is a third of the way down."""
    p = 1 / np.arange(1.0, number + 1) if law == "zipf" else np.ones(number)
    return tuple(np.roll(p / p.sum(), number // 3).tolist())


def block_case(
    sizes: Sequence[tuple[int, int]], row: str, epsilon: float, n: int, law: str = "zipf", repetitions: int = 60
) -> Case:
    """Blocks of these numbers of values, and of sensitive ones."""
    lists = {f"b{block:03}": [f"b{block:03}-{i}" for i in range(size)] for block, (size, _) in enumerate(sizes)}
    sensitive = tuple(value for own, (_, number) in zip(lists.values(), sizes) for value in own[:number])
    blocks = Blocks(blocks=lists, sensitive=None if all(own == size for size, own in sizes) else sensitive)
    names = values_by_symbol(blocks)
    held = {"num_sensitive": len(sensitive), "frequencies": shares(len(names), law)}
    question = ClosedQuestion(num_values=len(names), names=names, blocks=blocks, **held)
    return Case(question, f"{row}, blocks", epsilon, n, repetitions)


def level_case(
    sizes: Sequence[tuple[int, float]], clear: int, of: str, n: int, law: str = "zipf", repetitions: int = 60
) -> Case:
    """Levels with these numbers of values and epsilons, and further values."""
    v = sum(number for number, _ in sizes)
    names = placeholders(v + clear)
    rest = iter(names)
    levels = tuple(Level(epsilon, tuple(next(rest) for _ in range(number))) for number, epsilon in sizes)
    question = ClosedQuestion(
        num_values=len(names),
        num_sensitive=v,
        frequencies=shares(len(names), law),
        names=tuple(names),
        levels=levels,
    )
    return Case(question, f"levels, of {of}", sizes[0][1], n, repetitions)


TWENTIES, UNEQUAL, PARTLY = [(20, 20)] * 20, [(5, 5), (40, 40), (15, 15)], [(10, 3), (30, 30), (4, 0), (30, 30)]
TWO, OF_PAPER, THREE = [(5, 0.5), (45, 2.0)], [(10, 1.0), (90, 4.0)], [(3, 0.5), (9, 1.0), (40, 3.0)]

QUICK = [
    block_case(TWENTIES, "ss", 1, 20_000, repetitions=30),
    block_case(PARTLY, "uss", 1, 5_000),
    level_case(TWO, 10, "uss", 5_000),
    level_case(THREE, 8, "urr", 20_000),
    open_case(256, "krr", 1, 5_000, 40),
    open_case(256, "krr", 8, 10_000),  # was promised to be below no privacy
    open_case(256, "ss", 4, 20_000, 40, law="flat", unlisted_share=0.3),
    open_case(2000, "krr", 4, 30_000, 20),  # message passing
    open_case(256, "krr", 8, 50_000, 100, max_cohorts=4),  # collisions are rare and large
    open_case(100, "krr", 8, 50_000, 40, heaviest_unlisted=0.1),  # its cells stand out
    open_case(100, "krr", 2, 20_000, 60, heaviest_unlisted=0.1),  # they do not
    open_case(60, "urr", 2, 20_000, num_non_sensitive=200, sensitive_share=0.5),
    closed_case(200, 60, "uss", 1, 5_000),
    closed_case(200, 200, "krr", 8, 300),
    closed_case(200, 60, "urap", 4, 500),
    closed_case(500, 500, "krr, permuted", 2, 50_000, repetitions=30),
    closed_case(500, 350, "urr, hashed", 4, 20_000, repetitions=30),
    closed_case(1000, 600, "uss, permuted", 2, 50_000, repetitions=20),  # message passing
    closed_case(500, 150, "urr, permuted", 2, 20_000, repetitions=30),
    closed_case(2000, 2000, "krr, permuted", 1, 50_000, "flat", repetitions=20),
]

GRID = [
    *(
        block_case(sizes, row, epsilon, n, law)
        for sizes, rows in (
            (TWENTIES, ("krr", "ss", "hr", "rappor, best theta")),
            (UNEQUAL, ("krr", "ss")),
            (PARTLY, ("urr", "uss", "urap, best theta", "uhr")),
        )
        for row in rows
        for epsilon in (0.5, 1, 4)
        for n in (5_000, 100_000)
        for law in ("zipf", "flat")
    ),
    *(
        block_case([(100, own)] * 20, row, epsilon, 200_000, law, 20)
        for own, row in ((100, "ss"), (60, "uss"))
        for epsilon in (1, 3)
        for law in ("zipf", "flat")
    ),
    *(
        level_case(sizes, clear, of, n, law)
        for sizes in (TWO, OF_PAPER, THREE)
        for clear in (0, 20)
        for of in ("urr", "uss", "urap")
        for n in (5_000, 100_000)
        for law in ("zipf", "flat")
    ),
    *(level_case([(200, 1.0), (1_000, 3.0)], 800, "uss", 20_000, law, 20) for law in ("zipf", "flat")),
    *(
        open_case(size, row, epsilon, n, law=law, unlisted_share=u, repetitions=30)
        for size in (30, 256)
        for row in ("krr", "rappor")
        for epsilon in (0.5, 2, 8, 10)
        for n in (1_000, 50_000)
        for law, u in (("zipf", 0.1), ("flat", 0.3))
    ),
    *(
        open_case(size, "krr", epsilon, n, law=law, repetitions=10)
        for size in (1_000, 3_000)
        for epsilon in (1, 4, 8)
        for n in (10_000, 200_000)
        for law in ("zipf", "flat")
    ),
    *(
        open_case(100, row, epsilon, 20_000, num_non_sensitive=100, sensitive_share=0.4, repetitions=30)
        for row in ("urr", "urap", "uss", "uhr", "ss")
        for epsilon in (1, 4, 8)
    ),
    *(
        open_case(size, "krr", epsilon, n, unlisted_share=0.2, heaviest_unlisted=h, repetitions=10)
        for size in (20, 256, 1_000)
        for epsilon in (1, 4, 8)
        for n in (5_000, 100_000)
        for h in (0.0, 0.03, 0.15)
    ),
    *(
        open_case(256, "krr", epsilon, 50_000, max_cohorts=most, repetitions=40)
        for epsilon in (4, 8)
        for most in (8, 32)
    ),
    *(
        closed_case(w, v, f"{row}, {fold}", epsilon, n, law, 20)
        for w, v in ((500, 500), (500, 300), (3_000, 3_000), (3_000, 2_000))
        for row in (("krr", "urr", "uss") if v < w else ("krr",))
        for fold in ("permuted", "hashed")
        for epsilon in (1, 4)
        for n in (20_000, 500_000)
        for law in ("zipf", "flat")
    ),
    *(
        closed_case(w, v, f"{row}, {fold}", epsilon, 100_000, law, 20)
        for w, v in ((500, 130), (2_000, 256), (20_000, 200))
        for row in ("urr", "uss")
        for fold in ("permuted", "hashed")
        for epsilon in (1, 3)
        for law in ("zipf", "flat")
    ),
    *(
        closed_case(20_000, v, row, epsilon, 1_000_000, law, 12)
        for v, row in ((20_000, "krr, permuted"), (20_000, "krr, hashed"), (15_000, "urr, permuted"))
        for epsilon in (2, 4)
        for law in ("zipf", "flat")
    ),
    *(
        closed_case(w, v, row, epsilon, n, law, 60)
        for w, v in ((20, 20), (300, 40))
        for row in ("krr", "rappor", "ss", "hr", *(("urr", "urap", "uss", "uhr") if v < w else ()))
        for epsilon in (0.5, 2, 8)
        for n in (200, 10_000)
        for law in ("zipf", "flat")
    ),
]


def simulated(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """l1 and l2 of the raw estimates, one a repetition; with other hash functions each time, if there are any."""
    rng = generator("forecast", case)
    is_open = isinstance(case.question, OpenQuestion)
    values, p, asked = held_in_open(case.question) if is_open else held_in_closed(case.question)
    losses = []
    for _ in range(case.repetitions):
        collection = collection_of(case, int(rng.integers(1 << 40)))
        held = np.repeat(np.arange(len(values)), rng.multinomial(case.n, p))
        counts = counts_of(collection, values, held, rng)
        named = is_open or case.setup.needs_candidates
        found = collection.estimate(counts, "empirical", values[:asked] if named else None)
        place = {value: at for at, value in enumerate(found.values)}
        raw = found.raw_frequencies[[place[value] for value in values[:asked]]]
        errors = raw - p[:asked]
        losses.append((np.abs(errors).sum(), errors @ errors))
    l1, l2 = np.array(losses).T
    return l1, l2


def held_in_closed(question: ClosedQuestion) -> tuple[list[str], np.ndarray, int]:
    values = list(question.names or placeholders(question.num_values))
    return values, np.array(question.frequencies), question.num_values


def held_in_open(question: OpenQuestion) -> tuple[list[str], np.ndarray, int]:
    """Candidates, listed texts, unlisted ones, and what share of all people holds each."""
    shape = {
        size: 1 / np.arange(1.0, size + 1) if question.law == "zipf" else np.ones(size) for size in sizes(question)
    }
    first, listed = sizes(question)
    u, share = question.unlisted_share, 1.0 if question.sensitive_share is None else question.sensitive_share
    parts = [shape[first] / shape[first].sum() * (share - u)]
    parts += [shape[listed] / shape[listed].sum() * (1 - share)] if listed else []
    parts += [shape[first] / shape[first].sum() * u]
    if question.heaviest_unlisted is not None:
        parts[-1:] = heavy_unlisted(shape[first] / shape[first].sum(), u, question.heaviest_unlisted)
    unlisted = sum(map(len, parts)) - first - listed
    names = [f"candidate-{i}" for i in range(first)] + placeholders(listed) + [f"other-{i}" for i in range(unlisted)]
    p = np.concatenate(parts)
    return names, p / p.sum(), first + listed


def heavy_unlisted(shape: np.ndarray, share: float, heaviest: float) -> list[np.ndarray]:
    """One text, others none of which is held more often, and what is over among 300."""
    others = np.minimum(shape * (share - heaviest), heaviest)
    return [np.array([heaviest]), others, np.full(300, max(share - heaviest - others.sum(), 0.0) / 300)]


def sizes(question: OpenQuestion) -> tuple[int, int]:
    return question.num_candidates, question.num_non_sensitive


def collection_of(case: Case, seed: int) -> Collection:
    setup = case.setup
    alphabet = case.question.named_alphabet(setup)
    if "num_buckets" in alphabet:
        alphabet = alphabet | {"seed": seed}
    spec = {"id": "simulated", "version": 1, "alphabet": alphabet, "mechanism": setup.mechanism.to_json()}
    return Collection.from_json(spec | {"num_cohorts": setup.num_cohorts})


def counts_of(collection: Collection, values: list[str], held: np.ndarray, rng: np.random.Generator) -> CohortCounts:
    """What people report who hold these values; their number in a cohort is random."""
    table = collection.alphabet.symbol_table(tuple(values), collection.num_cohorts)
    cohorts = rng.integers(collection.num_cohorts, size=len(held))
    cells = np.zeros((collection.num_cohorts, collection.num_cells), dtype=np.int64)
    for start in range(0, len(held), MANY):
        some = slice(start, start + MANY)
        symbols = table[cohorts[some] % len(table), held[some]].astype(np.int64)
        payloads = collection.mechanism.perturb(symbols, SeededSource(rng))
        cells += collection.mechanism.count(payloads, cohorts[some], collection.num_cohorts)
    return CohortCounts(np.bincount(cohorts, minlength=collection.num_cohorts), cells)


def compare(case: Case) -> None:
    forecast: Forecast = case.setup.forecast(case.n)
    limit = student_limit(case.repetitions, comparisons=2)
    for name, losses in zip(("l1", "l2"), simulated(case)):
        expected, mean = getattr(forecast, name), losses.mean()
        slack = WITHIN * mean + limit * losses.std(ddof=1) / math.sqrt(len(losses))
        assert abs(expected - mean) <= slack, (name, expected / mean, slack / mean)


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_forecasts_are_what_happens(case):
    compare(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", GRID, ids=str)
def test_forecasts_are_what_happens_everywhere(case):
    compare(case)


# ---------------------------------------------------------------------- the parts


@pytest.mark.parametrize("n", [1, 7, 100, 10**6])
def test_absolute_errors_of_binomial_counts_are_exact(n):
    p = np.array([0.5, 0.3, 0.1, 0.06, 0.04 - 1e-7, 1e-7])
    assert told(Groups.of(p), n).l1 == pytest.approx(l1_without_privacy(p, n), rel=0.01)
    few = told(Groups.of(p), min(n, 60))
    assert few.l1 == pytest.approx(l1_without_privacy(p, min(n, 60)), rel=1e-9)


@pytest.mark.parametrize("row", ["krr", "rappor", "ss", "hr"])
@pytest.mark.parametrize("epsilon", [1, 8])
def test_absolute_errors_of_counts_without_clear_reports_are_exact(row, epsilon):
    """Every estimate is a function of one binomial count: de Moivre."""
    case = closed_case(30, 30, row, epsilon, 40)
    exact = expected_l1(case.setup.mechanism, np.array(case.question.frequencies), 40, method="exact")
    assert case.setup.forecast(40).l1 == pytest.approx(exact, rel=1e-6)


def test_absolute_errors_of_a_count_and_a_normal_rest():
    """By integration over the rest."""
    mean, n, step, rest = 2.5, 50, 0.1, 0.2
    variance = step**2 * mean * (1 - mean / n) + rest**2
    columns = {"numbers": [3], "variances": [variance], "counted": [mean], "steps": [step]}
    found = Estimates(num_reports=n, **{name: np.array(value, dtype=float) for name, value in columns.items()})
    z = np.linspace(-9, 9, 20_001)
    density = stats.norm.pdf(z) * (z[1] - z[0])
    counts = np.arange(n + 1)
    table = np.abs(step * (counts[:, np.newaxis] - mean) + rest * z) @ density
    assert found.l1 == pytest.approx(3 * stats.binom.pmf(counts, n, mean / n) @ table, rel=1e-5)


def test_rare_errors_by_enumeration():
    """One kind of event, for which the law is Poisson's."""
    shift = rare_shift(np.array([0.2]), np.array([0.3]), 0.3 * 0.2**2)
    assert shift.weights @ shift.errors == pytest.approx(0, abs=1e-12)
    assert shift.variance == pytest.approx(0.3 * 0.2**2, rel=0.01)
    counts = np.arange(30)
    exact = stats.poisson.pmf(counts, 0.3) @ np.abs(0.2 * (counts - 0.3))
    assert shift.weights @ np.abs(shift.errors) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("mass", [1.0, 0.25])
def test_own_holders_add_noise_by_the_closed_form(mass):
    """k-RR keeps a value with p and draws each other one with q. The mean square of the difference of two estimates is
    (p + q) / (p - q)**2 if everybody is in one of the two buckets, and 2 q / (p - q)**2 if in a third."""
    k, epsilon = 8, 1.5
    p, q = (math.exp(at) / (math.exp(epsilon) + k - 1) for at in (epsilon, 0))
    candidates = Groups(np.array([mass]), np.ones(1, dtype=np.int64))
    nobody = Groups(np.zeros(1), np.zeros(1, dtype=np.int64))
    noise = hashed_forecast.hashed_noise(make("krr", k, k, epsilon=epsilon), 64, 1000, candidates, 0.0, nobody)
    assert noise.own == pytest.approx((k - 2) / (k - 1) * ((p + q) - 2 * q) / (p - q) ** 2)


def test_an_unlisted_text_stays_unnoticed_with_the_probability_of_the_normal_law():
    """Noise so large that the texts add nothing to it: 100 cohorts of 8 buckets share the false alarms of 0.05."""
    texts, deviation = np.array([1e-6, 3e-3, 1.0]), 1e-3
    unlisted = Groups(texts, np.array([1, 0, 0]))
    found = hashed_forecast._unnoticed(unlisted, 8, 100.0, deviation**2, 0.0)
    limit = deviation * stats.norm.isf(0.05 / 800)
    assert found == pytest.approx(stats.norm.cdf((limit - texts * 7 / 8) / deviation), rel=1e-6, abs=1e-12)
    assert (hashed_forecast._unnoticed(unlisted, 8, 31.0, deviation**2, 0.0) == 1).all(), (
        "too few cohorts to exclude any"
    )


def test_half_widths_are_those_of_published_intervals():
    """Short intervals of rare values are cut at 0, so of values that are frequent."""
    case = closed_case(20, 20, "krr", 2, 20_000, "flat")
    rng = generator("half width")
    collection = collection_of(case, 0)
    values, p, _ = held_in_closed(case.question)
    held = np.repeat(np.arange(20), rng.multinomial(20_000, p))
    found = collection.estimate(counts_of(collection, values, held, rng))
    widths = (found.ci_high - found.ci_low) / 2
    assert case.setup.forecast(20_000).half_width == pytest.approx(widths.mean(), rel=0.05)


def test_changes_are_found_four_times_in_five():
    """The power of comparing two windows at the level that is stated."""
    setup = closed_case(20, 20, "krr", 1, 20_000, "flat").setup
    forecast = setup.forecast(20_000)
    change, tests = forecast.change(20), 20
    sd = math.sqrt(2 * forecast.sensitive.l2 / 20)
    limit = sd * stats.norm.isf(0.05 / (2 * tests))
    assert stats.norm.sf(limit, loc=change, scale=sd) == pytest.approx(0.8)
