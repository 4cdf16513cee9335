"""``uldp evaluate``, step by step: what is drawn, each figure computed once more, the tables, the reasons against."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uldp_transforms.jobs import pictures
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators.number_estimates import Mean, Quantile, estimate_numbers
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms_planner.evaluate import evaluate_command as program
from uldp_transforms_planner.evaluate import number_trials, trials
from uldp_transforms_planner.evaluate.number_trials import NumberOutcome, NumberTrial, evaluate_numbers
from uldp_transforms_planner.evaluate.trial_ways import Way, closed_ways, open_ways
from uldp_transforms_planner.evaluate.trials import Outcome, Trial, evaluate
from uldp_transforms_planner.planning import OpenQuestion

VALUES = ("a", "b", "c")
HELD = np.repeat([0, 1, 2], [60, 30, 10])
ALL = np.zeros(400, dtype=np.int64)


def trial_of(*ways: Way, **fields: Any) -> Trial:
    shared: dict[str, Any] = {"values": VALUES, "held": HELD, "asked": VALUES, "is_open": False, "seed": 7}
    shared |= {"estimators": ("projected",), "repetitions": 3, "num_reports": 50}
    return Trial(ways=ways, **shared | fields)


def krr(epsilon: float = 1.0) -> Way:
    [way] = closed_ways(["krr"], [epsilon], VALUES, None)
    return way


# ---------------------------------------------------------------------- what is tried


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("value\n" + "d\nb\ne\u0301\nb\na\n\u00e9\nb\nc\n", encoding="utf-8")
    return path


def configured(path: Path, *options: str) -> Trial:
    task = program.configure(["--values", str(path), *options])
    assert isinstance(task, program.Evaluation)
    return task.trial


def test_each_person_holds_the_value_of_their_row(people: Path) -> None:
    """Values are in alphabetical order; two forms of one letter are one value."""
    trial = configured(people)
    assert trial.values == trial.asked == ("a", "b", "c", "d", "\u00e9")
    assert [trial.values[at] for at in trial.held] == ["d", "b", "\u00e9", "b", "a", "\u00e9", "b", "c"]
    assert trial.shares == pytest.approx([1 / 8, 3 / 8, 1 / 8, 1 / 8, 2 / 8])
    assert (trial.num_reports, trial.repetitions, trial.estimators, trial.seed) == (8, 5, ("eb",), None)
    assert [way.epsilon for way in trial.ways if way.mechanism == "krr"] == [0.5, 1, 2]
    assert not trial.is_open


def test_options_of_a_trial(people: Path) -> None:
    options = ["--seed", "0", "--reports", "9", "--repetitions", "2", "--mechanisms", "ss,krr,ss"]
    trial = configured(people, *options, "--epsilons", "2,1,2", "--estimators", "ml,eb,ml")
    assert (trial.num_reports, trial.repetitions, trial.estimators, trial.seed) == (9, 2, ("ml", "eb"), 0)
    assert [(way.mechanism, way.epsilon) for way in trial.ways] == [("ss", 2), ("ss", 1), ("krr", 2), ("krr", 1)]


def test_listed_values_are_sensitive(people: Path) -> None:
    """Empty lines and values that nobody holds are no values."""
    listed = people.with_name("sensitive.txt")
    listed.write_text("d\n\ne\u0301\nnobody\nd\n", encoding="utf-8")
    ways = configured(people, "--sensitive", str(listed), "--epsilons", "1", "--mechanisms", "urr,krr").ways
    alphabets = [way.collection.alphabet.to_json() for way in ways if way.collection is not None]
    assert [of.get("sensitive") for of in alphabets] == [["d", "\u00e9"], None]
    assert {tuple(of["values"]) for of in alphabets} == {("a", "b", "c", "d", "\u00e9")}


@pytest.mark.parametrize("more", [[], ["--max_cohorts", "8"]])
def test_an_open_alphabet_is_asked_with_the_shares_in_the_file(
    more: list[str], people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates b, c, nobody and the public a, d; two eighths of all people hold the text on no list."""
    questions: list[OpenQuestion] = []

    def ways_of(names: Any, epsilons: Any, question: OpenQuestion, num_reports: int) -> Any:
        questions.append(question)
        return open_ways(names, epsilons, question, num_reports)

    monkeypatch.setattr(program, "open_ways", ways_of)
    candidates, sensitive = people.with_name("candidates.txt"), people.with_name("sensitive.txt")
    candidates.write_text("d\nnobody\nb\na\nc\nb\n", encoding="utf-8")
    sensitive.write_text("b\nc\nnobody\n", encoding="utf-8")
    options = ["--open", "--candidates", str(candidates), "--sensitive", str(sensitive), "--epsilons", "1,1", *more]
    trial = configured(people, *options, "--mechanisms", "krr")
    limit = {"max_cohorts": 8} if more else {}
    assert questions == [
        OpenQuestion(
            num_candidates=3,
            num_non_sensitive=2,
            frequencies=(0.0, 3 / 6, 1 / 6, 1 / 6, 1 / 6),
            unlisted_share=0.25,
            heaviest_unlisted=0.25,
            names=("a", "d"),
            **limit,
        )
    ]
    assert (trial.asked, trial.is_open, trial.num_reports) == (("d", "nobody", "b", "a", "c"), True, 8)
    assert trial.shares == pytest.approx([1 / 8, 0, 3 / 8, 1 / 8, 1 / 8])
    assert len(trial.ways) == 1
    questions.clear()
    assert configured(people, "--open", "--epsilons", "1").asked == ("a", "b", "c", "d", "\u00e9")
    assert (questions[0].num_candidates, questions[0].num_non_sensitive, questions[0].unlisted_share) == (5, 0, 0)
    assert questions[0].heaviest_unlisted == 0


