"""Groups in a plan: numbers of reports, differences that show, and what public facts tell about the value."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import stats

from packages.planner.tests.support.planned_groups import COMMAND, write
from tests.support.tolerance import generator
from uldp_transforms_planner.plan import plan_command as program
from uldp_transforms_planner.plan.group_plan import told_by


def printed(arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert program.main(arguments.split()) == 0
    return capsys.readouterr().out


def test_the_plan_is_that_of_the_smallest_group(capsys):
    said = printed(f"{COMMAND} --groups 8 --smallest_group 0.02", capsys)
    alone = printed(COMMAND.replace("10000", "200"), capsys)
    assert "8 groups; this plan is for the smallest one, with 200 (0.02) of 10,000 reports." in said
    assert set(alone.splitlines()) < set(said.splitlines())
    assert "Groups times cohorts: 8 x 1 = 8 (limit 65,536)." in said
    equal = printed(f"{COMMAND} --groups 8", capsys)
    assert "with 1,250 (0.12) of 10,000 reports." in equal


def test_cohorts_fit_beside_the_groups(capsys):
    question = "--open --num_candidates 20 --epsilon 4 --reports 1000000"
    assert "buckets" in printed(question, capsys)
    said = printed(f"{question} --groups 1024", capsys)
    [line] = [line for line in said.splitlines() if line.startswith("Groups times cohorts")]
    cohorts = int(line.split(" x ")[1].split(" =")[0].replace(",", ""))
    assert 2 <= cohorts <= 64
    assert f'"num_cohorts": {cohorts}' in said


def test_needed_reports_show_the_difference_in_80_of_100_cases(capsys):
    """k-RR with 4 values, both numbers by the exact law of two counts; the q-value of the only difference among 24."""
    said = printed(f"{COMMAND} --groups 4 --smallest_group 0.1 --difference 0.06", capsys)
    [line] = [line for line in said.splitlines() if line.startswith("For a difference of 0.06 in 80 of 100 cases")]
    found = re.findall(r"([\d,]+) reports \(([\d,]+) in all groups\)", line)
    numbers = [[int(number.replace(",", "")) for number in pair] for pair in found]
    assert [of_all for _, of_all in numbers] == [10 * alone for alone, _ in numbers]
    for (n, _), level in zip(numbers, (0.05, 0.05 / 24)):
        assert 0.78 < power_of(n, 0.06, level) < 0.82
    [shown] = re.findall(r"and one of ([\d.]+) a q-value below .05, even if it is the only one \(6 pairs x 4", said)
    assert 0.75 < power_of(1000, float(shown), 0.05 / 24) < 0.85, "the shown size has two digits"


def power_of(n, difference, level):
    """Probability that a difference of k-RR around a fourth has a p-value below the level, by the score of two counts;
    counts farther than 9 standard errors from their means are left out."""
    q, z = 1 / (3 + math.e**2), stats.norm.isf(level / 2)
    rates = [q + (math.e**2 - 1) * q * share for share in (0.25 - difference / 2, 0.25 + difference / 2)]
    counts = [np.arange(max(0, int(n * r - 9 * math.sqrt(n))), int(n * r + 9 * math.sqrt(n))) for r in rates]
    laws = [stats.binom.pmf(each, n, rate) for each, rate in zip(counts, rates)]
    errors = [np.sqrt(each * (n - each) / n**3) for each in counts]
    found = np.abs(np.subtract.outer(*counts)) / n > z * np.hypot.outer(*errors)
    return laws[0] @ found @ laws[1]


def test_a_plan_with_liars_shows_a_difference_that_they_hide(capsys):
    """k-RR with 4 values, and 2 % of liars: in the group with more they send another value, in the other one this
    value. The needed number shows the difference in 80 of 100 cases, or a little more, as liars have no noise."""
    said = printed(f"{COMMAND} --groups 2 --difference 0.2 --liars 0.02", capsys)
    n = int(re.findall(r"group needs ([\d,]+) reports", said)[0].replace(",", ""))
    fewer = printed(f"{COMMAND} --groups 2 --difference 0.2", capsys)
    assert n > 1.5 * int(re.findall(r"group needs ([\d,]+) reports", fewer)[0].replace(",", ""))
    q = 1 / (3 + math.e**2)
    step = (math.e**2 - 1) * q
    room, liars, honest = 0.02 / step, round(0.02 * n), n - round(0.02 * n)
    yes = np.arange(honest + 1)
    laws = [stats.binom.pmf(yes, honest, q + step * share) for share in (0.25 + 0.1, 0.25 - 0.1)]
    counts = [yes, yes + liars]
    errors = [np.sqrt(each * (n - each) / n**3) / step for each in counts]
    differences = np.subtract.outer(*counts) / n / step
    shown = differences - 1.96 * np.hypot.outer(*errors) > room
    assert 0.76 < laws[0] @ shown @ laws[1] < 0.86
    assert "No number of reports shows a difference of 0.05 in 80 of 100 cases." in printed(
        f"{COMMAND} --groups 2 --difference 0.05 --liars 0.02", capsys
    )
    assert "Even a difference of 1 in one sensitive value between two groups of this size may be missed" in printed(
        f"{COMMAND} --groups 2 --liars 0.5", capsys
    )


def test_collisions_with_unlisted_texts_may_hide_a_difference(capsys):
    question = "--open --num_candidates 20 --epsilon 4 --reports 1000000 --max_cohorts 2 --groups 2"
    said = printed(f"{question} --difference 0.000001", capsys)
    assert "No number of reports shows a difference of 1e-06 in 80 of 100 cases." in said


def test_a_fact_that_gives_the_value_away_is_called_so(tmp_path, capsys):
    rows = [f"v{at % 2},2026-01-01T00:00:00Z,{'DE' if at % 2 else 'FR'},{'ab'[at // 2 % 2]}" for at in range(400)]
    table = write(tmp_path / "v.csv", rows)
    said = printed(f"{table} country,arm", capsys)
    assert (
        "country tells 1 of the 1 bits of the value: the most frequent value is right for 50.0% of all people" in said
    )
    assert "and that of each group for 100.0%." in said
    assert "arm tells 0 of the 1 bits" in said
    assert "Warning: sent in the clear, country gives much of the value away. No epsilon protects that." in said
    assert "9 groups; this plan is for the smallest one, with 25,000 (0.25) of 100,000 reports." in said
    assert "Warning" not in printed(f"{table} arm", capsys)


def test_facts_that_tell_only_together_are_found(tmp_path, capsys):
    """The value is the exclusive or of two fair bits."""
    rows = [f"v{(at ^ at >> 1) & 1},2026-01-01T00:00:00Z,{'DF'[at & 1]},{'ab'[at >> 1 & 1]}" for at in range(400)]
    said = printed(f"{write(tmp_path / 'v.csv', rows)} country,arm", capsys)
    assert "country tells 0 of the 1 bits" in said
    assert "Warning: sent in the clear, country+arm gives much" in said


def test_independent_facts_tell_nothing_on_average():
    """The bias of the mutual information is removed: its mean over 400 tables is 0 within 6 standard errors, while
    without that it would be 6 / 2n; and at most a few p-values are small."""
    rng, n = generator("told"), 300
    shares = np.outer([0.5, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1])
    tables = rng.multinomial(n, shares.ravel(), 400).reshape(-1, 3, 4)
    told = [told_by("fact", table.astype(float)) for table in tables]
    nats = np.array([_mutual_information(table) for table in tables]) - 6 / (2 * n)
    assert abs(nats.mean()) < 6 * nats.std() / math.sqrt(len(nats)) + 1 / n**1.5
    assert np.allclose([one.bits for one in told], np.maximum(nats, 0) / math.log(2))
    assert stats.binom.sf(sum(one.p_value <= 0.05 for one in told) - 1, 400, 0.075) > 1e-7
    assert stats.binom.cdf(sum(one.p_value <= 0.05 for one in told), 400, 0.03) > 1e-7


def _mutual_information(table: np.ndarray) -> float:
    joint = table / table.sum()
    alone = joint.sum(1, keepdims=True) * joint.sum(0)
    held = joint > 0
    return float((joint[held] * np.log(joint[held] / alone[held])).sum())


def test_plans_with_many_entries_of_rows_say_so(capsys):
    """One line before the work; none if there are few."""
    words = "--num_values=300 --epsilon=3 --reports=1000000"
    for groups, number in ((60, 1), (6, 0)):
        said = printed(f"{words} --groups={groups}", capsys)
        assert said.count("\nRows of uldp estimate: a window has up to 61 rows with 18,300 ") == number
