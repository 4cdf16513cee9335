"""The contract with other systems: rows and collections are what ``schemas/`` says, in both directions."""

from __future__ import annotations

import datetime
import functools
import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import jsonschema
import pytest
from fastavro.validation import validate

from labs.demo import demo_command as demo
from tests.support.cases import ALL_COLLECTIONS
from tests.support.edited import ABSENT, edited
from tests.support.messages_cases import BATCH, KNOWN, NEW, REPORT, SCHEMAS
from tests.support.rows.rows_of_all_kinds import ESTIMATE, ROWS
from uldp_transforms import schemas
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.rows.json_and_avro import as_dict, to_avro, to_json
from uldp_transforms.rows.row_types import (
    COUNTS_SCHEMA,
    ESTIMATE_SCHEMA,
    HEALTH_SCHEMA,
    LEDGER_SCHEMA,
    REJECTED_SCHEMA,
    VALUE_SCHEMA,
    EstimatedValue,
    LedgerRow,
    RejectedReport,
    WindowCounts,
    WindowedEstimate,
    WindowHealth,
)
from uldp_transforms.rows.windowed_estimate import value_estimates

# ---------------------------------------------------------------------- rows


rows = pytest.mark.parametrize(("row", "schema"), ROWS)
row_schemas = pytest.mark.parametrize(
    ("cls", "schema"),
    [
        (WindowedEstimate, ESTIMATE_SCHEMA),
        (EstimatedValue, VALUE_SCHEMA),
        (WindowCounts, COUNTS_SCHEMA),
        (WindowHealth, HEALTH_SCHEMA),
        (RejectedReport, REJECTED_SCHEMA),
        (LedgerRow, LEDGER_SCHEMA),
    ],
)


@row_schemas
def test_fields_of_rows_are_those_of_the_schema(cls, schema):
    assert schema["name"] == cls.__name__
    assert list(cls._fields) == [field["name"] for field in schema["fields"]]


def test_fields_of_values_are_those_of_the_schema():
    items = next(field for field in ESTIMATE_SCHEMA["fields"] if field["name"] == "estimates")["type"]["items"]
    for entry in value_estimates(ESTIMATE):
        assert list(entry._fields) == [field["name"] for field in items["fields"]]


@rows
def test_rows_are_valid(row, schema):
    assert validate(to_avro(row, schema), schema, raise_errors=True, strict=True)


@row_schemas
def test_a_row_needs_all_its_fields(cls, schema):
    record = to_avro(next(row for row, _ in ROWS if isinstance(row, cls)), schema)
    wrong = [{key: value for key, value in record.items() if key != name} for name in record]
    for other in [*wrong, record | {"more": 1}]:
        with pytest.raises(ValueError, match=r"(?i)field"):
            fastavro.schemaless_writer(io.BytesIO(), schema, other, strict=True)


