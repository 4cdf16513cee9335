"""Rows that Beam understands without glue: its sinks, data frames and SQL take them, and read back they are equal."""

from __future__ import annotations

import json
import math
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional
from urllib.error import URLError

import apache_beam as beam
import fastavro
import numpy as np
import pyarrow.parquet
import pytest
from apache_beam import coders
from apache_beam.dataframe.convert import to_dataframe, to_pcollection
from apache_beam.io import WriteToAvro, WriteToJson, WriteToParquet, WriteToText
from apache_beam.io.gcp.bigquery_tools import beam_row_from_dict, get_beam_typehints_from_tableschema
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import external_transforms_pb2, schema_pb2
from apache_beam.runners.pipeline_context import PipelineContext
from apache_beam.transforms.sql import SqlTransform
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import schema_from_element_type, typing_to_runner_api
from apache_beam.utils import subprocess_server
from apache_beam.utils.timestamp import Timestamp

from tests.support import replay
from tests.support.messages_cases import KRR, URAP
from tests.support.tolerance import generator
from uldp_transforms import EstimateReports
from uldp_transforms.jobs.sinks.bigquery_tables import native_row, table_schema
from uldp_transforms.messages import wire
from uldp_transforms.rows.avro_fields import time_fields
from uldp_transforms.rows.json_and_avro import as_dict, to_json
from uldp_transforms.rows.row_types import (
    COUNTS_SCHEMA,
    ESTIMATE_SCHEMA,
    HEALTH_SCHEMA,
    LEDGER_SCHEMA,
    REJECTED_SCHEMA,
    VALUE_SCHEMA,
    CurveBin,
    DimensionValue,
    EstimatedValue,
    HealthFinding,
    LedgerRow,
    MeanFigure,
    NumberFigures,
    QuantileFigure,
    RejectedReport,
    ShareBelow,
    ShareFigure,
    ShareInBlock,
    SumFigure,
    SumOfShares,
    ValueEstimate,
    WindowCounts,
    WindowedEstimate,
    WindowHealth,
)

HOUR = 3_600_000

KINDS: dict[str, tuple[Any, Any]] = {  # outputs of EstimateReports
    "estimates": (WindowedEstimate, ESTIMATE_SCHEMA),
    "values": (EstimatedValue, VALUE_SCHEMA),
    "health": (WindowHealth, HEALTH_SCHEMA),
    "ledger": (LedgerRow, LEDGER_SCHEMA),
    "rejected": (RejectedReport, REJECTED_SCHEMA),
    "counts": (WindowCounts, COUNTS_SCHEMA),
}
INNER: dict[str, Any] = {
    "ValueEstimate": ValueEstimate,
    "Finding": HealthFinding,
    **{
        cls.__name__: cls
        for cls in (
            NumberFigures,
            MeanFigure,
            QuantileFigure,
            ShareFigure,
            ShareBelow,
            SumFigure,
            SumOfShares,
            ShareInBlock,
            CurveBin,
            DimensionValue,
        )
    },
}
"""Rows inside of rows, by the names that the Avro schemas give them."""

kinds = pytest.mark.parametrize("name", KINDS)

# ---------------------------------------------------------------------- one definition


def annotation(avro: Any) -> Any:
    """What a field of an Avro type is in Python; a time is its RFC 3339 text."""
    if isinstance(avro, list):
        (branch,) = (branch for branch in avro if branch != "null")
        return Optional[annotation(branch)]  # noqa: UP045  # as rows spell it
    if isinstance(avro, dict):
        if "logicalType" in avro:
            return {"timestamp-millis": str}[avro["logicalType"]]
        if avro["type"] == "array":
            return Sequence[annotation(avro["items"])]
        if avro["type"] == "map":
            return Mapping[str, annotation(avro["values"])]
        return INNER[avro["name"]] if avro["type"] == "record" else {"enum": str}[avro["type"]]
    return {"string": str, "int": int, "long": int, "double": float, "boolean": bool}[avro]


def annotations_of(schema: Any) -> dict[str, Any]:
    return {field["name"]: annotation(field["type"]) for field in schema["fields"]}


