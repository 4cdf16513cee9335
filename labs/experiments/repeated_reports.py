"""What an attacker learns from the repeated reports of a person, with and without memos."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from labs.experiments.frame import Experiment, Result, Verdict
from uldp_transforms.ldp.mechanisms import KaryRR
from uldp_transforms.ldp.sampling import SeededSource

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, EPSILON_INF = 1.0, 2.0
SYMBOLS = (4, 8, 50)
WINDOWS = (1, 7, 30, 100, 365)
FRESH, MEMOS = "fresh", "memos"
COLORS = ("tab:blue", "tab:orange", "tab:green")

_NEGLIGIBLE = 1e-15  # probability of a number of reports
_SPREAD = 4.0  # standard deviations within which a share is taken for its limit


class RepeatedReports(Experiment):
    id = "repeated-reports"
    title = "How often a majority of repeated reports names the value"
    source = "the attack that memos are for: Erlingsson, Pihur and Korolova 2014, section 2"
    abstract = (
        "People whose value never changes report by k-RR at epsilon 1 in every window. The attacker guesses the symbol "
        "that came most often (any of these, if there are several). Fresh reports, and memos with epsilon_inf 2, of "
        "which a guess is right with probability at most e**2 / (e**2 + k - 1), however many reports there are. "
        "expected: the exact probability of a right guess; named: its share among simulated people."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        number = runs or (1000 if reduced else 10_000)
        rows = [row for way in (FRESH, MEMOS) for k in SYMBOLS for row in named(way, k, number, rng)]
        return Result(rows=rows, verdicts=[fresh_reports_name(rows), memos_do_not(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        axes = figure.subplots()
        for k, color in zip(SYMBOLS, COLORS):
            for way, line in ((FRESH, "--"), (MEMOS, "-")):
                here = [row for row in rows if (row["way"], row["symbols"]) == (way, k)]
                label = f"{way}, {k} symbols"
                axes.plot(
                    [row["windows"] for row in here], [row["named"] for row in here], line, color=color, label=label
                )
        axes.set(xscale="log", xlabel="reports of one person", ylabel="share of people whose value is named")
        axes.legend()


def named(way: str, num_symbols: int, number: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The share of people whose value is named, after each number of windows."""
    mechanism = KaryRR(
        num_symbols=num_symbols,
        num_sensitive=num_symbols,
        epsilon=EPSILON,
        epsilon_inf=EPSILON_INF if way == MEMOS else None,
    )
    source = SeededSource(rng)
    repeat = mechanism.repeat_weight / 2**64 if way == MEMOS else 0.0
    values = rng.integers(num_symbols, size=number)
    memos = mechanism.draw_memos(values, source)
    seen = np.zeros((number, num_symbols))
    rows = []
    for window in range(1, WINDOWS[-1] + 1):
        reports = mechanism.draw_reports(memos, source) if way == MEMOS else mechanism.perturb(values, source)
        seen[np.arange(number), mechanism.integers(reports)] += 1
        if window in WINDOWS:
            guesses = (seen + rng.random(seen.shape) / 2).argmax(axis=1)
            share = float((guesses == values).mean())
            rows.append(
                {"way": way, "symbols": num_symbols, "windows": window, "people": number, "named": share}
                | {"expected": expected(num_symbols, window, repeat if way == MEMOS else None)}
                | {"limit": limit(EPSILON_INF if way == MEMOS else window * EPSILON, num_symbols)}
            )
    return rows


def expected(num_symbols: int, windows: int, repeat: float | None) -> float:
    """The exact probability that the guess is right.

    Args:
        num_symbols: k.
        windows: number of reports.
        repeat: probability that a report repeats the memo, else it is any symbol; None: reports are fresh.
    """
    if repeat is None:
        return most_frequent(limit(EPSILON, num_symbols), num_symbols, windows)
    right = limit(EPSILON_INF, num_symbols)  # of the memo
    found = most_frequent(repeat + (1 - repeat) / num_symbols, num_symbols, windows)
    return right * found + (1 - right) * (1 - found) / (num_symbols - 1)


def most_frequent(share: float, num_symbols: int, number: int) -> float:
    """The probability that a symbol is the most frequent one of ``number`` reports; among several, a lot decides.

    The symbol has the probability ``share`` in each report, and the others are equally likely. If it came m times, the
    others came number - m times together, and each at most m times. Their counts are Poisson numbers given their sum,
    so the probability is a coefficient of a product of generating functions. If t of them came m times too, the lot
    names the symbol with probability 1 / (t + 1).
    """
    others, found = num_symbols - 1, 0.0
    for most in range(-(-number // num_symbols), number + 1):
        rest = number - most
        weight = float(stats.binom.pmf(most, number, share))
        if weight < _NEGLIGIBLE:
            continue
        points = np.exp(2j * np.pi * np.arange(others * most + 1) / (others * most + 1))
        law = stats.poisson.pmf(np.arange(most + 1), rest / others)
        below = np.polynomial.polynomial.polyval(points, law[:-1])
        all_of_them = below + law[-1] * points**most
        lots = sum(all_of_them**tied * below ** (others - tied) for tied in range(num_symbols)) / num_symbols
        found += weight * float((lots * points**-rest).mean().real) / float(stats.poisson.pmf(rest, rest))
    return found


def limit(epsilon: float, num_symbols: int) -> float:
    """How often the best guess is right at most, if all symbols are equally common."""
    return 1 / (1 + (num_symbols - 1) * math.exp(-epsilon))


def fresh_reports_name(rows: list[dict[str, Any]]) -> Verdict:
    last = [row for row in rows if row["way"] == FRESH and row["windows"] == WINDOWS[-1]]
    shares = ", ".join(f"{row['named']:.2f}, expected {row['expected']:.3f} (k = {row['symbols']})" for row in last)
    return Verdict(
        claim="A year of fresh daily reports at epsilon 1 names the value of most people.",
        holds=all(row["named"] > 0.5 for row in last),
        evidence=f"Share named after {WINDOWS[-1]} reports: {shares}.",
    )


def memos_do_not(rows: list[dict[str, Any]]) -> Verdict:
    of_memos = [row for row in rows if row["way"] == MEMOS]
    last = [row for row in of_memos if row["windows"] == WINDOWS[-1]]
    shares = ", ".join(f"{row['named']:.2f} of at most {row['limit']:.2f} (k = {row['symbols']})" for row in last)
    return Verdict(
        claim="With memos it names no more after a year than epsilon_inf allows.",
        holds=all(row["named"] <= row["limit"] + _SPREAD * _deviation(row) for row in of_memos),
        evidence=f"Share named after {WINDOWS[-1]} reports: {shares}.",
    )


def _deviation(row: dict[str, Any]) -> float:
    return math.sqrt(row["limit"] * (1 - row["limit"]) / row["people"])
