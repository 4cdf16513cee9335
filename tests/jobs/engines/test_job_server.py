"""Options that only the job server knows: asked for, handed on, and refused in one sentence.

The servers here speak Beam's job API; Flink's own, with the same options: ``tests/jobs/engines/test_cluster.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_job_api_pb2 as job_api
from apache_beam.portability.api import beam_job_api_pb2_grpc as job_service
from apache_beam.runners.portability.portable_runner import JobServiceHandle

from tests.rigs.flink.processes import free_port
from tests.support.messages_cases import KRR, write_files
from uldp_transforms.jobs.engines.job_server import goes_on
from uldp_transforms.jobs.engines.runners import check_options
from uldp_transforms.jobs.estimate.options import read_arguments
from uldp_transforms.jobs.estimate.run import _record
from uldp_transforms.jobs.records.run_records import read_records
from uldp_transforms.ldp.errors import SpecError

FLINKS: dict[str, tuple[int, str]] = {  # as the job server of Beam 2.70 for Flink 1.19 describes them
    "allow_non_restored_state": (job_api.PipelineOptionType.BOOLEAN, "false"),
    "checkpointing_interval": (job_api.PipelineOptionType.INTEGER, "-1"),
    "fail_on_checkpointing_errors": (job_api.PipelineOptionType.BOOLEAN, "true"),
    "faster_copy": (job_api.PipelineOptionType.BOOLEAN, "false"),
    "finish_bundle_before_checkpointing": (job_api.PipelineOptionType.BOOLEAN, "false"),
    "jdk_add_open_modules": (job_api.PipelineOptionType.ARRAY, ""),
    "max_bundle_size": (job_api.PipelineOptionType.INTEGER, "MaxBundleSizeFactory"),
    "max_bundle_time_mills": (job_api.PipelineOptionType.INTEGER, "MaxBundleTimeFactory"),
    "parallelism": (job_api.PipelineOptionType.INTEGER, "-1"),  # Python's Beam knows this one
    "savepoint_path": (job_api.PipelineOptionType.STRING, ""),
    "shutdown_sources_after_idle_ms": (job_api.PipelineOptionType.INTEGER, "-1"),
    "state_backend": (job_api.PipelineOptionType.STRING, ""),
}
GIVEN = (
    "--savepoint_path=file:/s --allow_non_restored_state --max_bundle_size 1000 --max_bundle_time_mills=100 "
    "--faster_copy --shutdown_sources_after_idle_ms=9000000000000000 --finish_bundle_before_checkpointing "
    "--checkpointing_interval=2000 --state_backend=rocksdb --jdk_add_open_modules=a --jdk_add_open_modules=b "
    "--fail_on_checkpointing_errors --parallelism=2"
)


class _Describes(job_service.JobServiceServicer):
    def DescribePipelineOptions(self, request: Any, context: Any) -> job_api.DescribePipelineOptionsResponse:
        described = [
            job_api.PipelineOptionDescriptor(name=name, type=kind, default_value=default)  # type: ignore[arg-type]  # a number, to its stub
            for name, (kind, default) in FLINKS.items()
        ]
        return job_api.DescribePipelineOptionsResponse(options=described)


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(1))
    job_service.add_JobServiceServicer_to_server(_Describes(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}"
    server.stop(None).wait()


def test_options_of_the_job_server_are_known_and_reach_it(endpoint: str) -> None:
    given = [f"--job_endpoint={endpoint}", "--runner=PortableRunner", *GIVEN.split()]
    check_options(given)
    with grpc.insecure_channel(endpoint) as channel:
        handle = JobServiceHandle(job_service.JobServiceStub(channel), PipelineOptions(given))
        sent = handle.get_pipeline_options()
    assert {name: sent[f"beam:option:{name}:v1"] for name in FLINKS if name != "jdk_add_open_modules"} == {
        "allow_non_restored_state": True,
        "checkpointing_interval": "2000",
        "fail_on_checkpointing_errors": False,  # naming a switch that is on turns it off
        "faster_copy": True,
        "finish_bundle_before_checkpointing": True,
        "max_bundle_size": "1000",
        "max_bundle_time_mills": "100",
        "parallelism": "2",
        "savepoint_path": "file:/s",
        "shutdown_sources_after_idle_ms": "9000000000000000",
        "state_backend": "rocksdb",
    }
    assert list(sent["beam:option:jdk_add_open_modules:v1"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (
            "--slower_copy",
            "unrecognized arguments: --slower_copy; options are those of --help all, of Apache Beam and of the job "
            "server at --job_endpoint",
        ),
        ("--max_bundle_size=many", "argument --max_bundle_size: invalid int value: 'many'"),
        ("--faster_copy=true", "argument --faster_copy: ignored explicit argument 'true'"),
    ],
)
def test_others_are_refused(endpoint: str, argv: str, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        check_options([f"--job_endpoint={endpoint}", argv])
    assert str(refused.value) == sentence


def test_a_job_server_that_is_not_there_is_named() -> None:
    address = f"localhost:{free_port()}"
    with pytest.raises(SpecError) as refused:
        check_options([f"--job_endpoint={address}", "--job_server_timeout=1", "--faster_copy"])
    sentence = f"--job_endpoint must be HOST:PORT of a job server, got {address!r}: DEADLINE_EXCEEDED"
    assert str(refused.value) == sentence


def test_it_is_asked_only_for_what_beam_does_not_know() -> None:
    check_options([f"--job_endpoint=localhost:{free_port()}", "--runner=PortableRunner", "--parallelism=2"])


@pytest.mark.parametrize(
    ("argv", "expected"),
    [("--savepoint_path=s", True), ("--savepoint_path s", True), ("--savepoint_paths=s", False), ("", False)],
)
def test_a_savepoint_means_going_on(argv: str, expected: bool) -> None:
    assert goes_on(argv.split()) is expected


# ---------------------------------------------------------------------- the run that goes on


@pytest.fixture
def command(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    write_files(tmp_path, {"krr.json": KRR})
    monkeypatch.chdir(tmp_path)
    words = f"--collection krr.json --window 1h --output out --runner PortableRunner --job_endpoint {endpoint}"
    return f"{words} --kafka_topic reports --bootstrap_servers localhost:1 --no_wait_until_finish".split()


def test_a_job_that_begins_with_a_savepoint_is_still_the_same_run(command: list[str]) -> None:
    """Its rows and its state have the name of the run that was stopped, which readers therefore take for one."""
    for _ in range(2):  # the later one is the one that goes on
        first = read_arguments(command)
        first.directory.prepare()
        _record(first).write("out")
        first.directory.close()
    following = read_arguments([*command, "--savepoint_path=file:/s"])
    assert (following.spec.run, following.directory.run) == (first.spec.run, first.spec.run)
    record = _record(following)
    assert record.started == read_records("out")[-1].started
    assert read_arguments(command).spec.run != first.spec.run


def test_a_savepoint_without_its_run_is_refused(command: list[str]) -> None:
    with pytest.raises(SpecError) as refused:
        read_arguments([*command, "--savepoint_path", "file:/s"])
    assert str(refused.value) == (
        "--savepoint_path needs the --output directory of the run that made the savepoint, got "
        f"{str(Path('out').resolve())!r}, to which no run has written"
    )
