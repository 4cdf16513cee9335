"""Simulated people, who answer by HTTP as a device would: one report each, sent until it is acknowledged."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from urllib.parse import urlsplit

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

DEVICES = 16
"""Connections."""

_AGAIN = 0.5  # seconds


class Crowd:
    """People who answer as long as the block lasts.

    Args:
        address: of the gateway.
        collection: of the reports.
        shares: value -> share of the people who hold it.
        rate: people a second; 0: nobody.
    """

    def __init__(self, address: str, collection: Collection, shares: Mapping[str, float], rate: float):
        self._place = str(urlsplit(address).netloc)
        self._collection = collection
        self._shares = dict(shares)
        self._rate = rate
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self.acknowledged = 0
        devices = DEVICES if rate else 0
        self._threads = [threading.Thread(target=self._device, daemon=True) for _ in range(devices)]

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
        values = list(self._shares)
        while not self._stopping.wait(rng.exponential(DEVICES / self._rate)):
            value = values[rng.choice(len(values), p=list(self._shares.values()))]
            now = time.time_ns() // 1_000_000_000 * 1000  # to the second, as the page that asks says it
            [message] = wire.encode_reports(self._collection.perturb([value], event_times=[now]))
            self._send(message)

    def _send(self, message: bytes) -> None:
        """The same bytes until they are acknowledged, or all is over."""
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
