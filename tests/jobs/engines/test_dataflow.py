"""Dataflow without Dataflow: the graphs that Beam makes for it, and the launch of the template to a test server."""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import io
import json
import re
import runpy
import socket
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam
import pytest

from tests.servers.google_server import GoogleServer
from tests.support import dataflow_template
from tests.support.messages_cases import KRR, collection, container, single, write_files
from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.files.text_files import read_lines
from uldp_transforms.jobs import cli, estimate
from uldp_transforms.jobs.estimate.options import command_line, read_arguments
from uldp_transforms.jobs.estimate.run import configure
from uldp_transforms.ldp import SpecError

ROOT = Path(__file__).parents[3]
TEMPLATE = ROOT / "deploy/dataflow"
METADATA = json.loads((TEMPLATE / "metadata.json").read_text(encoding="utf-8"))
PARAMETERS = {parameter["name"]: parameter for parameter in METADATA["parameters"]}
OPTIONS = dataflow_template.options()

CLOUD = "--runner DataflowRunner --project my-project --region us-central1 --temp_location gs://bucket/tmp"
STREAM = "--collection krr.json --subscription projects/my-project/subscriptions/reports --window 1h --output out"
FILES = "--collection krr.json --input good.avro --window 1h --output out"
OPEN = collection("open", {"id": "hashed", "num_buckets": 4}, "krr")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, {"krr.json": KRR, "good.avro": container([(1, single())])})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[GoogleServer]:
    with GoogleServer() as server, server.environment():
        yield server


# ---------------------------------------------------------------------- parameters of the template


def test_the_template_offers_the_options_of_the_program():
    """Only such as streams have that need neither Java nor Kafka's client; what it declares is that of the program."""
    assert list(PARAMETERS) == list(OPTIONS)
    offered = {action.dest for action in command_line()._actions if action.dest != "help"}
    assert offered - set(PARAMETERS) == dataflow_template.NOT_OFFERED
    assert {"subscription", "window"} == dataflow_template.STREAMS_NEED
    for name, parameter in PARAMETERS.items():
        needed = OPTIONS[name].required or name in ("subscription", "window")
        assert parameter.get("isOptional", False) == (not needed), name
        default = OPTIONS[name].default
        assert parameter.get("defaultValue") == (None if default is None else str(default).lower()), name


def test_the_template_is_exactly_once():
    assert (METADATA["supportsExactlyOnce"], METADATA["supportsAtLeastOnce"]) == (True, False)


LENGTHS = ["90s", "15m", "1h", "1d", "500ms", "1w", "P7D", "P1W", "PT90S"]
NO_LENGTHS = ["", "1", "h", "1.5h", "-1h", "1 h", "1y", "P1Y", "PT"]
GOOD_AND_BAD = {
    cli.duration("").pattern: (LENGTHS, [*NO_LENGTHS, "1mo", "P1M"]),
    cli.window_length("").pattern: ([*LENGTHS, "1mo", "P1M"], NO_LENGTHS),
    cli.positive().pattern: (["1", "100"], ["0", "-1", "1.5", "all"]),
    cli.share.pattern: (["0", "0.5", ".99", "1"], ["", "-1", "1.5", "2", "all", "nan"]),
    cli.confidence.pattern: (["0.5", ".99", "0.95"], ["", "0", "1", "1.5", "95", "0.0", "-0.5"]),
    cli.names.pattern: (["", "arm", "country,arm", "Arm", "arm;country"], []),
    cli.dimension_from("attribute").pattern: (
        ["country=attribute:cc", "a_1=attribute:x-y:z"],
        [
            "",
            "country",
            "country=cc",
            "country=header:cc",
            "Country=attribute:cc",
            "country=attribute:",
            "a=attribute:b c",
        ],
    ),
    cli.numbers.pattern: (["0", "15,60", "-1.5,.5,30"], ["", "15;60", "15,", "all"]),
    cli.SWITCH["type"].pattern: (["true", "false"], ["", "yes", "True"]),
    cli.resource("subscriptions").pattern: (
        ["projects/p/subscriptions/s"],
        ["s", "projects/p/topics/t", "projects//subscriptions/s"],
    ),
    cli.resource("topics").pattern: (["projects/p/topics/t"], ["t", "projects/p/subscriptions/s"]),
    cli.dataset.pattern: (
        ["my-project:d", "example.com:my-project:My_Data"],
        ["d", "my-project", "my-project.d", "my-project:d.t", "My-project:d"],
    ),
}
"""Texts for each type of option."""
ANY_TEXT = {
    "collection": ["gs://b/c.json", "gs://b/c/*.json"],
    "output": ["gs://b/o"],
    "timezone": ["Europe/Berlin", "Etc/GMT+5", "UTC"],
    "estimator": ["eb", "em"],
    "candidates": ["gs://b/c.txt"],
}
"""Texts for options that the program takes as they are; files are those of Cloud Storage here."""


