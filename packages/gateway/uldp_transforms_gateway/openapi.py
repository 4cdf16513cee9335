"""The gateway's HTTP interface as an OpenAPI document, from the tables that answer requests."""

from __future__ import annotations

import json
from typing import Any

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.navigation_line import LONGEST
from uldp_transforms_gateway import refusals

_EARLY = {
    refusals.BAD_REQUEST: ("content_length", "disconnected"),
    refusals.UNAUTHORIZED: ("token", "token_expired", "token_used"),
    refusals.FORBIDDEN: ("host", "origin"),
    refusals.TIMEOUT: ("timeout",),
    refusals.UNSUPPORTED: ("content_encoding",),
    refusals.TOO_MANY: ("busy", "rate"),
    refusals.UNAVAILABLE: ("unavailable",),
}
"""Reasons of requests that are refused before or after their message is read."""

_MEANING = {
    refusals.BAD_REQUEST: "The bytes are not a message. No attempt will succeed.",
    refusals.UNAUTHORIZED: "The request names no key of --token_file, or no token that is valid and has sent no other "
    "message.",
    refusals.FORBIDDEN: "A page of another origin sent the request, or its Host is not one of --allow_host.",
    refusals.TIMEOUT: "The body took too long. Send the same bytes again.",
    refusals.TOO_LARGE: "The body is longer than --max_body, or has more reports than --token_reports.",
    refusals.UNSUPPORTED: "The body is compressed. Send it uncompressed.",
    refusals.UNPROCESSABLE: "The bytes are a message, but none of its reports is valid.",
    refusals.TOO_MANY: "The gateway is at capacity, or the app has sent too much. Send the same bytes again after "
    "Retry-After.",
    refusals.UNAVAILABLE: "The reports were not published, as far as the gateway knows. Send the same bytes again.",
}

_NUMBER = {"type": "integer", "minimum": 1}
_REFUSED = {
    "type": "object",
    "description": "numbers of refused reports by reason",
    "propertyNames": {"enum": [reason.code for reason in Reason if reason is not Reason.ACCEPTED]},
    "additionalProperties": _NUMBER,
}


def document() -> dict[str, Any]:
    """The document, OpenAPI 3.1, which does not depend on the options of a gateway."""
    responses = {
        str(refusals.OK): _delivered("published", "The queue has the reports. Delete the message."),
        str(refusals.ACCEPTED): _delivered("spooled", "The reports are on the gateway's disk. Delete the message."),
        **{str(status): _refusal(status, meaning) for status, meaning in _MEANING.items()},
    }
    body = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    post = {
        "summary": "Send one message: a single report or a packed batch",
        "description": "Dimensions with set_by gateway come from the headers of --dimension, which a proxy sets.",
        "security": [{}, {"key": []}],
        "requestBody": {"required": True, "content": body},
        "responses": responses,
    }
    health = {
        "200": _json("All is well.", _object(status={"const": "ok"})),
        "503": _json(
            "Something could not be delivered in the last ten seconds.", _object(status={"const": "undelivered"})
        ),
    }
    metrics = {
        "200": {"description": "Prometheus's text form.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "uldp gateway",
            "version": "1",
            "summary": "Accepts locally-differentially-private reports over HTTP",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/reports": {"post": post},
            "/navigations": {"post": _navigations()},
            "/healthz": {"get": {"summary": "Whether reports are delivered", "responses": health}},
            "/metrics": {"get": {"summary": "Numbers for Prometheus", "responses": metrics}},
        },
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _navigations() -> dict[str, Any]:
    meanings = {
        refusals.BAD_REQUEST: "No line is a navigation. No attempt will succeed.",
        refusals.TOO_LARGE: "The body is longer than 64 KiB, or has more lines than --token_reports.",
    }
    others = (
        *(refusals.UNAUTHORIZED, refusals.FORBIDDEN, refusals.TIMEOUT, refusals.UNSUPPORTED),
        *(refusals.TOO_MANY, refusals.UNAVAILABLE),
    )
    line = _object(
        confidence={"enum": ["high", "low"]},
        rate={"type": "number", "minimum": 0, "exclusiveMaximum": 1},
        duration={"type": "number", "minimum": 0, "maximum": LONGEST},
    )
    responses = {
        str(refusals.ACCEPTED): _delivered("spooled", "The lines are on the gateway's disk."),
        **{str(status): _refusal(status, meanings.get(status, _MEANING[status])) for status in (*meanings, *others)},
    }
    return {
        "summary": "Send browsers' answers about navigations, one JSON object a line (needs --navigations)",
        "requestBody": {"required": True, "content": {"text/plain": {"schema": line}}},
        "responses": responses,
    }


def _delivered(word: str, meaning: str) -> dict[str, Any]:
    schema = _object(**{word: _NUMBER})
    schema["properties"]["refused"] = _REFUSED
    return _json(meaning, schema)


def _refusal(status: int, meaning: str) -> dict[str, Any]:
    of_messages = [reason.code for reason, of_reason in refusals.STATUS.items() if of_reason == status]
    reasons = sorted({*of_messages, *_EARLY.get(status, ())} - {Reason.ACCEPTED.code})
    schema = _object(reason={"enum": reasons})
    if of_messages:
        schema["properties"]["refused"] = _REFUSED
    response = _json(meaning, schema)
    if status in (refusals.TOO_MANY, refusals.UNAVAILABLE):
        response["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}
    if status == refusals.UNAUTHORIZED:
        response["headers"] = {"WWW-Authenticate": {"schema": {"const": "Bearer"}}}
    return response


def _json(meaning: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": meaning, "content": {"application/json": {"schema": schema}}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


if __name__ == "__main__":
    print(json.dumps(document(), indent=2))