CLEAR = "it protects only sensitive values, and here all values are sensitive; see --sensitive"
IN_ORDER = "it needs values in an order, which those of a column need not have"
NEVER = {
    "agrr": "it needs priors, which only a collection can declare",
    "aoue": "it needs priors, which only a collection can declare",
    "channel": "it needs matrix, which only a collection can declare",
    "levels": "it needs levels, which only a collection can declare",
    "tsp": "it needs missing_rates, which only a collection can declare",
    "up": "it reserves its last value for missing answers",
    "sw": IN_ORDER,
    "usw": IN_ORDER,
}
"""Mechanisms of this package that no values of a column fit."""


def test_reasons_against_a_mechanism() -> None:
    clear = dict.fromkeys(("urr", "urap", "uss", "uhr"), CLEAR)
    assert _reasons(closed_ways(None, [1.0], VALUES, None)) == NEVER | clear
    assert _reasons(closed_ways(None, [1.0], VALUES, ["c"])) == NEVER
    assert _reasons(closed_ways(["urr", "sw"], [1.0], VALUES, None)) == {"sw": IN_ORDER}
    assert _reasons(open_ways(None, [1.0], OpenQuestion(num_candidates=3), 1000)) == NEVER | clear
    assert _reasons(open_ways(None, [1.0], OpenQuestion(num_candidates=3, num_non_sensitive=1), 1000)) == NEVER
    few = [*open_ways(["hr", "krr"], [0.1, 1.0], OpenQuestion(num_candidates=900, max_cohorts=2), 1000)]
    reason = "no collection has enough cohorts for this many candidates"
    refused = [(way.mechanism, way.epsilon, way.collection) for way in few if way.reason == reason]
    assert len(refused) + sum(way.collection is not None for way in few) == 4
    assert ("hr", 0.1, None) in refused


def _reasons(ways: Any) -> dict[str, str]:
    """Of the mechanisms of this package: others may be installed."""
    found = list(ways)
    assert all((way.collection is None) == (way.reason is not None) == (way.epsilon is None) for way in found)
    return {way.mechanism: way.reason for way in found if way.reason is not None and way.mechanism in MECHANISMS}


def test_hash_functions_are_drawn_anew() -> None:
    [way] = open_ways(["krr"], [1.0], OpenQuestion(num_candidates=3), 1000)
    drawn = [way.drawn(np.random.default_rng(seed)).to_json() for seed in (1, 2, 1)]
    seeds = [spec["alphabet"].pop("seed") for spec in drawn]
    assert seeds[0] == seeds[2] != seeds[1]
    assert seeds == [int(np.random.default_rng(seed).integers(1 << 40)) for seed in (1, 2, 1)]
    assert drawn[0] == drawn[1]
    closed = krr()
    assert closed.drawn(np.random.default_rng(1)) is closed.collection


