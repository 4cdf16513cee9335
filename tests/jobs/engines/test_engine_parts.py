"""Parts of engines, each without an engine: memory, signals, options, last words, and workers of the pool."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import runpy
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import google.auth
import grpc
import pytest
from apache_beam.options.pipeline_options import DebugOptions, PipelineOptions, PortableOptions, StandardOptions
from apache_beam.portability.api import beam_fn_api_pb2 as fn_api
from apache_beam.portability.api import beam_runner_api_pb2 as runner_api
from apache_beam.runners.portability.prism_runner import PrismRunner
from apache_beam.runners.worker import sdk_worker

from uldp_transforms.jobs.engines import google_clients, memory_limit, runners, worker_pool, worker_process
from uldp_transforms.jobs.engines.last_words import last_words, state_of
from uldp_transforms.jobs.engines.memory_limit import MemoryWatch
from uldp_transforms.jobs.engines.signals import CUT_OFF, Signals, end_now, stopped_by_signals
from uldp_transforms.jobs.engines.step_streams import FlinkSourceOptions, prepare_engine
from uldp_transforms.jobs.engines.worker_pool import WorkerPool
from uldp_transforms.ldp.errors import SpecError

SOON = 30.0
"""Seconds for what another thread does at once."""

# ---------------------------------------------------------------------- memory


def system(monkeypatch: pytest.MonkeyPatch, texts: dict[str, str]) -> None:
    """A machine that has these files, and no others."""

    def path(name: str) -> Any:
        def read_text(encoding: str) -> str:
            if name not in texts:
                raise FileNotFoundError(name)
            return texts[name]

        return SimpleNamespace(read_text=read_text)

    monkeypatch.setattr(memory_limit, "Path", path)


MACHINE, NEW, OLD = "/proc/meminfo", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({MACHINE: "MemTotal: 2048 kB\nMemFree: 1 kB\n"}, 2048 * 1024),
        ({MACHINE: "MemTotal: 2048 kB\n", NEW: "1000000\n"}, 1_000_000),
        ({MACHINE: "MemTotal: 2048 kB\n", OLD: "3000\n", NEW: "max\n"}, 3000),
        ({MACHINE: "MemTotal: 1 kB\n", NEW: "9000\n", OLD: "9000\n"}, 1024),
        ({MACHINE: "MemTotal:"}, None),
        ({MACHINE: "MemTotal: many kB"}, None),
        ({}, None),
    ],
)
def test_the_limit_is_the_least_that_is_known(
    texts: dict[str, str], expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    system(monkeypatch, texts)
    assert memory_limit.memory_limit() == expected


@pytest.mark.parametrize(("text", "pages"), [("9 5 1", 5), ("9", 0), ("a b c", 0), (None, 0)])
def test_memory_in_use_is_resident_pages(text: str | None, pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system(monkeypatch, {} if text is None else {"/proc/self/statm": text})
    assert memory_limit.memory_in_use() == pages * os.sysconf("SC_PAGE_SIZE")


def watched(monkeypatch: pytest.MonkeyPatch, limit: int | None, uses: Sequence[int]) -> tuple[MemoryWatch, list[str]]:
    """A watch that has seen these uses, one after the other, and what it said."""
    left, seen, said = [*uses], threading.Event(), list[str]()

    def in_use() -> int:
        assert threading.current_thread().daemon
        if len(left) == 1:
            seen.set()
            return left[0]
        return left.pop(0)

    monkeypatch.setattr(memory_limit, "EVERY", 0.001)
    monkeypatch.setattr(memory_limit, "memory_limit", lambda: limit)
    monkeypatch.setattr(memory_limit, "memory_in_use", in_use)
    watch = MemoryWatch(said.append)
    with watch.watching():
        assert limit is None or seen.wait(SOON)
    assert not [thread for thread in threading.enumerate() if thread.name == "memory"]
    return watch, said


def test_a_stream_stops_above_80_percent_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; and at 80 % it goes on."""
    gib = 1 << 30
    watch, said = watched(monkeypatch, 5 * gib, [gib, 4 * gib])
    assert (watch.full, said) == (False, [])
    watch, said = watched(monkeypatch, 5 * gib, [4 * gib, 4 * gib + 1])
    assert watch.full
    assert [text.partition(":")[0] for text in said] == [
        "stopping, because this process uses 4.0 GiB of 5.0 GiB of memory"
    ]
    watch, said = watched(monkeypatch, None, [gib])
    assert (watch.full, said) == (False, [])


