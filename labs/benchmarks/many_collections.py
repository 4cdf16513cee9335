"""Jobs with thousands of collections: reports in random order, memory, start-up, and the cost of one estimate per
window."""

from __future__ import annotations

import contextlib
import functools
import pickle
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from labs.benchmarks.measure import DAY, collection, cpu_seconds, line
from uldp_transforms import EstimateReports
from uldp_transforms.beam.transforms import count_reports as count
from uldp_transforms.beam.transforms import estimate_distribution
from uldp_transforms.collector import period_counts as counting
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.rows import json_and_avro as forms
from uldp_transforms.windows import BasePeriods

HOUR = DAY // 24
NOON = 1_000_000_000_000 // DAY * DAY + DAY // 2
BUNDLE = 1 << 16
"""Messages that one worker decodes and counts before it hands sums on."""


def collections_of(number: int, symbols: int = 16, mechanism: str = "krr") -> list[Collection]:
    """Hashed ones with 64 cohorts; ``symbols`` 0: each has another number of symbols, from 4 to 103."""
    return [
        Collection.from_json(
            collection(mechanism, symbols or 4 + i % 100, 64).to_json() | {"id": f"collection-{i}"},
        )
        for i in range(number)
    ]


def mixed(specs: list[Collection], size: int, number: int) -> list[bytes]:
    """Messages of ``size`` reports each (1: single reports) from one hour, in random order."""
    rng = np.random.default_rng(1)
    pool = []
    for spec in specs:
        batch = spec.perturb(["value"] * max(size, 10), rng, NOON + rng.integers(0, HOUR, max(size, 10)))
        pool += wire.encode_reports(batch) if size == 1 else [wire.encode_batch(batch)]
    return [pool[place] for place in rng.integers(0, len(pool), number).tolist()]


def decode_and_count(catalog: CollectionCatalog, messages: list[bytes], together: int) -> int:
    """Decode a bundle of messages, ``together`` at a time; returns the number of its sums."""
    decoder = MessageDecoder(catalog)
    parts = [messages[start : start + together] for start in range(0, len(messages), together)]
    decoded = [reports for part in parts for reports in decoder.decode(part).parts]
    return sum(1 for _ in counting.count_batches(catalog, decoded, BasePeriods(HOUR)))


def rates() -> None:
    for mechanism, number, symbols in (
        ("krr", 1, 16),
        ("krr", 1000, 16),
        ("krr", 1000, 0),
        ("rappor", 1000, 0),
        ("krr", 10_000, 16),
    ):
        specs = collections_of(number, symbols, mechanism)
        begin = time.process_time()
        catalog = CollectionCatalog(specs)
        took = time.process_time() - begin
        sizes = f"{symbols} symbols" if symbols else "4 to 103 symbols"
        print(f"  {number:,} collections of {sizes}, {mechanism}: {took:.2f} s to build each registry", flush=True)
        for name, size, total, together in (
            ("single, 16,384 at a time", 1, BUNDLE, 1 << 14),
            ("single, a bundle of 2,000", 1, 2000, 2000),
            ("packed 100, a bundle of 2,000", 100, 2000, 2000),
        ):
            messages = mixed(specs, size, total)
            seconds = cpu_seconds(lambda c=catalog, m=messages, t=together: decode_and_count(c, m, t))
            line(f"    {name}", total * size, seconds)


def memory() -> None:
    """Memory of a registry in a worker, and its size in the description of a step."""
    specs = collections_of(10_000)
    tracemalloc.start()
    own = pickle.loads(pickle.dumps(CollectionCatalog(specs)))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = len(pickle.dumps(own))
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    _ = pipeline | beam.Create([b""]) | EstimateReports(collections=specs, window="1h", candidates=["value"])
    graph = len(pipeline.to_runner_api().SerializeToString())
    print(
        f"  10,000 collections: {taken / 1e6:.1f} MB in memory, {size / 1e6:.1f} MB pickled, "
        f"{graph / 1e6:.1f} MB in the graph of the job",
        flush=True,
    )


def closed(number: int) -> Collection:
    alphabet = {"id": "closed", "values": [str(value) for value in range(16)]}
    spec = {"id": f"collection-{number}", "version": 1, "alphabet": alphabet, "num_cohorts": 1}
    return Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 1}})


PARTS = (
    ("decode", MessageDecoder, "decode"),
    ("count", count, "count_strata"),
    ("estimates and their health", estimate_distribution, "rows_of"),
    ("rows as JSON", forms, "to_json"),
)
"""What a job does for us, in the order of the data; what it takes besides is the engine's, with our coders."""


@contextlib.contextmanager
def stopwatches() -> Iterator[Counter[str]]:
    """Seconds of CPU in each of the parts, of this thread."""
    seconds: Counter[str] = Counter()
    with contextlib.ExitStack() as patches:
        for part, owner, name in PARTS:
            patches.enter_context(mock.patch.object(owner, name, _timed(getattr(owner, name), part, seconds)))
        yield seconds


def _timed(function: Callable[..., Any], part: str, seconds: Counter[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def timed(*arguments: Any, **named: Any) -> Any:
        begin = time.thread_time()
        found = function(*arguments, **named)
        found = list(found) if isinstance(found, Iterator) else found
        seconds[part] += time.thread_time() - begin
        return found

    return timed


def run_job(number: int, estimator: str) -> None:
    """100 packed reports of each collection, from messages to estimates, health and ledger."""
    specs = [closed(i) for i in range(number)]
    messages = [
        wire.encode_batch(spec.perturb(["0", "1"] * 50, np.random.default_rng(i), [i * 1000] * 100))
        for i, spec in enumerate(specs)
    ]
    begin = time.process_time()
    with stopwatches() as parts, beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        estimated = (
            pipeline
            | beam.Create(messages)
            | EstimateReports(collections=specs, window="1h", min_reports=1, estimator=estimator)
        )
        _ = estimated.estimates | beam.Map(_json)
        _ = estimated.health | "Health" >> beam.Map(_json)
    whole = time.process_time() - begin
    each = 1000 * whole / number
    print(f"  {number:,} collections, one window each, {estimator}: {whole:.1f} s, {each:.2f} ms a window", flush=True)
    for part, *_ in PARTS:
        print(f"    {part}: {1000 * parts[part] / number:.3f} ms a window", flush=True)
    print(f"    everything else: {1000 * (whole - parts.total()) / number:.3f} ms a window", flush=True)


def _json(row: Any) -> Any:
    return forms.to_json(row)


def main() -> None:
    print(f"many collections in random order (library, bundles of {BUNDLE:,} messages unless said)")
    rates()
    memory()
    print("many collections (local engine, one worker)")
    for number, estimator in ((1000, "eb"), (1000, "projected"), (10_000, "projected")):
        run_job(number, estimator)
