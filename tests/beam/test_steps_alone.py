"""Single steps without an engine: each element that goes in, and every output with its time, window and pane."""

from __future__ import annotations

import io
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow, IntervalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import PANE_INFO_UNKNOWN, PaneInfo, PaneInfoTiming, WindowedValue

from tests.support import cases, replay
from tests.support.estimated import estimate_window
from tests.support.messages_cases import KRR, NOON, RAPPOR, STRANGER, URAP, decoder, single
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.coders import key_of_sum
from uldp_transforms.beam.runtime.panes import place_of
from uldp_transforms.beam.transforms import (
    count_reports,
    decode_reports,
    discover_values,
    estimate_distribution,
    estimate_together,
    gather_messages,
    smooth_estimates,
    window_samples,
)
from uldp_transforms.beam.transforms.read_report_files import _noted, _tagged
from uldp_transforms.collector.ledger_entries import ACCEPTED, IN_TRANSIT, RECEIVED, LedgerEntry, received_entries
from uldp_transforms.collector.period_counts import count_batches
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.borrowing import borrowed_shares
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.samples.sample import Owner, counts_of_window
from uldp_transforms.rows.window_health import health_of_window
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import BasePeriods, Windows

HOUR = 3_600_000
HOURLY = Windows(size=HOUR)
WINDOW = IntervalWindow(Timestamp(3600), Timestamp(7200))
PANE = PaneInfo(False, False, PaneInfoTiming.LATE, 3, 2)
MOMENT = Timestamp(5000)
NUMBERS = Collection.from_json(
    KRR.to_json() | {"id": "numbers", "alphabet": {"id": "ordered", "low": 0, "high": 60, "num_bins": 6}}
)


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is counted and observed, by full name."""
    found: Counter[str] = Counter()

    def count(number: int, name: str, kind: str = "") -> None:
        found[f"{name}_{kind}" if kind else name] += number

    monkeypatch.setattr(metrics, "count", count)
    monkeypatch.setattr(metrics, "observe", lambda value, name, kind="": count(value, kind, name) if kind else None)
    return found


def counts_of(collection: Collection, number: int, *seed: object) -> CohortCounts:
    rng = generator("steps alone", collection.id, number, *seed)
    values = collection.alphabet.known_values
    return collection.count(collection.perturb(rng.choice(values, number).tolist(), rng))


def untagged(outputs: Iterable[Any]) -> dict[str | None, list[Any]]:
    """Outputs by tag, in order."""
    found: dict[str | None, list[Any]] = {}
    for output in outputs:
        tag, value = (output.tag, output.value) if isinstance(output, TaggedOutput) else (None, output)
        found.setdefault(tag, []).append(value)
    return found


# ---------------------------------------------------------------------- estimates


def estimated(spec: JobSpec, elements: Iterable[tuple[bytes, CohortCounts]]) -> Iterator[Any]:
    fn = estimate_distribution._EstimateFn(spec)
    fn.start_bundle()
    for element in elements:
        yield from fn.process(element, MOMENT, WINDOW, PANE) or ()
    yield from fn.finish_bundle()


@pytest.mark.parametrize(
    ("collection", "fields", "arguments"),
    [
        (KRR, {"show": 1}, {"show": 1}),
        (KRR, {"liars": 0.05}, {"liars": 0.05}),
        (KRR, {"min_reports": 7, "bounded": False}, {"anytime_scale": 7}),
        (KRR, {"estimator": "projected"}, {}),
        (NUMBERS, {"limits": (10.0, 30.0), "quantiles": (0.25,)}, {"limits": (10.0, 30.0), "quantiles": (0.25,)}),
        (cases.COLLECTIONS["hashed-krr"], {"candidates": cases.VALUES}, {}),
    ],
    ids=["show", "liars", "anytime", "estimator", "numbers", "candidates"],
)
def test_every_setting_of_a_job_reaches_its_estimates(
    collection: Collection, fields: dict[str, Any], arguments: dict[str, Any]
) -> None:
    if collection.id == KRR.id or collection is NUMBERS:
        counts = counts_of(collection, 400)
    else:
        rng = generator("steps alone")
        counts = collection.count(collection.perturb(rng.choice(cases.VALUES, 400).tolist(), rng))
    spec = JobSpec(collections=(collection,), windows=HOURLY, run="r", **fields)
    [value] = untagged(estimated(spec, [(collection.fingerprint, counts)]))[None]
    estimator = ESTIMATORS[spec.estimator]()
    usual = {"show": spec.show, "anytime_scale": spec.anytime_scale}
    place = place_of(WINDOW, PANE, "r")
    expected = estimate_window(collection, counts, place, estimator, spec.candidates, None, **usual | arguments)
    assert value.value == expected
    assert expected.status == "ok"
    plain = estimate_window(collection, counts, place, ESTIMATORS["eb"](), None, None) if arguments else None
    assert plain is None or plain != expected, "the setting matters"


@pytest.mark.parametrize(("together", "cells"), [(256, 1 << 20), (2, 1 << 20), (256, 3), (1, 1)])
def test_rows_keep_the_order_time_window_and_pane_of_their_elements(
    together: int, cells: int, monkeypatch: pytest.MonkeyPatch, counted: Counter[str]
) -> None:
    """However many are estimated together; windows whose numbers are withheld are among them."""
    monkeypatch.setattr(estimate_distribution, "TOGETHER", together)
    monkeypatch.setattr(estimate_distribution, "_MOST_CELLS", cells)
    spec = JobSpec(collections=(KRR, RAPPOR), windows=HOURLY, min_reports=50)
    sums = [(KRR, 60), (KRR, 20), (RAPPOR, 70), (KRR, 80), (RAPPOR, 5)]
    elements = [(of.fingerprint, counts_of(of, number)) for of, number in sums]
    found = untagged(estimated(spec, elements))
    for name in (None, "health"):
        assert [(value.timestamp, value.windows, value.pane_info) for value in found[name]] == [
            (MOMENT, (WINDOW,), PANE)
        ] * len(sums)
        assert [value.value.collection_id for value in found[name]] == [of.id for of, _ in sums]
    rows = [value.value for value in found[None]]
    assert [row.num_reports for row in rows] == [60, None, 70, 80, None]
    for (of, _), (_, counts), row in zip(sums, elements, rows):
        withheld = "suppressed" if row.num_reports is None else None
        assert row == estimate_window(
            *(of, counts, place_of(WINDOW, PANE), ESTIMATORS["eb"](), None, withheld),
            show=spec.show,
            anytime_scale=spec.anytime_scale,
        )
    assert (counted["windows_ok"], counted["windows_suppressed"]) == (3, 2)


def test_many_windows_are_estimated_before_the_end_of_a_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, counts = JobSpec(collections=(KRR,), windows=HOURLY), counts_of(KRR, 120)
    for together, cells, made in (
        (2, 1 << 20, [0, 4, 0]),
        (256, counts.cells.size, [0, 4, 0]),
        (256, 1 << 20, [0] * 3),
    ):
        monkeypatch.setattr(estimate_distribution, "TOGETHER", together)
        monkeypatch.setattr(estimate_distribution, "_MOST_CELLS", cells)
        fn = estimate_distribution._EstimateFn(spec)
        fn.start_bundle()
        element = KRR.fingerprint, counts
        assert [len(list(fn.process(element, MOMENT, WINDOW, PANE) or ())) for _ in range(3)] == made
        assert len(list(fn.finish_bundle())) == 6 - sum(made)
        assert list(fn.finish_bundle()) == []


@pytest.mark.parametrize(("totals", "milliseconds"), [([60], [3]), ([60, 70, 80], [1, 1, 1]), ([5], [3])])
def test_each_row_takes_its_share_of_the_time_of_all(
    totals: list[int], milliseconds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on by 3 ms whenever it is read: before all and after."""
    ticks, observed = itertools.count(0, 3_000_000), []
    monkeypatch.setattr(window_samples.time, "monotonic_ns", lambda: next(ticks))
    monkeypatch.setattr(metrics, "observe", lambda *given: observed.append(given))
    spec = JobSpec(collections=(KRR,), windows=HOURLY, min_reports=50)
    list(estimated(spec, [(KRR.fingerprint, counts_of(KRR, number)) for number in totals]))
    assert observed == [(value, metrics.ESTIMATE_MS) for value in milliseconds]


