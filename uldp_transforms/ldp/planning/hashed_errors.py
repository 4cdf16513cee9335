"""Open alphabets: how many buckets and cohorts, and how precise the frequencies of candidates are.

Letters: k buckets of sensitive texts, C cohorts, S candidates that are hashed into them, n reports.
"""

from __future__ import annotations

import math

import numpy as np

from uldp_transforms.ldp.checks import is_number, require_int, require_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.model import MAX_CELLS, MAX_COHORTS
from uldp_transforms.ldp.solvers.linear import FEW_UNKNOWNS
from uldp_transforms.ldp.utility.arguments import (
    require_epsilon,
    require_one_symbol,
    require_reports,
    require_share,
)

MAX_BUCKETS = 1 << 16
MAX_CANDIDATES = 1 << 20
"""Largest number of candidates that is calculated with; estimates take fewer."""

SPARE = 4
"""Equations per candidate of a short list; with 4 the variance is at most 4 / 3 of what endless cohorts would give."""

MANY_COHORTS, FEWEST_COHORTS = 1024, 64
"""As many cohorts as accuracy can use, and as few as leave collisions with heavy unlisted texts small."""

COUNTERS = 1 << 17
"""Counters, cohorts times buckets, that a window has where accuracy does not need more: 1 MiB."""


def best_num_buckets(
    epsilon: float, sensitive_share: float = 1.0, num_candidates: int = 1, candidate_share: float | None = None
) -> int:
    """The number of buckets with the least squared error for one-symbol reports (krr, urr) and endless cohorts.

    Minimises over k, with H the share of people who hold candidates,

        S v0(k) + H (k - 2) / (k - 1) B(k) + P_N / kappa(k),    B = 1 / kappa = (k + E - 1) / (E - 1).

    The first term is the noise of all people in all candidates, the second what a candidate's own people add to it, the
    third that of the listed texts that are not sensitive. Near e**epsilon + 1 for many rare candidates, near
    sqrt(S e**epsilon / H) where candidates are few and epsilon is large. The planner starts its search here and then
    minimises the whole forecast, which knows the number of reports, the cohorts and unlisted texts.

    Args:
        epsilon: in (0, 16].
        sensitive_share: P_S = 1 - P_N, the share of people with sensitive texts.
        num_candidates: S (default: 1).
        candidate_share: H, at most P_S; 0 for candidates that hardly anybody holds (default: P_S).

    Raises:
        SpecError: for arguments out of range.

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
    """As many cohorts as accuracy wants as a rule: 1,024, or fewer where buckets are many, down to 64.

    Collisions with texts that nobody listed add their squared frequencies / (C (k - 1)), which no number of reports
    removes. So C k is at least 2**17, unless that takes more than 1,024 or fewer than 64 cohorts. Up to 512 candidates
    are solved for exactly, and have four equations each. The planner takes more where its forecast gains by it.

    Args:
        num_candidates: S.
        num_buckets: k.
        max_cohorts: fewer where counters are dear, or where people keep their cohort, which links their reports: of n
            people n / C share one.

    Raises:
        SpecError: for arguments out of range.
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
    """Variance of the frequency of a candidate that hardly anybody holds, by centred least squares.

        (v0 / n + unlisted_squares / (C (k - 1))) / (1 - S / (C (k - 1))),   v0 = k / (k - 1) private variance

    The leading term for random hash functions; frequent candidates and few cohorts change it by some per cent. The
    part of unlisted texts does not fall with the number of reports, only with the number of cohorts. Its own people add
    their sampling and their noise, which the planner's forecasts have (``hashed_forecast``).

    Args:
        mechanism: over the symbols of a hashed alphabet; its k sensitive symbols are the buckets.
        num_reports: n.
        num_cohorts: C.
        num_candidates: S, hashed ones.
        sensitive_share: P_S, share of people with sensitive texts; 1 if all are.
        unlisted_squares: sum of the squared frequencies of sensitive texts that are no candidates.

    Raises:
        SpecError: for arguments out of range, or if there are no more candidates than equations C (k - 1).

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
            f"hashed_variance.sensitive_share must be 1 where every symbol is sensitive, got {sensitive_share!r}"
        )
    equations = num_cohorts * (k - 1)
    require_int("hashed_variance.num_candidates", num_candidates, 1, equations - 1)
    frequencies = np.repeat([sensitive_share / k, 0.0], [k, all_symbols - k])
    if k < all_symbols:
        frequencies[k:] = (1 - sensitive_share) / (all_symbols - k)
    private = k / (k - 1) * float(mechanism.private_variances(frequencies).mean())
    return (private / num_reports + unlisted_squares / equations) / (1 - num_candidates / equations)


def distinguishable_share(num_buckets: int, num_cohorts: int, num_candidates: int) -> float:
    """Probability that a text shares its buckets of all cohorts with none of the other candidates: (1 - k**-C)**(S-1).

    Raises:
        SpecError: for arguments out of range.

    Source: Kairouz, Bonawitz and Ramage 2016, appendix G, which prints k**-C for the probability 1 - k**-C that one
    cohort or more tells two texts apart.
    """
    require_int("distinguishable_share.num_buckets", num_buckets, 2, MAX_BUCKETS)
    require_int("distinguishable_share.num_cohorts", num_cohorts, 1, MAX_COHORTS)
    require_int("distinguishable_share.num_candidates", num_candidates, 1, MAX_CANDIDATES)
    return math.exp((num_candidates - 1) * math.log1p(-math.exp(-num_cohorts * math.log(num_buckets))))


def cohorts_to_distinguish(num_buckets: int, num_candidates: int, target: float) -> int:
    """The least number of cohorts with which ``distinguishable_share`` reaches a target below 1.

    This is what it takes to tell texts apart at all; estimates need ``cohorts_needed``.

    Raises:
        SpecError: for arguments out of range.

    Source: as for ``distinguishable_share``.
    """
    target_ok = is_number(target) and 0 < target < 1
    require_number("cohorts_to_distinguish.target", target, "a number in (0, 1)", target_ok)
    cohorts = 1
    while distinguishable_share(num_buckets, cohorts, num_candidates) < target:
        cohorts += 1
    return cohorts
