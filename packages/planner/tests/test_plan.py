"""The planner and its command line: numbers that the theory confirms, collections that load, refusals of one line."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.cases import ANY_VALUES
from tests.support.ldp.small_mechanisms import make
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.messages import wire
from uldp_transforms_planner.plan import plan_command as program
from uldp_transforms_planner.planning import ClosedQuestion, OpenQuestion, hashed_variance, least_epsilon, plan
from uldp_transforms_planner.planning.planned_question import Setup
from uldp_transforms_planner.utility import (
    amplification,
    expected_l1,
    expected_l2,
    l1_without_privacy,
    optimal_theta,
    uldp_minimax,
    worst_case_distribution,
    worst_case_l1,
    worst_case_l2,
)

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
    assert names(plan(QUESTIONS["listed"], 1, N)) == [*everybody, "urr", "urap", "uss", "uhr"]


@pytest.mark.parametrize("name", ["part", "all", "one"])
def test_rows_of_a_list_are_worst_cases(name):
    question = QUESTIONS[name]
    assert isinstance(question, ClosedQuestion)
    optimum = uldp_minimax(question.num_values, question.num_sensitive, 1.5).risk
    for row in plan(question, 1.5, N).rows[1:]:
        mechanism = row.setup.mechanism
        assert row.l1 == pytest.approx(worst_case_l1(mechanism, N), rel=0.01)  # the normal form; nearly so here
        assert row.l2 == pytest.approx(worst_case_l2(mechanism, N), rel=1e-9)
        assert row.above_optimum == pytest.approx(row.l2 * N / optimum - 1, rel=1e-6, abs=1e-9)


def test_rows_of_a_list_with_a_guess_are_those_of_its_spread_distribution():
    p = np.repeat([0.1 / 7, 0.9 / 33], [7, 33])
    for row in plan(QUESTIONS["share"], 1.5, N).rows[1:]:
        assert row.l1 == pytest.approx(expected_l1(row.setup.mechanism, p, N), rel=0.01)
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

    one = min(loss(size) for size in range(1, 7))
    if row.setup.mechanism.larger_share is None:
        assert row.l2 == pytest.approx(one, rel=1e-9)
    else:
        assert row.l2 < one


def test_rows_without_privacy():
    worst, guessed = (plan(QUESTIONS[name], 1, N).rows[0] for name in ("part", "share"))
    assert worst.setup is None
    assert worst.l2 == pytest.approx((1 - 1 / 40) / N)
    assert worst.l1 == pytest.approx(l1_without_privacy(np.full(40, 1 / 40), N), rel=1e-3)
    p = np.repeat([0.1 / 7, 0.9 / 33], [7, 33])
    assert guessed.l2 == pytest.approx((1 - p @ p) / N)
    assert worst.lie == guessed.lie == 1
    flat = OpenQuestion(num_candidates=30, num_non_sensitive=5, law="flat", unlisted_share=0.0)
    assert plan(flat, 1, N).rows[0].l2 == pytest.approx((1 - 1 / 35) / N)


OF_OPEN = [
    OpenQuestion(num_candidates=s, num_non_sensitive=s // 5 * listed, unlisted_share=u, law=law)
    for s in (1, 700)
    for listed in (0, 1)
    for u in (0.0, 0.1)
    for law in ("zipf", "flat")
]


@pytest.mark.parametrize("question", [*QUESTIONS.values(), *OF_OPEN], ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1, 4, 8, 16])
@pytest.mark.parametrize("n", [10, N, 10**7])
def test_no_row_promises_less_error_than_no_privacy(question, epsilon, n):
    """People who hide something cannot be known better than people who tell: rounding apart, in every column."""
    told, *rows = plan(question, epsilon, n).rows
    assert rows
    is_same = isinstance(question, OpenQuestion) and not question.num_non_sensitive  # the distribution of all rows
    for row in rows:
        assert row.l2 >= told.l2 * (1 - 1e-9), row
        assert row.l1 >= told.l1 * (1 - 1e-3), row
        assert not is_same or row.half_width >= told.half_width * (1 - 1e-9), row
        assert not is_same or row.change >= told.change * (1 - 1e-9), row
        assert row.lie >= 1 - 1e-9, row


@pytest.mark.parametrize("law", ["zipf", "flat"])
def test_rows_of_open_alphabets_of_short_lists(law):
    """Leading term of least squares, plus what own people add: p (1 - p) of telling at the least."""
    question = OpenQuestion(num_candidates=30, law=law)
    p = 0.9 * (1 / np.arange(1, 31) if law == "zipf" else np.ones(30))
    p /= p.sum() / 0.9
    for row in plan(question, 1, N).rows[1:]:
        setup = row.setup
        unlisted = 0.1**2 * ((p / 0.9) ** 2).sum()
        variance = hashed_variance(setup.mechanism, N, setup.num_cohorts, 30, unlisted_squares=unlisted)
        assert row.l2 >= 30 * variance - (p @ p) / N
        assert row.l2 == pytest.approx(30 * variance, rel=0.1)  # at epsilon 1 noise is nearly all


def sized(question: OpenQuestion, name: str, num_buckets: int, num_cohorts: int, epsilon: float) -> Setup:
    """A setup with these sizes, whatever the planner would choose."""
    listed = 0 if MECHANISMS[name].protects_all else question.num_non_sensitive
    return question._setup(question._mechanism(name, num_buckets, listed, epsilon=epsilon), num_cohorts)


GRID_OF_SIZES = [
    *(
        (OpenQuestion(num_candidates=s), "krr", e, n)
        for s in (1, 20, 256)
        for e in (1, 4, 8, 12)
        for n in (1000, 10**7)
    ),
    (OpenQuestion(num_candidates=20, unlisted_share=0.3, heaviest_unlisted=0.2), "krr", 8, 10**5),
    (OpenQuestion(num_candidates=20, unlisted_share=0.3, heaviest_unlisted=0.2), "krr", 1, 10**6),
    (OpenQuestion(num_candidates=20, max_cohorts=4), "krr", 6, 10**5),
    (OpenQuestion(num_candidates=30, num_non_sensitive=20), "urr", 6, 10**5),
    (OpenQuestion(num_candidates=30, num_non_sensitive=20, sensitive_share=0.2), "urr", 3, 10**5),
    (OpenQuestion(num_candidates=900), "krr", 6, 10**5),
]


@pytest.mark.parametrize(("question", "name", "epsilon", "n"), GRID_OF_SIZES, ids=str)
def test_no_other_sizes_have_a_better_forecast(question, name, epsilon, n):
    """At most 2 % above the least l2 of a grid of buckets, a step of 4 % wide, with as many cohorts as there may be."""
    chosen = question.setups(n)[name](epsilon)
    found, k = [], 2.0
    while k <= 65_536:
        setup = sized(question, name, round(k), 2, epsilon)
        cohorts = question._cohorts(setup.mechanism, n)
        if cohorts is not None:
            found.append(sized(question, name, round(k), cohorts[1], epsilon).l2(n))
        k *= 1.04 if question.num_candidates <= 512 else 1.3
    assert chosen.l2(n) <= 1.02 * min(found)


def test_short_lists_at_large_epsilon_have_fewer_buckets():
    """Own people's noise grows with k: near sqrt(S e**epsilon) buckets are best, and not e**epsilon."""
    setup = plan(OpenQuestion(num_candidates=20), 8, 10**6).best.setup
    assert 200 < setup.mechanism.num_sensitive < 400
    before = sized(OpenQuestion(num_candidates=20), "krr", 2982, 64, 8)
    assert before.l2(10**6) > 1.4 * setup.l2(10**6)