def inner_schemas(schema: Any) -> Iterator[Any]:
    for field in schema["fields"]:
        kind = field["type"].get("items", field["type"]) if isinstance(field["type"], dict) else None
        if isinstance(kind, dict) and kind["type"] == "record":
            yield kind
            yield from inner_schemas(kind)


@kinds
def test_fields_and_types_are_those_of_the_avro_schema(name: str) -> None:
    cls, schema = KINDS[name]
    assert list(cls.__annotations__.items()) == list(annotations_of(schema).items())


def test_inner_rows_are_those_of_the_avro_schemas() -> None:
    found = [inner for _, schema in KINDS.values() for inner in inner_schemas(schema)]
    assert {inner["name"] for inner in found} == set(INNER)
    for inner in found:
        assert list(INNER[inner["name"]].__annotations__.items()) == list(annotations_of(inner).items())


def columns(cls: Any, schema: Any) -> list[tuple[str, Any]]:
    """The types that Beam gives to the columns of a table that holds these rows; what came later may be null."""
    times = set(time_fields(schema))
    later = {field["name"] for field in schema["fields"] if field.get("default", []) not in ([], {})}
    kinds = {name: in_bigquery(kind, name in times) for name, kind in cls.__annotations__.items()}
    return [(name, Optional[kind] if name in later else kind) for name, kind in kinds.items()]  # noqa: UP045


def in_bigquery(kind: Any, is_time: bool = False) -> Any:
    """The Python type of a column: a time is one, a map is a repeated record."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        return Optional[in_bigquery(args[0], is_time)]  # noqa: UP045
    if hasattr(kind, "_fields"):
        found = {inner["name"]: inner for _, schema in KINDS.values() for inner in inner_schemas(schema)}
        return RowTypeConstraint.from_fields(columns(kind, found.get(kind.__name__, {"fields": []})))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        entry = RowTypeConstraint.from_fields([("key", str), ("value", in_bigquery(args[1]))])
        return typing.Sequence[entry]  # as Beam spells it
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return typing.Sequence[in_bigquery(args[0])]
    if is_time:
        return Timestamp
    return {int: np.int64, float: np.float64}.get(kind, kind)


@kinds
def test_columns_of_bigquery_are_those_of_the_rows(name: str) -> None:
    cls, schema = KINDS[name]
    of_table = get_beam_typehints_from_tableschema(table_schema(schema))
    assert of_table == columns(cls, schema)


# ---------------------------------------------------------------------- schemas and coders


def kinds_of_fields(schema: schema_pb2.Schema) -> Iterator[str]:
    """URNs of the logical types and names of the others, at any depth."""

    def of(kind: schema_pb2.FieldType) -> Iterator[str]:
        which = kind.WhichOneof("type_info")
        if which == "logical_type":
            yield kind.logical_type.urn
        elif which == "row_type":
            yield from kinds_of_fields(kind.row_type.schema)
        elif which in ("array_type", "iterable_type"):
            yield from of(getattr(kind, which).element_type)
        elif which == "map_type":
            yield from of(kind.map_type.key_type)
            yield from of(kind.map_type.value_type)
        else:
            yield schema_pb2.AtomicType.Name(kind.atomic_type)

    for field in schema.fields:
        yield from of(field.type)


@kinds
def test_schemas_hold_what_every_sdk_knows(name: str) -> None:
    """No pickled Python objects (``pythonsdk_any``) and no logical types, which some of Beam's own sinks refuse."""
    cls, _ = KINDS[name]
    schema = schema_from_element_type(cls)
    assert typing_to_runner_api(cls).row_type.schema.fields == schema.fields
    assert [field.name for field in schema.fields] == list(cls._fields)
    assert set(kinds_of_fields(schema)) <= {"STRING", "INT64", "DOUBLE", "BOOLEAN"}
    assert {field.name: field.type.nullable for field in schema.fields} == {
        field: type(None) in typing.get_args(kind) for field, kind in cls.__annotations__.items()
    }


def test_a_field_that_beam_cannot_name_would_be_found() -> None:
    loose = RowTypeConstraint.from_fields([("anything", Any)])
    assert set(kinds_of_fields(schema_from_element_type(loose))) == {"beam:logical:pythonsdk_any:v1"}


