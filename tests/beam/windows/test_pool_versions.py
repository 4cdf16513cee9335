"""Pooled rows of questions: over files, in streams, from stored counts, and what must stay as it is beside them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.test_stream import Event
from apache_beam.transforms.window import IntervalWindow
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming

from tests.support import replay
from tests.support.messages_cases import URR, collection, container, numbered, write_files
from tests.support.refusals.jobs.questions import OLD
from tests.support.tolerance import generator
from uldp_transforms import CountReports, DecodeReports, JobSpec
from uldp_transforms.beam.runtime import panes
from uldp_transforms.beam.runtime.beam_windows import in_window
from uldp_transforms.beam.transforms.pool_versions import _COUNTS, PoolVersions, _Estimator, _Held, _HoldVersionsFn
from uldp_transforms.collector.owners import Owners
from uldp_transforms.jobs import estimate, reestimate, uldp
from uldp_transforms.jobs.reestimate import whole_periods
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions import questions_of
from uldp_transforms.messages import wire
from uldp_transforms.messages.group_keys import owner_of_group
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.rows.samples.version_health import finding_of_agreement
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
SQL = Path(__file__).parents[3] / "schemas" / "sql"
START = 1_000_000_000_000 // PERIOD * PERIOD
NEW = dataclasses.replace(collection("diet", numbered(3), "rappor"), version=2, question="diet")
OTHER = URR
VERSIONS = [OLD, NEW]
(QUESTION,) = questions_of(VERSIONS)


def reports(of: Collection, number: int, moment: int, name: object = "") -> Any:
    rng = generator("pooled", of.version, number, moment, name)
    times = moment + rng.integers(0, MINUTE, number)
    return of.perturb(rng.choice(["0", "1", "2"], number, p=[0.6, 0.3, 0.1]).tolist(), rng, times)


def expected(batches: Sequence[Any], estimator: str = "eb") -> Any:
    """What the library makes of these reports."""
    counts = {}
    for batch in batches:
        of = next(one for one in VERSIONS if one.fingerprint == batch.fingerprint)
        own = of.count(batch)
        counts[of.fingerprint] = counts[of.fingerprint] + own if of.fingerprint in counts else own
    return QUESTION.estimate(counts, ESTIMATORS[estimator]()).estimate


def of_question(rows: Sequence[WindowedEstimate]) -> list[WindowedEstimate]:
    return sorted((row for row in rows if row.pooled), key=lambda row: (row.window_start or "", row.pane_index))


def shares(row: Any) -> list[float]:
    return [entry.frequency for entry in row.estimates]


def place_of(row: WindowedEstimate) -> tuple[int, str, int | None]:
    return row.pane_index, row.pane_timing, row.num_reports


# ---------------------------------------------------------------------- files


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Three windows: of both versions, of the old one, of the new one; and reports of another collection."""
    monkeypatch.chdir(tmp_path)
    batches = [reports(OLD, 300, START), reports(NEW, 200, START), reports(OLD, 400, START + PERIOD)]
    batches.append(reports(NEW, 500, START + 2 * PERIOD))
    messages = [wire.encode_batch(batch) for batch in [*batches, reports(OTHER, 100, START)]]
    write_files(tmp_path, {"old.json": OLD, "new.json": NEW, "other.json": OTHER})
    Path("in.avro").write_bytes(container([(1, message) for message in messages], schema=replay_schema()))
    return batches


def replay_schema() -> Any:
    return json.loads((Path(__file__).parents[3] / "schemas" / "report_batch.avsc").read_text("utf-8"))


COLLECTIONS = ["--collection=old.json", "--collection=new.json", "--collection=other.json"]


def rows_of(folder: str, kind: str = "estimates") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(folder, f"{kind}.jsonl").read_text("utf-8").splitlines()]


def run(*options: str) -> list[dict[str, Any]]:
    argv = ["--input", "in.avro", "--output", "out", "--write_counts", "--window", "10m", *COLLECTIONS, *options]
    assert estimate.main(argv) == 0
    return sorted((row for row in rows_of("out") if row["pooled"]), key=lambda row: row["window_start"])