def examples(name: str) -> tuple[list[str], list[str]]:
    """What a parameter takes, and what it does not."""
    action = OPTIONS[name]
    if action.choices:
        return list(action.choices), ["first", ""]
    if isinstance(action.type, cli.OptionType):
        return GOOD_AND_BAD[action.type.pattern]
    return ANY_TEXT.get(name, ["text"]), []


def allowed_by_template(name: str, value: str) -> bool:
    return all(re.fullmatch(pattern, value) for pattern in PARAMETERS[name]["regexes"])


def allowed_by_program(name: str, value: str) -> bool:
    action = OPTIONS[name]
    try:
        read = action.type(value) if callable(action.type) else value
    except argparse.ArgumentTypeError:
        return False
    return action.choices is None or read in action.choices


@pytest.mark.parametrize("name", PARAMETERS)
def test_template_and_program_allow_the_same(name):
    for texts, good in zip(examples(name), (True, False)):
        for text in texts:
            assert allowed_by_template(name, text) == allowed_by_program(name, text) == good, text


# ---------------------------------------------------------------------- the image


def test_the_image_has_this_beam_and_all_packages():
    lines = (TEMPLATE / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert f"FROM apache/beam_python3.11_sdk:{apache_beam.__version__}" in lines
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    needed = ["setup.py", "README.md", "schemas", "uldp_transforms", "deploy/dataflow/main.py"]
    assert set(needed) <= {name for names in copied for name in names}
    assert all((ROOT / name).exists() for names in copied for name in names)


# ---------------------------------------------------------------------- launching


def test_the_template_is_launched(server, monkeypatch):
    """As its launcher does it: the job is described in a file on Cloud Storage, and the program ends."""
    server.objects["bucket/collections/krr.json"] = json.dumps(KRR.to_json()).encode()
    server.objects["bucket/collections/open.json"] = json.dumps(OPEN.to_json()).encode()
    delays = collection("delays", {"id": "ordered", "low": 0, "high": 60, "num_bins": 4}, "sw")
    server.objects["bucket/collections/delays.json"] = json.dumps(delays.to_json()).encode()
    server.objects["bucket/candidates.txt"] = "\ufeffant\r\nbee\r\n".encode()
    server.objects["bucket/sums.json"] = b'{"insects": ["ant", "bee"]}'
    parameters = {name: examples(name)[0][0] for name in PARAMETERS} | {
        "collection": "gs://bucket/collections/*.json",
        "subscription": "projects/my-project/subscriptions/reports",
        "output": "gs://bucket/out",
        "window": "1w",
        "slide": "1w",
        "window_offset": "1d",
        "candidates": "gs://bucket/candidates.txt",
        "sums": "gs://bucket/sums.json",
        "show": "4",
        "limits": "15,30",
        "quantiles": "0.5",
        "discover": "false",
        "write_counts": "false",
        "output_topic": "projects/my-project/topics/estimates",
        "rejected_topic": "projects/my-project/topics/rejected",
        "bigquery": "my-project:reports",
    }
    assert set(parameters) == set(PARAMETERS)
    assert all(allowed_by_template(name, value) for name, value in parameters.items())
    del parameters["liars"]  # for closed alphabets, without numbers
    del parameters["dimension"]  # for collections that have it
    given = [f"--{name}={value}" for name, value in parameters.items()]
    described = "--job_name reports --staging_location gs://bucket/staging --template_location gs://bucket/job_object"
    monkeypatch.setattr(sys, "argv", ["main.py", *given, *f"{CLOUD} {described}".split()])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(TEMPLATE / "main.py"), run_name="__main__")
    assert ended.value.code == 0
    job = json.loads(server.objects["bucket/job_object"])
    assert (job["name"], job["type"]) == ("reports", "JOB_TYPE_STREAMING")
    assert {"use_runner_v2", "enable_streaming_engine"} <= set(job["environment"]["experiments"])
    [graph] = [name for name in server.objects if fnmatch.fnmatch(name, "bucket/staging/*/pipeline.pb")]
    assert b"beam:transform:pubsub_read:v1" in server.objects[graph]


