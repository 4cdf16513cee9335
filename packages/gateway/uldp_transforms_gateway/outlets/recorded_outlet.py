"""An outlet whose messages are recorded with the tokens that sent them, before and after they are published."""

from __future__ import annotations

import secrets

from uldp_transforms_gateway.apps.used_token_files import UsedTokenFiles
from uldp_transforms_gateway.apps.uses import IN_QUEUE, Place, Use
from uldp_transforms_gateway.outlets.outlet import Outlet


class RecordedOutlet:
    """Publishes messages of tokens once, but for a kill between publication and its record.

    Args:
        outlet: publishes.
        files: record; None: nothing is recorded.
    """

    def __init__(self, outlet: Outlet, files: UsedTokenFiles | None):
        self._outlet, self._files = outlet, files
        self.start, self.close = outlet.start, outlet.close

    async def deliver(self, message: bytes, *uses: Use) -> None:
        """Return when the message is published, and that is on disk; raises Undelivered."""
        if self._files is None or not uses:
            await self._outlet.deliver(message)
            return
        place = Place(secrets.token_bytes(8), IN_QUEUE)
        try:
            await self._files.recorded(uses, place)
            await self._outlet.deliver(message)
        except BaseException:
            self._files.lost(uses, place)
            raise
        await self._files.published(place)