SPLIT = Collection.from_json(KRR.to_json() | {"id": "split", "dimensions": [{"name": "arm", "values": ["new", "old"]}]})


def test_groups_of_a_window_borrow_from_its_total() -> None:
    """All in one element; what has no reports is left out."""
    rng = generator("borrow")
    arms, values = rng.choice(["new", "old", "other"], 900).tolist(), rng.choice(["0", "1", "2"], 900).tolist()
    batch = SPLIT.perturb(values, rng, dimensions={"arm": arms})
    catalog = CollectionCatalog((SPLIT,))
    sums = {owner: counts for (owner, _), counts in count_batches(catalog, [batch], None, False, ("arm",))}
    spec = JobSpec(collections=(SPLIT,), windows=HOURLY, by=("arm",), borrow=True, min_reports=50, bounded=True)
    name = estimate_together._OfFamiliesFn(spec)
    pairs = [*sums.items(), (SPLIT.fingerprint + bytes(2), None)]
    keyed = [named for pair in pairs for named in name.process(pair, WINDOW, PANE)]
    assert {family for family, _ in keyed} == {SPLIT.fingerprint}
    fn = estimate_together._FamilyFn(spec)
    fn.start_bundle()
    found = list(fn.process((SPLIT.fingerprint, [part for _, part in reversed(keyed)]), WINDOW, PANE))
    groups = {owner: counts for owner, counts in sums.items() if owner != SPLIT.fingerprint}
    shown = borrowed_shares(SPLIT, sums[SPLIT.fingerprint], groups, ESTIMATORS["eb"](), 50)
    assert len(groups) == 3
    assert [row.group for _, (row, _) in found] == ["", "arm=new", "arm=old", "arm=other"]
    for owner, (row, health) in found:
        own = estimate_window(
            *(SPLIT, sums[owner], place_of(WINDOW, PANE), ESTIMATORS["eb"](), None, None),
            show=spec.show,
            anytime_scale=spec.anytime_scale,
            group=[tuple(pair) for pair in row.dimensions],
        )
        assert health.num_reports == sums[owner].total
        if owner == SPLIT.fingerprint:
            assert row == own
        else:
            assert [one.frequency for one in row.estimates] == shown[owner].frequencies.tolist()
            assert row.borrowed == shown[owner].weight
            assert [one.ci_low for one in row.estimates] == [one.ci_low for one in own.estimates]


