"""Open alphabets: the numbers of buckets and cohorts, and the precision of candidates' frequencies.

Notation: k buckets of sensitive texts, C cohorts, S candidates that are hashed into them, n reports.
"""

from __future__ import annotations

import math

import numpy as np

from uldp_transforms.ldp.checks import is_number, require_int, require_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.model import MAX_CELLS, MAX_COHORTS
from uldp_transforms.ldp.solvers.linear import FEW_UNKNOWNS
from uldp_transforms_planner.utility.arguments import (
    require_epsilon,
    require_one_symbol,
    require_reports,
    require_share,
)

MAX_BUCKETS = 1 << 16
MAX_CANDIDATES = 1 << 20
"""Maximum number of candidates in forecasts; estimates accept fewer."""

SPARE = 4
"""Minimum number of equations per candidate of a short list: with 4, the variance is at most 4 / 3 of its limit for
infinitely many cohorts.
"""

MANY_COHORTS, FEWEST_COHORTS = 1024, 64
"""Maximum number of cohorts that improves accuracy, and minimum number that keeps collisions with frequent unlisted
texts rare.
"""

COUNTERS = 1 << 17
"""Number of counters (cohorts times buckets) per window if accuracy does not need more: 1 MiB."""


def best_num_buckets(
    epsilon: float, sensitive_share: float = 1.0, num_candidates: int = 1, candidate_share: float | None = None
) -> int:
    """Number of buckets with the least squared error for one-symbol reports (krr, urr) and infinitely many cohorts.

    It minimises over k, with H the share of people who hold candidates,

        S v0(k) + H (k - 2) / (k - 1) B(k) + P_N / kappa(k),    B = 1 / kappa = (k + E - 1) / (E - 1).

    The first term is the noise of all people in all candidates, the second the noise that a candidate's own holders add
    to it, and the third that of the listed texts that are not sensitive. The minimum is near e**epsilon + 1 for many
    rare candidates, and near sqrt(S e**epsilon / H) for few candidates and large epsilon. The planner starts its search
    here and then minimises the complete forecast, which includes the number of reports, the cohorts and unlisted texts.

    Args:
        epsilon: in (0, 16].
        sensitive_share: P_S = 1 - P_N, the share of people with sensitive texts.
        num_candidates: S (default: 1).
        candidate_share: H, at most P_S; 0 for candidates that almost nobody holds (default: P_S).

    Raises:
        SpecError: if an argument is out of range.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5 (hashing into few buckets); derived in docs/utility.md.
    """
    require_epsilon("best_num_buckets.epsilon", epsilon)
    require_share("best_num_buckets.sensitive_share", sensitive_share)
    require_int("best_num_buckets.num_candidates", num_candidates, 1, MAX_CANDIDATES)
    held = sensitive_share if candidate_share is None else candidate_share
    in_range = is_number(held) and 0 <= held <= sensitive_share
    require_number("best_num_buckets.candidate_share", held, f"a number in [0, {sensitive_share:g}]", in_range)
    gain, k = math.expm1(epsilon), np.arange(2.0, MAX_BUCKETS + 1)
    others = 1 - sensitive_share
    candidates = (sensitive_share * (k + gain) ** 2 + others * k * (k + gain)) / ((k - 1) * gain**2)
    own = held * (k - 2) / (k - 1) * (k + gain) / gain
    return 2 + int(np.argmin(num_candidates * candidates + own + others * (k + gain) / gain))


