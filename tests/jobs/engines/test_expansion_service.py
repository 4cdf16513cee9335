"""EstimateReports through Beam's Python expansion service, in another process; from Java too, if it is in the cache."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import yaml
from apache_beam.transforms.external import ExternalTransform, ImplicitSchemaPayloadBuilder
from apache_beam.yaml.yaml_provider import load_providers
from apache_beam.yaml.yaml_transform import YamlTransform

from tests.rigs import service
from tests.rigs.flink import cached
from tests.rigs.flink.cluster import cluster
from tests.rigs.java import __main__ as java
from tests.support import replay
from tests.support.messages_cases import KRR
from tests.support.named_outputs import (
    OPEN,
    OUTPUTS,
    collected,
    from_files,
    from_messages,
    messages,
    write_reports,
)

URN = "beam:transforms:python:fully_qualified_named"
FOREIGN = "uldp_transforms.spec.job_spec.os.getcwd"
PAGE = (Path(__file__).parents[3] / "docs" / "other-languages.md").read_text("utf-8")
needs_flink = pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing()))
needs_java = pytest.mark.skipif(java.missing() is not None, reason=str(java.missing()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("service")
    write_reports(folder)
    return folder


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with service.expansion_service(tmp_path_factory.mktemp("log")) as address:
        yield address


def call(address: str, constructor: str = service.TRANSFORM, **kwargs: Any) -> ExternalTransform:
    payload = ImplicitSchemaPayloadBuilder({"constructor": constructor, "kwargs": kwargs})
    return ExternalTransform(URN, payload, address)


def test_python_gets_all_outputs_for_messages(folder: Path, address: str) -> None:
    given = [*messages(folder / "open.avro"), *messages(folder / "reports" / "single.avro"), b"no report"]
    values: dict[str, Any] = {
        "window": "12h",
        "slide": "6h",
        "candidates": ["a", "b"],
        "min_reports": 1,
        "deduplicate": True,
    }
    texts = [json.dumps(OPEN.to_json()), str(folder / "collection.json")]
    rows = collected(lambda p: p | beam.Create(given) | call(address, collections=texts, **values))
    assert sorted(rows) == sorted(OUTPUTS)
    assert rows == from_messages(given, collections=[OPEN, KRR], **values)
    assert all(rows.values())


def test_python_gets_all_outputs_for_files(folder: Path, address: str) -> None:
    """With a collection that goes as a row."""
    pattern = folder / "reports" / "*.avro"
    rows = collected(lambda p: p | call(address, files=str(pattern), collections=[KRR.to_json()], window="12h"))
    assert rows == from_files(pattern, collections=[KRR], window="12h")
    assert [row["source"] for row in rows["rejected"]] == ["broken.avro"]


def test_the_page_has_a_client_that_works(folder: Path, address: str) -> None:
    names: dict[str, Any] = {}
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(code.replace("collection.json", str(folder / "collection.json")), names)
    given = messages(folder / "reports" / "packed.avro")
    rows = collected(lambda p: names["estimates"](p | beam.Create(given), address))
    assert rows == from_messages(given, collections=[KRR], window="6h")


def test_yaml_calls_the_service(folder: Path, address: str) -> None:
    arguments = {"files": str(folder / "reports" / "*.avro"), "collections": [str(folder / "collection.json")]}
    config = {"constructor": service.TRANSFORM, "kwargs": arguments | {"window": "12h"}}
    provider = {"type": "remote", "config": {"address": address}, "transforms": {"Remote": URN}}
    step = {"type": "Remote", "input": {}, "config": config}
    outputs = {name: f"Remote.{name}" for name in OUTPUTS}
    text = yaml.safe_dump({"type": "composite", "transforms": [step], "output": outputs})
    (folder / "remote.yaml").write_text(yaml.safe_dump([provider]), "utf-8")
    providers = load_providers(str(folder / "remote.yaml"))
    rows = collected(lambda p: p | YamlTransform(text, providers=providers))
    assert rows == from_files(folder / "reports" / "*.avro", collections=[KRR], window="12h")


def test_a_stream_is_known_as_one(folder: Path, address: str) -> None:
    values: dict[str, Any] = {"collections": [str(folder / "collection.json")]}
    stream = replay.stream([replay.watermark(0)])
    with pytest.raises(RuntimeError, match=r"SpecError: an unbounded input needs JobSpec\.window"):
        _ = beam.Pipeline(options=replay.stream_options()) | stream | call(address, **values)


def test_the_page_has_the_command() -> None:
    program = " ".join(service.command(8097)[1:])
    assert program in " ".join(PAGE.replace("\\\n", " ").split())


@pytest.mark.parametrize(
    ("constructor", "kwargs", "sentence"),
    [
        (service.TRANSFORM, {"window": "1h"}, "SpecError: JobSpec needs the key 'collections', got 'window'"),
        (service.TRANSFORM, {"collections": ["{"]}, "SpecError: Collection must be JSON, got an error in line 1: "),
        (FOREIGN, {}, f'"{FOREIGN}" not allowed by filter'),
    ],
)
def test_refusals_reach_the_caller(address: str, constructor: str, kwargs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(sentence)):
        _ = beam.Pipeline(runner="FnApiRunner") | beam.Create([b""]) | call(address, constructor, **kwargs)


# ---------------------------------------------------------------- Java


@pytest.mark.slow
@needs_java
def test_java_gets_all_outputs(folder: Path, tmp_path: Path) -> None:
    with java.job_service(tmp_path) as jobs:
        check_java(folder, tmp_path, jobs)


@pytest.mark.slow
@needs_java
@needs_flink
def test_java_gets_all_outputs_on_flink(folder: Path, tmp_path: Path) -> None:
    with cluster(tmp_path) as flink:
        check_java(folder, tmp_path, flink.job_endpoint)


def check_java(folder: Path, empty: Path, jobs: str) -> None:
    """Whether Java prints what Python gets."""
    reports = folder / "reports" / "single.avro"
    printed = java.run(empty, java.as_lines(reports), folder / "collection.json", jobs)
    expected = from_messages(messages(reports), collections=[KRR], window="6h")
    assert printed[-1] == "DONE"
    for name in OUTPUTS:
        lines = [line for line in printed if line.startswith(f"{name} ")]
        assert len(lines) == len(expected[name]), name
        if name in ("values", "ledger", "counts"):  # the others have inner rows, or none
            assert sorted(map(plain, lines)) == sorted(f"{name} {java_row(row)}" for row in expected[name])


def plain(line: str) -> str:
    """A line of Java with numbers as Python writes them."""
    return re.sub(r"\d+\.\d+(E-?\d+)?", lambda found: repr(float(found[0])), line)


def java_row(row: dict[str, Any]) -> str:
    """The values of a row as Java prints them."""
    words = {True: "true", False: "false", None: "null"}
    texts = [words[v] if v is None or isinstance(v, bool) else str(v) for v in row.values()]
    return f"[{', '.join(texts)}]"


@needs_java
def test_jars_are_the_pinned_ones() -> None:
    assert java.JARS.mismatches() == []


def test_the_page_shows_a_part_of_the_class() -> None:
    (shown,) = re.findall(r"```java\n(.*?)```\n", PAGE, flags=re.DOTALL)
    assert textwrap.indent(shown, "    ") in java.PROGRAM.read_text("utf-8")


def test_what_java_needs_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java.missing() == "javac is not on PATH"


def test_what_does_not_end_well_is_quoted() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)ended with 3: \nwhy$"):
        java._run([sys.executable, "-c", "import sys; print(file=sys.stdout); sys.stderr.write('why'); sys.exit(3)"])
