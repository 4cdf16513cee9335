"""Benefit of smoothing: errors and coverage on days of flights, false alarms of unchanged streams, CPU seconds."""

from __future__ import annotations

import csv
import gzip
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from labs.demo import demo_command as demo
from labs.demo.departures import read_departures
from labs.experiments.frame import DATA, simulate_counts
from uldp_transforms import JobSpec
from uldp_transforms.beam.transforms.smooth_estimates import KEYED_ROWS, SmoothEstimates
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.smoothing import (
    Series,
    Shares,
    course_of,
    filtered,
    fit,
    judge,
    own_shares,
    smoothed,
)
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.row_types import WindowedEstimate, WindowHealth
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.rows.smoothed_rows import filter_row, smooth_rows
from uldp_transforms.rows.window_health import health_of_window
from uldp_transforms.rows.window_history import Neighbours, jump_of

DAY = 86_400_000
ALL, MONTH = 181, 31
CLOSED, HASHED = {"id": "closed"}, {"id": "hashed", "num_buckets": 8}
SETTINGS = [  # alphabet, mechanism, epsilon, people of a day, days
    *((CLOSED, "ss", epsilon, n, days) for epsilon, n, days in (
        (1.0, 922, ALL), (2.0, 922, ALL), (2.0, 922, MONTH), (4.0, 922, ALL), (6.0, 922, ALL),
        (1.0, 16_000, ALL), (2.0, 16_000, ALL), (4.0, 16_000, ALL), (6.0, 16_000, ALL),
        (1.0, 50_000, MONTH), (2.0, 50_000, MONTH), (4.0, 50_000, MONTH), (6.0, 50_000, MONTH))),
    (HASHED, "krr", 2.0, 922, ALL),
    (HASHED, "krr", 2.0, 16_000, ALL),
    (HASHED, "krr", 4.0, 16_000, ALL),
]  # fmt: skip


def main() -> None:
    print("days of flights, 2001: 1e4 times the squared l2 distance to the shares of the people of the day; coverage")
    print("                              window alone, by                        coverage (of the ten largest)")
    print("  alphabet  eps  people  days         eb  projected     filter   smoother      filter        smoother")
    airports, flights = _flights()
    for setting in SETTINGS:
        print(f"  {_errors(airports, flights, *setting)}", flush=True)
    print("one drift and nugget for all values, and the smoother in use: 1e4 times the squared l2 distance; coverage")
    print(
        "  series                 eps  people  days     one pair    in use   coverage: one pair        in use   longer"
    )
    for name, shares in _series().items():
        for epsilon, n in ((1.0, 1_000), (2.0, 1_000), (1.0, 20_000), (2.0, 20_000), (4.0, 50_000)):
            print(f"  {_both(name, shares, epsilon, n)}", flush=True)
    print("coverage of one value of 20 that moves by so many standard errors in window 30 of 60; oue, epsilon 1")
    print("  standard errors       people  one pair: +-5 windows  that one  in use: +-5 windows  that one  all values")
    for lasts in (True, False):
        for n in (1_000, 20_000):
            for errors in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0):
                print(f"  {_moving(n, errors, lasts=lasts)}", flush=True)
            if not lasts:
                print(f"  {_moving(n, 0.05 / _error(n), lasts=lasts)}", flush=True)
    print("the same in a stream: coverage of the value in the windows after it moved for good, the first one first")
    for n in (1_000, 20_000):
        for errors in (1.0, 2.0, 3.0, 4.0, 6.0):
            print(f"  {_following(n, errors)}", flush=True)
    print("delay of alarms: 5 % of krr reports at epsilon 1 replaced by one value from window 30 on, 20 values")
    for n in (500, 1_000, 2_000, 5_000):
        print(f"  {_delays(n)}", flush=True)
    print("CPU seconds of 1,000 collections of 100 values in 365 windows")
    _seconds()


def _flights() -> tuple[tuple[str, ...], np.ndarray]:
    """The airports, and departures by day (181, airports)."""
    with gzip.open(DATA / "flights_2001_daily.csv.gz", "rt", encoding="ascii", newline="") as file:
        head, *lines = csv.reader(file)
    return tuple(head[1:]), np.array([line[1:] for line in lines], dtype=np.int64)


