"""The main job on a real Spark, with workers in processes of their own; ``make spark`` fetches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs import compare, job
from tests.rigs.spark.__main__ import sentence_of_failure
from tests.rigs.spark.server import JARS, missing, spark

pytestmark = [pytest.mark.slow, pytest.mark.skipif(missing() is not None, reason=str(missing()))]


def test_files_give_the_rows_of_the_local_engine(tmp_path: Path) -> None:
    for form in ("single", "packed"):
        job.make_reports(tmp_path, form, 5000)
    reports = str(tmp_path / "*.avro")
    job.run(tmp_path, reports, tmp_path / "local", [])
    with spark(tmp_path) as options:
        job.run(tmp_path, reports, tmp_path / "spark", options)
    assert compare.differences(tmp_path / "spark", tmp_path / "local") == []
    assert len(compare.rows(tmp_path / "spark")["estimates.jsonl"]) == 20  # 200,000 s: 19 base periods of 3 hours


def test_a_worker_that_cannot_start_fails_the_job_and_names_its_log(tmp_path: Path) -> None:
    reports = str(job.make_reports(tmp_path, "single", 100))
    with spark(tmp_path, start_timeout="1ms") as options:
        sentence = sentence_of_failure(tmp_path, reports, options)
    assert "did not start" in sentence
    assert f"its log: {tmp_path}/worker-" in sentence


def test_jars_are_the_pinned_ones() -> None:
    assert JARS.mismatches() == []
