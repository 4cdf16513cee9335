"""The words and numbers that ``uldp plan`` prints, on plans that are made by hand, and the question of each option."""

from __future__ import annotations

import dataclasses
import math
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from uldp_transforms.jobs import pictures
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms_planner.plan import plan_command, plan_options, plan_over_time, plan_text
from uldp_transforms_planner.plan.collection_text import spec_text
from uldp_transforms_planner.plan.group_plan import GroupPlan, Told, heading_of_groups, told_by
from uldp_transforms_planner.plan.group_power import GroupPower, advice_on_liars, room_for_lies
from uldp_transforms_planner.plan.number_plan import NumberPlanning
from uldp_transforms_planner.plan.plan_options import Planning
from uldp_transforms_planner.planning import ClosedQuestion, OpenQuestion, Plan, PlanRow, reports_for_half_width
from uldp_transforms_planner.planning.planned_question import Setup
from uldp_transforms_planner.utility import variance_of_mean, ways
from uldp_transforms_planner.utility.longitudinal import MAX_WINDOWS
from uldp_transforms_planner.utility.poisoning import Amplification

CLOSED = ClosedQuestion(num_values=4, num_sensitive=3)
OPEN = OpenQuestion(num_candidates=1000)


def mechanism(name: str = "krr", num_symbols: int = 4, num_sensitive: int | None = None, **fields: Any) -> Mechanism:
    spec = {"id": name, "epsilon": 1.0} | fields
    values = [str(at) for at in range(num_symbols)]
    alphabet = {"id": "closed", "values": values}
    alphabet |= {} if num_sensitive is None else {"sensitive": values[:num_sensitive]}
    return Collection.from_json({"id": "x", "version": 1, "alphabet": alphabet, "mechanism": spec}).mechanism


def narrow(half_width: float) -> Any:
    """What is asked of a forecast here."""
    return types.SimpleNamespace(half_width_at=lambda confidence: half_width)


def setup(of: Mechanism, num_cohorts: int = 1, reports: int = 10**6) -> Setup:
    """One whose half width is sqrt(reports / n) / 100."""
    return Setup(
        mechanism=of,
        alphabet={"id": "listed"},
        num_cohorts=num_cohorts,
        forecast=lambda n: narrow(math.sqrt(reports / n) / 100),
        l2=lambda n: 1.0,
        noise=1.0,
    )


ERRORS: dict[str, float] = {"l1": 0.12345, "l2": 0.0144, "half_width": 0.05678, "change": 0.1, "lie": 2.5}


def planned(row: PlanRow, **fields: Any) -> Plan:
    shared = {"rows": (row,), "best": row, "collection": {"id": "planned"}, "detectable_frequency": 0.0321}
    return Plan(**shared | {"amplification": Amplification(sensitive=3.456, clear=None)} | fields)


def planning(**fields: Any) -> Planning:
    shared: dict[str, Any] = {"question": CLOSED, "epsilon": 1.5, "num_reports": 12_345, "targets": {}, "values": None}
    shared |= {"output": None, "png": None, "reports_per_person": None, "epsilon_inf": None}
    return Planning(**shared | fields)


def test_a_collection_has_a_line_for_each_key() -> None:
    assert spec_text({"id": "a", "version": 1, "alphabet": {"x": [1, 2]}}) == (
        '{\n  "id": "a",\n  "version": 1,\n  "alphabet": {"x": [1, 2]}\n}\n'
    )


# ---------------------------------------------------------------------- the heading


