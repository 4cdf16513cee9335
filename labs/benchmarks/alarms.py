"""Power and false alarms of the alarm of smoothed estimates: simulated windows of reports, judged as a job judges them.

``python -m labs.benchmarks alarms`` prints the tables that docs/smoothing.md sums up. Counts of windows are drawn, not
reports.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from uldp_transforms.ldp.smoothing import LEAST_HISTORY, Series, judge

EPSILON = 2.0
EVERY = 1000
WITHIN = {3.0: 10, 8.0: 2}
"""Number of windows in which a lasting move by so many standard errors should ring."""


class Question(NamedTuple):
    """A question whose first share is ``share``; the others are equal.

    ``figure`` says what is judged: the shares, the mean of numbers, or the shares below the edges between values.
    """

    figure: str
    values: int
    share: float

    @property
    def shares(self) -> np.ndarray:
        rest = (1 - self.share) / (self.values - 1)
        return np.append(self.share, np.full(self.values - 1, rest))

    @property
    def every(self) -> float:
        """Rows of numbers judge three kinds of series, each for a third of the false alarms."""
        return EVERY if self.figure == "shares" else 3 * EVERY


QUESTIONS = (
    Question("shares", 2, 0.5),
    Question("shares", 2, 0.1),
    Question("shares", 3, 0.33),
    Question("shares", 6, 0.41),
    Question("shares", 20, 0.069),
    Question("shares", 20, 0.3),
    Question("shares", 100, 0.01),
    Question("shares", 100, 0.2),
    Question("mean", 10, 0.1),
    Question("quantiles", 10, 0.1),
)
REPORTS = (2_000, 20_000, 1_000_000)
QUIET = (8, 10, 15, 30)
DAYS = (0.0, 0.02, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
HONEST = (  # values, shares that fall with the rank, reports
    *((values, False, n) for values in (2, 6) for n in (2_000, 50_000, 1_000_000)),
    (30, True, 20_000),
    (50, True, 2_000),
    (50, True, 1_000_000),
)
COURSES: dict[str, dict[str, float]] = {  # how honest shares vary
    "weekly 30 %": {"weekly": 0.3, "days": 0.05},
    "weekly 50 %": {"weekly": 0.5, "days": 0.05},
    "walk of 0.3 %": {"walk": 0.003},
    "walk of 1 %": {"walk": 0.01},
    "walk of 3 %": {"walk": 0.03},
    "walk of 10 %": {"walk": 0.1},
    "walk of 5 %, days 20 %": {"walk": 0.05, "days": 0.2},
}
BEYOND: dict[str, dict[str, float]] = {
    "last day of months by 50 %": {"monthly": 0.5, "days": 0.05},
    "heavy tails, 10 %": {"tails": 0.1},
}


def main() -> None:
    print("windows in which a lasting move rings: share of 100 streams; epsilon 2, one false alarm in 1,000 windows;")
    print("a move by 8 standard errors of a window within 2 windows, one by 3 within 10, after 8, 10, 15, 30 windows")
    print("  what      values  share    reports        by 8                          by 3")
    for question, n in itertools.product(QUESTIONS, REPORTS):
        print(f"  {power_line(question, n, 100)}", flush=True)
    print(
        "the same for 3, of a test that knows the size and that only known noise varies, at one alarm in 1,000 windows"
    )
    for values in (2, 6, 20, 100):
        print(f"  {values:6} values " + "".join(f"{power_if_known(values, quiet):7.2f}" for quiet in QUIET), flush=True)
    print("false alarms in 1,000 honest windows (streams of 400); days differ by so many per cent of a share")
    head = "".join(f"{100 * size:6.0f}" for size in DAYS)
    print(f"  values    reports {head}")
    for values, falling, n in HONEST:
        rates = [false_alarms(values, falling, n, 10, {"days": size}) for size in DAYS]
        print(f"  {values:6} {n:10,} " + "".join(f"{rate:6.1f}" for rate in rates), flush=True)
    print("false alarms in 1,000 honest windows, seasons and walks; the last two lines are not in the model")
    for name, law in (COURSES | BEYOND).items():
        rates = [false_alarms(values, falling, n, 10, law) for values, falling, n in HONEST]
        print(f"  {name:28}" + "".join(f"{rate:6.1f}" for rate in rates), flush=True)


def power_line(question: Question, n: int, streams: int) -> str:
    """Shares of streams that ring, for each size of the move and number of quiet windows."""
    found = [power(question, n, quiet, errors, streams) for errors in sorted(WITHIN, reverse=True) for quiet in QUIET]
    text = f"{question.figure:10}{question.values:6} {question.share:6g} {n:10,}    "
    return text + "".join(f"{share:7.2f}" for share in found[:4]) + "   " + "".join(f"{x:7.2f}" for x in found[4:])


def power(question: Question, n: int, quiet: int, errors: float, streams: int, days: float = 0.0) -> float:
    """Share of streams in which a move by standard errors rings in time; up or down, where a share can fall so far."""
    rang, within = 0, WITHIN[errors]
    for seed in range(streams):
        rng = np.random.default_rng([2007, seed, question.values, n, quiet])
        shares = _varied(question.shares, quiet + within, rng, days=days)
        shares[quiet:] = _moved(question, shares[quiet:], n, errors * rng.choice([-1, 1]))
        rang += bool(judge(series_of(question, shares, n, rng), question.every).moved[quiet:].any())
    return rang / streams


def power_if_known(values: int, quiet: int, errors: float = 3.0, draws: int = 4_000) -> float:
    """Share of streams in which a lasting move rings in time by the likelihood ratio of normal windows, without days.

    Only the level before the move is unknown, with a flat prior. The ratio is summed over the windows in which the move
    can have begun, both signs, and values, as the alarm does; of the values that did not move the ratios count 0.
    """
    rng, within = np.random.default_rng([1009, values, quiet]), WITHIN[errors]
    windows = rng.normal(size=(draws, quiet + within))
    windows[:, quiet:] += errors
    rang = np.zeros(draws, dtype=bool)
    for end in range(quiet + 1, quiet + within + 1):
        ratios = np.zeros(draws)
        for begin in range(LEAST_HISTORY, end):
            change = windows[:, begin:end].mean(axis=1) - windows[:, :begin].mean(axis=1)
            variance = 1 / (end - begin) + 1 / begin
            ratios += np.exp(-(errors**2) / 2 / variance) * np.cosh(change * errors / variance)
        rang |= ratios >= EVERY * values
    return float(rang.mean())


def false_alarms(values: int, falling: bool, n: int, streams: int, law: dict[str, float], windows: int = 400) -> float:
    """Number of alarms in 1,000 windows of shares that vary as honest ones do."""
    alarms = 0
    first = 1 / np.arange(1, values + 1) if falling else np.ones(values)
    question = Question("shares", values, 0.5)
    for seed in range(streams):
        rng = np.random.default_rng([2008, seed, values, n])
        shares = _varied(first / first.sum(), windows, rng, **law)
        alarms += int(judge(series_of(question, shares, n, rng), EVERY).moved.any(axis=1).sum())
    return 1000 * alarms / streams / (windows - LEAST_HISTORY)


def series_of(question: Question, shares: np.ndarray, n: int, rng: np.random.Generator) -> Series:
    """What a job knows of (T, K) shares: estimates from n reports of k-RR in each window."""
    size = shares.shape[1]
    noise = 1 / (size - 1 + np.exp(EPSILON))
    clear = (np.exp(EPSILON) - 1) * noise
    law = noise + clear * shares
    counted = rng.multinomial(n, law / law.sum(axis=1, keepdims=True)) / n
    weights = _weights(question, shares)
    raw = (counted - noise) / clear @ weights
    square = counted @ weights**2 - (counted @ weights) ** 2
    return Series(
        raw=raw,
        variances=np.maximum(square, 1e-12) / n / clear**2,
        common=np.zeros(raw.shape[1]),
        num_reports=np.full(len(shares), n),
        steps=np.ones(len(shares), dtype=np.int64),
        jump=1 / clear,
        people=np.full(raw.shape, np.nan) if question.figure == "mean" else None,
    )


def _weights(question: Question, shares: np.ndarray) -> np.ndarray:
    """(K, S) the numbers whose means are judged: of shares themselves, of the mean, of shares below edges."""
    size = shares.shape[1]
    if question.figure == "shares":
        return np.eye(size)
    if question.figure == "mean":
        return np.linspace(0, 1, size)[:, np.newaxis]
    below = (np.arange(size)[:, np.newaxis] <= np.arange(size - 1)).astype(float)
    above = shares[0] @ below > 1 / 2  # measured from the nearer end, as rows of numbers are
    return np.where(above, 1 - below, below)


def _moved(question: Question, shares: np.ndarray, n: int, errors: float) -> np.ndarray:
    """Shares of which the first one, the mean, or the share below the median has moved by standard errors."""
    size = shares.shape[1]
    noise = 1 / (size - 1 + np.exp(EPSILON))
    clear = (np.exp(EPSILON) - 1) * noise
    ways = {"shares": np.arange(size) == 0, "quantiles": np.arange(size) < size // 2, "mean": np.linspace(0, 1, size)}
    weights = ways[question.figure].astype(float)
    law = noise + clear * shares[0]
    error = np.sqrt((law @ weights**2 - (law @ weights) ** 2) / n) / clear
    part = shares * weights
    rise = part / part.sum(axis=1, keepdims=True) - shares  # towards what counts
    effect = rise[0] @ weights
    step = errors * error / effect
    moved: np.ndarray = shares + step * rise
    if moved.min() < 0:
        moved = shares + abs(step) * rise
    if moved.min() < 0:
        raise ValueError(f"{errors} standard errors of {n} reports are more than a share of {question.share} can rise")
    return moved


def _varied(
    first: np.ndarray,
    windows: int,
    rng: np.random.Generator,
    *,
    days: float = 0.0,
    weekly: float = 0.0,
    walk: float = 0.0,
    monthly: float = 0.0,
    tails: float = 0.0,
) -> np.ndarray:
    """(T, K) shares with lognormal days, week-ends, relative random walks, last days of months, Student days."""
    size = (windows, len(first))
    logs = np.cumsum(rng.normal(0, walk, size), axis=0) + rng.normal(0, days, size)
    logs += tails * rng.standard_t(3, size) if tails else 0
    shares = first * np.exp(logs)
    signs, day = rng.choice([-1, 1], len(first)), np.arange(windows)[:, np.newaxis]
    shares *= 1 + weekly * signs * np.isin(day % 7, (5, 6))
    shares *= 1 + monthly * signs * (day % 30 == 29)
    distributions: np.ndarray = shares / shares.sum(axis=1, keepdims=True)
    return distributions


if __name__ == "__main__":
    main()
