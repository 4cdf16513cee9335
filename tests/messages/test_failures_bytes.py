"""Bytes that could take the process with them are read in a process of their own, whose memory is bounded.

The families of ``docs/failures.md`` that other files do not cover; those have their tests where they belong.
"""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.messages_cases import BATCH, REPORT, SCHEMAS, container, data, decoder, long, packed, single
from uldp_transforms.collector.ledger_entries import entry_of
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.rejection import Rejection

ROOT = Path(__file__).parents[2]
ROOM = 200 << 20  # bytes that the process may take beyond what its libraries do; a block of 16 MiB needs about half

PROGRAM = """
import io, resource, struct, sys, zlib
from uldp_transforms.messages import catalog, containers, decoder
from uldp_transforms.ldp import Collection

def as_file(content):
    found = containers.read_messages(io.BytesIO(content), "a.avro")
    return ["message" if isinstance(item, bytes) else item.reason.code for item in found]

def as_message(content):
    return [rejection.reason.code for rejection in decoder.MessageDecoder(job).decode([content])[1]]

def without_bound(content):
    return [len(zlib.decompress(content, -15))]

collection = {"id": "krr", "version": 1, "alphabet": {"id": "closed", "values": ["0", "1"]}}
job = catalog.CollectionCatalog([Collection.from_json(collection | {"mechanism": {"id": "krr", "epsilon": 1.0}})])
contents = []
while size := sys.stdin.buffer.read(8):
    contents.append(sys.stdin.buffer.read(struct.unpack("<Q", size)[0]))
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
for content in contents:
    print(*READ(content), flush=True)
"""


def in_a_process(read: str, contents: Iterable[bytes]) -> subprocess.CompletedProcess[bytes]:
    """A line for each content, from a process whose memory is bounded."""
    program = PROGRAM.replace("ROOM", str(ROOM)).replace("READ", read)
    sent = b"".join(struct.pack("<Q", len(content)) + content for content in contents)
    return subprocess.run([sys.executable, "-c", program], input=sent, cwd=ROOT, capture_output=True, check=False)


def verdicts(read: str, cases: Mapping[str, tuple[bytes, str]]) -> dict[str, str]:
    """What was said of each; a process that died said nothing of the last."""
    run = in_a_process(read, (content for content, _ in cases.values()))
    found = dict(zip(cases, run.stdout.decode().splitlines()))
    assert run.returncode == 0, (found, run.stderr[-2000:])
    return found


def deflated(size: int) -> bytes:
    """Zeros, which take a thousandth of their size: one flushed part, as often as needed."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    part = deflater.compress(bytes(1 << 24)) + deflater.flush(zlib.Z_FULL_FLUSH)
    return part * (size >> 24) + deflater.flush()


def schema(*fields: Any) -> bytes:
    return json.dumps(REPORT | {"fields": [*REPORT["fields"], *fields]}).encode()


RECURSIVE = {"name": "more", "type": ["null", "uldp.Report"]}
BOMB = deflated(1 << 30)
FILES = {
    "a recursive schema": (container([(1, b"\x02" * 100_000)], schema(RECURSIVE)), "unknown_schema"),
    "an array of nothing": (
        container([(1, long(1 << 40))], schema({"name": "more", "type": {"type": "array", "items": "null"}})),
        "unknown_schema",
    ),
    "a schema as deep as it is long": (container([], b"[" * 900_000), "unknown_schema"),
    "a bomb": (container([(1, BOMB), (1, deflated(0))], codec=b"deflate"), "block_too_large corrupt_block"),
    "a bomb of the largest block": (container([(1 << 40, deflated(1 << 24))], codec=b"deflate"), "corrupt_block"),
    "a block of 2**62 bytes": (container([]) + long(1) + long(1 << 62) + bytes(100), "block_too_large"),
    "2**62 reports in a block": (container([(1 << 62, single())]), "corrupt_block"),
    "2**62 batches in a block": (container([(1 << 62, packed())], BATCH), "corrupt_block"),
    "metadata of 2**62 entries": (b"Obj\x01" + long(1 << 62) + bytes(1 << 20), "bad_magic"),
}
HUGE = (1 << 31, 1 << 40, 1 << 62)
MESSAGES = {
    **{f"a payload of {size} bytes": (single(payload=long(size)), "malformed") for size in HUGE},
    **{f"times of {size} bytes": (packed(event_times=long(size)), "malformed") for size in HUGE},
    "9 MB of lengths": (b"\x02" * 9_000_000, "trailing_bytes"),
    "a message above the cap": (packed(payloads=data(bytes(40_000_000))), "too_large"),
    "a compressed message": (gzip.compress(single() * 1000, mtime=0), "unknown_schema"),
}


@pytest.mark.parametrize(("read", "cases"), [("as_file", FILES), ("as_message", MESSAGES)], ids=["files", "messages"])
def test_what_would_take_all_memory_or_the_stack_is_refused(read: str, cases: dict[str, tuple[bytes, str]]) -> None:
    assert verdicts(read, cases) == {name: verdict for name, (_, verdict) in cases.items()}


def test_a_reader_without_bounds_would_not_survive() -> None:
    """The limit of these tests is one: what inflates a block first and asks then, ends here."""
    assert b"MemoryError" in in_a_process("without_bound", [BOMB]).stderr


# ---------------------------------------------------------------------- schemas and names


@pytest.mark.parametrize("name", ["report.avsc", "report_batch.avsc"])
def test_reports_have_only_fields_that_cannot_nest_or_repeat(name: str) -> None:
    """No array, map, union, record, enum, boolean, logical type or real number."""
    for field in json.loads((SCHEMAS / name).read_text())["fields"]:
        kind = field["type"]
        assert kind in ("int", "long", "bytes") or (kind["type"] == "fixed" and "logicalType" not in kind), field


def test_a_hundred_thousand_unknown_collections_are_one_line_of_the_ledger() -> None:
    """Whoever invents names cannot make the ledger grow: what is unknown has no name."""
    prefixes = np.random.default_rng(1).integers(0, 256, (100_000, 8), dtype=np.uint8)
    messages = [single(collection=prefix.tobytes()) for prefix in prefixes]
    refused: list[Rejection] = decoder().decode(messages)[1]
    assert {rejection.reason for rejection in refused} == {Reason.UNKNOWN_COLLECTION}
    assert sum(rejection.num_reports for rejection in refused) == len(messages)
    assert {key for key, _ in map(entry_of, refused)} == {"/"}
