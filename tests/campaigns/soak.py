"""The streaming job under a constant load for a long time: ``python -m tests.campaigns.soak --minutes 10 --rate 20``.

Reports are published at a constant rate to a loopback server, some of them spoiled and some sent twice, while the
main job reads them in a process of its own with ``--deduplicate``. At the end every message must have met the end that
the slow reference says, number by number; on the way the memory of the process is watched.

The exit code is 1 if a number differs. Memory is printed, with its slope: on the local engine the watermark is the wall
clock and state is kept for ten years, so it grows with every different report, by design.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import fastavro
import numpy as np

from tests.fuzz.fuzz_inputs import COLLECTIONS, NUM_COHORTS, PAYLOADS, Fuzzer
from tests.fuzz.fuzz_reference import Gate, Reference
from tests.servers import pubsub_servers
from tests.support import live
from tests.support.messages_cases import KNOWN, write_files
from uldp_transforms.messages import wire

WINDOW, LATENESS = 60, 300  # seconds
BAD, COPIES = 0.05, 0.02

REFERENCE = Reference(
    collections={of.fingerprint[:8]: PAYLOADS[of.id] for of in COLLECTIONS if of in KNOWN},
    num_cohorts=NUM_COHORTS,
    gate=Gate(base=1000 * WINDOW, lateness=1000 * LATENESS),
    require_ids=True,
)


class Load:
    """Draws what is published, and knows what should become of it."""

    def __init__(self, seed: int):
        self._rng = np.random.default_rng(seed)
        self._random = random.Random(seed)
        self._fuzzer = Fuzzer(seed)
        self._recent: list[tuple[bytes, int]] = []
        self.expected: Counter[str] = Counter()

    def messages(self, number: int) -> list[bytes]:
        """So many messages of this moment."""
        bad, copies = (int(self._rng.binomial(number, share)) for share in (BAD, COPIES))
        copies = min(copies, len(self._recent))
        now = time.time_ns() // 1_000_000
        spoiled = [message for message in self._fuzzer.messages(bad) if 0 < len(message) < 100_000]
        for message in spoiled:
            verdict = REFERENCE.judge(message, now)
            assert not verdict.accepted, "spoiled messages are of another year"
            for (reason, _, _), reports in verdict.refused.items():
                self.expected[reason] += reports
        good: list[tuple[bytes, int]] = []
        for _ in range(number - bad - copies):
            of, size = self._random.choice(KNOWN), self._random.choice((1, 1, 10, 100))
            values = self._random.choices(of.alphabet.known_values, k=size)
            reports = of.perturb(values, self._rng, np.full(size, now))
            good.append((wire.encode_batch(reports) if size > 1 else wire.encode_reports(reports)[0], size))
        again = self._random.sample(self._recent, copies)
        self.expected.update(accepted=sum(size for _, size in good), duplicates=sum(size for _, size in again))
        self._recent = (self._recent + good)[-20 * number :]
        messages = [*(message for message, _ in good + again), *spoiled]
        self._random.shuffle(messages)
        return messages


def resident(pid: int) -> float:
    """Resident memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def counted(output: Path) -> int:
    """Reports in the last panes of all windows."""
    last: dict[tuple[str, object], tuple[int, int]] = {}
    for path in output.glob("counts-*.avro"):
        with path.open("rb") as file:
            for row in fastavro.reader(file):
                key = (row["fingerprint"], row["window_start"])
                last[key] = max(last.get(key, (-1, 0)), (row["pane_index"], sum(row["num_reports"])))
    return sum(number for _, number in last.values())


def soak(folder: Path, minutes: float, rate: int, seed: int, server: str) -> bool:
    """Run; True if every number is as it should be."""
    load, log, output = Load(seed), folder / "log", folder / "output"
    write_files(folder, {f"{of.id}.json": of for of in KNOWN})
    options = [f"--collection={folder / of.id}.json" for of in KNOWN]
    options += [f"--subscription={live.SUBSCRIPTION}", "--streaming", f"--output={output}", "--deduplicate"]
    options += [f"--window={WINDOW}s", f"--allowed_lateness={LATENESS}s", "--min_reports=1", "--write_counts"]
    options += live.SOON
    memory: list[tuple[float, float]] = []
    sent = 0
    with live.broker(600, server) as broker, live.job(options, log, fork=False) as process:
        broker.publish(first := load.messages(rate))
        sent += len(first)
        live.wait_until(lambda: bool(live.books(output)), process, log)  # it has started
        begin = time.monotonic()
        while (elapsed := time.monotonic() - begin) < 60 * minutes:
            messages = load.messages(rate)
            broker.publish(messages)
            sent += len(messages)
            memory.append((elapsed, resident(process.pid)))
            if len(memory) % 30 == 0:
                print(f"  {elapsed:6.0f} s: {sent:>9,} sent, {memory[-1][1]:7.1f} MiB", flush=True)
            time.sleep(max(0.0, begin + (len(memory)) - time.monotonic()))  # once a second
        expected = load.expected + Counter(received=load.expected.total())
        found = drained(process, output, expected)
        total = counted(output)
        process.terminate()
        code = process.wait(live.PATIENCE)
    show(sent, elapsed, memory, load.expected, total, len(list(output.iterdir())))
    if found != expected:
        print(f"ledger: too many {dict(found - expected)}, missing {dict(expected - found)}\n{log.read_text()}")
    return found == expected and code == 0 and total == expected["accepted"] and "Traceback" not in log.read_text()


def drained(process: subprocess.Popen[bytes], output: Path, expected: Counter[str]) -> Counter[str]:
    """The ledger when it is as expected, or when nothing has been added to it for a minute."""
    found, last, since = Counter[str](), Counter[str](), time.monotonic()
    while process.poll() is None and time.monotonic() < since + 60:
        found = live.books(output)
        if found == expected:
            break
        if found != last:
            last, since = found, time.monotonic()
        time.sleep(1)
    return found


def show(
    sent: int, seconds: float, memory: list[tuple[float, float]], expected: Counter[str], total: int, files: int
) -> None:
    print(f"{sent:,} messages in {seconds:.0f} s ({sent / seconds:.0f}/s), {files:,} files")
    print(f"ledger: {expected.total():,} received = {', '.join(f'{n:,} {name}' for name, n in expected.most_common())}")
    print(f"counted in the last panes: {total:,}")
    late = [(at, size) for at, size in memory if at > seconds / 3]
    slope = np.polyfit(*zip(*late), 1)[0] if len(late) > 2 else float("nan")
    per_report = slope * (1 << 20) / (expected["accepted"] / seconds)
    first, *_, last = (size for _, size in memory)
    highest = max(size for _, size in memory)
    print(f"memory: {first:.0f} MiB at first, {last:.0f} at last, highest {highest:.0f}")
    print(f"memory in the last two thirds: {3600 * slope:+.1f} MiB/h, {per_report:.0f} bytes a report")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=20, help="messages a second; the local engine takes ten at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", choices=pubsub_servers.FEATURES, default=pubsub_servers.IN_PROCESS)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        good = soak(Path(folder), args.minutes, args.rate, args.seed, args.server)
    print("every number is right" if good else "a number is wrong")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
