"""What programs import when they start: at most what is stated here, by names of modules and not by time.

The time of a start is that of its imports: Beam takes two seconds, ``scipy.stats`` with what it needs half a second,
Google's client for Pub/Sub half a second.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from packages.follow.tests.support.spools import Followed
from packages.follow.tests.support.two_steps import PROGRAM as FOLLOWING
from tests.support.messages_cases import KRR

ROOT = Path(__file__).parents[2]

HEAVY = (
    *("apache_beam", "confluent_kafka", "fastavro", "google.cloud.pubsub_v1", "numpy", "pyarrow", "sqlite3"),
    *("scipy.interpolate", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"),
    *("uldp_transforms.ldp.client.client", "uldp_transforms.ldp.estimators", "uldp_transforms.ldp.smoothing"),
)
"""Modules that a start may import only where it is stated."""

ESTIMATES = {"numpy", "scipy.linalg", "scipy.sparse", "scipy.special", "uldp_transforms.ldp.estimators"}

STARTS = {
    "audit": {"numpy"},
    "check": {"numpy", "fastavro"},
    "compact": {"numpy", "fastavro"},
    "compare": ESTIMATES | {"fastavro"},
    "completion": {"numpy"},
    "describe": ESTIMATES | {"fastavro"},
    "dev-queue": {"numpy"},
    "export": {"numpy"},
    "gateway": ESTIMATES | {"fastavro", "confluent_kafka"},
    "live": {"numpy", "confluent_kafka"},
    "reestimate": ESTIMATES | {"fastavro", "uldp_transforms.ldp.smoothing"},
    "simulate": {"numpy", "fastavro", "pyarrow"},
    "sql": {"numpy", "fastavro", "pyarrow"},
    "tokens": {"numpy"},
    "workers": {"numpy"},
}
"""Program -> the modules of ``HEAVY`` that ``--help`` may import."""

PROGRAM = """
import contextlib, sys
from uldp_transforms.jobs.uldp import main
with contextlib.suppress(SystemExit):
    main(sys.argv[1:])
"""
NAMES = f"\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"


def imported(program: str, *words: str) -> set[str]:
    """The modules of ``HEAVY`` that a process with this command line has imported when it ends."""
    command = [sys.executable, "-c", program + NAMES, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", STARTS)
def test_a_start_imports_what_is_stated(name: str) -> None:
    assert imported(PROGRAM, name, "--help") <= STARTS[name]


def test_a_job_that_follows_an_empty_spool_imports_what_is_stated(tmp_path: Path) -> None:
    """Neither Arrow nor what smooths."""
    followed = Followed(tmp_path, of=(KRR,))
    assert imported(FOLLOWING, *followed.argv()) <= ESTIMATES | {"fastavro", "sqlite3"}


def test_first_windows_import_what_is_stated(tmp_path: Path) -> None:
    """Of a job that follows a spool, and of the programs that read its counts: Arrow and ``scipy.stats`` in none."""
    followed = Followed(tmp_path)
    followed.add_file()
    assert imported(FOLLOWING, *followed.argv()) <= ESTIMATES | {"fastavro", "sqlite3"}
    assert {row["status"] for row in followed.rows("estimates")} == {"ok"}
    counts, common = str(followed.output), ["--min_reports", "1", "--output"]
    again = [*followed.collections, counts, *common, str(tmp_path / "again")]
    assert imported(PROGRAM, "reestimate", *again) <= STARTS["reestimate"]
    whole = ["--window", "all", "--min_reports", "1", "--totals", str(tmp_path / "total.jsonl")]
    assert imported(PROGRAM, "reestimate", counts, *whole) <= STARTS["reestimate"]
    windows = ["--windows", *common, str(tmp_path / "compare.jsonl")]
    assert imported(PROGRAM, "compare", counts, *windows) <= STARTS["compare"]
    written = [*tmp_path.glob("*.jsonl"), *(tmp_path / "again").glob("estimates*.jsonl")]
    assert len(written) >= 3
    assert all(path.stat().st_size for path in written)


def test_a_directory_is_checked_without_scipy(tmp_path: Path) -> None:
    """Not only the help: of runs with their ledgers and collections too."""
    followed = Followed(tmp_path, of=(KRR,))
    followed.add_file()
    assert "numpy" in imported(FOLLOWING, *followed.argv())
    assert imported(PROGRAM, "check", str(followed.output)) <= STARTS["check"]
