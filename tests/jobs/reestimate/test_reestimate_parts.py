"""Parts of ``uldp reestimate``: options, questions, borrowing and smoothing, each with what it hands on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from uldp_transforms.files import stores
from uldp_transforms.jobs.reestimate import reestimate_command as module
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.errors import SpecError

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
    rows = [{"run": None, "pane_index": 9}, {"run": "b", "pane_index": 1}, {"run": "a", "pane_index": 7}]
    assert module._last(rows) is rows[1] and module._last([*rows, {"run": "b", "pane_index": 2}])["pane_index"] == 2
    assert module._last(rows[:1]) is rows[0]


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
    assert module.sum_of_counts(rows).total == 321


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
    given = {"collection": "c.json", "counts": "job", "output": "out"}
    with pytest.raises(SpecError, match=rf"the following arguments are required: --{missing}$"):
        configured(" ".join(f"--{name} {value}" for name, value in given.items() if name != missing))


@pytest.mark.usefixtures("folder")
def test_counts_are_files_of_a_directory_or_of_a_pattern() -> None:
    task = configured("--collection c.json --counts job --counts job/other.avro --output out/deep")
    assert task.files == [["job/counts-1.avro", "job/counts.avro"], ["job/other.avro"]]
    assert task.records == [[], []] and Path("out/deep").is_dir()
    assert (task.smooth, task.write_parquet, task.alarm_every) == (False, False, module.ALARM_EVERY)
    more = configured("--collection c.json --counts job --output out --smooth --alarm_every 7 --write_parquet")
    assert (more.smooth, more.write_parquet, more.alarm_every) == (True, True, 7)
    assert configured("--collection c.json --counts 'job/o*' --output out").output == "out"


def test_counts_of_a_store_are_those_of_a_folder_with_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "joined", lambda folder, name: f"{folder}{name}")
    monkeypatch.setattr(stores, "matching", lambda pattern: [pattern])
    assert module.files_of_counts("s://b/job/") == ["s://b/job/counts*.avro"]
    assert module.files_of_counts("s://b/job/x") == ["s://b/job/x"]
    monkeypatch.setattr(stores, "matching", lambda pattern: [])
    with pytest.raises(SpecError, match=r"^--more must match at least one file, got 's://b/x'$"):
        module.files_of_counts("s://b/x", "--more")


REFUSED = {
    "--collection c.json --counts job --counts job/counts.avro --output out": "--counts must name each file once, "
    "because its reports would count twice, got '{0}/job/counts.avro' 2 times",
    "--collection c.json --counts job --output c.json": "--output must be a directory, got the file 'c.json'",
    "--collection c.json --counts none --output out": "--counts must match at least one file, got 'none'",
    "--collection c.json --counts job --output out --alarm_every 7": "--alarm_every needs --smooth",
}


@pytest.mark.parametrize("options", REFUSED)
def test_wrong_options_are_refused(options: str, folder: Path) -> None:
    with pytest.raises(SpecError) as caught:
        configured(options)
    assert str(caught.value).startswith(REFUSED[options].format(folder.resolve()))


# ----------------------------------------------------------------------------------------------------------- questions


def test_versions_of_a_question_are_pooled_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without groups and other versions; a window is partial as soon as one version of it is."""
    calls: list[Any] = []

    def estimated(
        question: Any, sums: Any, place: Any, estimator: Any, candidates: Any, withheld: Any, *rest: Any, **more: Any
    ) -> Any:
        numbers = {key.hex(): one.total for key, one in sums.items()}
        calls.append((numbers, place["window_start"], place["run"], withheld, more["entries"]))
        return SimpleNamespace(_replace=lambda **fields: fields), None

    monkeypatch.setattr(module, "estimate_question", estimated)

    def row(name: str, number: int, start: int, run: str, simulated: bool | None = False) -> dict[str, Any]:
        place = {"window_start": start, "window_end": start + 1, "pane_index": 0, "pane_timing": "ON_TIME", "run": run}
        return place | {"fingerprint": name, "counts": counts(number), "simulated": simulated}

    windows = {
        ("q", 1, "", 5, 6): [row("aa", 1, 5, "a"), row("aa", 2, 5, "b")],
        ("q", 2, "", 5, 6): [row("bb", 30, 5, "c")],
        ("q", 1, "", 5, 20): [row("aa", 100, 5, "a")],
        ("q", 2, "", 5, 20): [row("bb", 200, 5, "a")],
        ("q", 1, "", 8, 20): [row("aa", 400, 8, "a")],
        ("q", 2, "", 0, 1): [row("bb", 40, 0, "a", True)],
        ("q", 1, "", 9, 10): [row("aa", 5, 9, "a", None)],
        ("q", 2, "", 9, 10): [row("bb", 60, 9, "a")],
        ("q", 1, "g=x", 5, 6): [row("aa", 900, 5, "a")],
        ("q", 3, "", 5, 6): [row("cc", 900, 5, "a")],
    }
    whole = set(windows) - {("q", 1, "", 9, 10)}
    stored = StoredCounts(windows=windows, whole=whole, strangers=0)
    pooled = [SimpleNamespace(id="q", version=version) for version in (1, 2)]
    spec = SimpleNamespace(questions=[SimpleNamespace(pooled=pooled)], estimator="eb", candidates=None, min_reports=35)
    spec.show = spec.limits = spec.quantiles = None
    task: Any = SimpleNamespace(spec=spec, smooth=False)
    assert [row["simulated"] for row in module._pooled(task, stored)] == [True, False, False, False, None]  # type: ignore[call-overload]  # rows are plain mappings here
    time = "1970-01-01T00:00:00{}Z".format
    assert calls == [
        ({"bb": 40}, time(""), "a", None, None),
        ({"aa": 3, "bb": 30}, time(".005"), "c", "suppressed", None),
        ({"aa": 100, "bb": 200}, time(".005"), "a", None, None),
        ({"aa": 400}, time(".008"), "a", None, None),
        ({"aa": 5, "bb": 60}, time(".009"), "a", "partial", None),
    ]
    list(module._pooled(SimpleNamespace(spec=spec, smooth=True), stored))  # type: ignore[arg-type]  # what is read of it is enough
    assert calls[5][4] is not None
    only = {("q", 1, "", 8, 20): windows["q", 1, "", 8, 20]}
    list(module._pooled(task, StoredCounts(windows=only, whole=set(only), strangers=0)))
    assert calls[-1] == calls[3]