def _collection(alphabet: dict[str, Any], mechanism: str, epsilon: float, values: tuple[str, ...]) -> Collection:
    own = {"values": list(values)} if alphabet["id"] == "closed" else {}
    fields = {"id": "days", "version": 1, "alphabet": alphabet | own, "num_cohorts": 1 if own else 64}
    return Collection.from_json(fields | {"mechanism": {"id": mechanism, "epsilon": epsilon}})


def _row(
    of: Collection, counts: CohortCounts, day: int, values: tuple[str, ...], estimator: str = "projected"
) -> WindowedEstimate:
    place = span_of(day * DAY, DAY) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": None}
    asked = None if of.alphabet.known_values else values
    sample = Sample(owner=Owner(named=of), place=place, counts={of.fingerprint: counts})
    [rows] = rows_of([sample], Asked(estimator=ESTIMATORS[estimator](), candidates=asked))
    return rows.estimate


def _column(rows: list[WindowedEstimate], name: str) -> np.ndarray:
    return np.array([[getattr(entry, name) for entry in row.estimates] for row in rows])


def _errors(
    airports: tuple[str, ...], flights: np.ndarray, alphabet: dict[str, Any], mechanism: str, epsilon: float, n: int,
    days: int,
) -> str:  # fmt: skip
    of, rng = _collection(alphabet, mechanism, epsilon, airports), np.random.default_rng(1)
    people = np.array([rng.multinomial(n, day / day.sum()) for day in flights[:days]])
    counted = [simulate_counts(of, airports, here, rng) for here in people]
    alone, rows = (
        [_row(of, counts, day, airports, estimator) for day, counts in enumerate(counted)]
        for estimator in ("eb", "projected")
    )
    truth, order = people / n, [airports.index(entry.value) for entry in rows[0].estimates]
    truth = truth[:, order]
    both = [row for row, _ in smooth_rows(rows, jump_of(of), 1000)]
    windows, forwards = Neighbours.of([], jump_of(of)), []
    for row in rows:
        windows, shown, _ = filter_row(windows, row, 1000)
        forwards.append(shown)
    errors = [((_column(found, "frequency") - truth) ** 2).sum(axis=1).mean() for found in (alone, rows)]
    errors += [((_column(found, "smoothed_frequency") - truth) ** 2).sum(axis=1).mean() for found in (forwards, both)]
    text = f"{alphabet['id']:8} {epsilon:4g} {n:7,} {days:5} " + " ".join(f"{1e4 * error:10.2f}" for error in errors)
    largest = np.argsort(-truth.mean(axis=0))[:10]
    for found in (forwards, both):
        hits = (_column(found, "smoothed_low") <= truth) & (truth <= _column(found, "smoothed_high"))
        text += f"      {hits.mean():.3f} ({hits[:, largest].mean():.3f})"
    return text


def _series() -> dict[str, np.ndarray]:
    """Shares by window, (T, S); of flights, and of three made-up courses of 30 values."""
    _, flights = _flights()
    found = {"days of flights": flights / flights.sum(axis=1, keepdims=True), "hours, 31 days": _hours()}
    rng, falling = np.random.default_rng(3), 1 / np.arange(1, 31)
    for name, size in (("still", 0.0), ("days of 5 %", 0.05), ("weeks of 30 %", 0.03)):
        law = falling * np.exp(rng.normal(0, size, (120, 30)))
        law *= np.exp(rng.normal(0, 0.3, (7, 30)))[np.arange(120) % 7] if name.startswith("weeks") else 1
        found[name] = law / law.sum(axis=1, keepdims=True)
    walk = falling * np.exp(np.cumsum(rng.normal(0, 0.03, (120, 30)), axis=0))
    return found | {"walks of 3 %": walk / walk.sum(axis=1, keepdims=True)}


