"""Files that cannot be read are no reports: they are counted apart, named, and end the job with a code of their own."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to

from tests.support.messages.snappy_blocks import snappy
from tests.support.messages_cases import KRR, REPORT, container, write_files
from tests.support.permissions import where_permissions_hold
from tests.support.tolerance import generator
from uldp_transforms import EstimateReports, ReadReportFiles
from uldp_transforms.jobs.uldp import main
from uldp_transforms.ldp import ReportBatch
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire

JOB = "estimate --collection krr.json --output out --min_reports 1 --window 1h"
HOUR = 3_600_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder, with a good file of 200 reports."""
    write_files(tmp_path, {"krr.json": KRR})
    monkeypatch.chdir(tmp_path)
    write_avro("R1.avro")


def batch(number: int = 200) -> ReportBatch:
    return KRR.perturb(["0", "1"] * (number // 2), generator("unread"), np.arange(number))


def write_avro(name: str, codec: str = "deflate") -> None:
    with open(name, "wb") as file:
        fastavro.writer(file, REPORT, wire.report_records(batch()), codec=codec)


def columns(number: int = 200) -> dict[str, Any]:
    rows = wire.report_records(batch(number))
    kinds = {"collection": pa.binary(), "event_time": pa.int64(), "cohort": pa.int32(), "payload": pa.binary()}
    return {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}


def sums(folder: str = "out") -> Counter[Any]:
    """Numbers of the ledger; what is by reason, with the field and the reason."""
    found: Counter[Any] = Counter()
    for line in Path(folder, "ledger.jsonl").read_text().splitlines():
        row = json.loads(line)
        for name in ("received", "accepted", "duplicates", "in_transit"):
            found[name] += row[name]
        for name in ("rejected", "unread_messages", "unread_files"):
            found.update({(name, reason): number for reason, number in row[name].items()})
    return +found


def test_codecs_of_other_writers_are_read() -> None:
    body = b"".join(wire.encode_reports(batch()))
    Path("R2.avro").write_bytes(container([(200, snappy(body))], codec=b"snappy"))
    write_avro("R3.avro", "bzip2")
    write_avro("R4.avro", "xz")
    assert main(shlex.split(f"{JOB} --input R*.avro")) == 0
    assert sums() == {"received": 800, "accepted": 800}


def damaged_index() -> bytes:
    """A table whose dictionary index points beyond the dictionary, which Arrow does not check."""
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(columns(10)), out, compression="none")
    content = bytearray(out.getvalue().to_pybytes())
    facts = pq.ParquetFile(pa.BufferReader(bytes(content))).metadata.row_group(0).column(3)
    end = facts.dictionary_page_offset + facts.total_compressed_size
    content[end - 3 : end] = b"\xff" * 3
    return bytes(content)


def table(of: dict[str, Any]) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(of), out)
    return bytes(out.getvalue())


DAMAGED: dict[str, tuple[Callable[[], bytes], str]] = {
    "codec.avro": (lambda: container([(1, b"x")], codec=b"brotli"), "unknown_codec"),
    "empty.avro": (lambda: b"", "bad_magic"),
    "compressed.avro.gz": (lambda: b"\x1f\x8b\x08" + bytes(30), "bad_magic"),
    "schema.avro": (lambda: container([(1, b"x")], b'"bytes"'), "unknown_schema"),
    "blocks.avro": (lambda: container([(200, b"garbage"), (3, b"more")]), "corrupt_block"),
    "footer.parquet": (lambda: table(columns())[:-3], "bad_magic"),
    "columns.parquet": (lambda: table({"value": ["a"] * 500}), "unknown_schema"),
    "index.parquet": (damaged_index, "corrupt_block"),
}


