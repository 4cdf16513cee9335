"""Power of a planned comparison of groups: which differences show, and how many reports a difference needs."""

from __future__ import annotations

import dataclasses
import math

from scipy import special

from uldp_transforms.ldp.confidence import error_rate, percent
from uldp_transforms.rows.figures.compared_figures import MAX_PAIRS, rate_text
from uldp_transforms_planner.planning import Plan, reports_for_half_width

_SHOWN = 0.8
"""Probability with which a difference shows."""


def room_for_lies(found: Plan, liars: float) -> float:
    """By how much this share of liars can raise and lower the mean of all reports of a sensitive value, together.

    If values differ, it is that of the value with the largest sum.
    """
    assert found.best.setup is not None, "a mechanism is always recommended"
    mechanism = found.best.setup.mechanism
    assert mechanism.smallest_effects is not None, "the planner compares no mechanisms of others"
    room = (mechanism.largest_effects - mechanism.smallest_effects)[: mechanism.num_sensitive]
    return liars * float(room.max())


def advice_on_liars(found: Plan, liars: float) -> str:
    """How much longer intervals become."""
    length, interval = 2 * found.best.half_width, f"{percent(found.confidence)} interval"
    room = room_for_lies(found, liars)
    return (
        f"If at most {100 * liars:.4g} % of the reports are lies, the {interval} of a sensitive value among "
        f"honest people is {(length + room) / (1 - liars):.2g} long, instead of {length:.2g}, and "
        f"{room / (1 - liars):.2g} with any number of reports."
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupPower:
    """Comparisons of groups that have as many reports as the smallest one.

    Attributes:
        plan: for the reports of the smallest group.
        num_groups: number of groups.
        num_values: number of values that are compared.
        smallest: share of the reports that come from the smallest group.
        liars: largest share of false reports in each group.
    """

    plan: Plan
    num_groups: int
    num_values: int
    smallest: float
    liars: float = 0.0

    @property
    def pairs(self) -> int:
        """Number of pairs that ``uldp compare`` compares; if they are too many, all groups are compared with one."""
        pairs = self.num_groups * (self.num_groups - 1) // 2
        return pairs if pairs <= MAX_PAIRS else self.num_groups - 1

    @property
    def alone(self) -> float:
        """Differences that show at a p-value of 1 - confidence, in half lengths of a share's interval."""
        return self._factor(1)

    @property
    def among_all(self) -> float:
        """The same for q-values, if all other differences are 0: then q is p times the number of all differences."""
        return self._factor(self.pairs * self.num_values)

    def _factor(self, number: int) -> float:
        """Two equal groups have twice the variance of one."""
        confidence = self.plan.confidence
        quantiles = special.ndtri(1 - error_rate(confidence) / (2 * number)) + special.ndtri(_SHOWN)
        return float(math.sqrt(2) * quantiles / special.ndtri((1 + confidence) / 2))

    @property
    def _rate(self) -> str:
        """The p-value or q-value below which a difference shows."""
        return rate_text(error_rate(self.plan.confidence))

    @property
    def _room(self) -> float:
        """By how much lies can hide a difference among honest people, times 1 - ``liars``."""
        return 2 * room_for_lies(self.plan, self.liars) if self.liars else 0.0

    def advice(self) -> list[str]:
        """The differences that show."""
        half, honest = self.plan.best.half_width, 1 - self.liars
        alone, among_all = ((factor * half + self._room) / honest for factor in (self.alone, self.among_all))
        if alone > 1:
            return [
                "Even a difference of 1 in one sensitive value between two groups of this size may be missed: there "
                "are too few reports, or too many liars."
            ]
        rate = self._rate
        pairs = f"{self.pairs:,} {'pair' if self.pairs == 1 else 'pairs'}"
        found = (
            f"one of {among_all:.2g} a q-value below {rate}, even if it is the only one"
            if among_all <= 1
            else f"even one of 1 may have no q-value below {rate}"
        )
        return [
            f"A difference of {alone:.2g} in one sensitive value between two groups of this size has a p-value below "
            f"{rate} in 80 of 100 cases, and {found} ({pairs} x {self.num_values:,} values)."
        ]

    def needed_for(self, difference: float) -> str:
        """How many reports show a difference in a sensitive value."""
        setup = self.plan.best.setup
        assert setup is not None, "a mechanism is always recommended"
        left = difference * (1 - self.liars) - self._room
        numbers = [
            reports_for_half_width(setup, left / factor, self.plan.confidence) if left > 0 else None
            for factor in (self.alone, self.among_all)
        ]
        if numbers == [None, None]:
            return f"No number of reports shows a difference of {difference:g} in 80 of 100 cases."
        texts = [
            "more than any number of reports"
            if number is None
            else f"{number:,} reports ({self._of_all(number):,} in all groups)"
            for number in numbers
        ]
        return (
            f"For a difference of {difference:g} in 80 of 100 cases, the smallest group needs {texts[0]} for a p-value "
            f"below {self._rate}, and {texts[1]} for a q-value."
        )

    def _of_all(self, number: int) -> int:
        return math.ceil(number / self.smallest - 1e-9)
