"""Composition: the joint privacy guarantee of several reports of one person."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

from uldp_transforms.ldp.checks import describe, is_number, require_int, require_number
from uldp_transforms.ldp.errors import SpecError

LDP, ULDP, OSLDP = "ldp", "uldp", "osldp"
MAX_REPORTS_OF_ONE = 1 << 31


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A privacy guarantee for one person's value, against any observer with any background knowledge.

    Example:
        >>> weekly = Guarantee(epsilon=0.5, kind="uldp", non_sensitive=frozenset({"none"}))
        >>> weekly.for_reports(4).epsilon
        2.0
        >>> weekly.per_report(4).epsilon
        0.125

    Attributes:
        epsilon: above 0. The total of several reports may exceed the limit of a single mechanism.
        kind: "ldp": the odds between any two values change by at most e**epsilon. "uldp": protected reports satisfy
            this too; the other reports reveal a non-sensitive value. "osldp": the odds of a sensitive value against any
            other value *rise* by at most e**epsilon; their fall is not bounded.
        non_sensitive: the values that are not protected; empty if and only if the kind is "ldp". All other values are
            protected, including values that are on no list.

    Source: Murakami and Kawamoto 2019, Definition 2 (utility-optimised LDP), Propositions 1 to 3 and appendix C.
    """

    epsilon: float
    kind: str = LDP
    non_sensitive: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        ok = is_number(self.epsilon) and 0 < self.epsilon < math.inf
        require_number("Guarantee.epsilon", self.epsilon, "a number above 0", ok)
        if self.kind not in (LDP, ULDP, OSLDP):
            raise SpecError(f'Guarantee.kind must be "{LDP}", "{ULDP}" or "{OSLDP}", got {describe(self.kind)}')
        if (self.kind == LDP) == bool(self.non_sensitive):
            raise SpecError(
                f'Guarantee.non_sensitive must be empty for "{LDP}" and only there, '
                f"got {len(self.non_sensitive)} value(s) for {self.kind!r}"
            )

    def __add__(self, other: Guarantee) -> Guarantee:
        """The joint guarantee of two reports of the same value; the second may depend on the outcome of the first.

        Epsilons add up. A value is protected if both reports protect it, and the pair of reports is protected if both
        are.
        """
        kinds = {self.kind, other.kind}
        kind = OSLDP if OSLDP in kinds else ULDP if ULDP in kinds else LDP
        return Guarantee(
            epsilon=self.epsilon + other.epsilon, kind=kind, non_sensitive=self.non_sensitive | other.non_sensitive
        )

    def for_reports(self, number: int) -> Guarantee:
        """The joint guarantee of ``number`` fresh reports of one person: ``number`` times epsilon.

        It holds for constant and for changing values. Raises SpecError if ``number`` is not positive.
        """
        require_int("Guarantee.for_reports: number", number, 1, MAX_REPORTS_OF_ONE)
        return dataclasses.replace(self, epsilon=number * self.epsilon)

    def per_report(self, number: int) -> Guarantee:
        """The guarantee that each of ``number`` reports of one person needs, so that all together have this guarantee.

        Epsilon is rounded down. Raises SpecError if ``number`` is not positive.
        """
        require_int("Guarantee.per_report: number", number, 1, MAX_REPORTS_OF_ONE)
        share = self.epsilon / number
        while Fraction(share) * number > Fraction(self.epsilon):
            share = math.nextafter(share, 0)
        return dataclasses.replace(self, epsilon=share)

    def joined_with(self, other: Guarantee) -> Guarantee:
        """The joint guarantee of one person's *protected* reports at two collectors who combine their data.

        Between any two values, sensitive or not, the odds change by at most e**(sum of both): LDP composes with
        utility-optimised LDP. A one-sided guarantee has no protected reports in this sense, and is refused.

        Raises:
            SpecError: if one of the two is one-sided.
        """
        if OSLDP in (self.kind, other.kind):
            raise SpecError(
                f'Guarantee.joined_with must be two-sided on both sides ("{LDP}" or "{ULDP}"), '
                f"got {self.kind!r} and {other.kind!r}"
            )
        return self + other

    def after_processing(self) -> Guarantee:
        """The guarantee after the reports are changed by any rule that does not depend on the person's value.

        LDP is preserved. Of utility-optimised LDP only the one-sided guarantee for the sensitive values remains,
        because a clear report may have been turned into one that looks protected.
        """
        return dataclasses.replace(self, kind=OSLDP if self.kind == ULDP else self.kind)
