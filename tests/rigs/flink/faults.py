"""The main job on a cluster that loses machines: are all counts exact without a task manager, and the JobManager?

Two jobs read one topic, as in ``tests.rigs.flink.stream``, each with a part on both task managers. One of these is
killed with all its workers and comes back; then the JobManager, which goes on with the jobs that ZooKeeper has kept.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.rigs.flink.kafka import broker, create_topic, expansion_service
from tests.rigs.flink.launched import Launched, launch, wait_until_it_runs
from tests.rigs.flink.standalone import SLOTS, TASK_MANAGERS, Standalone, standalone
from tests.rigs.flink.stream import TOPIC, rows_by_window
from tests.rigs.flink.traffic import PARTITIONS, send
from tests.rigs.flink.trial import try_out_traffic
from tests.rigs.job import collection
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME

RELEASES = {"corrected": "--late_every=5s", "final": "--release=final"}
"""The jobs, and what distinguishes them."""

AWAY = 3.0
"""Seconds until a machine that was lost is there again."""


def main() -> int:
    return try_out_traffic("faults", __doc__, run, rate=500, seconds=150)


def run(folder: Path, rate: int, seconds: int) -> str:
    """Start everything, send, lose machines, and wait for all rows.

    Returns:
        What was lost and how long it took to go on, and a table of what was sent and counted.

    Raises:
        RuntimeError: a row is missing or wrong, or a job has ended.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        source = source_options(server, stack.enter_context(expansion_service(folder)))
        flink = stack.enter_context(standalone(folder))
        create_topic(server, TOPIC, PARTITIONS, CREATE_TIME)
        spec = collection(folder)
        jobs = [launch(flink, spec, folder / name, [*source, more]) for name, more in RELEASES.items()]
        sending = stack.enter_context(ThreadPoolExecutor(1)).submit(send, server, TOPIC, spec, rate, seconds)
        jobs[0].wait(lambda: bool(jobs[0].panes()))
        lines = lose_machines(flink, jobs)
        sent = sending.result()
        for job in jobs:
            job.wait(partial(job.has, sent))
        if any(len(numbers) != 1 for numbers in jobs[1].panes().values()):
            raise RuntimeError(f"final must have one row a window, got {jobs[1].panes()}")
        lines.append(f"{sent.messages:,} messages; reports by windows of 10 s:")
        return "\n".join([*lines, rows_by_window(sent, *jobs)])


def source_options(server: str, service: str) -> list[str]:
    """Options of jobs that read the topic; Flink's among them, which its job server describes."""
    topic = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--kafka_timestamps={CREATE_TIME}"]
    return [*topic, f"--expansion_service={service}", "--deduplicate", "--faster_copy"]


def lose_machines(flink: Standalone, jobs: list[Launched]) -> list[str]:
    """Lose the second task manager, then the JobManager; returns what to say of each."""
    sentences = []
    losses: dict[str, Callable[[], None]] = {
        "taskmanager-1": lambda: flink.start_task_manager(1),
        "jobmanager": flink.start_job_manager,
    }
    for name, start in losses.items():
        before = {job.id: wait_for_checkpoint(flink, job.id, 0) for job in jobs}
        begin = time.monotonic()
        flink.lose(name)
        time.sleep(AWAY)
        start()
        flink.rest.wait_for_slots(SLOTS * TASK_MANAGERS)
        for job in jobs:
            restored = flink.rest.wait(f"the restart of {job.id}", partial(restored_checkpoint, flink, job.id, before))
            wait_until_it_runs(flink, job.id)
            before[job.id] = wait_for_checkpoint(flink, job.id, restored)
        sentences.append(f"{name} lost: {time.monotonic() - begin:.0f} s until both jobs had a checkpoint again")
        print(sentences[-1], flush=True)
    return sentences


def restored_checkpoint(flink: Standalone, job: str, before: dict[str, int]) -> int | None:
    """Number of the checkpoint that a job has begun with again, if it is not older than one that was complete."""
    latest = flink.rest.checkpoints(job)["latest"]["restored"]
    return int(latest["id"]) if latest and latest["id"] >= before[job] else None


def wait_for_checkpoint(flink: Standalone, job: str, after: int) -> int:
    """Wait until a checkpoint with a larger number is complete; returns its number."""

    def look() -> int | None:
        latest = flink.rest.checkpoints(job)["latest"]["completed"]
        return int(latest["id"]) if latest and latest["id"] > after else None

    return flink.rest.wait(f"a checkpoint of {job}", look)


if __name__ == "__main__":
    sys.exit(main())
