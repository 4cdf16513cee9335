"""What a device may spend, and what its reports cost: a function of how many there are, never of what they say.

A report that is refused is a message too. If refusals depended on the values, the windows without an answer would tell
them; so the cost of n reports is that of the n reports that could cost the most.
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
    """What a device may spend, over all collections whose clients share a storage.

    The reports of a collection cost ``cost_of_reports``, which depends on their number alone; the costs of collections
    add up. Without memos this bounds what the reports say about any two histories of values. With memos it bounds what
    they say about *which* symbols a person had, where it is known when these changed and which of them were the same.
    *That* a symbol changed, and when, is not within the budget: see docs/threat-model.md.

    Attributes:
        epsilon: what the reports of one period may cost together.
        period_ms: length of a period, in milliseconds; periods begin at 1970-01-01T00:00:00Z.
        lifetime: what all reports ever made may cost together (default: no limit).
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
    """An upper bound on the cost of n reports of a person who has had at most so many different symbols.

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
