"""``pipelines.reestimate``: what the job would have written, from its counts, and what else these can tell."""

from __future__ import annotations

import dataclasses
import itertools
import json
import operator
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from tests.servers.google_server import GoogleServer
from tests.support import replay
from tests.support.cases import ALL_COLLECTIONS, UTILITY_OPTIMIZED
from tests.support.jobs.reestimated import (
    ALL,
    COLLECTIONS,
    FILES,
    MINUTE,
    OPEN,
    PERIOD,
    TAGGED,
    again,
    estimated,
    messages_of,
    rows_of,
)
from tests.support.looks import without_intervals
from tests.support.messages_cases import KRR, URAP, container, single, write_files
from tests.support.tolerance import generator
from uldp_transforms import JobSpec
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.records.ledger_sums import periods_out_of_balance
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.row_identity import name_of, span_of
from uldp_transforms.rows.row_types import COUNTS_SCHEMA, ESTIMATE_SCHEMA, WindowCounts
from uldp_transforms.spec.spec_fields import CORRECTED, FINAL
from uldp_transforms.windows import Windows, moment_of, rfc3339


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with collections and candidates."""
    write_files(tmp_path, FILES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(path: Path) -> list[bytes]:
    return sorted(path.read_bytes().splitlines())


def records(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return sorted(fastavro.reader(file), key=repr)


# ---------------------------------------------------------------------- the same again


@pytest.mark.usefixtures("folder")
def test_the_rows_of_a_job_are_replaced_beside_its_counts() -> None:
    """Its counts stay; where it wrote JSON lines, rows without them would leave those of the job."""
    job = estimated(f"{ALL} --min_reports 1")
    counts, rows = (job / "counts.avro").read_bytes(), rows_of(job)
    assert again(f"{ALL} job --min_reports 1", output="job") == job
    assert (job / "counts.avro").read_bytes() == counts and len(rows_of(job)) == len(rows)
    assert reestimate.main(shlex.split(f"{ALL} job --output job --write_json false")) == 2


@pytest.mark.parametrize(
    "options", ["", "--window 5m", "--window 10m --slide 5m --min_reports 200", "--deduplicate", "--window 1m --smooth"]
)
@pytest.mark.usefixtures("folder")
def test_the_estimates_of_files_are_made_again_byte_for_byte(options: str, capfd: pytest.CaptureFixture[str]) -> None:
    """In another order: the windows of each collection one after the other."""
    job = estimated(f"{ALL} {options}")
    capfd.readouterr()
    least = "--min_reports 200" if "200" in options else ""
    smooth = "--smooth" if "--smooth" in options else ""
    output = again(f"{ALL} job {least} {smooth}")
    assert lines(output / "estimates.jsonl") == lines(job / "estimates.jsonl")
    assert records(output / "estimates.avro") == records(job / "estimates.avro")
    rows = rows_of(output)
    assert len(rows) >= 3
    assert capfd.readouterr() == ("", f"reestimate: {len(rows)} windows from 1 file(s)\n")
    assert [(row["collection_id"], row["window_start"] or "") for row in rows] == sorted(
        (row["collection_id"], row["window_start"] or "") for row in rows
    )


@pytest.mark.parametrize("release", [CORRECTED, FINAL])
@pytest.mark.parametrize("slide", [None, PERIOD // 2], ids=["fixed", "sliding"])
def test_of_a_stream_the_last_panes_are_made_again_byte_for_byte(
    release: str, slide: int | None, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    messages = messages_of(COLLECTIONS, 120)
    windows = Windows(size=PERIOD, slide=slide)
    job = replay.streaming_job(
        COLLECTIONS,
        windows,
        allowed_lateness=5 * MINUTE,
        release=release,
        write_counts=True,
        candidates=("0", "1", "2"),
        output=str(folder / "job"),
    )
    events = [replay.arrive(PERIOD, messages[::3]), replay.watermark(PERIOD + MINUTE)]
    events += [replay.arrive(PERIOD + MINUTE, messages[1::3]), replay.arrive(PERIOD + MINUTE, messages[2::3])]
    (folder / "job").mkdir()
    replay.run(job, events)
    last: dict[tuple[Any, ...], tuple[int, bytes]] = {}
    number = 0
    for path in (folder / "job").glob("estimates-*.jsonl"):
        for line in path.read_bytes().splitlines():
            row = json.loads(line)
            number += 1
            key = (row["collection_id"], row["window_start"])
            last[key] = max(last.get(key, (-1, b"")), (row["pane_index"], line))
    output = again(f"{ALL} job --min_reports 1")
    found, expected = lines(output / "estimates.jsonl"), sorted(line for _, line in last.values())
    if release == FINAL:
        assert found == expected
    else:  # intervals of such streams are for all looks
        assert [without_intervals(json.loads(line)) for line in found] == [
            without_intervals(json.loads(line)) for line in expected
        ]
    assert number == len(last) if release == FINAL else number > len(last)
    files = len(list((folder / "job").glob("counts-*.avro")))
    assert capfd.readouterr().err.endswith(f"reestimate: {len(last)} windows from {files} file(s)\n")


# ---------------------------------------------------------------------- something new


@pytest.mark.usefixtures("folder")
def test_other_candidates_estimators_and_limits() -> None:
    """As the array layer estimates the counts that the reports make."""
    batch_of = {of.id: of for of in COLLECTIONS}
    estimated(ALL)
    output = again(
        "--collection krr.json --collection open.json --collection urap.json job/counts.avro "
        "--candidates more.txt --estimator empirical --min_reports 300"
    )
    with Path("job/counts.avro").open("rb") as file:
        kept = {row["collection_id"]: row for row in fastavro.reader(file)}
    for row in rows_of(output):
        of = batch_of[row["collection_id"]]
        decoded = [message for message in messages_of(COLLECTIONS) if message[1:9] == of.fingerprint[:8]]
        assert sum(kept[of.id]["num_reports"]) == len(decoded) == row["num_reports"] == 300
        counts = counts_of(of, decoded)
        assert kept[of.id]["num_reports"] == counts.num_reports.tolist()
        assert kept[of.id]["cells"] == counts.cells.ravel().tolist()
        expected = of.estimate(counts, "empirical", ["2", "7", "8"] if of is OPEN else None)
        assert [entry["value"] for entry in row["estimates"]] == list(expected.values)
        assert [entry["frequency"] for entry in row["estimates"]] == expected.frequencies.tolist()
    assert {row["estimator"] for row in rows_of(output)} == {"empirical"}
    suppressed = again(f"{ALL} job --min_reports 301", "suppressed")
    assert {(row["status"], row["num_reports"]) for row in rows_of(suppressed)} == {("suppressed", None)}


@pytest.mark.usefixtures("folder")
def test_rows_have_the_largest_values() -> None:
    """And the number of all; with intervals that allow for the choice. The job itself has the same option."""
    job = estimated(f"{ALL} --show 1")
    output = again(f"{ALL} job --min_reports 1 --show 1")
    everything = again(f"{ALL} job --min_reports 1", "everything")
    assert lines(output / "estimates.jsonl") == lines(job / "estimates.jsonl")
    for few, row in zip(rows_of(output), rows_of(everything), strict=True):
        [entry] = few["estimates"]
        assert entry["frequency"] == max(other["frequency"] for other in row["estimates"])
        assert few["num_values"] == row["num_values"] == len(row["estimates"]) > 1
        assert entry["display_low"] <= entry["ci_low"] <= entry["ci_high"] <= entry["display_high"]
        assert (entry["display_low"], entry["display_high"]) != (entry["ci_low"], entry["ci_high"])


def counts_of(of: Collection, messages: Sequence[bytes]) -> Any:
    """Counts of single reports, of which the last bytes are cohort, length of the payload and payload."""
    width = of.mechanism.payload_size
    cohorts = np.array([message[-width - 2] // 2 for message in messages], np.uint16)
    payloads = np.array([list(message[-width:]) for message in messages], np.uint8)
    return of.count_groups(payloads, cohorts, 1)[0]


@pytest.mark.usefixtures("folder")
def test_better_background_knowledge_of_tags() -> None:
    """It is the server's: reports, counts and fingerprint do not change, but the estimate does."""
    estimated("--collection tagged.json", [TAGGED], number=2_000)
    spec = TAGGED.to_json()
    better = spec | {"alphabet": spec["alphabet"] | {"background": {"t": {"1": 0.25, "2": 0.75}}}}
    write_files(Path.cwd(), {"better.json": better})
    assert Collection.from_json("better.json").fingerprint == TAGGED.fingerprint
    output = again("--collection better.json job")
    ((before,), (after,)) = rows_of(Path("job")), rows_of(output)
    assert before["fingerprint"] == after["fingerprint"]
    with Path("job/counts.avro").open("rb") as file:
        (kept,) = fastavro.reader(file)
    counts = dataclasses.replace(
        TAGGED.count(TAGGED.perturb([])),
        num_reports=np.array(kept["num_reports"]),
        cells=np.array(kept["cells"]).reshape(TAGGED.num_cohorts, -1),
    )
    for row, of in ((before, TAGGED), (after, Collection.from_json(better))):
        expected = of.estimate(counts, "eb")
        assert [entry["frequency"] for entry in row["estimates"]] == expected.frequencies.tolist()
    assert before["estimates"] != after["estimates"]