# ----------------------------------------------------------------------------------------------------------- borrowing


def test_groups_borrow_from_the_total_of_their_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both are there."""
    calls: list[Any] = []

    def borrowed(collection: Any, total: Any, own: Any, estimator: Any, min_reports: int) -> Any:
        calls.append((collection.version, total.total, {key: one.total for key, one in own.items()}, min_reports))
        return dict.fromkeys(own, total.total)

    monkeypatch.setattr(module, "borrowed_shares", borrowed)
    collections = [SimpleNamespace(id="c", version=version) for version in (1, 2)]
    spec: Any = SimpleNamespace(borrow=True, collections=collections, estimator="eb", min_reports=7)
    sums = {
        ("c", 1, "", 0, 1): counts(30),
        ("c", 1, "g=x", 0, 1): counts(10),
        ("c", 1, "g=y", 0, 1): counts(20),
        ("c", 1, "g=x", 1, 2): counts(4),
        ("c", 2, "", 0, 2): counts(5),
        ("c", 2, "", 1, 2): counts(6),
        ("c", 2, "g=x", 1, 2): counts(3),
    }
    shown = module.borrowed_of(spec, sums)
    first = {("c", 1, "g=x", 0, 1): 10, ("c", 1, "g=y", 0, 1): 20}
    assert calls == [(1, 30, first, 7), (2, 6, {("c", 2, "g=x", 1, 2): 3}, 7)]
    assert shown == dict.fromkeys(first, 30) | {("c", 2, "g=x", 1, 2): 6}  # type: ignore[comparison-overlap]  # groups have keys too
    spec.borrow = False
    assert module.borrowed_of(spec, sums) == {} and len(calls) == 2


# ----------------------------------------------------------------------------------------------------------- smoothing


class Row(SimpleNamespace):
    fingerprint: str
    group: str | None
    collection_id = "c"


def series(fingerprint: str, group: str | None, *spans: tuple[str, str]) -> list[Row]:
    return [Row(fingerprint=fingerprint, group=group, window_start=start, window_end=end) for start, end in spans]


def test_groups_of_a_collection_share_their_false_alarms(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many as its total raises alone; an alarm names its group and window."""
    calls: list[Any] = []

    def smoothed(rows: Any, jump: Any, every: int, memos: Any) -> Any:
        calls.append((rows[0].fingerprint, rows[0].group, len(rows), every, jump, memos))
        for at, row in enumerate(rows):
            yield row, None if at == 0 else SimpleNamespace(fired=at == 2, sentence="It moved.")

    monkeypatch.setattr(module, "smooth_rows", smoothed)
    monkeypatch.setattr(module, "traits_of", lambda models: (models, "memos"))
    spans = [("1", "2"), ("2", "3"), ("5", "6")]
    rows: Any = [*series("aa", None, *spans), *series("aa", "g=x", *spans[:2]), *series("aa", "g=y", *spans)]
    rows += series("bb", None, *spans[:1])
    task: Any = SimpleNamespace(alarm_every=10, spec=SimpleNamespace(models_of=lambda key: key.hex()))
    assert module._smoothed(task, rows) == rows
    assert calls == [
        ("aa", None, 3, 10, "aa", "memos"),
        ("aa", "g=x", 2, 20, "aa", "memos"),
        ("aa", "g=y", 3, 20, "aa", "memos"),
        ("bb", None, 1, 10, "bb", "memos"),
    ]
    assert capsys.readouterr().err == (
        "reestimate: collection 'c', window 5 to 6: It moved.\n"
        "reestimate: collection 'c', g=y, window 5 to 6: It moved.\n"
    )


def refused(rows: Any) -> str:
    with pytest.raises(SpecError) as caught:
        module._check_windows(rows)
    return str(caught.value)


def test_windows_that_overlap_are_not_smoothed() -> None:
    module._check_windows(series("aa", None, ("1", "2"), ("2", "3")))  # type: ignore[arg-type]  # what is read of series is enough
    assert refused(series("aa", None, ("1", "3"), ("2", "4"))) == (
        "--smooth needs windows that do not overlap, got overlapping windows of 'c'"
    )
    whole: Callable[[], Any] = lambda: [Row(fingerprint="aa", group=None, window_start=None, window_end=None)]  # noqa: E731
    assert refused(whole()) == "--smooth needs counts in windows, got one for everything of 'c'"
