"""The privacy budget of a device, and the privacy cost of its reports, which depends on their number alone.

A missing report also carries information. If refusals depended on the values, windows without an answer would reveal
them. The cost of n reports is therefore that of the most expensive n reports.
"""

from __future__ import annotations

import dataclasses
import math

from uldp_transforms.ldp.checks import is_number, require_int, require_number
from uldp_transforms.ldp.client_window import DAY
from uldp_transforms.ldp.mechanisms import Mechanism

MAX_MILLISECONDS = 1 << 53


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """Privacy budget of a device, for all collections whose clients share a storage.

    The reports of a collection cost ``cost_of_reports``, which depends on their number alone; the costs of collections
    add up. Without memos this bounds what the reports say about any two histories of values. With memos it bounds what
    they say about *which* symbols a person had, where it is known when these changed and which of them were the same.
    *That* a symbol changed, and when, is not within the budget: see docs/threat-model.md.

    Examples:
        >>> from uldp_transforms.ldp import Budget
        >>> Budget(epsilon=1.0, lifetime=20.0).period_ms
        86400000

    Attributes:
        epsilon: largest total cost of the reports of one period.
        period_ms: length of a period, in milliseconds; periods begin at 1970-01-01T00:00:00Z.
        lifetime: largest total cost of all reports ever made (default: no limit).
    """

    epsilon: float
    period_ms: int = DAY
    lifetime: float | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "lifetime"):
            value = getattr(self, name)
            if name == "epsilon" or value is not None:
                ok = is_number(value) and 0 < value < math.inf
                require_number(f"Budget.{name}", value, "a number above 0", ok)
        require_int("Budget.period_ms", self.period_ms, 1, MAX_MILLISECONDS)


def cost_of_reports(mechanism: Mechanism, num_reports: int, num_symbols: int) -> float:
    """Upper bound on the privacy cost of n reports of a person with at most D different symbols.

    With f(t) = ``mechanism.epsilon_after(t)``, t reports of one symbol, it is at least the largest sum of f over all
    ways to divide n reports among D symbols. f rises first faster and then slower than in proportion (ln of a ratio of
    two sums of exponentials), so f(t) / t has one maximum. The concave function h(t) = t max(f(j) / j: t <= j <= n) is
    at least f, and its sum is largest where the reports are divided evenly. Equal to that maximum where f is concave.

    Args:
        mechanism: of the reports; without memos the cost is n epsilon.
        num_reports: n.
        num_symbols: D.
    """
    each, more = divmod(num_reports, num_symbols)
    parts = ((num_symbols - more, each), (more, each + 1))
    return math.fsum(number * _concave(mechanism, size, num_reports) for number, size in parts if number and size)


def _concave(mechanism: Mechanism, size: int, at_most: int) -> float:
    """h(t)."""
    best = mechanism.epsilon_after(size) / size
    for longer in range(size + 1, at_most + 1):
        rate = mechanism.epsilon_after(longer) / longer
        if rate <= best:
            break
        best = rate
    return size * best