class WithTime(typing.NamedTuple):
    """What rows are not: with a time of Beam."""

    time: Timestamp


@pytest.mark.parametrize(
    ("sink", "refusal"), [(WriteToParquet, NotImplementedError), (WriteToAvro, ValueError), (WriteToJson, None)]
)
def test_beam_does_not_write_its_own_times(sink: Any, refusal: Any, tmp_path: Path) -> None:
    """Why times are texts; when this fails, read ``docs/decisions/0053-rows-and-tables.md`` again."""

    def write() -> None:
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            _ = pipeline | beam.Create([WithTime(Timestamp(5))]).with_output_types(WithTime) | sink(f"{tmp_path}/x")

    if refusal:
        with pytest.raises(refusal, match="logical"):
            write()
    else:
        write()
        (path,) = tmp_path.glob("x*")
        assert isinstance(json.loads(path.read_text("utf-8"))["time"], dict)


# ---------------------------------------------------------------------- a run


def messages() -> list[bytes]:
    """Two hours of two collections, the second hour too small; and some that are refused."""
    found = [b"", b"\x02garbage"]
    for of in (KRR, URAP):
        rng = generator("rows in Beam", of.id)
        times = np.repeat([0, HOUR], [70, 30]) + rng.integers(0, HOUR, 100)
        found += wire.encode_reports(of.perturb(rng.choice(["0", "1", "2"], 100).tolist(), rng, times))
    return found


def estimated(pipeline: beam.Pipeline) -> Any:
    source = pipeline | beam.Create(messages())
    return source | EstimateReports(with_counts=True, collections=[KRR, URAP], window="1h", min_reports=50)


SINKS: dict[str, Any] = {
    "parquet": WriteToParquet,
    "json": WriteToJson,
    "text": WriteToText,
    "avro": WriteToAvro,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Any]], dict[str, list[Any]]]:
    """One run that writes everything with each of Beam's sinks: the folder, the rows, and those of data frames."""
    folder = tmp_path_factory.mktemp("rows")
    lists: dict[str, Any] = {}
    frames: dict[str, Any] = {}
    sinks, of_frames = replay.Lists(), replay.Lists()
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        found = estimated(pipeline)
        for name in KINDS:
            rows = getattr(found, name)
            for sink, write in SINKS.items():
                if (name, sink) != ("ledger", "avro"):
                    _ = rows | f"{sink}_{name}" >> write(f"{folder}/{name}.{sink}")
            frame = to_dataframe(rows, label=f"frame_{name}")
            lists[name], frames[name] = rows, to_pcollection(frame, label=f"from_frame_{name}")
        sinks.write([replay.Output(name, rows, None) for name, rows in lists.items()])
        of_frames.write([replay.Output(f"{name}_of_frame", rows, None) for name, rows in frames.items()])
    return folder, sinks.rows(), of_frames.rows()


def in_order(records: Sequence[Any]) -> list[Any]:
    return sorted(records, key=lambda record: json.dumps(record, sort_keys=True))


def files(folder: Path, name: str, sink: str) -> list[Path]:
    found = sorted(folder.glob(f"{name}.{sink}*"))
    assert found
    return found


def expected(rows: Mapping[str, Sequence[Any]], name: str) -> list[Any]:
    return in_order([as_dict(row) for row in rows[name]])


def test_the_run_has_rows_of_every_kind(run: Any) -> None:
    """With numbers and without, of reports that were refused and of messages that nobody can name."""
    _, rows, _ = run
    assert {name: len(found) for name, found in rows.items()} == {
        "estimates": 4,
        "values": sum(of.alphabet.num_symbols for of in (KRR, URAP)),
        "health": 4,
        "ledger": 5,
        "rejected": 2,
        "counts": 4,
    }
    assert {row.status for row in rows["estimates"]} == {"ok", "suppressed"}
    assert {row.collection_id for row in rows["ledger"]} == {"krr", "urap", None}
    assert {row.window_start for row in rows["values"]} == {"1970-01-01T00:00:00Z"}


