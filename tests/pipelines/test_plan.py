"""The planner and its command line: numbers that the theory confirms, collections that load, refusals of one line."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.ldp.test_utility_losses import make
from tests.support.cases import ANY_VALUES
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.utility import (
    ClosedQuestion,
    OpenQuestion,
    amplification,
    best_num_buckets,
    expected_l1,
    expected_l2,
    hashed_variance,
    optimal_theta,
    plan,
    uldp_minimax,
    worst_case_distribution,
    worst_case_l1,
    worst_case_l2,
)
from uldp_transforms.pipelines import plan as program

QUESTIONS: dict[str, ClosedQuestion | OpenQuestion] = {
    "part": ClosedQuestion(num_values=40, num_sensitive=7),
    "share": ClosedQuestion(num_values=40, num_sensitive=7, sensitive_share=0.1),
    "all": ClosedQuestion(num_values=12, num_sensitive=12),
    "one": ClosedQuestion(num_values=2, num_sensitive=1),
    "open": OpenQuestion(num_candidates=30),
    "listed": OpenQuestion(num_candidates=30, num_non_sensitive=5),
    "listed-share": OpenQuestion(num_candidates=30, num_non_sensitive=5, sensitive_share=0.2),
}
questions = pytest.mark.parametrize("name", QUESTIONS)

N = 5_000


def names(found: Any) -> list[str]:
    return [row.name for row in found.rows]


# ---------------------------------------------------------------------- what is compared


def test_candidates_of_a_list():
    """Every mechanism for values of any kind; with a theta in its forms, and those that protect all values first."""
    for name, all_values in (("all", True), ("part", False)):
        found = names(plan(QUESTIONS[name], 1, N))
        assert found[:6] == ["no privacy", "krr", "rappor", "rappor, theta 0.5", "rappor, best theta", "ss"]
        assert ("urap, best theta" in found) != all_values
        expected = [key for key in ANY_VALUES if MECHANISMS[key].protects_all or not all_values]
        of_each = list(dict.fromkeys(row.split(",")[0] for row in found[1:]))
        assert of_each == sorted(expected, key=lambda key: not MECHANISMS[key].protects_all)


def test_candidates_of_open_alphabets():
    everybody = ["no privacy", "krr", "rappor", "rappor, theta 0.5", "ss", "hr"]
    assert names(plan(QUESTIONS["open"], 1, N)) == everybody
    assert names(plan(QUESTIONS["listed"], 1, N)) == [*everybody, "urr", "uss", "uhr"]


@pytest.mark.parametrize("name", ["part", "all", "one"])
def test_rows_of_a_list_are_worst_cases(name):
    question = QUESTIONS[name]
    assert isinstance(question, ClosedQuestion)
    optimum = uldp_minimax(question.num_values, question.num_sensitive, 1.5).risk
    for row in plan(question, 1.5, N).rows[1:]:
        mechanism = row.setup.mechanism
        assert row.l1 == pytest.approx(worst_case_l1(mechanism, N), rel=1e-9)
        assert row.l2 == pytest.approx(worst_case_l2(mechanism, N), rel=1e-9)
        assert row.above_optimum == pytest.approx(row.l2 * N / optimum - 1, rel=1e-6, abs=1e-9)


def test_rows_of_a_list_with_a_guess_are_those_of_its_spread_distribution():
    p = np.repeat([0.1 / 7, 0.9 / 33], [7, 33])
    for row in plan(QUESTIONS["share"], 1.5, N).rows[1:]:
        assert row.l1 == pytest.approx(expected_l1(row.setup.mechanism, p, N), rel=1e-9)
        assert row.l2 == pytest.approx(expected_l2(row.setup.mechanism, p, N), rel=1e-9)


def test_theta_follows_the_guess():
    row = next(row for row in plan(QUESTIONS["share"], 1.5, N).rows if row.name == "urap, best theta")
    assert row.setup.mechanism.theta == optimal_theta(7, 1.5, 0.1)


@pytest.mark.parametrize("name", ["part", "share"])
@pytest.mark.parametrize("epsilon", [0.3, 1, 3])
def test_no_other_subset_size_is_better(name, epsilon):
    row = next(row for row in plan(QUESTIONS[name], epsilon, N).rows if row.name == "uss")
    share = QUESTIONS[name].sensitive_share

    def loss(size: int) -> float:
        mechanism = make("uss", 40, 7, epsilon=epsilon, subset_size=size)
        p = worst_case_distribution(mechanism, "l2") if share is None else np.repeat([0.1 / 7, 0.9 / 33], [7, 33])
        return float(expected_l2(mechanism, p, N))

    assert row.l2 == pytest.approx(min(loss(size) for size in range(1, 7)), rel=1e-9)


def test_rows_without_privacy():
    worst, guessed = (plan(QUESTIONS[name], 1, N).rows[0] for name in ("part", "share"))
    assert worst.setup is None
    assert worst.l2 == pytest.approx((1 - 1 / 40) / N)
    assert worst.l1 == pytest.approx(math.sqrt(2 * 39 / (math.pi * N)))
    p = np.repeat([0.1 / 7, 0.9 / 33], [7, 33])
    assert guessed.l2 == pytest.approx((1 - p @ p) / N)
    assert plan(QUESTIONS["listed"], 1, N).rows[0].l2 == pytest.approx((1 - 1 / 35) / N)


def test_rows_of_open_alphabets():
    for row in plan(QUESTIONS["open"], 1, N).rows[1:]:
        setup = row.setup
        variance = hashed_variance(setup.mechanism, N, setup.num_cohorts, 30)
        assert row.l2 == pytest.approx(30 * variance)
        assert row.l1 == pytest.approx(30 * math.sqrt(2 * variance / math.pi))


def test_rows_of_open_alphabets_with_a_list():
    found = {row.name: row for row in plan(QUESTIONS["listed-share"], 1, N).rows}
    urr, krr = found["urr"].setup, found["krr"].setup
    assert urr.mechanism.num_sensitive == best_num_buckets(1, 0.2, 30)
    variance = hashed_variance(urr.mechanism, N, urr.num_cohorts, 30, sensitive_share=0.2)
    clear = 0.8 / 5 / urr.mechanism.kappa - (0.8 / 5) ** 2
    assert found["urr"].l2 == pytest.approx(30 * variance + 5 * clear / N)
    assert found["krr"].l2 == pytest.approx(35 * hashed_variance(krr.mechanism, N, krr.num_cohorts, 35))
    worst = {row.name: row for row in plan(QUESTIONS["listed"], 1, N).rows}["uss"]
    guesses = [OpenQuestion(num_candidates=30, num_non_sensitive=5, sensitive_share=s) for s in np.linspace(0, 1, 41)]
    losses = [next(row for row in plan(guess, 1, N).rows if row.name == "uss").l2 for guess in guesses]
    assert max(losses) <= worst.l2 * (1 + 1e-9)


# ---------------------------------------------------------------------- targets


@questions
@pytest.mark.parametrize("target", [{"target_l1": 0.2}, {"target_l2": 0.003}], ids=str)
def test_needed_reports_meet_the_target_and_one_less_does_not(name, target):
    found, (kind, wanted) = plan(QUESTIONS[name], 1, N, **target), next(iter(target.items()))
    loss = kind.removeprefix("target_")
    for index, row in enumerate(found.rows):
        enough = plan(QUESTIONS[name], 1, row.reports_needed).rows[index]
        assert getattr(enough, loss) <= wanted
        if row.reports_needed > 1:
            less = plan(QUESTIONS[name], 1, row.reports_needed - 1).rows[index]
            assert getattr(less, loss) > wanted


@questions
@pytest.mark.parametrize("target", [{"target_l1": 0.3}, {"target_l2": 0.003}], ids=str)
def test_needed_epsilons_meet_the_target_and_a_step_less_does_not(name, target):
    found, (kind, wanted) = plan(QUESTIONS[name], 1, N, **target), next(iter(target.items()))
    loss = kind.removeprefix("target_")
    for index, row in enumerate(found.rows[1:], 1):
        if row.epsilon_needed is None:  # half of all symbols are never enough
            assert row.name in ("hr", "uhr") and getattr(plan(QUESTIONS[name], 16, N).rows[index], loss) > wanted
            continue
        enough = plan(QUESTIONS[name], row.epsilon_needed, N).rows[index]
        assert getattr(enough, loss) <= wanted
        if row.epsilon_needed > 0.001:
            less = plan(QUESTIONS[name], row.epsilon_needed - 0.001, N).rows[index]
            assert getattr(less, loss) > wanted


def test_some_targets_need_more_people():
    found = plan(QUESTIONS["part"], 1, 10, target_l1=0.01)
    assert all(row.epsilon_needed is None for row in found.rows)
    assert all(row.reports_needed is None for row in plan(QUESTIONS["part"], 1, 10).rows)


# ---------------------------------------------------------------------- the recommendation


@questions
@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
def test_the_recommended_collection_loads(name, epsilon):
    found = plan(QUESTIONS[name], epsilon, N)
    collection = Collection.from_json(json.loads(json.dumps(found.collection)))
    assert collection.mechanism == found.best.setup.mechanism
    assert collection.num_cohorts == found.best.setup.num_cohorts
    assert len(collection.count(collection.perturb(["value-001"] * 9)).cells) == collection.num_cohorts
    assert found.amplification == amplification(collection.mechanism)


@questions
def test_the_recommended_row_is_short_and_nearly_best(name):
    found = plan(QUESTIONS[name], 1, N)
    rows = [row for row in found.rows if row.setup is not None]
    good = [row for row in rows if row.l2 <= 1.05 * min(row.l2 for row in rows)]
    assert found.best in good
    shortest = min(row.setup.mechanism.payload_size for row in good)
    assert found.best.setup.mechanism.payload_size == shortest
    assert found.best.l2 == min(row.l2 for row in good if row.setup.mechanism.payload_size == shortest)


def test_all_mechanisms_of_rows_exist():
    assert {row.setup.mechanism.id for row in plan(QUESTIONS["part"], 1, N).rows[1:]} <= set(MECHANISMS)


def test_detectable_frequency():
    """The power of the test that compares an estimate with the quantile of an absent value's estimate."""
    found = plan(QUESTIONS["part"], 1, N)
    mechanism = found.best.setup.mechanism
    p = worst_case_distribution(mechanism, "l2")
    sd = math.sqrt(mechanism.null_variances(p)[0] / N)
    limit = sd * stats.norm.isf(0.05 / 7)
    assert stats.norm.sf(limit, loc=found.detectable_frequency, scale=sd) == pytest.approx(0.8)


