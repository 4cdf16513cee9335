"""The next version of the main job goes on with the state of the last: is nothing lost, and nothing counted twice?

Two jobs read one topic on a cluster. While reports arrive each is stopped with a savepoint, and its next version is
started from that, with a second collection beside the first, and with more candidates for the values of the first. Then
these are cancelled, and the versions that follow go on from their last checkpoints, with a third collection.

It takes more than ten minutes on two idle cores (21 at a load average of 27): five minutes of reports, and four starts.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.rigs.flink.faults import RELEASES, source_options
from tests.rigs.flink.kafka import broker, create_topic, expansion_service
from tests.rigs.flink.launched import Launched, launch
from tests.rigs.flink.rest import Rest
from tests.rigs.flink.standalone import standalone
from tests.rigs.flink.stream import TOPIC, Job, rows_by_window
from tests.rigs.flink.traffic import PARTITIONS, Sent, send
from tests.rigs.flink.trial import try_out_traffic
from tests.rigs.job import SPEC
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME

WORDS = {
    "id": "words",
    "version": 1,
    "alphabet": {"id": "hashed", "num_buckets": 16},
    "num_cohorts": 8,
    "mechanism": {"id": "rappor", "epsilon": 1.0},
}
CANDIDATES = ("flu\ncold\n", "flu\ncold\nasthma\n")
"""Of the first version, and of those that follow."""

ENDS = {"savepoint": Rest.stop_with_savepoint, "last checkpoint": Rest.cancel}
"""How versions end, by what the next one begins with."""


def main() -> int:
    return try_out_traffic("upgrade", __doc__, run, rate=500, seconds=120)


def run(folder: Path, rate: int, seconds: int) -> str:
    """Start everything, send for the first collection and then for both, stop and go on, and wait for all rows.

    Returns:
        Tables of what was sent and counted, one for each collection.

    Raises:
        RuntimeError: a row is missing or wrong, or a job has ended.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        source = source_options(server, stack.enter_context(expansion_service(folder)))
        flink = stack.enter_context(standalone(folder))
        create_topic(server, TOPIC, PARTITIONS, CREATE_TIME)
        first, *others = specs = _collections(folder)
        candidates = [folder / "first.txt", folder / "next.txt"]
        for path, lines in zip(candidates, CANDIDATES):
            path.write_text(lines, "utf-8")
        options = [*source, f"--candidates={candidates[0]}"]
        jobs = {name: launch(flink, first, folder / name, [*options, more]) for name, more in RELEASES.items()}
        options[-1] = f"--candidates={candidates[1]}"
        senders, sent = stack.enter_context(ThreadPoolExecutor(1)), {}
        for spec, (begins_with, end), added in zip(specs, ENDS.items(), others):
            name = spec.stem
            sent[name] = senders.submit(send, server, TOPIC, spec, rate, seconds)
            jobs["corrected"].wait(partial(_has_rows, jobs["corrected"].of(name)))
            options.append(f"--collection={added}")
            for release, more in RELEASES.items():
                begin = time.monotonic()
                savepoint = f"--savepoint_path={end(flink.rest, jobs[release].id)}"
                jobs[release] = launch(flink, first, folder / release, [*options, more, savepoint])
                print(f"{release}: {time.monotonic() - begin:.0f} s until it went on from a {begins_with}", flush=True)
        sent[specs[-1].stem] = senders.submit(send, server, TOPIC, specs[-1], rate, max(seconds // 4, 10))
        print(f"the last reports are of {specs[-1].stem}; then all rows must come", flush=True)
        return tables({name: sending.result() for name, sending in sent.items()}, jobs)


def _collections(folder: Path) -> list[Path]:
    """Files of the collections, in the order in which versions get them; named by the ids."""
    specs = [WORDS, SPEC, WORDS | {"id": "places"}]
    paths = [folder / f"{spec['id']}.json" for spec in specs]
    for path, spec in zip(paths, specs):
        path.write_text(json.dumps(spec), "utf-8")
    return paths


def _has_rows(job: Job) -> bool:
    return bool(job.panes())


def tables(sent: Mapping[str, Sent], jobs: Mapping[str, Launched]) -> str:
    """Wait for the rows of all collections, and say what they are; raises RuntimeError if some are wrong."""
    lines = []
    for name, each in sent.items():
        known = dataclasses.replace(each, unread=Counter())  # they are of no collection
        ours = {release: job.of(name) for release, job in jobs.items()}
        for release, job in ours.items():
            job.wait(partial(job.has, known))
            print(f"{name}: {release} has all rows", flush=True)
        if any(len(numbers) != 1 for numbers in ours["final"].panes().values()):
            raise RuntimeError(f"final must have one row a window, got {ours['final'].panes()}")
        lines += [f"{name}: {each.messages:,} messages", rows_by_window(known, ours["corrected"], ours["final"])]
    numbers = [row["num_values"] for row in sorted(jobs["final"].of("words").rows("estimates"), key=_start)]
    if numbers[-1:] != [len(CANDIDATES[1].split())]:
        raise RuntimeError(f"later windows must have the values of the later candidates, got {numbers}")
    lines.append(f"values of words in the windows of final: {numbers}")
    return "\n".join(lines)


def _start(row: Mapping[str, str]) -> str:
    return row["window_start"]


if __name__ == "__main__":
    sys.exit(main())