@pytest.mark.parametrize(("complete_after", "complete"), [(0, True), (1 << 50, False)])
def test_rows_of_counts_say_whether_they_are_complete(complete_after: int, complete: bool) -> None:
    fn = estimate_distribution._CountsRowsFn(JobSpec(collections=(KRR,), windows=HOURLY, run="r"))
    fn._complete_after = complete_after
    counts = counts_of(KRR, 9)
    [row] = fn.process((KRR.fingerprint, counts), WINDOW, PANE)
    assert row == counts_of_window(Owner(named=KRR), counts, place_of(WINDOW, PANE, "r"), complete=complete)
    assert not row.group


@pytest.mark.parametrize(("number", "withheld"), [(49, "suppressed"), (50, None)])
def test_a_search_gets_the_place_of_its_window_and_what_withholds_it(
    number: int, withheld: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover_values, "discover_window", lambda *given: [given])
    spec = JobSpec(collections=(KRR,), windows=HOURLY, min_reports=50, run="r", confidence=0.9)
    counts = counts_of(KRR, number)
    found = discover_values._DiscoverFn(spec).process((KRR.fingerprint, counts), WINDOW, PANE)
    assert list(found) == [(KRR, counts, place_of(WINDOW, PANE, "r"), withheld, 0.9)]


# ---------------------------------------------------------------------- decoding


