"""The schemas of the server: Avro only, one revision each. Unlike pstest, the server validates every message.

A message to a topic with a schema must be exactly one datum of it, in the topic's encoding; it is delivered with the
attributes by which the service indicates the schema.
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Iterable
from typing import Any

import fastavro
from google.pubsub_v1 import types as pb
from grpc import StatusCode

from tests.servers.pubsub.pubsub_refusals import Refused, check_new_name, find

NOT_A_DATUM = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Exceptions that fastavro raises for data of another schema."""


class Schemas:
    """Schemas by name."""

    def __init__(self) -> None:
        self._schemas: dict[str, pb.Schema] = {}
        self._parsed: dict[str, Any] = {}

    def create(self, request: pb.CreateSchemaRequest, _: object) -> pb.Schema:
        name = f"{request.parent}/schemas/{request.schema_id}"
        check_new_name(name, "schemas", self._schemas)
        if request.schema.type_ != pb.Schema.Type.AVRO:
            raise Refused(StatusCode.UNIMPLEMENTED, "This server supports only Avro schemas.")
        try:
            self._parsed[name] = fastavro.parse_schema(json.loads(request.schema.definition))
        except (ValueError, fastavro.schema.SchemaParseException) as error:
            raise Refused(StatusCode.INVALID_ARGUMENT, f"A definition must be an Avro schema: {error}.") from None
        definition, revision = request.schema.definition, secrets.token_hex(4)
        self._schemas[name] = pb.Schema(name=name, type_="AVRO", definition=definition, revision_id=revision)
        return self._schemas[name]

    def get(self, request: pb.GetSchemaRequest, _: object) -> pb.Schema:
        return find(request.name, self._schemas)

    def check(self, settings: pb.SchemaSettings, messages: Iterable[pb.PubsubMessage]) -> None:
        """Refuse all messages unless each is a datum of the topic's schema; then add the schema attributes."""
        schema = find(settings.schema, self._schemas)
        for message in messages:
            if not self._is_datum(message.data, settings):
                raise Refused(StatusCode.INVALID_ARGUMENT, f"A message must be a datum of {settings.schema}.")
        for message in messages:
            message.attributes["googclient_schemaname"] = schema.name
            message.attributes["googclient_schemaencoding"] = settings.encoding.name
            message.attributes["googclient_schemarevisionid"] = schema.revision_id

    def _is_datum(self, data: bytes, settings: pb.SchemaSettings) -> bool:
        schema, stream = self._parsed[settings.schema], io.BytesIO(data)
        try:
            if settings.encoding == pb.Encoding.JSON:
                return len(list(fastavro.json_reader(io.StringIO(data.decode("utf-8")), schema))) == 1
            fastavro.schemaless_reader(stream, schema, None)
        except NOT_A_DATUM:
            return False
        return stream.tell() == len(data)