# ---------------------------------------------------------------------- figures


class Stopwatch:
    """Time that passes by 2 ms whenever somebody looks."""

    def __init__(self) -> None:
        self.looks = 0

    def perf_counter(self) -> float:
        self.looks += 1
        return self.looks * 2e-3


def test_figures_of_one_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computed once more, value by value; the empty share at the end of its interval is in it, as is a full one."""
    monkeypatch.setattr(trials, "time", Stopwatch())
    way = krr(1.5)
    assert way.collection is not None
    missed = []
    for held, asked, told in ((HELD, ("c", "a", "b"), HELD), (ALL, VALUES, ALL), (ALL, VALUES, ALL + 2)):
        trial = trial_of(way, held=held, asked=asked)
        batch = way.collection.perturb([VALUES[at] for at in told], np.random.default_rng(3))
        estimate = way.collection.estimate(way.collection.count(batch), "projected")
        low, high = estimate.intervals(0.95)
        rows = []
        for value in asked:
            at, share = estimate.values.index(value), float(np.mean([VALUES[one] == value for one in held]))
            error = estimate.frequencies[at] - share
            inside = not (low[at] > share or high[at] < share)
            raw = (estimate.raw_frequencies[at] - share) ** 2
            rows.append((raw, error**2, 3 * abs(error), inside, (high[at] - low[at]) / 2))
        found = trials._judged(trial, way.collection, batch, "projected", 0.0005)
        assert found == pytest.approx((*np.mean(rows, axis=0), 0.0005 / 50 * 1e6, 2e-3 / 50 * 1e6))
        missed.append(sum(not row[3] for row in rows))
    assert any(end in (0, 1) for end in (*low, *high)), "an end is at an end of the range"
    assert missed[1:] == [0, 2], "one interval is too low, and one too high, for shares that others have"


def test_figures_are_means_over_repetitions() -> None:
    blank = Outcome(mechanism="krr", epsilon=1.0, estimator="eb")
    rows = np.array([[0.01, 0.04, 0.1, 1.0, 0.2, 5, 7], [0.03, 0.14, 0.3, 0.5, 0.4, 15, 9]])
    found = trials._filled(blank, 2, rows)
    assert dataclasses.astuple(found) == pytest.approx(
        ("krr", 1.0, "eb", None, 2, 0.02**0.5, 0.09**0.5, 0.2, 0.75, 0.3, 10, 8)
    )


def test_a_configuration_has_its_own_random_numbers() -> None:
    """Whatever is tried before it, of whatever length; and each repetition has its own."""
    times = {"client_us": 0.0, "collector_us": 0.0}
    first, second, refused = krr(1.0), krr(2.0), Way(mechanism="x", reason="why")
    one, two, three = evaluate(trial_of(first, second, refused))
    alone = evaluate(trial_of(first))[0]
    assert dataclasses.replace(one, **times) == dataclasses.replace(alone, **times)
    assert three == Outcome(mechanism="x", epsilon=None, reason="why")
    assert (one.payload_bytes, two.payload_bytes) == (1, 1)
    fewer = evaluate(trial_of(first, repetitions=1))[0]
    assert fewer.raw_error != one.raw_error
    other = evaluate(trial_of(first, seed=8))[0]
    assert other.raw_error != one.raw_error


def test_what_cannot_be_estimated_is_a_reason() -> None:
    """Of an estimator for this collection; the others are tried."""
    [way] = closed_ways(["ss"], [1.0], VALUES, None)
    found = evaluate(trial_of(way, estimators=("ml", "empirical")))
    assert [(of.estimator, of.reason is None, of.error is None) for of in found] == [
        ("ml", False, True),
        ("empirical", True, False),
    ]
    assert trials.tried(found) == found[1:]


# ---------------------------------------------------------------------- the table


TRIED = Outcome(
    mechanism="krr",
    epsilon=1.5,
    estimator="eb",
    payload_bytes=1234,
    raw_error=0.012345,
    error=0.0054321,
    l1=0.25,
    covered=0.9512,
    half_width=0.0315,
    client_us=1.234,
    collector_us=0.5,
)


def test_lines_of_the_table() -> None:
    outcomes = [
        Outcome(mechanism="tsp", epsilon=None, reason="it needs more"),
        TRIED,
        Outcome(mechanism="ss", epsilon=0.5, estimator="ml", reason="no"),
        dataclasses.replace(TRIED, covered=0.0, epsilon=10.0),
    ]
    assert program.table(outcomes) == [
        "mechanism  epsilon  estimator  bytes  raw error    error    l1  covered  half width  client  collector",
        "krr            1.5  eb         1,234     0.0123  0.00543  0.25   95.1 %      0.0315    1.23       0.50",
        "krr             10  eb         1,234     0.0123  0.00543  0.25    0.0 %      0.0315    1.23       0.50",
        "tsp: not tried, it needs more",
        "ss, epsilon 0.5, ml: not tried, no",
    ]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "3 values; 50 reports, drawn from the 100 people in the file, 3 times; estimator projected"),
        (
            {"asked": VALUES[:2], "is_open": True, "estimators": ("eb", "projected")},
            "2 candidates; 50 reports, drawn from the 100 people in the file, 3 times; estimators eb, projected",
        ),
    ],
)
def test_what_is_printed_around_the_table(
    fields: dict[str, Any], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = trial_of(krr(), Way(mechanism="x", reason="why"), **fields)
    path = tmp_path / "t.json"
    assert program.job(program.Evaluation(trial=trial, json=str(path), png=None)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == line
    assert lines[-3:] == [
        "x: not tried, why",
        "error: root mean square error over values, of raw estimates and of the estimator; l1: sum of its absolute "
        "errors.",
        "covered: 95 % intervals that contain the share in the file. Times in microseconds per report, on this "
        "machine.",
    ]
    written = path.read_text(encoding="utf-8")
    assert json.loads(written)[-1]["reason"] == "why"
    assert written.startswith('[\n {\n  "mechanism": "krr",\n')


def test_a_picture_needs_its_package_before_anything_is_tried(
    people: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "entry_points", lambda **_: ())
    assert configured(people).num_reports == 8
    assert program.main(["--values", str(people), "--png", "p.png"]) == 2
    expected = "a report needs the package uldp-transforms-report; in a checkout: "
    expected += "pip install . ./packages/tables ./packages/report\n"
    assert capsys.readouterr().err == f"evaluate: {expected}"


# ---------------------------------------------------------------------- numbers


def numbers(**alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": 0, "high": 100, "num_bins": 10, "others": ["none"]} | alphabet
    return Collection.from_json({"id": "n", "version": 1, "alphabet": spec, "mechanism": {"id": "krr", "epsilon": 2.0}})


def test_the_truth_is_that_of_the_numbers() -> None:
    """Once clamped; of the people who have one, each as often as it is held."""
    of, values = numbers().alphabet, ("-50", "20", "none", "500")
    held = np.repeat([0, 1, 2, 3], [1, 2, 5, 1])
    found = number_trials._truth(of, values, held)
    assert found == {"mean": 35.0, "median": 20.0, "p90": pytest.approx(20 + 0.7 * 80)}
    log = number_trials._truth(numbers(low=1, scale="log").alphabet, values, held)
    assert log == {"median": 20.0, "p90": pytest.approx(20 + 0.7 * 80)}


EDGES = np.array([0.0, 10.0, 40.0])


def test_open_ends_are_those_of_the_range() -> None:
    """Quantiles prefer the smooth estimate, if there is one; an unknown estimate is the middle of the edges."""
    unknown = Quantile(q=0.5, value=None, low=None, high=None)
    middle = 50 / 3
    assert number_trials._row(unknown, EDGES, True) == pytest.approx((middle, 0, 40, 0, 40))
    plain = dataclasses.replace(unknown, value=5.0, low=4.0, high=None)
    assert number_trials._row(plain, EDGES, True) == (5, 4, 40, 4, 40)
    smooth = dataclasses.replace(plain, display_value=6.0, display_low=None, display_high=7.0)
    assert number_trials._row(smooth, EDGES, True) == (6, 0, 7, 4, 40)
    mean = Mean(value=5.0, low=4.0, high=9.0, half_bin=5.0, display_value=6.0, display_low=5.5, display_high=7.0)
    assert number_trials._row(mean, EDGES, False) == (5, 4, 9, 4, 9)


def test_figures_of_numbers() -> None:
    """Computed once more, window by window, with the same random numbers."""
    of, values, held = numbers(), ("5", "15", "95", "none"), np.repeat([0, 1, 2, 3], [50, 30, 10, 10])
    truth = {"mean": 25.0, "median": 9.0, "p90": 40.0}
    trial = NumberTrial(
        collections=(of,), values=values, held=held, truth=truth, repetitions=2, num_reports=400, seed=2, json=None
    )
    rng = np.random.default_rng(np.random.SeedSequence(2).spawn(1)[0])
    found = []
    for _ in range(2):
        texts = [values[at] for at in rng.choice(held, 400)]
        found.append(estimate_numbers(of, of.count(of.perturb(texts, rng)), quantiles=(0.5, 0.9)))
    expected = []
    for name, true in truth.items():
        figures = [one.mean if name == "mean" else one.quantiles[number_trials.NAMES.index(name)] for one in found]
        rows = np.array([number_trials._row(one, np.arange(0, 101, 10), name != "mean") for one in figures if one])
        inside = [[low <= true <= high, sure_low <= true <= sure_high] for _, low, high, sure_low, sure_high in rows]
        expected.append(
            NumberOutcome(
                mechanism="krr",
                epsilon=2.0,
                figure=name,
                error=float(np.mean([(row[0] - true) ** 2 for row in rows]) ** 0.5),
                covered=float(np.mean(inside, axis=0)[0]),
                half_width=float(np.mean([row[2] - row[1] for row in rows]) / 2),
                sure_covered=float(np.mean(inside, axis=0)[1]),
                sure_half_width=float(np.mean([row[4] - row[3] for row in rows]) / 2),
            )
        )
    outcomes = evaluate_numbers(trial)
    for one, other in zip(outcomes, expected, strict=True):
        assert dataclasses.astuple(one) == pytest.approx(dataclasses.astuple(other))


@pytest.mark.parametrize("true", [0.0, 100.0])
def test_the_end_of_the_range_is_in_an_interval_that_is_open_there(true: float) -> None:
    of, held = numbers(others=[]), np.zeros(50, dtype=np.int64)
    trial = NumberTrial(
        collections=(of,),
        values=("2" if true == 0 else "98",),
        held=held,
        truth={"median": true},
        repetitions=1,
        num_reports=50,
        seed=2,
        json=None,
    )
    [found] = evaluate_numbers(trial)
    assert (found.covered, found.sure_covered) == (1.0, 1.0)


def test_a_trial_of_numbers_has_all_options(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(json.dumps(numbers().to_json()), encoding="utf-8")
    (tmp_path / "people.csv").write_text("value\n25\nnone\n5\n25\n", encoding="utf-8")
    argv = ["--values", f"{tmp_path}/people.csv", "--collection", f"{tmp_path}/n.json", "--epsilons", "2,1,2"]
    plain = program.configure(argv)
    assert isinstance(plain, NumberTrial)
    of_each = [(of.mechanism.id, of.mechanism.epsilon) for of in plain.collections]
    assert of_each == [(name, epsilon) for name in ("sw", "krr", "rappor", "ss", "hr") for epsilon in (2, 1)]
    assert (plain.values, plain.held.tolist()) == (("25", "5", "none"), [0, 2, 1, 0])
    assert (plain.num_reports, plain.repetitions, plain.seed, plain.json) == (4, 5, None, None)
    assert plain.truth["median"] == 25
    more = program.configure([*argv, "--mechanisms=ss", "--reports=9", "--repetitions=2", "--seed=3", "--json=t"])
    assert isinstance(more, NumberTrial)
    assert [of.mechanism.id for of in more.collections] == ["ss", "ss"]
    assert (more.num_reports, more.repetitions, more.seed, more.json) == (9, 2, 3, "t")
