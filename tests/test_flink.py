"""Files on a real Flink, with Python workers in processes of their own; ``make flink`` fetches it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import compare, job
from deploy.flink import cluster as flink

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(flink.missing() is not None, reason=str(flink.missing())),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[flink.Cluster]:
    with flink.cluster(tmp_path_factory.mktemp("flink")) as running:
        yield running


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of single and of packed reports, and the rows of the local engine in ``local``."""
    folder = tmp_path_factory.mktemp("reports")
    for form in ("single", "packed"):
        job.make_reports(folder, form, 5000)
    job.run(folder, str(folder / "*.avro"), folder / "local", [])
    return folder


def test_files_give_the_rows_of_the_local_engine(cluster: flink.Cluster, reports: Path) -> None:
    output = reports / "flink"
    job.run(reports, str(reports / "*.avro"), output, cluster.options(parallelism=2))
    assert compare.differences(output, reports / "local") == []
    assert len(compare.rows(output)["estimates.jsonl"]) == 20  # 200,000 s: 19 base periods of 3 hours


def test_a_killed_worker_costs_a_restart_and_no_report(cluster: flink.Cluster, tmp_path: Path) -> None:
    packed = job.make_reports(tmp_path, "packed", job.REPORTS_OF_A_FILE)
    for number in range(1, 100):  # one file under many names
        os.link(packed, tmp_path / f"{number}.avro")
    pattern, output = str(tmp_path / "*.avro"), tmp_path / "flink"
    job.run(tmp_path, pattern, tmp_path / "local", [])
    killer = threading.Thread(target=cluster.kill_busy_worker, daemon=True)
    killer.start()
    job.run(tmp_path, pattern, output, cluster.options(parallelism=2))
    assert not killer.is_alive()
    assert cluster.restarts() > 0
    assert compare.differences(output, tmp_path / "local") == []


def test_jars_are_the_pinned_ones() -> None:
    assert flink.mismatches(flink.JARS) == []
