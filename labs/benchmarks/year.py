"""The whole way of many windows, many groups and many values, with the memory of each program over time.

``python -m labs.benchmarks year --hours 720`` makes the reports of a month, runs ``estimate`` over them, then
``check``, ``total`` (``reestimate --window all``), ``compare`` by groups and by windows, and ``report``; each is a
process of its own.
``--stream 180`` gives reports of the same shape to a job that runs for 180 seconds instead, one window a second: with
``--follow``, which reads a directory, and on the local engine, which reads the Pub/Sub server of the tests. The lag of
a window is the time from its end to the file with its last row.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import fastavro
import numpy as np

from labs.benchmarks import entries
from labs.benchmarks.arrivals import Arrivals
from labs.benchmarks.watched import watched
from tests.support import live
from tests.support.spool_writer import finished
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

_PACKED = 1_000
_PATIENCE = 600.0
"""Seconds to wait for the rows of the last reports of a stream."""


def files(folder: Path, of: Collection, hours: int, reports: int) -> None:
    """From files of reports to rows, their check, totals, comparisons and a page."""
    begin = time.process_time()
    with (folder / "reports.avro").open("wb") as out:
        fastavro.writer(out, wire.BATCH_SCHEMA, entries.records(of, hours, reports))
    print(f"  reports: {time.process_time() - begin:.0f} s of CPU, {_megabytes(folder / 'reports.avro')}", flush=True)
    rows = str(folder / "rows")
    named = f"--collection={folder / 'collection.json'}"
    job = ["estimate", f"--input={folder / 'reports.avro'}", named, f"--output={rows}", "--window=1h", "--by=g"]
    for words, output in (
        ([*job, "--write_counts"], "rows"),
        (["check", rows], "rows"),
        (["reestimate", rows, "--window=all", "--by=g", f"--totals={folder}/totals.jsonl"], "totals.jsonl"),
        (["compare", rows, "--by=g", "--against=g=g0", f"--output={folder}/groups.jsonl"], "groups.jsonl"),
        (["compare", rows, "--windows", f"--output={folder}/windows.jsonl"], "windows.jsonl"),
        (["report", rows, f"--output={folder}/page.html"], "page.html"),
    ):
        with (folder / "log").open("wb") as log, watched(words, log) as program:
            code = program.ended()
        said = (folder / "log").read_text("utf-8")
        if code:
            raise RuntimeError(f"{words[0]} ended with {code}: {said[-2000:]}")
        for forecast in (line for line in said.splitlines() if "a window has up to" in line):
            print(f"  {forecast}")
        name = " ".join(word for word in words if word in (words[0], "--window=all", "--by=g", "--windows"))
        print(f"  {name}: {program.line(hours)}, {_megabytes(folder / output)}", flush=True)


def _megabytes(path: Path) -> str:
    paths = path.rglob("*") if path.is_dir() else [path]
    return f"{sum(each.stat().st_size for each in paths if each.is_file()) / 1e6:,.0f} MB on disk"


def stream(folder: Path, of: Collection, seconds: int, reports: int, *, follow: bool) -> None:
    """A window a second while a job runs, which reads a directory (``follow``) or a subscription."""
    output = folder / "rows"
    job = ["estimate", f"--collection={folder / 'collection.json'}", f"--output={output}", "--window=1s", "--by=g"]
    job += ["--allowed_lateness=10s", "--flush_every=10s"]
    with live.broker(600) as broker, (folder / "log").open("wb") as log:
        if follow:
            (folder / "spool").mkdir()
            (folder / "spool" / "lock").touch()  # as a gateway does
            job += ["--follow", f"--input={folder / 'spool'}"]
        else:
            job += [f"--subscription={live.SUBSCRIPTION}"]
        arrivals = Arrivals(output)
        with watched(job, log) as program:
            deliver = _spooling(folder / "spool") if follow else broker.publish
            sent = _send(of, seconds, reports, deliver, arrivals.look)
            begin = time.monotonic()
            while arrivals.reports < sent and time.monotonic() < begin + _PATIENCE:
                if program.process.poll() is not None:
                    raise RuntimeError(f"the job ended: {(folder / 'log').read_text('utf-8')[-2000:]}")
                time.sleep(1)
                arrivals.look()
            behind = time.monotonic() - begin
            program.process.terminate()
            program.ended()
    print(f"  {'--follow' if follow else 'local engine'}: {program.line()}", flush=True)
    windows, size = len(arrivals.windows), _megabytes(output)
    print(f"    {sent:,} reports sent, {arrivals.reports:,} counted in {windows:,} windows, {size}")
    behind_by = f"last rows {behind:.0f} s after the last reports"
    lags = " ".join(f"{max(part):.0f}" for part in np.array_split(arrivals.lags(), 10) if len(part))
    print(f"    {behind_by}; longest lag in each tenth of the windows: {lags} s", flush=True)


def _spooling(spool: Path) -> Callable[[Sequence[bytes]], None]:
    def write(messages: Sequence[bytes]) -> None:
        finished(spool, messages)

    return write


def _send(
    of: Collection, seconds: int, reports: int, deliver: Callable[[Sequence[bytes]], None], look: Callable[[], None]
) -> int:
    """Give the reports of each second to the job in that second, and look at its rows; returns their number."""
    rng, number = np.random.default_rng(1), reports * len(of.dimensions[0].all_values)
    begin = time.monotonic()
    for second in range(seconds):
        times = np.full(number, time.time_ns() // 1_000_000)
        batch = entries.window_reports(of, times, rng)
        deliver([wire.encode_batch(batch[at : at + _PACKED]) for at in range(0, number, _PACKED)])
        look()
        time.sleep(max(0.0, begin + second + 1 - time.monotonic()))
    return seconds * number


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m labs.benchmarks year", description=__doc__)
    parser.add_argument("--hours", type=int, default=720, help="windows (default: 720, a month)")
    parser.add_argument("--groups", type=int, default=entries.GROUPS - 1, help="groups (default: 50)")
    parser.add_argument("--values", type=int, default=entries.VALUES, help="values (default: 500)")
    parser.add_argument("--reports", type=int, default=entries.REPORTS, help="per group and window (default: 200)")
    parser.add_argument(
        "--stream", type=int, metavar="SECONDS", help="a stream for this time instead, a window a second"
    )
    args = parser.parse_args(argv)
    of = entries.collection(args.groups, args.values)
    print(
        f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {args.groups} groups of {args.values} values"
    )
    ways: list[Callable[[Path], None]] = [lambda folder: files(folder, of, args.hours, args.reports)]
    if args.stream:
        ways = [
            lambda folder, way=way: stream(folder, of, args.stream, args.reports, follow=way) for way in (True, False)
        ]
    for run in ways:
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "collection.json").write_text(json.dumps(of.to_json()), encoding="utf-8")
            run(Path(name))
    return 0
