"""What several reports of one person promise together."""

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
    """A promise about one person's value, whoever looks and whatever else is known.

    Example:
        >>> weekly = Guarantee(epsilon=0.5, kind="uldp", non_sensitive=frozenset({"none"}))
        >>> weekly.for_reports(4).epsilon
        2.0
        >>> weekly.per_report(4).epsilon
        0.125

    Attributes:
        epsilon: above 0. Sums of reports may exceed what one mechanism takes.
        kind: "ldp": the odds between any two values change by at most e**epsilon. "uldp": a protected report does so
            too; the other reports tell a non-sensitive value. "osldp": the odds of a sensitive value against any
            other one *rise* by at most e**epsilon, and nothing is promised about their fall.
        non_sensitive: the values that are not protected; empty for "ldp" and only there. All other values are
            protected, also those nobody has thought of.

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
        """What two reports of the same value promise together, the second possibly chosen after seeing the first.

        The budgets add up. Protected is what both protect: a value that either report may tell is not. The pair of
        reports is protected if both are.
        """
        kinds = {self.kind, other.kind}
        kind = OSLDP if OSLDP in kinds else ULDP if ULDP in kinds else LDP
        return Guarantee(
            epsilon=self.epsilon + other.epsilon, kind=kind, non_sensitive=self.non_sensitive | other.non_sensitive
        )

    def for_reports(self, number: int) -> Guarantee:
        """What ``number`` fresh reports of one person promise together: the budget so many times.

        It holds for values that change as well as for one that stays. Raises SpecError for no number of reports.
        """
        require_int("Guarantee.for_reports: number", number, 1, MAX_REPORTS_OF_ONE)
        return dataclasses.replace(self, epsilon=number * self.epsilon)

    def per_report(self, number: int) -> Guarantee:
        """What each of ``number`` reports of one person has to promise, for all together to keep this promise.

        The budget of one is rounded down. Raises SpecError for no number of reports.
        """
        require_int("Guarantee.per_report: number", number, 1, MAX_REPORTS_OF_ONE)
        share = self.epsilon / number
        while Fraction(share) * number > Fraction(self.epsilon):
            share = math.nextafter(share, 0)
        return dataclasses.replace(self, epsilon=share)

    def joined_with(self, other: Guarantee) -> Guarantee:
        """What the *protected* reports of one person at two collectors promise, who put their data together.

        Between any two values, sensitive or not, the odds change by at most e**(sum of both): LDP with
        utility-optimised LDP works. A one-sided promise has no protected reports in this sense, and is refused.

        Raises:
            SpecError: if one of the two is one-sided only.
        """
        if OSLDP in (self.kind, other.kind):
            raise SpecError(
                f'Guarantee.joined_with must be two-sided on both sides ("{LDP}" or "{ULDP}"), '
                f"got {self.kind!r} and {other.kind!r}"
            )
        return self + other

    def after_processing(self) -> Guarantee:
        """What is left when anybody changes the reports, by any rule that does not look at the person's value.

        LDP stays; of utility-optimised LDP the one-sided promise to the sensitive values stays, because a report in
        clear may have been turned into one that looks protected.
        """
        return dataclasses.replace(self, kind=OSLDP if self.kind == ULDP else self.kind)