@pytest.mark.parametrize(
    ("question", "values", "what", "truth"),
    [
        (CLOSED, None, "4 values, 3 of them sensitive", "the worst distribution for each row"),
        (
            ClosedQuestion(num_values=1000, num_sensitive=999, sensitive_share=1.0),
            None,
            "1,000 values, 999 of them sensitive",
            "the worst distribution with 1 of all people holding sensitive values",
        ),
        (
            ClosedQuestion(num_values=2, num_sensitive=2, frequencies=(0.5, 0.5)),
            "V.csv",
            "2 values, 2 of them sensitive",
            "the frequencies in V.csv",
        ),
        (
            dataclasses.replace(OPEN, unlisted_share=0.0, law="flat"),
            None,
            "1,000 candidates of an open alphabet",
            "equal frequencies, and 0 of all people with texts on no list",
        ),
        (
            dataclasses.replace(OPEN, unlisted_share=0.25, heaviest_unlisted=0.125),
            None,
            "1,000 candidates of an open alphabet",
            "frequencies like 1 / rank, and 0.25 of all people with texts on no list, the most frequent of these with "
            "0.125",
        ),
        (
            dataclasses.replace(OPEN, num_non_sensitive=2000, unlisted_share=0.0),
            None,
            "1,000 candidates of an open alphabet and 2,000 texts that are not sensitive",
            "frequencies like 1 / rank, and 0 of all people with texts on no list; the share of people with sensitive "
            "ones is the worst for each row",
        ),
        (
            dataclasses.replace(OPEN, num_non_sensitive=2, unlisted_share=0.0, sensitive_share=0.0),
            None,
            "1,000 candidates of an open alphabet and 2 texts that are not sensitive",
            "frequencies like 1 / rank, and 0 of all people with texts on no list; 0 of all people hold sensitive ones",
        ),
        (
            OpenQuestion(num_candidates=2, num_non_sensitive=1, frequencies=(0.5, 0.25, 0.25), unlisted_share=0.0),
            "V.csv",
            "2 candidates of an open alphabet and 1 texts that are not sensitive",
            "the frequencies in V.csv, and 0 of all people with texts on no list",
        ),
    ],
)
def test_the_question_and_its_distribution(question: Any, values: str | None, what: str, truth: str) -> None:
    assert plan_text.heading(planning(question=question, values=values)) == [
        f"{what}; 12,345 reports at epsilon 1.5",
        f"Expected errors of raw estimates (`empirical`) for {truth}:",
    ]


def test_with_groups_the_reports_are_those_of_the_smallest() -> None:
    groups = GroupPlan(number=3, smallest=0.25)
    assert planning(groups=groups).planned_reports == 3086
    assert planning().planned_reports == 12_345


# ---------------------------------------------------------------------- the table


ROWS = (
    PlanRow(name="no privacy", **{**ERRORS, "lie": 1.0}),
    PlanRow(
        name="krr",
        setup=setup(mechanism()),
        above_optimum=0.1234,
        client_seconds=0.012,
        window_seconds=0.25,
        **ERRORS,
    ),
    PlanRow(
        name="urr",
        setup=setup(mechanism("urr", 4, 3), num_cohorts=4096),
        reports_needed=1234,
        epsilon_needed=0.5,
        **ERRORS,
    ),
)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


TITLES = ["mechanism", "alphabet", "protects", "message", "packed", "l1", "l2", "half width", "change", "lie"]
TITLES += ["client ms", "window s"]


def test_rows_of_a_list() -> None:
    lines = plan_text.table(planning(), planned(ROWS[1], rows=ROWS))
    assert [cells(line) for line in lines] == [
        [*TITLES, "buckets", "cohorts", "% above optimum"],
        ["no privacy", "nothing", "0.123", "0.0144", "0.0568", "0.1", "1"],
        ["krr", "listed", "all values", "35", "27", "0.123", "0.0144", "0.0568", "0.1", "2.5", "12", "0.25", "12.3"],
        ["urr", "listed", "sensitive values", "36", *cells(lines[2])[4:10], "0", "0", "3", "4,096"],
    ]
    assert lines[1].startswith("no privacy            nothing   ")
    grouped = planning(groups=GroupPlan(number=9, smallest=0.1))
    assert cells(plan_text.table(grouped, planned(ROWS[1], rows=ROWS))[3])[3] == "37", "with the group in the cohort"


def test_rows_without_buckets_have_no_columns_for_them() -> None:
    lines = plan_text.table(planning(), planned(ROWS[1], rows=ROWS[:2]))
    assert [cells(line)[-1] for line in lines] == ["% above optimum", "1", "12.3"]
    assert "buckets" not in lines[0]