LIMITS = {"most": 9, "longest": 9}


def test_configurations_are_read_from_cloud_storage(server):
    server.objects["bucket/c/krr.json"] = json.dumps(KRR.to_json()).encode()
    server.objects["bucket/c/open.json"] = json.dumps(OPEN.to_json()).encode()
    server.objects["bucket/values.txt"] = "\ufeffant \r\n\r\n bee".encode()
    server.objects["bucket/latin.txt"] = b"\xe4"
    server.objects["bucket/twice.json"] = b'{"id": "a", "id": "b"}'
    assert read_collections(cli.matching("--collection", ["gs://bucket/c/*.json"])) == [KRR, OPEN]
    server.objects["bucket/values.txt.gz"] = gzip.compress(server.objects["bucket/values.txt"])
    for path in ("gs://bucket/values.txt", "gs://bucket/values.txt.gz"):
        assert read_lines(path, **LIMITS) == ["ant", "bee"]
    for call, sentence in (
        (
            lambda: read_lines("gs://bucket/latin.txt", **LIMITS),
            "gs://bucket/latin.txt must be a UTF-8 text file, got other",
        ),
        (lambda: read_collections(["gs://bucket/twice.json"]), "gs://bucket/twice.json must not repeat a key, got"),
        (lambda: cli.matching("--collection", ["gs://bucket/d/*"]), "--collection must match at least one file, got"),
    ):
        with pytest.raises(SpecError, match=re.escape(sentence)):
            call()


def test_code_is_packed_for_workers_of_a_plain_image(server, folder):
    options = f"--job_name reports --template_location gs://bucket/job --setup_file {ROOT / 'setup.py'}"
    assert estimate.main(f"{STREAM} {CLOUD} {options}".split()) == 0
    [name] = [name for name in server.objects if name.endswith("workflow.tar.gz")]
    with tarfile.open(fileobj=io.BytesIO(server.objects[name])) as archive:
        inside = {path.partition("/")[2] for path in archive.getnames()}
    for package in ("schemas", "uldp_transforms"):
        ours = [path for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".avsc")]
        assert {str(path.relative_to(ROOT)) for path in ours} <= inside


# ---------------------------------------------------------------------- graphs


def launched(argv: str) -> Any:
    """The job that Beam would send to Dataflow."""
    _, pipeline = configure(f"{argv} {CLOUD} --dry_run=True".split())
    return pipeline.run().job


def urns(job: Any) -> list[str]:
    return [transform.spec.urn for transform in job.proto_pipeline.components.transforms.values()]


def names(job: Any) -> set[str]:
    return {transform.unique_name for transform in job.proto_pipeline.components.transforms.values()}


TO_TOPICS = "--output_topic projects/my-project/topics/estimates --rejected_topic projects/my-project/topics/rejected"


@pytest.mark.parametrize(
    "more",
    [
        "",
        "--slide 10m --deduplicate --early_every 60s --write_counts",
        f"--release final {TO_TOPICS} --bigquery my-project:d",
    ],
)
def test_streams(server, folder, more):
    job = launched(f"{STREAM} {more}")
    assert job.proto.type.name == "JOB_TYPE_STREAMING"
    found = urns(job)
    assert found.count("beam:transform:pubsub_read:v1") == 1
    assert found.count("beam:transform:pubsub_write:v1") == (2 if "topic" in more else 0)
    inserts = {name for name in names(job) if name.endswith("StreamInsertRows")}
    assert len(inserts) == (4 if "bigquery" in more else 0)


