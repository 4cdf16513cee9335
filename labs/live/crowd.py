"""Simulated people who answer over HTTP like devices: one report each, resent until it is acknowledged.

Their truth is known, and can be changed while they answer.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from urllib.parse import urlsplit

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire

DEVICES = 16
"""Number of connections."""

_AGAIN = 0.5  # seconds


class Crowd:
    """Simulated people who answer while the block lasts.

    Args:
        address: address of the gateway.
        collection: collection of the reports.
        shares: value -> share of the people who hold it.
        rate: people per second; 0: nobody.
    """

    def __init__(self, address: str, collection: Collection, shares: Mapping[str, float], rate: float):
        self._place = str(urlsplit(address).netloc)
        self._collection = collection
        self._shares = dict(shares)
        self._held: dict[int, tuple[int, np.ndarray]] = {}  # second -> people, and the sum of their probabilities
        self.rate = rate
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self.acknowledged = 0
        devices = DEVICES if rate else 0
        self._threads = [threading.Thread(target=self._device, daemon=True) for _ in range(devices)]

    def set_share(self, value: str, share: float) -> None:
        """Let this share of the people who answer from now on hold a value; the others keep their proportions.

        Raises:
            SpecError: nobody can hold the value, or the share is not from 0 to 1.
        """
        if value not in self._shares:
            raise SpecError(f"value must be one of {', '.join(self._shares)}, got {describe(value)}")
        if not 0 <= share <= 1:
            raise SpecError(f"share must be a number from 0 to 1, got {describe(share)}")
        others = {name: now for name, now in self._shares.items() if name != value}
        total = sum(others.values())
        rest = {name: now / total if total else 1 / len(others) for name, now in others.items()}
        with self._lock:
            self._shares = {name: share if name == value else (1 - share) * rest[name] for name in self._shares}

    def shares(self) -> dict[str, float]:
        """Value -> share of the people who answer now."""
        return dict(self._shares)

    def truth(self, start: int, end: int) -> tuple[int, dict[str, float]]:
        """The number of people who answered between two seconds since 1970 (the second one excluded), and the mean
        shares of values in the population from which they were drawn."""
        with self._lock:
            seconds = [found for second, found in self._held.items() if start <= second < end]
            number = sum(people for people, _ in seconds)
            shares = sum((held for _, held in seconds), np.zeros(len(self._shares))) / max(number, 1)
            return number, dict(zip(self._shares, shares.tolist()))

    def __enter__(self) -> Crowd:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _device(self) -> None:
        rng = np.random.default_rng()
        while not self._stopping.wait(rng.exponential(DEVICES / self.rate)):
            second = time.time_ns() // 1_000_000_000
            value = self._person(second, rng)
            # whole seconds, as on the question page
            [message] = wire.encode_reports(self._collection.perturb([value], event_times=[second * 1000]))
            self._send(message)

    def _person(self, second: int, rng: np.random.Generator) -> str:
        """Draw and record the next person; returns the person's value."""
        with self._lock:
            shares = np.array(list(self._shares.values()))
            number, held = self._held.get(second, (0, np.zeros(len(shares))))
            self._held[second] = (number + 1, held + shares)
        return list(self._shares)[rng.choice(len(shares), p=shares / shares.sum())]

    def _send(self, message: bytes) -> None:
        """Send the same bytes until they are acknowledged or the block ends."""
        while True:
            connection = http.client.HTTPConnection(self._place, timeout=60)
            try:
                connection.request("POST", "/reports", message)
                status = connection.getresponse().status
            except OSError:
                status = 0
            finally:
                connection.close()
            if status in (200, 202):
                with self._lock:
                    self.acknowledged += 1
                return
            if self._stopping.wait(_AGAIN):
                return
