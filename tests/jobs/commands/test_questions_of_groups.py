"""Groups of a question that borrow, with a share of liars: rows are those of the library, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from tests.support.messages_cases import KRR, UP, write_files
from tests.support.spools import Spool
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions import questions_of
from uldp_transforms.ldp.versions.borrowed_versions import borrow_versions

ARMS = [{"name": "arm", "values": ["a", "b"]}]
VERSIONS = tuple(
    dataclasses.replace(Collection.from_json(each.to_json() | {"dimensions": ARMS}), question="asked")
    for each in (KRR, UP)
)
(QUESTION,) = questions_of(VERSIONS)


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    """A spool with reports of both versions in two windows."""
    found = Spool(tmp_path, "--by", "arm", of=VERSIONS)
    found.add_file(reports=900, minutes=2)
    monkeypatch.chdir(tmp_path)
    return found


def pooled(path: Path) -> dict[Any, dict[str, Any]]:
    """The last pooled row of each window and group."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    chosen = sorted((row for row in rows if row["pooled"]), key=lambda row: row["pane_index"])
    return {(row["window_start"], row["group"]): row for row in chosen}


def of_files(spool: Spool, *options: str) -> dict[Any, dict[str, Any]]:
    spool.window += options
    spool.run_batch()
    spool.window = spool.window[: len(spool.window) - len(options)]
    rows = pooled(spool.batch / "estimates.jsonl")
    spool.batch.rename(spool.batch.parent / "files")
    return rows


def test_rows_are_those_of_the_library(spool: Spool) -> None:
    """The shares that groups show, and their bounds, from the stored counts."""
    rows = of_files(spool, "--borrow", "--liars", "0.02")
    stored: dict[Any, dict[bytes, Any]] = {}
    with Path("files", "counts.avro").open("rb") as file:
        for row in fastavro.reader(file):
            start = f"{row['window_start']:%Y-%m-%dT%H:%M:%SZ}"
            counts = CohortCounts(np.array(row["num_reports"]), np.reshape(row["cells"], (len(row["num_reports"]), -1)))
            stored.setdefault((start, row["group"]), {})[bytes.fromhex(row["fingerprint"])] = counts
    decoder: Any = ESTIMATORS["eb"]()
    for start in sorted({start for start, _ in rows}):
        groups = sorted(group for at, group in rows if at == start and group)
        shown = borrow_versions(QUESTION.pooled, stored[start, ""], [stored[start, group] for group in groups], decoder)
        for group, each in zip(groups, shown, strict=True):
            window = QUESTION.estimate(stored[start, group], decoder)
            expected = window.estimate.with_borrowed(each.frequencies, each.weight).with_lies(window.lies(0.02))
            row = rows[start, group]
            assert row["borrowed"] == each.weight
            assert [one["frequency"] for one in row["estimates"]] == each.frequencies.tolist()
            assert [one["ci_low"] for one in row["estimates"]] == expected.ci_low.tolist()
            assert [one["ci_high"] for one in row["estimates"]] == expected.ci_high.tolist()


def test_a_version_that_cannot_borrow_is_refused_though_it_has_no_groups(tmp_path: Path, capsys: Any) -> None:
    """Its reports are among all, towards which groups would be drawn; liars are refused for its own sake."""
    values = {"id": "permuted", "values": ["0", "1", "2"], "num_buckets": 2}
    other = Collection.from_json(
        KRR.to_json() | {"id": "other", "question": "asked", "alphabet": values, "num_cohorts": 4}
    )
    write_files(tmp_path, {"one.json": VERSIONS[0], "other.json": other, "x.avro": b""})
    argv = f"estimate --collection {tmp_path}/one.json --collection {tmp_path}/other.json "
    need = "needs a list of all values, each with a symbol of its own, got collection 'other'"
    for options, sentence in (("--by arm --borrow", f"--borrow {need} and 'eb'"), ("--liars 0.1", f"--liars {need}")):
        assert (
            uldp.main(shlex.split(f"{argv} --input {tmp_path}/x.avro --output {tmp_path}/out --window 1h {options}"))
            == 2
        )
        assert sentence in capsys.readouterr().err