def test_cohorts_grow_with_the_reports_where_collisions_would_be_seen():
    numbers = [
        OpenQuestion(num_candidates=256).setups(n)["krr"](1).num_cohorts for n in (10**3, 10**5, 10**6, 10**7, 10**8)
    ]
    assert numbers[0] == numbers[1] == 1024
    assert numbers == sorted(numbers) and numbers[-1] > 4 * numbers[0]


def test_a_heavy_unlisted_text_is_in_the_forecast():
    """It falls onto a candidate in one of k buckets of a cohort: U / (C (k - 1)) for each of the S candidates."""
    found = [
        sized(OpenQuestion(num_candidates=20, unlisted_share=0.2, heaviest_unlisted=h), "krr", 4, 1024, 1).l2(10**6)
        for h in (0.0, 0.05, 0.2)
    ]
    assert found == sorted(found)
    equations = 1024 * 3
    assert found[2] - found[0] == pytest.approx(20 * 0.2**2 / equations / (1 - 20 / equations), rel=1e-6)
    rare = OpenQuestion(num_candidates=20, heaviest_unlisted=1e-9)
    assert plan(rare, 1, N).rows[1].l2 < plan(QUESTIONS["open"], 1, N).rows[1].l2


def test_rows_of_open_alphabets_with_a_list():
    worst = {row.name: row for row in plan(QUESTIONS["listed"], 1, N).rows}["uss"]
    guesses = [OpenQuestion(num_candidates=30, num_non_sensitive=5, sensitive_share=s) for s in np.linspace(0.1, 1, 41)]
    losses = [next(row for row in plan(guess, 1, N).rows if row.name == "uss").l2 for guess in guesses]
    assert max(losses) <= worst.l2 * (1 + 1e-3)


