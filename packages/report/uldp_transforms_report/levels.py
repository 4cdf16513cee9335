"""The levels of confidence of the rows that a part of a page shows, in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from uldp_transforms.ldp.confidence import CONFIDENCE, confidence_or_default, error_rate, percent
from uldp_transforms.rows.figures.compared_figures import rate_text

_CHOSEN_FROM = 20


@dataclasses.dataclass(frozen=True)
class Levels:
    """The different confidences of rows, in ascending order: one, unless a job was continued with another one.

    As text such as ``95 %``, or ``90 % or 95 %``.
    """

    confidences: tuple[float, ...] = (CONFIDENCE,)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any] | None]) -> Levels:
        """Those of rows; the default without rows."""
        found = {confidence_or_default(row.get("confidence")) for row in rows if row is not None}
        return cls(tuple(sorted(found)) or (CONFIDENCE,))

    def __str__(self) -> str:
        return " or ".join(map(percent, self.confidences))

    @property
    def highest(self) -> float:
        return self.confidences[-1]

    @property
    def misses(self) -> str:
        """The shares of intervals that may miss, such as ``5 %``."""
        return " or ".join(percent(error_rate(confidence)) for confidence in reversed(self.confidences))

    @property
    def q_values(self) -> str:
        """The q-values up to which differences are found, such as ``.05``."""
        return " or ".join(rate_text(error_rate(confidence)) for confidence in reversed(self.confidences))

    @property
    def holds_of_largest(self) -> int:
        """Of 100 cases, the number in which the interval of the largest of 20 equal estimates holds."""
        return round(100 * ((1 + self.confidences[0]) / 2) ** _CHOSEN_FROM)


USUAL = Levels()
"""The default alone."""
