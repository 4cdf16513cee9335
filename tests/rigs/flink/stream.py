"""The main job on Flink reads Kafka: are all counts exact when reports come twice, late or too late, and a worker dies?

Two jobs read one topic: one corrects its rows, one releases each window once. Needs what ``tests.rigs.flink`` needs.

The worker of one of them is killed. What that job wrote between its last checkpoint and the end of the worker it writes
again, in other portions: the newest row of a window is then the one with most reports, whatever its pane index. Rows of
the ledger, which add up, are the same ones in the same files.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.rigs.flink.cluster import Cluster, cluster
from tests.rigs.flink.kafka import broker, create_topic, expansion_service
from tests.rigs.flink.processes import process
from tests.rigs.flink.traffic import LATENESS, PARTITIONS, WINDOW, Sent, send
from tests.rigs.flink.trial import try_out_traffic
from tests.rigs.job import chosen, collection
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME

Ledger = dict[str | None, Counter[str]]

TOPIC = "reports"
JOBS = 2
PATIENCE = 300.0
"""Seconds after the last report until rows that are missing fail the run."""


def main() -> int:
    return try_out_traffic("stream", __doc__, run, rate=1000, seconds=60)


def run(folder: Path, rate: int, seconds: int, timestamps: str = CREATE_TIME) -> str:
    """Start everything, send, kill a worker in the middle, and wait for all rows.

    Returns:
        A table of what was sent and counted.

    Raises:
        RuntimeError: a row is missing or wrong, a job has ended, or no job was started again.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        service = stack.enter_context(expansion_service(folder))
        flink = stack.enter_context(cluster(folder))
        create_topic(server, TOPIC, PARTITIONS, timestamps)
        source = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--kafka_timestamps={timestamps}"]
        source += [f"--expansion_service={service}", "--deduplicate"]
        corrected = stack.enter_context(job(folder, "corrected", [*source, "--late_every=5s"], flink))
        final = stack.enter_context(job(folder, "final", [*source, "--release=final"], flink))
        corrected.wait(lambda: len(flink.workers()) == JOBS)
        killer = threading.Thread(target=lambda: kill_after_first_rows(corrected, flink), daemon=True)
        killer.start()
        sent = send(server, TOPIC, collection(folder), rate, seconds)
        for each in (corrected, final):
            each.wait(partial(each.has, sent))
        if flink.restarts() != 1:
            raise RuntimeError(f"one job must have been started again, got {flink.restarts()}")
        if any(len(numbers) != 1 for numbers in final.panes().values()):
            raise RuntimeError(f"final must have one row a window, got {final.panes()}")
        return table(sent, corrected, final)


def kill_after_first_rows(job: Job, flink: Cluster) -> None:
    job.wait(lambda: bool(job.panes()))
    flink.kill_worker()