# ---------------------------------------------------------------------- longer windows

SPRING = 1_711_306_800_000  # Sunday 2024-03-24T20:00 in Berlin, a week before clocks are put forward
DAY = 24 * 60 * MINUTE
BERLIN = "--timezone Europe/Berlin"


def without_run(row: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on how reports came, nor on whether their files say who made them."""
    return {k: value for k, value in row.items() if k not in ("run", "pane_index", "pane_timing", "simulated")}


@pytest.mark.parametrize("options", ["--window 1d", "--window P1W", "--window 1w --slide 1d", "--window 1mo"])
@pytest.mark.usefixtures("folder")
def test_days_of_a_place_are_alike_in_files_streams_and_from_stored_hours(options: str) -> None:
    rng = generator("calendar", options)
    times = np.sort(rng.integers(SPRING, SPRING + 12 * DAY, 600))
    messages = wire.encode_reports(KRR.perturb(rng.choice(["0", "1", "2"], 600).tolist(), rng, times))
    Path("in.avro").write_bytes(container([(1, message) for message in messages]))
    files = "--collection krr.json --min_reports 20 --input in.avro"
    assert estimate.main(shlex.split(f"{files} {BERLIN} {options} --output job --write_counts")) == 0
    expected = sorted(map(without_run, rows_of(Path("job"))), key=repr)
    assert {row["status"] for row in expected} >= {"ok"}
    assert sum(row["num_reports"] or 0 for row in expected) <= 600 * 7
    lengths = {moment_of(row["window_end"]) - moment_of(row["window_start"]) for row in expected}
    assert 23 * DAY // 24 in {length % DAY for length in lengths}, "one of them has the hour that was left out"

    assert estimate.main(shlex.split(f"{files} --window 1h --output hours --write_counts")) == 0
    regrouped = rows_of(again(f"--collection krr.json hours --min_reports 20 {BERLIN} {options}"))
    assert sorted(map(without_run, regrouped), key=repr) == expected
    same = rows_of(again("--collection krr.json job --min_reports 20", "same"))
    assert sorted(map(without_run, same), key=repr) == expected

    values: dict[str, Any] = dict(zip(("window", "slide"), options.split()[1::2]))
    windows = JobSpec.of(collections=[KRR], timezone="Europe/Berlin", **values).windows
    assert windows is not None
    events = []
    for end in range(SPRING + DAY, SPRING + 13 * DAY, DAY):
        here = [message for message, time in zip(messages, times.tolist()) if end - DAY <= time < end]
        events += [replay.arrive(end, here), replay.watermark(end)]
    job = replay.streaming_job([KRR], windows, min_reports=20, allowed_lateness=DAY)
    rows = replay.replay(job, [*events, replay.watermark(SPRING + 60 * DAY)])
    last = {row.window_start: row for row in sorted(rows["estimates"], key=lambda row: row.pane_index)}
    streamed = sorted((without_run(json.loads(to_json(row))) for row in last.values()), key=repr)
    by_window = operator.itemgetter("collection_id", "window_start")
    assert sorted(map(without_intervals, streamed), key=by_window) == sorted(
        map(without_intervals, expected), key=by_window
    )
    assert not periods_out_of_balance([row._asdict() for row in rows["ledger"]])
    assert sum(row.accepted for row in rows["ledger"]) == 600


def hours(*numbers: int, length: int = PERIOD, **fields: Any) -> list[WindowCounts]:
    """Counts of one stored window after the other."""
    return [
        counts_row(KRR, 0, number, start, **span_of(start, length) | fields)
        for start, number in zip(itertools.count(0, length), numbers)
    ]


LONGER = "--collection krr.json . --min_reports 1 --window 1h"


@pytest.mark.usefixtures("folder")
def test_a_longer_window_that_a_stream_has_not_seen_the_end_of_is_partial() -> None:
    """What was not counted yet is not stored; a job over files stores all there is."""
    run_of("a", None, None)
    write_counts(counts=[row._replace(run="a") for row in hours(*range(1, 9))])
    assert [row["status"] for row in rows_of(again(LONGER))] == ["ok", "partial"]
    Path("run-a.json").unlink()
    assert [row["status"] for row in rows_of(again(LONGER))] == ["ok", "ok"]


# ---------------------------------------------------------------------- which rows


def counts_row(of: Collection, pane_index: int, number: int, start: int | None = 0, **fields: Any) -> WindowCounts:
    """Counts of reports of the first cell in each cohort."""
    return WindowCounts(
        **name_of(of)
        | span_of(start, PERIOD)
        | {
            "pane_index": pane_index,
            "pane_timing": "LATE" if pane_index else "ON_TIME",
            "complete": True,
            "num_reports": [number] * of.num_cohorts,
            "cells": ([number] + [0] * (of.num_cells - 1)) * of.num_cohorts,
        }
        | fields
    )


def write_counts(**files: list[WindowCounts]) -> None:
    for name, rows in files.items():
        Path(f"{name}.avro").write_bytes(file_of(rows, "avro", COUNTS_SCHEMA))


def test_counts_may_lie_in_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by a directory or by a pattern."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, FILES)
    with GoogleServer() as server, server.environment():
        server.objects["bucket/out/counts-1.avro"] = file_of([counts_row(KRR, 0, 30)], "avro", COUNTS_SCHEMA)
        server.objects["bucket/out/estimates-1.avro"] = b""
        for counts in ("gs://bucket/out/", "gs://bucket/out/counts-*.avro"):
            [row] = rows_of(again(f"--collection krr.json {counts} --min_reports 1"))
            assert row["num_reports"] == 90


@pytest.mark.usefixtures("folder")
def test_counts_of_several_jobs_add_up() -> None:
    """Of each job the last pane; a window that one job saw to its end is complete."""
    cut = [counts_row(of, 0, 5)._replace(complete=False) for of in (KRR, URAP)]
    write_counts(
        a=[*cut, counts_row(KRR, 0, 2, PERIOD)],
        b=[counts_row(KRR, 0, 1), counts_row(KRR, 3, 20), counts_row(URAP, 1, 6)._replace(complete=False)],
        c=[counts_row(KRR, 1, 100)],
    )
    jobs = " ".join(f"{name}.avro" for name in "abc")
    rows = rows_of(again(f"--collection krr.json --collection urap.json {jobs} --min_reports 1"))
    found = [(row["collection_id"], row["pane_index"], row["num_reports"], row["status"]) for row in rows]
    assert found == [("krr", 3, 375, "ok"), ("krr", 0, 6, "ok"), ("urap", 1, None, "partial")]


@pytest.mark.usefixtures("folder")
def test_rows_of_other_collections_are_left_out_and_counted(capfd: pytest.CaptureFixture[str]) -> None:
    """Also those of another version, and of a collection of the same name."""
    other = dataclasses.replace(KRR, version=2)
    namesake = dataclasses.replace(KRR, num_cohorts=4)
    rows = [counts_row(of, pane, 9) for of in (KRR, other, namesake, URAP) for pane in (0, 1)]
    write_counts(counts=rows)
    output = again("--collection krr.json . --min_reports 1")
    assert [(row["fingerprint"], row["pane_index"]) for row in rows_of(output)] == [(KRR.fingerprint.hex(), 1)]
    said = "reestimate: 1 windows from 1 file(s), 6 row(s) of other collections left out\n"
    assert capfd.readouterr() == ("", said)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("", "such as window 1d, got none"),
        ("--window 12h", "such as window 1d, got window 12h"),
    ],
)
def test_windows_of_clients_are_asked_for(options: str, sentence: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Also where nothing was known of them when reports were counted, in one window for everything."""
    asked = dataclasses.replace(KRR, client_window="1d")
    write_files(Path(), {"asked.json": asked})
    write_counts(counts=[counts_row(asked, 0, 200, None)])
    assert reestimate.main(shlex.split(f"--collection asked.json counts.avro --output again {options}")) != 0
    assert sentence in capfd.readouterr().err


@pytest.mark.usefixtures("folder")
def test_no_rows_make_empty_files() -> None:
    write_counts(counts=[])
    output = again("--collection krr.json .")
    assert (output / "estimates.jsonl").read_bytes() == b""
    with (output / "estimates.avro").open("rb") as file:
        reader = fastavro.reader(file)
        canonical = fastavro.schema.to_parsing_canonical_form
        assert canonical(reader.writer_schema) == canonical(ESTIMATE_SCHEMA)
        assert list(reader) == []


# ---------------------------------------------------------------------- errors

FROM = "--collection krr.json --output again"
SHAPE = "counts of collection 'krr' must have 3 cohorts and 9 cells, got"
NOT_COUNTS = "must be a file that uldp estimate --write_counts wrote, got a different file"
ERRORS = [
    (
        f"{FROM} good.avro --window 1d --timezone Berlin",
        "--timezone must be the name of a time zone such as \"Europe/Berlin\", got 'Berlin'",
    ),
    (
        f"{FROM} good.avro --window 15m --slide 5m",
        "--window must have base periods that consist of whole stored windows, got the stored window "
        "1970-01-01T00:00:00Z to 1970-01-01T00:10:00Z",
    ),
    (
        f"{FROM} day.avro --window 1d --timezone Europe/Berlin",
        "--window must have base periods that consist of whole stored windows, got the stored window "
        "1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z",
    ),
    ("", "the following arguments are required: DIR"),
    (
        f"{FROM} ran.avro copy.avro",
        "DIR must name each count once, because its reports would count twice, got those of run a in two directories",
    ),
    (f"{FROM} none.avro", "DIR must match at least one file, got 'none.avro'"),
    (f"{FROM} good.avro --collection none.json", "none.json: No such file or directory"),
    (f"{FROM} good.avro --candidates none.txt", "none.txt: No such file or directory"),
    (f"{FROM} good.avro --min_reports 0", "--min_reports must be a whole number above 0, got '0'"),
    (f"{FROM} krr.json", f"krr.json {NOT_COUNTS}"),
    (f"{FROM} void.avro", f"void.avro {NOT_COUNTS}"),
    (f"{FROM} reports.avro", f"reports.avro {NOT_COUNTS}"),
    (f"{FROM} cut.avro", f"cut.avro {NOT_COUNTS}"),
    (f"{FROM} narrow.avro", f"narrow.avro: {SHAPE} 3 and 6"),
    (f"{FROM} uneven.avro", f"uneven.avro: {SHAPE} 2 and 9"),
    (
        f"{FROM} negative.avro",
        "negative.avro: counts of collection 'krr' must be from 0 to 9007199254740992, got a number outside this range",
    ),
    (
        f"{FROM} huge.avro",
        "huge.avro: counts of collection 'krr' must be from 0 to 9007199254740992, got a number outside this range",
    ),
    ("--collection krr.json good.avro --output good.avro/none", "good.avro/none: Not a directory"),
]


@pytest.mark.parametrize(("argv", "sentence"), ERRORS, ids=[sentence[:60] for _, sentence in ERRORS])
def test_what_is_wrong_is_one_line(argv: str, sentence: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good = counts_row(KRR, 0, 9)
    write_counts(
        good=[good],
        day=hours(1, length=DAY),
        narrow=[good._replace(cells=good.cells[:6])],
        uneven=[good._replace(num_reports=[1, 2])],
        negative=[good._replace(cells=[-1, *good.cells[1:]])],
        huge=[good._replace(num_reports=[1, 2, (1 << 53) + 1])],
        ran=[good._replace(run="a")],
        copy=[good._replace(run="a")],
    )
    write_files(
        folder,
        {"void.avro": b"", "reports.avro": container([(1, single())]), "cut.avro": Path("good.avro").read_bytes()[:-9]},
    )
    (folder / "empty").mkdir()
    assert reestimate.main(shlex.split(argv)) == 2
    out, err = capfd.readouterr()
    assert (out, err.replace(os.path.realpath(folder), "FOLDER")) == ("", f"reestimate: {sentence}\n")
    assert not list(folder.glob("again/estimates*"))


def test_a_spoiled_file_is_never_a_traceback(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Cut anywhere, or with one byte changed: the sentence, or the numbers of a file that is still one."""
    write_counts(good=[counts_row(KRR, pane, 9) for pane in range(3)])
    content = Path("good.avro").read_bytes()
    rng = generator("spoiled")
    body = content.index(content[-16:]) + 16  # behind the first sync marker
    spoiled = [content[:end] for end in rng.integers(0, len(content), 60)]
    for at in [*rng.integers(0, body, 150), *rng.integers(body, len(content), 150)]:
        spoiled.append(content[:at] + bytes([rng.integers(256)]) + content[at + 1 :])
    for number, part in enumerate(spoiled):
        Path("spoiled.avro").write_bytes(part)
        code = reestimate.main(shlex.split(f"{FROM} spoiled.avro"))
        out, err = capfd.readouterr()
        assert out == ""
        assert (code, err.count("\n")) in ((0, 1), (2, 1)), (number, err)
        assert code == 0 or err.startswith(
            (f"reestimate: spoiled.avro {NOT_COUNTS}", "reestimate: spoiled.avro: counts of collection 'krr' must ")
        )


SUMS, ABOVE = "cells that sum to the reports of their cohort", "no cell above the reports of its cohort"
CLEAR = "no sensitive cell above the reports that are not clear"
IMPOSSIBLE = {  # id of a mechanism -> what stored counts of 9 reports a cohort have, and cells that have it not
    **{name: (SUMS, [4, 4]) if MECHANISMS[name].one_place else (ABOVE, [10]) for name in MECHANISMS},
    **dict.fromkeys(("urap", "uhr"), (CLEAR, [9, 0, 0, 1])),
    "ss": ("cells of sets that sum to 2 a set", [9, 8]),
    "uss": ("cells of sets that sum to 1 a set", [1, 1]),
    "hr": ("sensitive cells that columns of the matrix make", [9, 9, 9, 0]),
}


@pytest.mark.parametrize("mechanism", IMPOSSIBLE)
def test_counts_that_no_reports_make_are_refused(
    mechanism: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second row of two, in the first cohort; the first row alone is estimated."""
    of = ALL_COLLECTIONS[f"closed-sensitive-{mechanism}" if mechanism in UTILITY_OPTIMIZED else f"closed-{mechanism}"]
    rule, cells = IMPOSSIBLE[mechanism]
    possible = of.count(of.perturb(["ant", "dog"] * 30, generator("possible", mechanism)))
    good = counts_row(of, 0, 0, num_reports=possible.num_reports.tolist(), cells=possible.cells.ravel().tolist())
    filled = cells + [0] * (of.num_cells * of.num_cohorts - len(cells))
    bad = counts_row(of, 0, 0, PERIOD, num_reports=[9] + [0] * (of.num_cohorts - 1), cells=filled)
    write_files(folder, {"c.json": of})
    write_counts(good=[good], bad=[good, bad])
    command = "--collection c.json --min_reports 1 --output again"
    assert reestimate.main(shlex.split(f"{command} good.avro")) == 0
    capfd.readouterr()
    assert reestimate.main(shlex.split(f"{command} bad.avro")) == 2
    said = f"reestimate: bad.avro: counts of collection {of.id!r} must have {rule}, got a violation in cohort 0\n"
    assert capfd.readouterr() == ("", said)


# ---------------------------------------------------------------------- runs of one directory


def run_of(name: str, end: str | None, cut: int | None, *, resumes: bool = True, launched: bool = False) -> None:
    """The record of a run in the present folder; windows that begin before ``cut`` were cut for it."""
    RunRecord(
        run=name,
        started=rfc3339(0),
        ended=rfc3339(PERIOD),
        source={"option": "--subscription", "name": "s", "bounded": False, "resumes": resumes},
        specification={"partial_before": None if cut is None else rfc3339(cut)},
        end=end,
        launched=launched,
    ).write(".")


def of_runs(**numbers: int) -> list[WindowCounts]:
    """What runs counted of the first window; the last one saw its end."""
    last = max(numbers)
    return [counts_row(KRR, 0, number)._replace(run=run, complete=run == last) for run, number in numbers.items()]


@pytest.mark.parametrize(
    ("end", "launched", "status"),
    [("stopped", False, "ok"), (None, False, "partial"), ("failed", False, "partial"), ("cancelled", False, "partial"),
     (None, True, "ok")],
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_a_window_cut_by_a_stop_is_whole_again(end: str | None, launched: bool, status: str) -> None:
    """The runs of one directory are added up where the source goes on; after a killed run a part is missing."""
    run_of("a", end, None, launched=launched)
    run_of("b", "stopped", PERIOD)
    write_counts(counts=of_runs(a=30, b=50))
    [row] = rows_of(again("--collection krr.json . --min_reports 1"))
    assert (row["status"], row["run"]) == (status, "b")
    assert row["num_reports"] == (240 if status == "ok" else None)
