"""The numbers that engines show while a job runs: summed over steps, they are those of the ledger and of the rows."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.metrics.cells import DistributionResult
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import Event

from tests.rigs import prism
from tests.support import replay
from tests.support.messages_cases import KRR, RAPPOR, STRANGER, URAP, container, long, single, write_files
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.jobs.estimate.options import Job
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import FUTURE_SKEW, Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
START = 1_000_000_000_000 // PERIOD * PERIOD
LATENESS = 5 * MINUTE
WINDOWS = Windows(size=PERIOD)
COLLECTIONS = [KRR, URAP, RAPPOR]
DOCS = Path(__file__).parents[3] / "docs" / "operations.md"

Shown = tuple[Counter[str], dict[str, DistributionResult]]
"""Counters summed over steps, without those that are 0, and distributions."""


def shown(result: Any) -> Shown:
    found = result.metrics().query(MetricsFilter().with_namespace(metrics.NAMESPACE))
    counters: Counter[str] = Counter()
    for metric in found["counters"]:
        counters[metric.key.metric.name] += metric.result
    distributions = {metric.key.metric.name: metric.result for metric in found["distributions"]}
    assert len(distributions) == len(found["distributions"]), "one step each"
    return Counter({name: number for name, number in counters.items() if number}), distributions


def run(job: Job, events: Sequence[Event] = ()) -> tuple[dict[str, list[Any]], Shown]:
    """The rows of a job and what its engine shows."""
    lists = replay.Lists()
    result = replay.run(dataclasses.replace(job, sinks=(lists,)), events)
    return lists.rows(), shown(result)


def expected(rows: dict[str, list[Any]]) -> Counter[str]:
    """What the counters should be, by the rows."""
    sums: Counter[str] = Counter()
    for row in rows["ledger"]:
        sums.update(received=row.received, accepted=row.accepted, duplicates=row.duplicates)
        sums.update({f"rejected_{reason}": number for reason, number in row.rejected.items()})
        sums.update({f"unread_messages_{reason}": number for reason, number in row.unread_messages.items()})
        sums.update({f"unread_files_{reason}": number for reason, number in row.unread_files.items()})
    sums.update(f"windows_{row.status}" for row in rows["estimates"])
    sums.update(f"alarms_{found.name}" for row in rows["health"] for found in row.findings if found.fired)
    return Counter({name: number for name, number in sums.items() if number})


def check(rows: dict[str, list[Any]], found: Shown, *reasons: Reason) -> None:
    counters, distributions = found
    assert not replay.unbalanced(rows["ledger"])
    assert counters == expected(rows)
    assert {"received", "accepted", "windows_ok"} <= set(counters)
    for reason in reasons:
        assert any(counters[f"{kind}_{reason.code}"] for kind in ("rejected", "unread_messages", "unread_files"))
    took = distributions["estimate_ms"]
    assert took.count == len(rows["estimates"])
    assert 0 <= took.min <= took.max <= took.sum


def reports(*seed: object) -> list[bytes]:
    """Of one cohort in one collection, over two base periods, so that there are alarms; single and packed."""
    found = []
    for of in COLLECTIONS:
        rng = generator("metrics", of.id, *seed)
        batch = of.perturb(["1"] * 60, rng, START + rng.integers(0, PERIOD + FUTURE_SKEW, 60))
        if of is KRR:
            batch = dataclasses.replace(batch, cohorts=batch.cohorts * 0)
        found += [*wire.encode_reports(batch[:40]), wire.encode_batch(batch[40:])]
    return found


BAD = [b"", b"\x02garbage", single(STRANGER), single(cohort=long(9), event_time=long(START)), single() + b"\0"]
VARIABLE = {of: f"{of}_REASON" for of in ("rejected", "unread_messages", "unread_files")}
VARIABLE |= {"windows": "windows_STATUS", "alarms": "alarms_NAME"}
"""Names that stand for several metrics, as on the page."""

REASONS = (Reason.MALFORMED, Reason.UNKNOWN_COLLECTION, Reason.COHORT_RANGE, Reason.TRAILING_BYTES)

# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("deduplicate", [False, True])
@pytest.mark.parametrize("windows", [WINDOWS, Windows(size=2 * PERIOD, slide=PERIOD), None], ids=["one", "many", "no"])
def test_of_files(windows: Windows | None, deduplicate: bool, tmp_path: Path) -> None:
    """Blocks that cannot be read are counted by the step that reads, messages by the one that decodes."""
    messages = [message for message in reports() if message[0] == 2] * 2
    bad = [single(cohort=long(9)), single(STRANGER)]
    blocks = [*((1, message) for message in [*messages, *bad]), (9, single())]
    write_files(tmp_path, {"a.avro": container(blocks), "b.avro": b"", "c.avro": container([(1, messages[0])])})
    job = replay.file_job(COLLECTIONS, windows, f"{tmp_path}/*.avro", deduplicate=deduplicate)
    rows, found = run(job)
    check(rows, found, Reason.COHORT_RANGE, Reason.UNKNOWN_COLLECTION, Reason.BAD_MAGIC, Reason.CORRUPT_BLOCK)
    assert found[0]["received"] == len(messages) + len(bad) + 1, "what cannot be read is no report"
    assert found[0]["duplicates"] == (len(messages) // 2 + 1) * deduplicate
    assert found[0]["alarms_cohorts"] > 0
    assert not any(name.endswith(metrics.OFF_BY) for name in found[1])  # files have no arrival times


# ---------------------------------------------------------------------- streams

EARLY, LATE = (17, 4_000, 60_000), (1, 250, 90_000)
"""Milliseconds by which reports come too early and too late, a bundle each."""


def events() -> list[Event]:
    """Bundles with copies, with messages that are refused for several reasons, and with reports after their time."""
    end = START + PERIOD + LATENESS  # from here on a report of the first base period is too old
    found: list[Event] = []
    for number, part in enumerate((reports(), BAD, reports(), reports("others"), BAD)):
        found += [replay.arrive(START + PERIOD + number, part), replay.watermark(START + PERIOD + number)]
    for number, off_by in enumerate(EARLY):
        arrival = START + PERIOD + 100 + number
        moments = [arrival + FUTURE_SKEW + off_by, arrival + FUTURE_SKEW + 1, arrival + FUTURE_SKEW]
        found.append(replay.arrive(arrival, sent_at(moments, number)))
    for number, off_by in enumerate(LATE):
        found.append(replay.arrive(end - 1 + off_by, sent_at([START, START + PERIOD - 1, START + PERIOD], 9 + number)))
    return [*found, replay.watermark(START + 3 * PERIOD), replay.arrive(START + 3 * PERIOD, reports("more"))]


def sent_at(moments: Sequence[int], number: int) -> list[bytes]:
    ids = [bytes([200 + number, place] * 8) for place in range(len(moments))]
    return [single(event_time=long(moment), report_id=name) for moment, name in zip(moments, ids)]


def check_stream(job: Job) -> None:
    rows, found = run(job, events())
    check(rows, found, *REASONS, Reason.TOO_EARLY, Reason.TOO_OLD)
    assert bool(found[0]["duplicates"]) == job.spec.deduplicate
    early, late = (found[1][f"{reason.code}_{metrics.OFF_BY}"] for reason in (Reason.TOO_EARLY, Reason.TOO_OLD))
    assert (early.max, early.min) == (max(EARLY), min(EARLY)), "of what was decoded together, the worst"
    assert late.min == min(LATE)
    assert late.max == 3 * PERIOD - PERIOD - LATENESS + 1  # the last bundle has reports of the first period


@pytest.mark.parametrize("fields", [{}, {"deduplicate": True}, {"release": FINAL}], ids=["once", "copies", "final"])
def test_of_a_stream(fields: dict[str, Any]) -> None:
    """Many bundles on the local engine, and timers; of each step only the first would be shown."""
    check_stream(replay.streaming_job(COLLECTIONS, WINDOWS, allowed_lateness=LATENESS, **fields))


def test_of_early_panes() -> None:
    """Which are rows too."""
    job = replay.streaming_job(COLLECTIONS, WINDOWS, allowed_lateness=LATENESS, early_every=MINUTE)
    first = [replay.arrive(START, reports()), replay.clock(2 * MINUTE), replay.clock(2 * MINUTE)]
    rows, found = run(job, [*first, *events()])
    assert {row.pane_timing for row in rows["estimates"]} == {"EARLY", "ON_TIME", "LATE"}
    assert found[0] == expected(rows)


@pytest.mark.skipif(prism.missing() is not None, reason=str(prism.missing()))
@pytest.mark.parametrize("deduplicate", [False, True])
def test_of_a_stream_on_prism(deduplicate: bool) -> None:
    options = PipelineOptions([*prism.options(), "--streaming"])
    fields = {"allowed_lateness": LATENESS, "deduplicate": deduplicate, "options": options}
    check_stream(replay.streaming_job(COLLECTIONS, WINDOWS, **fields))


def test_what_comes_after_the_release_is_counted() -> None:
    """Where the watermark is ahead of the messages by more than the margin."""
    job = replay.streaming_job([KRR], WINDOWS, release=FINAL)
    watermark = START + PERIOD + job.spec.release_delay + 1
    sent = [sent_at([START + number], number) for number in range(4)]
    before = [replay.arrive(START + PERIOD - 2, sent[0] + sent[1]), replay.watermark(watermark)]
    rows, found = run(job, [*before, *(replay.arrive(START + PERIOD - 1, part) for part in sent[2:])])
    assert [row.num_reports for row in rows["estimates"]] == [2]
    assert found[0]["after_release"] == 2
    assert found[0] - Counter(after_release=2) == expected(rows)
    assert found[0]["accepted"] == 4


# ---------------------------------------------------------------------- Beam's local engine for streams


def bundles(number: int) -> list[Event]:
    """Each of one report."""
    return [replay.arrive(START + place, sent_at([START + place], place % 50)) for place in range(number)]


def test_without_our_help_the_engine_shows_the_first_bundle_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """When this fails, Beam's local engine has been mended: ``metrics.start_bundle`` and its calls can go."""
    job = replay.streaming_job([KRR], WINDOWS)
    assert run(job, bundles(20))[1][0]["received"] == 20
    monkeypatch.setattr(metrics, "start_bundle", lambda: None)
    rows, (counters, _) = run(job, bundles(20))
    assert expected(rows)["received"] == 20
    assert 1 <= counters["received"] < 20  # each of its threads shows its own first one