def cohorts_needed(num_candidates: int, num_buckets: int, max_cohorts: int = MAX_COHORTS) -> int:
    """Number of cohorts that is sufficient for accuracy: 1,024, or fewer with many buckets, but at least 64.

    Collisions with unlisted texts add their squared frequencies / (C (k - 1)) to the variance, for any number of
    reports. So C k is at least 2**17, within the limits of 64 and 1,024 cohorts. Up to 512 candidates are solved for
    exactly, with four equations each. The planner uses more cohorts if its forecast improves.

    Args:
        num_candidates: S.
        num_buckets: k.
        max_cohorts: upper limit, for expensive counters, or if people keep their cohort, which links their reports: n /
            C of n people share a cohort.

    Raises:
        SpecError: if an argument is out of range.
    """
    require_int("cohorts_needed.num_candidates", num_candidates, 1, MAX_CANDIDATES)
    require_int("cohorts_needed.num_buckets", num_buckets, 2, MAX_BUCKETS)
    require_int("cohorts_needed.max_cohorts", max_cohorts, 2, MAX_COHORTS)
    wanted = min(max(COUNTERS // num_buckets, FEWEST_COHORTS), MANY_COHORTS)
    needed = -(-SPARE * min(num_candidates, FEW_UNKNOWNS) // (num_buckets - 1))
    return min(max(wanted, needed), max_cohorts, MAX_CELLS // num_buckets)


def hashed_variance(
    mechanism: SetReportMechanism,
    num_reports: int,
    num_cohorts: int,
    num_candidates: int,
    *,
    sensitive_share: float = 1.0,
    unlisted_squares: float = 0.0,
) -> float:
    """Variance of the estimated frequency of a candidate that almost nobody holds, by centred least squares.

        (v0 / n + unlisted_squares / (C (k - 1))) / (1 - S / (C (k - 1))),   v0 = k / (k - 1) private variance

    This is the leading term for random hash functions; frequent candidates and few cohorts change it by some per cent.
    The term of unlisted texts decreases only with the number of cohorts, not with that of reports. The candidate's own
    holders add sampling and noise, which the planner's forecasts include (``hashed_forecast``).

    Args:
        mechanism: mechanism over the symbols of a hashed alphabet; its k sensitive symbols are the buckets.
        num_reports: n.
        num_cohorts: C.
        num_candidates: S, hashed ones.
        sensitive_share: P_S, share of people with sensitive texts; 1 if all texts are sensitive.
        unlisted_squares: sum of the squared frequencies of sensitive texts that are not candidates.

    Raises:
        SpecError: if an argument is out of range, or if there are at least as many candidates as equations C (k - 1).

    Source: derived in docs/utility.md.
    """
    require_one_symbol("hashed_variance.mechanism", mechanism)
    require_reports("hashed_variance.num_reports", num_reports)
    require_int("hashed_variance.num_cohorts", num_cohorts, 2, MAX_COHORTS)
    require_share("hashed_variance.sensitive_share", sensitive_share)
    squares_ok = is_number(unlisted_squares) and 0 <= unlisted_squares <= 1
    require_number("hashed_variance.unlisted_squares", unlisted_squares, "a number in [0, 1]", squares_ok)
    k, all_symbols = mechanism.num_sensitive, mechanism.num_symbols
    if k == all_symbols and sensitive_share < 1:
        raise SpecError(
            f"hashed_variance.sensitive_share must be 1 if every symbol is sensitive, got {sensitive_share!r}"
        )
    equations = num_cohorts * (k - 1)
    require_int("hashed_variance.num_candidates", num_candidates, 1, equations - 1)
    frequencies = np.repeat([sensitive_share / k, 0.0], [k, all_symbols - k])
    if k < all_symbols:
        frequencies[k:] = (1 - sensitive_share) / (all_symbols - k)
    private = k / (k - 1) * float(mechanism.private_variances(frequencies).mean())
    return (private / num_reports + unlisted_squares / equations) / (1 - num_candidates / equations)


def distinguishable_share(num_buckets: int, num_cohorts: int, num_candidates: int) -> float:
    """Probability that no other candidate shares the buckets of a text in all cohorts: (1 - k**-C)**(S-1).

    Raises:
        SpecError: if an argument is out of range.

    Source: Kairouz, Bonawitz and Ramage 2016, appendix G, which prints k**-C for the probability 1 - k**-C that at
    least one cohort separates two texts.
    """
    require_int("distinguishable_share.num_buckets", num_buckets, 2, MAX_BUCKETS)
    require_int("distinguishable_share.num_cohorts", num_cohorts, 1, MAX_COHORTS)
    require_int("distinguishable_share.num_candidates", num_candidates, 1, MAX_CANDIDATES)
    return math.exp((num_candidates - 1) * math.log1p(-math.exp(-num_cohorts * math.log(num_buckets))))


def cohorts_to_distinguish(num_buckets: int, num_candidates: int, target: float) -> int:
    """Smallest number of cohorts with which ``distinguishable_share`` reaches a target below 1.

    This is the minimum for telling texts apart; estimates need ``cohorts_needed``.

    Raises:
        SpecError: if an argument is out of range.

    Source: as for ``distinguishable_share``.
    """
    target_ok = is_number(target) and 0 < target < 1
    require_number("cohorts_to_distinguish.target", target, "a number in (0, 1)", target_ok)
    cohorts = 1
    while distinguishable_share(num_buckets, cohorts, num_candidates) < target:
        cohorts += 1
    return cohorts
