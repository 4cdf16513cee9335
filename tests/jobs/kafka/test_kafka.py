"""The step that reads Kafka, up to the border of Java: an expansion service in Python stands on the other side.

With Java's own, with a broker and on Flink: ``tests/jobs/engines/test_flink.py``.
"""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import apache_beam as beam
import grpc
import pytest
from apache_beam.coders import RowCoder
from apache_beam.io.kafka import ReadFromKafka
from apache_beam.options.pipeline_options import DebugOptions, PipelineOptions, StandardOptions
from apache_beam.portability.api import beam_expansion_api_pb2_grpc, external_transforms_pb2
from apache_beam.runners.portability.expansion_service import ExpansionServiceServicer
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from tests.support import replay
from tests.support.messages_cases import KRR, NOON, single, write_files
from uldp_transforms.jobs.estimate.run import configure
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME, LOG_APPEND_TIME
from uldp_transforms.jobs.sources.kafka_topic import KafkaTopic, ReadKafka
from uldp_transforms.windows import Windows, rfc3339

HOUR = 3_600_000
RECORDS = [  # key, value, time of the record in milliseconds
    (b"key", single(), NOON),
    (None, single(), NOON + 3 * HOUR),
    (b"key", single(), NOON - HOUR),
    (b"key", None, NOON),
]
REQUESTS: list[dict[str, Any]] = []
"""What the expansion service was asked for."""


@beam.PTransform.register_urn(ReadFromKafka.URN_WITHOUT_METADATA, None)
class _Records(beam.PTransform):
    """Some records in place of a topic's, with the types that Java declares."""

    def __init__(self, payload: bytes):
        super().__init__()
        request = external_transforms_pb2.ExternalConfigurationPayload.FromString(payload)
        REQUESTS.append(RowCoder(request.schema).decode(request.payload)._asdict())

    @staticmethod
    def from_runner_api_parameter(_: Any, payload: bytes, __: Any) -> _Records:
        return _Records(payload)

    def expand(self, begin: beam.Pipeline) -> beam.PCollection[tuple[bytes | None, bytes | None]]:
        timed = [TimestampedValue((key, value), Timestamp(micros=1000 * time)) for key, value, time in RECORDS]
        records = begin | beam.Create(timed).with_output_types(tuple[bytes | None, bytes | None])
        records.is_bounded = False
        return records


@pytest.fixture
def service() -> Iterator[str]:
    REQUESTS.clear()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    beam_expansion_api_pb2_grpc.add_ExpansionServiceServicer_to_server(ExpansionServiceServicer(), server)
    port = server.add_secure_port("localhost:0", grpc.local_server_credentials())
    server.start()
    yield f"localhost:{port}"
    server.stop(None).wait()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, {"krr.json": KRR})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_records_become_messages_that_arrive_at_their_own_time(service: str) -> None:
    """One counts, one is too old, one too early, and a record without value is a message that cannot be read."""
    kafka = KafkaTopic(ReadKafka("localhost:9092", "reports", expansion_service=service))
    options = PipelineOptions(["--runner=FnApiRunner"])
    job = replay.streaming_job([KRR], Windows(size=HOUR), allowed_lateness=HOUR, options=options)
    rows = replay.replay(dataclasses.replace(job, source=kafka))
    ledger = replay.sum_ledger(rows["ledger"])
    begin = rfc3339(NOON // HOUR * HOUR)
    assert ledger == {(KRR.fingerprint.hex(), begin): {"received": 3, "accepted": 1, "too_old": 1, "too_early": 1}}
    assert [row.unread_messages for row in rows["ledger"] if row.unread_messages] == [{"malformed": 1}]


@pytest.mark.parametrize("timestamps", [CREATE_TIME, LOG_APPEND_TIME])
def test_java_is_asked_for_the_whole_topic(service: str, timestamps: str, folder: Path) -> None:
    job = "--collection krr.json --window 1h --output out --runner PortableRunner --job_endpoint localhost:1"
    source = f"--kafka_topic reports --bootstrap_servers one:9092,two:9092 --kafka_timestamps {timestamps}"
    secured = "--kafka_property security.protocol=SASL_SSL --kafka_property sasl.jaas.config=${file:/p:jaas}"
    configured, _ = configure(f"{job} {source} {secured} --expansion_service {service}".split())
    assert configured.spec.bounded is False
    assert configured.options.view_as(StandardOptions).streaming
    assert configured.options.view_as(DebugOptions).experiments == ["use_deprecated_read"]
    [request] = REQUESTS
    asked = {name: value for name, value in request.items() if value is not None}
    deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    assert asked == {
        "consumer_config": {
            "bootstrap.servers": "one:9092,two:9092",
            "auto.offset.reset": "earliest",
            "security.protocol": "SASL_SSL",
            "sasl.jaas.config": "${file:/p:jaas}",
        },
        "topics": ["reports"],
        "key_deserializer": deserializer,
        "value_deserializer": deserializer,
        "commit_offset_in_finalize": False,
        "timestamp_policy": timestamps,
        "consumer_polling_timeout": 2,
        "redistribute": False,
        "redistribute_num_keys": 0,
        "allow_duplicates": False,
    }


def address_of_this_machine() -> str:
    """One that is not of the loopback interface; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def test_the_expansion_service_may_be_on_another_machine(folder: Path) -> None:
    """As in containers; Beam's own client refuses addresses that are not of this machine."""
    try:
        address = address_of_this_machine()
    except OSError:
        pytest.skip("this machine has no network")
    REQUESTS.clear()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    beam_expansion_api_pb2_grpc.add_ExpansionServiceServicer_to_server(ExpansionServiceServicer(), server)
    port = server.add_insecure_port(f"{address}:0")
    server.start()
    pipeline = beam.Pipeline()
    KafkaTopic(ReadKafka("localhost:9092", "reports", expansion_service=f"{address}:{port}")).read(pipeline)
    server.stop(None).wait()
    assert [request["topics"] for request in REQUESTS] == [["reports"]]