def test_rows_of_an_open_alphabet_with_a_target() -> None:
    task = planning(question=OPEN, targets={"target_half_width": 0.125})
    lines = plan_text.table(task, planned(ROWS[1], rows=ROWS))
    titles = ["buckets", "cohorts", "reports for half width 0.125", "epsilon for half width 0.125"]
    assert [cells(line) for line in lines] == [
        [*TITLES, *titles],
        ["no privacy", "nothing", "0.123", "0.0144", "0.0568", "0.1", "1", "no number"],
        [*cells(lines[2])[:10], "12", "0.25", "no number", "above 16"],
        [*cells(lines[3])[:10], "0", "0", "3", "4,096", "1,234", "0.500"],
    ]
    assert len({len(line) for line in lines[:1] + lines[2:]}) == 1, "columns are aligned at the right"
    assert len(lines[1]) == lines[0].index("  epsilon for"), "without a collection, no epsilon is needed"
    closed = plan_text.table(planning(targets={"target_l1": 2.0}), planned(ROWS[1], rows=ROWS))
    assert len(closed[1]) == closed[0].index("  epsilon for l1 2")


def test_fields_of_a_mechanism_are_named() -> None:
    assert plan_text.described(mechanism()) == "krr"
    assert plan_text.described(mechanism("rappor", theta=0.123456)).startswith("rappor, theta 0.1235")
    assert "subset_size 2" in plan_text.described(mechanism("ss", 5, subset_size=2))


def test_the_legend_explains_the_last_columns() -> None:
    found = planned(ROWS[1], rows=ROWS)
    closed, texts = (plan_text.legend(planning(question=question), found) for question in (CLOSED, OPEN))
    assert closed[:6] == texts
    assert texts[5].startswith("buckets, cohorts: each value")
    assert closed[6].startswith("% above optimum: largest l2")
    assert plan_text.legend(planning(), planned(ROWS[1], rows=ROWS[:2])) == [*closed[:5], closed[6]]


# ---------------------------------------------------------------------- advice


def test_what_the_recommended_collection_can_show() -> None:
    """The root of l2 over the four frequencies; a limit of 1 for the sum of errors, and of 1 for what is detected."""
    few = "Too few reports for the whole distribution: l1 is 1, while two distributions differ by at most 2."
    found = (
        "A sensitive value is detected 4 times in 5 if its frequency is at least 0.032 (1 in 20 false alarms over all "
        "of them)."
    )
    rms = "Recommended: krr. The root mean square error of a frequency is 0.06."
    lie = "One false report counts as 3.46 honest reports of a sensitive value"
    row = ROWS[1]
    assert plan_text.advice(planning(), planned(row)) == [rms, found, f"{lie}."]
    clear = Amplification(sensitive=3.456, clear=1.0)
    none = planned(dataclasses.replace(row, l1=1.0), detectable_frequency=1.0, amplification=clear)
    assert plan_text.advice(planning(), none) == [rms, few, f"{lie}, 1.00 of another one."]
    folded = dataclasses.replace(setup(mechanism(), num_cohorts=8), needs_candidates=True)
    assert plan_text.advice(planning(), planned(dataclasses.replace(row, setup=folded)))[:2] == [
        "Recommended: krr over listed values. The root mean square error of a frequency is 0.06.",
        "Name the sensitive values with --candidates for each estimate.",
    ]
    wider = planning(question=dataclasses.replace(OPEN, num_candidates=3, num_non_sensitive=6))
    assert "is 0.04." in plan_text.advice(wider, planned(row))[0]


