"""Declared channels: real answers by known randomizers, other mechanisms by another name, and what cannot be a channel.

The counts of the crosswise questions are those of Hoeglinger and Jann (University of Bern social sciences working
papers 8 and 17, in the R package GLMMRR 0.6.0); those of Nigeria are of the R package rr 1.4.2 (Blair, Imai and Zhou
2015). The expected rates are those that the packages print.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cases import MECHANISM_CASES
from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, generator
from tests.support.vectors import Memory
from uldp_transforms.jobs import audit as audit_command
from uldp_transforms.ldp import Budget, Client, CohortCounts, Collection
from uldp_transforms.ldp.client.client_form import client_form
from uldp_transforms.ldp.errors import BudgetSpentError, SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import DeclaredChannel, Mechanism
from uldp_transforms.ldp.mechanisms.channels.declared_channel import _text
from uldp_transforms.ldp.privacy import audit
from uldp_transforms.ldp.sampling import WORD, exp_bounds, word_source


def question(matrix: Any, values: tuple[str, ...] = ("no", "yes"), **fields: Any) -> Collection:
    mechanism = {"id": "channel", "matrix": matrix} | fields
    alphabet = {"id": "closed", "values": list(values)}
    return made(alphabet, mechanism, id="asked")


def crosswise(rate: str) -> list[list[str]]:
    """Answer 1: with this probability of those who have the property, with the other one of those who have not."""
    other = str(1 - Fraction(rate))
    return [[rate, other], [other, rate]]


FORCED = [["5/6", "1/6"], ["1/6", "5/6"]]


@pytest.mark.parametrize(
    ("matrix", "counts", "rate", "error"),
    [
        (crosswise("0.1594625"), (562, 604), 0.4736, 0.0215),
        (crosswise("0.1971293"), (542, 605), 0.4547, 0.0243),
        (crosswise("0.1594625"), (339, 801), 0.2025, 0.0199),
        (FORCED, (1604, 831), 0.2619, 0.0144),
    ],
)
def test_real_answers_have_the_published_rates(matrix, counts, rate, error):
    asked = question(matrix)
    cells = CohortCounts(np.array([sum(counts)]), np.array([counts]))
    estimate = asked.estimate(cells)
    assert estimate.raw_frequencies[1] == pytest.approx(rate, abs=1e-4)
    assert estimate.standard_errors[1] == pytest.approx(error, abs=1e-4)
    assert estimate.ci_low[1] < rate < estimate.ci_high[1]


def as_channel(mechanism: Mechanism) -> Collection:
    """The same probabilities, declared as integers."""
    rows = [[int(share * WORD) for share in row] for row in mechanism.channel()[1]]
    return question(rows, tuple(f"value {symbol}" for symbol in range(mechanism.num_symbols)))


BY_ANOTHER_NAME = [
    case
    for name in ("krr", "urr", "up", "tsp")
    for case in MECHANISM_CASES[name]
    if case.num_symbols <= 6 and case.epsilon == 1.0 and not getattr(case, "epsilon_inf", None)
]


@pytest.mark.parametrize("mechanism", BY_ANOTHER_NAME, ids=lambda case: f"{case.id}-{case.num_symbols}")
def test_a_mechanism_by_another_name_gives_the_same_numbers(mechanism):
    declared = as_channel(mechanism)
    symbols = np.minimum(generator("by-another-name").geometric(0.4, 5000) - 1, mechanism.num_symbols - 1)
    payloads = mechanism.perturb(symbols, word_source(generator("words")))
    counts = declared.count_groups(payloads, np.zeros(len(payloads), dtype=np.int64), 1)[0]
    frequencies = np.full(mechanism.num_symbols, 1 / mechanism.num_symbols)
    for ours, theirs in (
        (declared.mechanism.invert(counts), mechanism.invert(counts)),
        (declared.mechanism.variances(frequencies), mechanism.variances(frequencies)),
        *zip(declared.mechanism.intervals(counts, frequencies, 0.95), mechanism.intervals(counts, frequencies, 0.95)),
        *zip(
            declared.mechanism.intervals(counts, frequencies, 0.95, strict=True),
            mechanism.intervals(counts, frequencies, 0.95, strict=True),
        ),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_epsilon_follows_from_the_matrix_and_is_rounded_up():
    asked = question(FORCED)
    mechanism = asked.mechanism
    assert mechanism.epsilon == pytest.approx(math.log(5), abs=1e-12)
    assert mechanism.exact_ratio <= exp_bounds(mechanism.epsilon)[0]
    assert exp_bounds(math.nextafter(mechanism.epsilon, 0))[0] < mechanism.exact_ratio
    assert not audit(asked).faults


def test_weights_round_down_and_the_largest_of_a_column_gets_the_rest():
    mechanism = DeclaredChannel(num_symbols=2, num_sensitive=2, matrix=(("1/3", "1/2"), ("1/3", "1/4"), ("1/3", "1/4")))
    third = WORD // 3
    assert [row[0] for row in mechanism.weights] == [third + 1, third, third]
    assert [sum(column) for column in zip(*mechanism.weights)] == [WORD, WORD]


def test_a_direct_question_is_exact_and_its_audit_promises_nothing():
    asked = question([["1", "0"], ["0", "1"]])
    counts = asked.count(asked.perturb(["yes"] * 30 + ["no"] * 70, generator("direct")))
    estimate = asked.estimate(counts)
    assert estimate.frequencies.tolist() == [0.7, 0.3]
    found = audit(asked)
    assert math.isinf(found.epsilon) and found.effective_epsilon.is_infinite() and not found.faults
    assert asked.mechanism.reveal_rate == 0, "no value is marked as not sensitive"
    text = audit_command.describe(asked, found)
    assert "promise     none: a report can rule values out" in text
    assert "ratio infinite\nepsilon     infinite\n" in text
    assert "note        No epsilon holds: output 0 rules out symbol 1; output 1 rules out symbol 0." in text
    assert text.endswith("verdict     nothing is promised: do not call these reports locally private")


def test_reports_of_foreign_clients_are_decoded_and_never_drawn():
    foreign = question(FORCED, clients="foreign")
    with pytest.raises(SpecError, match=r"^DeclaredChannel\.clients must be 'own' to draw reports, got 'foreign'"):
        foreign.perturb(["yes"])
    with pytest.raises(SpecError, match=r"^DeclaredChannel\.clients must be 'own' to draw reports, got 'foreign'"):
        client_form(foreign)
    own = question(FORCED)
    assert own.fingerprint != foreign.fingerprint
    counts = own.count(own.perturb(["yes"] * 100, generator("own")))
    assert foreign.estimate(counts).raw_frequencies[1] == own.estimate(counts).raw_frequencies[1]


@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name != "ml"])  # it needs a closed form
def test_every_estimator_takes_more_outputs_than_symbols(estimator):
    matrix = [["1/2", "1/8", "1/8"], ["1/4", "5/8", "1/8"], ["1/8", "1/8", "5/8"], ["1/8", "1/8", "1/8"]]
    asked = question(matrix, ("a", "b", "c"))
    counts = asked.count(asked.perturb(["a"] * 6000 + ["b"] * 3000 + ["c"] * 1000, generator("outputs")))
    estimate = asked.estimate(counts, estimator)
    limit = 6 * estimate.standard_errors
    assert (np.abs(estimate.frequencies - [0.6, 0.3, 0.1]) < limit).all()


def test_no_budget_has_room_for_a_report_that_rules_values_out():
    client = Client(question([["1", "0"], ["0", "1"]]), Memory(), Budget(epsilon=1e6))
    with pytest.raises(BudgetSpentError, match=r"^Budget\.epsilon must not be exceeded, got 0 of 1e\+06 spent and"):
        client.report("yes", 0)


def test_a_budget_counts_the_epsilon_that_follows_from_the_matrix():
    client = Client(question(FORCED), Memory(), Budget(epsilon=2 * math.log(5), period_ms=10 * 86_400_000))
    for day in range(2):
        client.report("yes", day * 86_400_000)
    with pytest.raises(BudgetSpentError, match=r"a report that adds 1\.609$"):
        client.report("yes", 2 * 86_400_000)


@pytest.mark.parametrize(
    ("matrix", "truth"),
    [
        ([["0.9", "0.35"], ["0.1", "0.65"]], (0.7, 0.3)),
        ([["0.9", "0.35"], ["0.1", "0.65"]], (0.98, 0.02)),
        ([["1/2", "1/8", "1/8"], ["1/4", "5/8", "1/8"], ["1/8", "1/8", "5/8"], ["1/8", "1/8", "1/8"]], (0.6, 0.3, 0.1)),
        ([["1/2", "1/4", "0"], ["1/4", "1/2", "1/4"], ["1/4", "1/4", "3/4"]], (0.2, 0.05, 0.75)),
    ],
)
def test_intervals_hold_the_truth_in_94_per_cent_of_windows_or_more(matrix, truth):
    asked, windows, people = question(matrix, tuple("abc"[: len(truth)])), 500, 1000
    law = asked.mechanism.response(np.array(truth))
    held = np.zeros(len(truth), dtype=np.int64)
    for cells in generator("intervals", str(matrix), truth).multinomial(people, law, size=windows):
        estimate = asked.estimate(CohortCounts(np.array([people]), cells[np.newaxis]))
        held += (estimate.ci_low <= truth) & (truth <= estimate.ci_high)
    low, _ = binomial_limits(np.full(len(truth), windows), np.full(len(truth), 0.94))
    assert (held >= low).all()


def test_the_page_prints_what_it_says(capsys):
    page = (Path(__file__).parents[3] / "docs" / "channels.md").read_text(encoding="utf-8")
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", page, flags=re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == printed


def test_a_sum_of_thirty_characters_is_said_in_full_and_a_longer_one_as_its_difference():
    assert _text(Fraction(10**14 + 1, 10**13)) == "100000000000001/10000000000000"
    assert _text(Fraction(10**14 + 1, 10**14)) == "1 + 1e-14"
    assert _text(Fraction(10**14 - 1, 10**15)) == "1 - 0.9"
    assert _text(Fraction(1, 2)) == "1/2"
