"""Pooled rows of questions: over files, in streams, from stored counts, and what must stay as it is beside them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apache_beam.testing.test_stream import Event

from tests.support import replay
from tests.support.messages_cases import KRR, URR, collection, container, numbered, write_files
from tests.support.tolerance import generator
from uldp_transforms import JobSpec
from uldp_transforms.beam.runtime import panes
from uldp_transforms.beam.spec.spec_fields import FINAL
from uldp_transforms.beam.transforms.pool_versions import PoolVersions, _Held
from uldp_transforms.jobs import estimate, reestimate, total, uldp
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions import questions_of
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.windows import Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
START = 1_000_000_000_000 // PERIOD * PERIOD
OLD = dataclasses.replace(KRR, id="diet", question="diet")
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
    argv = ["--counts", "out", "--output", "again", *COLLECTIONS, *again]
    assert reestimate.main(argv) == 0
    assert [row for row in rows_of("again") if row["pooled"]] == rows
    if "--smooth" in options:
        assert all(each["smoothed_frequency"] is not None for row in rows for each in row["estimates"])


@pytest.mark.usefixtures("files")
def test_longer_windows_pool_what_is_in_them(files: list[Any]) -> None:
    run()
    assert reestimate.main(["--counts", "out", "--output", "again", "--window", "30m", *COLLECTIONS]) == 0
    whole = [row for row in rows_of("again") if row["pooled"]]
    assert sum(row["num_reports"] for row in whole) == 1400


def test_the_whole_period_of_a_question(files: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    run()
    capsys.readouterr()
    assert uldp.main(["total", "out"]) == 0
    (row,) = (row for row in rows_of("out", "totals") if row["pooled"])
    assert row["num_reports"] == 1400
    assert [each["frequency"] for each in row["estimates"]] == expected(files).frequencies.tolist()
    assert "diet, all versions, " in capsys.readouterr().out
    assert total.rows_of_counts  # the page calls it


@pytest.mark.usefixtures("files")
def test_the_page_shows_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    run()
    assert uldp.main(["report", "--input", "out", "--output", "page.html"]) == 0
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
    assert uldp.main(["report", "--input", "out", "--output", "page.html"]) == 0


@pytest.mark.usefixtures("files")
def test_a_version_with_dimensions_is_pooled_as_a_whole() -> None:
    """Groups have rows of their own; the question counts each report once, in the job and from stored counts."""
    form = NEW.to_json() | {"dimensions": [{"name": "arm", "values": ["a", "b"]}]}
    split = Collection.from_json(form)
    batch = split.perturb(["0", "1"] * 50, generator("dimensions"), [START] * 100, {"arm": ["a", "b"] * 50})
    old = reports(OLD, 300, START)
    messages = [wire.encode_batch(batch), wire.encode_batch(old)]
    Path("in.avro").write_bytes(container([(1, message) for message in messages], schema=replay_schema()))
    write_files(Path(), {"new.json": split})
    (row,) = run("--by", "arm")
    assert (row["num_reports"], row["group"]) == (400, None)
    (question,) = questions_of([OLD, split])
    counts = {OLD.fingerprint: OLD.count(old), split.fingerprint: split.count(batch)}
    assert shares_in(row) == question.estimate(counts, ESTIMATORS["eb"]()).estimate.frequencies.tolist()
    groups = [each["group"] for each in rows_of("out") if each["group"]]
    assert sorted(groups) == ["arm=a", "arm=b"]
    assert reestimate.main(["--counts", "out", "--output", "again", "--by", "arm", *COLLECTIONS]) == 0
    assert [each for each in rows_of("again") if each["pooled"]] == [row]
    assert uldp.main(["total", "out", "--by", "arm"]) == 0
    assert [each["num_reports"] for each in rows_of("out", "totals") if each["pooled"]] == [400]


def shares_in(row: dict[str, Any]) -> list[float]:
    return [each["frequency"] for each in row["estimates"]]


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


def test_a_stream_smooths_questions_too() -> None:
    events: list[Event] = []
    for window in range(4):
        moment = START + window * PERIOD
        batches = [reports(one, 400, moment) for one in VERSIONS]
        events.append(replay.arrive(moment, [wire.encode_batch(batch) for batch in batches]))
        events.append(replay.watermark(moment + PERIOD))
    events.append(replay.watermark(START + 9 * PERIOD))
    rows = of_question(streamed(events, smooth=True)["estimates"])
    assert [row.num_reports for row in rows] == [800] * 4
    assert all(entry.smoothed_frequency is not None for entry in rows[-1].estimates)


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


# ---------------------------------------------------------------------- refusals


def job(*collections: Collection, **fields: Any) -> JobSpec:
    return JobSpec(collections=collections, **fields)


REFUSED = [
    (lambda: PoolVersions(job(KRR)), "PoolVersions needs a collection that names a question, got none"),
    (
        lambda: job(OLD, estimator="em"),
        "question 'diet' needs an estimator that decodes pooled estimates, such as eb or projected, got 'em'",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED, ids=["no question", "estimator"])
def test_refused(call: Any, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        call()
    assert str(caught.value) == sentence


def test_the_raw_shares_of_a_window_are_linear_in_its_counts() -> None:
    """The pooled row of all reports is the mean of the rows of halves of equal sizes."""
    halves = [[one.perturb(["0"] * 200, generator(one.version, half)) for one in VERSIONS] for half in range(2)]
    raw = [expected(batches, "empirical").raw_frequencies for batches in (*halves, halves[0] + halves[1])]
    assert np.mean(raw[:2], axis=0) == pytest.approx(raw[2], abs=1e-12)