def test_files_have_one_row_per_question_and_window(files: list[Any]) -> None:
    rows = run()
    windows = [files[:2], files[2:3], files[3:]]
    assert [row["num_reports"] for row in rows] == [500, 400, 500]
    for row, batches in zip(rows, windows, strict=True):
        assert (row["collection_id"], row["collection_version"]) == ("diet", 0)
        assert row["fingerprint"] == QUESTION.fingerprint.hex()
        assert [each["frequency"] for each in row["estimates"]] == expected(batches).frequencies.tolist()
    own = [row for row in rows_of("out") if not row["pooled"]]
    assert sorted((row["collection_id"], row["num_reports"]) for row in own) == [
        ("diet", 200),
        ("diet", 300),
        ("diet", 400),
        ("diet", 500),
        ("urr", 100),
    ]
    health = [row for row in rows_of("out", "health") if row["pooled"]]
    assert [[each["name"] for each in row["findings"]] for row in sorted(health, key=lambda r: r["window_start"])] == [
        ["agreement"],
        [],
        [],
    ]
    ledger = rows_of("out", "ledger")
    assert sum(row["accepted"] for row in ledger) == 1500
    assert {row["in_transit"] for row in ledger} <= {0, None}


@pytest.mark.usefixtures("files")
def test_the_other_rows_are_those_of_collections_without_a_question() -> None:
    own = [row | {"run": None} for row in [*run(), *rows_of("out")] if not row["pooled"]]
    for name, one in (("old.json", OLD), ("new.json", NEW)):
        write_files(Path(), {name: dataclasses.replace(one, question=None)})
    assert run() == []
    plain = [row | {"run": None} for row in rows_of("out")]
    order = [json.dumps(row, sort_keys=True) for row in own], [json.dumps(row, sort_keys=True) for row in plain]
    assert sorted(order[0]) == sorted(order[1])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("options", [(), ("--smooth",), ("--slide", "5m"), ("--estimator", "projected")], ids=str)
def test_stored_counts_give_the_same_rows(options: tuple[str, ...]) -> None:
    rows = run(*options)
    again = [option for option in options if option not in {"--slide", "5m"}]
    argv = ["out", "--output", "again", *COLLECTIONS, *again]
    assert reestimate.main(argv) == 0
    assert [row for row in rows_of("again") if row["pooled"]] == rows
    if "--smooth" in options:
        assert all(each["smoothed_frequency"] is not None for row in rows for each in row["estimates"])


@pytest.mark.usefixtures("files")
def test_longer_windows_pool_what_is_in_them(files: list[Any]) -> None:
    run()
    assert reestimate.main(["out", "--output", "again", "--window", "30m", *COLLECTIONS]) == 0
    whole = [row for row in rows_of("again") if row["pooled"]]
    assert sum(row["num_reports"] for row in whole) == 1400


