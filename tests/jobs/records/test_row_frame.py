"""Rows of a directory as a frame: of each window the row that counts, with the columns of the schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars
import pytest

from packages.report.tests.support.everything import everything
from tests.support import report_rows as rows
from uldp_transforms import read_rows
from uldp_transforms.jobs import uldp
from uldp_transforms.schemas import load

KINDS = ("estimates", "groups", "windows", "health", "discovered", "totals", "comparisons", "ledger", "rejected")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two windows with numbers, the second with an earlier pane, and one that is suppressed."""
    of = rows.collection(["a", "b"])
    rows.record(tmp_path, of)
    entries = [rows.entry("a", 0.75), rows.entry("b", 0.25)]
    early = rows.estimate(of, 1, [rows.entry("a", 0.5), rows.entry("b", 0.5)], num_reports=100)
    last = rows.estimate(of, 1, entries, num_reports=900) | {"pane_index": 1}
    hidden = rows.estimate(of, 2, status="suppressed", num_reports=None)
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, 0, entries), last, early, hidden])
    return tmp_path


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with rows of every kind."""
    folder = everything(tmp_path_factory.mktemp("everything")).parent
    text = (folder / "ledger.jsonl").read_text(encoding="utf-8")
    refused = json.loads(text) | {"source": "message", "reason": "malformed", "num_reports": 10}
    rows.write(folder, "rejected.jsonl", [{**refused, "base_period_start": None, "num_messages": 0, "num_files": 0}])
    return folder


def test_one_row_for_each_value_of_the_row_that_counts(directory: Path) -> None:
    frame = read_rows(str(directory))
    assert list(frame.columns) == [field["name"] for field in load("estimated_value.avsc")["fields"]]
    assert frame[["value", "frequency", "num_reports"]].to_numpy().tolist() == [
        ["a", 0.75, 1000],
        ["b", 0.25, 1000],
        ["a", 0.75, 900],
        ["b", 0.25, 900],
    ]
    assert (frame["window_end"] - frame["window_start"]).nunique() == 1 and str(frame["window_start"].dt.tz) == "UTC"


def test_windows_without_numbers_are_windows(directory: Path) -> None:
    frame = read_rows(str(directory), "windows")
    assert list(frame["status"]) == ["ok", "ok", "suppressed"]
    assert list(frame["pane_index"]) == [0, 1, 0]
    assert "estimates" not in frame.columns


@pytest.mark.parametrize("kind", KINDS)
def test_arrow_has_the_same_rows(kind: str, directory: Path, full: Path) -> None:
    """Of directories with and without rows of this kind."""
    for folder in (directory, full):
        table, frame = read_rows(str(folder), kind, "arrow"), read_rows(str(folder), kind)
        assert table.column_names == list(frame.columns) and table.num_rows == len(frame)
    assert table.num_rows > 0


@pytest.mark.parametrize("kind", KINDS)
def test_polars_has_the_same_rows(kind: str, directory: Path, full: Path) -> None:
    for folder in (directory, full):
        frame = read_rows(str(folder), kind, "polars")
        assert isinstance(frame, polars.DataFrame)
        assert frame.to_dicts() == read_rows(str(folder), kind, "arrow").to_pylist(maps_as_pydicts="strict")
    assert frame.height > 0


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as refused:
        read_rows(str(directory), form=package)
    assert str(refused.value) == (f'read_rows(form="{package}") needs {package}; install it, or ask for form="arrow"')


def test_rows_of_other_programs_are_read_too(tmp_path: Path) -> None:
    """What reestimate, compare and the job itself wrote, of one real run with groups and a rejected report."""
    arms = [{"name": "arm", "values": ["control", "new"]}]
    of = {"id": "survey", "version": 1, "dimensions": arms, "mechanism": {"id": "krr", "epsilon": 3.0}}
    (tmp_path / "C.json").write_text(json.dumps(of | {"alphabet": {"id": "closed", "values": ["a", "b"]}}))
    people = [f"{'ab'[at % 2]},{('control', 'new')[at % 4 // 2]},{1_500_000_000 + at}" for at in range(4000)]
    (tmp_path / "V.csv").write_text("\n".join(["value,arm,event_time", *people]) + "\n")
    out, reports = str(tmp_path / "out"), str(tmp_path / "R.avro")
    for command in (
        f"simulate {tmp_path}/C.json --values {tmp_path}/V.csv --seed 3 --output {reports}",
        f"estimate --collection {tmp_path}/C.json --input {reports} --output {out} --window 1h --by arm --write_counts",
        f"total {out} --by arm",
        f"compare {out} --by arm --against arm=control",
    ):
        assert uldp.main(command.split()) == 0, command
    totals, compared = read_rows(out, "totals"), read_rows(out, "comparisons")
    everybody, groups = read_rows(out), read_rows(out, "groups")
    assert everybody["group"].fillna("").unique().tolist() == [""]
    people_of = groups[groups["value"] == "a"].groupby("group")["num_reports"].sum()
    assert people_of.to_dict() == {"arm=control": 2000, "arm=new": 2000}
    assert sorted(totals["group"].fillna("").unique()) == ["", "arm=control", "arm=new"]
    assert totals.groupby(totals["group"].fillna(""))["num_reports"].first().tolist() == [4000, 2000, 2000]
    assert compared[["value", "group_a", "group_b"]].to_numpy().tolist() == [
        ["a", "arm=new", "arm=control"],
        ["b", "arm=new", "arm=control"],
    ]
    assert (compared["low"] < compared["difference"]).all()
    assert read_rows(out, "rejected").empty
    (tmp_path / "C2.json").write_text((tmp_path / "C.json").read_text().replace("survey", "other"))
    again = f"estimate --collection {tmp_path}/C2.json --input {reports} --output {out} --window 1h --write_counts"
    assert uldp.main(again.split()) == 4  # all are of an unknown collection
    rejected = read_rows(out, "rejected")
    assert rejected["reason"].unique().tolist() == ["unknown_collection"]
    assert rejected["num_reports"].sum() == 4000 and len(read_rows(out, "totals")) == 6  # of the run before
