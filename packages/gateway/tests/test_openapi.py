"""The OpenAPI document says what a running gateway answers: status, body and headers of each kind of request."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest

from packages.gateway.tests.support.gateways import Answer, Running, asked, gateway
from tests.support.messages_cases import STRANGER, packed, single
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms_gateway import openapi, refusals
from uldp_transforms_gateway.openapi import document

KEY, OTHER_KEY = "key-of-the-app-0123456789", "key-of-the-next-app-0123456789"
PATHS = document()["paths"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("openapi")
    (folder / "keys").write_text(f"{KEY}\n{OTHER_KEY}\n", encoding="utf-8")
    options = [f"--spool={folder / 'spool'}", "--pack_every=20ms", "--max_body=1000", "--body_timeout=500ms"]
    with gateway([*options, f"--token_file={folder / 'keys'}"], folder) as found:
        yield found
    assert KEY not in found.said() and OTHER_KEY not in found.said()


def check(answer: Answer, path: str = "/reports", method: str = "post") -> None:
    """The answer is one of the document."""
    described = PATHS[path][method]["responses"][str(answer.status)]
    [(kind, content)] = described["content"].items()
    assert answer.headers["content-type"].split(";")[0] == kind
    jsonschema.validate(answer.content, content["schema"], cls=jsonschema.Draft202012Validator)
    for name, header in described.get("headers", {}).items():
        value = answer.headers[name.lower()]
        jsonschema.validate(int(value) if value.isdigit() else value, header["schema"])


KNOWN = {"Authorization": f"Bearer {KEY}"}
REQUESTS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "good": (202, single(), KNOWN),
    "another key": (202, single(), {"Authorization": f"Bearer {OTHER_KEY}"}),
    "good and bad": (202, packed(rows=[(1, 0, bytes(16), b"\1"), (9, 0, bytes(16), b"\1")]), KNOWN),
    "malformed": (400, single()[:-1], KNOWN),
    "empty": (400, b"", KNOWN),
    "no key": (401, single(), {}),
    "a wrong key": (401, single(), {"Authorization": f"Bearer {KEY[:-1]}"}),
    "another scheme": (401, single(), {"Authorization": f"Basic {KEY}"}),
    "another origin": (403, single(), KNOWN | {"Origin": "https://other.example"}),
    "too large": (413, b"\2" * 1001, KNOWN),
    "compressed": (415, single(), KNOWN | {"Content-Encoding": "gzip"}),
    "of a stranger": (422, single(STRANGER), KNOWN),
}


@pytest.mark.parametrize(("status", "body", "headers"), REQUESTS.values(), ids=REQUESTS)
def test_what_is_answered_is_described(running: Running, status: int, body: bytes, headers: dict[str, str]) -> None:
    with contextlib.closing(running.connection()) as connection:
        connection.request("POST", "/reports", body, headers)
        response = connection.getresponse()
        found = {name.lower(): text for name, text in response.getheaders()}
        answer = Answer(response.status, found, json.loads(response.read()))
    assert answer.status == status
    check(answer)


def test_a_slow_body_is_described(running: Running) -> None:
    place = urlsplit(running.address)
    with socket.create_connection((str(place.hostname), place.port or 0), timeout=600) as slow:
        head = f"POST /reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 9\r\n\r\n1"
        slow.sendall(head.encode())
        answer = http.client.HTTPResponse(slow)
        answer.begin()
        assert answer.status == 408
        said = json.loads(answer.read())
    content = PATHS["/reports"]["post"]["responses"]["408"]["content"]["application/json"]["schema"]
    jsonschema.validate(said, content)


def test_the_other_paths_are_described(running: Running) -> None:
    for path in ("/healthz", "/metrics"):
        check(running.ask("GET", path), path, "get")
    for path in ("/", "/reports/", "/openapi.json"):
        with contextlib.closing(running.connection()) as connection:
            assert asked(connection, "POST", path, single()).status == 404, path
    assert running.ask("GET", "/reports").status == 405


def test_every_answer_of_the_code_is_described() -> None:
    """All statuses that are named there, and each reason under its own status."""
    named = {value for name, value in vars(refusals).items() if name.isupper() and isinstance(value, int)}
    responses: dict[str, Any] = PATHS["/reports"]["post"]["responses"]
    assert set(map(int, responses)) == named
    for reason, status in refusals.STATUS.items():
        if reason is not Reason.ACCEPTED:
            schema = responses[str(status)]["content"]["application/json"]["schema"]
            assert reason.code in schema["properties"]["reason"]["enum"]


def test_schemas_are_valid_and_the_file_is_the_document() -> None:
    written = Path(openapi.__file__).with_name("gateway.openapi.json").read_text(encoding="utf-8")
    assert json.loads(written) == document()
    for path in PATHS.values():
        for method in path.values():
            for response in method["responses"].values():
                for content in response["content"].values():
                    jsonschema.Draft202012Validator.check_schema(content["schema"])
