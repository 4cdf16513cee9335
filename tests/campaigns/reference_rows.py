"""All rows of a broad set of jobs, to prove that a refactoring changes none of them.

``python -m tests.campaigns.reference_rows write DIR`` runs the jobs of ``tests.campaigns.reference_jobs`` and stores
their rows in DIR, one file per job. ``compare DIR`` runs the stored jobs again and prints, for each job that differs,
the first differing row and field. Its exit code is then 1. Numbers are compared to the last bit. ``--only PATTERN``
selects jobs by their names, such as ``'reestimate-plain-*'``.

Names of runs, versions of the software and times of arrival are masked. Rows of an engine that works in parallel are
sorted by what they are about. Of each job, its exit code and what it prints are stored too, such as the sentence with
which it refuses options.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import io
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from packages.follow.tests.support.spools import Followed
from tests.campaigns.reference_jobs import JOBS, STUDIES, TEXTS, Asked, Job
from tests.support import quick_beam, replay
from tests.support.messages_cases import NOON
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.client_window import DAY
from uldp_transforms.spec.plain_values import fields_of

RUN = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]+")
SOFTWARE = re.compile(r"uldp_transforms \d[\w.]*")
ARRIVED = re.compile(r'(?<="received_at": )"[^"]*"')
IN_ORDER = ("reestimate", "compare")
"""Programs that write rows in an order of their own."""

PLACE = ("collection_id", "collection_version", "window_start", "window_end", "group", "pane_index", "value")
"""Fields that say what a row is about."""

START = np.datetime64("2001-10-27T00:00:00")
DAYS = 6
"""Days of the reports: with the end of a month and of the summer time in Europe."""

Row = dict[str, Any]

# ---------------------------------------------------------------------- reports


def table_of(asked: Asked, people: int, seed: int) -> Iterator[str]:
    """Lines of CSV: people whose values become less frequent along the list, and change with the arm and the day."""
    rng = np.random.default_rng([seed, asked.spec["version"], *asked.spec["id"].encode()])
    dimensions = asked.spec.get("dimensions") or []
    yield ",".join(["value", "event_time", "person", *(one["name"] for one in dimensions)])
    for person in range(people):
        texts = [rng.choice([*one["values"], "elsewhere"], p=_shares(len(one["values"]) + 1)) for one in dimensions]
        day = int(rng.integers(DAYS))
        shift = int(rng.random() < 0.05 * day + 0.2 * (texts[:1] == ["new"]))
        place = (int(rng.choice(len(asked.values), p=_shares(len(asked.values)))) + shift) % len(asked.values)
        moment = START + np.timedelta64(day * 86_400 + int(rng.integers(86_400)), "s")
        yield ",".join([json.dumps(asked.values[place], ensure_ascii=False), f"{moment}Z", str(person // 2), *texts])


def _shares(number: int) -> np.ndarray:
    weights = 1 / np.arange(1, number + 1)
    shares: np.ndarray = weights / weights.sum()
    return shares


def write_reports(name: str) -> None:
    """Write the collections of a study, and two files of reports of each, below its name."""
    folder = Path(name)
    folder.mkdir()
    for asked in STUDIES[name].asked:
        collection = folder / f"{asked.name}.json"
        collection.write_text(json.dumps(asked.spec))
        for seed, kind in ((1, "first"), (2, "second")):
            table = folder / f"{kind}-{asked.name}.csv"
            table.write_text("\n".join(table_of(asked, STUDIES[name].people, seed)), encoding="utf-8")
            words = ["simulate", str(collection), "--values", str(table), "--seed", str(seed)]
            words += ["--output", str(table.with_suffix(".avro")), *asked.options]
            code, said = outcome_of(words)
            if code != 0:
                raise RuntimeError(f"{words} ended with {code}: {said}")


def options_of(name: str) -> dict[str, list[str]]:
    """What stands for the collections and reports of a study on command lines."""
    of = [f"--collection={name}/{asked.name}.json" for asked in STUDIES[name].asked]
    first, second = (["--input", f"{name}/{kind}-*.avro"] for kind in ("first", "second"))
    return {f"{{{name}}}": [*of, *first], f"{{{name}+}}": [*of, *second], f"{{of:{name}}}": of}


# ---------------------------------------------------------------------- jobs


def outcome_of(words: Sequence[str]) -> tuple[int | str, list[str]]:
    """Exit code of a program, or its exception, and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    code: int | str
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = uldp.main(list(words)) if words[0] not in BESIDE else BESIDE[words[0]](*words[1:])
        except SystemExit as end:
            code = str(end.code)
        except Exception as error:  # a fault of the program, which is to be the same later
            code = f"{type(error).__name__}: {error}"
    said = out.getvalue().splitlines()
    return code, [*said, *(line for line in err.getvalue().splitlines() if f"{words[0]}: " in line)]


def follow(study: str, output: str, *options: str) -> int:
    """Follow a spool: two files arrive, the second one when windows are estimated already."""
    followed = _followed(study, output, *options)
    for steps in (1, 2):
        followed.add_file(reports=300, minutes=DAYS * 24 * 60)
        followed.steps(steps)
    return 0


def stream(study: str, output: str, values: str) -> int:
    """Replay a stream: two bundles, the second one behind the watermark."""
    followed = _followed(study, output)
    fields = fields_of({"collections": followed.of} | json.loads(values))
    job = replay.streaming_job(
        fields.pop("collections"), fields.pop("windows"), output=output, write_counts=True, **fields
    )
    end = NOON + DAYS * DAY
    first, second = (followed.messages(300, DAYS * 24 * 60) for _ in range(2))
    replay.run(job, [replay.arrive(end, first), replay.watermark(end + DAY), replay.arrive(end + DAY, second)])
    return 0


