"""A desk of the gateway with an outlet that a test can make fail, and what its packs have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from packages.gateway.tests.support.gateways import singles
from tests.support.messages_cases import decoder
from uldp_transforms.ldp import ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms_gateway.admission import Admission
from uldp_transforms_gateway.limits import Limits
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.packer import Packer
from uldp_transforms_gateway.web import Desk, Door

SAID: list[str] = []
"""What a desk told the operator."""


class Kept:
    """Takes messages; fails if it is told to."""

    def __init__(self, fails: bool = False, slow: float = 0.0):
        self.messages: list[bytes] = []
        self.fails = fails
        self.slow = slow

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def deliver(self, message: bytes) -> None:
        await asyncio.sleep(self.slow)
        if self.fails:
            raise Undelivered("of this test")
        self.messages.append(message)


def batches_of(messages: Sequence[bytes]) -> list[ReportBatch]:
    """Of good messages."""
    decoded = decoder().decode(list(messages))
    assert not decoded.rejections
    return decoded.batches


def desk_for(kept: Kept, size: int = 10) -> Desk:
    meters = Meters(SAID.append)
    packer, limits = Packer(kept, size, 0.05, meters), Limits(10**6, 100, 10**7, meters)
    return Desk(Admission(decoder(), size), packer, Door(limits, 60, meters), meters, spools=False)


def blocks_of(number: int) -> list[list[bytes]]:
    """Packed messages, two in each block."""
    [reports] = batches_of(singles(6 * number, 10))
    parts = [reports[i : i + 3] for i in range(0, len(reports), 3)]
    return [[wire.encode_batch(part) for part in parts[i : i + 2]] for i in range(0, len(parts), 2)]
