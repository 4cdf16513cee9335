"""Rows of people who keep memos, and stay, change, or come and go: intervals, smoothed intervals, health, alarms."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.estimated import estimate_window
from tests.support.tolerance import generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.repeated_people import _curve, with_repeated_people
from uldp_transforms.ldp.sentinels import FALSE_ALARMS
from uldp_transforms.rows.row_identity import reports_of_a_person, span_of
from uldp_transforms.rows.row_types import WindowedEstimate, WindowHealth
from uldp_transforms.rows.smoothed_rows import filter_row, smooth_rows
from uldp_transforms.rows.window_health import health_of_window
from uldp_transforms.rows.window_history import Neighbours, jump_of

DAY = 86_400_000
VALUES = ("a", "b", "c", "d")
SHARES = np.array([0.45, 0.3, 0.2, 0.05])
UNLISTED = tuple(f"unlisted {number}" for number in range(20))
"""Texts that one in ten people holds where the alphabet is hashed."""
PEOPLE = 2_000
ALARM_EVERY = 1_000
RATE = 1e-6
"""False alarms of a comparison of the simulations below; the limits follow from it."""

Day = tuple[CohortCounts, np.ndarray]
"""Counts, and the shares (K,) of the people who were in them."""


def asked(window: str | None = "1d", mechanism: str = "krr", **fields: Any) -> Collection:
    """People hold one of four values, and report with epsilon 1, for ever with epsilon_inf 2."""
    spec = {
        "id": "asked",
        "version": 1,
        "alphabet": {"id": "closed", "values": ["a", "b", "c", "d"]},
        "mechanism": {"id": mechanism, "epsilon": 1.0, "epsilon_inf": 2.0} | fields,
        "num_cohorts": 4,
    }
    return Collection.from_json(spec | ({} if window is None else {"client_window": window}))


def hashed(seed: int, window: str | None = "1d") -> Collection:
    """The same question with an alphabet of 8 buckets in 32 cohorts."""
    spec = asked(window).to_json() | {"alphabet": {"id": "hashed", "num_buckets": 8, "seed": seed}, "num_cohorts": 32}
    return Collection.from_json(spec)


def held_in(of: Collection) -> tuple[tuple[str, ...], np.ndarray]:
    """What people hold, and the share of people with each; the first are the candidates."""
    if of.alphabet.known_values is not None:
        return VALUES, SHARES
    return VALUES + UNLISTED, np.append(0.9 * SHARES, np.full(len(UNLISTED), 0.1 / len(UNLISTED)))


@dataclasses.dataclass
class People:
    """Memos of all symbols (N, K), values (N,) and cohorts (N,) of people with k-RR."""

    memos: np.ndarray
    values: np.ndarray
    cohorts: np.ndarray

    @classmethod
    def draw(cls, of: Collection, size: int, rng: np.random.Generator) -> People:
        mechanism: Any = of.mechanism
        k = mechanism.num_symbols
        kept = rng.random((size, k)) < mechanism.memo.kappa
        memos = np.where(kept, np.arange(k), rng.integers(0, k, (size, k)))
        texts, shares = held_in(of)
        return cls(memos, rng.choice(len(texts), size, p=shares), rng.integers(0, of.num_cohorts, size))

    def replace(self, chosen: np.ndarray, others: People) -> None:
        for name in ("memos", "values", "cohorts"):
            getattr(self, name)[chosen] = getattr(others, name)[chosen]

    def report(self, of: Collection, present: np.ndarray, rng: np.random.Generator) -> Day:
        mechanism: Any = of.mechanism
        values, cohorts = self.values[present], self.cohorts[present]
        size, k = len(values), mechanism.num_symbols
        table = of.alphabet.symbol_table(held_in(of)[0], of.num_cohorts)
        symbols = table[cohorts % len(table), values]
        repeated = rng.random(size) < mechanism.repeat_weight / 2**64
        sent = np.where(repeated, self.memos[present][np.arange(size), symbols], rng.integers(0, k, size))
        cells = np.bincount(cohorts * k + sent, minlength=of.num_cohorts * k).reshape(-1, k)
        return CohortCounts(cells.sum(axis=1), cells), np.bincount(values, minlength=len(VALUES))[: len(VALUES)] / size


POPULATIONS = ("stay", "are replaced", "change their values", "are others every day", "come and go", "come in turns")


def days_of(of: Collection, population: str, num_days: int, rng: np.random.Generator) -> list[Day]:
    """About 2,000 reports a day."""
    pool = {"come and go": 2, "come in turns": 3}.get(population, 1) * PEOPLE
    (texts, shares), people, days = held_in(of), People.draw(of, pool, rng), []
    for day in range(num_days):
        present = np.ones(pool, dtype=bool)
        if population == "are replaced":
            people.replace(rng.random(pool) < 0.1, People.draw(of, pool, rng))
        if population == "are others every day":
            people = People.draw(of, pool, rng)
        if population == "change their values":
            moves = rng.random(pool) < 0.1
            people.values[moves] = rng.choice(len(texts), pool, p=shares)[moves]
        if population == "come and go":
            present = rng.random(pool) < 0.5
        if population == "come in turns":
            present = (np.arange(pool) + day) % 3 == 0
        days.append(people.report(of, present, rng))
    return days


def rows_of(
    of: Collection, windows: Sequence[CohortCounts], length: int
) -> tuple[list[WindowedEstimate], list[WindowHealth]]:
    rows, health = [], []
    candidates = None if of.alphabet.known_values is not None else VALUES
    for number, counts in enumerate(windows):
        place = {**span_of(number * length * DAY, length * DAY), "pane_index": 0, "pane_timing": "ON_TIME"}
        rows.append(estimate_window(of, counts, place, ESTIMATORS["projected"](), candidates, None))
        health.append(health_of_window(of, counts, place, None, rows[-1].fit_p_value))
    return rows, health


def covered(rows: Sequence[WindowedEstimate], truths: Sequence[np.ndarray], low: str, high: str) -> float:
    ends = [[(getattr(entry, low), getattr(entry, high)) for entry in row.estimates] for row in rows]
    below, above = np.moveaxis(np.array(ends), 2, 0)
    return float(((below <= truths) & (truths <= above)).mean())


def measured(
    make: Callable[[int], Collection], population: str, repetitions: int, num_days: int = 28
) -> dict[str, np.ndarray]:
    """Coverage in each of some populations, and how often health and alarms ring; all (repetitions,).

    Args:
        make: gives the collection of a repetition.
        population: one of ``POPULATIONS``.
        repetitions: number of populations.
        num_days: for which each of them reports.
    """
    rng = generator("memo populations", population)
    found = []
    for repetition in range(repetitions):
        of = make(repetition)
        shares = held_in(of)[1][: len(VALUES)]
        days = days_of(of, population, num_days, rng)
        counts = [day for day, _ in days]
        weeks = [functools.reduce(operator.add, counts[start : start + 7]) for start in range(0, num_days, 7)]
        rows, health = rows_of(of, counts, 1)
        of_weeks, health_of_weeks = rows_of(of, weeks, 7)
        smoothed = list(smooth_rows(rows, jump_of(of), ALARM_EVERY, memos=True))
        found.append(
            {
                "day": covered(rows, [shares] * num_days, "ci_low", "ci_high"),
                "week": covered(of_weeks, [shares] * len(weeks), "ci_low", "ci_high"),
                "smoothed": covered(
                    [row for row, _ in smoothed], [share for _, share in days], "smoothed_low", "smoothed_high"
                ),
                "alarms": sum(row.status == "alarm" for row in health + health_of_weeks),
                "changes": sum(change is not None and change.fired for _, change in smoothed),
            }
        )
    return {name: np.array([one[name] for one in found], dtype=np.float64) for name in found[0]}


def report(population: str, results: dict[str, np.ndarray]) -> None:
    print(population, {name: round(float(numbers.mean()), 4) for name, numbers in results.items()})


def check(results: dict[str, np.ndarray], num_days: int = 28) -> None:
    """Coverage is not shown to be below .94; rings are not shown to be more than promised."""
    size = len(results["day"])
    for name in ("day", "week", "smoothed"):
        mean, error = results[name].mean(), results[name].std(ddof=1) / np.sqrt(size)
        assert mean + student_limit(size, rate=RATE) * max(error, 0.01 / np.sqrt(size)) >= 0.94, (name, mean, error)
    for name, promised in (("alarms", FALSE_ALARMS), ("changes", 1 / ALARM_EVERY)):
        # windows of the same people ring together: populations, each of which rings at all with at most this chance
        rang = int((results[name] > 0).sum())
        chance = min(promised * (num_days + num_days / 7), 1.0)
        assert stats.binom.sf(rang - 1, size, chance) > RATE, (name, rang)


@pytest.mark.slow
@pytest.mark.parametrize("population", POPULATIONS)
def test_intervals_hold_and_nothing_rings(population: str) -> None:
    results = measured(lambda _: asked(), population, 100)
    report(population, results)
    check(results)


@pytest.mark.slow
@pytest.mark.parametrize("population", POPULATIONS)
def test_intervals_of_hashed_texts_hold_and_nothing_rings(population: str) -> None:
    """Each population with hash functions of its own; one in ten people holds a text that is no candidate."""
    results = measured(hashed, population, 60)
    report(population, results)
    check(results)


@pytest.mark.slow
def test_without_the_floor_smoothed_intervals_do_not_hold() -> None:
    """So the test above can fail: people stay, and their memos have most of the noise."""
    of = asked(epsilon_inf=1.2)
    rng, held = generator("no floor"), []
    for _ in range(30):
        days = days_of(of, "stay", 28, rng)
        rows = [
            row._replace(estimates=[entry._replace(common_variance=None) for entry in row.estimates])
            for row in rows_of(of, [day for day, _ in days], 1)[0]
        ]
        smoothed = [row for row, _ in smooth_rows(rows, jump_of(of), ALARM_EVERY)]
        held.append(covered(smoothed, [share for _, share in days], "smoothed_low", "smoothed_high"))
    assert np.mean(held) + student_limit(30, rate=RATE) * np.std(held, ddof=1) / np.sqrt(30) < 0.94


@pytest.mark.slow
def test_changes_ring_as_promised_where_nobody_knows_how_often_people_report() -> None:
    """Weeks of daily answers to a collection without client_window; the windows of a population ring together."""
    of, rng, rang, every = asked(None), generator("unknown"), [], 50
    for population in POPULATIONS:
        for _ in range(6):
            counts = [day for day, _ in days_of(of, population, 7 * 25, rng)]
            weeks = [functools.reduce(operator.add, counts[start : start + 7]) for start in range(0, len(counts), 7)]
            changes = [change for _, change in smooth_rows(rows_of(of, weeks, 7)[0], jump_of(of), every, memos=True)]
            rang.append(sum(change is not None and change.fired for change in changes))
    print(f"{sum(rang)} of {25 * len(rang)} weeks rang")
    assert stats.binom.sf(np.count_nonzero(rang) - 1, len(rang), 25 / every) > RATE


def test_people_who_stay_in_brief() -> None:
    check(measured(lambda _: asked(), "stay", 8))


def test_people_with_hashed_texts_in_brief() -> None:
    check(measured(hashed, "stay", 4))


# ---------------------------------------------------------------------- what rows say


def week_of(of: Collection) -> tuple[WindowedEstimate, WindowHealth, CohortCounts]:
    """Of the same people, every day."""
    counts = functools.reduce(operator.add, [day for day, _ in days_of(of, "stay", 7, generator("a week"))])
    [row], [health] = rows_of(of, [counts], 7)
    return row, health, counts


def test_a_window_of_several_client_windows_has_the_bound_on_its_variance() -> None:
    of = asked()
    row, _, counts = week_of(of)
    mechanism: Any = of.mechanism
    plain = of.estimate(counts, "projected")
    shares = np.clip(plain.raw_frequencies, 0, 1)
    lasting = mechanism.memo.variances(shares)
    expected = (mechanism.variances(shares) + 6 * lasting) / counts.total
    found = np.array([entry.standard_error**2 for entry in row.estimates])
    assert found == pytest.approx(expected, rel=1e-3)
    floor = 7 * (lasting - shares * (1 - shares)) / counts.total
    assert [entry.common_variance for entry in row.estimates] == pytest.approx(floor, rel=1e-2)
    for entry, low, high in zip(row.estimates, plain.ci_low, plain.ci_high):
        assert entry.ci_low < low
        assert high < entry.ci_high


def test_fresh_reports_of_one_person_share_the_person_alone() -> None:
    of = asked(epsilon_inf=None)
    counts = of.count(of.perturb(["a", "b", "c", "d"] * 500, generator("fresh")))
    plain = of.estimate(counts, "projected")
    people = np.clip(plain.raw_frequencies, 0, 1)
    seven = with_repeated_people(of, plain, 7)
    added = 6 * people * (1 - people) / counts.total
    assert seven.standard_errors**2 == pytest.approx(plain.standard_errors**2 + added, rel=1e-3)
    assert seven.common_variances is None
    assert with_repeated_people(of, plain, 1) is plain


@pytest.mark.parametrize("window", ["1d", "1w"])
def test_a_window_of_one_client_window_is_judged(window: str) -> None:
    """And has the same intervals as without."""
    of = asked(window)
    [counts] = [day for day, _ in days_of(of, "stay", 1, generator("one", window))]
    [row], [health] = rows_of(of, [counts], 7 if window == "1w" else 1)
    assert {finding.name for finding in health.findings} >= {"floor", "cohorts", "homogeneity"}
    plain = of.estimate(counts, "projected")
    assert [entry.ci_low for entry in row.estimates] == plain.ci_low.tolist()


@pytest.mark.parametrize("window", ["1d", None])
def test_sentinels_are_not_asked_where_reports_repeat_memos_or_may(window: str | None) -> None:
    _, health, counts = week_of(asked(window))
    assert (health.status, [one.name for one in health.findings]) == ("ok", ["repeats"] if window is None else [])
    judged = rows_of(asked(window, epsilon_inf=None), [counts], 7)[1][0]
    assert {finding.name for finding in judged.findings} >= {"floor", "cohorts", "homogeneity"}


@pytest.mark.parametrize(("window", "judged"), [("1w", True), ("1d", False), (None, False)])
def test_there_is_a_fit_where_reports_are_independent_alone(window: str | None, judged: bool) -> None:
    of = hashed(1, window)
    [counts] = [day for day, _ in days_of(of, "stay", 1, generator("fit", window))]
    [row], [health] = rows_of(of, [counts], 7)
    assert of.estimate(counts, "projected", VALUES).fit_p_value is not None
    assert (row.fit_p_value is not None) == judged
    assert ("fit" in {finding.name for finding in health.findings}) == judged


def test_how_many_reports_a_person_may_have() -> None:
    week, everything = span_of(0, 7 * DAY), span_of(None, None)
    assert reports_of_a_person(asked("1d"), week) == 7
    assert reports_of_a_person(asked("1h"), week) == 168
    assert reports_of_a_person(asked("1w"), week) == 1
    assert reports_of_a_person(asked("1d", epsilon_inf=None), week) == 7
    assert reports_of_a_person(asked(None), week) is None
    assert reports_of_a_person(asked(None, epsilon_inf=None), week) == 1
    assert reports_of_a_person(asked("1d"), everything) is None


def test_smoothed_intervals_are_no_shorter_than_what_memos_hide() -> None:
    """However many windows: for people who stay the noise of their memos does not average out."""
    of = asked()
    rows = rows_of(of, [day for day, _ in days_of(of, "stay", 60, generator("sixty"))], 1)[0]
    mechanism: Any = of.mechanism
    hidden = np.sqrt((mechanism.memo.variances(SHARES) - SHARES * (1 - SHARES)) / PEOPLE)
    for row, _ in smooth_rows(rows, jump_of(of), ALARM_EVERY, memos=True):
        for entry, least in zip(row.estimates, hidden):
            assert entry.smoothed_low is not None and entry.smoothed_high is not None
            if entry.smoothed_low > 0:
                assert entry.smoothed_high - entry.smoothed_low > 2 * 1.9 * least


def test_streams_keep_that_clients_have_memos() -> None:
    of = asked()
    rows = rows_of(of, [day for day, _ in days_of(of, "stay", 12, generator("stream"))], 1)[0]
    windows = Neighbours.of([], jump_of(of), memos=True)
    for row in rows:
        windows, shown, change = filter_row(Neighbours.from_bytes(windows.to_bytes()), row, ALARM_EVERY)
        assert change is not None and not change.fired
        assert shown.estimates[0].smoothed_low is not None
    assert windows.memos
    assert np.array_equal(windows.series().turnover, 2 * windows.series().common)


def test_a_large_jump_still_rings() -> None:
    of, rng = asked(), generator("jump")
    days = [day for day, _ in days_of(of, "stay", 20, rng)]
    people = People.draw(of, PEOPLE, rng)
    people.values[:] = 3
    days.append(people.report(of, np.ones(PEOPLE, dtype=bool), rng)[0])
    changes = [change for _, change in smooth_rows(rows_of(of, days, 1)[0], jump_of(of), ALARM_EVERY, memos=True)]
    assert [change is not None and change.fired for change in changes] == [False] * 20 + [True]


def test_what_lasts_of_randomized_response() -> None:
    """The share of a symbol among reports is binomial, whether they are memos or reports."""
    chosen: Any = asked().mechanism
    k, shares = chosen.num_symbols, np.linspace(0, 1, 65)
    memo, report = (
        rate * (1 - rate) / kappa**2
        for kappa in (chosen.memo.kappa, chosen.kappa)
        for rate in [(1 - kappa) / k + kappa * shares]
    )
    assert _curve(chosen, 0) == pytest.approx(memo / report, rel=1e-6)


@pytest.mark.parametrize("mechanism", ["krr", "urr", "rappor", "urap", "ss", "uss", "hr", "uhr"])
@pytest.mark.parametrize("sensitive", [None, ["a", "b"]])
def test_what_lasts_is_part_of_a_report(mechanism: str, sensitive: list[str] | None) -> None:
    spec = asked(mechanism=mechanism).to_json()
    of = Collection.from_json(spec | {"alphabet": spec["alphabet"] | {"sensitive": sensitive}})
    chosen: Any = of.mechanism
    for symbol in (0, chosen.num_symbols - 1):
        lasting = _curve(chosen, symbol)
        assert 0 < lasting[1] <= lasting.max() <= 1
