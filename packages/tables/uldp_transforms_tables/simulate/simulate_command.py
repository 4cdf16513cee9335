"""Simulates clients: values in, perturbed reports out, as an Avro file or on a Pub/Sub topic.

Event times are rounded down to the client_window of the collection, as clients do. Without one they are kept exact,
while clients round them down to the hour unless the app sets a finer unit.
"""

from __future__ import annotations

import argparse
import dataclasses
import errno
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import fastavro
import numpy as np

from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.google_clients import require_google_clients
from uldp_transforms.jobs.files.progress import PROGRESS, reports_of
from uldp_transforms.jobs.pubsub.pubsub_access import require_topic
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import RANDOMNESS, SEEDED
from uldp_transforms.messages.manifest import listed_file, manifest_text
from uldp_transforms.messages.set_groups import set_in_batch
from uldp_transforms_tables.cell_texts import as_listed
from uldp_transforms_tables.people_options import PEOPLE, TABLE, people_in, say_missing
from uldp_transforms_tables.simulate.simulated_people import SimulatedPeople
from uldp_transforms_tables.values_file import ROWS_AT_ONCE, ValuesFile


@dataclasses.dataclass(frozen=True, kw_only=True)
class Simulation:
    """Options of a simulation."""

    collection: Collection
    values: ValuesFile
    person_column: str | None
    dimensions: dict[str, str]
    output: str | None
    manifest: str | None
    topic: str | None
    form: str
    pack: int
    rate: float | None
    seed: int | None
    progress: int | None


