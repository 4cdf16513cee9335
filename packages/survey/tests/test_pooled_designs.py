"""uldp survey: answers that do not fit their design, one question in several designs, samples with weights."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

from tests.support.tolerance import generator
from uldp_transforms_survey import survey
from uldp_transforms_survey.survey_designs import SurveyDesign

NUMBERS = ("frequency", "raw_frequency", "standard_error", "ci_low", "ci_high")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(*lines: str) -> None:
    Path("answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def rows_of(options: str, code: int = 0) -> list[dict]:
    """What is written with --json, and after that with --json_pooled."""
    assert survey.main(shlex.split(f"answers.csv {options} --json rows.jsonl --json_pooled pooled.jsonl")) == code
    texts = [Path(name).read_text(encoding="utf-8") for name in ("rows.jsonl", "pooled.jsonl")]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def test_lines_by_design_are_a_file_of_their_own():
    """Whoever sums their numbers of people counts nobody twice; rows of several designs are in another file."""
    table(
        "q,design,answer,people",
        *[f"{q},{line}" for q in "ab" for p in (0.2, 0.7) for line in cells(f"crosswise:{p}", 500, 0.3)],
    )
    rows = rows_of("--design design --question q --people people")
    assert [(row["question"], row["design"]) for row in rows] == [
        *((q, f"crosswise:{p}") for q in "ab" for p in (0.2, 0.7)),
        *((q, "crosswise") for q in "ab"),
    ]
    by_design, pooled = rows[:4], rows[4:]
    assert {tuple(row) for row in by_design} == {
        ("question", "design", "epsilon", "num_reports", "num_ones", "value", *NUMBERS, "fits", "problem")
    }
    assert [row["num_reports"] for row in pooled] == [1000, 1000]


@pytest.mark.parametrize(
    ("design", "zeros", "ones", "outside"),
    [
        ("forced:1/6,1/6", 2830, 4314, "54 standard errors above 1"),
        ("crosswise:0.2", 0, 60, "5 standard errors below 0"),
        ("crosswise:0.2", 1, 1000, "15 standard errors below 0"),
        ("crosswise:0.8", 1, 1000, "15 standard errors above 1"),
    ],
)
def test_answers_that_do_not_fit_their_design(design, zeros, ones, outside, capsys):
    table("answer,people", *[f"0,{zeros}"] * bool(zeros), f"1,{ones}")
    [row] = rows_of(f"--design {design} --people people", code=1)
    sentence = f"the answers do not fit this design ({outside})"
    assert (row["fits"], row["problem"], row["num_ones"]) == (False, sentence, ones)
    assert {row[name] for name in NUMBERS} == {None}
    said = capsys.readouterr().out.splitlines()
    assert said[1].split()[:5] == [design, f"{zeros + ones:,}", "-", "-", "-"]
    assert said[3] == f"{design}: {sentence}"


@pytest.mark.parametrize("design", ["crosswise:0.2", "forced:2/3,1/2", "unrelated:0.778,0.49", "direct"])
def test_no_interval_has_width_0(design):
    """Nor is it shorter than half a standard error, nor than that of an estimate of 0, or 1, by one below, or above."""
    numbers = [(people, ones) for people in (1, 7, 53, 200) for ones in range(people + 1)]
    lines = [f"{n} {k:03},{answer},{count}" for n, k in numbers for answer, count in enumerate((n - k, k))]
    table("q,answer,n", *lines)
    rows = rows_of(f"--design {design} --people n --question q", code=0 if design == "direct" else 1)
    shown = [row for row in rows if row["fits"]]
    assert len(rows) == len(numbers)
    assert len(shown) > len(rows) / 4
    for row in shown:
        assert 0 <= row["ci_low"] < row["ci_high"] <= 1
        assert row["ci_low"] <= row["frequency"] <= row["ci_high"]
        assert row["ci_high"] - row["ci_low"] > min(row["standard_error"], 1) / 2
        of_as_many = [other for other in shown if other["num_reports"] == row["num_reports"]]
        inside = [other for other in of_as_many if 0 <= other["raw_frequency"] <= 1]
        if inside and row["raw_frequency"] < 0:
            assert row["ci_high"] >= min(inside, key=lambda other: other["raw_frequency"])["ci_high"]
        if inside and row["raw_frequency"] > 1:
            assert row["ci_low"] <= max(inside, key=lambda other: other["raw_frequency"])["ci_low"]


def cells(design: str, people: int, share: float) -> list[str]:
    """Two lines of a table with the expected answers."""
    no, yes = map(float, SurveyDesign.parse(design).ones)
    ones = round(people * (no + (yes - no) * share))
    return [f'"{design}",0,{people - ones}', f'"{design}",1,{ones}']


def test_designs_that_disagree_are_not_averaged(capsys):
    """As published surveys do between their halves."""
    table("design,answer,people", *cells("crosswise:0.2", 2000, 0.31), *cells("crosswise:0.8", 2000, 0.14))
    first, second, together = rows_of("--design design --people people")
    assert first["raw_frequency"] == pytest.approx(0.31, abs=1e-3)
    assert second["raw_frequency"] == pytest.approx(0.14, abs=1e-3)
    assert together["agreement_p_value"] < 1e-9
    assert {together[name] for name in NUMBERS} == {None}
    assert "crosswise, 2 designs: no share of all: the designs disagree (chi-square " in capsys.readouterr().out


def test_designs_that_agree_have_the_most_likely_share():
    """Ten rates of one question, beside an independent maximum of the likelihood and its curvature."""
    rates, rng = np.linspace(0.1, 0.35, 10), generator("ten rates")
    people = rng.integers(100, 200, 10)
    ones = rng.binomial(people, 1 - rates + (2 * rates - 1) * 0.28)
    lines = [f"{r:.6f},{a},{n}" for r, k, size in zip(rates, ones, people) for a, n in ((0, size - k), (1, k))]
    table("rate,answer,people", *lines)
    *lines, together = rows_of("--design crosswise:rate --people people")
    rates = np.array([float(row["design"].split(":")[1]) for row in lines])

    def loss(share: float) -> float:
        return -float(stats.binom.logpmf(ones, people, 1 - rates + (2 * rates - 1) * share).sum())

    best = optimize.minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
    chances = 1 - rates + (2 * rates - 1) * best
    information = (people * (2 * rates - 1) ** 2 / (chances * (1 - chances))).sum()
    assert (together["design"], together["num_designs"], together["num_reports"]) == ("crosswise", 10, people.sum())
    assert together["raw_frequency"] == pytest.approx(best, abs=1e-6)
    assert together["standard_error"] == pytest.approx(information**-0.5, rel=1e-5)
    drops = [2 * (loss(together[end]) - loss(best)) for end in ("ci_low", "ci_high")]
    assert drops == [pytest.approx(3.8415, abs=1e-3)] * 2
    statistic = ((ones - people * chances) ** 2 / (people * chances * (1 - chances))).sum()
    assert together["agreement_p_value"] == pytest.approx(stats.chi2.sf(statistic, 9), rel=0.01)


def test_a_design_that_does_not_fit_leaves_no_share_of_all():
    table("design,answer,people", *cells("crosswise:0.2", 200, 0.3), "crosswise:0.3,1,5000", "crosswise:0.3,0,1")
    first, second, together = rows_of("--design design --people people", code=1)
    assert (first["fits"], second["fits"], together["fits"]) == (True, False, False)
    assert first["raw_frequency"] == pytest.approx(0.3, abs=0.01)
    assert together["raw_frequency"] is None


def test_equal_weights_change_hardly_anything():
    table("answer,people,w", "0,562,2", "1,604,2")
    [plain] = rows_of("--design crosswise:0.1594625 --people people")
    [weighted] = rows_of("--design crosswise:0.1594625 --people people --weight w")
    assert weighted["raw_frequency"] == pytest.approx(plain["raw_frequency"], abs=1e-12)
    assert weighted["standard_error"] == pytest.approx(plain["standard_error"], rel=1e-3)
    assert weighted["ci_low"] == pytest.approx(plain["ci_low"], abs=2e-3)


def test_weights_and_clusters_by_hand():
    """The weighted fraction of answers 1, and its linearized variance over clusters, within strata."""
    rng, size = generator("by hand"), 120
    stratum, cluster = rng.integers(0, 2, size), rng.integers(0, 6, size)
    weight, answer = rng.uniform(0.5, 3, size).round(3), rng.integers(0, 2, size)
    lines = [f"{a},{w},s{s},c{c}" for a, w, s, c in zip(answer, weight, stratum, cluster)]
    table("answer,w,s,c", *lines)
    [row] = rows_of("--design forced:2/3,1/2 --weight w --stratum s --cluster c")
    fraction = (weight @ answer) / weight.sum()
    scores = weight * (answer - fraction) / weight.sum()
    variance = 0.0
    for s in (0, 1):
        totals = np.array([scores[(stratum == s) & (cluster == c)].sum() for c in range(6)])
        variance += 6 / 5 * ((totals - totals.mean()) ** 2).sum()
    assert row["num_reports"] == size
    assert row["raw_frequency"] == pytest.approx((fraction - 1 / 6) * 1.5, abs=1e-12)
    assert row["standard_error"] == pytest.approx(1.5 * variance**0.5, rel=1e-9)


def test_a_cluster_whose_people_answer_alike_counts_once():
    table("answer,c", *[f"1,{number % 3}" for number in range(60)])
    [alone] = rows_of("--design direct")
    [row] = rows_of("--design direct --cluster c")
    assert alone["ci_low"] > 0.9
    assert row["ci_low"] < 0.4 < row["ci_high"] == 1


def test_weights_that_are_none_leave_their_rows_out(capsys):
    table("answer,w", "1,2", "0,1", "1,-1", "1,0", "1,x", "1,")
    [row] = rows_of("--design direct --weight w --max_unreadable 1")
    assert row["num_reports"] == 2
    assert row["raw_frequency"] == pytest.approx(2 / 3)
    assert capsys.readouterr().out.splitlines()[-5:] == [
        "2 of 6 rows are used.",
        "left out: 1 row: no number in w (line 7)",
        "left out: 1 row: something else than a number in w (line 6)",
        "left out: 1 row: a weight below 0 in w (line 4)",
        "left out: 1 row: weight 0 in w (line 5)",
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--stratum s --cluster c", "each stratum must have at least two clusters, got one in 2 of them"),
        ("--stratum alone", "each stratum must have at least two people, got one in 4 of them"),
        ("--weight answer", "--weight must name a column of its own, got 'answer'"),
        ("--cluster c --stratum c", "--cluster must name a column of its own, got 'c'"),
        (
            "--weight none",
            "--weight must name one column of answers.csv, got 'none', found 0 times; CSV must begin with its header",
        ),
    ],
)
def test_refused(options, sentence, capsys):
    table("answer,s,c,alone", "1,a,1,w", "0,a,1,x", "1,b,1,y", "0,b,1,z")
    assert survey.main(shlex.split(f"answers.csv --design direct {options}")) == 2
    assert capsys.readouterr() == ("", f"survey: {sentence}\n")
