"""What a person or a broken client sent is shown nowhere: not in errors, logs or results, whatever goes wrong."""

from __future__ import annotations

import base64
import gzip
import logging
import shlex
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import fastavro
import pytest

from tests.support import replay
from tests.support.messages.secret_messages import FILES, SECRET, TEXT, messages, shown
from tests.support.messages_cases import (
    ID,
    KNOWN,
    KRR,
    container,
    decoder,
    single,
    write_files,
)
from uldp_transforms.beam.transforms.decode_reports import DecodeReports
from uldp_transforms.jobs import cli, estimate, uldp
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.rejected_report import rejected_row
from uldp_transforms.windows import BasePeriods


@pytest.fixture
def nothing_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[Path]:
    """A folder for input; at the end the marker must stand in no other file, nor on the terminal, nor in a log."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    (tmp_path / "in").mkdir()
    write_files(tmp_path, {"krr.json": KRR})
    yield tmp_path / "in"
    assert not any(map(shown, capfd.readouterr()))
    assert not [record for record in caplog.get_records("call") if shown(logging.Formatter().format(record))]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "in"]
    assert not [path.name for path in written if shown(path.read_bytes()) or shown(path.name)]


def test_the_marker_would_be_found():
    assert all(
        map(
            shown,
            [TEXT, TEXT.lower(), f"got {SECRET!r}", SECRET.hex(), str([*SECRET]), base64.b64encode(SECRET + b"==")],
        )
    )
    assert not shown("krr")


# ---------------------------------------------------------------------- clients

VALUES = {
    "not in the alphabet": f"value\n0\n{TEXT}\n",
    "in the header": f"{TEXT}\n0\n",
    "in the header, not UTF-8": f"{TEXT}\xe4\n".encode("latin-1"),
    "not UTF-8": f"value\n0\n{TEXT}\xe4\n".encode("latin-1"),
    "in another encoding": f"value\n{TEXT}\n".encode("utf-16"),
    "as a time": f"value,event_time\n0,{TEXT}\n",
    "beside a wrong time": f"value,event_time\n{TEXT},1e14\n",
    "in a short row": f"value,event_time\n{TEXT}\n",
    "in a field that is too long": "value\n" + TEXT * 20_000,
    "in a header that is too long": TEXT * 20_000,
    "behind a zero byte": f"value\n\0{TEXT}\n",
    "as a surrogate": f"value\n{TEXT}".encode() + b"\xed\xa0\x80",
}
ZIPPED = {
    "not zipped": TEXT,
    "cut": gzip.compress(f"value\n{TEXT}\n".encode() * 1000)[:-9],
    "broken": gzip.compress(f"value\n{TEXT}\n".encode(), compresslevel=0)[:-8] + bytes(8),
}


@pytest.mark.parametrize(
    ("name", "content"),
    [*(("values.csv", content) for content in VALUES.values()), *(("values.csv.gz", c) for c in ZIPPED.values())],
    ids=[*VALUES, *ZIPPED],
)
def test_simulate_never_shows_a_value(name, content, nothing_is_shown):
    write_files(nothing_is_shown, {name: content})
    argv = f"--collection krr.json --values in/{name} --output out.avro"
    assert uldp.main(["simulate", *shlex.split(argv)]) == 2


def test_a_value_is_not_in_its_report(nothing_is_shown):
    """Nor in the metadata of the file."""
    rows = "".join(f"{value},{moment}\n" for moment, value in enumerate([TEXT] * 100, 1_000_000_000))
    spec = {"id": "open", "version": 1, "alphabet": {"id": "hashed", "num_buckets": 4}, "num_cohorts": 2}
    write_files(nothing_is_shown, {"values.csv": f"value,event_time\n{rows}"})
    write_files(Path.cwd(), {"open.json": spec | {"mechanism": {"id": "krr", "epsilon": 1}}})
    assert uldp.main(shlex.split("simulate --collection open.json --values in/values.csv --output out.avro")) == 0


# ---------------------------------------------------------------------- the collector


def test_decoding_never_shows_a_message(nothing_is_shown):
    batches, rejections, *_ = decoder().decode(messages())
    found = sum(rejection.num_reports + rejection.num_messages for rejection in rejections)
    assert found >= len(messages()) - 2
    for rejection in rejections:
        assert not shown(repr(rejection))
        assert not shown(to_json(rejected_row(rejection, BasePeriods(1000))))
    assert not any(shown(str(batch.fingerprint)) for batch in batches)


def test_the_transform_never_shows_a_message(nothing_is_shown):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        decoded = pipeline | beam.Create(messages()) | DecodeReports(replay.spec(KNOWN, None))
        _ = decoded.rejected | beam.Map(rejected_row, BasePeriods(1000)) | beam.Map(print)


def test_files_never_show_their_content(nothing_is_shown):
    for name, content in FILES.items():
        write_files(nothing_is_shown, {name: content})
        with (nothing_is_shown / name).open("rb") as file:
            for item in read_messages(file, name):
                assert isinstance(item, bytes) or not shown(repr(item))


OPTIONS = ["", "--window 1h --min_reports 1", "--min_reports 1 --deduplicate --write_counts"]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_main_job_never_shows_what_it_refuses(options, nothing_is_shown):
    write_files(nothing_is_shown, FILES)
    argv = f"--collection krr.json --input in/* --output out {options}"
    assert estimate.main(shlex.split(argv)) == cli.UNREAD  # most of it is refused, and that is said too
    with Path("out/rejected.avro").open("rb") as file:
        assert len({row["reason"] for row in fastavro.reader(file)}) >= 8


@pytest.mark.parametrize("options", OPTIONS)
def test_a_report_id_leaves_no_trace(options, nothing_is_shown):
    """It could link a person's reports: also those that are accepted, and copies of them."""
    report_id = SECRET.ljust(16, b"!")
    good = [single(report_id=report_id), single(report_id=report_id), single(report_id=ID)]
    write_files(nothing_is_shown, {"good.avro": container([(3, b"".join(good))])})
    argv = shlex.split(f"--collection krr.json --input in/* --output out {options}")
    assert estimate.main(argv) == 0
