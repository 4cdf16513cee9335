"""The ways of reports from a gateway to a job, and the pages that send navigations, with faults drawn from a seed."""

from __future__ import annotations

from collections import Counter

import numpy as np

SENT, COUNTED, REFUSED, UNANSWERED, AGAIN, SPOILED, DELETED, MISSED, UNREAD = (
    *("sent", "counted", "refused at the door", "never answered", "counted again"),
    *("in spoiled files", "deleted before they were read", "records that were deleted before they were read"),
    "records that were deleted from new partitions",
)
"""What becomes of reports, and of records. A new partition is read from the first record that it has then."""


class Faults:
    """Faults drawn from a seed.

    Attributes:
        rng: of the seed.
        numbers: reports by what became of them, and faults by name.
    """

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.numbers: Counter[str] = Counter()

    def happens(self, chance: float, fault: str) -> bool:
        """Whether a fault happens now."""
        found = bool(self.rng.random() < chance)
        self.numbers[fault] += found
        return found
