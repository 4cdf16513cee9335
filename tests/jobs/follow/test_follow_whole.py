"""``uldp estimate --follow`` has what a stream has: Parquet files, each report id once, smoothed shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.jobs.follow.spools import Followed


def _parquet(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The rows of a kind in Parquet files."""
    return [row for path in sorted(folder.glob(f"{kind}*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_parquet_files_have_the_rows_of_the_other_files(tmp_path: Path) -> None:
    """One file of each kind in a transaction, and one row per value; also in those of the job over files."""
    followed = Followed(tmp_path, "--write_parquet", "--min_reports", "10")
    for _ in range(2):
        followed.add_file()
        followed.steps(2)
    for kind, numbers in (("estimates", "num_reports"), ("health", "num_reports"), ("ledger", "received")):
        names = ["collection_id", "fingerprint", numbers]
        rows = [[row[name] for name in names] for row in _parquet(followed.output, kind)]
        assert rows == [[row[name] for name in names] for row in followed.rows(kind)] != [], kind
    shares = [row["estimates"] for row in followed.rows("estimates")]
    assert [row["estimates"] for row in _parquet(followed.output, "estimates")] == shares
    entries = [entry["value"] for row in followed.rows("estimates") for entry in row["estimates"]]
    assert sorted(row["value"] for row in _parquet(followed.output, "values")) == sorted(entries)
    assert len(_parquet(followed.output, "rejected")) == 2
    assert not list(followed.output.glob("counts*.parquet"))
    followed.run_batch()
    kinds = {path.stem for path in followed.batch.glob("*.parquet")}
    assert kinds == {path.stem.partition("-")[0] for path in followed.output.glob("*.parquet")}