@kinds
def test_rows_go_through_their_coder(name: str, run: Any) -> None:
    cls, _ = KINDS[name]
    coder = coders.registry.get_coder(cls)
    assert isinstance(coder, coders.RowCoder)
    for row in run[1][name]:
        again = coder.decode(coder.encode(row))
        assert type(again) is cls
        assert as_dict(again) == as_dict(row)


@kinds
def test_rows_written_as_parquet_are_read_by_others(name: str, run: Any) -> None:
    folder, rows, _ = run
    cls, schema = KINDS[name]
    maps = [field for field, kind in cls.__annotations__.items() if typing.get_origin(kind) is not None]
    found = []
    for path in files(folder, name, "parquet"):
        table = pyarrow.parquet.read_table(path)
        assert table.column_names == list(cls._fields)
        assert all(str(table.schema.field(time).type) == "string" for time in time_fields(schema))
        found += table.to_pylist()
    for record in found:
        for field in set(maps) & {"rejected", "unread_messages", "unread_files"}:  # Arrow has maps as lists of pairs
            record[field] = dict(record[field])
    assert in_order(found) == expected(rows, name)


@pytest.mark.parametrize("name", ["values", "ledger", "rejected"])
def test_flat_rows_written_as_json_are_read_by_others(name: str, run: Any) -> None:
    """Beam writes JSON with pandas, which rounds to 10 decimals and makes floats of integers beside nulls."""
    folder, rows, _ = run
    lines = [line for path in files(folder, name, "json") for line in path.read_text("utf-8").splitlines()]
    found = in_order([json.loads(line) for line in lines])
    for record, row in zip(found, in_order([as_dict(row) for row in rows[name]]), strict=True):
        assert list(record) == list(row)
        for field, value in row.items():
            assert abs(record[field] - value) <= 0.5e-10 if isinstance(value, float) else record[field] == value


@kinds
def test_rows_written_as_text_are_those_of_python(name: str, run: Any) -> None:
    folder, rows, _ = run
    lines = [line for path in files(folder, name, "text") for line in path.read_text("utf-8").splitlines()]
    assert sorted(line.partition("(")[2] for line in lines) == sorted(str(row).partition("(")[2] for row in rows[name])


def test_beam_has_no_avro_of_maps(run: Any) -> None:
    """When this fails, Beam has been mended: let the run write the ledger as Avro too."""
    folder, rows, _ = run
    ledger = beam.Pipeline(runner="FnApiRunner") | beam.Create(rows["ledger"]).with_output_types(LedgerRow)
    with pytest.raises(AttributeError, match="element_type"):
        _ = ledger | WriteToAvro(f"{folder}/ledger.avro")


@pytest.mark.parametrize("name", [name for name in KINDS if name != "ledger"])
def test_rows_written_as_avro_are_read_by_others(name: str, run: Any) -> None:
    folder, rows, _ = run
    found: list[Any] = []
    for path in files(folder, name, "avro"):
        with path.open("rb") as file:
            found += fastavro.reader(file)
    assert in_order(found) == expected(rows, name)