# ---------------------------------------------------------------------- targets


@questions
@pytest.mark.parametrize("target", [{"target_l1": 0.2}, {"target_l2": 0.003}], ids=str)
def test_needed_reports_meet_the_target_and_one_less_does_not(name, target):
    found, (kind, wanted) = plan(QUESTIONS[name], 1, N, **target), next(iter(target.items()))
    loss = kind.removeprefix("target_")
    for row in found.rows:
        forecast = QUESTIONS[name].without_privacy if row.setup is None else row.setup.forecast
        assert getattr(forecast(row.reports_needed), loss) <= wanted
        if row.reports_needed > 1:
            assert getattr(forecast(row.reports_needed - 1), loss) > wanted


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
    assert found.rows and all(row.epsilon_needed is None for row in found.rows)
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


def test_detectable_frequency():
    """The power of the test that compares an estimate with the quantile of an absent value's estimate."""
    found = plan(QUESTIONS["part"], 1, N)
    mechanism = found.best.setup.mechanism
    p = worst_case_distribution(mechanism, "l2")
    sd = math.sqrt(mechanism.null_variances(p)[0] / N)
    limit = sd * stats.norm.isf(0.05 / 7)
    assert stats.norm.sf(limit, loc=found.detectable_frequency, scale=sd) == pytest.approx(0.8)


# ---------------------------------------------------------------------- the program

COMMAND = "--num_values 40 --num_sensitive 7 --epsilon 1 --reports 5000"
FEW = "--num_values 2 --num_sensitive 1 --epsilon 1 --reports 5000"


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
        size = row.setup.mechanism.payload_size
        assert shown[1:5:2] == ["closed", str(wire.single_bytes(size, 1))] and shown[4] == str(26 + size)
        errors = [row.l1, row.l2, row.half_width, row.change, row.lie]
        assert [float(cell) for cell in shown[5:10]] == pytest.approx(errors, rel=6e-3)
        seconds = [1e3 * row.client_seconds, row.window_seconds]
        assert [float(cell) for cell in shown[10:12]] == pytest.approx(seconds, rel=0.06)
        assert shown[13:] == [
            f"{row.reports_needed:,}",
            f"{row.epsilon_needed:.3f}" if row.epsilon_needed else "above 16",
        ]
        assert shown[0].split(",")[0] == row.setup.mechanism.id
    assert json.loads(printed[printed.index("{") :]) == found.collection


def test_the_file_is_a_collection(tmp_path, capsys):
    path = tmp_path / "c.json"
    assert program.main([*COMMAND.split(), "--output", str(path)]) == 0
    assert Collection.from_json(path).mechanism.num_sensitive == 7
    assert str(path) in capsys.readouterr().out


def test_the_recommended_collection_keeps_memos_if_their_guarantee_is_given(tmp_path, capsys):
    question = "--num_values 4 --epsilon 1 --reports 10000 --reports_per_person 30"
    found = []
    for more in ("", " --epsilon_inf 3"):
        path = tmp_path / "c.json"
        assert program.main([*(question + more).split(), "--output", str(path)]) == 0
        found.append(Collection.from_json(path).to_json()["mechanism"])
    plain, memos = found
    assert "epsilon_inf" not in plain
    assert memos == plain | {"epsilon_inf": 3.0}
    assert program.main((question + " --epsilon_inf 3").split()) == 0
    assert '"epsilon_inf": 3.0' in capsys.readouterr().out


# ---------------------------------------------------------------------- values of one's own

PEOPLE = ["flu"] * 50 + ["cold"] * 30 + ["gout"] * 15 + ["e\N{COMBINING ACUTE ACCENT}"] * 5


@pytest.fixture
def own(tmp_path) -> Path:
    """A table with a column of values between others."""
    path = tmp_path / "people.csv"
    path.write_text("age,illness,town\n" + "".join(f'7,"{value}",x\n' for value in PEOPLE), encoding="utf-8")
    return path


def printed_collection(printed: str) -> dict[str, Any]:
    return json.loads(printed[printed.index("\n{") :])