@pytest.mark.parametrize("more", ["--slide 10m --deduplicate --write_counts", "--bigquery my-project:d"])
def test_files(server, folder, more):
    job = launched(f"{FILES} {more}")
    assert job.proto.type.name == "JOB_TYPE_BATCH"
    assert not [urn for urn in urns(job) if "pubsub" in urn]
    loads = {name for name in names(job) if name.endswith("TriggerLoadJobsWithoutTempTables")}
    assert len(loads) == (4 if "bigquery" in more else 0)


@pytest.mark.parametrize("option", ["--dataflow_service_options", "--experiments"])
def test_at_least_once_is_refused(server, folder, option):
    argv = f"{STREAM} {CLOUD} --deduplicate --dry_run=True {option}=streaming_mode_at_least_once".split()
    with pytest.raises(
        SpecError, match="must be exactly-once, because reports would count twice, got streaming_mode_at_least"
    ):
        configure(argv)


# ---------------------------------------------------------------------- dry runs


@pytest.fixture
def without_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Addresses that this process asked for; none can be reached, and there are no credentials."""
    asked: list[Any] = []

    def refuse(*args: Any, **_: Any) -> Any:
        asked.append(args)
        raise OSError("no network")

    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "PUBSUB_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return asked


@pytest.mark.parametrize(
    ("argv", "read"),
    [
        pytest.param(f"{STREAM} --output gs://bucket/out --bigquery my-project:d", "pubsub_read", id="stream"),
        pytest.param(f"{FILES} --output gs://bucket/out", "impulse", id="files"),
    ],
)
def test_a_dry_run_prints_the_graph_without_credentials(folder, without_network, capsys, argv, read):
    argv = argv.replace("--output out ", "")
    assert estimate.main(f"{argv} {CLOUD} --dry_run=True".split()) == 0
    graph = json.loads(capsys.readouterr().out)
    transforms = graph["components"]["transforms"].values()
    assert f"beam:transform:{read}:v1" in {transform.get("spec", {}).get("urn") for transform in transforms}
    assert "EstimateReports" in {transform["unique_name"].partition("/")[0] for transform in transforms}
    assert without_network == []
    assert sorted(path.name for path in folder.iterdir()) == ["good.avro", "krr.json"]


@pytest.mark.parametrize(
    ("locations", "sentence"),
    [
        ("--temp_location gs://b/tmp", "--temp_location must be gs://BUCKET/FOLDER, {bucket}, got 'gs://b/tmp'"),
        ("--temp_location gs://bucket", "--temp_location must be gs://BUCKET/FOLDER, {bucket}, got 'gs://bucket'"),
        ("--temp_location tmp", "--temp_location must be gs://BUCKET/FOLDER, {bucket}, got 'tmp'"),
        (
            "--temp_location gs://bucket/tmp --staging_location gs://b/s",
            "--staging_location must be gs://BUCKET/FOLDER, {bucket}, got 'gs://b/s'",
        ),
        ("", "--dry_run needs --temp_location gs://BUCKET/FOLDER, got none"),
    ],
)
def test_a_bucket_that_cannot_be_is_one_sentence(folder, without_network, capsys, locations, sentence):
    """Beam would ask Google for a bucket of its own choice instead, or create it."""
    argv = f"{STREAM} --runner DataflowRunner --project my-project --region us-central1 {locations} --dry_run=True"
    assert estimate.main(argv.split()) == 2
    bucket = "with a bucket of at least 3 of the characters a-z, 0-9, '-', '_' and '.'"
    assert capsys.readouterr() == ("", f"estimate: {sentence.format(bucket=bucket)}\n")
    assert without_network == []


def test_a_relative_output_is_that_of_the_launching_process(folder):
    """Workers of other engines have directories of their own; this process keeps the path that it was given."""
    for runner, output in (("DirectRunner", "out"), ("PrismRunner", str(folder / "out"))):
        job = read_arguments(f"{FILES} --runner {runner}".split())
        assert job.directory.path == output
        stored = FILES.replace("--output out", "--output gs://bucket/out")
        job = read_arguments(f"{stored} --runner {runner}".split())
        assert job.directory.path == "gs://bucket/out"


def test_a_dry_run_of_another_engine_is_refused(folder):
    with pytest.raises(SpecError, match="--dry_run needs --runner DataflowRunner, got 'DirectRunner'"):
        configure(f"{FILES} --dry_run=True".split())