def plain(value: Any) -> Any:
    """What a data frame holds as JSON has it: missing numbers are NaN there."""
    if hasattr(value, "_asdict") or isinstance(value, beam.Row):
        return {name: plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    missing = value is None or (isinstance(value, float) and math.isnan(value)) or str(value) == "<NA>"
    return None if missing else value


@kinds
def test_rows_go_through_data_frames(name: str, run: Any) -> None:
    _, rows, frames = run
    assert in_order([plain(row) for row in frames[f"{name}_of_frame"]]) == expected(rows, name)


SHARES_SUM_TO_1 = pytest.approx(1, rel=0, abs=10 * np.finfo(float).eps)  # of at most 10 values, each rounded


def test_data_frames_compute_with_rows() -> None:
    """The shares of each window of estimates that are not negative sum to 1."""
    with replay.collector() as (collect, sums):
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            frame = to_dataframe(estimated(pipeline).values | beam.WindowInto(beam.window.GlobalWindows()))
            total = frame.groupby(["collection_id", "window_start"])[["frequency"]].sum()
            _ = to_pcollection(total, include_indexes=True) | collect
        found = {row.collection_id: (row.window_start, row.frequency) for row, _, _ in sums}
    start = "1970-01-01T00:00:00Z"
    assert found == {"krr": (start, SHARES_SUM_TO_1), "urap": (start, SHARES_SUM_TO_1)}


def test_rows_keep_their_fields_between_processes(run: Any, tmp_path: Path) -> None:
    """Where a row may be of a class that Beam made of its schema."""
    options = ["--runner=FnApiRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        found = estimated(pipeline)
        for name in KINDS:
            spread = getattr(found, name) | f"Global_{name}" >> beam.WindowInto(beam.window.GlobalWindows())
            lines = spread | f"Spread_{name}" >> beam.Reshuffle() | f"Json_{name}" >> beam.Map(to_json)
            _ = lines | f"Write_{name}" >> WriteToText(f"{tmp_path}/{name}.lines")
    for name in KINDS:
        lines = [line for path in files(tmp_path, name, "lines") for line in path.read_text("utf-8").splitlines()]
        assert in_order([json.loads(line) for line in lines]) == expected(run[1], name)


# ---------------------------------------------------------------------- what needs Java

JAR = f"beam-sdks-java-extensions-sql-expansion-service-{beam.__version__}.jar"
SQL_JAR = Path(subprocess_server.JavaJarServer.JAR_CACHE, JAR)


@kinds
def test_the_storage_write_api_is_given_rows_with_a_schema(name: str, run: Any) -> None:
    """Our sink hands over records, of which Beam makes rows by the columns; everything up to Java's own part."""
    _, schema = KINDS[name]
    table = table_schema(schema)
    found = schema_from_element_type(RowTypeConstraint.from_fields(get_beam_typehints_from_tableschema(table)))
    assert "pythonsdk_any" not in str(found)
    coder = coders.RowCoder(found)
    for row in run[1][name]:
        record = native_row(row, schema)
        again = coder.decode(coder.encode(beam_row_from_dict(record, table)))
        assert plain(again) == plain(record)


def without_network(*args: Any, **named: Any) -> Any:
    raise URLError("no network in tests")


@kinds
def test_sql_is_given_rows_with_a_schema(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to Beam's own service of SQL, a jar: what it is sent names every field, and without it an error names it."""
    cls, _ = KINDS[name]
    query = "SELECT window_start FROM PCOLLECTION"
    rows = getattr(estimated(beam.Pipeline(runner="FnApiRunner")), name)
    context = PipelineContext()
    sent = context.coders.get_by_id(context.coders.get_id(coders.registry.get_coder(rows.element_type)))
    proto = sent.to_runner_api(context)
    assert rows.element_type is cls
    assert proto.spec.urn == "beam:coder:row:v1"
    schema = schema_pb2.Schema.FromString(proto.spec.payload)
    assert [field.name for field in schema.fields] == list(cls._fields)

    payload = external_transforms_pb2.ExternalConfigurationPayload.FromString(SqlTransform(query)._payload)
    assert [field.name for field in payload.schema.fields] == ["query", "dialect", "ddl"]
    assert query.encode() in payload.payload

    monkeypatch.setattr(subprocess_server, "urlopen", without_network)
    monkeypatch.setattr(subprocess_server.JavaJarServer, "JAR_CACHE", str(tmp_path))
    with pytest.raises(RuntimeError, match=f"Unable to fetch .*{JAR}"):
        _ = rows | SqlTransform(query)


@pytest.mark.skipif(not SQL_JAR.exists(), reason=f"the answers of SQL need {JAR} in Beam's cache of jars")
def test_sql_answers() -> None:
    query = "SELECT collection_id, SUM(frequency) AS total FROM PCOLLECTION GROUP BY collection_id"
    with replay.collector() as (collect, found):
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            values = estimated(pipeline).values | beam.WindowInto(beam.window.GlobalWindows())
            _ = values | SqlTransform(query) | collect
        totals = {row.collection_id: row.total for row, _, _ in found}
    assert totals == {"krr": SHARES_SUM_TO_1, "urap": SHARES_SUM_TO_1}
