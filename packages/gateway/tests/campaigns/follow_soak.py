"""A gateway and a job that follows its spool, with a kill each minute.

Run with ``python -m packages.gateway.tests.campaigns.follow_soak``.

Clients send packs of reports of three collections, and send again what was not acknowledged, as clients do. Each minute
(``--every``) the gateway, the job or both are killed (SIGKILL) in turn and started again. With ``--clocks`` they are
also paused (SIGSTOP), and their clocks set two hours ahead and back. At the end

- the spool has each acknowledged pack, and nothing that was not sent;
- the job's counts, ledger and estimates are those of the job over all files of the spool, number for number;
- ``uldp check`` has nothing to say.

The exit code is 1 if one of these does not hold. A pack may be in the spool twice if the gateway was killed between
writing it and answering; without ids nobody can tell it from another person's.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from packages.follow.tests.support.spools import Followed
from packages.gateway.tests.support.gateways import Running, gateway
from tests.support.commands import command
from tests.support.set_clock import Clock
from tests.support.spools import COLLECTIONS, MINUTE
from uldp_transforms.jobs import check
from uldp_transforms.messages import wire

REPORTS, THREADS = 20, 24
"""Reports of a pack, and clients, each of which waits for its answer, about a second."""

SETTLED = 3.0
"""Seconds after the end of the last window until its rows are there."""

KILLS = ("kill job", "kill gateway", "kill both")

CLOCKS = ("clock ahead", "pause job", "clock back", "clock ahead", "pause gateway", "clock back")

AHEAD = 7200
"""Seconds by which the clock is set ahead."""

PAUSE = 10.0
"""Seconds for which a process is stopped."""


class Clients:
    """Threads that send packs until they are told to stop.

    Attributes:
        sent, acknowledged: number of packs that were sent at least once, and that were answered with 202.
        attempts: number of requests.
    """

    def __init__(self, rate: float):
        self._rate = rate
        self._address: str | None = None
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send, args=(seed,)) for seed in range(THREADS)]
        self.sent = self.acknowledged = self.attempts = 0

    @contextlib.contextmanager
    def sending(self) -> Iterator[None]:
        """Send while the block lasts, then finish what was begun; the gateway must be there until then."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join()

    def use(self, address: str | None) -> None:
        """Send to this address; None: to none, until there is one again."""
        self._address = address

    def _send(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for number in itertools.count():
            if self._over.wait(len(self._threads) / self._rate):
                return
            of = COLLECTIONS[number % len(COLLECTIONS)]
            now = time.time_ns() // 1_000_000
            times = (now - rng.integers(0, 3 * MINUTE, REPORTS)).tolist()
            pack = wire.encode_batch(of.perturb(rng.choice(of.alphabet.known_values, REPORTS).tolist(), rng, times))
            with self._lock:
                self.sent += 1
            while not self._is_taken(pack):
                time.sleep(0.2)
            with self._lock:
                self.acknowledged += 1

    def _is_taken(self, pack: bytes) -> bool:
        if self._address is None:
            return False
        with self._lock:
            self.attempts += 1
        place = self._address.removeprefix("http://")
        connection = http.client.HTTPConnection(place, timeout=60)
        try:
            connection.request("POST", "/reports", pack)
            return connection.getresponse().status == 202
        except (OSError, http.client.HTTPException):  # it was killed
            return False
        finally:
            connection.close()


class Pair:
    """The two programs, of which each may be killed and started again, or paused.

    Args:
        followed: their folders.
        folder: of their logs.
        clients: who send to the gateway.
        clock: clock of both; None: that of the machine.
    """

    def __init__(self, followed: Followed, folder: Path, clients: Clients, clock: Clock | None = None):
        self._followed, self._folder, self._clients, self._clock = followed, folder, clients, clock
        self._variables = {} if clock is None else clock.environment
        self._stack = contextlib.ExitStack()
        self._gateway: Running | None = None
        self.job: subprocess.Popen[bytes] | None = None
        self.faults: Counter[str] = Counter()

    def start_gateway(self) -> None:
        options = [*self._followed.collections[1:], "--spool", str(self._followed.spool), "--spool_every", "5s"]
        self._gateway = self._stack.enter_context(
            gateway(
                [*options, "--pack_every", "1s"],
                self._folder,
                fork=self._clock is None,  # a forked process would have the libraries of its parent
                variables=self._variables,
            )
        )
        self._clients.use(self._gateway.address)

    def start_job(self) -> None:
        log = self._stack.enter_context((self._folder / "job.log").open("ab"))
        words = [*command("estimate"), *self._followed.argv()]
        self.job = subprocess.Popen(words, stdout=log, stderr=log, env=os.environ | self._variables)
        self._stack.callback(_end, self.job)

    def fault(self, name: str) -> None:
        """A fault by its name in ``KILLS`` or ``CLOCKS``."""
        self.faults[name] += 1
        kind, _, rest = name.partition(" ")
        if kind == "kill":
            self._kill(rest)
        elif kind == "pause":
            self._pause(rest, PAUSE)
        else:
            assert self._clock is not None
            self._clock.set(AHEAD if rest == "ahead" else 0)

    def _pause(self, which: str, seconds: float) -> None:
        """Stop a process for a while."""
        assert self._gateway is not None and self.job is not None
        process = self._gateway.process if which == "gateway" else self.job
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def _kill(self, which: str) -> None:
        """Kill the gateway, the job, or both, and start them again."""
        assert self._gateway is not None and self.job is not None
        if which != "job":
            self._clients.use(None)
            self._gateway.process.kill()
            self._gateway.process.wait()
        if which != "gateway":
            self.job.kill()
            self.job.wait()
            self.start_job()
        if which != "job":
            self.start_gateway()

    def stop_gateway(self) -> None:
        """As an operator does; it finishes its file."""
        assert self._gateway is not None
        self._gateway.process.send_signal(signal.SIGTERM)
        assert self._gateway.process.wait(120) == 0, self._gateway.said()

    def close(self) -> None:
        self._stack.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def soak(folder: Path, minutes: float, every: float, rate: float, *, clocks: bool = False) -> str:
    """Run it; returns what was seen. Raises AssertionError if a number is wrong."""
    followed, clients = Followed(folder), Clients(rate)
    pair, began = Pair(followed, folder, clients, Clock(folder) if clocks else None), time.monotonic()
    try:
        pair.start_gateway()
        pair.start_job()
        with clients.sending():
            for name in itertools.cycle((*CLOCKS, *KILLS) if clocks else KILLS):
                left = 60 * minutes - (time.monotonic() - began)
                time.sleep(max(0.0, min(every, left)))
                if left <= every:
                    break
                pair.fault(name)
        pair.stop_gateway()
        time.sleep(MINUTE / 1000 + SETTLED - time.time() % (MINUTE / 1000))  # until the last window is over
        assert pair.job is not None
        _wait_until_counted(followed)
        pair.job.terminate()
        assert pair.job.wait(120) == 0, (folder / "job.log").read_text("utf-8")
    finally:
        pair.close()
    followed.assert_exact()
    assert check.main([str(followed.output)]) == 0
    received = sum(row["received"] for row in followed.rows("ledger"))
    acknowledged, attempts = REPORTS * clients.acknowledged, REPORTS * clients.attempts
    assert acknowledged <= received <= attempts, (acknowledged, received, attempts)
    assert clients.acknowledged == clients.sent
    rows = len(followed.rows("estimates"))
    return (
        f"{dict(pair.faults)} in {minutes:g} min; {acknowledged:,} reports acknowledged, {received:,} counted "
        f"({received - acknowledged:,} sent again after a kill), {rows:,} rows, number for number those of a batch job"
    )


def _wait_until_counted(followed: Followed) -> None:
    """Wait until the rows of all windows of the spool are there: those of the last one, and of corrections."""
    end = time.monotonic() + 300
    stamp = None
    while time.monotonic() < end:
        before, stamp = stamp, len(list(followed.output.glob("*.jsonl")))
        if stamp == before:
            return
        time.sleep(10)
    raise AssertionError("the job still writes rows")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=60, help="seconds between kills")
    parser.add_argument("--rate", type=float, default=20, help="packs per second")
    parser.add_argument("--clocks", action="store_true", help="also pauses and clocks that are set (needs libfaketime)")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="follow-soak-") as place:
        try:
            print(soak(Path(place), args.minutes, args.every, args.rate, clocks=args.clocks), flush=True)
        except AssertionError as error:
            print(f"wrong: {error}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