def test_what_it_costs_to_be_asked_again() -> None:
    """Twice epsilon without ``epsilon_inf``, at most 16; nothing if nobody asks."""
    plain = planned(ROWS[1])
    assert plan_over_time.over_time(planning(), plain) == []
    assert plan_over_time.over_time(planning(reports_per_person=9), planned(ROWS[0])) == []
    for epsilon, given, memos in ((1.0, None, 2), (1.0, 3.0, 3), (9.0, None, 16)):
        task = planning(epsilon=epsilon, reports_per_person=9, epsilon_inf=given, num_reports=400)
        of = dataclasses.replace(mechanism(epsilon=epsilon), epsilon_inf=float(memos))  # type: ignore[call-arg]  # this mechanism has the field
        row = dataclasses.replace(ROWS[1], setup=setup(mechanism(epsilon=epsilon), num_cohorts=8))
        lines = plan_over_time.over_time(task, planned(row))
        assert lines[0] == ""
        assert lines[1:] == plan_over_time.ways_in_words(of, 8, 400, 9)


def test_ways_to_ask_again_in_words() -> None:
    of: Any = dataclasses.replace(mechanism(), epsilon_inf=2.0)  # type: ignore[call-arg]  # this mechanism has the field
    lines = plan_over_time.ways_in_words(of, 1, 400, 1234)
    assert lines[:2] == [
        "Asked in 1,234 windows: privacy loss by number of windows, and the error of a symbol's frequency at equal",
        "shares (root mean square over symbols):",
    ]
    expected = list(ways(of, 1234))
    assert cells(lines[2])[-2:] == ["one window", "mean of 1,234"]
    assert cells(lines[2])[:-2] == [f"{number:,}" for number in expected[0].losses]
    for line, way in zip(lines[3:], expected):
        errors = [f"{math.sqrt(one / 400):.2g}" for one in (way.one_window, way.mean_of_windows)]
        assert cells(line) == [way.name, *(f"{loss:.4g}" for loss in way.losses.values()), *errors]
    floor = math.sqrt(float(np.mean(variance_of_mean(of, np.full(4, 0.25), MAX_WINDOWS))) / 400)
    assert lines[3 + len(expected) :] == [
        f"Memos: kappa_1 {of.memo.kappa:.4g}, kappa_2 {of.repeat_weight / 2**64:.4g}; the error of averages stays "
        f"above {floor:.2g}.",
        "Every symbol that a person ever holds costs epsilon_inf: 2, at worst 4 x 2 = 8; the times of changes are not "
        "protected.",
        "There is one cohort, which does not distinguish people.",
    ]
    assert plan_over_time.ways_in_words(of, 1024, 400, 9)[-1] == "The fixed cohort is a pseudonym of 10 bits."
    assert plan_over_time.ways_in_words(of, 2, 400, 9)[-1] == "The fixed cohort is a pseudonym of 1 bits."


# ---------------------------------------------------------------------- groups


def power(**fields: Any) -> GroupPower:
    shared: dict[str, Any] = {"plan": planned(ROWS[1]), "num_groups": 4, "num_values": 5, "smallest": 0.1}
    return GroupPower(**shared | fields)


def test_pairs_up_to_a_limit() -> None:
    """1,000 pairs: 45 groups have 990, 46 would have 1,035."""
    found = [power(num_groups=number).pairs for number in (2, 3, 45, 46)]
    assert found == [1, 3, 990, 45]


def test_how_large_a_difference_shows() -> None:
    """Twice the variance, a two-sided level of 5 % or its share, and a power of 80 %; in half widths."""
    unit = math.sqrt(2) / stats.norm.ppf(0.975)
    assert power().alone == pytest.approx(unit * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)), rel=1e-9)
    level = stats.norm.isf(0.025 / (6 * 5))
    assert power().among_all == pytest.approx(unit * (level + stats.norm.ppf(0.8)), rel=1e-9)


def test_how_far_lies_reach() -> None:
    """k-RR of 4 values at epsilon 1: a report counts (e + 3) / (e - 1) times, from its lowest to its highest."""
    factor = (math.e + 3) / (math.e - 1)
    assert room_for_lies(planned(ROWS[1]), 0.02) == pytest.approx(0.02 * factor)
    room, length = 0.02 * factor / 0.98, 2 * 0.05678
    assert advice_on_liars(planned(ROWS[1]), 0.02) == (
        f"If at most 2 % of the reports are lies, the 95 % interval of a sensitive value among honest people is "
        f"{length / 0.98 + room:.2g} long, instead of {length:.2g}, and {room:.2g} with any number of reports."
    )


