"""The attack on repeated reports: what it finds, against exact probabilities."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from labs import reproduce
from labs.experiments import EXPERIMENTS, repeated_reports
from labs.experiments.frame import Result
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.ldp.mechanisms import KaryRR

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/threat-model.md")
[EXPERIMENT] = [experiment for experiment in EXPERIMENTS if experiment.id == "repeated-reports"]


@functools.cache
def reduced() -> Result:
    return EXPERIMENT.run(generator("reproduce", EXPERIMENT.id), reduced=True, runs=None)


def test_finds_what_the_documentation_says(tmp_path: Path) -> None:
    assert [verdict.holds for verdict in reduced().verdicts] == [True, True]
    reproduce.draw(EXPERIMENT, reduced(), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 0


def test_one_report_names_the_own_symbol_as_often_as_the_channel_says() -> None:
    for row in reduced().rows:
        if row["windows"] == 1:
            own = repeated_reports.limit(1.0, row["symbols"])
            assert within(np.array([row["named"] * row["people"]]), binomial_limits(row["people"], own)).all()


def test_after_a_year_of_memos_the_guess_is_the_memo() -> None:
    """The memo comes with a rate of 0.3 and more, noise with 0.015 and less: noise never wins."""
    for row in reduced().rows:
        if row["way"] == "memos" and row["windows"] == 365:
            assert within(np.array([row["named"] * row["people"]]), binomial_limits(row["people"], row["limit"])).all()


@pytest.mark.parametrize("epsilon_inf", [None, 2.0])
def test_majority_of_seven_reports_by_enumeration(epsilon_inf: float | None) -> None:
    """Of four symbols: the exact probability that the most frequent one, or one of them by lot, is the value."""
    mechanism = KaryRR(num_symbols=4, num_sensitive=4, epsilon=1, epsilon_inf=epsilon_inf)
    first = mechanism.memo if epsilon_inf else mechanism
    law_of_memo = np.array([float(row[0]) for row in first.channel()[1]])
    repeat = mechanism.repeat_weight / 2**64 if epsilon_inf else 0.0
    named = 0.0
    for memo, share in enumerate(law_of_memo):
        of_report = repeat * (np.arange(4) == memo) + (1 - repeat) / 4 if epsilon_inf else law_of_memo
        for counts in (c for c in itertools.product(range(8), repeat=4) if sum(c) == 7):
            orders = math.factorial(7) / math.prod(map(math.factorial, counts))
            right = (counts[0] == max(counts)) / Counter(counts)[max(counts)]
            named += share * orders * float(np.prod(of_report ** np.array(counts))) * right
    way = "memos" if epsilon_inf else "fresh"
    [row] = [row for row in reduced().rows if (row["way"], row["symbols"], row["windows"]) == (way, 4, 7)]
    assert row["expected"] == pytest.approx(named, rel=1e-9)
    assert within(np.array([row["named"] * row["people"]]), binomial_limits(row["people"], named)).all()


def test_what_is_found_is_what_is_expected() -> None:
    for row in reduced().rows:
        limits = binomial_limits(row["people"], row["expected"])
        assert within(np.array([row["named"] * row["people"]]), limits).all(), row


def test_pages_state_the_exact_shares() -> None:
    """Of 365 fresh reports by k-RR at epsilon 1 over 50 values, and all other rows of the table."""
    exact = {(row["symbols"], row["windows"]): row["expected"] for row in reduced().rows if row["way"] == "fresh"}
    assert exact[50, 365] == pytest.approx(0.8838, abs=5e-5)
    readme, model = (" ".join((ROOT / name).read_text(encoding="utf-8").split()) for name in PAGES)
    share = f"{100 * exact[50, 365]:.0f} %"
    assert f"over 50 values, the one reported most often is the true one for {share} of all people" in readme
    for symbols in repeated_reports.SYMBOLS:
        shares = " / ".join(f"{exact[symbols, number]:.2f}".removeprefix("0") for number in (30, 100, 365))
        assert f"| {symbols} | 30 / 100 / 365 | {shares} |" in model
