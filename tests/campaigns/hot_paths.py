"""Counts what the hot paths do on small inputs, and compares the counts with those of ``hot_paths.json``.

``python -m tests.campaigns.hot_paths`` prints for each path the bytecode instructions that Python executes, the calls
of functions, of Python and of C, and the peak of allocated bytes. If one of them is more than 2 % above the stored
figure, it names the path and ends with 1. ``--write`` stores the figures. With one version of Python and the locked
packages, instructions and calls are the same in each run, and bytes within 0.6 %, however busy the machine is. A loop
over reports, a copy of a column or a lost cache is seen. An array operation that takes longer with as many calls and
bytes is not: for that there are benchmarks.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import io
import json
import os
import platform
import sys
import tracemalloc
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from labs.benchmarks import gateway, groups, measure
from packages.gateway.tests.support.desks import Kept
from uldp_transforms.collector.growing_files import GROWING
from uldp_transforms.collector.period_counts import count_batches
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.messages import native_module, wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.report_tables import read_table
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.windows import Windows
from uldp_transforms_compare.comparisons import compare
from uldp_transforms_gateway.admission import Admission
from uldp_transforms_gateway.limits import Limits
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.packer import Packer
from uldp_transforms_gateway.web import Desk, Door, application

FIGURES = Path(__file__).with_suffix(".json")
LIMIT = 0.02
"""Growth, as a share of the stored figure, above which a path has become dearer."""
WRITE = "python -m tests.campaigns.hot_paths --write"

_REPORTS = 2_000
_HOUR = 3_600_000
_PINNED = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
"""Environment of a measurement: sets have one order, and no thread of numpy allocates."""


class Cost(NamedTuple):
    """What one round of a path takes: instructions of bytecode, function calls, and bytes at its peak beyond those at
    its start."""

    instructions: int
    calls: int
    bytes: int


# ---------------------------------------------------------------------- messages and counts


def _decoder(of: Collection) -> MessageDecoder:
    return MessageDecoder(CollectionCatalog([of]))


def decode_single() -> Callable[[], Any]:
    of = measure.collection("krr", 16, 64)
    decoder, messages = _decoder(of), wire.encode_reports(measure.reports(of, _REPORTS))
    return lambda: decoder.decode(messages)


def decode_packed() -> Callable[[], Any]:
    of = measure.collection("krr", 16, 64)
    batch = measure.reports(of, 10 * _REPORTS)
    decoder, messages = _decoder(of), [wire.encode_batch(batch[at : at + 1000]) for at in range(0, len(batch), 1000)]
    return lambda: decoder.decode(messages)


def decode_bits() -> Callable[[], Any]:
    """Hashed values, as 128 bytes of bits."""
    of = measure.collection("rappor", 1024, 64)
    decoder, messages = _decoder(of), wire.encode_reports(measure.reports(of, _REPORTS))
    return lambda: decoder.decode(messages)


def count() -> Callable[[], Any]:
    """Decoded reports of a day, by hour."""
    of = measure.collection("krr", 16, 64)
    catalog, periods = CollectionCatalog([of]), Windows(size=_HOUR).periods
    parts = _decoder(of).decode([wire.encode_batch(measure.reports(of, 10 * _REPORTS))]).parts
    return lambda: deque(count_batches(catalog, parts, periods), 0)


def merge() -> Callable[[], Any]:
    of = measure.collection("rappor", 256, 64)
    batch = measure.reports(of, _REPORTS)
    first, *others = [of.count(batch[at : at + 50]) for at in range(0, len(batch), 50)]

    def add_up() -> CohortCounts:
        total = RunningSum(first)
        for counts in others:
            total.add(counts)
        return total.snapshot()

    return add_up


def read_parquet() -> Callable[[], Any]:
    """Single reports with ids as rows of a table."""
    of = measure.collection("krr", 16, 64)
    batch = measure.reports(of, 10 * _REPORTS)
    records = wire.report_records(batch)
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(records), file)

    def read() -> None:
        file.seek(0)
        for _ in read_table(file, "reports.parquet"):
            pass

    return read


# ---------------------------------------------------------------------- estimates and rows


def _skewed(of: Collection, number: int, seed: int, group: Mapping[str, str] | None = None) -> ReportBatch:
    """Reports of values of which the i-th has a share proportional to 1 / i."""
    values, rng = list(of.alphabet.known_values or ()), np.random.default_rng(seed)
    law = 1 / np.arange(1, len(values) + 1)
    held = rng.choice(values, number, p=law / law.sum()).tolist()
    return of.perturb(held, rng, None, group and {name: [text] * number for name, text in group.items()})


def _solve(estimator: str) -> Callable[[], Any]:
    """One window of 500 values."""
    of = groups.closed("krr", 500, [])
    counts = of.count(_skewed(of, 5_000, 1))
    return lambda: of.estimate(counts, estimator)


def write_rows() -> Callable[[], Any]:
    """The rows of 100 windows, as JSON and Parquet."""
    of = groups.closed("krr", 64, [])
    samples = [_sample(of, hour) for hour in range(100)]

    def write() -> None:
        files = [GROWING[form](io.BytesIO(), ESTIMATE_SCHEMA, "rows") for form in ("jsonl", "parquet")]
        for row in rows_of(samples, Asked(estimator=ESTIMATORS["eb"]())):
            for file in files:
                file.add(row.estimate)
        for file in files:
            file.end()

    return write


def _sample(of: Collection, hour: int) -> Sample:
    place = {"window_start": f"2001-09-{hour // 24 + 1:02}T{hour % 24:02}:00:00Z", "window_end": None, "run": "r"}
    place |= {"pane_index": 0, "pane_timing": "ON_TIME"}
    return Sample(owner=Owner(named=of), place=place, counts={of.fingerprint: of.count(_skewed(of, 300, hour))})


def compare_sides() -> Callable[[], Any]:
    of = groups.closed("krr", 64, [])
    first, second = (of.estimate(of.count(_skewed(of, 1_000, seed)), "eb") for seed in (1, 2))
    return lambda: compare(first, second)


# ---------------------------------------------------------------------- clients and the gateway


def perturb_one() -> Callable[[], Any]:
    of, rng = groups.closed("krr", 16, []), np.random.default_rng(1)
    return lambda: of.perturb(["3"], rng, [1_000_000_000_000])


def perturb_batch() -> Callable[[], Any]:
    of, rng = measure.collection("rappor", 128, 64), np.random.default_rng(1)
    values, times = [f"value {at % 100}" for at in range(_REPORTS)], np.arange(_REPORTS) + 1_000_000_000_000
    return lambda: of.perturb(values, rng, times)


def answer_request() -> Callable[[], Any]:
    """One report in a request, which is delivered at once: the application without its server and sockets."""
    of = Collection.from_json(gateway.COLLECTION)
    (body,) = wire.encode_reports(of.perturb(["3"], np.random.default_rng(1), [1_000_000_000_000]))
    scope = {"type": "http", "method": "POST", "path": "/reports", "query_string": b"", "client": None}
    scope["headers"] = [(b"host", b"localhost"), (b"content-length", b"%d" % len(body))]
    meters = Meters([].append)
    door = Door(Limits(10**6, 100, 10**7, meters), 60, meters)
    desk = Desk(Admission(_decoder(of), 10), Packer(Kept(), 1, 60, meters), door, meters, spools=False)
    app = application({"/reports": desk.reports}, meters, (), _no_life())

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: Any) -> None:
        assert event.get("status", 200) == 200

    loop = asyncio.new_event_loop()
    return lambda: loop.run_until_complete(app(dict(scope), receive, send))


@contextlib.asynccontextmanager
async def _no_life() -> AsyncIterator[None]:
    yield


PATHS: dict[str, Callable[[], Callable[[], Any]]] = {
    f"decode {_REPORTS:,} single messages": decode_single,
    f"decode {10 * _REPORTS:,} packed reports": decode_packed,
    f"decode {_REPORTS:,} single messages of 1,024 hashed bits": decode_bits,
    f"count {10 * _REPORTS:,} reports of a day by hour and cohort": count,
    "add up 40 counts of 256 bits and 64 cohorts": merge,
    "solve a window of 500 values, empirical": lambda: _solve("empirical"),
    "solve a window of 500 values, eb": lambda: _solve("eb"),
    "write the rows of 100 windows of 64 values": write_rows,
    "perturb one value": perturb_one,
    f"perturb {_REPORTS:,} values": perturb_batch,
    "answer one request at the gateway": answer_request,
    f"read {10 * _REPORTS:,} reports from Parquet": read_parquet,
    "compare two estimates of 64 values": compare_sides,
}
"""What is measured: functions that prepare a path, and return one round of it."""


# ---------------------------------------------------------------------- counting and comparing


def cost_of(work: Callable[[], Any]) -> Cost:
    """What a round takes after two others, which fill what is kept from round to round."""
    work()
    work()
    gc.collect()
    gc.disable()
    try:
        return Cost(_instructions(work), _calls(work), _bytes(work))
    finally:
        gc.enable()


def _instructions(work: Callable[[], Any]) -> int:
    number = 0

    def seen(frame: Any, event: str, argument: Any) -> Any:
        nonlocal number
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        number += event == "opcode"
        return seen

    sys.settrace(seen)
    try:
        work()
    finally:
        sys.settrace(None)
    return number


def _calls(work: Callable[[], Any]) -> int:
    number = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


def _bytes(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def measured() -> dict[str, Cost]:
    """The cost of each path, with the decoder in numpy, which every installation has."""
    with mock.patch.object(native_module, "native", lambda: None):
        return {name: cost_of(prepare()) for name, prepare in PATHS.items()}


def stored() -> dict[str, Cost]:
    """The figures of the file."""
    return {name: Cost(**cost) for name, cost in json.loads(FIGURES.read_text("utf-8"))["paths"].items()}


def grown(now: Mapping[str, Cost], before: Mapping[str, Cost]) -> Iterator[str]:
    """A sentence for each figure above its limit, and for each path that only one of them has."""
    for name in now.keys() ^ before.keys():
        yield f"{name}: measured or stored only"
    for name in now.keys() & before.keys():
        for unit, is_now, was in zip(Cost._fields, now[name], before[name]):
            if is_now > was * (1 + LIMIT):
                yield f"{name}: {is_now:,} {unit}, {is_now / was:.2f} times the stored {was:,}"


def _print(now: Mapping[str, Cost], before: Mapping[str, Cost]) -> None:
    """A line for each path, with the ratio to the stored figures in brackets."""
    for name, cost in now.items():
        was = before.get(name, cost)
        told = (f"{figure:11,} {unit} ({figure / old:.3f})" for unit, figure, old in zip(Cost._fields, cost, was))
        print("".join(told), f" {name}")


def version() -> str:
    """The version of Python to which figures belong."""
    return ".".join(platform.python_version_tuple()[:2])


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hot_paths", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"store the figures in {FIGURES.name}")
    args = parser.parse_args(argv)
    if any(os.environ.get(name) != text for name, text in _PINNED.items()):
        os.execve(sys.executable, [sys.executable, "-m", "tests.campaigns.hot_paths", *argv], os.environ | _PINNED)
    now, before = measured(), stored() if FIGURES.exists() else {}
    _print(now, before)
    if args.write:
        figures = {"python": version(), "paths": {name: cost._asdict() for name, cost in now.items()}}
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        return 0
    sentences = sorted(grown(now, before))
    for sentence in sentences:
        print(sentence)
    if sentences:
        print(f"if this growth is intended, {WRITE} stores the new figures")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
