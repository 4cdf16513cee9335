"""The command ``estimate`` by the entries of its rows (values x windows x groups): CPU time and memory, from files to
rows; and the steps of one process without an engine.

``python -m labs.benchmarks entries`` prints, for each further entry, the time and the memory that it adds; ``job(168)``
is a week. ``uldp_transforms.spec.row_forecast`` has the figures that forecasts use.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import numpy as np

from labs.benchmarks.measure import cpu_seconds
from uldp_transforms.collector.growing_files import GROWING
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, VALUE_SCHEMA
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample

HOUR = 3_600_000
VALUES = 500
GROUPS = 51
REPORTS = 200
"""Reports of a group in one hour."""

_BEGIN = 1_700_000_000_000 // HOUR * HOUR


class Cost(NamedTuple):
    """What a process took: CPU seconds, and its peak memory in MB."""

    seconds: float
    megabytes: float


def collection(groups: int = GROUPS - 1, values: int = VALUES) -> Collection:
    """A collection of some values, whose people state one of some groups."""
    return Collection.from_json(
        {
            "id": "entries",
            "version": 1,
            "alphabet": {"id": "closed", "values": [f"value {number}" for number in range(values)]},
            "mechanism": {"id": "krr", "epsilon": 4},
            "num_cohorts": 1,
            "dimensions": [{"name": "g", "values": [f"g{number}" for number in range(groups - 1)]}],
        }
    )


def _values(number: int, rng: np.random.Generator, values: int = VALUES) -> list[str]:
    weights = 1 / np.arange(1, values + 1)
    return [f"value {place}" for place in rng.choice(values, number, p=weights / weights.sum())]


def window_reports(of: Collection, times: np.ndarray, rng: np.random.Generator) -> ReportBatch:
    """Reports at these times in milliseconds; the i-th value of the collection has a share proportional to 1 / i."""
    names = of.dimensions[0].all_values
    groups = {"g": rng.choice(names, len(times)).tolist()}
    return of.perturb(_values(len(times), rng, of.mechanism.num_symbols), rng, times, groups)


def records(of: Collection, hours: int, reports: int = REPORTS) -> Iterator[dict[str, Any]]:
    """Packed reports, hour by hour, of which each group has this number in an hour."""
    rng = np.random.default_rng(1)
    number = reports * len(of.dimensions[0].all_values)
    for hour in range(hours):
        times = _BEGIN + hour * HOUR + np.arange(number) * HOUR // number
        yield wire.batch_record(window_reports(of, times, rng))


def job(hours: int, *options: str) -> Cost:
    """Run ``estimate --window 1h --by g`` over reports of some hours, in a process of its own."""
    of = collection()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "c.json").write_text(json.dumps(of.to_json()), encoding="utf-8")
        with Path(folder, "r.avro").open("wb") as out:
            fastavro.writer(out, wire.BATCH_SCHEMA, records(of, hours))
        words = [f"--input={folder}/r.avro", f"--collection={folder}/c.json", f"--output={folder}/rows"]
        command = [sys.executable, "-m", "uldp_transforms.jobs", "estimate", *words, "--window=1h", "--by=g", *options]
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"estimate ended with {child.returncode}")
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def steps() -> None:
    """CPU time of each step for one entry."""
    of, rng = collection(), np.random.default_rng(1)
    place = {"window_start": "2001-09-09T00:00:00Z", "window_end": "2001-09-09T01:00:00Z", "run": "r"}
    place |= {"pane_index": 0, "pane_timing": "ON_TIME"}
    reports = [of.perturb(_values(REPORTS, rng), rng, None, {"g": ["other"] * REPORTS}) for _ in range(4 * GROUPS)]
    counts = [{of.fingerprint: of.count(batch)} for batch in reports]
    samples = [Sample(owner=Owner(named=of), place=place, counts=each) for each in counts]
    rows: list[Any] = []
    for name in ("empirical", "eb"):
        asked = Asked(estimator=ESTIMATORS[name]())
        rows = [each.estimate for each in rows_of(samples, asked)]
        _line(f"estimate and intervals, {name}", lambda a=asked: [each.estimate for each in rows_of(samples, a)])
    for name, form, schema in (
        ("JSON lines", "jsonl", ESTIMATE_SCHEMA),
        ("Avro", "avro", ESTIMATE_SCHEMA),
        ("Parquet", "parquet", ESTIMATE_SCHEMA),
        ("Parquet, one row per value", "parquet", VALUE_SCHEMA),
    ):

        def write(form: str = form, schema: Any = schema) -> int:
            file = io.BytesIO()
            growing = GROWING[form](file, schema, "rows")
            for row in rows:
                growing.add(row)
            growing.end()
            return len(file.getvalue())

        _line(f"{name} ({write() / len(rows) / VALUES:.0f} B)", write)


def _line(name: str, work: Callable[[], Any]) -> None:
    print(f"  {name}: {1e6 * cpu_seconds(work) / (4 * GROUPS * VALUES):.2f} us an entry", flush=True)


def jobs() -> None:
    """CPU time and memory of the command, and what a further entry adds."""
    for options in ((), ("--estimator=empirical",), ("--estimator=empirical", "--write_parquet")):
        few, many = (job(hours, *options) for hours in (6, 24))
        entries = 18 * GROUPS * VALUES
        seconds, size = many.seconds - few.seconds, many.megabytes - few.megabytes
        print(f"  {' '.join(options) or 'default'}: 24 hours {many.seconds:.1f} s of CPU, {many.megabytes:.0f} MB")
        print(f"    a further entry {1e6 * seconds / entries:.1f} us, {1e6 * size / entries:.0f} B", flush=True)


def main() -> None:
    print("the command estimate, --window 1h --by g, from files to rows")
    jobs()  # first: the peak of a child process begins at that of its parent
    print(f"entries of rows, {VALUES} values, {GROUPS} rows a window, {REPORTS} reports in each group (one process)")
    steps()