def test_received_reports_are_entered_where_they_belong_and_lost_ones_show() -> None:
    periods = BasePeriods(HOUR)
    of_krr = KRR.perturb(["0"] * 3, event_times=[NOON, NOON, NOON + HOUR])
    messages = [wire.encode_batch(of_krr), *wire.encode_reports(URAP.perturb(["1"], event_times=[NOON])), b"x"]
    messages.append(single(STRANGER))
    decoded = decoder([KRR, URAP]).decode(messages)
    start = NOON // HOUR * HOUR
    expected = [
        LedgerEntry(RECEIVED, KRR.fingerprint, start, 2),
        LedgerEntry(RECEIVED, KRR.fingerprint, start + HOUR, 1),
        LedgerEntry(RECEIVED, URAP.fingerprint, start, 1),
        LedgerEntry(RECEIVED, b"", None, 1),  # the stranger; what cannot be read is no report
    ]
    assert sorted(received_entries(decoded, periods), key=str) == sorted(expected, key=str)
    for lost in (1, -1):  # a report without a verdict, or with two
        received = decoded.received.copy()
        received[decoded.catalog.number(URAP.fingerprint[:8])] += lost
        entries = list(received_entries(decoded._replace(received=received), periods))
        assert [entry for entry in entries if entry not in expected] == [
            LedgerEntry(RECEIVED, URAP.fingerprint, None, lost)
        ]
    assert decoded.received.sum() == 5


def test_what_is_decoded_is_counted_and_handed_on(counted: Counter[str]) -> None:
    spec = replay.spec([KRR], HOURLY, bounded=False)
    fn = decode_reports._DecodeFn(decoder([KRR], gate=spec.gate), spec.periods)
    fn.start_bundle()
    messages = wire.encode_reports(KRR.perturb(["0"] * 3, event_times=[NOON, NOON + HOUR, NOON + 2 * HOUR]))
    found = untagged(fn.process(([*messages, b"x", b"y"], [NOON] * 5)))
    assert [len(batch) for batch in found[None]] == [1]
    reasons = Counter(rejection.reason.code for rejection in found["rejected"])
    assert reasons.keys() == {"too_early", "unknown_schema"}
    assert found["ledger"][-1] == LedgerEntry(IN_TRANSIT, b"", None, -5)
    assert sum(entry.num_reports for entry in found["ledger"][:-1]) == 3
    skew = spec.future_skew
    assert +counted == {
        "received": 3,
        "rejected_too_early": 2,
        "unread_messages_unknown_schema": 2,
        "too_early_off_by_ms": 2 * HOUR - skew,
    }
    mixed = decode_reports._DecodeFn(decoder([KRR], gate=spec.gate), spec.periods, mixed=True)
    assert [type(part) for part in untagged(mixed.process((messages, [NOON] * 3)))[None]] == [MixedReports]


def test_groups_of_messages_have_the_time_of_their_latest_one() -> None:
    """And all of a group arrived in one period."""
    times = np.array([NOON + HOUR + 1, NOON + 5, NOON + 3, NOON + HOUR + 9])
    found = untagged(gather_messages._outputs([b"a", b"b", b"c", b"d"], times, BasePeriods(HOUR)))
    groups = [(list(value.value[0]), value.value[1].tolist(), value.timestamp) for value in found[None]]
    assert groups == [
        ([b"b", b"c"], [NOON + 5, NOON + 3], Timestamp(micros=1000 * (NOON + 5))),
        ([b"a", b"d"], [NOON + HOUR + 1, NOON + HOUR + 9], Timestamp(micros=1000 * (NOON + HOUR + 9))),
    ]
    assert [(value.value.num_reports, value.timestamp) for value in found["ledger"]] == [
        (2, groups[0][2]),
        (2, groups[1][2]),
    ]
    assert all(value.windows == (GlobalWindow(),) for part in found.values() for value in part)


@pytest.mark.parametrize(
    ("timed", "bytes_", "number", "made"),
    [
        (False, 1 << 21, 1 << 14, [0, 0, 0]),
        (False, 4, 9, [0, 2, 0]),
        (False, 99, 2, [0, 2, 0]),
        (True, 4, 9, [0, 2, 0]),
    ],
)
def test_messages_wait_until_there_are_enough(
    timed: bool, bytes_: int, number: int, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather_messages, "_FLUSH_BYTES", bytes_)
    monkeypatch.setattr(gather_messages, "_FLUSH_MESSAGES", number)
    fn: Any = gather_messages._TimedGatherFn(BasePeriods(HOUR)) if timed else gather_messages._GatherFn()
    for _ in range(2):  # nothing is left of a bundle that was tried before
        fn.start_bundle()
        more = (Timestamp(7),) if timed else ()
        outputs = [fn.process(message, *more) or [] for message in (b"aa", b"bb", b"cc")]
        assert [len(part) for part in outputs] == made
        outputs.append(fn.finish_bundle())
        found = untagged(output for part in outputs for output in part)
        assert [message for value in found[None] for message in value.value[0]] == [b"aa", b"bb", b"cc"]
        assert sum(value.value.num_reports for value in found["ledger"]) == 3
        assert fn.finish_bundle() == []
        if timed:
            assert {time for value in found[None] for time in value.value[1].tolist()} == {7000}
        else:
            assert {value.timestamp for value in found[None]} == {MIN_TIMESTAMP}
        fn.process(b"dd", *more)  # of a bundle that fails


