"""EstimateReports in Beam YAML: the examples of docs/yaml as they stand, what it takes, and what it refuses.

Annotations are real objects here: Beam makes schemas of nothing else.
"""

# ruff: noqa: UP045
import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional
from unittest import mock

import apache_beam as beam
import pytest
from apache_beam.testing.test_stream import WatermarkEvent
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.utils.timestamp import MAX_TIMESTAMP
from apache_beam.yaml import main
from apache_beam.yaml.yaml_transform import YamlTransform

from tests.support.beam.yaml_steps import PROVIDERS, steps
from tests.support.messages_cases import KRR, NOON
from tests.support.named_outputs import (
    OPEN,
    OUTPUTS,
    collected,
    from_files,
    from_messages,
    in_order,
    messages,
    write_reports,
)
from tests.support.replay import arrive, collector, stream, watermark
from uldp_transforms import JobSpec
from uldp_transforms.messages import wire
from uldp_transforms.yaml import EstimateReports, _as_messages, _message

DOCS = Path(__file__).parents[3] / "docs"
HOUR = 3_600_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("yaml")
    write_reports(folder)
    return folder


# ---------------------------------------------------------------- the examples


def test_the_example_writes_what_python_gets(folder: Path) -> None:
    command = [sys.executable, "-m", "apache_beam.yaml.main", "--runner=FnApiRunner"]
    command.append(f"--yaml_pipeline_file={DOCS / 'yaml' / 'estimates.yaml'}")
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    expected = from_files(folder / "reports" / "*.avro", collections=[KRR], window="6h")
    for name in ("values", "ledger", "rejected"):
        files = sorted((folder / "output").glob(f"{name}-*"))
        rows = [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]
        assert in_order(rows) == [approximately(row) for row in expected[name]], name
    assert len(expected["values"]) > 3 * 7
    assert [(row["reason"], row["source"]) for row in expected["rejected"]] == [("bad_magic", "broken.avro")]


def approximately(row: dict[str, Any]) -> dict[str, Any]:
    """Beam's WriteToJson writes ten digits behind the point."""
    return {name: pytest.approx(value, abs=1e-9) if isinstance(value, float) else value for name, value in row.items()}


class Topics:
    """Beam's Pub/Sub transforms, played from a stream and into lists."""

    def __init__(self, events: list[Any]):
        self.events = events
        self.collects: dict[str, Any] = {}

    def read(self, **options: Any) -> beam.PTransform[Any, Any]:
        assert options["subscription"] == "projects/PROJECT/subscriptions/reports"
        assert not options["with_attributes"]
        return stream(self.events)

    def write(self, topic: str, **options: Any) -> beam.PTransform[Any, Any]:
        return self.collects[topic.rpartition("/")[2]]


def test_the_stream_example_publishes_what_was_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    times = [NOON + i for i in range(400)]
    sent = [*wire.encode_reports(KRR.perturb(list("0112" * 100), event_times=times)), b"no report"]
    later = NOON + 2 * HOUR
    topics = Topics(
        [watermark(NOON), arrive(NOON + HOUR // 100, sent), watermark(later), WatermarkEvent(MAX_TIMESTAMP)]
    )
    argv = [f"--yaml_pipeline_file={DOCS / 'yaml' / 'stream.yaml'}", "--runner=BundleBasedDirectRunner"]
    with collector() as (values_to, values), collector() as (ledger_to, ledger):
        topics.collects = {"values": values_to, "ledger": ledger_to}
        with (
            mock.patch("apache_beam.io.ReadFromPubSub", topics.read),
            mock.patch("apache_beam.io.WriteToPubSub", topics.write),
        ):
            main.run(argv)
        published = [json.loads(message.data) for message, _, _ in values]
        bins = [json.loads(message.data) for message, _, _ in ledger]
    assert [(row["value"], row["num_reports"], row["status"]) for row in published] == [(v, 400, "ok") for v in "012"]
    assert sum(row["received"] for row in bins) == 400
    assert sum(row["accepted"] for row in bins) == 400
    assert [row["unread_messages"] for row in bins if row["unread_messages"]] == [{"unknown_schema": 1}]


def test_the_page_shows_the_files() -> None:
    page = (DOCS / "yaml.md").read_text("utf-8")
    for path in sorted((DOCS / "yaml").glob("*.yaml")):
        assert f"```yaml\n{path.read_text('utf-8')}```\n" in page, path.name


# ---------------------------------------------------------------- what it takes


@pytest.mark.parametrize("window", ["1h", "15m"])
def test_windows_of_parts_of_hours_are_logged(window: str, caplog: pytest.LogCaptureFixture) -> None:
    """Clients of a collection without client windows round event times to hours."""
    EstimateReports(collections=[KRR.to_json()], window=window)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    begin = f"EstimateReports: collection {KRR.id!r} names no client_window, so clients round event times down to "
    assert [one.startswith(begin) for one in said] == [True] * (window == "15m")


def test_every_output_has_the_rows_of_python(folder: Path) -> None:
    pattern = folder / "reports" / "*.avro"
    text = steps(files=str(pattern), collections=[KRR.to_json()], window="12h", slide="6h", min_reports=1)
    rows = collected(lambda p: p | YamlTransform(text, providers=PROVIDERS))
    assert sorted(rows) == sorted(OUTPUTS)
    assert rows == from_files(pattern, collections=[KRR], window="12h", slide="6h", min_reports=1)
    assert all(rows.values())


class Payload(NamedTuple):
    payload: bytes
    topic: str


class Single(NamedTuple):
    report: Optional[bytes]


class Text(NamedTuple):
    payload: str


def base64_row(message: bytes) -> Text:
    return Text(base64.b64encode(message).decode("ascii"))


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        pytest.param(bytes, bytes, id="bytes"),
        pytest.param(Payload, lambda message: Payload(message, "t"), id="payload"),
        pytest.param(Single, lambda message: Single(message or None), id="one field"),
        pytest.param(Text, base64_row, id="text"),
    ],
)
def test_messages_are_bytes_or_rows(folder: Path, kind: Any, row: Callable[[bytes], Any]) -> None:
    given = [*messages(folder / "open.avro"), b""]
    values = {"collections": [OPEN], "candidates": ["a", "b"], "window": "12h"}
    text = steps({}, collections=[json.dumps(OPEN.to_json())], candidates=["a", "b"], window="12h")

    def build(pipeline: beam.Pipeline) -> Any:
        rows = pipeline | beam.Create([row(message) for message in given]).with_output_types(kind)
        return rows | YamlTransform(text, providers=PROVIDERS)

    rows = collected(build)
    assert rows == from_messages(given, **values)
    assert {entry["value"] for entry in rows["values"]} == {"a", "b"}
    assert [entry["reason"] for entry in rows["rejected"]] == ["malformed"]