def test_forecasts_for_values_of_ones_own(own, capsys):
    """At the frequencies of the file, in the alphabet's order: alphabetical, so that it does not say the ranks."""
    command = ["--values", str(own), "--value_column", "illness", "--epsilon", "1", "--reports", "5000"]
    assert program.main(command) == 0
    printed = capsys.readouterr().out
    spec = printed_collection(printed)
    assert spec["alphabet"]["values"] == ["cold", "flu", "gout", "\N{LATIN SMALL LETTER E WITH ACUTE}"]
    assert printed.splitlines()[0] == "4 values, 4 of them sensitive; 5,000 reports at epsilon 1"
    assert printed.splitlines()[1].endswith(f"for the frequencies in {own}:")
    p = np.array([0.3, 0.5, 0.15, 0.05])
    frequencies = tuple(p.tolist())
    rows = plan(ClosedQuestion(num_values=4, num_sensitive=4, frequencies=frequencies), 1, 5000).rows
    assert rows[0].l2 == pytest.approx((1 - p @ p) / 5000)
    for line, row in zip(printed.splitlines()[5:], rows[1:]):
        assert float(cells(line)[6]) == pytest.approx(row.l2, rel=6e-3)
        assert row.l2 == pytest.approx(expected_l2(row.setup.mechanism, p, 5000), rel=1e-9)
    assert Collection.from_json(spec).alphabet.values == tuple(spec["alphabet"]["values"])


def test_sensitive_values_of_ones_own(own, tmp_path, capsys):
    """Those that nobody holds are values too."""
    listed, path = tmp_path / "sensitive.txt", tmp_path / "c.json"
    listed.write_text("gout\n\nhiv\n", encoding="utf-8")
    options = ["--sensitive", str(listed), "--output", str(path), "--target_half_width", "0.05"]
    command = ["--values", str(own), "--value_column", "illness", "--epsilon", "1", "--reports", "5000", *options]
    assert program.main(command) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f"The recommended collection: {path}\n")
    assert cells(printed.splitlines()[3])[-2:] == ["reports for half width 0.05", "epsilon for half width 0.05"]
    alphabet = Collection.from_json(path).alphabet
    assert (alphabet.sensitive, set(alphabet.values)) == (("gout", "hiv"), {"gout", "hiv", "cold", "flu", "é"})


def test_open_lists_of_ones_own(own, tmp_path, capsys):
    listed = tmp_path / "sensitive.txt"
    listed.write_text("gout\nflu\n", encoding="utf-8")
    command = ["--open", "--values", str(own), "--value_column", "illness", "--sensitive", str(listed)]
    assert program.main([*command, "--epsilon", "2", "--reports", "5000", "--unlisted_share", "0.2"]) == 0
    printed = capsys.readouterr().out
    assert f"for the frequencies in {own}, and 0.2 of all people with texts on no list, the most" in printed
    question = OpenQuestion(
        num_candidates=2, num_non_sensitive=2, frequencies=(0.5, 0.15, 0.3, 0.05), unlisted_share=0.2
    )
    for line, row in zip(printed.splitlines()[5:], plan(question, 2, 5000).rows[1:]):
        assert float(cells(line)[6]) == pytest.approx(row.l2, rel=6e-3)
    assert printed_collection(printed)["alphabet"].get("non_sensitive", ["cold", "é"]) == ["cold", "é"]


def test_half_width_targets(capsys):
    found = plan(QUESTIONS["open"], 1, N, target_half_width=0.02)
    for row in found.rows:
        forecast = QUESTIONS["open"].without_privacy if row.setup is None else row.setup.forecast
        assert forecast(row.reports_needed).half_width <= 0.02
        assert forecast(row.reports_needed - 1).half_width > 0.02


TARGETS = {"l1": 0.3, "l2": 0.01, "half_width": 0.05}


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        *(("part", "l1"), ("part", "half_width"), ("share", "l1"), ("all", "l2"), ("one", "half_width")),
        *(("open", "half_width"), ("listed", "half_width"), ("listed-share", "l1")),
    ],
)
def test_the_smallest_epsilon_meets_the_target_and_a_step_less_does_not(name, loss):
    target = TARGETS[loss]
    given = {f"target_{loss}": target}
    least = least_epsilon(QUESTIONS[name], N, **given)
    assert least is not None
    best = plan(QUESTIONS[name], least, N, **given).best
    assert getattr(best, loss) <= target  # the recommended one, not only one of the rows
    assert best.epsilon_needed == least
    assert all(getattr(row, loss) > target for row in plan(QUESTIONS[name], least - 0.001, N).rows[1:])


def test_the_smallest_epsilon_may_not_exist():
    assert least_epsilon(QUESTIONS["part"], 10, target_l2=1e-9) is None
    with pytest.raises(SpecError, match=r"^least_epsilon\.target must be given, got none$"):
        least_epsilon(QUESTIONS["part"], N)
    with pytest.raises(SpecError, match=r"^least_epsilon\.target must be given at most once, got l1, l2$"):
        least_epsilon(QUESTIONS["part"], N, target_l1=1, target_l2=1)


