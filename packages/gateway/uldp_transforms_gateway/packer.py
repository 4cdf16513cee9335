"""Packs accepted reports by collection, up to a size or a time, and tracks their delivery."""

from __future__ import annotations

import asyncio

import numpy as np

from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms_gateway.admission import has_ids
from uldp_transforms_gateway.apps.uses import Use
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.outlets.outlet import Delivery, Undelivered

_Key = tuple[bytes, bool]
"""Fingerprint of a collection, and whether reports have ids."""


class Pack:
    """Reports of one collection that are delivered together.

    Attributes:
        number: of reports.
        uses: of the tokens whose messages have these reports.
    """

    def __init__(self) -> None:
        self.number = 0
        self.uses: list[Use] = []
        self._batches: list[ReportBatch] = []
        self._settled = asyncio.Event()
        self._error: Undelivered | None = None

    def add(self, batch: ReportBatch) -> None:
        self._batches.append(batch)
        self.number += len(batch)

    def messages(self) -> list[bytes]:
        """One message, or two if only some reports have ids; their order reveals nothing about the order of arrival."""
        rng = np.random.default_rng()
        kinds = ([b for b in self._batches if len(b.report_ids)], [b for b in self._batches if not len(b.report_ids)])
        packed = [ReportBatch.concatenate(batches) for batches in kinds if batches]
        return [wire.encode_batch(batch[rng.permutation(len(batch))]) for batch in packed]

    def settle(self, error: Undelivered | None) -> None:
        """Wake up all requests that wait for this pack."""
        self._error = error
        self._batches = []
        self._settled.set()

    async def delivered(self) -> None:
        """Return when all its reports are delivered; raises Undelivered if they are not."""
        await self._settled.wait()
        if self._error is not None:
            raise self._error


class Packer:
    """The open packs, one per collection and kind: with and without ids.

    Args:
        delivery: takes the packed messages.
        size: reports with which a pack is full; what is added at once and has more is a pack of its own.
        every: seconds after which a pack is delivered that is not full.
        meters: count what is delivered.
    """

    def __init__(self, delivery: Delivery, size: int, every: float, meters: Meters):
        self._delivery = delivery
        self._size = size
        self._every = every
        self._meters = meters
        self._open: dict[_Key, tuple[Pack, asyncio.TimerHandle]] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    def add(self, *batches: ReportBatch) -> Pack:
        """Add reports of one collection to a pack; returns the pack.

        All should be of one kind: a pack with both has two messages, and one of them may fail.
        """
        key, number = (batches[0].fingerprint, has_ids(batches[0])), sum(map(len, batches))
        if key in self._open and self._open[key][0].number + number > self._size:
            self._send(key)
        if key not in self._open:
            self._open[key] = Pack(), asyncio.get_running_loop().call_later(self._every, self._send, key)
        pack, _ = self._open[key]
        for batch in batches:
            pack.add(batch)
        if pack.number >= self._size:
            self._send(key)
        return pack

    async def drain(self) -> None:
        """Deliver all that is open, and wait for all that is under way."""
        for key in tuple(self._open):
            self._send(key)
        await asyncio.gather(*self._under_way)

    def _send(self, key: _Key) -> None:
        pack, timer = self._open.pop(key)
        timer.cancel()
        task = asyncio.create_task(self._deliver(pack))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _deliver(self, pack: Pack) -> None:
        error: Undelivered | None = None
        try:
            messages = pack.messages()
            for message in messages:
                await self._delivery.deliver(message, *pack.uses)
            self._meters.delivered(pack.number, messages)
        except Undelivered as found:
            error = found
        except Exception as found:  # whoever waits must not wait for ever
            error = Undelivered(type(found).__name__)
        if error is not None:
            self._meters.undelivered(error)
        pack.settle(error)