# ---------------------------------------------------------------------- signals


@pytest.fixture
def handlers() -> Iterator[list[int]]:
    """Handlers of both signals that note what came; they and the hooks for errors are as before afterwards."""
    came, hooks = list[int](), (sys.unraisablehook, threading.excepthook)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        logging.disable(logging.NOTSET)
        left, (sys.unraisablehook, threading.excepthook) = (sys.unraisablehook, threading.excepthook), hooks
    assert left == hooks


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_drains_the_second_cancels_and_the_third_ends(
    number: int, handlers: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    with Signals("estimate") as signals:
        signals.can_drain = True
        signal.raise_signal(number)
        assert (signals.stop.is_set(), signals.cancelled) == (True, False)
        assert signals.leave(7) == 7
        said = "estimate: stopping; a second signal discards what is not yet written\n"
        assert capfd.readouterr().err == said
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert signals.cancelled and logging.root.manager.disable >= logging.CRITICAL
        assert sys.unraisablehook is threading.excepthook
        with mock.patch("os._exit", side_effect=SystemExit) as ended, pytest.raises(SystemExit):
            signal.raise_signal(number)
        ended.assert_called_once_with(130)
        with mock.patch("os._exit", side_effect=SystemExit) as ended, pytest.raises(SystemExit):
            signals.leave(3)
        ended.assert_called_once_with(3)
    signal.raise_signal(number)
    assert handlers == [number]
    assert capfd.readouterr().err == ""


def test_a_job_that_cannot_drain_is_cancelled_by_the_first_signal(handlers: list[int]) -> None:
    with Signals("estimate") as signals:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert (signals.stop.is_set(), signals.cancelled) == (False, True)
    assert CUT_OFF == 128 + signal.SIGINT


def test_the_hooks_of_others_stay_unless_the_run_is_cancelled(handlers: list[int]) -> None:
    """Whoever sets one meanwhile keeps it."""
    hook, before = mock.Mock(), threading.excepthook
    try:
        with Signals("estimate"):
            threading.excepthook = hook
        assert threading.excepthook is hook
    finally:
        threading.excepthook = before


def test_ignored_signals_and_other_threads_are_left_alone(handlers: list[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Signals("estimate") as signals:
        signals.can_drain = True
        signal.raise_signal(signal.SIGINT)
        assert not signals.stop.is_set()
        signal.raise_signal(signal.SIGTERM)
        assert signals.stop.is_set()
    with stopped_by_signals() as stop:
        signal.raise_signal(signal.SIGINT)
        assert not stop.is_set()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    elsewhere = threading.Thread(target=lambda: Signals("estimate").__enter__())
    elsewhere.start()
    elsewhere.join()
    signal.raise_signal(signal.SIGTERM)
    assert handlers == [signal.SIGTERM]


def test_a_stopped_block_says_so_once(handlers: list[int], capfd: pytest.CaptureFixture[str]) -> None:
    for line in ("stopping\n", ""):
        with stopped_by_signals(line) as stop:
            assert not stop.is_set()
            for number, said in ((signal.SIGINT, line), (signal.SIGTERM, "")):
                signal.raise_signal(number)
                assert stop.is_set()
                assert capfd.readouterr().err == said
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.raise_signal(number)
    assert handlers == [signal.SIGINT, signal.SIGTERM]


def test_what_was_printed_is_not_lost_when_a_process_ends() -> None:
    with mock.patch("os._exit") as ended, mock.patch.multiple(sys, stdout=mock.DEFAULT, stderr=mock.DEFAULT) as streams:
        end_now(4)
        ended.assert_called_once_with(4)
        for stream in streams.values():
            stream.flush.assert_called_once_with()


# ---------------------------------------------------------------------- options of engines

LOCAL = ("DirectRunner", "SwitchingDirectRunner", "BundleBasedDirectRunner", "FnApiRunner")
WITHOUT_PUBSUB = ("FlinkRunner", "FnApiRunner", "PortableRunner", "PrismRunner", "SparkRunner")


def options(*words: str) -> PipelineOptions:
    return PipelineOptions([*words])


def runner_of(found: PipelineOptions) -> tuple[Any, bool]:
    standard = found.view_as(StandardOptions)
    return standard.runner, standard.streaming


@pytest.mark.parametrize(
    ("runner", "streaming", "expected"),
    [
        (None, True, "BundleBasedDirectRunner"),
        (None, False, "FnApiRunner"),
        ("DirectRunner", True, "BundleBasedDirectRunner"),
        ("DirectRunner", False, "FnApiRunner"),
        ("DataflowRunner", True, "DataflowRunner"),
        *((runner, False, runner) for runner in WITHOUT_PUBSUB),
    ],
)
def test_the_local_engine_is_one_of_beam_itself(runner: str | None, streaming: bool, expected: str) -> None:
    found = options() if runner is None else options(f"--runner={runner}")
    runners.choose_local_engine(found, streaming=streaming)
    assert runner_of(found) == (expected, streaming)


@pytest.mark.parametrize("runner", WITHOUT_PUBSUB)
def test_engines_that_cannot_read_pubsub_are_refused(runner: str) -> None:
    with pytest.raises(SpecError) as caught:
        runners.choose_local_engine(options(f"--runner={runner}"), streaming=True, option="--sub")
    assert str(caught.value) == f"--sub needs --runner DirectRunner or DataflowRunner, got {runner!r}"


@pytest.mark.parametrize("runner", [None, *LOCAL])
def test_local_engines_read_no_stream_in_java_or_in_steps(runner: str | None) -> None:
    given = [] if runner is None else [f"--runner={runner}"]
    with pytest.raises(SpecError) as java:
        runners.require_java_engine(options(*given), option="--topic")
    with pytest.raises(SpecError) as steps:
        runners.require_stream_engine(options(*given), option="--topic", ends="--until")
    assert str(java.value).startswith("--topic needs --runner FlinkRunner, ")
    assert str(steps.value).startswith("--topic needs --until (a range is read on this machine), or --runner Prism")
    assert {str(each.value).rpartition("got ")[2] for each in (java, steps)} == {repr(runner or "DirectRunner")}


@pytest.mark.parametrize(
    ("runner", "experiments"),
    [("FlinkRunner", ["use_deprecated_read"]), ("SparkRunner", ["use_deprecated_read"]), ("DataflowRunner", None)],
)
def test_other_engines_stream(runner: str, experiments: list[str] | None) -> None:
    found = options(f"--runner={runner}")
    runners.require_java_engine(found)
    assert runner_of(found) == (runner, True)
    assert found.view_as(DebugOptions).experiments == experiments
    found = options(f"--runner={runner}")
    runners.require_stream_engine(found, option="--topic", ends="--until")
    assert runner_of(found) == (runner, True)


def test_credentials_are_needed_unless_a_server_here_stands_for_google(monkeypatch: pytest.MonkeyPatch) -> None:
    for server, calls in (("localhost:1", 0), ("", 1)):
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", server)
        with mock.patch.object(google.auth, "default") as default:
            runners.require_credentials()
        assert default.call_count == calls


@pytest.mark.parametrize(
    ("words", "dry", "launched"),
    [
        ("", False, False),
        ("--dry_run=True", True, True),
        ("--template_location=gs://b/t", False, True),
        ("--no_wait_until_finish", False, True),
    ],
)
def test_a_job_that_is_only_launched_is_not_waited_for(words: str, dry: bool, launched: bool) -> None:
    found = options("--runner=DataflowRunner", *words.split())
    assert (runners.is_dry(found), runners.is_only_launched(found)) == (dry, launched)
    runners.check_dry_run(found)


def test_only_dataflow_describes_a_job_without_running_it() -> None:
    runners.check_dry_run(options("--runner=FlinkRunner"))
    for runner, got in (("--runner=FlinkRunner", "FlinkRunner"), ("", "DirectRunner")):
        with pytest.raises(SpecError, match=f"^--dry_run needs --runner DataflowRunner, got '{got}'$"):
            runners.check_dry_run(options("--dry_run=True", *runner.split()))


def test_a_graph_has_the_names_of_beams_own_message() -> None:
    described = SimpleNamespace(job=SimpleNamespace(proto_pipeline=runner_api.Pipeline(root_transform_ids=["a"])))
    assert json.loads(runners.graph_of(described)) == {"root_transform_ids": ["a"]}


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("", None),
        ("DirectRunner", None),
        ("PrismRunner", None),
        ("DataflowRunner", "drain or cancel it on Dataflow"),
        ("FlinkRunner", None),
        ("FlinkRunner --flink_master=[local]", None),
        ("FlinkRunner --flink_master=host:8081", "stop or cancel it on Flink"),
        ("FlinkRunner --job_endpoint=host:8099", "stop or cancel it on Flink"),
        ("PortableRunner", None),
        ("PortableRunner --job_endpoint=embed", None),
        ("PortableRunner --job_endpoint=host:8099", "stop or cancel it on its engine"),
    ],
)
def test_how_a_job_ends_that_goes_on_without_its_program(words: str, how: str | None) -> None:
    found = options(*(f"--runner={words}".split() if words else ()))
    assert runners.ends_elsewhere(found) == how


def test_prism_is_stopped_if_it_was_started() -> None:
    with mock.patch.object(PrismRunner, "shared_handle") as handle:
        runners.stop_engine(options("--runner=FlinkRunner"))
        handle.acquire.assert_not_called()
        runners.stop_engine(options("--runner=PrismRunner"))
        handle.acquire.return_value.stop.assert_called_once_with()
        [start] = handle.acquire.call_args.args
    start().stop()  # nothing was started


@pytest.mark.parametrize(
    ("words", "path", "is_moved"),
    [
        ("", "out", False),
        *((f"--runner={runner}", "out", False) for runner in LOCAL),
        ("--runner=FlinkRunner", "out", True),
        ("--runner=FlinkRunner", "/out", False),
        ("--runner=FlinkRunner", "gs://bucket/out", False),
    ],
)
def test_an_output_is_reachable_from_all_processes(words: str, path: str, is_moved: bool) -> None:
    found = options(*words.split())
    assert runners.reachable_output(path, found) == (os.path.abspath("out") if is_moved else path)
    assert runners.runs_in_this_process(found) == (words[9:] in LOCAL)


@pytest.mark.parametrize("runner", ["FlinkRunner", "PortableRunner", "PrismRunner", "DataflowRunner"])
@pytest.mark.parametrize("chosen", [None, 7])
def test_what_streams_in_steps_need_of_an_engine(runner: str, chosen: int | None) -> None:
    """A choice of the user stays; of Prism the time that Beam listens, a hundred million seconds."""
    more = [] if chosen is None else [f"--shutdown_sources_after_idle_ms={chosen}"]
    found = options(f"--runner={runner}", *more)
    timeout = found.view_as(PortableOptions).job_server_timeout
    prepare_engine(found)
    flink = found.view_as(FlinkSourceOptions)
    is_flink = runner in ("FlinkRunner", "PortableRunner")
    idle = (chosen or 9_000_000_000_000_000) if is_flink else chosen
    assert flink.shutdown_sources_after_idle_ms == idle
    assert flink.finish_bundle_before_checkpointing is (True if is_flink else None)
    expected = 100_000_000 if runner == "PrismRunner" else timeout
    assert found.view_as(PortableOptions).job_server_timeout == expected


@pytest.mark.parametrize("more", [(), ("--job_endpoint=embed",)])
def test_options_that_nobody_knows_are_named(more: tuple[str, ...]) -> None:
    """Among them that for help, which this program takes itself; a job server in this process is not asked."""
    runners.check_options(["--temp_location=gs://b/t", "--parallelism", "3", *more])
    for word in ("--help", "--no_such_option"):
        with pytest.raises(SpecError) as caught:
            runners.check_options([*more, word], hint=lambda argument: f" (not {argument})")
        assert str(caught.value) == f"unrecognized arguments: {word} (not {word})"


@pytest.mark.parametrize(
    ("found", "expected"), [({"return_value": None}, False), ({"side_effect": ModuleNotFoundError}, False), ({}, True)]
)
def test_google_is_there_or_asked_for(found: dict[str, Any], expected: bool) -> None:
    with mock.patch("importlib.util.find_spec", **found):
        assert google_clients.has_google_clients() is expected
        if expected:
            google_clients.require_google_clients("--topic")
            return
        with pytest.raises(SpecError) as caught:
            google_clients.require_google_clients("--topic")
        sentence = "--topic needs Google's client libraries; install the extra 'gcp': pip install '.[gcp]'"
        assert str(caught.value) == sentence


# ---------------------------------------------------------------------- engines in processes of their own


def test_the_first_cause_that_an_engine_prints_is_its_last_word() -> None:
    """Also where it comes a moment after its death; what it prints of other things, or before, is none."""
    engine, gone = logging.getLogger("PrismJobServer"), mock.Mock()
    type(gone).state = mock.PropertyMock(side_effect=_unavailable())
    before = [*engine.handlers]
    with last_words() as words:
        engine.error("no panic: here")
        later = threading.Timer(0.05, lambda: [engine.error(text) for text in ("fatal error: first \n", "panic: next")])
        later.start()
        with pytest.raises(RuntimeError, match=r"^the engine does not answer: fatal error: first$"):
            state_of(gone, words)
        later.join()
        assert state_of(mock.Mock(state="DONE"), words) == "DONE"
        assert words.of_the_dead() == "fatal error: first"
    assert engine.handlers == before


def _unavailable() -> grpc.RpcError:
    error: Any = grpc.RpcError()
    error.code = lambda: grpc.StatusCode.UNAVAILABLE
    return error


PROGRAM = """#!{python} -S
import os, sys, time
print(*sys.argv[1:-1])
pipe = int(sys.argv[-1])
for part in {parts}:
    os.write(pipe, part)
    time.sleep(0.05)
os.close(pipe)
sys.stdout.flush()
time.sleep({seconds})
"""


def pool_of(folder: Path, monkeypatch: pytest.MonkeyPatch, *parts: bytes, seconds: float = 600.0) -> WorkerPool:
    """A pool whose workers write these parts into their pipe."""
    program = folder / "python"
    program.write_text(PROGRAM.format(python=sys.executable, parts=parts, seconds=seconds), encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    return WorkerPool(SOON, folder)


def start(pool: WorkerPool, name: str) -> str:
    request = fn_api.StartWorkerRequest(worker_id=name, control_endpoint={"url": "engine:1"})
    return str(pool.StartWorker(request, None).error)


def test_workers_are_connected_until_they_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pool_of(tmp_path, monkeypatch, b"conn", b"ected")
    with mock.patch.object(worker_pool, "kill_process_gracefully", wraps=worker_pool.kill_process_gracefully) as ended:
        assert [start(pool, name) for name in ("1", "2", "3")] == [""] * 3
        workers = dict(pool._workers)
        assert list(workers) == ["1", "2", "3"] and {worker.poll() for worker in workers.values()} == {None}
        assert (tmp_path / "worker-1.log").read_text("utf-8") == (
            "-m uldp_transforms.jobs.engines.worker_process engine:1 1\n"
        )
        for name in ("2", "2", "unknown"):
            assert pool.StopWorker(fn_api.StopWorkerRequest(worker_id=name), None).error == ""
        assert [name for name, worker in workers.items() if worker.poll() is not None] == ["2"]
        pool.close()
        assert {worker.poll() for worker in workers.values()}.isdisjoint({None})
        assert ended.call_count == 3


def test_a_worker_that_says_why_it_cannot_start_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = pool_of(tmp_path, monkeypatch, b"ValueError: ", "größer".encode(), b"\xff")
    sentence = f"worker a b did not start: ValueError: größer\ufffd; its log: {tmp_path}/worker-a_b.log"
    assert start(pool, "a b") == sentence
    assert capsys.readouterr().err == f"workers: {sentence}\n"
    assert not pool._workers


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        (None, b"connected"),
        (grpc.FutureTimeoutError(), b"it cannot reach the engine at engine:1"),
        (ValueError("of this test"), b"ValueError: of this test"),
    ],
)
def test_a_worker_says_whether_it_is_connected(
    fault: Exception | None, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, (reading, writing) = mock.Mock(side_effect=fault), os.pipe()
    monkeypatch.setattr(sdk_worker, "SdkHarness", harness)
    monkeypatch.setattr(sys, "argv", ["worker_process", "engine:1", "name", str(writing)])
    os.set_blocking(reading, False)  # a fault could leave the other end open
    with open(reading, "rb") as answers:
        with contextlib.nullcontext() if fault is None else pytest.raises(type(fault)):
            runpy.run_path(str(worker_process.__file__), run_name="__main__")
        assert harness.return_value.run.call_count == (fault is None)
        assert answers.read() == answer
    harness.assert_called_once_with("engine:1", worker_id="name", state_cache_size=0, data_buffer_time_limit_ms=-1)


def test_an_answer_is_whole_or_none() -> None:
    """A worker that has written something, and not closed its pipe in time, is still starting."""
    reading, writing = os.pipe()
    os.write(writing, b"conn")
    with mock.patch("select.select", wraps=select.select) as asked:
        assert worker_pool._answer(reading, 0.0) is None
    assert [call.args[3] for call in asked.call_args_list] == [0, 0], "it does not wait after the end"
    os.write(writing, b"ected")
    os.close(writing)
    assert worker_pool._answer(reading, time.monotonic() + SOON) == b"ected"
    os.close(reading)