def verdict_in(printed: str) -> str:
    return next(line for line in printed.splitlines() if line.startswith("Target "))


def test_the_verdict_on_a_target(tmp_path, capsys):
    """Of the recommended collection: whether it meets the target, and what it needs; the words by hand."""
    found = plan(QUESTIONS["one"], 1, N, target_half_width=0.02)
    assert program.main(f"{FEW} --target_half_width 0.02".split()) == 0
    best = found.best
    missed = f"Target half width 0.02 missed: {best.half_width:.3g}; it needs epsilon {best.epsilon_needed:.3f}, or "
    assert verdict_in(capsys.readouterr().out) == f"{missed}{best.reports_needed:,} reports."
    assert program.main(f"{FEW} --target_l1 1.5".split()) == 0
    met = plan(QUESTIONS["one"], 1, N, target_l1=1.5).best
    assert verdict_in(capsys.readouterr().out) == f"Target l1 1.5 met: {met.l1:.3g}."
    assert program.main(f"{FEW} --groups 4 --target_half_width 0.02".split()) == 0
    assert verdict_in(capsys.readouterr().out).endswith(" reports of the smallest group.")
    assert program.main(f"{FEW} --target_l2 1e-30".split()) == 0
    assert verdict_in(capsys.readouterr().out).endswith("; no epsilon and no number of reports meet it.")


@pytest.mark.parametrize("groups", ["", " --groups 4"])
def test_without_epsilon_the_plan_is_for_the_smallest(tmp_path, capsys, groups):
    path, reports = tmp_path / "c.json", N // 4 if groups else N
    least = least_epsilon(QUESTIONS["one"], reports, target_half_width=0.1)
    command = f"--num_values 2 --num_sensitive 1 --reports {N} --target_half_width 0.1 --output {path}{groups}"
    assert program.main(command.split()) == 0
    printed = capsys.readouterr().out
    assert f" {reports:,} reports at epsilon {least:g}\n" in printed
    assert verdict_in(printed).endswith(f". Epsilon {least:g} is the smallest that meets it.")
    assert Collection.from_json(path).mechanism.epsilon == least


def test_more_reports_do_not_help_against_collisions(capsys):
    """With few cohorts and half of all people's texts unknown, there is a floor."""
    options = "--open --num_candidates 50 --unlisted_share 0.5 --max_cohorts 20 --target_l2 1e-9"
    assert program.main([*options.split(), "--epsilon", "4", "--reports", "1000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert cells(lines[4])[-1] != "no number"  # people who tell have no collisions
    assert all("no number" in cells(line) for line in lines[5:] if line.startswith(("krr", "ss", "rappor")))


def test_a_picture(tmp_path: Path) -> None:
    """Every way to ask, and asking without privacy, are in it: more rows make a higher picture."""
    sizes = []
    for number, more in enumerate(("", "--num_sensitive 3")):
        path = tmp_path / f"{number}.png"
        argv = f"--num_values 8 {more} --epsilon 1 --reports 10000 --png {path} --output {tmp_path}/C.json"
        assert program.main(argv.split()) == 0
        content = path.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        sizes.append(struct.unpack(">II", content[16:24]))
    assert sizes[0][0] > 300
    assert sizes[1][1] > sizes[0][1]


def test_the_old_name_of_an_option_still_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = tmp_path / "people.csv"
    people.write_text("illness\nflu\ncold\nflu\n", encoding="utf-8")
    options = ["--values", str(people), "--epsilon", "1", "--reports", "5000", "--output", str(tmp_path / "c.json")]
    assert uldp.main(["plan", *options, "--value_column", "illness"]) == 0
    new = capsys.readouterr()
    assert uldp.main(["plan", *options, "--column", "illness"]) == 0
    old = capsys.readouterr()
    assert (old.out, new.err) == (new.out, "")
    assert "--column NAME is deprecated; use --value_column NAME\n" in old.err


def test_the_page_has_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path("docs/utility.md").read_text(encoding="utf-8")
    command = "uldp plan --num_values 400 --num_sensitive 76 --epsilon 1 --reports 100000 --target_l1 0.5"
    shown = page.split(f"{command}\n", 1)[1].split("The first one prints\n\n```\n", 1)[1].split("```", 1)[0]
    assert uldp.main(command.split()[1:]) == 0
    assert capsys.readouterr().out.startswith(shown.rstrip("\n"))