class Job:
    """A running main job, and what it has written; made by ``job``.

    Args:
        ended: whether it runs no more.
        output: directory of its rows.
        log: of what started it.
        of: id of a collection, whose rows are looked at alone; None: all rows.
    """

    def __init__(self, ended: Callable[[], bool], output: Path, log: Path, of: str | None = None):
        self._ended = ended
        self._output = output
        self._log = log
        self._of = of

    def of(self, collection_id: str) -> Job:
        """The same job, of which the rows of one collection are looked at."""
        return Job(self._ended, self._output, self._log, collection_id)

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """All rows of one kind that are written."""
        for path in self._output.glob(f"{name}-*.jsonl"):
            with suppress(FileNotFoundError):  # the job is replacing it by the same rows
                found = map(json.loads, path.read_text("utf-8").splitlines())
                yield from (row for row in found if self._of in (None, row["collection_id"]))

    def ledger(self) -> Ledger:
        """What came in and what became of it, by base period."""
        found: Ledger = {}
        for row in self.rows("ledger"):
            entries = {name: row[name] for name in ("received", "accepted", "duplicates")} | row["rejected"]
            found.setdefault(row["window_start"], Counter()).update(entries)
        return {period: +entries for period, entries in found.items() if +entries}

    def unread(self) -> Counter[str]:
        """Messages that could not be read, by reason."""
        return sum((Counter(row["unread_messages"]) for row in self.rows("ledger")), Counter())

    def panes(self) -> dict[str, list[int]]:
        """Numbers of reports of the rows of each window, in order."""
        found: dict[str, list[int]] = {}
        for row in self.rows("estimates"):
            found.setdefault(row["window_start"], []).append(row["num_reports"])
        return {window: sorted(numbers) for window, numbers in found.items()}

    def latest(self) -> dict[str, int]:
        """The numbers of reports that readers take."""
        return {window: numbers[-1] for window, numbers in self.panes().items()}

    def has(self, sent: Sent) -> bool:
        """Whether the counts and the ledger are those of what was sent."""
        is_complete = self.ledger() == sent.ledger and self.unread() == sent.unread
        return is_complete and self.latest() == sent.counts

    def wait(self, done: Callable[[], bool]) -> None:
        """Look again until it is so.

        Raises:
            RuntimeError: the job has ended, or it takes too long.
        """
        end = time.monotonic() + PATIENCE
        while not done():
            if self._ended() or time.monotonic() > end:
                found = f"ledger {self.ledger()}, rows {self.panes()}"
                raise RuntimeError(f"{self._log.stem}: {found}; {self._log.read_text('utf-8', 'replace')[-2000:]}")
            time.sleep(1)


@contextmanager
def job(folder: Path, name: str, options: Sequence[str], flink: Cluster) -> Iterator[Job]:
    """Start the main job; it ends on leaving."""
    output, log = folder / name, folder / f"{name}.log"
    with process([*command(collection(folder), output, options), *flink.options(parallelism=1)], log) as started:
        yield Job(lambda: started.poll() is not None, output, log)


def command(spec: Path, output: Path, options: Sequence[str]) -> list[str]:
    """The command of the main job, but for the options of its engine; options replace usual ones of their names."""
    usual = [f"--window={WINDOW}ms", f"--allowed_lateness={LATENESS}ms", "--min_reports=1", "--flush_every=5s"]
    return [
        sys.executable,
        "-m",
        "uldp_transforms.jobs",
        "estimate",
        f"--collection={spec}",
        f"--output={output}",
        "--experiments=use_deprecated_read",
        *chosen(usual, options),
    ]


def table(sent: Sent, corrected: Job, final: Job) -> str:
    """What was sent in each window, and what the rows say."""
    head = f"{sent.messages:,} messages, a worker killed, one restart; reports by windows of {WINDOW // 1000} s:"
    return f"{head}\n{rows_by_window(sent, corrected, final)}"


def rows_by_window(sent: Sent, corrected: Job, final: Job) -> str:
    """A line for each window, and what the ledgers say."""
    lines = [f"{'window':<22}{'new':>8}{'late':>6}{'copies':>8}{'too old':>9}{'counted':>9}  rows corrected, final"]
    panes, once = corrected.panes(), final.panes()
    for window, entries in sorted(sent.ledger.items(), key=str):
        if window is not None:
            late = sent.late[window]
            numbers = f"{entries['accepted'] - late:>8}{late:>6}{entries['duplicates']:>8}{entries['too_old']:>9}"
            counted = once[window][-1] if window in once else 0
            rows = f"{len(panes.get(window, [])):>16}{len(once.get(window, [])):>7}"
            lines.append(f"{window:<22}{numbers}{counted:>9}{rows}")
    if sent.unread:
        lines.append(f"messages that could not be read: {dict(sent.unread)}")
    for name, each in (("corrected", corrected), ("final", final)):
        is_exact = each.ledger() == sent.ledger and each.unread() == sent.unread
        lines.append(f"ledger of {name}: {'exact' if is_exact else 'not exact'}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
