"""A small Google Cloud for tests: BigQuery and Cloud Storage over real HTTP on a loopback port, in memory.

    with GoogleServer() as server, server.environment():
        beam.io.WriteToBigQuery("project:dataset.table", ...)  # creates the table and inserts rows here

Beam's and Google's own clients talk to it and send what they would send to the services. It knows tables, streaming
inserts, load jobs of JSON lines, queries that SQLite understands, and objects. As in the service, a row is refused for
a column that the table lacks, a missing REQUIRED value or another type, and a row with a known insertId is not added
again. Unlike it, jobs are done at once, datasets need not be made, and nobody signs in.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import json
import re
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, final
from urllib.parse import parse_qs, unquote, urlsplit

import google.auth
import google_crc32c
import pytest
from apache_beam.internal.gcp import auth
from apache_beam.io.gcp.internal.clients.bigquery import BigqueryV2
from google.auth.credentials import AnonymousCredentials

from tests.support import sqlite_query

PROJECT = "test-project"
RESUME_INCOMPLETE = 308


class Request(NamedTuple):
    """What a handler needs of a request."""

    path: str
    query: dict[str, str]
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Answer(NamedTuple):
    """What a handler answers."""

    status: int
    content: Any = None
    headers: tuple[tuple[str, str], ...] = ()


@final
class GoogleServer:
    """Tables, jobs and objects; to read or change them while clients work takes the lock."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Any]] = {}  # "dataset.table" -> the resource, as it was sent
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.objects: dict[str, bytes] = {}  # "bucket/name"
        self.faults: dict[str, deque[Answer]] = defaultdict(deque)  # instead of the next inserts into a table
        self.lost_answers: dict[str, int] = defaultdict(int)  # of the next inserts into a table, which are done
        self.inserts: list[str] = []  # the tables of all requests to insert, answered well or not
        self._insert_ids: set[tuple[str, str]] = set()
        self._jobs: dict[str, dict[str, Any]] = {}
        self._uploads: dict[str, bytes] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> GoogleServer:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                owner._serve(self)

            do_GET = do_POST = do_PUT = do_DELETE = do

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @contextlib.contextmanager
    def environment(self) -> Iterator[None]:
        """Point the clients that are built inside the block at this server, and let them sign in as nobody."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(google.auth, "default", lambda *_, **__: (AnonymousCredentials(), PROJECT))
            patch.setenv("BIGQUERY_EMULATOR_HOST", self.url)
            patch.setenv("STORAGE_EMULATOR_HOST", self.url)
            patch.setattr(BigqueryV2, "BASE_URL", f"{self.url}/bigquery/v2/")  # the one address without an option
            patch.setattr(auth._Credentials, "_credentials_init", False)  # a process signs in once
            patch.setattr(auth._Credentials, "_credentials", None)
            yield

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        url = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        request = Request(url.path, query, handler.headers, body)
        answer = request_refused(404, "notFound", f"{handler.command} {handler.path} is not known here")
        for method, pattern, call in ROUTES:
            found = re.fullmatch(pattern, url.path)
            if method == handler.command and found:
                with self._lock:
                    try:
                        answer = call(self, request, *map(unquote, found.groups()))
                    except Exception as error:  # else clients would try again for minutes
                        answer = request_refused(400, "invalid", repr(error))
                break
        content = answer.content if isinstance(answer.content, bytes) else json.dumps(answer.content or {}).encode()
        handler.send_response(answer.status)
        for header in (("Content-Type", "application/json"), ("Content-Length", str(len(content))), *answer.headers):
            handler.send_header(*header)
        handler.end_headers()
        handler.wfile.write(content)

    # ------------------------------------------------------------------ BigQuery

    def _get_table(self, _: Request, dataset: str, table: str) -> Answer:
        found = self.tables.get(f"{dataset}.{table}")
        return Answer(200, found) if found else request_refused(404, "notFound", f"Not found: Table {table}")

    def _create_table(self, request: Request, dataset: str) -> Answer:
        resource = request.json
        name = f"{dataset}.{resource['tableReference']['tableId']}"
        if name in self.tables:
            return request_refused(409, "duplicate", f"Already Exists: Table {name}")
        self.tables[name] = resource
        return Answer(200, resource)

    def _insert_all(self, request: Request, dataset: str, table: str) -> Answer:
        name = f"{dataset}.{table}"
        self.inserts.append(name)
        if self.faults[name]:
            return self.faults[name].popleft()
        if name not in self.tables:
            return request_refused(404, "notFound", f"Not found: Table {name}")
        errors = []
        for index, entry in enumerate(request.json["rows"]):
            faults = list(misfits(entry["json"], self.tables[name]["schema"]["fields"]))
            if faults:
                errors.append({"index": index, "errors": [{"reason": "invalid", "message": text} for text in faults]})
            elif (name, entry["insertId"]) not in self._insert_ids:
                self._insert_ids.add((name, entry["insertId"]))
                self.rows[name].append(entry["json"])
        if self.lost_answers[name]:
            self.lost_answers[name] -= 1
            return request_refused(503, "backendError")
        return Answer(200, {"insertErrors": errors} if errors else {})

    def _insert_job(self, request: Request) -> Answer:
        job = request.json
        load = job["configuration"]["load"]
        where = load["destinationTable"]
        name = f"{where['datasetId']}.{where['tableId']}"
        table = self.tables.setdefault(name, {"tableReference": where, "schema": load["schema"]})
        lines = [
            json.loads(line)
            for uri in load["sourceUris"]
            for line in self.objects[uri.removeprefix("gs://")].splitlines()
        ]
        faults = [text for line in lines for text in misfits(line, table["schema"]["fields"])]
        job["status"] = {"state": "DONE"}
        if faults:
            job["status"]["errorResult"] = {"reason": "invalid", "message": faults[0]}
        else:
            self.rows[name] += lines
        job["id"] = job["jobReference"]["jobId"]
        self._jobs[job["id"]] = job
        return Answer(200, job)

    def _query(self, request: Request) -> Answer:
        return Answer(200, sqlite_query.answer(request.json["query"], self.tables, self.rows))

    def _get_job(self, _: Request, name: str) -> Answer:
        return Answer(200, self._jobs[name])

    # ------------------------------------------------------------------ Cloud Storage

    def _get_bucket(self, _: Request, bucket: str) -> Answer:
        return Answer(200, {"name": bucket, "softDeletePolicy": {"retentionDurationSeconds": "0"}})

    def _start_upload(self, request: Request, bucket: str) -> Answer:
        """Of a whole object with its description, or the announcement of parts."""
        if request.query["uploadType"] == "multipart":
            head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
            description, content = (
                part.get_payload(decode=True) for part in message_from_bytes(head + request.body).get_payload()
            )  # type: ignore[union-attr]  # a multipart message is a list of messages
            return self._keep(bucket, json.loads(description)["name"], content)
        name = request.query.get("name") or request.json["name"]
        self._uploads[f"{bucket}/{name}"] = b""
        return Answer(200, {}, (("Location", f"{self.url}/parts/{bucket}/{name}"),))

    def _add_part(self, request: Request, bucket: str, name: str) -> Answer:
        so_far = self._uploads[f"{bucket}/{name}"] = self._uploads[f"{bucket}/{name}"] + request.body
        if request.headers["Content-Range"].endswith("/*"):
            return Answer(RESUME_INCOMPLETE, {}, (("Range", f"bytes=0-{len(so_far) - 1}"),) if so_far else ())
        return self._keep(bucket, name, self._uploads.pop(f"{bucket}/{name}"))

    def _keep(self, bucket: str, name: str, content: bytes) -> Answer:
        self.objects[f"{bucket}/{name}"] = content
        return Answer(200, self._description(bucket, name))

    def _get_object(self, request: Request, bucket: str, name: str) -> Answer:
        if f"{bucket}/{name}" not in self.objects:
            return request_refused(404, "notFound", f"No such object: {bucket}/{name}")
        if request.query.get("alt") == "media":
            return _part(self.objects[f"{bucket}/{name}"], request.headers.get("Range"))
        return Answer(200, self._description(bucket, name))

    def _list_objects(self, request: Request, bucket: str) -> Answer:
        prefix = f"{bucket}/{request.query.get('prefix', '')}"
        names = sorted(name for name in self.objects if name.startswith(prefix))
        return Answer(200, {"items": [self._description(*name.split("/", 1)) for name in names]})

    def _copy_object(self, _: Request, bucket: str, name: str, to_bucket: str, to_name: str) -> Answer:
        kept = self._keep(to_bucket, to_name, self.objects[f"{bucket}/{name}"])
        size = str(len(self.objects[f"{bucket}/{name}"]))
        done = {"done": True, "totalBytesRewritten": size, "objectSize": size, "resource": kept.content}
        return Answer(200, done)

    def _delete_object(self, _: Request, bucket: str, name: str) -> Answer:
        gone = self.objects.pop(f"{bucket}/{name}", None) is None
        return request_refused(404, "notFound", name) if gone else Answer(204, b"")

    def _description(self, bucket: str, name: str) -> dict[str, Any]:
        updated = datetime.datetime.now(tz=datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        content = self.objects[f"{bucket}/{name}"]
        sums = {
            "md5Hash": base64.b64encode(hashlib.md5(content).digest()).decode(),
            "crc32c": base64.b64encode(google_crc32c.Checksum(content).digest()).decode(),
        }
        place = {"bucket": bucket, "name": name, "generation": "1"}
        return place | {"size": str(len(content)), "updated": updated} | sums


_BIGQUERY = "/bigquery/v2/projects/[^/]+"
_OBJECT = "/storage/v1/b/([^/]+)/o"
ROUTES: list[tuple[str, str, Any]] = [
    ("GET", f"{_BIGQUERY}/datasets/([^/]+)/tables/([^/]+)", GoogleServer._get_table),
    ("POST", f"{_BIGQUERY}/datasets/([^/]+)/tables", GoogleServer._create_table),
    ("POST", f"{_BIGQUERY}/datasets/([^/]+)/tables/([^/]+)/insertAll", GoogleServer._insert_all),
    ("POST", f"{_BIGQUERY}/jobs", GoogleServer._insert_job),
    ("GET", f"{_BIGQUERY}/jobs/([^/]+)", GoogleServer._get_job),
    ("POST", f"{_BIGQUERY}/queries", GoogleServer._query),
    ("GET", "/storage/v1/b/([^/]+)", GoogleServer._get_bucket),
    ("POST", f"/upload{_OBJECT}", GoogleServer._start_upload),
    ("PUT", "/parts/([^/]+)/(.+)", GoogleServer._add_part),
    ("GET", _OBJECT, GoogleServer._list_objects),
    ("GET", f"(?:/download)?{_OBJECT}/([^/]+)", GoogleServer._get_object),
    ("POST", f"{_OBJECT}/([^/]+)/rewriteTo/b/([^/]+)/o/([^/]+)", GoogleServer._copy_object),
    ("DELETE", f"{_OBJECT}/([^/]+)", GoogleServer._delete_object),
]


def _part(content: bytes, asked: str | None) -> Answer:
    """The bytes that a Range header asks for; all without one."""
    if asked is None:
        return Answer(200, content)
    start, end = (int(number) if number else None for number in asked.removeprefix("bytes=").split("-"))
    if start is not None and start >= len(content):
        return request_refused(416, "requestedRangeNotSatisfiable", f"The object has {len(content)} bytes.")
    part = content[start : None if end is None else end + 1]
    return Answer(206, part, (("Content-Range", f"bytes {start}-{(start or 0) + len(part) - 1}/{len(content)}"),))


def rows_refused(number: int, reason: str) -> Answer:
    """An answer to an insert of so many rows: all of them refused for this reason."""
    errors = [{"reason": reason, "message": f"a {reason} of this test"}]
    return Answer(200, {"insertErrors": [{"index": index, "errors": errors} for index in range(number)]})


def request_refused(status: int, reason: str, message: str = "of this test") -> Answer:
    """An answer to a request: nothing of it was done."""
    return Answer(status, {"error": {"code": status, "message": message, "errors": [{"reason": reason}]}})


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", value) is not None


_IS: dict[str, Any] = {
    "STRING": lambda value: isinstance(value, str),
    "INTEGER": lambda value: type(value) is int and -(1 << 63) <= value < 1 << 63,
    "FLOAT": lambda value: type(value) in (int, float),
    "BOOLEAN": lambda value: type(value) is bool,
    "TIMESTAMP": _is_time,
    "RECORD": lambda value: isinstance(value, dict),
}


def misfits(row: dict[str, Any], columns: list[dict[str, Any]], path: str = "") -> Iterator[str]:
    """What a table with these columns would say against a row."""
    for name in sorted(row.keys() - {column["name"] for column in columns}):
        yield f"no such field: {path}{name}."
    for column in columns:
        where, value = f"{path}{column['name']}", row.get(column["name"])
        if column["mode"] == "REPEATED":
            if not isinstance(value, list):
                yield f"Array specified for non-repeated field: {where}."
                continue
            values = value
        else:
            if value is None and column["mode"] == "REQUIRED":
                yield f"Missing required field: {where}."
            values = [] if value is None else [value]
        for item in values:
            if not _IS[column["type"]](item):
                yield f"Cannot convert value of {where} to {column['type']}."
            elif column["type"] == "RECORD":
                yield from misfits(item, column["fields"], f"{where}.")