def test_sentences_about_differences() -> None:
    half = 0.05678
    sizes = [power().alone * half, power().among_all * half]
    sentence = (
        "A difference of {:.2g} in one sensitive value between two groups of this size has a p-value below .05 in 80 "
        "of 100 cases, and one of {:.2g} a q-value below .05, even if it is the only one ({})."
    )
    assert power().advice() == [sentence.format(*sizes, "6 pairs x 5 values")]
    two = power(num_groups=2, num_values=1000)
    assert two.advice() == [sentence.format(two.alone * half, two.among_all * half, "1 pair x 1,000 values")]
    liars = power(liars=0.02)
    room = 2 * 0.02 * (math.e + 3) / (math.e - 1)
    assert liars.advice() == [sentence.format(*((size + room) / 0.98 for size in sizes), "6 pairs x 5 values")]
    row = dataclasses.replace(ROWS[1], half_width=1.0001 / power().alone)
    assert power(plan=planned(row)).advice() == [
        "Even a difference of 1 in one sensitive value between two groups of this size may be missed: there are too "
        "few reports, or too many liars."
    ]
    row = dataclasses.replace(ROWS[1], half_width=0.9999 / power().alone)
    assert power(plan=planned(row)).advice() == [
        "A difference of 1 in one sensitive value between two groups of this size has a p-value below .05 in 80 of 100 "
        "cases, and even one of 1 may have no q-value below .05 (6 pairs x 5 values)."
    ]


@pytest.mark.parametrize("liars", [0.0, 0.02])
def test_reports_that_a_difference_needs(liars: float) -> None:
    """Of which lies hide twice their room; the smallest group has a tenth of all."""
    one = power(liars=liars)
    left = 0.5 * (1 - liars) - 2 * liars * (math.e + 3) / (math.e - 1)
    of_setup = ROWS[1].setup
    assert of_setup is not None
    numbers = [reports_for_half_width(of_setup, left / factor) for factor in (one.alone, one.among_all)]
    assert None not in numbers
    assert numbers == pytest.approx([100 / (left / factor) ** 2 for factor in (one.alone, one.among_all)], abs=1)
    texts = [f"{number:,} reports ({10 * number:,} in all groups)" for number in numbers if number is not None]
    assert one.needed_for(0.5) == (
        f"For a difference of 0.5 in 80 of 100 cases, the smallest group needs {texts[0]} for a p-value below .05, and "
        f"{texts[1]} for a q-value."
    )


def test_differences_that_no_number_of_reports_shows() -> None:
    """Lies hide them, or the setup has errors that remain: here at a half width of 0.1."""
    none = "No number of reports shows a difference of 0.1 in 80 of 100 cases."
    room = 2 * 0.02 * (math.e + 3) / (math.e - 1)
    assert power(liars=0.02).needed_for(0.1) == none
    assert power(liars=0.02).needed_for(room / 0.98 * 0.999).startswith("No number")
    assert power(liars=0.02).needed_for(room / 0.98 + 0.1).startswith("For a difference")
    floor = dataclasses.replace(
        setup(mechanism()),
        forecast=lambda n: narrow(max(0.1, math.sqrt(1e6 / n) / 100)),
    )
    one = power(plan=planned(dataclasses.replace(ROWS[1], setup=floor)))
    between = 0.1 * (one.alone + one.among_all) / 2
    assert one.needed_for(between).endswith(
        "for a p-value below .05, and more than any number of reports for a q-value."
    )
    assert one.needed_for(0.1 * one.alone * 0.99).startswith("No number")


def test_all_reports_are_rounded_up() -> None:
    assert [power(smallest=1 / 3)._of_all(number) for number in (1, 2, 100)] == [3, 6, 300]
    assert power(smallest=0.3)._of_all(10) == 34


def told(name: str, bits: float, p_value: float = 0.0) -> Told:
    return Told(name=name, bits=bits, entropy=2.0, p_value=p_value, guess=0.25, informed=0.5)