# ---------------------------------------------------------------------- the program

ROOT = Path(__file__).parents[2]
COMMAND = "--num_values 40 --num_sensitive 7 --epsilon 1 --reports 5000"


def cells(line: str) -> list[str]:
    """Cells of a line of the table: they are two or more spaces apart."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_program_prints_what_the_library_says(capsys):
    assert program.main(f"{COMMAND} --target_l1 0.2".split()) == 0
    printed = capsys.readouterr().out
    found = plan(QUESTIONS["part"], 1, N, target_l1=0.2)
    lines = printed.splitlines()
    assert lines[0] == "40 values, 7 of them sensitive; 5,000 reports at epsilon 1"
    assert cells(lines[3])[-2:] == ["reports for l1 0.2", "epsilon for l1 0.2"]
    for line, row in zip(lines[5:], found.rows[1:]):
        shown = cells(line)
        assert shown[2] == str(row.setup.mechanism.payload_size)
        assert [float(cell) for cell in shown[3:5]] == pytest.approx([row.l1, row.l2], rel=6e-3)
        assert shown[6:] == [
            f"{row.reports_needed:,}",
            f"{row.epsilon_needed:.3f}" if row.epsilon_needed else "above 16",
        ]
        assert shown[0].split(",")[0] == row.setup.mechanism.id
    assert json.loads(printed[printed.index("{") :]) == found.collection


@pytest.mark.parametrize(
    ("options", "first", "then"),
    [
        ("--num_values 9", "9 values, 9 of them sensitive; ", "at the distribution that is worst for it:"),
        (
            "--num_values 9 --num_sensitive 2 --sensitive_share 0.25",
            "9 values, 2 of them sensitive; ",
            "at the worst distribution with 0.25 of all people holding sensitive values:",
        ),
        (
            "--open --num_candidates 9",
            "9 candidates of an open alphabet; ",
            "at the distribution that is worst for it:",
        ),
        (
            "--open --num_candidates 9 --num_non_sensitive 3",
            "9 candidates of an open alphabet and 3 texts that are not sensitive; ",
            "at the distribution that is worst for it:",
        ),
    ],
)
def test_the_guess_stands_above_the_table(capsys, options, first, then):
    assert program.main(f"{options} --epsilon 1 --reports 100".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(first)
    assert lines[1].endswith(then)


def test_the_file_is_a_collection(tmp_path, capsys):
    path = tmp_path / "c.json"
    assert program.main([*COMMAND.split(), "--json", str(path)]) == 0
    assert Collection.from_json(path).mechanism.num_sensitive == 7
    assert str(path) in capsys.readouterr().out


def test_what_it_costs_to_be_asked_again(capsys):
    """The same numbers as ``ways`` has; twice epsilon unless another epsilon_inf is given."""
    question = "--num_values 4 --epsilon 1 --reports 10000 --reports_per_person 30"
    for more, epsilon_inf in (("", 2), (" --epsilon_inf 3", 3)):
        assert program.main((question + more).split()) == 0
        text = capsys.readouterr().out
        assert f"memos, epsilon_inf {epsilon_inf} " in text
        assert f"at worst 4 x {epsilon_inf} = {4 * epsilon_inf};" in text
        assert text.index("Recommended") < text.index("Asked in 30 windows") < text.index('"id": "planned"')
    texts = "--open --num_candidates 50 --epsilon 1 --reports 10000"
    assert program.main([*texts.split(), "--reports_per_person", "7"]) == 0
    assert "The fixed cohort is a pseudonym of " in capsys.readouterr().out


def test_an_epsilon_inf_below_epsilon_is_refused(capsys):
    question = "--num_values 4 --epsilon 1 --reports 10000 --reports_per_person 30 --epsilon_inf 0.5"
    assert program.main(question.split()) == 2
    assert "epsilon_inf must be a number above epsilon = 1, at most 16, got 0.5" in capsys.readouterr().err


def test_too_few_reports_are_called_so(capsys):
    assert program.main(["--num_values", "40", "--epsilon", "1", "--reports", "20"]) == 0
    assert "Too few reports for the whole distribution" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "the following arguments are required: --epsilon, --reports"),
        ("--num_values 4 --epsilon 17 --reports 9", "plan.epsilon must be a number in (0, 16], got 17.0"),
        ("--num_values 4 --epsilon 0 --reports 9", "--epsilon must be a number above 0, got '0'"),
        ("--num_values 4 --epsilon 1 --reports 1.5", "--reports must be a whole number above 0, got '1.5'"),
        (f"{COMMAND} --sensitive_share 2", "ClosedQuestion.sensitive_share must be a number in [0, 1], got 2.0"),
        (f"{COMMAND} --num_sensitive 41", "ClosedQuestion.num_sensitive must be an integer in [1, 40], got 41"),
        (f"{COMMAND} --target_l1 1 --target_l2 1", "argument --target_l2: not allowed with argument --target_l1"),
        (f"{COMMAND} --epsilon_inf 2", "--epsilon_inf needs --reports_per_person, got 2 alone"),
        (f"{COMMAND} --reports_per_person 0", "--reports_per_person must be a whole number above 0, got '0'"),
        (f"{COMMAND} --open", "--num_sensitive can be given only without --open, got 7"),
        (f"{COMMAND} --json none/c.json", "none/c.json: No such file or directory"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(capsys, arguments, said):
    assert program.main(arguments.split()) == 2
    captured = capsys.readouterr()
    assert captured.err == f"plan: {said}\n"
    assert captured.out == ""


def test_the_module_runs():
    command = [sys.executable, "-m", "pipelines.plan", *COMMAND.split()]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.startswith("40 values")
    assert result.stderr == ""
