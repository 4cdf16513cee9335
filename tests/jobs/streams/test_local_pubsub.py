"""The local stream stops without losing anything; what that needs of Beam is there."""

from __future__ import annotations

import contextlib
import inspect
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apache_beam.runners.direct.clock import RealClock, TestClock
from apache_beam.runners.direct.direct_runner import _DirectReadFromPubSub
from apache_beam.runners.direct.executor import _ExecutorServiceParallelExecutor
from apache_beam.runners.direct.transform_evaluator import TransformEvaluatorRegistry, _PubSubReadEvaluator
from apache_beam.runners.direct.watermark_manager import _TransformWatermarks
from apache_beam.transforms.core import Windowing
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    GeneralTriggerDriver,
    InMemoryUnmergedState,
)
from apache_beam.transforms.window import FixedWindows, IntervalWindow
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue
from google.cloud import pubsub_v1

from tests.servers.pubsub_servers import SHORT_LEASES, params
from tests.support import cases, live
from tests.support.messages_cases import write_files
from uldp_transforms.beam.runtime import engines, metrics
from uldp_transforms.jobs.engines import memory_limit
from uldp_transforms.jobs.engines.signals import Signals, Stop
from uldp_transforms.jobs.estimate.run import configure, run
from uldp_transforms.jobs.pubsub import local_pubsub
from uldp_transforms.jobs.records.run_records import read_records
from uldp_transforms.messages import wire

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]
NUMBER = 2_345  # more than two pulls


def reports(number: int = NUMBER) -> list[bytes]:
    rng, now = np.random.default_rng(1), time.time_ns() // 1_000_000
    return wire.encode_reports(ANIMALS.perturb(rng.choice(cases.VALUES, number).tolist(), rng, [now] * number))


def stopped(folder: Path, options: str, ready: Callable[[], bool]) -> tuple[int, Path]:
    """Runs the job in this process until it is told to stop, when it is ready; its exit code, and its output."""
    write_files(folder, {"animals.json": ANIMALS})
    output = folder / "output"
    argv = f"--collection={folder}/animals.json --subscription={live.SUBSCRIPTION} --output={output} {options}"
    signals = Signals("estimate")

    def stop() -> None:
        end = time.monotonic() + live.PATIENCE
        while not ready() and time.monotonic() < end:
            time.sleep(0.05)
        signals.stop.set()

    thread = threading.Thread(target=stop)
    thread.start()
    code = run(configure(argv.split()), signals)
    signals.stop.set()
    thread.join()
    return code, output


def backlog() -> int:
    """How many messages nobody has acknowledged or leased."""
    with pubsub_v1.SubscriberClient() as subscriber:
        response = subscriber.pull(subscription=live.SUBSCRIPTION, max_messages=10, timeout=live.PATIENCE)
        return len(response.received_messages)


