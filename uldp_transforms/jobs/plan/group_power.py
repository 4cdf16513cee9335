"""Power of a planned comparison of groups: which differences show, and how many reports a difference needs."""

from __future__ import annotations

import dataclasses
import math

from scipy import special

from uldp_transforms.ldp.comparisons.compare import MAX_PAIRS
from uldp_transforms.ldp.planning import Plan, reports_for_half_width
from uldp_transforms.ldp.solvers.linear import CONFIDENCE

_ALPHA = 0.05
_SHOWN = 0.8
"""Probability with which a difference shows."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupPower:
    """Comparisons of groups that have as many reports as the smallest one.

    Attributes:
        plan: for the reports of the smallest group.
        num_groups: number of groups.
        num_values: number of values that are compared.
        smallest: share of the reports that come from the smallest group.
    """

    plan: Plan
    num_groups: int
    num_values: int
    smallest: float

    @property
    def pairs(self) -> int:
        """Number of pairs that ``uldp compare`` compares; if they are too many, all groups are compared with one."""
        pairs = self.num_groups * (self.num_groups - 1) // 2
        return pairs if pairs <= MAX_PAIRS else self.num_groups - 1

    @property
    def alone(self) -> float:
        """Differences that show at p .05 in half lengths of a share's 95 % interval."""
        return self._factor(1)

    @property
    def among_all(self) -> float:
        """The same for q .05, if all other differences are 0: then q is p times the number of all differences."""
        return self._factor(self.pairs * self.num_values)

    def _factor(self, number: int) -> float:
        """Two equal groups have the variance of one, twice."""
        quantiles = special.ndtri(1 - _ALPHA / (2 * number)) + special.ndtri(_SHOWN)
        return float(math.sqrt(2) * quantiles / special.ndtri((1 + CONFIDENCE) / 2))

    def advice(self) -> list[str]:
        """The differences that show."""
        half = self.plan.best.half_width
        pairs = f"{self.pairs:,} {'pair' if self.pairs == 1 else 'pairs'}"
        return [
            f"A difference of {self.alone * half:.2g} in one sensitive value between two groups of this size has a "
            f"p-value below .05 in 80 of 100 cases, and one of {self.among_all * half:.2g} a q-value below .05, even "
            f"if it is the only one ({pairs} x {self.num_values:,} values)."
        ]

    def needed_for(self, difference: float) -> str:
        """How many reports show a difference in a sensitive value."""
        setup = self.plan.best.setup
        assert setup is not None, "a mechanism is always recommended"
        numbers = [reports_for_half_width(setup, difference / factor) for factor in (self.alone, self.among_all)]
        texts = [
            "no number of reports" if number is None else f"{number:,} reports ({self._of_all(number):,} in all groups)"
            for number in numbers
        ]
        return (
            f"For a difference of {difference:g} in 80 of 100 cases, the smallest group needs {texts[0]} for a p-value "
            f"below .05, and {texts[1]} for a q-value."
        )

    def _of_all(self, number: int) -> int:
        return math.ceil(number / self.smallest - 1e-9)