def test_what_is_no_message_is_counted_as_a_malformed_one(folder: Path) -> None:
    """In rows that Create of YAML makes, and in a field whose type nobody knows."""
    good = [base64_row(message).payload for message in messages(folder / "reports" / "packed.avro")]
    elements = [{"report": text} for text in [*good, "no base64", "ä", "", None]]
    text = steps({"type": "Create", "name": "Create", "config": {"elements": elements}}, collections=[KRR.to_json()])
    rows = collected(lambda p: p | YamlTransform(text, providers=PROVIDERS))
    assert [(row["reason"], row["num_reports"], row["num_messages"]) for row in rows["rejected"]] == [
        ("malformed", 0, 4)
    ]
    assert sum(row["accepted"] for row in rows["ledger"]) == 1200
    assert sum(row["received"] for row in rows["ledger"]) == 1200

    unknown = RowTypeConstraint.from_fields([("report", Any)])
    rows = collected(
        lambda p: (
            p
            | beam.Create([7, *good])
            | beam.Map(lambda value: beam.Row(report=value)).with_output_types(unknown)
            | EstimateReports(collections=[KRR])
        )
    )
    assert sum(row["received"] for row in rows["ledger"]) == 1200
    assert [(row["reason"], row["num_reports"], row["num_messages"]) for row in rows["rejected"]] == [
        ("malformed", 0, 1)
    ]


class Routed(NamedTuple):
    topic: bytes
    payload: bytes


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        (Routed(b"t", b"\x02"), "payload", b"\x02"),
        (Text("Ag=="), "payload", b"\x02"),
        (Text("Ag"), "payload", b""),
        (Text("A!g=="), "payload", b""),
        (Text("Ag==\n"), "payload", b""),
        (Text("ä"), "payload", b""),
        (Single(None), "report", b""),
        (Single(7), "report", b""),  # type: ignore[arg-type]  # rows of other languages
    ],
)
def test_a_message_is_bytes_or_exact_base64(row: Any, field: str, message: bytes) -> None:
    """Text that is nearly Base64 is damaged: it is counted as malformed, whatever the rest of it would say."""
    assert _message(row, field) == message


@pytest.mark.parametrize("kind", [Routed, Payload, Text, Single])
def test_the_payload_is_a_field_of_its_name_or_the_only_one(kind: Any) -> None:
    rows = beam.Pipeline() | beam.Create([]).with_output_types(kind)
    read = _as_messages(rows)
    assert read.element_type is bytes
    assert read.producer.transform.args[0] == ("report" if kind is Single else "payload")


@pytest.mark.parametrize(
    ("files", "pattern"), [("gs://bucket/*.avro", "gs://bucket/*.avro"), ("in/*.avro", os.path.abspath("in/*.avro"))]
)
def test_files_are_found_from_the_folder_of_who_builds_the_pipeline(files: str, pattern: str) -> None:
    assert EstimateReports(files=files, collections=[KRR])._files == pattern


class Mechanism(NamedTuple):
    id: str
    epsilon: float
    subset_size: Optional[int]


class Alphabet(NamedTuple):
    id: str
    values: Sequence[str]


class Entry(NamedTuple):
    id: str
    version: int
    alphabet: Alphabet
    mechanism: Mechanism
    num_cohorts: Optional[int]


def test_a_specification_is_made_of_what_other_languages_send(folder: Path) -> None:
    entry = Entry("krr", 1, Alphabet("closed", ["0", "1", "2"]), Mechanism("krr", 1.0, None), 3)
    path = str(folder / "collection.json")
    for sent in (entry, {**entry._asdict()}, " " + json.dumps(KRR.to_json()), path, Path(path), KRR):
        spec = JobSpec.of(collections=[sent], candidates=["b", "a"], window="1h", slide=None, estimator=None)
        assert spec == JobSpec.of(collections=(KRR,), candidates=("b", "a"), window="1h")
    alone = entry._replace(num_cohorts=None)
    assert JobSpec.of(collections=[alone]).collections[0].num_cohorts == 1


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"windows": "1h"}, r"EstimateReports takes the keys files, .*, got 'windows'; did you mean 'window'\?"),
        ({"window": "an hour"}, "JobSpec.window must be .*, got 'an hour'"),
        ({"min_reports": "many"}, "JobSpec.min_reports must be an integer .*, got 'many'"),
    ],
)
def test_yaml_shows_our_sentence(config: dict[str, Any], sentence: str) -> None:
    text = steps(files="*.avro", collections=[KRR.to_json()], **config)
    with pytest.raises(ValueError, match=sentence):
        _ = beam.Pipeline(runner="FnApiRunner") | YamlTransform(text, providers=PROVIDERS)