def test_files_that_cannot_be_read_are_no_reports(capfd: pytest.CaptureFixture[str]) -> None:
    reasons = Counter(reason for _, reason in DAMAGED.values())
    write_files(Path("in"), {name: content() for name, (content, _) in DAMAGED.items()})
    Path("R1.avro").rename("in/R1.avro")
    assert main(shlex.split(f"{JOB} --input in/*")) == 7
    assert sums() == {"received": 200, "accepted": 200} | {("unread_files", each): reasons[each] for each in reasons}
    *_, books, last = capfd.readouterr().err.splitlines()
    told = ", ".join(f"{reason} {number}" for reason, number in sorted(reasons.items()))
    assert books == f"estimate: 200 received = 200 accepted + 0 rejected; unread files: 8 ({told})"
    assert last.startswith(f"estimate: 8 files could not be read in full ({told}): ")
    with open("out/rejected.avro", "rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    assert {row["source"]: row["reason"] for row in rows} == {name: reason for name, (_, reason) in DAMAGED.items()}
    assert Counter(row["source"] for row in rows if row["num_files"]) == dict.fromkeys(DAMAGED, 1)


def test_the_only_file_that_cannot_be_read_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    Path("R2.avro").touch()
    assert main(shlex.split(f"{JOB} --input R*")) == 7
    assert "\nestimate: 1 file could not be read in full (bad_magic 1): " in capfd.readouterr().err
    assert main(["check", "out"]) == 1
    said = "check: 1 file could not be read in full (bad_magic 1): R2.avro (bad_magic); "
    assert said in capfd.readouterr().out


def test_what_a_manifest_misses_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    """The number of missing reports is known here, so they are rejected, and the file is unread once."""
    entry = {"name": "R1.avro", "bytes": 1, "messages": 210, "reports": 210, "sha256": "0" * 64}
    Path("M.json").write_text(json.dumps({"version": 1, "files": [entry]}))
    assert main(shlex.split(f"{JOB} --input R1.avro --manifest M.json")) == 7
    missing = {("rejected", "not_as_listed"): 10, ("unread_files", "not_as_listed"): 1}
    assert sums() == {"received": 210, "accepted": 200, **missing}
    assert "R1.avro (not_as_listed)" in (main(["check", "out"]), capfd.readouterr().out)[1]


def test_a_message_that_cannot_be_read_is_no_report() -> None:
    messages = [*wire.encode_reports(batch(10)), wire.encode_batch(batch(50))[:-1], b"\x02cut", b"text", b"", None]
    Path("m.parquet").write_bytes(table({"data": pa.array(messages, pa.binary())}))
    assert main(shlex.split(f"{JOB} --input m.parquet")) == 0
    unread = {("unread_messages", "malformed"): 4, ("unread_messages", "unknown_schema"): 1}
    assert sums() == {"received": 10, "accepted": 10, **unread}


# ---------------------------------------------------------------------- numbers of reports in a column


def estimated(options: str = "") -> Counter[Any]:
    assert main(shlex.split(f"{JOB} --input c.parquet {options}")) == 0
    return sums()


def test_a_column_that_is_called_so_is_not_believed() -> None:
    """Someone else's column multiplies nobody, and an empty cell refuses nobody."""
    for at, numbers in enumerate(([1_000_000, None, *[3] * 8], ["text"] * 10, [-1] * 10)):
        Path(f"c{at}.parquet").write_bytes(table(columns(10) | {"Num_Reports": numbers}))
    assert main(shlex.split(f"{JOB} --input c*.parquet")) == 0
    assert sums() == {"received": 30, "accepted": 30}


COUNTED = [
    pytest.param(pa.array([None, 5, 1, 2, 3, 4, None, 1, 1, 7]), False, id="integers"),
    pytest.param(pa.array([None, 5.0, 1, 2, 3, 4, float("nan"), 1, 1, 7]), True, id="asked for, as pandas writes them"),
]


@pytest.mark.parametrize(("numbers", "asked"), COUNTED)
def test_counted_rows_count_as_often_as_they_say(numbers: Any, asked: bool) -> None:
    """Without a number a row is one report. The estimate is that of copies."""
    times = [5, 1, 2, 3, 4, 1, 1, 7]
    repeated = np.repeat(np.arange(10), [1, *times[:5], 1, *times[5:]])
    names = {"n": numbers} if asked else {"NUM_REPORTS": numbers, "period_ms": [HOUR] * 10}
    Path("c.parquet").write_bytes(table(columns(10) | names))
    assert estimated("--num_reports N" if asked else "") == {"received": 26, "accepted": 26}
    counted = json.loads(Path("out/estimates.jsonl").read_text()) | {"run": None}
    Path("c.parquet").write_bytes(table({name: of.take(pa.array(repeated)) for name, of in columns(10).items()}))
    assert estimated() == {"received": 26, "accepted": 26}
    assert counted == json.loads(Path("out/estimates.jsonl").read_text()) | {"run": None}


def test_impossible_numbers_refuse_their_row_alone() -> None:
    names = {"num_reports": [0, -1, (1 << 30) + 1, 1 << 30, 1], "period_ms": [HOUR] * 5}
    Path("c.parquet").write_bytes(table({name: of[:5] for name, of in columns(10).items()} | names))
    assert estimated() == {"received": (1 << 30) + 4, "accepted": (1 << 30) + 1, ("rejected", "malformed"): 3}


def test_a_small_file_of_large_numbers_takes_no_time() -> None:
    """A thousand rows of a billion reports each: weights, not copies."""
    names = {"num_reports": [(1 << 30) - 1] * 1000, "period_ms": [HOUR] * 1000}
    Path("c.parquet").write_bytes(table(columns(1000) | names))
    begin = time.process_time()
    total = 1000 * ((1 << 30) - 1)
    assert estimated() == {"received": total, "accepted": total}
    assert time.process_time() - begin < 60


def test_rows_that_are_rejected_count_as_often_as_they_say() -> None:
    of = columns(10) | {"cohort": pa.array([9] * 10), "num_reports": [3] * 10, "period_ms": [HOUR] * 10}
    Path("c.parquet").write_bytes(table(of))
    assert main(shlex.split(f"{JOB} --input c.parquet --max_rejected_share 1")) == 0
    assert sums() == {"received": 30, ("rejected", "cohort_range"): 30}
    of = columns(10) | {"num_reports": [3] * 10, "period_ms": [HOUR] * 10}
    Path("c.parquet").write_bytes(table(of))
    assert main(shlex.split(f"{JOB} --input c.parquet --max_rejected_share 1 --deduplicate")) == 0
    assert sums() == {"received": 30, ("rejected", "no_report_id"): 30}


def test_a_column_that_is_asked_for_must_be_there() -> None:
    """A slip in its name must not count every row once."""
    Path("c.parquet").write_bytes(table(columns(10) | {"n": [3] * 10}))
    assert main(shlex.split(f"{JOB} --input c.parquet --num_reports m")) == 7
    assert sums() == {("unread_files", "unknown_schema"): 1}


def test_other_names_are_not_believed_either() -> None:
    """A column ``data`` beside reports is not their messages, and ``period_ms`` alone is no period of counting."""
    Path("c.parquet").write_bytes(table(columns(10) | {"data": [b"x"] * 10, "period_ms": [7] * 10}))
    assert estimated() == {"received": 10, "accepted": 10}


# ---------------------------------------------------------------------- several patterns, and names from a PCollection


@pytest.mark.parametrize(("named", "grouped"), [(False, True), (True, False)])
def test_a_file_that_several_patterns_match_is_read_once(named: bool, grouped: bool) -> None:
    write_avro("R2.avro")
    Path("c.parquet").write_bytes(table(columns(10) | {"n": [3] * 10}))
    patterns = ["R1.avro", "R*.avro", "c.parquet"]
    with beam.Pipeline() as pipeline:
        if named:
            files = pipeline | beam.Create(patterns) | ReadReportFiles(grouped=grouped, num_reports="n")
        else:
            files = pipeline | ReadReportFiles(patterns, grouped=grouped, num_reports="n")
        estimated = files | EstimateReports(collections=["krr.json"], window="1h", min_reports=1)
        assert_that(estimated.estimates | beam.Map(lambda row: row.num_reports), equal_to([430]))
        totals = estimated.ledger | beam.Map(lambda row: (row.received, row.accepted, row.in_transit))
        summed = totals | beam.CombineGlobally(lambda rows: tuple(map(sum, zip(*rows))) or (0, 0, 0)).without_defaults()
        assert_that(summed, equal_to([(430, 430, 0)]), label="ledger")


@pytest.mark.parametrize("options", ["", " --window 1h"])
@pytest.mark.parametrize("pattern", ["R*.avro", "R2.avro"])
def test_a_file_without_permission_is_named_before_anything_runs(
    pattern: str, options: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It may be whole, so it is no unread file; a run without it would be a wrong one."""
    write_avro("R2.avro")
    Path("R2.avro").chmod(0)
    words = shlex.split(f"estimate --collection krr.json --output out --input {pattern}{options}")
    assert where_permissions_hold(lambda: main(words)) == 2
    refused = f"got the file without read permission '{Path.cwd()}/R2.avro'\n"
    assert capfd.readouterr().err == f"estimate: --input must match files that can be read, {refused}"
    assert not Path("out").exists()


@pytest.mark.parametrize("grouped", [False, True])
def test_a_file_that_a_disk_does_not_give_back_is_named(*, grouped: bool) -> None:
    Path("R2.avro").symlink_to("/proc/self/mem")  # opens, and fails at the first byte
    with pytest.raises(Exception, match=r"Input/output error: '.*R2\.avro'"), beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(["R1.avro", "R2.avro"]) | ReadReportFiles(grouped=grouped)


def test_a_path_is_a_pattern() -> None:
    with beam.Pipeline() as pipeline:
        files = pipeline | ReadReportFiles([Path("R1.avro"), "R1*"])
        assert_that(files.simulated | beam.combiners.Count.Globally(), equal_to([1]))


def test_what_are_no_names_and_no_column_is_refused() -> None:
    for apply, sentence in (
        (lambda: ReadReportFiles("R1.avro", num_reports=""), "num_reports must be a text or None"),
        (lambda: beam.Pipeline() | beam.Create([1]) | ReadReportFiles(), "PCollection of names of files, got one of"),
    ):
        with pytest.raises(SpecError, match=sentence):
            apply()
