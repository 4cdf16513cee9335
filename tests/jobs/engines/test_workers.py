"""``uldp workers``: the pool of Python workers, its refusals, and what a worker that cannot start says, and where."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2 as fn_api
from apache_beam.portability.api import beam_fn_api_pb2_grpc as fn_service

from tests.rigs import compare, job, prism
from tests.support.refusals.jobs.workers import IN_TIME, SOON, ended_silently
from uldp_transforms.jobs.engines.worker_pool import WorkerPool, served

needs_prism = pytest.mark.skipif(prism.missing() is not None, reason=str(prism.missing()))


def closed_port() -> str:
    """The address of this machine at which nothing listens."""
    return "localhost:9"


def started(pool: WorkerPool, name: str, engine: str) -> str:
    """The error with which the pool answers an engine; empty: the worker is connected."""
    with served(pool, "localhost:0") as address, grpc.insecure_channel(address) as channel:
        request = fn_api.StartWorkerRequest(worker_id=name, control_endpoint={"url": engine})
        return str(fn_service.BeamFnExternalWorkerPoolStub(channel).StartWorker(request, timeout=IN_TIME).error)


def test_a_worker_that_cannot_reach_its_engine_says_so_and_names_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = started(WorkerPool(SOON, tmp_path), "a/1", closed_port())
    log = tmp_path / "worker-a_1.log"
    waited = f"it was not connected to the engine at {closed_port()} within {SOON:g} s"
    assert error == f"worker a/1 did not start: {waited}; its log: {log}"
    assert log.exists()
    assert error in capsys.readouterr().err


def test_a_process_that_ends_without_a_word_gives_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    error = started(WorkerPool(IN_TIME), "1", closed_port())
    assert error.startswith("worker 1 did not start: its process ended with exit code 1; its log: the output of uldp")


def test_a_missing_interpreter_is_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    error = started(WorkerPool(IN_TIME), "1", closed_port())
    assert error.startswith("worker 1 did not start: /nowhere/python: No such file or directory; its log: ")


@needs_prism
def test_the_main_job_names_the_log_of_a_worker_that_cannot_start(tmp_path: Path) -> None:
    job.make_reports(tmp_path, "single", 100)
    with served(WorkerPool(SOON, tmp_path), "localhost:0") as address, pytest.raises(RuntimeError) as failed:
        job.run(tmp_path, str(tmp_path / "*.avro"), tmp_path / "rows", options_of(address))
    (sentence,) = re.findall(r"^estimate: the run failed: .*$", str(failed.value), re.M)
    assert re.search(f"did not start: .* within {SOON:g} s; its log: {tmp_path}/worker-.*[.]log", sentence)


@needs_prism
@pytest.mark.slow
def test_workers_of_the_pool_give_the_rows_of_the_local_engine(tmp_path: Path) -> None:
    job.make_reports(tmp_path, "single", 500)
    job.run(tmp_path, str(tmp_path / "*.avro"), tmp_path / "local", [])
    command = [
        sys.executable,
        "-m",
        "uldp_transforms.jobs",
        "workers",
        "--address=localhost:0",
        f"--log_dir={tmp_path}",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/") as pool:
        try:
            assert pool.stdout is not None
            address = pool.stdout.readline().split()[-1]
            job.run(tmp_path, str(tmp_path / "*.avro"), tmp_path / "prism", options_of(address))
            pool.send_signal(signal.SIGTERM)
            assert pool.wait(IN_TIME) == 0
        finally:
            pool.kill()
    assert compare.differences(tmp_path / "prism", tmp_path / "local") == []
    assert list(tmp_path.glob("worker-*.log"))


def options_of(address: str) -> list[str]:
    return [*prism.options(), "--environment_type=EXTERNAL", f"--environment_config={address}"]


def test_an_engine_that_ends_silently_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"^the engine does not answer: UNAVAILABLE, see its log$"):
        ended_silently()