def _hours() -> np.ndarray:
    """Departures by hour of the day, (31, 24), of a month that has a snow storm."""
    _, times = read_departures(demo.DATA / demo.VALUES)
    days, day = np.unique(times // 86_400_000, return_inverse=True)
    found = np.zeros((len(days), 24))
    np.add.at(found, (day, times // 3_600_000 % 24), 1)
    shares: np.ndarray = found / found.sum(axis=1, keepdims=True)
    return shares


def _oue(own: np.ndarray, n: int, epsilon: float, rng: np.random.Generator) -> Series:
    """Reports of optimized unary encoding of people of whom (T, S) shares have each value, in days."""
    p, q = 0.5, 1 / (np.exp(epsilon) + 1)
    people = np.rint(own * n).astype(np.int64)
    counts = rng.binomial(people, p) + rng.binomial(n - people, q)
    raw = (counts / n - q) / (p - q)
    variances = (q * (1 - q) / (p - q) ** 2 + raw * (1 - p - q) / (p - q) + np.maximum(raw * (1 - raw), 0)) / n
    return Series(
        raw=raw,
        variances=np.maximum(variances, 1e-12),
        common=np.zeros(raw.shape[1]),
        num_reports=np.full(len(raw), n),
        steps=np.ones(len(raw), dtype=np.int64),
        jump=1 / (p - q),
        phases=np.arange(len(raw)) % 7,
    )


def _error(n: int) -> float:
    """Standard error of the share of a value that nobody has, by optimized unary encoding at epsilon 1."""
    q = 1 / (np.e + 1)
    return float(np.sqrt(q * (1 - q) / n) / (0.5 - q))


def _one_pair(series: Series) -> Shares:
    """The smoother with one drift and one nugget for all values, without seasons and breaks."""
    law = series.law()
    drift, nugget = fit(series, law)
    means, variances = own_shares(series, law, course_of(series, law, drift * law.shares, nugget * law.shares))
    half = 1.959964 * np.sqrt(variances)
    return Shares(means, means - half, means + half)


def _both(name: str, shares: np.ndarray, epsilon: float, n: int, draws: int = 5) -> str:
    found = np.zeros((2, 4))
    for draw in range(draws):
        rng = np.random.default_rng([4, draw])
        own = np.array([rng.multinomial(n, day) for day in shares]) / n
        series, largest = _oue(own, n, epsilon, rng), np.argsort(-shares.mean(axis=0))[:10]
        for place, smoother in enumerate((_one_pair, smoothed)):
            result = smoother(series)
            hits = (result.low <= own) & (own <= result.high)
            errors = 1e4 * ((result.means - own) ** 2).sum(axis=1).mean()
            length = (result.high - result.low).mean()
            found[place] += np.array([errors, hits.mean(), hits[:, largest].mean(), length]) / draws
    text = f"{name:20} {epsilon:5g} {n:7,} {len(shares):5} {found[0, 0]:12.3f} {found[1, 0]:9.3f}     "
    text += "".join(f"   {mean:.3f} ({ten:.3f})" for _, mean, ten, _ in found)
    return text + f"   {found[1, 3] / found[0, 3]:6.2f}"


def _moving(n: int, errors: float, *, lasts: bool, streams: int = 100, windows: int = 60, at: int = 30) -> str:
    """The fifth of 20 values moves by some standard errors, permanently or in one window; days also differ by 5 %."""
    value, found = 4, np.zeros((2, 3))
    for stream in range(streams):
        series, own = _moved(stream, n, errors, slice(at, windows if lasts else at + 1), windows)
        for place, smoother in enumerate((_one_pair, smoothed)):
            result = smoother(series)
            hits = (result.low <= own) & (own <= result.high)
            found[place] += np.array([hits[at - 5 : at + 6, value].mean(), hits[at, value], hits.mean()]) / streams
    kind = f"for good by {errors:.3g}" if lasts else f"one window by {errors:.3g}"
    text = f"{kind:20} {n:7,}"
    return text + "".join(f"{near:23.3f} {own:9.3f}" for near, own, _ in found) + f" {found[1, 2]:11.3f}"


def _moved(stream: int, n: int, errors: float, here: slice, windows: int) -> tuple[Series, np.ndarray]:
    """Windows in some of which the fifth of 20 values has more, by standard errors; and the shares of their people."""
    rng = np.random.default_rng([5, stream])
    law = np.exp(rng.normal(0, 0.05, (windows, 20))) / np.arange(1, 21)
    law /= law.sum(axis=1, keepdims=True)
    before = law[here, 4].copy()
    after = np.minimum(before + errors * _error(n), 0.95)
    law[here] *= ((1 - after) / (1 - before))[:, np.newaxis]
    law[here, 4] = after
    own = np.array([rng.multinomial(n, day) for day in law]) / n
    return _oue(own, n, 1.0, rng), own


def _following(n: int, errors: float, *, streams: int = 100, at: int = 30) -> str:
    """Estimates of a value in the rows of a stream, in the first windows after a lasting change."""
    inside = np.zeros(6)
    for stream in range(streams):
        series, own = _moved(stream, n, errors, slice(at, at + len(inside)), at + len(inside))
        for later in range(len(inside)):
            row, truth = filtered(series, at + later), own[at + later, 4]
            inside[later] += row.low[0, 4] <= truth <= row.high[0, 4]
    return f"by {errors:g}, {n:,} people".ljust(24) + " ".join(f"{mean:.2f}" for mean in inside / streams)


def _krr(of: Collection, shares: np.ndarray, n: int, rng: np.random.Generator) -> CohortCounts:
    """k-RR of n people that draw from shares (K,)."""
    law = of.mechanism.response(shares[np.newaxis])[0]  # type: ignore[attr-defined]  # of all members that count supports
    return CohortCounts(np.array([n]), rng.multinomial(n, law / law.sum())[np.newaxis])


def _delays(n: int, streams: int = 25) -> str:
    values = tuple(f"value {i}" for i in range(20))
    of, shares = _collection(CLOSED, "krr", 1.0, values), np.full(20, 0.05)
    delays = []
    for seed in range(streams):
        rng = np.random.default_rng([2, seed])
        rows = []
        for t in range(60):
            counts = _krr(of, shares, n, rng)
            if t >= 30:
                counts = _krr(of, shares, n - n // 20, rng)
                cells = counts.cells + n // 20 * (np.arange(20) == 7)
                counts = CohortCounts(counts.num_reports + n // 20, cells)
            rows.append(_row(of, counts, t, values))
        rang = np.flatnonzero(judge(Neighbours.of(rows, jump_of(of)).series(), 1000).moved[30:].any(axis=1))
        delays.append(rang[0] if len(rang) else np.inf)
    number = int(np.isfinite(delays).sum())
    return f"{n:,} reports a window: {number} of {streams} rang, median delay {np.median(delays):g} windows"


def _seconds(collections: int = 60) -> None:
    """Time of a few collections, scaled to a thousand."""
    values = tuple(f"value {i}" for i in range(100))
    of, rng = _collection(CLOSED, "krr", 2.0, values), np.random.default_rng(1)
    counted = [_krr(of, np.full(100, 0.01), 2_000, rng) for _ in range(365)]
    rows = [_row(of, counts, day, values) for day, counts in enumerate(counted)]
    series = Neighbours.of(rows, jump_of(of)).series()
    begin = time.process_time()
    for _ in range(collections):
        judge(series, 1000)
        smoothed(series)
    print(f"  arrays to arrays: {1000 / collections * (time.process_time() - begin):.0f} s", flush=True)
    begin = time.process_time()
    for _ in range(collections):
        deque(smooth_rows(rows, jump_of(of), 1000), maxlen=0)
    print(f"  rows to rows: {1000 / collections * (time.process_time() - begin):.0f} s")
    ofs = [Collection.from_json(of.to_json() | {"id": f"days-{number}"}) for number in range(collections)]
    pairs = [_pair(of, row, counts) for row, counts in zip(rows, counted)]
    alone, whole = _on_an_engine(ofs, pairs, smooth=False), _on_an_engine(ofs, pairs, smooth=True)
    print(f"  on an engine, from windows to rows: {1000 / collections * (whole - alone):.0f} s")


def _pair(of: Collection, row: WindowedEstimate, counts: CohortCounts) -> tuple[WindowedEstimate, WindowHealth]:
    """Both rows of a window, as the step before smoothing hands them on."""
    names = ("window_start", "window_end", "pane_index", "pane_timing", "run")
    health = health_of_window(of, counts, {name: getattr(row, name) for name in names}, None, None)
    return row._replace(estimates=EntryColumns.of(row.estimates)), health


def _on_an_engine(ofs: list[Collection], pairs: list[tuple[WindowedEstimate, WindowHealth]], *, smooth: bool) -> float:
    """CPU seconds of a job of the local engine that hands out the windows, and perhaps smooths them."""

    def windows_of(of: Collection) -> Iterator[Any]:
        for day, pair in enumerate(pairs):
            yield TimestampedValue((of.fingerprint, pair), day * DAY // 1000)

    begin = time.process_time()
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        windows = pipeline | beam.Create(ofs) | beam.FlatMap(windows_of).with_output_types(KEYED_ROWS)
        windows |= beam.WindowInto(FixedWindows(DAY // 1000)).with_output_types(KEYED_ROWS)
        if smooth:
            found = windows | SmoothEstimates(JobSpec.of(collections=ofs, window="1d", smooth=True, bounded=True))
            for name, part in found._asdict().items():
                _ = part | f"Take {name}" >> beam.Map(len)
        else:
            _ = windows | beam.Map(len)
    return time.process_time() - begin