# ---------------------------------------------------------------------- counting


def bundle(spec: JobSpec, *parts: tuple[int, Any]) -> dict[str | None, list[Any]]:
    """What a bundle of batches makes, each of which arrived at a time in milliseconds."""
    fn = count_reports._CountBundleFn(spec)
    fn.start_bundle()
    found: list[Any] = []
    for arrival, batch in parts:
        found += fn.process(batch, Timestamp(micros=1000 * arrival))
    return untagged([*found, *fn.finish_bundle()])


def some(collection: Collection, *times: int) -> Any:
    return collection.perturb(["1"] * len(times), event_times=list(times))


@pytest.mark.parametrize("limits", [{}, {"_LONG": 1}, {"_WAITING_BYTES": 1}, {"_MAX_CELLS": 1}])
def test_sums_do_not_depend_on_how_many_reports_are_counted_at_once(
    limits: dict[str, int], monkeypatch: pytest.MonkeyPatch, counted: Counter[str]
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(count_reports, name, value)
    batches = [some(KRR, NOON, NOON), some(URAP, NOON, NOON + HOUR), some(KRR, NOON, NOON + HOUR)]
    found = bundle(replay.spec([KRR, URAP], HOURLY), *((0, batch) for batch in batches))
    sums: dict[bytes, Any] = {}
    for value in found[None]:
        key, counts = value.value
        sums[key] = sums[key] + counts if key in sums else counts
        assert value.windows == (GlobalWindow(),)
    start = NOON // HOUR * HOUR
    expected = {
        (of, begin): of.count(batch[batch.event_times // HOUR * HOUR == begin])
        for of, batch in ((KRR, type(batches[0]).concatenate([batches[0], batches[2]])), (URAP, batches[1]))
        for begin in (start, start + HOUR)
    }
    assert sums == {key_of_sum(of.fingerprint, begin): counts for (of, begin), counts in expected.items()}
    times = {value.timestamp for value in found[None]}
    assert times == {Timestamp(micros=1000 * start), Timestamp(micros=1000 * (start + HOUR))}
    assert sum(value.value.num_reports for value in found["ledger"]) == counted["accepted"] == 6
    assert {value.value.bin for value in found["ledger"]} == {ACCEPTED}


def test_sums_are_handed_on_once_and_a_new_bundle_begins_with_none() -> None:
    fn = count_reports._CountBundleFn(replay.spec([KRR], HOURLY))
    for _ in range(2):
        fn.start_bundle()
        assert list(fn.process(some(KRR, NOON), Timestamp(0))) == []
    assert len(list(fn.finish_bundle())) == 2


def test_reports_of_groups_that_nobody_asked_for_are_counted_by_cohort() -> None:
    """Also where several collections are counted in one pass, and one of them has no groups."""
    dimensions = {"dimensions": [{"name": "arm", "values": ["new", "old"]}]}
    split = [Collection.from_json(KRR.to_json() | dimensions | {"id": name}) for name in ("a", "b")]
    arms = {"arm": ["new", "old", "other"] * 9}
    batches = [of.perturb(["0"] * 27, generator("groups", of.id), dimensions=arms) for of in split]
    batches.append(KRR.perturb(["0"] * 27, generator("groups")))
    counted = dict(count_batches(CollectionCatalog((*split, KRR)), batches, None))
    expected = {(of.fingerprint, None): of.count(batch) for of, batch in zip((*split, KRR), batches)}
    assert counted == expected
    assert {counts.shape for counts in expected.values()} == {(KRR.num_cohorts, KRR.num_cells)}


def test_accepted_reports_are_entered_in_the_period_of_their_arrival() -> None:
    """Each batch with its own time, though all of a bundle would be counted together."""
    stream = replay.spec([KRR], HOURLY, bounded=False)
    arrivals = [NOON, NOON + 1, NOON + HOUR, NOON + HOUR]
    found = bundle(stream, *((arrival, some(KRR, NOON)) for arrival in arrivals))
    entered = [(value.timestamp, value.value.num_reports) for value in found["ledger"]]
    assert entered == [(Timestamp(micros=1000 * (NOON + 1)), 2), (Timestamp(micros=1000 * (NOON + HOUR)), 2)]
    files = bundle(replay.spec([KRR], HOURLY, bounded=True), *((arrival, some(KRR, NOON)) for arrival in arrivals))
    assert [value.value.num_reports for value in files["ledger"]] == [4]


# ---------------------------------------------------------------------- smoothing of streams


class State:
    """Of one key."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def read(self) -> bytes | None:
        return self.written[-1] if self.written else None

    def write(self, value: bytes) -> None:
        self.written.append(value)


def test_a_window_that_has_not_begun_displaces_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the skew that clocks are allowed, to the millisecond."""
    spec = JobSpec(collections=(KRR,), windows=HOURLY, smooth=True, bounded=False, future_skew=1_000)
    counts, fn = counts_of(KRR, 400), smooth_estimates._FilterFn(spec)
    place = place_of(WINDOW, PANE_INFO_UNKNOWN)
    row = estimate_window(KRR, counts, place, ESTIMATORS["eb"](), None, None, show=spec.show)
    begin = WINDOW.start.micros // 1000
    for clock, smoothed in ((begin - 1_001, False), (begin - 1_000, True)):
        monkeypatch.setattr(smooth_estimates, "now", lambda clock=clock: clock)
        state = State()
        health = health_of_window(KRR, counts, place, None, None)
        [out] = fn.process((KRR.fingerprint, (row, health)), MOMENT, state)
        assert (len(state.written), out.value[0] != row) == (smoothed, smoothed)
        assert (out.timestamp, out.windows) == (WINDOW.max_timestamp(), (WINDOW,))
        [late] = fn.process((KRR.fingerprint, (row, health)), Timestamp(9000), state)
        assert late.timestamp == Timestamp(9000)
    [of_files] = [smooth_estimates._in_window(row, health, None, MIN_TIMESTAMP)]
    assert isinstance(of_files, WindowedValue)
    assert of_files.timestamp == WINDOW.max_timestamp()


def test_bytes_of_a_file_are_noted_as_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 64 items; all of them at its end, and never more, whatever lies behind it."""
    monkeypatch.setattr(metrics, "SEEN", Counter())
    file = io.BytesIO(bytes(1_000))

    def items() -> Iterator[list[bytes]]:
        for _ in range(130):
            file.read(5)
            yield [b""]

    noted = []
    for _ in _noted(items(), file, 600):
        noted.append(metrics.SEEN[metrics.READ_BYTES])
    assert noted == [5] * 64 + [325] * 64 + [600] * 2
    assert metrics.SEEN[metrics.READ_BYTES] == 600


def test_rejections_pass_a_group_at_once_and_count_as_received(counted: Counter[str]) -> None:
    lost = Rejection(Reason.CORRUPT_BLOCK, 3, 9)
    found = untagged(_tagged(iter([b"a", lost, b"b"]), grouped=False))
    assert found == {
        None: [b"a", b"b"],
        "rejected": [lost],
        "ledger": [LedgerEntry(RECEIVED, b"", None, 3)],
    }
    assert +counted == {"received": 3, "rejected_corrupt_block": 3}


def test_what_could_not_be_read_passes_as_no_report(counted: Counter[str]) -> None:
    lost = Rejection(Reason.CORRUPT_BLOCK, 0, 9, num_messages=2, num_files=1)
    assert untagged(_tagged(iter([lost, b"b"]), grouped=True)) == {None: [b"b"], "rejected": [lost]}
    assert +counted == {"unread_messages_corrupt_block": 2, "unread_files_corrupt_block": 1}