def test_a_fact_tells_much_from_a_twentieth_of_the_entropy() -> None:
    assert [told("a", bits, p).much for bits, p in ((0.1, 0.01), (0.1, 0.0101), (0.0999, 0.0), (2, 0.0))] == [
        True,
        False,
        False,
        True,
    ]


def test_the_heading_of_groups() -> None:
    assert heading_of_groups(GroupPlan(number=1200, smallest=0.125), 10_000) == [
        "1,200 groups; this plan is for the smallest one, with 1,250 (0.12) of 10,000 reports."
    ]


def test_what_a_table_tells() -> None:
    """By hand: of 8 people, the value is that of the group for six; entropies of halves and quarters."""
    one = told_by("fact", np.array([[3.0, 1.0], [1.0, 3.0]]))
    nats = 2 * math.log(2) - (2 * 3 / 8 * math.log(8 / 3) + 2 * math.log(8) / 8)
    assert one.bits == pytest.approx((nats - 1 / 16) / math.log(2))
    assert (one.name, one.entropy, one.guess, one.informed) == ("fact", pytest.approx(1), 0.5, 0.75)
    assert one.p_value == pytest.approx(stats.chi2.sf(16 * nats, 1))
    wide = told_by("fact", np.array([[6.0, 2.0, 1.0], [1.0, 3.0, 3.0]]))
    shares = np.array([[6.0, 2.0, 1.0], [1.0, 3.0, 3.0]]) / 16
    nats = special.entr(shares.sum(0)).sum() + special.entr(shares.sum(1)).sum() - special.entr(shares).sum()
    assert wide.bits == pytest.approx((nats - 2 / 32) / math.log(2))
    assert wide.p_value == pytest.approx(stats.chi2.sf(32 * nats, 2))
    assert (wide.guess, wide.informed) == (9 / 16, 12 / 16)
    constant = told_by("fact", np.array([[3.0], [5.0]]))
    assert (constant.bits, constant.p_value, constant.informed) == (0, 1.0, 5 / 8)


