"""The main job on a real Flink, with workers in processes of their own; ``make flink`` fetches it.

Files, and Kafka with a broker of its own; and the steps that Java writes for BigQuery.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs import compare, job
from tests.rigs.flink import cached, stream
from tests.rigs.flink.cluster import Cluster, cluster
from tests.rigs.storage_write import __main__ as storage_write
from uldp_transforms.jobs.kafka.topic_options import LOG_APPEND_TIME

needs_flink = pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing()))
needs_storage_write = pytest.mark.skipif(storage_write.missing() is not None, reason=str(storage_write.missing()))
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("flink")) as running:
        yield running


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of single and of packed reports, and the rows of the local engine in ``local``."""
    folder = tmp_path_factory.mktemp("reports")
    for form in ("single", "packed"):
        job.make_reports(folder, form, 5000)
    job.run(folder, str(folder / "*.avro"), folder / "local", [])
    return folder


@needs_flink
def test_files_give_the_rows_of_the_local_engine(flink: Cluster, reports: Path) -> None:
    output = reports / "flink"
    job.run(reports, str(reports / "*.avro"), output, flink.options(parallelism=2))
    assert compare.differences(output, reports / "local") == []
    assert len(compare.rows(output)["estimates.jsonl"]) == 20  # 200,000 s: 19 base periods of 3 hours


@needs_flink
def test_a_killed_worker_costs_a_restart_and_no_report(flink: Cluster, tmp_path: Path) -> None:
    packed = job.make_reports(tmp_path, "packed", job.REPORTS_OF_A_FILE)
    for number in range(1, 300):  # one file under many names
        os.link(packed, tmp_path / f"{number}.avro")
    pattern, output = str(tmp_path / "*.avro"), tmp_path / "flink"
    job.run(tmp_path, pattern, tmp_path / "local", [])
    killer = threading.Thread(target=flink.kill_busy_worker, daemon=True)
    killer.start()
    job.run(tmp_path, pattern, output, flink.options(parallelism=2))
    assert not killer.is_alive()
    assert flink.restarts() > 0
    assert compare.differences(output, tmp_path / "local") == []


@needs_flink
def test_a_stream_counts_exactly_when_a_worker_is_killed(tmp_path: Path) -> None:
    """``run`` raises unless it does; as ``make flink``, for a shorter time and with the broker's clock."""
    table = stream.run(tmp_path, rate=500, seconds=40, timestamps=LOG_APPEND_TIME)
    assert "ledger of final: exact" in table or "ledger of corrected: exact" in table


@needs_storage_write
def test_java_writes_the_steps_of_the_storage_write_api(tmp_path: Path) -> None:
    steps = storage_write.steps(tmp_path)
    assert [step.split("/")[0] for step in steps] == [f"Table_{name}" for name in TABLES]


@pytest.mark.parametrize(
    "jars",
    [
        pytest.param(cached.JARS, marks=needs_flink, id="flink"),
        pytest.param(storage_write.JARS, marks=needs_storage_write, id="storage_write"),
    ],
)
def test_jars_are_the_pinned_ones(jars: cached.cache.Jars) -> None:
    assert jars.mismatches() == []


TABLES = ("estimates", "health", "ledger", "rejected")
