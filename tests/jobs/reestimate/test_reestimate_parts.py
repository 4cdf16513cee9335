"""Parts of ``uldp reestimate``: options, questions, borrowing and smoothing, each with what it hands on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from uldp_transforms import JobSpec
from uldp_transforms.files import stores
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.reestimate import reestimate_command as module
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.samples import rows_of_samples
from uldp_transforms.spec.row_forecast import RowForecast

COLLECTION = {"id": "c", "version": 1, "alphabet": {"id": "closed", "values": ["a", "b"]}}
COLLECTION |= {"mechanism": {"id": "krr", "epsilon": 1.0}}


def counts(number: int) -> CohortCounts:
    return CohortCounts(np.array([number]), np.array([[number, 0]]))


@pytest.mark.parametrize(
    ("said", "simulated"),
    [
        ([], False),
        ([False, False], False),
        ([True, True], True),
        ([True, None], True),
        ([None, True], True),
        ([False, True], True),
        ([False, None], None),
        ([None], None),
    ],
)
def test_counts_are_simulated_if_some_are_and_real_if_all_are(said: list[bool | None], simulated: bool | None) -> None:
    assert module.simulated_of(said) is simulated


def test_the_last_row_is_that_of_the_last_pane_of_the_last_run() -> None:
    """Whose place and name a window has that several runs counted."""
    runs = [row_of(ONE, 1, 5, run, pane_index=pane) for run, pane in ((None, 9), ("b", 1), ("a", 7), ("b", 2))]
    for rows, last in ((runs[:3], ("b", 1)), (runs, ("b", 2)), (runs[:1], (None, 9))):
        stored = StoredCounts(windows={("q", 1, "", 5, 6): rows}, whole=set(), strangers=0)
        sample = next(module.samples_of(JobSpec.of(collections=[ONE]), stored))
        assert (sample.place["run"], sample.place["pane_index"]) == last


def test_a_place_has_times_as_texts() -> None:
    row = {"window_start": 0, "window_end": None, "pane_index": 1, "pane_timing": "LATE", "run": "a", "more": 1}
    assert module._place_of(row) == {
        "window_start": "1970-01-01T00:00:00Z",
        "window_end": None,
        "pane_index": 1,
        "pane_timing": "LATE",
        "run": "a",
    }


def test_counts_of_one_version_are_added() -> None:
    rows = [{"fingerprint": name, "counts": counts(number)} for name, number in (("aa", 1), ("bb", 20), ("aa", 300))]
    assert {key.hex(): found.total for key, found in module.counts_of(rows).items()} == {"aa": 301, "bb": 20}


# ------------------------------------------------------------------------------------------------------------- options


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "c.json").write_text(json.dumps(COLLECTION), encoding="utf-8")
    (tmp_path / "job").mkdir()
    for name in ("counts.avro", "counts-1.avro", "other.avro"):
        (tmp_path / "job" / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(options: str) -> module.Reestimation:
    return module.configure(shlex.split(options))


@pytest.mark.parametrize("missing", ["collection", "counts", "output"])
@pytest.mark.usefixtures("folder")
def test_what_is_estimated_and_where_must_be_said(missing: str) -> None:
    given = {"collection": "--collection c.json", "counts": "job", "output": "--output out"}
    sentence = {
        "collection": "--collection must be given, because no run in job names a collection, got none",
        "counts": "the following arguments are required: DIR",
        "output": "--output must be given, except with --window all of one DIR, got none",
    }[missing]
    with pytest.raises(SpecError, match=rf"^{sentence}$"):
        configured(" ".join(words for name, words in given.items() if name != missing))


@pytest.mark.usefixtures("folder")
def test_counts_are_files_of_a_directory_or_of_a_pattern() -> None:
    task = configured("--collection c.json job job/other.avro --output out/deep")
    assert task.files == [["job/counts-1.avro", "job/counts.avro"], ["job/other.avro"]]
    assert task.records == [[], []] and Path("out/deep").is_dir()
    assert (task.smooth, task.write_parquet, task.alarm_every) == (False, None, module.ALARM_EVERY)
    more = configured("--collection c.json job --output out --smooth --alarm_every 7 --write_parquet")
    assert (more.smooth, more.write_parquet, more.alarm_every) == (True, True, 7)
    assert configured("--collection c.json 'job/o*' --output out").output == "out"


def test_counts_of_a_store_are_those_of_a_folder_with_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "joined", lambda folder, name: f"{folder}{name}")
    monkeypatch.setattr(stores, "matching", lambda pattern: [pattern])
    assert module.files_of_counts("s://b/job/") == ["s://b/job/counts*.avro"]
    assert module.files_of_counts("s://b/job/x") == ["s://b/job/x"]
    monkeypatch.setattr(stores, "matching", lambda pattern: [])
    with pytest.raises(SpecError, match=r"^--more must match at least one file, got 's://b/x'$"):
        module.files_of_counts("s://b/x", "--more")


REFUSED = {
    "--collection c.json job --output out --alarm_every 7": "--alarm_every needs --smooth",
    "--collection c.json job --window all --smooth": "--smooth needs windows, got --window all",
    "--collection c.json job --window all --write_json=false": "--write_json needs windows, got --window all",
    "--collection c.json job --window all --slide 1d": "--slide needs windows, got --window all",
    "--collection c.json job --output out --totals t": "--totals needs --window all, got stored windows",
    "--collection c.json job --window 1d --output out --totals t": "--totals needs --window all, got 1d",
    "--collection c.json job job/counts.avro --window all": "--output must be given, except with --window all of one "
    "DIR, got none",
}


@pytest.mark.parametrize("options", REFUSED)
def test_wrong_options_are_refused(options: str, folder: Path) -> None:
    with pytest.raises(SpecError) as caught:
        configured(options)
    assert str(caught.value).startswith(REFUSED[options].format(folder.resolve()))


# ----------------------------------------------------------------------------------------------------------- questions


FORM = {
    "id": "q",
    "question": "q",
    "alphabet": {"id": "closed", "values": ["0", "1", "2"]},
    "mechanism": {"id": "krr", "epsilon": 1},
    "dimensions": [{"name": "g", "values": ["x", "y"]}],
}
ONE, TWO, OTHER = (
    Collection.from_json(FORM | {"version": version} | more)
    for version, more in ((1, {}), (2, {}), (3, {"id": "other", "question": None}))
)


def row_of(of: Collection, number: int, start: int, run: str, **more: Any) -> dict[str, Any]:
    """A stored row with so many reports."""
    place = {"window_start": start, "window_end": start + 1, "pane_index": 0, "pane_timing": "ON_TIME", "run": run}
    counts_of_row = CohortCounts(np.array([number]), np.array([[number, 0, 0]]))
    row = place | {"fingerprint": of.fingerprint.hex(), "counts": counts_of_row, "simulated": False, "dimensions": []}
    return row | more


def test_versions_of_a_question_are_pooled_window_by_window() -> None:
    """And group by group, without other collections; a window is partial as soon as one version of it is."""
    x = {"dimensions": [("g", "x")]}
    windows = {
        ("q", 1, "", 5, 6): [row_of(ONE, 1, 5, "a"), row_of(ONE, 2, 5, "b")],
        ("q", 2, "", 5, 6): [row_of(TWO, 30, 5, "c")],
        ("q", 1, "", 5, 20): [row_of(ONE, 100, 5, "a")],
        ("q", 2, "", 5, 20): [row_of(TWO, 200, 5, "a")],
        ("q", 1, "", 8, 20): [row_of(ONE, 400, 8, "a")],
        ("q", 2, "", 0, 1): [row_of(TWO, 40, 0, "a", simulated=True)],
        ("q", 1, "", 9, 10): [row_of(ONE, 5, 9, "a", simulated=None)],
        ("q", 2, "", 9, 10): [row_of(TWO, 60, 9, "a")],
        ("q", 1, "g=x", 5, 6): [row_of(ONE, 2, 5, "a", **x)],
        ("q", 2, "g=x", 5, 6): [row_of(TWO, 20, 5, "a", **x)],
        ("other", 3, "", 5, 6): [row_of(OTHER, 900, 5, "a")],
    }
    whole = set(windows) - {("q", 1, "", 9, 10)}
    spec = JobSpec.of(collections=[ONE, TWO, OTHER], by="g")
    samples = list(module.samples_of(spec, StoredCounts(windows=windows, whole=whole, strangers=0)))
    lone, pooled = samples[: len(windows)], samples[len(windows) :]
    assert [sample.total for sample in lone] == [
        sum(row["counts"].total for row in windows[key]) for key in sorted(windows)
    ]
    assert {sample.owner.question for sample in lone} == {None}
    time = "1970-01-01T00:00:00{}Z".format
    assert [
        (
            {one.version: sample.counts[one.fingerprint].total for one in sample.present},
            *(sample.place["window_start"], sample.place["run"], sample.partial, sample.simulated),
            list(sample.owner.group),
        )
        for sample in pooled
    ] == [
        ({2: 40}, time(""), "a", False, True, []),
        ({1: 3, 2: 30}, time(".005"), "c", False, False, []),
        ({1: 100, 2: 200}, time(".005"), "a", False, False, []),
        ({1: 400}, time(".008"), "a", False, False, []),
        ({1: 5, 2: 60}, time(".009"), "a", True, None, []),
        ({1: 2, 2: 20}, time(".005"), "a", False, False, [("g", "x")]),
    ]
    assert [sample.reason_to_withhold(34) for sample in pooled][:2] == [None, "suppressed"]


# ----------------------------------------------------------------------------------------------------------- borrowing


def test_groups_borrow_from_the_total_of_their_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both are there and whole."""
    calls: list[Any] = []

    def borrowed(collection: Any, total: Any, own: Any, estimator: Any, min_reports: int) -> Any:
        calls.append((collection.version, total.total, [one.total for one in own.values()], min_reports))
        return dict.fromkeys(own, total.total)

    def of_versions(versions: Any, total: Any, own: Any, estimator: Any, min_reports: int) -> Any:
        assert [one.version for one in versions] == [1, 2]
        numbers = [[own[sample][mark].total for mark in own[sample]] for sample in own]
        calls.append((0, [each.total for each in total.values()], numbers, min_reports))
        return {}

    monkeypatch.setattr(rows_of_samples, "borrowed_shares", borrowed)
    monkeypatch.setattr(rows_of_samples, "borrowed_of_versions", of_versions)
    x, y = {"dimensions": [("g", "x")]}, {"dimensions": [("g", "y")]}
    windows = {
        ("q", 1, "", 0, 1): [row_of(ONE, 30, 0, "a")],
        ("q", 1, "g=x", 0, 1): [row_of(ONE, 10, 0, "a", **x)],
        ("q", 1, "g=y", 0, 1): [row_of(ONE, 20, 0, "a", **y)],
        ("q", 1, "g=x", 1, 2): [row_of(ONE, 4, 1, "a", **x)],
        ("q", 2, "", 1, 2): [row_of(TWO, 6, 1, "a")],
        ("q", 2, "g=x", 1, 2): [row_of(TWO, 3, 1, "a", **x)],
        ("q", 2, "", 3, 4): [row_of(TWO, 6, 3, "a")],
        ("q", 2, "g=x", 3, 4): [row_of(TWO, 3, 3, "a", **x)],
    }
    spec = JobSpec.of(collections=[ONE, TWO], by="g", borrow=True, min_reports=7)
    whole = set(windows) - {("q", 2, "", 3, 4)}
    samples = list(module.samples_of(spec, StoredCounts(windows=windows, whole=whole, strangers=0)))
    shown = rows_of_samples.borrowed_of(samples, spec.asked())
    assert calls[:2] == [(1, 30, [10, 20], 7), (2, 6, [3], 7)]
    assert calls[2:] == [(0, [30], [[10], [20]], 7), (0, [6], [[4, 3]], 7)]
    assert [(sample.total, total) for sample, total in shown.items()] == [(10, 30), (20, 30), (3, 6)]


@pytest.mark.usefixtures("folder")
def test_json_lines_are_left_out_where_each_of_several_windows_has_many_entries() -> None:
    """By the forecast of a job over files; a lone window may have any number. Files in other forms are refused."""
    task = configured("--collection c.json job --output out")

    def sample(start: str) -> Any:
        return SimpleNamespace(place={"window_start": start, "window_end": "z"})

    several = [sample("a"), sample("b")]
    few = RowForms(counts=True)
    assert [module._forms(task, some) for some in ([], several[:1], several[:1] * 2, several)] == [few] * 4
    with mock.patch.object(module.RowForecast, "of", return_value=RowForecast(rows=1, entries=10_000)):
        assert module._forms(task, several[:1] * 2) == few
        assert module._forms(task, several) == RowForms(json=False, parquet=True, counts=True)
    (Path(task.output) / "estimates.parquet").touch()
    with pytest.raises(SpecError, match=r"^--output has estimates\.parquet of an earlier job, .*: give --write_parq"):
        module._forms(task, several)
    assert RowForms.of(None, None, entries=10_000) == RowForms(json=False, parquet=True)
    assert RowForms.of(None, None, entries=9_999) == RowForms()
