"""Experiments after Tang et al.: what they find, and the formulas that they rest on."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from labs import reproduce
from labs.experiments import EXPERIMENTS
from labs.experiments.frame import Result
from labs.experiments.tang import missing_answers as tang_missing
from labs.experiments.tang import printed_aoue
from labs.experiments.tang import priors as tang_priors
from labs.experiments.tang import two_stage as tang_two_stage
from tests.support.tolerance import chi_square_limits, generator, within

BY_ID = {experiment.id: experiment for experiment in EXPERIMENTS}

FINDINGS = {
    "tang-figure-1": [True, True, True],
    "tang-figure-2": [True, True],
    "tang-priors": [True, True, True, False],
    "tang-missing-answers": [True, True, False],
}
"""What the verdicts say, in order; they follow from formulas, or are six standard errors away from the other answer."""


@functools.cache
def reduced(name: str) -> Result:
    return BY_ID[name].run(generator("reproduce", name), reduced=True, runs=None)


@pytest.mark.parametrize("name", FINDINGS)
def test_finds_what_the_documentation_says(name: str) -> None:
    assert [verdict.holds for verdict in reduced(name).verdicts] == FINDINGS[name]


@pytest.mark.parametrize("name", FINDINGS)
def test_draws_its_rows(name: str, tmp_path: Path) -> None:
    reproduce.draw(BY_ID[name], reduced(name), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 0


def test_every_experiment_has_its_findings() -> None:
    assert {name for name in BY_ID if name.startswith("tang")} == set(FINDINGS)


@pytest.mark.parametrize("mechanism", ["GRR", "AGRR", "OUE", "AOUE"])
def test_omega_is_the_worst_excess_over_sets(mechanism: str) -> None:
    """By brute force: over single values for AGRR, over all sets of values for AOUE."""
    priors = tang_priors.random_priors(generator("omega", mechanism))
    for epsilon in (0.2, 1.0):
        values = range(len(priors[0]))
        sizes = (1,) if mechanism.endswith("GRR") else values
        worst = max(
            sum(one[x] - np.exp(epsilon) * other[x] for x in chosen)
            for one, other in itertools.permutations(priors, 2)
            for size in sizes
            for chosen in itertools.combinations(values, size)
        )
        assert tang_priors.omega(mechanism, priors, epsilon) == pytest.approx(max(worst, 0.0))


def test_omega_of_the_overlapping_priors() -> None:
    """0.5 - 0.1 sqrt(e) for AGRR and AOUE alike: only the third value is so much likelier in one state."""
    for mechanism in ("AGRR", "AOUE"):
        assert tang_priors.omega(mechanism, tang_priors.OVERLAPPING, 0.5) == pytest.approx(0.5 - 0.1 * np.exp(0.5))


@pytest.mark.parametrize("name", ["tang-priors", "tang-missing-answers"])
def test_simulated_errors_are_the_expected_ones(name: str) -> None:
    """A mean of sums of squares; with at least one degree of freedom a run, whatever the correlations."""
    rows = [row for row in reduced(name).rows if row.get("runs")]
    assert rows
    for row in rows:
        ratio = row["simulated"] / row["error"]
        assert within(ratio * row["runs"], chi_square_limits(row["runs"]))


def test_log_ratio_of_states_that_determine_the_answer() -> None:
    """TSP keeps answers apart by E and a state's missing rate adds to it: ln((1 - .2) E / (1 - .4)) at rates .4, .2."""
    spec = tang_missing.collection("tsp", (0.4, 0.2), 1.0)
    ratio = tang_missing.largest_log_ratio(spec, tang_missing.telling_states((0.4, 0.2)))
    assert ratio == pytest.approx(1 + np.log(0.8 / 0.6), abs=1e-12)


def test_log_ratio_of_independent_states_reaches_epsilon() -> None:
    """Where missing rates differ by more than E they need all of the noise."""
    spec = tang_missing.collection("tsp", (0.4, 0.05), 1.0)
    ratio = tang_missing.largest_log_ratio(spec, tang_missing.independent_states((0.4, 0.05)))
    assert 0.999 < ratio <= 1 + 1e-12


@pytest.mark.parametrize("p2", [0.45, 0.7, 0.95])
def test_rates_give_the_wanted_probability_to_keep_a_missing_answer(p2: float) -> None:
    alpha, beta = tang_two_stage.rates_for(p2, 0.1)
    assert beta <= 0.1 <= alpha + 1e-12
    assert tang_two_stage.kept(tang_two_stage.two_stage(alpha, beta)) == pytest.approx(p2)


# ------------------------------------------------------------------------------------------- the printed noise of AOUE

EXCEEDED = ((0.726, 0.2959), (1.817, 0.2056))  # log ratio with the printed noise, and q of this library


@pytest.mark.parametrize(("example", "numbers"), list(zip(printed_aoue.COUNTEREXAMPLES, EXCEEDED)))
def test_the_printed_noise_of_aoue_does_not_protect_states(example: tuple, numbers: tuple[float, float]) -> None:
    """The printed omega is that of one value; reports have the bits of all. The library's noise is exactly enough."""
    (priors, epsilon), (exceeded, used) = example, numbers
    printed = printed_aoue.largest_log_ratio(priors, printed_aoue.noise(priors, epsilon, printed=True))
    assert round(printed, 3) == exceeded > epsilon
    here = printed_aoue.noise(priors, epsilon, printed=False)
    assert round(here, 4) == used
    assert printed_aoue.largest_log_ratio(priors, here) == pytest.approx(epsilon, abs=1e-12)
    mechanism = tang_priors.collection("AOUE", priors, epsilon).mechanism
    assert float(mechanism.noise_rate) == pytest.approx(here, abs=2**-31)
    rows = mechanism.channel()[1]
    shares = [[float(sum(p * q for p, q in zip(map(Fraction, state), row))) for state in priors] for row in rows]
    assert max(max(of) / min(of) for of in shares) <= np.exp(epsilon)