def test_groups_of_a_table(tmp_path: Path) -> None:
    """Three countries and two arms, and one more of each for other texts; rows without a value are nobody."""
    rows = ["a,DE,new", "a,DE,new", "b,DE,new", "b,FR,old", "a,PL,old", "b,PL,old", ",XX,none"]
    path = tmp_path / "v.csv"
    path.write_text("value,country,arm\n" + "\n".join(rows) + "\n", encoding="utf-8")
    options = f"--values {path} --missing skip --epsilon 1 --reports 600 --difference 0.25 --dimensions"
    task = plan_options.read_arguments([*options.split(), " country, arm"], None)
    assert isinstance(task, Planning)
    assert task.groups is not None
    assert (task.groups.number, task.groups.smallest, task.groups.difference) == (4 * 3, 1 / 6, 0.25)
    assert task.planned_reports == 100
    together = np.array([[2.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    assert task.groups.told == (
        told_by("country", together),
        told_by("arm", np.array([[2.0, 1.0], [1.0, 2.0]])),
        told_by("country+arm", together),
    )
    alone = plan_options.read_arguments([*options.split(), "arm"], None)
    assert isinstance(alone, Planning)
    assert alone.groups is not None
    assert (alone.groups.number, alone.groups.smallest) == (3, 0.5)
    assert [one.name for one in alone.groups.told] == ["arm"]


# ---------------------------------------------------------------------- questions


def read(options: str) -> Planning:
    found = plan_options.read_arguments(f"--epsilon 1 --reports 1000 {options}".split(), None)
    assert isinstance(found, Planning)
    return found


@pytest.mark.parametrize(
    ("options", "question"),
    [
        ("--num_values 9", ClosedQuestion(num_values=9, num_sensitive=9)),
        (
            "--num_values 9 --num_sensitive 2 --sensitive_share 0",
            ClosedQuestion(num_values=9, num_sensitive=2, sensitive_share=0.0),
        ),
        ("--open --num_candidates 5", OpenQuestion(num_candidates=5)),
        (
            "--open --num_candidates 5 --num_non_sensitive 3 --sensitive_share 0.5 --frequencies flat "
            "--unlisted_share 0 --max_cohorts 7",
            OpenQuestion(
                num_candidates=5,
                num_non_sensitive=3,
                sensitive_share=0.5,
                law="flat",
                unlisted_share=0.0,
                max_cohorts=7,
            ),
        ),
        (
            "--open --num_candidates 5 --unlisted_share 0.25 --heaviest_unlisted 0",
            OpenQuestion(num_candidates=5, unlisted_share=0.25, heaviest_unlisted=0.0),
        ),
        ("--open --num_candidates 5 --groups 32768", OpenQuestion(num_candidates=5, max_cohorts=2)),
        ("--open --num_candidates 5 --groups 4 --max_cohorts 9", OpenQuestion(num_candidates=5, max_cohorts=9)),
        ("--open --num_candidates 5 --groups 4", OpenQuestion(num_candidates=5, max_cohorts=16_384)),
        ("--num_values 9 --groups 4", ClosedQuestion(num_values=9, num_sensitive=9, max_cohorts=16_384)),
        ("--num_values 9 --max_cohorts 2", ClosedQuestion(num_values=9, num_sensitive=9, max_cohorts=2)),
    ],
)
def test_questions_of_numbers(options: str, question: Any) -> None:
    many = options.replace("--groups 32768", "--groups 32768 --smallest_group 0.01")
    assert read(many).question == question


def test_options_are_kept() -> None:
    plain = read("--num_values 9")
    assert (plain.epsilon, plain.num_reports, plain.targets, plain.groups, plain.liars) == (1, 1000, {}, None, None)
    assert (plain.output, plain.png, plain.reports_per_person, plain.epsilon_inf) == (None, None, None, None)
    more = read(
        "--num_values 9 --target_l2 0.5 --output c.json --png p.png --reports_per_person 3 --epsilon_inf 2 "
        "--liars 0.25 --groups 2 --smallest_group 0.125 --difference 0.5"
    )
    assert (more.targets, more.output, more.png, more.reports_per_person) == ({"target_l2": 0.5}, "c.json", "p.png", 3)
    assert (more.epsilon_inf, more.liars) == (2, 0.25)
    assert more.groups == GroupPlan(number=2, smallest=0.125, difference=0.5)
    assert read("--num_values 9 --groups 8").groups == GroupPlan(number=8, smallest=0.125)


def test_a_picture_needs_its_package_before_anything_is_planned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "entry_points", lambda **_: ())
    assert read("--num_values 9").png is None
    assert plan_command.main(["--num_values=9", "--epsilon=1", "--reports=9", "--png=p.png"]) == 2
    expected = "a report needs the package uldp-transforms-report; in a checkout: "
    expected += "pip install . ./packages/tables ./packages/report\n"
    assert capsys.readouterr().err == f"plan: {expected}"


@pytest.mark.parametrize("is_open", [False, True])
def test_values_of_a_file_are_in_alphabetical_order(is_open: bool, tmp_path: Path) -> None:
    """By counts, a published collection would tell which private value is the most frequent."""
    path, listed = tmp_path / "v.csv", tmp_path / "s.txt"
    path.write_text("value\n" + "d\n" * 4 + "b\n" * 3 + "a\n" + "c\n" * 2, encoding="utf-8")
    options = f"--values {path} {'--open --max_cohorts 9' if is_open else ''}"
    shares = (0.1, 0.3, 0.2, 0.4)
    closed = ClosedQuestion(num_values=4, num_sensitive=4, frequencies=shares, names=("a", "b", "c", "d"))
    texts = OpenQuestion(num_candidates=4, frequencies=shares, names=(), max_cohorts=9)
    assert read(options).question == (texts if is_open else closed)
    listed.write_text("d\nz\nc\n\nc\n", encoding="utf-8")
    parts = (0.2, 0.4, 0.0, 0.1, 0.3)
    closed = ClosedQuestion(num_values=5, num_sensitive=3, frequencies=parts, names=("c", "d", "z", "a", "b"))
    texts = OpenQuestion(num_candidates=3, num_non_sensitive=2, frequencies=parts, names=("a", "b"), max_cohorts=9)
    assert read(f"{options} --sensitive {listed}").question == (texts if is_open else closed)


# ---------------------------------------------------------------------- the command


def test_the_order_of_what_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = "--num_values 4 --epsilon 1 --reports 10000 --groups 2 --liars 0.01 --reports_per_person 2"
    assert plan_command.main(options.split()) == 0
    printed = capsys.readouterr().out
    places = [
        printed.index(text)
        for text in (
            "2 groups; this plan is for the smallest one, with 5,000 (0.5) of 10,000 reports.\n4 values, 4 of them",
            "mechanism ",
            "\n\nmessage, packed: bytes of a report",
            "\n\nRecommended: ",
            "\nIf at most 1 % of the reports are lies",
            " x 4 values).\nGroups times cohorts: 2 x 1 = 2 (limit 65,536).\n\nAsked in 2 windows",
            '\n\n{\n  "id": "planned",\n',
        )
    ]
    assert places == sorted(places)
    path = tmp_path / "c.json"
    assert plan_command.main([*options.split(), "--output", str(path)]) == 0
    again = capsys.readouterr().out
    assert again.endswith(f"\nThe recommended collection, with placeholders for values: {path}\n")
    assert "{" not in again
    assert path.read_text(encoding="utf-8") == printed[printed.index("{") :]


def test_rows_of_a_picture() -> None:
    private, told_to_all = (plan_command._drawn(row) for row in (ROWS[1], ROWS[0]))
    assert private == {"name": "krr", "l1": 0.12345, "half_width": 0.05678, "private": True}
    assert told_to_all == {"name": "no privacy", "l1": 0.12345, "half_width": 0.05678, "private": False}


# ---------------------------------------------------------------------- numbers


def numbers(**alphabet: Any) -> dict[str, Any]:
    spec = {"id": "ordered", "low": 0, "high": 40, "num_bins": 4, "unit": "s"} | alphabet
    return {"id": "n", "version": 1, "alphabet": spec, "mechanism": {"id": "krr", "epsilon": 2.0}}


def of_numbers(tmp_path: Path, options: str, **alphabet: Any) -> NumberPlanning:
    path = tmp_path / "n.json"
    path.write_text(spec_text(numbers(**alphabet)), encoding="utf-8")
    argv = f"--collection {path} --epsilon 1 --reports 1000 {options}"
    found = plan_options.read_arguments(argv.split(), None)
    assert isinstance(found, NumberPlanning)
    return found


def test_shares_of_numbers_in_a_file(tmp_path: Path) -> None:
    """By symbols: numbers beyond the range are in its last bins, and texts that stand for none come after them."""
    path = tmp_path / "v.csv"
    path.write_text("age,at\n" + "-5,1\n15,2\n15,3\n39,4\nnone,5\n,6\n500,7\n12,8\n", encoding="utf-8")
    options = f"--values {path} --value_column age --missing skip --time_column at --time_format seconds"
    options += " --output x.json --target_half_width 2"
    found = of_numbers(tmp_path, options, others=["none"])
    assert found.shares is not None
    assert found.shares.tolist() == pytest.approx([1 / 7, 3 / 7, 0, 2 / 7, 1 / 7])
    assert (found.values, found.output, found.target) == (str(path), "x.json", 2)
    plain = of_numbers(tmp_path, "")
    assert (plain.epsilon, plain.num_reports, plain.values, plain.shares) == (1, 1000, None, None)
    assert (plain.output, plain.target) == (None, None)
    with pytest.raises(SpecError) as caught:
        of_numbers(tmp_path, "--time_column at")
    assert str(caught.value) == "--time_column can be given only with --values, got at"


def test_plans_for_hardly_any_reports_have_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = dataclasses.replace(of_numbers(tmp_path, ""), num_reports=3)
    assert plan_command.job(task) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("Recommended: "))
    assert [cells(line)[0] for line in lines[at + 3 : at + 6]] == ["1", "3", "30"]