def milliseconds(record: dict[str, Any]) -> dict[str, Any]:
    """The record with its times, in either form, as integers."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    result = dict(record)
    for name in ("window_start", "window_end", "received_at"):
        moment = record.get(name)
        if isinstance(moment, str):
            assert moment.endswith("Z")
            moment = datetime.datetime.fromisoformat(moment.replace("Z", "+00:00"))
        if moment is not None:
            result[name] = (moment - epoch) // datetime.timedelta(milliseconds=1)
    return result


@rows
def test_json_and_avro_hold_the_same(row, schema):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, to_avro(row, schema))
    out.seek(0)
    from_avro = milliseconds(fastavro.schemaless_reader(out, schema, None))
    text = to_json(row)
    assert "\n" not in text
    assert milliseconds(json.loads(text)) == from_avro == milliseconds(as_dict(row))


@rows
def test_files_of_rows_can_be_read_by_others(row, schema):
    avro, lines = file_of([row, row], "avro", schema), file_of([row, row], "jsonl", schema)
    assert [milliseconds(record) for record in fastavro.reader(io.BytesIO(avro))] == [milliseconds(as_dict(row))] * 2
    assert [milliseconds(json.loads(line)) for line in lines.splitlines()] == [milliseconds(as_dict(row))] * 2
    assert file_of([row, row], "avro", schema) == avro


def test_no_row_has_a_place_for_a_payload():
    """A rejected payload may be the unperturbed value of a broken client."""
    for schema in (REJECTED_SCHEMA, LEDGER_SCHEMA):
        assert "bytes" not in json.dumps([field["type"] for field in schema["fields"]])


# ---------------------------------------------------------------------- documentation of the schemas

AVRO_FILES = sorted(SCHEMAS.glob("*.avsc"))


def undocumented(schema: Any, path: str) -> Iterator[str]:
    """Records, enums and fields without a word about what they are."""
    if isinstance(schema, list):
        for branch in schema:
            yield from undocumented(branch, path)
    if isinstance(schema, dict):
        if schema["type"] in ("record", "enum") and not schema.get("doc"):
            yield path
        for field in schema.get("fields", ()):
            if not field.get("doc"):
                yield f"{path}.{field['name']}"
            yield from undocumented(field["type"], f"{path}.{field['name']}")
        for inner in ("items", "values", "type"):
            yield from undocumented(schema.get(inner), path)


@pytest.mark.parametrize("path", AVRO_FILES, ids=lambda path: path.stem)
def test_everything_in_a_schema_is_explained(path):
    assert not list(undocumented(schemas.load(path.name), path.stem))


def test_the_schemas_are_loaded_as_they_are_published():
    assert schemas.load("report.avsc") == REPORT
    assert schemas.load("report_batch.avsc") == BATCH
    for path in AVRO_FILES:
        assert fastavro.parse_schema(json.loads(path.read_text(encoding="utf-8")))["name"].startswith("uldp.")


# ---------------------------------------------------------------------- collections

COLLECTION_SCHEMA = json.loads((SCHEMAS / "collection.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(COLLECTION_SCHEMA)
DEMO = [json.loads(path.read_text(encoding="utf-8")) for path in demo.DATA.glob("*.json")]
GOOD = [item.to_json() for item in (*ALL_COLLECTIONS.values(), *KNOWN, *NEW)] + DEMO

CLOSED = {
    "id": "animals",
    "version": 3,
    "alphabet": {"id": "closed", "values": ["ant", "bee", "cat"], "sensitive": ["bee"]},
    "mechanism": {"id": "urap", "epsilon": 1.0, "theta": 0.5},
    "num_cohorts": 2,
}
PERMUTED = CLOSED | {
    "alphabet": {"id": "permuted", "values": ["ant", "bee", "cat"], "num_buckets": 2, "seed": 5},
    "num_cohorts": 12,
}
HASHED = CLOSED | {
    "alphabet": {"id": "hashed", "num_buckets": 4, "seed": 7, "num_hashes": 1},
    "mechanism": {"id": "krr", "epsilon": 1},
}
SUBSETS = CLOSED | {"mechanism": {"id": "ss", "epsilon": 1, "subset_size": 2}}
LISTED = CLOSED | {
    "alphabet": {"id": "hashed", "num_buckets": 4, "seed": 7, "non_sensitive": ["ant", "bee"], "num_clear_buckets": 3},
    "mechanism": {"id": "urap", "epsilon": 1, "theta": "optimal", "inversion": "marginal"},
}
TWICE = HASHED | {
    "alphabet": {"id": "hashed", "num_buckets": 4, "num_hashes": 2},
    "mechanism": {"id": "rappor", "epsilon": 1, "theta": "optimal"},
}
PERMUTED_TWICE = {"id": "permuted", "values": [f"v{i}" for i in range(24)], "num_buckets": 24, "num_hashes": 2}
TAGGED = CLOSED | {
    "alphabet": {
        "id": "tagged",
        "values": ["ant", "bee", "cat"],
        "tags": ["home", "work"],
        "sensitive": ["bee"],
        "background": {"home": {"ant": 0.5, "cat": 0.5}},
    },
    "mechanism": {"id": "uss", "epsilon": 1, "subset_size": 1},
}
STATES = CLOSED | {"alphabet": {"id": "closed", "values": ["ant", "bee", "cat"]}}
PRIORS = STATES | {"mechanism": {"id": "agrr", "epsilon": 1, "priors": [[0.5, 0.25, 0.25], [0, 0, 1]]}}
BITS = STATES | {"mechanism": PRIORS["mechanism"] | {"id": "aoue", "theta": None}}
RATES = STATES | {"mechanism": {"id": "tsp", "epsilon": 1, "missing_rates": [0.4, 0.05]}}
MISSING = STATES | {"mechanism": {"id": "up", "epsilon": 1}}
ORDERED = CLOSED | {
    "alphabet": {"id": "ordered", "low": 0, "high": 60, "num_bins": 4, "unit": "min", "others": ["none"]},
    "mechanism": {"id": "sw", "epsilon": 1},
    "num_cohorts": 1,
}
EDGES = ORDERED | {"alphabet": {"id": "ordered", "edges": [0, 1, 2.5]}}
BLOCKS = CLOSED | {
    "alphabet": {"id": "blocks", "blocks": {"a": ["ant", "bee"], "b": ["cat", "dog"]}, "sensitive": ["ant", "cat"]},
    "mechanism": {"id": "uss", "epsilon": 1.0},
}
SITES = CLOSED | {
    "alphabet": {"id": "blocks", "blocks": ["a.org", "b.org"], "members": {"id": "hashed", "num_buckets": 4}},
    "mechanism": {"id": "krr", "epsilon": 1.0},
    "num_cohorts": 4,
}

SPECS = {
    "blocks": BLOCKS,
    "sites": SITES,
    "ordered": ORDERED,
    "edges": EDGES,
    "closed": CLOSED,
    "permuted": PERMUTED,
    "hashed": HASHED,
    "subsets": SUBSETS,
    "listed": LISTED,
    "twice": TWICE,
    "permuted-twice": TWICE | {"alphabet": PERMUTED_TWICE, "num_cohorts": 12},
    "tagged": TAGGED,
    "priors": PRIORS,
    "bits": BITS,
    "rates": RATES,
    "missing": MISSING,
}


def refusal(spec: Any) -> str | None:
    """What ``from_json`` says against a specification."""
    try:
        Collection.from_json(spec)
    except SpecError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "spec", GOOD, ids=lambda spec: f"{spec['id']}-{spec['alphabet']['id']}-{spec['mechanism']['id']}"
)
def test_good_collections_are_valid(spec):
    assert refusal(spec) is None
    VALIDATOR.validate(spec)


HARMLESS = [
    ("closed", "num_cohorts", ABSENT),
    ("closed", "alphabet.sensitive", ABSENT),
    ("closed", "alphabet.sensitive", None),
    ("closed", "alphabet.sensitive", ["cat", "ant"]),
    ("closed", "mechanism.theta", ABSENT),
    ("closed", "mechanism.theta", None),
    ("closed", "mechanism.epsilon", 16),
    ("closed", "mechanism", {"id": "rappor", "epsilon": 0.5, "theta": 0.75}),
    ("closed", "mechanism", {"id": "urr", "epsilon": 1e-9}),
    ("closed", "version", (1 << 31) - 1),
    ("closed", "id", "a" * 64),
    ("closed", "alphabet.values", ["bee", ""]),
    ("permuted", "alphabet.seed", ABSENT),
    *(("permuted", "alphabet.sensitive", value) for value in (["cat", "ant"], ["ant", "bee", "cat"], None)),
    ("permuted", "alphabet.num_hashes", 1),
    *(("permuted-twice", "alphabet.num_hashes", value) for value in (1, 3, 16, ABSENT)),
    ("permuted-twice", "alphabet.sensitive", None),
    ("permuted", "alphabet.seed", (1 << 64) - 1),
    ("hashed", "alphabet.num_hashes", ABSENT),
    ("hashed", "num_cohorts", 1 << 16),
    *(("subsets", "mechanism.subset_size", value) for value in (1, None, ABSENT)),
    *(("closed", "mechanism.theta", value) for value in ("optimal", None, ABSENT, 0.25)),
    *(("closed", "mechanism.inversion", value) for value in ("aware", "marginal", None)),
    *(("listed", "alphabet.num_clear_buckets", value) for value in (2, 1 << 16, None, ABSENT)),
    ("listed", "alphabet.non_sensitive", ["cat", "", "é"]),
    ("listed", "alphabet.num_hashes", 1),
    *(("twice", "alphabet.num_hashes", value) for value in (1, 3, 16, ABSENT)),
    ("twice", "alphabet.non_sensitive", None),
    *(("tagged", "alphabet.background", value) for value in (None, ABSENT, {}, {"work": {"cat": 1}})),
    *(("tagged", "alphabet.sensitive", value) for value in ([], ABSENT)),
    ("tagged", "alphabet.tags", ["home"]),
    *(("priors", "mechanism.priors", value) for value in ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0.5, 0.5, 0]] * 2)),
    ("bits", "mechanism.theta", ABSENT),
    *(("rates", "mechanism.missing_rates", value) for value in ([0.1, 0.1], [1e-9, 0.5, 0.999])),
    ("rates", "alphabet.sensitive", None),
    *(("ordered", "alphabet.num_bins", value) for value in (2, 256, ABSENT)),
    ("ordered", "alphabet", {"id": "ordered", "low": 0, "high": 60, "scale": "linear", "edges": None}),
    ("ordered", "alphabet.num_bins", None),
    *(("ordered", "alphabet.others", value) for value in ([], ABSENT)),
    *(("ordered", "mechanism", {"id": "sw", "epsilon": 1, "half_width": value}) for value in (None, 2)),
    *(("edges", f"alphabet.{name}", None) for name in ("low", "high", "num_bins", "scale")),
    ("ordered", "alphabet.low", -1.5),
    ("edges", "alphabet.edges", [-1, 0, 1e9, 2e9]),
    ("edges", "alphabet.unit", "ms"),
    ("missing", "mechanism.epsilon", 16),
    *(("closed", "noun", {"one": one, "many": one}) for one in ("flight", "phone call", "Nächte", "x" * 40)),
    ("closed", "noun", None),
]


@pytest.mark.parametrize(("name", "path", "value"), HARMLESS)
def test_harmless_edits_are_accepted_by_both(name, path, value):
    spec = edited(SPECS[name], path, value)
    assert refusal(spec) is None
    VALIDATOR.validate(spec)


STRUCTURAL = [
    *(("closed", path, ABSENT) for path in ("id", "version", "alphabet", "mechanism")),
    *(("closed", path, ABSENT) for path in ("alphabet.id", "alphabet.values", "mechanism.id", "mechanism.epsilon")),
    *(("permuted", path, ABSENT) for path in ("alphabet.values", "alphabet.num_buckets")),
    *(("hashed", path, ABSENT) for path in ("alphabet.num_buckets", "num_cohorts")),
    *(
        ("closed", path, 1)
        for path in ("more", "fingerprint", "alphabet.more", "alphabet.seed", "alphabet.num_buckets")
    ),
    *(("closed", path, 1) for path in ("mechanism.more", "mechanism.num_symbols", "mechanism.delta")),
    *(("permuted", path, ["ant"]) for path in ("alphabet.sensitive", "alphabet.num_hashes")),
    *(("hashed", path, ["ant", "bee"]) for path in ("alphabet.values", "alphabet.sensitive")),
    *(("hashed", "mechanism.theta", value) for value in (0.5, None)),  # k-RR has none
    *(("closed", "alphabet.id", value) for value in ("Closed", "open", "permuted", "", None, 3)),
    *(("closed", "mechanism.id", value) for value in ("KRR", "krr", "oue", "", None, 3)),  # krr: has no theta
    *(("closed", "id", value) for value in ("", "A", "a b", "ä", "a" * 65, 3, None)),
    *(("closed", "version", value) for value in (0, -1, 1 << 31, 1.5, "1", True, None)),
    *(("closed", "num_cohorts", value) for value in (0, (1 << 16) + 1, 1.5, "1", True, None)),
    *(("hashed", "num_cohorts", value) for value in (0, 1)),
    *(("sites", "num_cohorts", value) for value in (1, ABSENT)),
    *(
        ("blocks", "alphabet.blocks", value)
        for value in (ABSENT, ["a", "b"], {"a": ["x", "y"]}, {"a": [], "b": ["x"]}, 3)
    ),
    *(
        ("sites", "alphabet.blocks", value)
        for value in ({"a": ["x"], "b": ["y"]}, ["a"], ["a", "a"], ["a", "b/c"], ["a", 3])
    ),
    *(("sites", "alphabet.members", value) for value in ({"id": "closed", "values": ["x", "y"]}, {"id": "hashed"}, 3)),
    ("sites", "alphabet.sensitive", ["a.org"]),
    ("blocks", "alphabet.sensitive", []),
    *(("closed", "alphabet.values", value) for value in ([], ["ant"], ["ant", "ant"], ["ant", 3], "ant", None, {})),
    *(("closed", "alphabet.sensitive", value) for value in ([], ["ant", "ant"], [3], "ant", {}, 3)),
    *(("permuted", "alphabet.num_buckets", value) for value in (1, 0, -1, (1 << 16) + 1, 2.5, "2", True, None)),
    *(("hashed", "alphabet.num_buckets", value) for value in (1, 0, -1, (1 << 16) + 1, 2.5, "2", True, None)),
    *(("permuted", "alphabet.seed", value) for value in (-1, 1 << 64, 0.5, "0", True, None)),
    *(("permuted", "alphabet.sensitive", value) for value in ([], ["ant", "ant"], [3, 4], "ant", {}, 3)),
    *(("permuted", "alphabet.num_hashes", value) for value in (0, 17, "1", 2.5, True, None)),
    *(("hashed", "alphabet.num_hashes", value) for value in (0, 17, "1", True, None)),
    *(("twice", "alphabet.num_hashes", value) for value in (0, 17, "2", 2.5, True, None)),
    *(("listed", "alphabet.non_sensitive", value) for value in ([], ["ant", "ant"], [3], "ant", {}, 3)),
    *(("listed", "alphabet.num_clear_buckets", value) for value in (0, 1, -1, (1 << 16) + 1, 2.5, "2", True, [])),
    *(("tagged", path, ABSENT) for path in ("alphabet.values", "alphabet.tags")),
    *(("tagged", "alphabet.tags", value) for value in ([], ["home", "home"], [3], "home", {}, None)),
    *(("tagged", "alphabet.sensitive", value) for value in (["bee", "bee"], [3], "bee", {}, None)),
    *(("tagged", "alphabet.background", value) for value in ([], "home", 3, {"home": {}}, {"home": None})),
    *(("tagged", "alphabet.background.home", value) for value in ({"ant": -1}, {"ant": 1.5}, {"ant": "1"}, ["ant"])),
    *(("tagged", "alphabet.background.home", value) for value in ({"ant": True}, {"ant": None}, {"ant": 1e400})),
    *(("tagged", path, 1) for path in ("alphabet.num_buckets", "alphabet.seed", "alphabet.more")),
    *((name, "mechanism.priors", ABSENT) for name in ("priors", "bits")),
    *(("priors", "mechanism.priors", value) for value in ([], [[1, 0, 0]], "ant", {}, None, [1, 0, 0], [[], []])),
    *(("priors", "mechanism.priors", [[1, 0, 0], [1, 0, value]]) for value in (-1, 2, "0", True, None, 1e400)),
    *(("priors", "mechanism.theta", value) for value in (None, 0.5)),  # agrr has none
    *(("bits", "mechanism.theta", value) for value in (0.5, "optimal", True)),
    *(("rates", "mechanism.missing_rates", value) for value in ([], [0.5], "ant", {}, None, 0.5, ABSENT)),
    *(("rates", "mechanism.missing_rates", [0.5, value]) for value in (0, 1, -1, 2, "0.5", True, None, 1e400)),
    *(("missing", path, 0.5) for path in ("mechanism.theta", "mechanism.missing_rates")),
    *(("closed", "mechanism.inversion", value) for value in ("Aware", "naive", "", 3, True, [])),
    *(("twice", "mechanism.inversion", value) for value in ("aware", "marginal", None)),  # rappor has none
    *(("closed", "mechanism.epsilon", value) for value in (0, -1, 16.001, 1e400, "1", True, None, [])),
    *(("closed", "mechanism.theta", value) for value in (0, 1, -0.5, 2, "0.5", "best", True, [])),
    *(("subsets", "mechanism.subset_size", value) for value in (0, -1, 1.5, "1", True, [])),
    ("subsets", "mechanism.theta", 0.5),
    *(("ordered", path, ABSENT) for path in ("alphabet.low", "alphabet.high")),
    *(("ordered", "alphabet.num_bins", value) for value in (1, 257, 2.5, "4", True)),
    *(("ordered", "alphabet.scale", value) for value in ("Log", "square", 1)),
    *(("ordered", path, "1") for path in ("alphabet.low", "alphabet.high", "alphabet.others", "alphabet.more")),
    *(("ordered", "alphabet.others", value) for value in (["a", "a"], [1], {})),
    *(("ordered", "alphabet.unit", value) for value in (1, "x" * 21)),
    *(("ordered", "mechanism.half_width", value) for value in (0, 1025, 1.5, "1", True)),
    ("ordered", "alphabet.edges", [0, 1, 2]),
    *(("edges", "alphabet.edges", value) for value in (ABSENT, [], [0, 1], [0, 1, "2"], [0, 1, 1], "0,1,2", {})),
    *(("edges", path, 1) for path in ("alphabet.low", "alphabet.high", "alphabet.num_bins", "alphabet.scale")),
    *(("closed", path, value) for path in ("alphabet", "mechanism") for value in (None, "closed", 3, [], {})),
    *(
        ("closed", "noun", value)
        for value in ("flight", 3, [], {}, {"one": "flight"}, {"one": "a", "many": "b", "c": "d"})
    ),
    *(
        ("closed", "noun", {"one": "flight", "many": value})
        for value in (None, 3, "", " ", "flights ", "x" * 41, "a\nb", "a\x7fb", "<b>", "a&b", 'a"b', "it's", "`a`")
    ),
]


@pytest.mark.parametrize(("name", "path", "value"), STRUCTURAL)
def test_structural_faults_are_refused_by_both(name, path, value):
    spec = edited(SPECS[name], path, value)
    assert refusal(spec) is not None
    assert not VALIDATOR.is_valid(spec)


@pytest.mark.parametrize("spec", [None, 3, "animals", [], [CLOSED], {}], ids=repr)
def test_other_json_is_refused_by_both(spec):
    assert not VALIDATOR.is_valid(spec)
    if isinstance(spec, dict):
        assert refusal(spec) is not None


MEANING = [  # the part of the specification that JSON Schema has no words for
    ("closed", {"alphabet.values": ["bee", "e\u0301", "\u00e9"]}, "must not repeat an entry (in Unicode NFC)"),
    ("closed", {"alphabet.values": ["bee", "\ud800"]}, "must be Unicode text"),
    ("closed", {"alphabet.sensitive": ["dog"]}, "must contain only entries of alphabet.values"),
    ("closed", {"num_cohorts": 2.0}, "must be an integer in [1, 65536], got 2.0"),
    ("closed", {"mechanism.epsilon": 1e-300}, "must be large enough for a signal"),
    ("subsets", {"mechanism.subset_size": 3}, "mechanism.subset_size must be an integer in [1, 2]"),
    ("subsets", {"mechanism": {"id": "uss", "epsilon": 1, "subset_size": 2}}, "mechanism.subset_size must be "),
    ("permuted", {"alphabet.num_buckets": 4}, "alphabet.num_buckets must be an integer in [2, 3]"),
    ("permuted", {"num_cohorts": 1}, "to tell 3 values apart with 2 buckets"),
    ("permuted-twice", {"num_cohorts": 1}, "alphabet.seed must name permutations that tell 24 values apart"),
    ("permuted-twice", {"alphabet.values": ["ant", "bee"]}, "alphabet.num_buckets must be an integer in [2, 2]"),
    ("hashed", {"alphabet.num_buckets": 65, "num_cohorts": 1 << 16}, "must be at most 4194304 counters"),
    ("ordered", {"alphabet.high": -1}, "must be numbers below 1e15, the second larger than the first"),
    ("ordered", {"alphabet.others": ["1"]}, "must be texts that are neither numbers nor names of bins"),
    ("ordered", {"mechanism": {"id": "sw", "epsilon": 1, "half_width": 5}}, "mechanism.half_width must be an integer"),
    ("edges", {"alphabet.edges": [0, 2, 1]}, "alphabet.edges must be increasing"),
    ("hashed", {"alphabet.num_hashes": 2}, "mechanism.num_hashes (of the alphabet) must be an integer in [1, 1]"),
    ("listed", {"alphabet.num_hashes": 2}, "alphabet.num_hashes must be an integer in [1, 1]"),
    ("listed", {"alphabet.non_sensitive": None}, "num_clear_buckets must be absent without alphabet.non_sensitive"),
    ("listed", {"alphabet.non_sensitive": ["e\u0301", "\u00e9"]}, "alphabet.non_sensitive must not repeat an entry"),
    ("tagged", {"alphabet.tags": ["ant"]}, "alphabet.tags must differ from all values"),
    ("tagged", {"alphabet.sensitive": ["dog"]}, "alphabet.sensitive must contain only entries of alphabet.values"),
    ("tagged", {"alphabet.sensitive": ["ant", "bee", "cat"]}, "must leave at least one value that a tag can hide"),
    (
        "tagged",
        {"alphabet.background": {"car": {"ant": 1}}},
        "alphabet.background must have each tag as a key exactly once",
    ),
    (
        "tagged",
        {"alphabet.background": {"home": {"ant": 0.5}}},
        "shares in [0, 1] that sum to 1, got other numbers for 'home'",
    ),
    ("tagged", {"alphabet.background": {"home": {"bee": 1}}}, "must name only values that are not sensitive"),
    ("priors", {"mechanism.priors": [[0.5, 0.5], [0.5, 0.5]]}, "mechanism.priors must have rows of "),
    ("bits", {"mechanism.priors": [[0.5, 0.25, 0.5], [1, 0, 0]]}, "mechanism.priors must have rows of "),
    (
        "priors",
        {"alphabet.sensitive": ["bee"]},
        "must give every value its own symbol, in the order of the values, and must have only sensitive values",
    ),
    ("rates", {"alphabet.values": ["ant", "bee"]}, "mechanism.num_symbols (of the alphabet) must be 3 to 1024"),
]


@pytest.mark.parametrize(("name", "edits", "words"), MEANING, ids=[row[2] for row in MEANING])
def test_faults_of_meaning_are_found_when_loading(name, edits, words):
    spec = functools.reduce(lambda spec, edit: edited(spec, *edit), edits.items(), SPECS[name])
    assert words in (refusal(spec) or "")
    assert VALIDATOR.is_valid(spec)


def paths(value: Any, at: str = "") -> Iterator[str]:
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield at + key
        yield from paths(inner, f"{at}{key}.")


JUNK = [
    ABSENT,
    None,
    True,
    "1",
    "ant",
    [],
    {},
    [None],
    ["ant", "bee"],
    0,
    1,
    -1,
    3,
    0.5,
    1.5,
    17,
    1 << 40,
    1 << 70,
    1e400,
]


def places() -> Iterator[tuple[str, str]]:
    """Names of specifications and paths in them: each field in the first of its mechanism, or else of its alphabet."""
    seen = set()
    for name, spec in SPECS.items():
        for path in paths(spec):
            kind = spec["mechanism" if path.startswith("mechanism") else "alphabet"]["id"]
            if (kind, path) not in seen:
                seen.add((kind, path))
                yield name, path


@pytest.mark.parametrize("value", JUNK, ids=lambda value: "absent" if value is ABSENT else repr(value))
def test_both_agree_wherever_one_value_is_replaced(value):
    for name, path in places():
        spec = edited(SPECS[name], path, value)
        said = refusal(spec)
        of_meaning = any(words in (said or "") for *_, words in MEANING)
        if not of_meaning:  # else there may be a structural fault, too
            assert VALIDATOR.is_valid(spec) == (said is None), (path, said)


def test_the_schema_names_every_alphabet_and_mechanism():
    VALIDATOR.check_schema(COLLECTION_SCHEMA)
    definitions = COLLECTION_SCHEMA["$defs"]
    ids = [definitions[name]["properties"]["id"] for name in definitions if "properties" in definitions[name]]
    named = {name for entry in ids for name in entry.get("enum", [entry.get("const")])}
    assert named == {*ALPHABETS, *MECHANISMS}
