"""Simulates clients: values in, perturbed reports out, as an Avro file or on a Pub/Sub topic."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import decimal
import gzip
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import fastavro
import numpy as np

from pipelines import cli
from uldp_transforms import wire
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.specs import require_int
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

_CHUNK_ROWS = 1 << 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Simulation:
    """What to simulate and where to."""

    collection: Collection
    values: str
    output: str | None
    topic: str | None
    form: str
    pack: int
    rate: float | None
    seed: int | None


def configure(argv: Sequence[str]) -> Simulation:
    """The command line of ``pipelines.simulate``; raises SpecError or OSError."""
    parser = cli.Parser(prog="python -m pipelines.simulate", description=__doc__)
    parser.add_argument("--collection", required=True, help="JSON file of the collection")
    parser.add_argument(
        "--values",
        required=True,
        help="CSV file (or .csv.gz) with a header: column value, optional column event_time (RFC 3339 or seconds "
        "since 1970); without it reports carry the present time",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--output", help="Avro file to write")
    target.add_argument("--topic", help="Pub/Sub topic to publish to, projects/P/topics/T")
    parser.add_argument("--form", choices=("single", "packed"), default="single", help="one report a message, or many")
    parser.add_argument("--pack", type=cli.positive(), default=1000, help="reports of a packed message")
    parser.add_argument("--rate", type=cli.positive(float), help="reports per second to publish; all at once")
    parser.add_argument("--seed", help="reproducible reports, for simulation only; without it the system's randomness")
    args = parser.parse_args(argv)
    if args.rate is not None and args.topic is None:
        raise SpecError("--rate needs --topic, got --output")
    if args.seed is not None:
        if not args.seed.isascii() or not args.seed.isdigit():
            raise SpecError(f"--seed must be a whole number from 0, got {args.seed!r}")
        args.seed = int(args.seed)
        require_int("--seed", args.seed, 0, (1 << 64) - 1)
    args.collection = cli.read_collections([args.collection])[0]
    with open_values(args.values) as file:  # a missing file or column is found before anything is written
        _columns(args.values, csv.reader(file))
    return Simulation(**vars(args))


def job(simulation: Simulation) -> int:
    """Perturb all values and write or publish the reports."""
    try:
        number = _publish(simulation) if simulation.topic else _write(simulation)
    except SpecError as error:  # a line of the values that the collection cannot take
        print(f"simulate: {error}", file=sys.stderr)
        return cli.WRONG_CONFIGURATION
    where = simulation.topic or simulation.output
    print(f"simulate: {number} reports to {where}, randomness: {_randomness(simulation)}", file=sys.stderr)
    return cli.DONE


def _randomness(simulation: Simulation) -> str:
    return "system" if simulation.seed is None else f"seeded ({simulation.seed}), for simulation only"


def open_values(path: str) -> TextIO:
    """Open a CSV file, compressed if its name ends in .gz."""
    opener: Any = gzip.open if path.endswith(".gz") else open
    return opener(path, "rt", encoding="utf-8", newline="")


def read_values(path: str, rows_at_once: int) -> Iterator[tuple[list[str], np.ndarray | None]]:
    """Values and event times (milliseconds) of a CSV file, some rows at a time.

    Raises:
        SpecError: naming the line, never its content.
    """
    values: list[str] = []
    times: list[int] = []
    with open_values(path) as file:
        reader = csv.reader(file)
        value_at, time_at = _columns(path, reader)
        try:
            for row in reader:
                if not row:
                    continue
                if len(row) <= max(value_at, -1 if time_at is None else time_at):
                    raise SpecError(
                        f"{path} line {reader.line_num} must have all columns of the header, got {len(row)}"
                    )
                values.append(row[value_at])
                if time_at is not None:
                    times.append(_milliseconds(row[time_at], f"{path} line {reader.line_num}"))
                if len(values) >= rows_at_once:
                    yield values, np.array(times, np.int64) if time_at is not None else None
                    values, times = [], []
        except UnicodeDecodeError:
            raise SpecError(f"{path} must be UTF-8 text, got other bytes after line {reader.line_num}") from None
        except csv.Error as error:
            raise SpecError(f"{path} line {reader.line_num} must be CSV, got a fault: {error}") from None
    if values:
        yield values, np.array(times, np.int64) if time_at is not None else None


def _columns(path: str, reader: Any) -> tuple[int, int | None]:
    try:
        header: list[str] = next(reader, [])
    except UnicodeDecodeError:
        raise SpecError(f"{path} must be UTF-8 text, got other bytes in the first line") from None
    if header:
        header[0] = header[0].removeprefix("\ufeff")
    if "value" not in header:
        raise SpecError(f"{path} must have a column named value in its first line, got {len(header)} other column(s)")
    return header.index("value"), header.index("event_time") if "event_time" in header else None


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def _milliseconds(text: str, where: str) -> int:
    try:
        result = int(decimal.Decimal(text).scaleb(3).to_integral_value(decimal.ROUND_FLOOR))
    except (decimal.InvalidOperation, ValueError, OverflowError):
        try:
            moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
            moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)
            result = (moment - _EPOCH) // datetime.timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            raise SpecError(f"{where}: event_time must be RFC 3339 or seconds since 1970, got neither") from None
    if not MIN_EVENT_TIME <= result < MAX_EVENT_TIME:
        raise SpecError(f"{where}: event_time must lie in the years 1900 to 9998, got another year")
    return result


def _batches(simulation: Simulation, rows_at_once: int) -> Iterator[ReportBatch]:
    rng = None if simulation.seed is None else np.random.default_rng(simulation.seed)
    for values, times in read_values(simulation.values, rows_at_once):
        yield simulation.collection.perturb(values, rng, times)


def _write(simulation: Simulation) -> int:
    single = simulation.form == "single"
    metadata = {"uldp.collection": simulation.collection.id, "uldp.randomness": _randomness(simulation)}
    seeded = simulation.seed is not None
    sync = hashlib.sha256(f"sync {simulation.seed}".encode()).digest()[:16] if seeded else os.urandom(16)
    written = 0

    def records() -> Iterator[dict[str, Any]]:
        nonlocal written
        for batch in _batches(simulation, _CHUNK_ROWS if single else simulation.pack):
            written += len(batch)
            yield from wire.report_records(batch) if single else [wire.batch_record(batch)]

    with open(str(simulation.output), "wb") as file:
        schema = wire.REPORT_SCHEMA if single else wire.BATCH_SCHEMA
        fastavro.writer(file, schema, records(), metadata=metadata, sync_marker=sync, sync_interval=1 << 18)
    return written


def _publish(simulation: Simulation) -> int:
    from google.cloud import pubsub_v1  # type: ignore[attr-defined]  # noqa: PLC0415  # only publishing needs it, and it is slow to import

    single = simulation.form == "single"
    at_once = _CHUNK_ROWS if simulation.rate is None else max(1, int(simulation.rate / 10))
    attributes = {"uldp_collection": simulation.collection.id, "uldp_randomness": _randomness(simulation)}
    published, begin = 0, time.monotonic()
    with pubsub_v1.PublisherClient() as publisher:
        for batch in _batches(simulation, at_once if single else min(at_once, simulation.pack)):
            messages = wire.encode_reports(batch) if single else [wire.encode_batch(batch)]
            for future in [publisher.publish(simulation.topic, message, **attributes) for message in messages]:
                future.result()
            published += len(batch)
            if simulation.rate is not None:
                time.sleep(max(0.0, begin + published / simulation.rate - time.monotonic()))
    return published


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("simulate", configure, job, argv)


if __name__ == "__main__":
    sys.exit(main())
