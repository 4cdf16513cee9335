"""What the rows of a comparison have in common, collected while they are written: each row is read once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable

from uldp_transforms.ldp.confidence import confidence_or_default, error_rate
from uldp_transforms.ldp.estimators.estimator import ANYTIME
from uldp_transforms.rows.figures.compared_figures import EXACT, MEAN, QUANTILE, SHARE_ABOVE, clearest_rows
from uldp_transforms.rows.figures.figure import is_without_zero
from uldp_transforms.rows.row_types import ComparedValue

MOST_PRINTED = 20
"""Maximum number of differences that are printed."""

_CANDIDATES = 2_000
"""Number of rows from which the clearest ones are chosen at a time."""


@dataclasses.dataclass
class Findings:
    """What is said about all rows of one collection or question.

    Attributes:
        number, found: of the rows, and of those with a q-value of at most ``rate``.
        confidence: of the intervals.
        declared: largest share of false reports that intervals allow for; None: none.
        has_looks, has_figures: whether intervals are for many looks, and whether figures of numbers are compared.
        has_single: whether the interval of a difference that is not found is without 0.
        noticeable_mean, noticeable_share: largest ``noticeable`` of means and of shares; None: there is none.
    """

    number: int = 0
    found: int = 0
    confidence: float = dataclasses.field(default_factory=lambda: confidence_or_default(None))
    declared: float | None = None
    has_looks: bool = False
    has_figures: bool = False
    has_single: bool = False
    noticeable_mean: float | None = None
    noticeable_share: float | None = None
    _candidates: list[ComparedValue] = dataclasses.field(default_factory=list)
    _least_clear: float = 1.0

    @classmethod
    def of(cls, rows: Iterable[ComparedValue]) -> Findings:
        """Read all rows."""
        found = cls()
        for row in rows:
            found._add(row)
        return found

    @functools.cached_property
    def rate(self) -> float:
        """Largest q-value of a difference that is found."""
        return error_rate(self.confidence)

    def clearest(self) -> list[ComparedValue]:
        """The clearest differences, at most ``MOST_PRINTED``, in their order."""
        return [self._candidates[at] for at in self._order()]

    def _add(self, row: ComparedValue) -> None:
        if not self.number:
            self.confidence = confidence_or_default(row.confidence)
        self.number += 1
        if row.q_value <= self.rate:
            self.found += 1
        elif not self.has_single:
            self.has_single = is_without_zero(row.low, row.high)
        self.declared = row.liars if self.declared is None else self.declared
        self.has_looks |= row.interval == ANYTIME
        self.has_figures |= row.figure in (MEAN, QUANTILE, SHARE_ABOVE)
        if row.noticeable is not None:
            if row.figure == MEAN:
                self.noticeable_mean = max(row.noticeable, self.noticeable_mean or row.noticeable)
            elif row.figure in (None, SHARE_ABOVE):
                self.noticeable_share = max(row.noticeable, self.noticeable_share or row.noticeable)
        if row.p_value <= self._least_clear:
            self._candidates.append(row)
            if len(self._candidates) == _CANDIDATES:
                self._candidates = [self._candidates[at] for at in sorted(self._order())]
                self._least_clear = max(EXACT, *(row.p_value for row in self._candidates))

    def _order(self) -> list[int]:
        """Places of the clearest candidates."""
        return clearest_rows([row._asdict() for row in self._candidates])[:MOST_PRINTED]