OPTIONS = ["--window=1h", "--window=1h --early_every=1h --deduplicate", "--window=1h --slide=30m --release=final"]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("server", params())
def test_a_stream_that_is_told_to_stop_has_counted_everything(
    server: str, options: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Told before it began, it takes nothing; timers of the clock do not hold it up; open windows are partial."""
    with live.broker(server=server) as broker:
        broker.publish(reports())
        code, output = stopped(tmp_path, f"{options} --write_counts", lambda: sees(tmp_path, NUMBER))
        assert code == 0
        assert backlog() == 0
    books = live.books(output)
    assert books == Counter(received=NUMBER, accepted=NUMBER)
    [record] = read_records(str(output))
    cut = sum(row["status"] == "partial" for row in live.rows(output, "estimates"))
    sentence = f"stopped: {NUMBER} received = {NUMBER} accepted + 0 rejected"
    sentence += f"; windows that were cut short (status partial): {cut}"
    assert (record.end, record.sentence, record.resumes) == ("stopped", sentence, True)
    assert record.ledger is not None
    assert record.ledger["balanced"]
    assert capfd.readouterr().err.endswith(f"estimate: {sentence}\n")
    rows = [row for row in live.rows(output, "estimates") if row["pane_timing"] != "EARLY"]
    assert rows
    assert {(row["status"], row["run"]) for row in rows} == {("partial", record.run)}
    assert all(f"-{record.run}-" in path.name for path in output.iterdir() if path.suffix in (".jsonl", ".avro"))


PULLED: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts what was pulled."""
    PULLED.clear()
    pull = local_pubsub.Reader.pull

    def counting(self: Any, *args: Any) -> list[Any]:
        messages = pull(self, *args)
        PULLED["messages"] += len(messages)
        PULLED["pulls"] += bool(messages)
        PULLED["idle"] += not messages
        return messages

    monkeypatch.setattr(local_pubsub.Reader, "pull", counting)


def sees(folder: Path, number: int) -> bool:
    return PULLED["messages"] >= number


@pytest.mark.parametrize("early", ["", "--early_every=1s"])
def test_late_reports_that_wait_are_in_the_last_row(early: str, tmp_path: Path) -> None:
    """Told to stop, the stream does not wait for the clock, and leaves out nothing; each window is corrected once."""
    minute = time.time_ns() // 1_000_000 - 60_000
    with live.broker() as broker:
        numbers = [50, 30, 20]

        def ready() -> bool:
            """The next reports are sent when the last ones have been worked on; those after the first ones wait."""
            done = 100 - sum(numbers)
            if numbers and PULLED["messages"] >= done and (done == 0 or PULLED["idle"]):
                number = numbers.pop(0)
                PULLED["idle"] = 0
                times = [minute] * number
                broker.publish(wire.encode_reports(ANIMALS.perturb(["ant"] * number, np.random.default_rng(1), times)))
            return not numbers and PULLED["messages"] >= 100

        code, output = stopped(tmp_path, f"--window=1s --late_every=1h --min_reports=1 {early}", ready)
        assert code == 0
    assert [
        row["num_reports"] for row in sorted(live.rows(output, "estimates"), key=lambda row: row["pane_index"])
    ] == [
        50,
        100,
    ]
    assert live.books(output) == Counter(received=100, accepted=100)


def test_told_to_stop_before_it_began_it_takes_nothing(tmp_path: Path) -> None:
    with live.broker() as broker:
        broker.publish(reports(5))
        code, output = stopped(tmp_path, "--window=1h", lambda: True)
        assert (code, PULLED["messages"]) == (0, 0)
        assert backlog() == 5
    [record] = read_records(str(output))
    assert record.sentence == "stopped: 0 received = 0 accepted + 0 rejected"


def test_a_stream_stops_before_its_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As after a signal, with everything counted, and another exit code."""
    monkeypatch.setattr(memory_limit, "EVERY", 0.1)
    monkeypatch.setattr(memory_limit, "memory_limit", lambda: 10 << 30)
    metrics.SEEN.clear()  # of earlier tests
    used = [3 << 30]
    monkeypatch.setattr(memory_limit, "memory_in_use", lambda: used[0])

    def ended() -> bool:
        used[0] = (9 if metrics.SEEN["received"] else 3) << 30
        return any(record.end is not None for record in read_records(str(tmp_path / "output")))

    with live.broker() as broker:
        broker.publish(reports(5))
        code, output = stopped(tmp_path, "--window=1h", ended)
    assert code == 5
    [record] = read_records(str(output))
    assert record.end == "stopped" and record.ledger is not None and record.ledger["received"] == 5
    assert (
        "estimate: stopping, because this process uses 9.0 GiB of 10.0 GiB of memory: the local engine keeps some 200 "
        "bytes for each report until it ends. Start it again, or use uldp estimate --input SPOOL --follow, which keeps "
        "counts on disk\n"
    ) in capfd.readouterr().err


def test_what_failed_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes again, to the next run; even if the engine goes on for a while before it gives up."""
    failing = threading.Event()
    queue = _ExecutorServiceParallelExecutor._TypedUpdateQueue
    take = queue.take

    def take_late(self: Any) -> Any:
        item = take(self)
        time.sleep(1)
        return item

    def fail(*_: Any) -> Any:
        failing.set()
        raise OSError(28, "No space left on device", "/out")

    with live.broker(ack_deadline_seconds=10) as broker, monkeypatch.context() as patch:
        patch.setattr("uldp_transforms.jobs.sinks.row_files.whole_file", fail)
        patch.setattr(queue, "take", take_late)
        broker.publish([b"\x02garbage"] * 7)  # its row is written at once
        code, output = stopped(tmp_path, "--window=1h --flush_every=0s", failing.is_set)
        assert code == 6
        [record] = read_records(str(output))
        assert (record.end, record.sentence) == ("failed", "the run failed: /out: No space left on device")
        patch.undo()
        PULLED.clear()
        code, output = stopped(tmp_path, "--window=1h", lambda: PULLED["messages"] >= 7)
        assert code == 0
    last = read_records(str(output))[-1]
    assert last.sentence == "stopped: 0 received = 0 accepted + 0 rejected; unread messages: 7 (malformed 7)"


@pytest.mark.parametrize("server", params(SHORT_LEASES))
def test_leases_last_as_long_as_the_work(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_pubsub, "EXTEND_EVERY", 0.2)
    with live.broker(1, server) as broker, pubsub_v1.SubscriberClient() as subscriber:
        broker.publish([b"message"])
        reader = local_pubsub.Reader(threading.Event())
        [message] = reader.pull(subscriber, live.SUBSCRIPTION)
        time.sleep(2.5)
        assert backlog() == 0
        reader.acknowledge()
        reader.abandon()
        assert message.data == b"message"


# ---------------------------------------------------------------------- Beam


def test_beam_still_needs_this_and_allows_it() -> None:
    """If this fails, read the new evaluator: perhaps it can drain by itself."""
    source = inspect.getsource(_PubSubReadEvaluator)
    assert "max_messages=10, timeout=30" in source
    assert "[unprocessed_bundle],\n        None, {None: Timestamp.of(time.time())})" in source
    assert source.count("  def ") == 9
    assert list(inspect.signature(_PubSubReadEvaluator.__init__).parameters)[1:] == [
        "evaluation_context",
        "applied_ptransform",
        "input_committed_bundle",
        "side_inputs",
    ]
    overrides = TransformEvaluatorRegistry._test_evaluators_overrides
    with local_pubsub.reading_until(threading.Event()):
        assert list(overrides) == [_DirectReadFromPubSub]
    assert overrides == {}


@pytest.mark.parametrize("mended", [False, True])
def test_a_window_that_is_over_before_its_first_element_comes_holds_nothing(mended: bool) -> None:
    """By itself Beam keeps a hold, and no timer that could take it away; if it does not, the cure can go."""
    windowing = Windowing(FixedWindows(10), AfterWatermark(late=AfterCount(1)), AccumulationMode.DISCARDING, None, 100)
    driver, state = GeneralTriggerDriver(windowing, TestClock()), InMemoryUnmergedState()
    late = WindowedValue("late", Timestamp(5), [IntervalWindow(0, 10)])
    with local_pubsub.reading_until(threading.Event()) if mended else contextlib.nullcontext():
        fired = list(driver.process_elements(state, [late], Timestamp(9), Timestamp(11)))
    assert [value.value for value in fired] == [["late"]]
    for window, (name, domain, moment, _) in state.get_and_clear_timers(Timestamp(11)):
        assert not list(driver.process_timer(window, name, domain, moment, state, Timestamp(11)))
    assert not state.timers
    assert (state.get_earliest_hold() == MAX_TIMESTAMP) is mended
    assert GeneralTriggerDriver.process_elements is local_pubsub._process_elements


@pytest.mark.parametrize("mended", [False, True])
def test_timers_are_looked_for_where_there_are_some(mended: bool) -> None:
    """By itself Beam asks the state of every key before each bundle, also of windows that are over."""
    asked: list[bytes] = []

    class State(InMemoryUnmergedState):
        def __init__(self, key: bytes):
            super().__init__()
            self.key = key

        def get_timers(self, *args: Any, **named: Any) -> Any:
            asked.append(self.key)
            return super().get_timers(*args, **named)

    states = {key: State(key) for key in (b"over", b"open")}
    states[b"open"].set_timer("w", "n", TimeDomain.WATERMARK, Timestamp(-1))
    step = _TransformWatermarks(TestClock(), states, "step")
    step._input_watermark = Timestamp(0)
    with local_pubsub.reading_until(threading.Event()) if mended else contextlib.nullcontext():
        fired, waits = step.extract_transform_timers()
    assert ([timer.encoded_key for timer in fired], waits) == ([b"open"], False)
    assert asked == [b"open"] if mended else [b"over", b"open"]
    assert step._keyed_states is states


@pytest.mark.parametrize("mended", [False, True])
def test_late_reports_wait_for_no_clock_at_the_end_of_time(mended: bool) -> None:
    """By itself Beam lets the stream wait; if it does not, the cure can go."""
    trigger = AfterWatermark(late=AfterProcessingTime(60))
    driver, state = driver_of(trigger), InMemoryUnmergedState()
    clock, window = driver.clock, IntervalWindow(0, 10)
    clock._current_time = Timestamp(1000)
    with local_pubsub.reading_until(threading.Event()) if mended else contextlib.nullcontext():
        for number in range(3):
            late = WindowedValue(number, Timestamp(5), [window])
            fired = list(driver.process_elements(state, [late], Timestamp(20), Timestamp(20)))
            assert [pane.value for pane in fired] == ([[0]] if number == 0 else [])
        assert not state.get_timers(watermark=Timestamp(99), processing_time=1000)[0]
        due, _ = state.get_timers(watermark=MAX_TIMESTAMP, processing_time=1000)
        panes = [
            pane
            for where, (name, domain, moment, _) in due
            for pane in driver.process_timer(where, name, domain, moment, state, MAX_TIMESTAMP)
        ]
    assert [(pane.value, pane.pane_info.index) for pane in panes] == ([([0, 1, 2], 1)] if mended else [])


@pytest.mark.parametrize("mended", [False, True])
def test_a_timer_for_early_reports_fires_no_late_pane(mended: bool) -> None:
    """By itself Beam repeats the pane on time; if it does not, the cure can go."""
    trigger = AfterWatermark(early=AfterProcessingTime(60), late=AfterProcessingTime(60))
    driver, state = driver_of(trigger), InMemoryUnmergedState()
    window = IntervalWindow(0, 10)
    with local_pubsub.reading_until(threading.Event()) if mended else contextlib.nullcontext():
        assert not list(driver.process_elements(state, [WindowedValue(1, Timestamp(5), [window])], Timestamp(1)))
        for where, (name, domain, moment, _) in state.get_timers(watermark=Timestamp(10), processing_time=0)[0]:
            assert len(list(driver.process_timer(where, name, domain, moment, state, Timestamp(10)))) == 1
        late = list(
            driver.process_timer(where, "triggerearly", TimeDomain.REAL_TIME, Timestamp(60), state, Timestamp(10))
        )
    assert len(late) == (0 if mended else 1)


@pytest.mark.parametrize("mended", [False, True])
def test_a_window_that_ended_by_a_clock_that_was_ahead_holds_nothing(mended: bool) -> None:
    """A late report waits for 60 s of the other clock, which has not reached the end of the window yet."""
    driver, state = driver_of(AfterWatermark(late=AfterProcessingTime(60))), InMemoryUnmergedState()
    window = IntervalWindow(0, 7200)
    with local_pubsub.reading_until(threading.Event()) if mended else contextlib.nullcontext():
        for number in range(2):
            late = WindowedValue(number, Timestamp(5), [window])
            list(driver.process_elements(state, [late], Timestamp(7300), Timestamp(7300)))
        [(where, (name, domain, moment, _))], _ = state.get_timers(watermark=Timestamp(7300), processing_time=61)
        [pane] = driver.process_timer(where, name, domain, moment, state, Timestamp(7300))
    assert pane.value == [0, 1]
    assert (state.get_earliest_hold() == MAX_TIMESTAMP) is mended


def test_timers_follow_a_clock_that_nobody_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the watermark never goes back; if Beam's clock is steady itself, the cure can go."""
    monkeypatch.setattr(time, "time", lambda: 1e9)
    reader = local_pubsub.Reader(Stop())
    assert RealClock().time() == engines.processing_time() == 1e9
    with local_pubsub.reading_until(reader.stop):
        before = (RealClock().time(), engines.processing_time())
        assert reader.watermark() == Timestamp(1e9)
        for jump in (7200, -7200):
            monkeypatch.setattr(time, "time", lambda jump=jump: 1e9 + jump)
            after = (RealClock().time(), engines.processing_time())
            assert all(0 <= late - early < 60 for early, late in zip(before, after))
            assert reader.watermark() == Timestamp(1e9 + 7200)
    assert RealClock().time() == 1e9 - 7200


def driver_of(trigger: AfterWatermark) -> Any:
    """What drives it, with a clock of its own."""
    windowing = Windowing(FixedWindows(10), trigger, AccumulationMode.ACCUMULATING, None, 100)
    return GeneralTriggerDriver(windowing, TestClock())


def test_requests_that_found_nothing_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself Beam keeps one for each pull, and walks through them at each pull."""
    kept: list[int] = []
    finish = local_pubsub._Evaluator.finish_bundle

    def watching(self: Any) -> Any:
        result = finish(self)
        manager = self._evaluation_context._watermark_manager
        kept.append(len(manager.get_watermarks(self._applied_ptransform)._pending))
        return result

    monkeypatch.setattr(local_pubsub, "PATIENCE", 0.05)
    monkeypatch.setattr(local_pubsub._Evaluator, "finish_bundle", watching)
    with live.broker():
        code, _ = stopped(tmp_path, "--window=1h", lambda: len(kept) > 20)
    assert code == 0
    assert max(kept) <= 1