def test_our_help_leaves_other_engines_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their samplers have names; nothing is taken out of them."""
    seen: list[tuple[str, int, int]] = []
    start = metrics.start_bundle

    def watched() -> None:
        sampler: Any = metrics.statesampler.get_current_tracker()
        before = len(sampler._states_by_name)
        start()
        seen.append((sampler.stage_name, before, len(sampler._states_by_name)))

    monkeypatch.setattr(metrics, "start_bundle", watched)
    write_files(tmp_path, {"a.avro": container([(1, single())])})
    run(replay.file_job([KRR], WINDOWS, f"{tmp_path}/*.avro"))
    assert seen
    assert all(name and before == after for name, before, after in seen)
    seen.clear()
    run(replay.streaming_job([KRR], WINDOWS), bundles(3))
    assert seen
    assert all(name == "" and before - after == 3 for name, before, after in seen)  # start, process, finish


def test_outside_of_an_engine_nothing_happens() -> None:
    metrics.start_bundle()
    metrics.count(3, metrics.RECEIVED)
    metrics.observe(3, metrics.OFF_BY, "too_old")


# ---------------------------------------------------------------------- the page


def documented() -> dict[str, str]:
    """Kinds by name, from the table of the page."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (counter|distribution) \| .+ \|$", DOCS.read_text("utf-8"), re.M)
    return {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)}


@pytest.mark.parametrize(
    ("call", "kind"), [(metrics.count, "counter"), (metrics.observe, "distribution")], ids=["counters", "distributions"]
)
def test_the_page_names_every_metric(call: Callable[..., None], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown in a run with everything in it, with capitals for what varies."""
    said: set[str] = set()

    def watched(number: int, name: str, which: str = "") -> None:
        said.add(VARIABLE.get(name, name))
        if name == metrics.OFF_BY:
            said.remove(name)
            said.add(f"{which}_{name}")

    monkeypatch.setattr(metrics, call.__name__, watched)
    replay.replay(replay.streaming_job(COLLECTIONS, WINDOWS, allowed_lateness=LATENESS, deduplicate=True), events())
    job = replay.streaming_job([KRR], WINDOWS, release=FINAL)
    ahead = START + PERIOD + job.spec.release_delay + 1
    late = replay.arrive(START, sent_at([START], 2))
    replay.replay(job, [replay.arrive(START, sent_at([START], 1)), replay.watermark(ahead), late])
    assert said == {name for name, found in documented().items() if found == kind}
