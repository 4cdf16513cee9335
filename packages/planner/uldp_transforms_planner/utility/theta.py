"""The theta that minimises the squared error of unary reports (rappor, urap)."""

from __future__ import annotations

import math

from uldp_transforms.ldp.checks import describe, require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.mechanism import MAX_SYMBOLS
from uldp_transforms.ldp.mechanisms.unary import AWARE, MARGINAL
from uldp_transforms_planner.utility.arguments import require_epsilon, require_share


def optimal_theta(num_sensitive: int, epsilon: float, sensitive_share: float = 1.0, inversion: str = AWARE) -> float:
    """sqrt(a) / (sqrt(a) + sqrt(c)), the minimum of n E l2 = (a / theta + c / (1 - theta)) / (E - 1)**2 - sum(p**2).

    Here a = E (v + E - 1), and c = v + P_S (v - 1)(E - 1) for the aware inversion, c = v E - P_S (E - 1) for the
    marginal one; E = e**epsilon. The configuration ``"theta": "optimal"`` of a mechanism is the case of the largest
    c: P_S = 1 (aware) and P_S = 0 (marginal).

    Args:
        num_sensitive: v; for rappor the total number of symbols.
        epsilon: in (0, 16].
        sensitive_share: P_S, the share of people with sensitive values; 1 for rappor.
        inversion: "aware" or "marginal".

    Raises:
        SpecError: if an argument is out of range.

    Source: derived in docs/decisions/0063-planning.md; Murakami and Kawamoto 2019 leave the choice of theta open, and
    Wang et al. 2017 minimise the term of rare values (theta = 1/2).
    """
    require_int("optimal_theta.num_sensitive", num_sensitive, 1, MAX_SYMBOLS)
    require_epsilon("optimal_theta.epsilon", epsilon)
    require_share("optimal_theta.sensitive_share", sensitive_share)
    if inversion not in (AWARE, MARGINAL):
        raise SpecError(f'optimal_theta.inversion must be "{AWARE}" or "{MARGINAL}", got {describe(inversion)}')
    v, gain = num_sensitive, math.expm1(epsilon)
    own = math.sqrt((gain + 1) * (v + gain))
    aware = inversion == AWARE
    others = math.sqrt(v + sensitive_share * (v - 1) * gain if aware else v + (v - sensitive_share) * gain)
    return own / (own + others)