def _followed(study: str, output: str, *options: str) -> Followed:
    """The spool of a study; each version of a question is a collection with a name of its own."""
    of = [Collection.from_json(asked.spec | {"id": asked.name}) for asked in STUDIES[study].asked]
    followed = Followed(Path(f"{output}.spool"), *options, of=of)
    followed.output = Path(output)
    return followed


BESIDE: dict[str, Callable[..., int]] = {"follow": follow, "stream": stream}
"""What runs jobs that no command line can run to its end in this process."""


def prepare(job: Job) -> None:
    """Write the reports that a job reads, and run the jobs whose counts it reads, unless this was done before."""
    for name in STUDIES:
        if not Path(name).exists() and any(word in options_of(name) for word in job.words):
            write_reports(name)
    for word in job.words:
        if word in JOBS and not Path(word).exists():
            run_job(JOBS[word])


def run_job(job: Job) -> list[str]:
    """Run a job in the present folder; its outcome and rows as lines of JSON."""
    prepare(job)
    stands = {key: words for name in STUDIES for key, words in options_of(name).items()}
    words = [text for word in job.words for text in stands.get(word, [word.replace("{job}", job.name)])]
    Path(job.name).mkdir()
    code, said = outcome_of(words)
    lines = [line for path in sorted(Path(job.name).iterdir()) for line in rows_of(path)]
    if job.words[0] not in IN_ORDER:
        lines.sort(key=_place)
    return [masked({"code": code, "said": said}), *(masked(line) for line in lines)]


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a file, with the kind that its name begins with."""
    kind = f"{path.stem.partition('-')[0]}{path.suffix}"
    if path.suffix == ".jsonl":
        yield from ({"kind": kind} | json.loads(line) for line in path.read_text("utf-8").splitlines())
    if path.suffix == ".avro":
        with path.open("rb") as file:
            rows: Any = fastavro.reader(file)
            yield from ({"kind": kind} | row for row in rows)


def _place(row: Row) -> tuple[str, ...]:
    return (row["kind"], *(str(row.get(name)) for name in PLACE), json.dumps(row, default=str))


def masked(row: Row) -> str:
    """A row as a line without what differs between equal runs."""
    text = json.dumps(
        row, ensure_ascii=False, default=lambda data: data.hex() if isinstance(data, bytes) else str(data)
    )
    return ARRIVED.sub('"ARRIVED"', SOFTWARE.sub("SOFTWARE", RUN.sub("RUN", text)))


@contextlib.contextmanager
def new_folder() -> Iterator[None]:
    """Work in a new folder, which has only the list of candidates."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("candidates.txt").write_text("\n".join([*TEXTS, "zebra"]))
            yield
        finally:
            os.chdir(before)


# ---------------------------------------------------------------------- comparison


def difference(old: Sequence[str], new: Sequence[str]) -> str | None:
    """How many lines differ, and the first field that does in the first of them; None if all are equal."""
    rows = list(zip_longest(old, new, fillvalue="{}"))
    differing = [at for at, (one, other) in enumerate(rows) if one != other]
    if not differing:
        return None
    one, other = (json.loads(line) for line in rows[differing[0]])
    about = " ".join(str(value) for name in ("kind", *PLACE) if (value := (one or other).get(name)) is not None)
    head = f"{len(differing)} of {len(rows)} lines differ, first line {differing[0] + 1} ({about}): "
    before, now = dict(_leaves(one)), dict(_leaves(other))
    for field in before | now:
        pair = before.get(field, "nothing"), now.get(field, "nothing")
        if pair[0] != pair[1]:
            return head + f"{field}: {pair[0]} before, {pair[1]} now"
    return head + "order of fields"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Numbers and texts of a row and of what is in it, in JSON, by their path."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for at, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{at}]")
    elif path:
        yield path, json.dumps(value, ensure_ascii=False)


def write(folder: Path, jobs: Sequence[Job]) -> int:
    """Store the rows of these jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    with new_folder():
        for job in jobs:
            started = time.process_time()
            _file(folder, job).write_text("\n".join(run_job(job)) + "\n", encoding="utf-8")
            print(f"{time.process_time() - started:6.2f} s  {job.name}", flush=True)
    print(f"{len(jobs)} jobs in {folder}")
    return 0


def compare(folder: Path, jobs: Sequence[Job]) -> int:
    """Run those of these jobs that are stored again, and print what differs."""
    stored = [job for job in jobs if _file(folder, job).exists()]
    differing = 0
    with new_folder():
        for job in stored:
            found = difference(_file(folder, job).read_text("utf-8").rstrip("\n").split("\n"), run_job(job))
            if found:
                differing += 1
                print(f"{job.name}: {found}", flush=True)
    print(f"{differing} of {len(stored)} jobs differ; not stored in {folder}: {len(jobs) - len(stored)} jobs")
    return int(differing > 0 or not stored)


def _file(folder: Path, job: Job) -> Path:
    return folder / f"{job.name}.jsonl"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS, help="store rows, or compare new ones with the stored ones")
    parser.add_argument("folder", type=Path, metavar="DIR", help="directory of the stored rows")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="names of jobs (default: all)")
    args = parser.parse_args(argv)
    jobs = [job for name, job in JOBS.items() if any(fnmatch.fnmatchcase(name, one) for one in args.only)]
    return COMMANDS[args.command](args.folder.resolve(), jobs)


COMMANDS = {"write": write, "compare": compare}


if __name__ == "__main__":
    quick_beam.remember()
    sys.exit(main())