def _parser() -> cli.Parser:
    parser = cli.Parser("simulate", description=__doc__)
    parser.add_argument("collection", metavar="C.json", help="JSON file of the collection")
    parser.add_argument(
        "--values",
        required=True,
        help=f"table of people's values ({TABLE}): column value, optional column event_time (RFC 3339, or seconds "
        "since 1970; default: now), and a column for each dimension of the collection",
    )
    cli.add_options(parser, PEOPLE)
    parser.add_argument(
        "--person_column",
        help="name of the column that identifies people, whose reports repeat memos; for collections with epsilon_inf "
        "(default: each row is a different person)",
    )
    parser.add_argument(
        "--dimension_column",
        type=cli.name_and_value,
        action="append",
        metavar="NAME=COLUMN",
        help="column of a dimension whose column has another name than the dimension; may be given several times",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--output", help="where to write the reports: an Avro file")
    target.add_argument("--topic", type=cli.resource("topics"), help="Pub/Sub topic to publish to, projects/P/topics/T")
    parser.add_argument(
        "--manifest", help="manifest that lists the content of --output: a JSON file to write, in the same directory"
    )
    parser.add_argument(
        "--form",
        choices=("single", "packed"),
        default="single",
        help="whether a message has one report or up to --pack reports",
    )
    parser.add_argument("--pack", type=cli.positive(), default=1000, help="reports per packed message")
    parser.add_argument("--rate", type=cli.positive(float), help="reports to publish per second (default: all at once)")
    cli.add_options(parser, PROGRESS)
    parser.add_argument("--seed", type=cli.seed, help="seed for reproducible reports (default: secure random numbers)")
    return parser


def configure(argv: Sequence[str]) -> Simulation:
    """Parse the command line; raises SpecError or OSError."""
    args = _parser().parse_args(argv)
    if args.topic is not None:
        require_google_clients("--topic")
    if args.rate is not None and args.topic is None:
        raise SpecError("--rate needs --topic, got --output")
    if args.manifest is not None and args.output is None:
        raise SpecError("--manifest needs --output, got --topic")
    args.collection = read_collections([args.collection])[0]
    args.collection.mechanism.check_clients()
    args.dimensions = _dimension_columns(args.collection, args.dimension_column or [])
    args.values = _table(args)
    given = vars(args)
    for name in ("dimension_column", *PEOPLE):
        del given[name.removeprefix("--")]
    if args.person_column is not None:
        SimulatedPeople(args.collection, args.seed)  # raises for a collection without memos
    if args.output is not None:
        _check_place("--output", args.output, args.values.path)
    if args.manifest is not None:
        _check_place("--manifest", args.manifest, args.values.path)
        places = [os.path.realpath(path) for path in (args.output, args.manifest)]
        if places[0] == places[1] or len(set(map(os.path.dirname, places))) > 1:
            raise SpecError(f"--manifest must be another file in the folder of --output, got {args.manifest!r}")
    if (
        args.form == "packed"
        and args.pack * wire.packed_bytes(args.collection.mechanism.payload_size) > wire.MAX_MESSAGE_BYTES - 100
    ):
        raise SpecError(f"--pack must keep messages below {wire.MAX_MESSAGE_BYTES} bytes, got {args.pack}")
    return Simulation(**vars(args))


def _dimension_columns(collection: Collection, named: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Dimension -> its column; raises SpecError if ``named`` has another dimension, or one with two columns."""
    columns = {one.name: one.name for one in collection.dimensions}
    for name, _ in named:
        if name not in columns:
            known = ", ".join(columns) or "none"
            raise SpecError(f"--dimension_column must name dimensions of the collection ({known}), got {name!r}")
    return columns | cli.by_name("--dimension_column", named)


def _table(args: argparse.Namespace) -> ValuesFile:
    """The table of people, with the columns of people and dimensions; raises SpecError, OSError."""
    others = {column: f"--dimension_column {name}=COLUMN" for name, column in args.dimensions.items()}
    if args.person_column is not None:
        others[args.person_column] = "--person_column"
    listed = {args.dimensions[one.name]: one.values for one in args.collection.dimensions}
    listed[""] = args.collection.alphabet.known_values or args.collection.alphabet.clear_values
    return people_in(args.values, args, others, listed)


def _check_place(option: str, path: str, values: str) -> None:
    """Refuse paths that cannot be written (raises OSError) or whose content would be destroyed."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.exists(path) and (os.path.samefile(path, values) or not os.path.isfile(path)):
        raise SpecError(f"{option} must be a separate file, got {path!r}")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def job(simulation: Simulation) -> int:
    """Perturb all values and write or publish the reports."""
    number = _publish(simulation) if simulation.topic else _write(simulation)
    where = simulation.topic or simulation.output
    print(f"simulate: {number} reports to {where}, randomness: {_randomness(simulation)}", file=sys.stderr)
    say_missing("simulate", simulation.values)
    if simulation.values.time_column is None:
        print(f"simulate: {_of_now(simulation.values)}", file=sys.stderr)
    return cli.DONE


def _of_now(values: ValuesFile) -> str:
    seen = ", ".join(values.columns)
    return f"all reports are of now, for {values.path} has no column event_time but {seen}; --time_column names another"


def _randomness(simulation: Simulation) -> str:
    return "system" if simulation.seed is None else f"{SEEDED} ({simulation.seed}), for simulation only"


def _batches(simulation: Simulation, rows_at_once: int) -> Iterator[ReportBatch]:
    rng = None if simulation.seed is None else np.random.default_rng(simulation.seed)
    people = SimulatedPeople(simulation.collection, simulation.seed) if simulation.person_column else None
    with reports_of("simulate", simulation.progress, simulation.values.about_rows) as line:
        for rows in simulation.values.rows(rows_at_once):
            if not len(rows.numbers):
                continue
            values = _in_collection(simulation, rows.columns[simulation.values.column])
            times = np.full(len(values), time.time_ns() // 1_000_000) if rows.times is None else rows.times
            if simulation.collection.asked is not None:
                times = simulation.collection.asked.starts_of(times)
            dimensions = {name: rows.columns[column] for name, column in simulation.dimensions.items()}
            own, others = _by_setter(simulation.collection, dimensions)
            try:
                if people:
                    batch = people.reports(rows.columns[str(simulation.person_column)], values, rng, times, own)
                else:
                    batch = simulation.collection.perturb(values, rng, times, own)
            except SpecError as error:
                raise SpecError(_strangers(simulation) or f"{simulation.values.path}: {error}") from None
            yield set_in_batch(simulation.collection, batch, others) if others else batch
            line.update(len(batch))


def _by_setter(
    collection: Collection, columns: Mapping[str, list[str]]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The columns of dimensions that clients state, and of those that are set on the way."""
    own = {one.name for one in collection.dimensions if one.is_own}
    stated = {name: texts for name, texts in columns.items() if name in own}
    return stated, {name: texts for name, texts in columns.items() if name not in own}


def _in_collection(simulation: Simulation, values: list[str]) -> list[str]:
    """The values, with whole numbers as the collection writes them; see ``as_listed``."""
    return as_listed(values, simulation.collection.alphabet.strangers)


def _strangers(simulation: Simulation) -> str | None:
    """Line numbers of values that the collection does not list; the values themselves may be sensitive."""
    alphabet, file = simulation.collection.alphabet, simulation.values
    found, first = 0, None
    for rows in file.rows():
        strange = alphabet.strangers(_in_collection(simulation, rows.columns[file.column]))
        if strange.any() and first is None:
            first = int(rows.numbers[strange.argmax()])
        found += int(strange.sum())
    if first is None:
        return None
    return f"{file.place(first)} must have {alphabet.allowed}; rows with other values: {found} of {file.num_rows}"


def _write(simulation: Simulation) -> int:
    single = simulation.form == "single"
    metadata = {"uldp.collection": simulation.collection.id, RANDOMNESS: _randomness(simulation)}
    seeded = simulation.seed is not None
    sync = hashlib.sha256(f"sync {simulation.seed}".encode()).digest()[:16] if seeded else os.urandom(16)
    written = messages = 0

    def records() -> Iterator[dict[str, Any]]:
        nonlocal written, messages
        for batch in _batches(simulation, ROWS_AT_ONCE if single else simulation.pack):
            written += len(batch)
            messages += len(batch) if single else 1
            yield from wire.report_records(batch) if single else [wire.batch_record(batch)]

    with whole_file(str(simulation.output)) as file:  # an error in the values leaves no complete-looking file
        schema = wire.REPORT_SCHEMA if single else wire.BATCH_SCHEMA
        fastavro.writer(file, schema, records(), metadata=metadata, sync_marker=sync, sync_interval=1 << 18)
    if simulation.manifest is not None:
        output = str(simulation.output)
        listed = listed_file(output, os.path.basename(output), messages, written)
        with whole_file(simulation.manifest) as file:
            file.write(manifest_text([listed]))
    return written


def _publish(simulation: Simulation) -> int:
    from google.cloud import pubsub_v1  # noqa: PLC0415  # only publishing needs it, and it is slow to import

    require_topic("--topic", str(simulation.topic))
    single = simulation.form == "single"
    at_once = ROWS_AT_ONCE if simulation.rate is None else max(1, int(simulation.rate / 10))
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
    return cli.run("simulate", configure, job, argv, faults_of_job=(SpecError, OSError))
