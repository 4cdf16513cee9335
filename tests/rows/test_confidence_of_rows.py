"""The level of confidence of a row: it has all intervals, and nothing else depends on it."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.rows.confidence_levels import (
    CLOSED,
    ORDERED,
    check_longer_intervals,
    check_what_does_not_depend,
    drawn,
)
from tests.support.tolerance import generator, student_limit
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.estimators.number_estimates import estimate_numbers
from uldp_transforms.ldp.smoothing import Series, smoothed
from uldp_transforms.rows.discovered_value import discover_window
from uldp_transforms.rows.entry_columns import _HEAD, packed, unpacked
from uldp_transforms.rows.row_types import WindowedEstimate, WindowHealth
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.rows.smoothed_rows import smooth_rows
from uldp_transforms.rows.window_history import traits_of
from uldp_transforms.spec.job_spec import JobSpec

GROUP = (("arm", "new"),)
HASHED: dict[str, Any] = CLOSED | {
    "id": "hashed",
    "num_cohorts": 64,
    "alphabet": {"id": "hashed", "num_buckets": 8, "seed": 1},
}
PREFIXES: dict[str, Any] = CLOSED | {
    "id": "words",
    "num_cohorts": 64,
    "alphabet": {"id": "prefixes", "num_buckets": 64, "seed": 1, "tokens": list("abcd"), "lengths": [2, 4, None]},
    "mechanism": {"id": "krr", "epsilon": 8.0},
}


def place(day: int = 1, timing: str = "ON_TIME") -> dict[str, Any]:
    times = {f"window_{name}": f"2026-01-{day + after:02}T00:00:00Z" for after, name in enumerate(("start", "end"))}
    return times | {"pane_index": 0, "pane_timing": timing, "run": None}


def asked_of(level: float, item: Collection, **values: Any) -> Any:
    return JobSpec.of(collections=[item], confidence=level, min_reports=1, bounded=True, **values).asked()


def sample(item: Collection, counts: Any, day: int = 1, timing: str = "ON_TIME", **owner: Any) -> Sample:
    return Sample(owner=Owner(named=item, **owner), place=place(day, timing), counts={item.fingerprint: counts})


def plain(level: float, anytime: bool = False, **values: Any) -> list[Any]:
    item, counts = drawn(CLOSED, list("abcd"))
    asked = dataclasses.replace(asked_of(level, item, **values), anytime_scale=100 if anytime else None)
    return [one.estimate for one in rows_of([sample(item, counts), sample(item, counts, 2, "LATE")], asked)]


def grouped(level: float) -> list[Any]:
    _, everybody = drawn(CLOSED, list("abcd"))
    _, some = drawn(CLOSED, list("bcda"), "group", number=500)
    item = Collection.from_json(CLOSED | {"dimensions": [{"name": "arm", "values": ["new", "old"]}]})
    samples = [sample(item, everybody + some), sample(item, some, group=GROUP)]
    asked = dataclasses.replace(asked_of(level, item, by=["arm"]), borrow=True)
    return [one.estimate for one in rows_of(samples, asked)]


def open_values(level: float) -> list[Any]:
    item, counts = drawn(HASHED, list("abcdef"))
    return [one.estimate for one in rows_of([sample(item, counts)], asked_of(level, item, candidates=list("abc")))]


def questions(level: float) -> list[Any]:
    item, counts = drawn(CLOSED | {"question": "asked"}, list("abcd"))
    other, more = drawn(CLOSED | {"question": "asked", "version": 2}, list("abcd"), "other")
    spec = JobSpec.of(collections=[item, other], confidence=level, min_reports=1, bounded=True)
    [question] = spec.questions
    one = Sample(owner=Owner(named=question), place=place(), counts={item.fingerprint: counts, other.fingerprint: more})
    return [found.estimate for found in rows_of([one], spec.asked())]


def smooth(spec: dict[str, Any], values: list[Any], level: float) -> list[Any]:
    """Shares that change for good after four days, so that the place of the change is uncertain."""
    pairs = [drawn(spec, values if day <= 4 else values[1:] + values[:1], "day", day) for day in range(1, 9)]
    item, samples = pairs[0][0], [sample(*pair, day) for day, pair in enumerate(pairs, 1)]
    options = {"limits": [5], "quantiles": [0.3, 0.5]} if spec is ORDERED else {}
    rows = [one.estimate for one in rows_of(samples, asked_of(level, item, **options))]
    return [row for row, _ in smooth_rows(rows, *traits_of([item])[:1], 1_000)]


def discovered(level: float) -> list[Any]:
    item, counts = drawn(PREFIXES, ["abba", "cdcd"], number=5_000)
    return discover_window(item, counts, place(), None, level)


JOBS: dict[str, Callable[[float], list[Any]]] = {
    "closed": plain,
    "anytime": functools.partial(plain, anytime=True),
    "liars": functools.partial(plain, liars=0.01),
    "anytime liars": functools.partial(plain, anytime=True, liars=0.01),
    "borrowed groups": grouped,
    "hashed": open_values,
    "question": questions,
    "smooth": functools.partial(smooth, CLOSED, list("abcd")),
    "smooth numbers": functools.partial(smooth, ORDERED, [1.5, 3.5, 7.5, 4.5]),
    "discovered": discovered,
}


@functools.cache
def rows_at(job: str, level: float) -> list[Any]:
    """What a job writes at a level, made once; nothing changes it."""
    return JOBS[job](level)


EXPECTED = {
    "closed": {"ci", "display"},
    "hashed": {"ci", "display", "unexplained"},
    "smooth": {"ci", "display", "smoothed"},
    "discovered": {"ci"},
    "smooth numbers": {
        *("ci", "display", "smoothed", "numbers mean", "numbers mean display", "numbers mean smoothed"),
        *("numbers quantiles", "numbers quantiles display", "numbers quantiles smoothed", "numbers sum"),
        *("numbers shares_above", "numbers shares_above display", "numbers shares_above smoothed"),
        "numbers curve display",
    },
}
"""Kinds of intervals that the walk must find, for some of the jobs."""


@pytest.mark.parametrize("job", JOBS)
def test_all_intervals_are_longer_at_a_higher_level(job: str) -> None:
    check_longer_intervals(functools.partial(rows_at, job), EXPECTED.get(job, set()))


@pytest.mark.parametrize("job", JOBS)
def test_nothing_but_intervals_depends_on_the_level(job: str) -> None:
    check_what_does_not_depend(functools.partial(rows_at, job))


def test_rows_of_older_versions_lack_the_field() -> None:
    """What waits between two steps of a stream may have been written before the field existed."""
    item, counts = drawn(CLOSED, list("abcd"))
    [found] = rows_of([sample(item, counts)], asked_of(0.9, item))
    row, health = unpacked(packed(found.estimate, found.health))
    assert row == found.estimate and row.confidence == 0.9
    again, same = unpacked(_of_earlier_version(packed(row, health)))
    assert again.confidence is None and again._replace(confidence=0.9) == found.estimate
    assert same == health and same.group is None


def _of_earlier_version(encoded: bytes) -> bytes:
    """Packed rows without the last fields of an estimate, and without dimensions and group of health."""
    version, length, of_values = _HEAD.unpack_from(encoded)
    estimate, health, names = json.loads(encoded[_HEAD.size : _HEAD.size + length])
    assert WindowedEstimate._fields[-3:] == ("confidence", "sums", "in_blocks")
    assert WindowHealth._fields[-2:] == ("dimensions", "group")
    head = json.dumps([estimate[:-3], health[:-2], names]).encode()
    return _HEAD.pack(version, len(head), of_values) + head + encoded[_HEAD.size + length :]


# ---------------------------------------------------------------------- coverage

RUNS = {"closed_runs": 400, "hashed_runs": 250, "number_runs": 1_200}
TRUTH = np.array([0.4, 0.3, 0.2, 0.1])


def krr_cells(rng: np.random.Generator, symbols: np.ndarray, size: int, epsilon: float) -> np.ndarray:
    """Reports of k-RR: the own symbol with odds e^epsilon to each other one."""
    keeps = rng.random(len(symbols)) < np.exp(epsilon) / (np.exp(epsilon) + size - 1)
    others: np.ndarray = (symbols + rng.integers(1, size, len(symbols))) % size
    return np.where(keeps, symbols, others)


def krr_counts(rng: np.random.Generator, shares: np.ndarray, people: int, epsilon: float) -> CohortCounts:
    """Counts of reports of k-RR: multinomial, for people who are drawn alike."""
    keeps = np.exp(epsilon) / (np.exp(epsilon) + len(shares) - 1)
    cells = rng.multinomial(people, keeps * shares + (1 - keeps) * (1 - shares) / (len(shares) - 1))[np.newaxis]
    return CohortCounts(cells.sum(axis=1), cells)


def covered_of(item: Collection, counts: CohortCounts, level: float, truth: np.ndarray, **values: Any) -> np.ndarray:
    [found] = rows_of([sample(item, counts)], asked_of(level, item, **values))
    entries = found.estimate.estimates
    return np.array([one.ci_low <= true <= one.ci_high for one, true in zip(entries, truth)])


@functools.cache
def simulated(alphabet: str) -> Collection:
    """One object for all runs: what a mechanism works out once is kept."""
    return Collection.from_json({"closed": CLOSED, "hashed": HASHED, "ordered": ORDERED}[alphabet])


def closed_runs(level: float, rng: np.random.Generator) -> np.ndarray:
    item = simulated("closed")
    return covered_of(item, krr_counts(rng, TRUTH, 20_000, 2.0), level, TRUTH)


def hashed_runs(level: float, rng: np.random.Generator) -> np.ndarray:
    item = simulated("hashed")
    table = item.alphabet.symbol_table(tuple("abcd"), 64)
    people, cohorts = rng.choice(4, 5_000, p=TRUTH), rng.integers(0, 64, 5_000)
    sent = krr_cells(rng, table[cohorts, people], 8, 2.0)
    cells = np.bincount(8 * cohorts + sent, minlength=8 * 64).reshape(64, 8)
    return covered_of(item, CohortCounts(cells.sum(axis=1), cells), level, TRUTH, candidates=list("abcd"))


def number_runs(level: float, rng: np.random.Generator) -> np.ndarray:
    item, shares = simulated("ordered"), np.arange(1, 11) / 55
    counts, mean = krr_counts(rng, shares, 20_000, 2.0), float(shares @ (np.arange(10) + 0.5))
    numbers = estimate_numbers(item, counts, limits=[5], confidence=level, smooth=False)
    [above] = numbers.shares_above
    assert numbers.mean is not None
    return np.array([numbers.mean.low <= mean <= numbers.mean.high, above.low <= shares[5:].sum() <= above.high])


@pytest.mark.parametrize("level", [0.8, 0.99])
@pytest.mark.parametrize("job", [closed_runs, hashed_runs, number_runs])
def test_intervals_cover_as_often_as_their_level_says(job: Callable[..., np.ndarray], level: float) -> None:
    """Simulated apart from the mechanisms. Counts are large, so that the coverage is the level within .01."""
    rng = generator("coverage", job.__name__, level)
    each = np.array([job(level, rng).mean() for _ in range(RUNS[job.__name__])])
    limit = 0.01 + student_limit(len(each), rate=1e-6) * each.std(ddof=1) / np.sqrt(len(each))
    assert limit < 0.08 and abs(each.mean() - level) <= limit


@pytest.mark.parametrize("level", [0.8, 0.99])
def test_smoothed_intervals_cover_as_often_as_their_level_says(level: float) -> None:
    """Shares that drift, normal noise: at least the level less .02, which their estimated scales may cost."""
    found = []
    for number in range(12):
        rng = generator("smooth coverage", number)
        shares = np.array([0.4, 0.3, 0.2, 0.1]) + np.cumsum(rng.normal(0, 0.004, (40, 4)), axis=0)
        shares = np.clip(shares, 0.01, None)
        own = np.array([rng.multinomial(4_000, one / one.sum()) for one in shares]) / 4_000
        series = Series(
            raw=own + rng.normal(0, np.sqrt(2 / 4_000), own.shape),
            variances=(2 + own * (1 - own)) / 4_000,
            common=np.zeros(4),
            num_reports=np.full(40, 4_000),
            steps=np.ones(40, dtype=np.int64),
        )
        told = smoothed(series, level)
        found.append(float(((told.low <= own) & (own <= told.high)).mean()))
    limit = student_limit(len(found), rate=1e-6) * np.std(found, ddof=1) / np.sqrt(len(found))
    assert level - 0.02 - limit <= np.mean(found) <= (level + 1) / 2 + limit
