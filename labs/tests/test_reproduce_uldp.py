"""The experiments of Murakami and Kawamoto 2019: reduced versions show what the paper claims; expected losses."""

from __future__ import annotations

import io
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from labs.experiments import EXPERIMENTS
from labs.experiments.frame import Result
from labs.experiments.uldp import expected_losses as uldp_expected
from labs.experiments.uldp.background import KNOWLEDGE, TRUE, background
from labs.experiments.uldp.check_ins import city, homelocator
from labs.experiments.uldp.figure_7 import adult_attributes
from labs.experiments.uldp.people_and_mechanisms import MECHANISMS, Population, acs, adult
from tests.support.tolerance import generator
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts

OURS = {experiment.id: experiment for experiment in EXPERIMENTS if experiment.id.startswith("uldp-")}


@pytest.fixture(scope="module", params=OURS)
def found(request: pytest.FixtureRequest) -> tuple[str, Result]:
    """Rows of two runs, which need not show anything."""
    name = request.param
    return name, OURS[name].run(generator("reproduce", name), reduced=True, runs=2)


@pytest.mark.parametrize("name", OURS)
def test_the_reduced_experiment_shows_what_the_paper_claims(name: str) -> None:
    """Limits of verdicts lie five or more standard deviations of a reduced run away from what is expected."""
    for verdict in OURS[name].run(generator("reproduce", name), reduced=True, runs=None).verdicts:
        assert verdict.holds, f"{verdict.claim} {verdict.evidence}"


def test_the_picture_can_be_drawn(found: tuple[str, Result]) -> None:
    name, result = found
    figure = Figure()
    OURS[name].draw(result.rows, figure)
    assert all(axes.get_xlabel() or axes.get_ylabel() or axes.get_title() for axes in figure.axes)
    assert any(len(axes.lines) + len(axes.patches) > 3 for axes in figure.axes) or name == "uldp-figure-9"
    figure.savefig(picture := io.BytesIO())
    assert picture.getvalue().startswith(b"\x89PNG")


def test_rows_are_flat(found: tuple[str, Result]) -> None:
    assert all(
        isinstance(cell, (str, int, float)) for row in found[1].rows for cell in row.values() if cell is not None
    )


def test_estimates_that_are_distributions_lose_at_most_everything(found: tuple[str, Result]) -> None:
    shown = [row for row in found[1].rows if row.get("decoder", "empirical") != "empirical"]
    assert all(0 < row["loss"] <= 2 for row in shown)
    if found[0] in ("uldp-figure-5", "uldp-figure-7", "uldp-figure-8"):
        assert all(row["loss"] <= 1 + 1e-9 for row in shown)


def test_experiments_are_those_of_the_paper() -> None:
    assert list(OURS) == [*(f"uldp-figure-{number}" for number in range(5, 14)), "uldp-table-1"]


# ------------------------------------------------------------------------------------------------------------ data


def test_data_are_as_described() -> None:
    for population, values, sensitive, people in ((acs(), 277, 35, 1_732_343), (adult(), 480, 128, 48_842)):
        assert (len(population.values), len(population.sensitive), population.size) == (values, sensitive, people)


