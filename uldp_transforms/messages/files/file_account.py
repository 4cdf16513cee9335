"""Facts about a file of reports, collected while it is read. No Beam."""

from __future__ import annotations

import dataclasses

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.rejection import Rejection


@dataclasses.dataclass
class Account:
    """Facts about a file, collected while it is read.

    Attributes:
        num_bytes: number of bytes of the header, of blocks of which as many messages were passed on as they declare,
            and of rejected parts.
        refused: whether the whole file was rejected, so that reading stopped.
        is_unread: whether the file or a part of it could not be read.
        randomness: the writer's statement about the source of randomness; None if there is none.
    """

    num_bytes: int = 0
    refused: bool = False
    is_unread: bool = False
    randomness: str | None = None

    def is_complete(self, size: int) -> bool:
        """Whether every byte of a file of this size is accounted for."""
        return self.refused or self.num_bytes == size

    def unread(self, reason: Reason, num_bytes: int, source: str, num_reports: int = 0) -> Rejection:
        """Reject a part of the file that could not be read; several parts count as one file.

        Args:
            reason: why it could not be read.
            num_bytes: size of the part.
            source: name of the file.
            num_reports: number of reports in this part, if another source states it.
        """
        num_files = int(not self.is_unread)
        self.is_unread = True
        return Rejection(reason, num_reports, num_bytes, source=source, num_files=num_files)

    def refuse(self, reason: Reason, num_bytes: int, source: str) -> Rejection:
        """Reject the whole file."""
        self.refused = True
        return self.unread(reason, num_bytes, source)