def test_the_whole_period_of_a_question(files: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    run()
    capsys.readouterr()
    assert uldp.main(["reestimate", "out", "--window", "all"]) == 0
    (row,) = (row for row in rows_of("out", "totals") if row["pooled"])
    assert row["num_reports"] == 1400
    assert [each["frequency"] for each in row["estimates"]] == expected(files).frequencies.tolist()
    assert "diet, all versions, " in capsys.readouterr().out
    assert whole_periods.rows_of_counts  # the page calls it


@pytest.mark.usefixtures("files")
def test_the_page_shows_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    run()
    assert uldp.main(["report", "out", "--output", "page.html"]) == 0
    page = Path("page.html").read_text("utf-8")
    assert "diet</bdi>, all versions</h2>" in page
    assert "diet version 1 (krr, epsilon 1); diet version 2 (rappor, epsilon 1)" in page


@pytest.mark.usefixtures("files")
def test_versions_with_other_values_are_named_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    newest = dataclasses.replace(collection("diet", numbered(4), "krr"), version=2, question="diet")
    write_files(Path(), {"new.json": newest})
    rows = run()
    assert (
        "estimate: question 'diet' does not pool 'diet' version 1, which has other values than the newest version; it "
        "keeps its own rows\n" in capsys.readouterr().err
    )
    assert rows == []
    assert uldp.main(["report", "out", "--output", "page.html"]) == 0


@pytest.mark.usefixtures("files")
def test_windows_of_parts_of_hours_are_named_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    """Which windows are: ``test_sums_and_warnings.py``."""
    run()
    said = capsys.readouterr().err
    assert "names no client_window, so clients round event times down to the full hour (UTC)" in said


@pytest.mark.usefixtures("files")
def test_a_version_with_dimensions_is_pooled_as_a_whole_and_by_group() -> None:
    """The question counts each report once, in the job and from stored counts; the groups are of versions that ask."""
    form = NEW.to_json() | {"dimensions": [{"name": "arm", "values": ["a", "b"]}]}
    split = Collection.from_json(form)
    batch = split.perturb(["0", "1"] * 200, generator("dimensions"), [START] * 400, {"arm": ["a", "b"] * 200})
    old = reports(OLD, 300, START)
    messages = [wire.encode_batch(batch), wire.encode_batch(old)]
    Path("in.avro").write_bytes(container([(1, message) for message in messages], schema=replay_schema()))
    write_files(Path(), {"new.json": split})
    rows = run("--by", "arm")
    assert {row["group"]: row["num_reports"] for row in rows} == {"": 700, "arm=a": 200, "arm=b": 200}
    (question,) = questions_of([OLD, split])
    counts = {OLD.fingerprint: OLD.count(old), split.fingerprint: split.count(batch)}
    [total] = [row for row in rows if not row["group"]]
    assert shares_in(total) == question.estimate(counts, ESTIMATORS["eb"]()).estimate.frequencies.tolist()
    alone = {row["group"]: row for row in rows_of("out") if row["group"] and not row["pooled"]}
    assert sorted(alone) == ["arm=a", "arm=b"]
    for row in rows:
        if row["group"]:
            assert shares_in(row) == shares_in(alone[row["group"]]), "of one version"
    assert reestimate.main(["out", "--output", "again", "--by", "arm", *COLLECTIONS]) == 0
    again = [each for each in rows_of("again") if each["pooled"]]
    assert sorted(again, key=itemgetter("group")) == sorted(rows, key=itemgetter("group"))
    assert uldp.main(["reestimate", "out", "--window", "all", "--by", "arm"]) == 0
    totals = [each for each in rows_of("out", "totals") if each["pooled"]]
    assert {row["group"]: row["num_reports"] for row in totals} == {"": 700, "arm=a": 200, "arm=b": 200}


SPLIT = [
    Collection.from_json(of.to_json() | {"dimensions": [{"name": "arm", "values": arms}]})
    for of, arms in ((OLD, ["a", "b"]), (NEW, ["b", "c"]))
]
ARMS = ["a", "b", "c"]


def split_reports(of: Collection, number: int) -> tuple[Any, list[str]]:
    """Reports of people in arms of both versions, and their groups; an arm that is not listed is ``other``."""
    rng = generator("split", of.version, number)
    arms, known = rng.choice(ARMS, number).tolist(), of.dimensions[0].values
    values = rng.choice(["0", "1", "2"], number, p=[0.6, 0.3, 0.1]).tolist()
    batch = of.perturb(values, rng, [START] * number, {"arm": arms})
    return batch, ["arm=" + (arm if arm in known else "other") for arm in arms]


def expected_by_group() -> tuple[list[bytes], dict[str, list[float]]]:
    """Messages of both versions, and what the library makes of the reports of each group, and of all."""
    messages: list[bytes] = []
    counts: dict[str, dict[bytes, Any]] = defaultdict(dict)
    for of in SPLIT:
        batch, groups = split_reports(of, 900)
        messages.append(wire.encode_batch(batch))
        for group in ("", *groups):
            chosen = np.array([group in ("", each) for each in groups])
            counts[group][of.fingerprint] = of.count(batch[chosen])
    (question,) = questions_of(SPLIT)
    return messages, {
        group: question.estimate(own, ESTIMATORS["eb"]()).estimate.frequencies.tolist() for group, own in counts.items()
    }


def by_group(rows: Iterable[Any]) -> dict[str, list[float]]:
    found = [row for row in rows if row["pooled"]]
    assert len({row["group"] for row in found}) == len(found)
    return {row["group"]: shares_in(row) for row in found}


@pytest.mark.usefixtures("files")
def test_a_question_has_rows_by_group_in_files_and_from_stored_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """Versions may list other values of a dimension; people of an arm that a version does not list are in ``other``."""
    messages, expected_rows = expected_by_group()
    assert sorted(expected_rows) == ["", "arm=a", "arm=b", "arm=c", "arm=other"]
    Path("in.avro").write_bytes(container([(1, message) for message in messages], schema=replay_schema()))
    write_files(Path(), {"old.json": SPLIT[0], "new.json": SPLIT[1]})
    assert by_group(run("--by", "arm")) == expected_rows
    assert reestimate.main(["out", "--output", "again", "--by", "arm", *COLLECTIONS]) == 0
    assert by_group(rows_of("again")) == expected_rows
    capsys.readouterr()
    assert uldp.main(["reestimate", "out", "--window", "all", "--by", "arm"]) == 0
    printed = [
        line.partition(", 9 Sep 2001")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("diet")
    ]
    assert len(set(printed)) == len(printed), "each table says which version it is about"
    assert {"diet, version 1", "diet, arm=b, version 2", "diet, arm=b, all versions"} <= set(printed)
    assert by_group(rows_of("out", "totals")) == expected_rows


def test_a_group_that_no_version_has_any_more_is_forgotten() -> None:
    """A stream holds it when it is updated; its timer must not end the job."""
    old = JobSpec(collections=tuple(SPLIT), windows=Windows(size=PERIOD), by=("arm",), bounded=False)
    new = dataclasses.replace(old, collections=(SPLIT[1],))
    window = IntervalWindow(START // 1000, (START + PERIOD) // 1000)
    (key,) = (
        found
        for group in range(3)
        if (found := Owners(old).in_question(owner_of_group(SPLIT[0].fingerprint, group)))
        and Owners(old).of(found).group == (("arm", "a"),)
    )
    counts = _COUNTS.encode(SPLIT[0].count(split_reports(SPLIT[0], 300)[0]))
    held = _Held({SPLIT[0].fingerprint: (0, counts)}).to_bytes()
    for spec, number in ((old, 1), (new, 0)):
        state = SimpleNamespace(read=lambda: held, write=lambda _: None)
        assert len(list(_HoldVersionsFn(spec).on_time(in_window(key, window), state))) == number


@pytest.mark.usefixtures("files")
def test_rows_of_groups_have_names_though_the_newest_version_has_none() -> None:
    """So that nobody takes one of them for the total; in all programs."""
    old, new = Collection.from_json(SPLIT[0].to_json()), NEW
    batch, groups = split_reports(old, 900)
    messages = [wire.encode_batch(each) for each in (batch, reports(new, 300, START))]
    Path("in.avro").write_bytes(container([(1, message) for message in messages], schema=replay_schema()))
    write_files(Path(), {"old.json": old, "new.json": new})
    names = sorted({"", *groups})
    assert sorted(by_group(run("--by", "arm"))) == names == ["", "arm=a", "arm=b", "arm=other"]
    assert reestimate.main(["out", "--output", "again", "--by", "arm", *COLLECTIONS]) == 0
    assert uldp.main(["reestimate", "out", "--window", "all", "--by", "arm"]) == 0
    assert sorted(by_group(rows_of("again"))) == sorted(by_group(rows_of("out", "totals"))) == names


def test_a_stream_has_rows_of_a_question_by_group() -> None:
    messages, expected_rows = expected_by_group()
    events = [replay.arrive(START, messages), replay.watermark(START + PERIOD)]
    job = replay.streaming_job(SPLIT, Windows(size=PERIOD), by=("arm",), min_reports=1)
    found = replay.replay(job, events)
    assert {row.group: shares(row) for row in of_question(found["estimates"])} == expected_rows
    assert [row.num_reports for row in found["health"] if row.pooled] == [1800], "the total's alone"
    assert replay.unbalanced(found["ledger"]) == []


def shares_in(row: dict[str, Any]) -> list[float]:
    return [each["frequency"] for each in row["estimates"]]


def test_pooled_rows_say_how_much_less_precise_they_can_be() -> None:
    """Few reports with little noise beside many with much noise."""
    versions = [
        dataclasses.replace(collection("diet", numbered(2), "krr", epsilon=epsilon), version=number, question="diet")
        for number, epsilon in ((1, 1.0), (2, 8.0))
    ]
    (question,) = questions_of(versions)
    for number, told in ((5000, True), (100, False)):
        counts = {one.fingerprint: one.count(one.perturb(["0"] * n)) for one, n in zip(versions, (number, 100))}
        window = question.estimate(counts, ESTIMATORS["eb"]())
        assert ("times that of the most precise version." in finding_of_agreement(window).sentence) is told
        assert bool(window.loss.max() > 1.05) is told


# ---------------------------------------------------------------------- beside other functions


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("file", ["latest.sql", "latest_flink_spark.sql"])
def test_the_views_have_the_latest_row_of_each_question(file: str) -> None:
    """Two runs of the same windows; the second with one version only, whose question has fewer reports."""
    run()
    earlier = {kind: rows_of("out", kind) for kind in ("estimates", "health")}
    COLLECTIONS.remove("--collection=old.json")
    try:
        later_rows = run()
    finally:
        COLLECTIONS.insert(0, "--collection=old.json")
    later = {kind: rows_of("out", kind) for kind in earlier}
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        for kind, rows in earlier.items():
            names = list(rows[0])
            columns = ", ".join(f'"{name}"' for name in names)
            database.execute(f"CREATE TABLE {kind} ({columns})")
            for row in [*rows, *later[kind]]:
                cells = [json.dumps(each) if isinstance(each, (list, dict)) else each for each in row.values()]
                database.execute(f"INSERT INTO {kind} VALUES ({', '.join('?' * len(names))})", cells)
        database.executescript((SQL / file).read_text("utf-8"))
        found = database.execute(
            "SELECT window_start, num_reports, run FROM latest_estimates WHERE pooled ORDER BY window_start"
        ).fetchall()
    assert len(found) == 3
    newest = {row["window_start"]: (row["num_reports"], row["run"]) for row in later_rows}
    for start, number, name in found:
        assert newest.get(start, (number, name)) == (number, name)
    assert {row["run"] for row in later_rows} <= {name for _, _, name in found}


def test_discovered_values_are_candidates_of_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each version is searched by itself; what is found has one pooled share."""
    monkeypatch.chdir(tmp_path)
    tokens = ["ba", "na", "che", "rry", "el", "der", "be", "k", "i", "w"]
    alphabet = {"id": "prefixes", "num_buckets": 24, "lengths": [1, 2, None], "tokens": tokens}
    versions = [
        Collection.from_json(
            {"id": "word", "version": number, "question": "which-word", "num_cohorts": 64, "alphabet": alphabet}
            | {"mechanism": {"id": "krr", "epsilon": epsilon}}
        )
        for number, epsilon in ((1, 4.0), (2, 6.0))
    ]
    rng = generator("discovered values")
    truth = {"banana": 0.5, "cherry": 0.3, "elder": 0.2}
    messages = []
    for one in versions:
        values = rng.choice(list(truth), 12_000, p=list(truth.values())).tolist()
        messages.append(wire.encode_batch(one.perturb(values, rng, np.full(12_000, START))))
    write_files(Path(), {"old.json": versions[0], "new.json": versions[1]})
    Path("in.avro").write_bytes(container([(1, message) for message in messages], schema=replay_schema()))
    argv = ["--collection=old.json", "--collection=new.json", "--input=in.avro", "--output=out", "--write_counts"]
    assert estimate.main([*argv, "--discover"]) == 0
    found = rows_of("out", "discovered")
    for number in (1, 2):
        assert {row["value"] for row in found if row["collection_version"] == number} == set(truth)
    assert not any(row["collection_version"] == 0 for row in found)
    Path("words.txt").write_text("\n".join(sorted({row["value"] for row in found})), encoding="utf-8")
    again = ["out", "--output=again", "--candidates=words.txt", *argv[:2]]
    assert reestimate.main(again) == 0
    (row,) = (row for row in rows_of("again") if row["pooled"])
    assert row["num_reports"] == 24_000
    for entry in row["estimates"]:
        assert abs(entry["raw_frequency"] - truth[entry["value"]]) < 6 * entry["standard_error"]


# ---------------------------------------------------------------------- streams


def streamed(events: Sequence[Event], **fields: Any) -> dict[str, list[Any]]:
    job = replay.streaming_job(VERSIONS, Windows(size=PERIOD), **{"allowed_lateness": PERIOD} | fields)
    return replay.replay(job, events)


def test_a_stream_pools_the_latest_counts_of_each_version() -> None:
    """On time from both versions, then again with each late report of either."""
    first, second, late = reports(OLD, 60, START), reports(NEW, 50, START), reports(OLD, 7, START, "late")
    events = [
        replay.arrive(START, [wire.encode_batch(first)]),
        replay.arrive(START, [wire.encode_batch(second)]),
        replay.watermark(START + PERIOD),
        replay.arrive(START + PERIOD, [wire.encode_batch(late)]),
        replay.watermark(START + 3 * PERIOD),
    ]
    found = streamed(events)
    rows = of_question(found["estimates"])
    assert list(map(place_of, rows)) == [(0, "ON_TIME", 110), (1, "LATE", 117)]
    assert shares(rows[0]) == expected([first, second]).frequencies.tolist()
    assert shares(rows[1]) == expected([first, second, late]).frequencies.tolist()
    assert {row.interval for row in rows} == {"anytime"}
    assert replay.unbalanced(found["ledger"]) == []
    assert len([row for row in found["health"] if row.pooled]) == 2


@pytest.mark.parametrize("first", VERSIONS, ids=["the old one first", "the new one first"])
@pytest.mark.parametrize("release", ["corrected", FINAL])
def test_versions_are_pooled_as_long_as_reports_may_be_late(first: Collection, release: str) -> None:
    """A version that is late by more than the slack, and by less than the allowed lateness, joins the other one."""
    (second,) = (one for one in VERSIONS if one is not first)
    on_time, late = reports(first, 60, START), reports(second, 50, START)
    lateness, slack = 6 * PERIOD, PERIOD
    moment = START + PERIOD + lateness - 2 * MINUTE
    events = [
        replay.arrive(START, [wire.encode_batch(on_time)]),
        replay.watermark(START + 3 * PERIOD),
        replay.watermark(moment),
        replay.arrive(moment, [wire.encode_batch(late)]),
        replay.watermark(START + 20 * PERIOD),
    ]
    fields = {"allowed_lateness": lateness, "lateness_slack": slack, "release": release}
    found = streamed(events, **fields)
    last = of_question(found["estimates"])[-1]
    assert (last.num_reports, last.status) == (110, "ok")
    assert shares(last) == expected([on_time, late]).frequencies.tolist()
    assert replay.unbalanced(found["ledger"]) == []


def test_panes_of_a_question_say_what_they_are_and_when() -> None:
    """Numbered by question, with the end of the window as the time of the first; more of them may always follow."""
    late = reports(OLD, 7, START, "late")
    events = [
        replay.arrive(START, [wire.encode_batch(reports(one, 60, START)) for one in VERSIONS]),
        replay.watermark(START + PERIOD),
        replay.arrive(START + PERIOD, [wire.encode_batch(late)]),
        replay.watermark(START + 3 * PERIOD),
    ]
    spec = replay.spec(VERSIONS, Windows(size=PERIOD), bounded=False, allowed_lateness=PERIOD)
    with replay.collector() as (keep, found):
        with beam.Pipeline(options=replay.stream_options()) as pipeline:
            decoded = pipeline | replay.stream(events) | DecodeReports(spec)
            rows = (decoded.reports | CountReports(spec)).counts | PoolVersions(spec)
            _ = rows | beam.Map(lambda _, moment=beam.DoFn.TimestampParam: moment.micros // 1000) | keep
        in_order = sorted(((moment, pane) for moment, _, pane in found), key=lambda one: one[1].index)
    end = START + PERIOD
    assert in_order == [
        (end, PaneInfo(True, False, PaneInfoTiming.ON_TIME, 0, 0)),
        (end - 1, PaneInfo(False, False, PaneInfoTiming.LATE, 1, 1)),
    ]


def test_early_panes_of_a_version_make_early_rows_of_its_question() -> None:
    first, second = reports(OLD, 60, START), reports(NEW, 50, START)
    events = [
        replay.arrive(START, [wire.encode_batch(first)]),
        replay.clock(2 * MINUTE),
        replay.clock(2 * MINUTE),
        replay.arrive(START, [wire.encode_batch(second)]),
        replay.watermark(START + 3 * PERIOD),
    ]
    rows = of_question(streamed(events, early_every=MINUTE)["estimates"])
    assert list(map(place_of, rows)) == [(0, "EARLY", 60), (1, "ON_TIME", 110)]


def test_final_results_pool_once() -> None:
    first, second, late = reports(OLD, 60, START), reports(NEW, 50, START), reports(OLD, 7, START, "late")
    events = [
        replay.arrive(START, [wire.encode_batch(first), wire.encode_batch(second)]),
        replay.watermark(START + PERIOD),
        replay.arrive(START + PERIOD, [wire.encode_batch(late)]),
        replay.watermark(START + 5 * PERIOD),
    ]
    (row,) = of_question(streamed(events, release=FINAL, allowed_lateness=5 * MINUTE)["estimates"])
    assert (row.num_reports, row.interval, row.pane_timing) == (117, "fixed", "ON_TIME")
    assert shares(row) == expected([first, second, late]).frequencies.tolist()


def test_a_drained_window_is_partial_for_the_question_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "now", lambda: START)
    events = [replay.arrive(START, [wire.encode_batch(reports(OLD, 60, START))]), replay.watermark(START + 9 * PERIOD)]
    (row,) = of_question(streamed(events)["estimates"])
    assert (row.status, row.num_reports, row.estimates) == ("partial", None, [])


def test_few_reports_are_suppressed_by_their_sum() -> None:
    events = [
        replay.arrive(START, [wire.encode_batch(reports(one, 60, START)) for one in VERSIONS]),
        replay.watermark(START + 9 * PERIOD),
    ]
    rows = streamed(events, min_reports=100)["estimates"]
    assert sorted((bool(row.pooled), row.status) for row in rows) == [
        (False, "suppressed"),
        (False, "suppressed"),
        (True, "ok"),
    ]


def test_what_a_stream_holds_survives_its_encoding() -> None:
    held = _Held({OLD.fingerprint: (3, b"counts"), NEW.fingerprint: (0, b"")}, panes=2, on_time=True)
    assert _Held.from_bytes(held.to_bytes()) == held
    assert _Held.from_bytes(None) == _Held({})
    assert not held.put(2, OLD.fingerprint + b"earlier")
    assert held.put(3, OLD.fingerprint + b"again")
    assert held.versions[OLD.fingerprint] == (3, b"again")


@pytest.mark.parametrize("held", [[OLD], [OLD, NEW]], ids=["old only", "both"])
def test_an_updated_stream_ignores_what_it_held_of_versions_that_it_no_longer_pools(held: list[Collection]) -> None:
    """The newest version of the updated job has another list, so open windows have counts that do not take part."""
    newest = dataclasses.replace(collection("diet", numbered(4), "krr"), version=3, question="diet")
    spec = JobSpec(collections=(OLD, NEW, newest), bounded=False, windows=Windows(size=PERIOD), min_reports=100)
    (question,) = spec.questions
    versions = [one.fingerprint + _COUNTS.encode(one.count(reports(one, 60, START))) for one in held]
    window = IntervalWindow(START // 1000, (START + PERIOD) // 1000)
    pane = PaneInfo(True, False, PaneInfoTiming.ON_TIME, 0, 0)
    row, health = _Estimator(spec).rows(question.fingerprint, versions, window, pane)
    assert (row.status, row.num_reports, row.estimates) == ("suppressed", None, [])
    assert health.findings == []
    free = dataclasses.replace(spec, min_reports=1)
    row, _ = _Estimator(free).rows(question.fingerprint, versions, window, pane)
    assert (row.status, row.num_reports, row.estimates) == ("suppressed", None, [])


# ---------------------------------------------------------------------- refusals


def test_the_raw_shares_of_a_window_are_linear_in_its_counts() -> None:
    """The pooled row of all reports is the mean of the rows of halves of equal sizes."""
    halves = [[one.perturb(["0"] * 200, generator(one.version, half)) for one in VERSIONS] for half in range(2)]
    raw = [expected(batches, "empirical").raw_frequencies for batches in (*halves, halves[0] + halves[1])]
    assert np.mean(raw[:2], axis=0) == pytest.approx(raw[2], abs=1e-12)