@pytest.mark.parametrize(("number", "size"), list(enumerate((400, 800, 1600, 3200, 6400, 12_800), 4)))
def test_attributes_split_the_same_people(number: int, size: int) -> None:
    population = adult_attributes(number)
    sensitive = [population.values.index(value) for value in population.sensitive[:10_000]]
    assert (len(population.values), len(sensitive)) == (size, size // 5)
    assert population.size == 48_842
    assert population.people[sensitive].sum() == 6_633  # the divorced of both files


@pytest.mark.parametrize("data", [city(), homelocator()], ids=lambda data: data.name)
def test_check_ins_are_a_distribution(data: object) -> None:
    assert isinstance(data, type(city()))
    assert data.joint.sum() == pytest.approx(1)
    assert data.joint.min() >= 0
    sensitive = np.isin(data.values, data.sensitive)
    assert sensitive.sum() == 15
    assert data.joint[1:, sensitive].sum() == 0
    for knowledge in KNOWLEDGE[1:]:
        belief = background(data, knowledge, generator("belief", data.name))
        assert belief is not None
        assert belief.sum(axis=1) == pytest.approx([1, 1])
        assert belief[:, sensitive].sum() == 0
    assert background(data, TRUE, generator("belief")) == pytest.approx(data.joint[1:] / data.joint[1:].sum(1)[:, None])


# -------------------------------------------------------------------------------------------------- expected losses

INDEPENDENT = 10**15
"""So many people that those asked are as good as independent."""

ZIPF = Population(
    name="zipf",
    values=tuple(map(str, range(20))),
    sensitive=tuple(map(str, range(5))),
    people=np.array([232_792_560 // rank for rank in range(1, 21)]),
)
EPSILONS = (0.1, 1.0, math.log(20), 6.0)


def expected(mechanism: str, epsilon: float, asked: int = 2000, people: int = INDEPENDENT) -> np.ndarray:
    collection = ZIPF.collection(mechanism, epsilon)
    frequencies = uldp_expected.symbol_frequencies(collection, ZIPF.values, ZIPF.frequencies)
    return uldp_expected.covariance(collection.mechanism, frequencies, asked, people)


def printed_squared_error(mechanism: str, epsilon: float) -> float:
    """n times the closed forms of Kairouz, Bonawitz and Ramage 2016, propositions 3 and 4 (k symbols), and of Murakami
    and Kawamoto 2019, propositions 14 and 17 (v sensitive ones).
    """
    p, k, v = ZIPF.frequencies, 20, 5
    sensitive, squares = p[:v].sum(), (p**2).sum()
    u, h = math.exp(epsilon) - 1, math.exp(epsilon / 2)
    return {
        "RR": 1 - squares + (k - 1) * (k + 2 * u) / u**2,
        "RAPPOR": 1 - squares + k * h / (h - 1) ** 2,
        "uRR": (2 * u * (v - sensitive) + v * (v - 1)) / u**2 + 1 - squares,
        "uRAP": 1 + ((v + 1) * h - 1) / (h - 1) ** 2 - sensitive / (h - 1) - squares,
    }[mechanism]


def printed_total_variation(mechanism: str, epsilon: float) -> float:
    """The same for l1, propositions 3, 4, 6 and 9; times sqrt(pi n / 2)."""
    p, k, v = ZIPF.frequencies, 20, 5
    u, h = math.exp(epsilon) - 1, math.exp(epsilon / 2)
    s, n = p[:v], p[v:]
    big, small = (v + u) / u, h / (h - 1)
    return {
        "RR": np.sqrt((u * p + 1) * (u * (1 - p) + k - 1)).sum() / u,
        "RAPPOR": np.sqrt(((h - 1) * p + 1) * ((h - 1) * (1 - p) + 1)).sum() / (h - 1),
        "uRR": np.sqrt((s + 1 / u) * (big - s - 1 / u)).sum() + np.sqrt(n * (big - n)).sum(),
        "uRAP": np.sqrt((s + 1 / (h - 1)) * (small - s)).sum() + np.sqrt(n * (small - n)).sum(),
    }[mechanism] / 2


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("mechanism", ["RR", "RAPPOR", "uRR", "uRAP"])
def test_expected_losses_are_the_printed_ones(mechanism: str, epsilon: float) -> None:
    """To 1e-6: noise rates of bits are multiples of 2**-32."""
    covariances = expected(mechanism, epsilon)
    squared = uldp_expected.expected_squared_error(covariances).mean
    assert squared * 2000 == pytest.approx(printed_squared_error(mechanism, epsilon), rel=1e-6)
    variation = uldp_expected.expected_total_variation(covariances).mean
    unit = math.sqrt(2 / (math.pi * 2000))
    assert variation == pytest.approx(unit * printed_total_variation(mechanism, epsilon), rel=1e-6)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_deviations_are_those_of_the_covariance(mechanism: str) -> None:
    collection = ZIPF.collection(mechanism, 1.0)
    frequencies = uldp_expected.symbol_frequencies(collection, ZIPF.values, ZIPF.frequencies)
    for people in (2001, 4000, INDEPENDENT):
        found = uldp_expected.standard_deviations(collection.mechanism, frequencies, 2000, people)
        assert found**2 == pytest.approx(np.diag(expected(mechanism, 1.0, people=people)))


@pytest.mark.parametrize("mechanism", [None, "RR", "uRR", "uRAP", "uRAP aware", "RAPPOR"])
def test_covariance_without_replacement_by_enumeration(mechanism: str | None) -> None:
    """Two of four people, all pairs and all pairs of reports."""
    people = Population(name="four", values=("a", "b", "c"), sensitive=("a", "b"), people=np.array([2, 1, 1]))
    collection = people.collection(mechanism or "RR", 1.0)
    frequencies = uldp_expected.symbol_frequencies(collection, people.values, people.frequencies)
    held = np.repeat(np.arange(3), [round(4 * share) for share in frequencies])
    payloads, rows = collection.mechanism.channel()
    law = np.array([[float(entry) for entry in row] for row in rows])
    array = np.array([list(payload) for payload in payloads], dtype=np.uint8)
    cells = [collection.mechanism.count(array[[i]], np.zeros(1, np.int64), 1) for i in range(len(array))]
    moments = np.zeros((2, 3, 3))
    for one, other in itertools.combinations(held, 2):
        if mechanism is None:
            outcomes = [(1.0, (np.eye(3)[one] + np.eye(3)[other]) / 2)]
        else:
            outcomes = [
                (
                    law[i, one] * law[j, other],
                    collection.mechanism.invert(CohortCounts(np.array([2]), cells[i] + cells[j]))[0],
                )
                for i, j in itertools.product(range(len(array)), repeat=2)
            ]
        for probability, estimate in outcomes:
            moments[0] += probability / 6 * np.outer(estimate, np.ones(3))
            moments[1] += probability / 6 * np.outer(estimate, estimate)
    mean = moments[0][:, 0]
    used = None if mechanism is None else collection.mechanism
    assert mean == pytest.approx(frequencies)
    assert moments[1] - np.outer(mean, mean) == pytest.approx(uldp_expected.covariance(used, frequencies, 2, 4))


def test_spread_of_losses() -> None:
    """Of independent and of equal normal errors, by the moments of abs(Z)."""
    left = 1 - 2 / math.pi
    independent = uldp_expected.expected_total_variation(np.diag([1.0, 4.0]))
    assert independent.mean == pytest.approx(math.sqrt(2 / math.pi) * 1.5)
    assert independent.deviation == pytest.approx(math.sqrt(5 * left) / 2)
    equal = uldp_expected.expected_total_variation(np.array([[1.0, 2.0], [2.0, 4.0]]))
    assert equal.deviation == pytest.approx(3 * math.sqrt(left) / 2)
    assert uldp_expected.expected_squared_error(np.diag([1.0, 4.0])).deviation == pytest.approx(math.sqrt(2 * 17))


def test_expected_loss_with_bias_is_that_of_folded_normals() -> None:
    bias, deviations = np.array([0.3, -0.2, 0.0, 0.1, 0.0]), np.array([0.1, 0.5, 0.2, 0.0, 0.0])
    folded = [stats.foldnorm(abs(b) / d, scale=d).mean() if d else abs(b) for b, d in zip(bias, deviations)]
    assert uldp_expected.expected_with_bias(bias, deviations) == pytest.approx(sum(folded) / 2)


def test_symbols_and_values_are_told_apart() -> None:
    collection = ZIPF.collection("uRR", 1.0)
    reversed_values = ZIPF.values[::-1]
    ordered = uldp_expected.symbol_frequencies(collection, reversed_values, ZIPF.frequencies[::-1])
    assert Counter(ordered.tolist()) == Counter(ZIPF.frequencies.tolist())
    assert ordered == pytest.approx(ZIPF.frequencies)  # the first five are sensitive and have the first symbols
