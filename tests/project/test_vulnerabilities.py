"""The question to the database of vulnerabilities, and what is made of its answers (in the form that OSV documents)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from requirements import vulnerabilities


class Database(HTTPServer):
    """Knows vulnerabilities of some packages, and notes what it was asked."""

    def __init__(self, known: dict[tuple[str, str], list[str]], missing: int = 0):
        super().__init__(("127.0.0.1", 0), Answers)
        self.known, self.missing, self.asked = known, missing, list[dict[str, Any]]()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Answers(BaseHTTPRequestHandler):
    server: Database

    def do_POST(self) -> None:
        assert self.path == "/v1/querybatch"
        queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        self.server.asked += queries
        names = [self.server.known.get((query["package"]["name"], query["version"])) for query in queries]
        results = [
            {"vulns": [{"id": each, "modified": "2026-01-01T00:00:00Z"} for each in n]} if n else {} for n in names
        ]
        body = json.dumps({"results": results[self.server.missing :]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    with Database(*request.param) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


LOCKED = vulnerabilities.locked(vulnerabilities.Path(vulnerabilities.__file__).parent)
BEAM = next(package for package in LOCKED if package[0] == "apache-beam")


@pytest.mark.parametrize(
    "database", [({BEAM: ["PYSEC-2", "GHSA-1"], ("apache-beam", "0.1"): ["GHSA-3"]},)], indirect=True
)
def test_what_the_database_knows_is_a_fault(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each package of each lock is asked for once, in more than one query; exceptions are no faults."""
    monkeypatch.setattr(vulnerabilities, "AT_ONCE", 50)
    assert vulnerabilities.main(["--url", database.url]) == 1
    assert [(query["package"]["name"], query["version"]) for query in database.asked] == LOCKED
    assert {query["package"]["ecosystem"] for query in database.asked} == {"PyPI"}
    assert len(LOCKED) > 100 and len(set(LOCKED)) == len(LOCKED)
    assert capsys.readouterr().out.splitlines() == [
        f"FAULT: apache-beam {BEAM[1]} has GHSA-1",
        f"FAULT: apache-beam {BEAM[1]} has PYSEC-2",
        f"{len(LOCKED)} packages asked for: 2 vulnerabilities",
    ]
    monkeypatch.setattr(vulnerabilities, "EXCEPTIONS", {"GHSA-1": "not used", "PYSEC-2": "not used"})
    assert vulnerabilities.main(["--url", database.url]) == 0


@pytest.mark.parametrize("database", [({},)], indirect=True)
def test_no_known_vulnerability_is_no_fault(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert vulnerabilities.main(["--url", database.url]) == 0
    assert capsys.readouterr().out == f"{len(LOCKED)} packages asked for: 0 vulnerabilities\n"


@pytest.mark.parametrize("database", [({}, 1)], indirect=True)
def test_an_answer_that_leaves_packages_out_is_none(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert vulnerabilities.main(["--url", database.url]) == 2
    assert capsys.readouterr().err.startswith("the database cannot be asked: the answer must have ")


def test_a_database_that_cannot_be_asked_is_another_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert vulnerabilities.main(["--url", "http://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.startswith("the database cannot be asked: ")
