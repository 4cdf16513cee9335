"""The fields of the client's form with their JSON types, as the page says them: from ``client.schema.json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from uldp_transforms.schemas import load

HEADER = ["field", "where", "JSON type", "allowed"]

_KINDS = ("rule", "sampler", "layout")
"""Fields whose value says which other fields an object has."""

_LIKE = {"sampler.memo": "sampler"}
"""Objects whose fields stand in the table already."""

Schema = dict[str, Any]


def rows() -> list[list[str]]:
    """One for each field, in the order of the schema."""
    schema = load("client.schema.json")
    return list(_fields("", "", schema, schema["$defs"]))


def _fields(path: str, where: str, schema: Schema, definitions: Schema) -> Iterator[list[str]]:
    properties = schema.get("properties", {})
    kind = next((name for name in _KINDS if "const" in properties.get(name, {})), None)
    of = where if kind is None else f"{where}, `{properties[kind]['const']}`".lstrip(", ")
    for name, field in properties.items():
        if name != kind:
            yield from _field(f"{path}.{name}".lstrip("."), of, field, name in schema["required"], definitions)


def _field(path: str, where: str, schema: Schema, needed: bool, definitions: Schema) -> Iterator[list[str]]:
    if "oneOf" in schema:
        found = [_resolved(choice, definitions) for choice in schema["oneOf"]]
        kind = next(name for name in _KINDS if name in found[0]["properties"])
        choices = ", ".join(f"`{choice['properties'][kind]['const']}`" for choice in found)
        like = _LIKE.get(path)
        yield [f"`{path}`", where, "object", f"the fields of `{like}` of its kind" if like else ""]
        yield [f"`{path}.{kind}`", where, "string", choices]
        for choice in () if like else found:
            yield from _fields(path, where, choice, definitions)
        return
    schema = _resolved(schema, definitions)
    yield [f"`{path}`", where, _type(schema) + ("" if needed else ", or absent"), _allowed(schema)]
    if "items" in schema:
        yield from _field(f"{path}[]", where, schema["items"], True, definitions)
    yield from _fields(path, where, schema, definitions)


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    return definitions[schema["$ref"].rsplit("/", 1)[1]] | schema if "$ref" in schema else schema


def _values(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def _type(schema: Schema) -> str:
    kinds = schema.get("type") or {str: "string", int: "integer"}[type(_values(schema)[0])]
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _allowed(schema: Schema) -> str:
    if _values(schema):
        return ", ".join(map(str, _values(schema)))
    if "pattern" in schema:
        return f"`{schema['pattern']}`".replace("|", "\\|")
    unit = " entries" if _type(schema) == "array" else ""
    low, high = (schema.get(name) for name in (("minItems", "maxItems") if unit else ("minimum", "maximum")))
    bounds = "" if low is None else f"at least {low}{unit}" if high is None else f"{low} to {high}{unit}"
    return ", ".join(filter(None, (bounds, "no entry twice" if schema.get("uniqueItems") else "")))
