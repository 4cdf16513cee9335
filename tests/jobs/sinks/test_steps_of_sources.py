"""What each source makes of a command line: which reports it reads, from where to where, and by which reader."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.io.kafka import ReadFromKafka
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from pyarrow import parquet

from tests.support.messages_cases import KRR, container, single, write_files
from uldp_transforms.beam.transforms.read_report_files import ReadReportFiles
from uldp_transforms.jobs.engines.signals import Stop
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.kafka.reader import IDLE_LAG
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME, LOG_APPEND_TIME, moment_of_option
from uldp_transforms.jobs.message_attributes import set_groups_of
from uldp_transforms.jobs.sources import SOURCES, AvroFiles, KafkaTopic, PubSubSubscription, Source
from uldp_transforms.jobs.sources.kafka_topic import KafkaRange, PollKafka, ReadKafka
from uldp_transforms.jobs.sources.pubsub_subscription import _grouped
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.report_tables import NUMBER, PERIOD
from uldp_transforms.windows import MIN_EVENT_TIME, Windows

GROUPED = Collection.from_json(
    KRR.to_json()
    | {"id": "grouped", "dimensions": [{"name": "country", "values": ["at", "de"], "set_by": "attribute"}]}
)
SUBSCRIPTION = "projects/my-project/subscriptions/reports"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"krr.json": KRR, "grouped.json": GROUPED})
    return tmp_path


def arguments(words: str) -> argparse.Namespace:
    known = words if "--collection" in words else f"--collection krr.json {words}"
    return command_line().parse_args(shlex.split(f"--output out {known}"))


def source_of(words: str, *options: str) -> Any:
    args = arguments(words)
    named = next(source for source in SOURCES if getattr(args, source.option[2:]) is not None)
    return named.variant(args).of(args, PipelineOptions(list(options)))


def test_what_a_source_does_not_say_is_usual() -> None:
    """A subclass that names only its option reads a stream that starts anew, has no files and needs no check."""
    args = arguments("--input x")
    assert Source.variant.__func__(AvroFiles, args) is AvroFiles
    source = PubSubSubscription(SUBSCRIPTION)
    assert (source.num_bytes(), source.example(), source.check_windows(None)) == (None, None, None)
    of_files = AvroFiles("x")
    assert of_files.draining(PipelineOptions([]), Stop()) is None
    assert of_files.check_access(PipelineOptions([])) is None
    facts = {source: (source.bounded, source.resumes, source.takes_attributes) for source in SOURCES}
    assert facts[AvroFiles] == (True, False, False)
    assert facts[PubSubSubscription] == (False, True, True)
    assert facts[KafkaTopic] == (False, False, True)
    assert (KafkaRange.bounded, KafkaRange.resumes, KafkaRange.takes_attributes) == (True, False, True)


# ---------------------------------------------------------------------- files


def test_files_have_a_size_an_example_and_a_manifest(folder: Path) -> None:
    empty, full = container([]), container([(1, single())])
    write_files(folder, {"1.avro": empty, "2.avro": full, "m.json": "{}"})
    source = source_of("--input '*.avro' --manifest m.json")
    assert source.num_bytes() == len(empty) + len(full)
    assert source.example() == single()
    assert (source.pattern, source.manifest) == (f"{folder}/*.avro", "m.json")
    assert source_of("--input 1.avro").example() is None
    read = AvroFiles(f"{folder}/*.avro").read(beam.Pipeline())
    assert read.messages.element_type is not bytes, "in groups"
    assert ReadReportFiles(source.pattern, grouped=True).display_data() == {"pattern": source.pattern}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--input .", "--input must be a pattern of file names, got the directory '.'"),
        ("--input 'x*'", "--input must match at least one file, got '{folder}/x*'"),
        ("--input '*.avro' --manifest y", "--manifest must match at least one file, got 'y'"),
        ("--input '*'", "--input must match files that can be read, got the directory '{folder}/inner'"),
    ],
)
def test_patterns_that_match_nothing_of_use_are_refused(words: str, sentence: str, folder: Path) -> None:
    write_files(folder, {"1.avro": b"", "inner/x": ""})
    with pytest.raises(SpecError) as caught:
        source_of(words)
    assert str(caught.value) == sentence.format(folder=folder)


@pytest.mark.parametrize(
    ("periods", "length", "wrong"),
    [
        ([60_000, 600_000], 600_000, None),
        ([60_000, 600_000], 300_000, 600_000),
        ([0, 60_000], 60_000, 0),
        ([1], 1, None),
        ([700_000, 900_000], 600_000, 700_000),
    ],
)
def test_counted_rows_fit_whole_windows(periods: list[int], length: int, wrong: int | None, folder: Path) -> None:
    reports = {"collection": [b"c"], "event_time": [0], "cohort": [0], "payload": [b"x"], NUMBER: [1]}
    counted = {name: column * len(periods) for name, column in reports.items()} | {PERIOD: periods}
    parquet.write_table(pa.table(counted), folder / "1.parquet")
    write_files(folder, {"2.parquet": container([])})
    source = AvroFiles(f"{folder}/*.parquet")
    source.check_windows(None)
    if wrong is None:
        source.check_windows(Windows(size=length))
        return
    with pytest.raises(SpecError) as caught:
        source.check_windows(Windows(size=length))
    assert str(caught.value) == (
        f"--window must consist of whole periods of {wrong} ms, in which the rows of '{folder}/1.parquet' were "
        "counted, as must --slide and --window_offset; count again with another --period of uldp sql"
    )


# ---------------------------------------------------------------------- Pub/Sub


@pytest.mark.parametrize("grouped", [False, True])
def test_attributes_are_read_where_they_set_a_dimension(grouped: bool) -> None:
    of = "--collection grouped.json --dimension country=attribute:cc" if grouped else "--collection krr.json"
    source = source_of(f"--subscription {SUBSCRIPTION} {of}")
    messages = source.read(beam.Pipeline(options=PipelineOptions(["--streaming"])))
    assert messages.element_type is bytes
    read = messages.producer.inputs[0].producer if grouped else messages.producer
    while read.full_label != "ReadPubSub":
        read = read.parent
    assert read.transform.with_attributes is grouped
    assert read.transform._source.full_subscription == SUBSCRIPTION


@pytest.mark.parametrize(("attributes", "group"), [({"cc": "de"}, "de"), ({"cc": "fr"}, None), (None, None)])
def test_an_attribute_becomes_the_group_of_a_report(attributes: dict[str, str] | None, group: str | None) -> None:
    set_groups = set_groups_of(arguments("--collection grouped.json --dimension country=attribute:cc --input x"))
    assert set_groups is not None
    [sent] = _messages(GROUPED)
    message = _grouped(PubsubMessage(sent, attributes or {}), set_groups)
    decoded = MessageDecoder(CollectionCatalog((GROUPED,))).decode([message])
    [batch] = decoded.batches
    others = set_groups.in_message(sent, (("cc", group or "unknown"),))
    assert message == others
    assert len(batch) == 1
    assert set_groups_of(arguments("--input x")) is None


def _messages(of: Collection) -> list[bytes]:
    return wire.encode_reports(of.perturb(["0"]))


def test_only_the_local_engine_is_drained_and_asked_for_access() -> None:
    source = PubSubSubscription(SUBSCRIPTION)
    elsewhere = PipelineOptions(["--runner=DataflowRunner"])
    assert source.draining(elsewhere, Stop()) is None
    assert source.check_access(elsewhere) is None  # type: ignore[func-returns-value]  # would need credentials
    chosen = PipelineOptions([])
    PubSubSubscription.of(arguments(f"--subscription {SUBSCRIPTION}"), chosen)
    assert chosen.view_as(StandardOptions).streaming
    assert source.draining(chosen, Stop()) is not None


# ---------------------------------------------------------------------- Kafka

KAFKA = "--kafka_topic t --bootstrap_servers a:1"
FLINK = "--runner=FlinkRunner"


def test_kinds_of_times_have_the_names_of_beams_reader() -> None:
    assert (ReadFromKafka.create_time_policy, ReadFromKafka.log_append_time) == (CREATE_TIME, LOG_APPEND_TIME)


@pytest.mark.parametrize(
    ("words", "options", "kind"),
    [
        ("--kafka_until now", (), PollKafka),
        ("--kafka_until now", (FLINK,), PollKafka),
        ("", (FLINK,), ReadKafka),
        ("--kafka_reader python", (FLINK,), PollKafka),
        ("", ("--runner=PrismRunner",), PollKafka),
        ("--kafka_reader java", (FLINK,), ReadKafka),
    ],
)
def test_who_reads_a_topic(words: str, options: tuple[str, ...], kind: type[Any]) -> None:
    source = source_of(f"{KAFKA} {words}", *options)
    assert type(source.records) is kind
    assert type(source) is (KafkaRange if words == "--kafka_until now" else KafkaTopic)
    if kind is PollKafka:
        assert source.records._ends is ("now" in words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", (CREATE_TIME, IDLE_LAG, 1, None, None)),
        (f"--kafka_timestamps {LOG_APPEND_TIME} --kafka_idle_lag 0s", (LOG_APPEND_TIME, 0, 1, None, None)),
        ("--kafka_readers 3 --kafka_from 7", (CREATE_TIME, IDLE_LAG, 3, 7_000, None)),
    ],
)
def test_a_stream_is_read_as_the_options_say(words: str, said: tuple[Any, ...]) -> None:
    records = source_of(f"{KAFKA} --kafka_reader python {words}", FLINK).records
    reading = records._reading
    found = (reading.kind_of_times, reading.idle_lag, reading.readers, records._since, records._until)
    assert found == said
    assert (records._topic, reading.settings.servers, records._ends) == ("t", "a:1", False)


def test_a_range_is_between_two_times() -> None:
    records = source_of(f"{KAFKA} --kafka_from 1970-01-01T00:00:07Z --kafka_until 9").records
    assert (records._since, records._until, records._ends) == (7_000, 9_000, True)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1.001", 1_001),  # as a float it is 1000.9999999999999 ms
        ("1.0009", 1_000),
        ("-0.0001", -1),
        ("0", 0),
        ("1970-01-01T01:00:00.500+01:00", 500),
        ("1900-01-01T00:00:00z", MIN_EVENT_TIME),
    ],
)
def test_times_are_exact_and_rounded_down(text: str, moment: int) -> None:
    assert moment_of_option(text, "--kafka_from") == moment


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "nan", "1e9", "1_000", " 1", "\u0661", "1970-01-01", "1970-01-01T00:00:00", "now"),
        *(
            "1899-12-31T23:59:59Z",
            "9999-12-31T23:59:59Z",
            "999999999999",
            "2016-12-31T23:59:60Z",
            "2017-02-29T00:00:00Z",
        ),
    ],
)
def test_other_times_of_a_range_are_refused(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        moment_of_option(text, "--kafka_from")
    assert str(caught.value) == f"--kafka_from must be RFC 3339 or seconds since 1970, got {text!r}"


@pytest.mark.parametrize("option", ["--kafka_from", "--kafka_until"])
def test_a_range_ends_in_the_past(option: str) -> None:
    soon = int(time.time()) + 3600
    now = "--kafka_until now" if option == "--kafka_from" else ""
    with pytest.raises(SpecError, match=rf"^{option} must be a time that has passed, got '{soon}'$"):
        source_of(f"{KAFKA} {now} {option} {soon}")


def test_java_reads_from_the_first_record_with_the_settings_that_are_given() -> None:
    words = f"--kafka_property security.protocol=SSL --kafka_timestamps {LOG_APPEND_TIME} --expansion_service b:2"
    records = source_of(f"{KAFKA} {words}", FLINK).records
    assert records._properties == {"security.protocol": "SSL"}
    found = (records._servers, records._topic, records._timestamps, records._expansion_service)
    assert found == ("a:1", "t", LOG_APPEND_TIME, "b:2")
    assert source_of(KAFKA, FLINK).records._timestamps == CREATE_TIME


@pytest.mark.parametrize(
    ("words", "options", "sentence"),
    [
        (
            f"{KAFKA} --collection grouped.json --dimension country=attribute:cc",
            (FLINK,),
            "--dimension needs --kafka_reader python, got java",
        ),
        (
            f"{KAFKA} --kafka_readers 2",
            ("--runner=PrismRunner",),
            "--kafka_readers must be 1 on PrismRunner, which mixes up their watermarks, got 2",
        ),
        ("--kafka_topic t", (FLINK,), "--kafka_topic needs --bootstrap_servers, got none"),
        (f"{KAFKA} --kafka_readers 2", (FLINK,), "--kafka_readers needs --kafka_reader python, got java"),
        (
            f"{KAFKA} --kafka_reader python --expansion_service b:2",
            (FLINK,),
            "--expansion_service needs --kafka_reader java, got python",
        ),
        (
            f"{KAFKA} --kafka_until then",
            (),
            "--kafka_until must be RFC 3339 or seconds since 1970, got 'then'",
        ),
        (
            f"{KAFKA} --kafka_until 1 --kafka_from now",
            (),
            "--kafka_from must be RFC 3339 or seconds since 1970, got 'now'",
        ),
    ],
)
def test_options_of_kafka_that_contradict_each_other(words: str, options: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        source_of(words, *options)
    assert str(caught.value) == sentence
