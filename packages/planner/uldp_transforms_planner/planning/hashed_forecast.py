"""Expected errors of hashed candidates, by least squares for short lists and message passing for long ones.

Notation: n reports, C cohorts, k buckets, S candidates with frequencies p, E = C (k - 1) equations; v0 the variance of
one report's inverse along a candidate, D(P) = A + B P the private variance of a bucket that holds the share P.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy import special

from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.solvers.linear import FEW_UNKNOWNS
from uldp_transforms.ldp.solvers.overfull import ENOUGH_COHORTS, FALSELY, ROUNDS
from uldp_transforms_planner.planning.forecast import Estimates, Groups, Shift, rare_shift

_STANDS_OUT = 4.0  # standard errors above which a frequency is not shrunk
_NODES, _WEIGHTS = special.roots_hermitenorm(15)
_MOST_STEPS = 12
_GAIN = 0.995  # as in message passing
_MOST_ATOMS = 80
_NOTICED = 0.01  # share of the noise variance below which collisions are treated as normal


@dataclasses.dataclass(frozen=True, kw_only=True)
class HashedNoise:
    """The noise in the raw estimates of candidates, with the estimator ``empirical``.

    Attributes:
        common: variance of the estimate of a candidate that nobody holds.
        own: (k - 2) / (k - 1) B, slope of n times the variance in the share of own holders, without the square of the
            share.
        counted: probability that a report is counted for such a candidate.
        delta: increase of this probability for a report of an own holder.
        jump: n times the contribution of one more counted report to the estimate.
        num_reports: n.
        shift: collisions with unlisted texts, included in ``common``; None if negligible.
    """

    common: float
    own: float
    counted: float
    delta: float
    jump: float
    num_reports: int
    shift: Shift | None

    def of(self, candidates: Groups) -> Estimates:
        """Forecasts of the estimates of ``candidates``, a subset of those that are estimated together."""
        p, n = candidates.frequencies, self.num_reports
        return Estimates(
            numbers=candidates.numbers,
            variances=self.common + (self.own * p - p**2) / n,
            counted=n * (self.counted + self.delta * p),
            steps=np.full(len(p), self.jump / n),
            num_reports=n,
            shift=self.shift,
        )


def hashed_noise(
    mechanism: SetReportMechanism,
    num_cohorts: int,
    num_reports: int,
    candidates: Groups,
    unlisted_share: float,
    unlisted: Groups,
    *,
    balanced: bool = False,
) -> HashedNoise:
    """The noise of least squares for up to 512 candidates, and of message passing for more.

    Args:
        mechanism: mechanism over the symbols of a hashed alphabet; its k sensitive symbols are the buckets.
        num_cohorts: C.
        num_reports: n.
        candidates: all candidates that are estimated together, with their frequencies among all people.
        unlisted_share: share of people whose hashed text is not a candidate.
        unlisted: frequencies of their texts among all people.
        balanced: whether the candidates are a complete list, of which all buckets have the same number of values. Two
            of them then share a bucket less often, by the factor (S - k) / (S - 1), and their sum is known.
    """
    k, n = mechanism.num_sensitive, num_reports
    mass = min(float(candidates.numbers @ candidates.frequencies) + unlisted_share, 1.0)
    start, slope = _bucket_noise(mechanism, mass)
    floor = k / (k - 1) * (start + slope * mass / k) / n
    equations = _cohorts_with_reports(num_cohorts, n) * (k - 1)
    cohorts = equations / (k - 1)
    bucket = (start + slope * mass / k) * cohorts / n
    numbers = unlisted.numbers * _unnoticed(unlisted, k, cohorts, bucket, float(mechanism.jumps[0]) * cohorts / n)
    squares = float(numbers @ unlisted.frequencies**2)
    spare, collisions = 1.0, squares / equations
    if candidates.total <= FEW_UNKNOWNS:
        spare = max(1 - (candidates.total - balanced) / equations, 1 / equations)
        common = (floor + collisions) / spare
    else:
        apart = (candidates.total - 1) / (candidates.total - k) if balanced and candidates.total > k else 1.0
        common = _fixed_point(floor, candidates, squares, equations * apart)
    shift = None
    if collisions > _NOTICED * floor:
        shift = rare_shift(unlisted.frequencies, numbers * (cohorts / k), collisions / spare)
    return HashedNoise(
        common=common,
        own=slope * (k - 2) / (k - 1),
        counted=_counted(mechanism, mass),
        delta=mechanism.delta,
        jump=float(mechanism.jumps[0]),
        num_reports=n,
        shift=shift,
    )


def _bucket_noise(mechanism: SetReportMechanism, mass: float) -> tuple[float, float]:
    """A and B; ``mass`` is the share of people whose values are hashed into buckets."""
    v, frequencies = mechanism.num_sensitive, np.zeros(mechanism.num_symbols)
    frequencies[0] = mass
    frequencies[v:] = (1 - mass) / max(mechanism.num_symbols - v, 1)
    full, empty = mechanism.private_variances(frequencies)[:2].tolist()
    return empty, (full - empty) / mass if mass > 0 else 0.0


def _counted(mechanism: SetReportMechanism, mass: float) -> float:
    """Probability that a bucket with an average share of ``mass`` is counted."""
    k, frequencies = mechanism.num_sensitive, np.zeros(mechanism.num_symbols)
    frequencies[:k] = mass / k
    frequencies[k:] = (1 - mass) / max(mechanism.num_symbols - k, 1)
    return float(mechanism.response(frequencies)[0])


def _cohorts_with_reports(num_cohorts: int, num_reports: int) -> float:
    """Expected number of cohorts with at least one report."""
    return -num_cohorts * math.expm1(num_reports * math.log1p(-1 / num_cohorts)) if num_cohorts > 1 else 1.0


def _unnoticed(unlisted: Groups, num_buckets: int, num_cohorts: float, noise: float, jump: float) -> np.ndarray:
    """(G,) probability that a cell with one of these unlisted texts is not excluded; see ``overfull``.

    Args:
        unlisted: frequencies of the texts.
        num_buckets: k.
        num_cohorts: number of cohorts with reports.
        noise: variance of the frequency of one bucket in one cohort.
        jump: contribution of one counted report to it.
    """
    kept = np.ones(len(unlisted.frequencies))
    if num_cohorts < ENOUGH_COHORTS:
        return kept
    z, p = float(special.ndtri(1 - FALSELY / (num_cohorts * num_buckets))), unlisted.frequencies
    for _ in range(ROUNDS):
        others = float(unlisted.numbers * kept @ p**2) / num_buckets
        deviation = math.sqrt(noise + others)
        limit = z * deviation + (z**2 - 1) / 6 * jump
        kept = special.ndtr((limit - p * (1 - 1 / num_buckets)) / np.sqrt(noise + jump * p))
    return kept


def _fixed_point(floor: float, candidates: Groups, unlisted_squares: float, equations: float) -> float:
    """Fixed point of the squared error of message passing: noise, and collisions with imprecisely known texts.

    se^2 = floor + (unlisted squares + sum of the posterior variances at se) / E
    """
    square = floor + (unlisted_squares + candidates.squares) / equations
    for _ in range(_MOST_STEPS):
        better = floor + (unlisted_squares + _unknown(candidates, math.sqrt(square))) / equations
        if better > _GAIN**2 * square:
            return min(better, square)
        square = better
    return square


def _unknown(candidates: Groups, error: float) -> float:
    """Sum of the posterior variances of all frequencies, given estimates with standard error ``error``.

    The prior is the true distribution of frequencies, which a fitted prior approximates if there are many. For a value
    that stands out, the variance is that of its estimate.
    """
    large = candidates.frequencies > _STANDS_OUT * error
    alone = float(candidates.numbers[large].sum()) * error**2
    atoms, weights = _coarse(candidates.frequencies[~large], candidates.numbers[~large].astype(np.float64))
    if not len(atoms):
        return alone
    seen = (atoms[:, np.newaxis] + error * _NODES).reshape(-1, 1)
    kernel = np.exp(-(((seen - atoms) / error) ** 2) / 2) * weights
    kernel /= kernel.sum(axis=1, keepdims=True)
    means = kernel @ atoms
    variances = (kernel @ atoms**2 - means**2).reshape(len(atoms), -1) @ (_WEIGHTS / _WEIGHTS.sum())
    return alone + float(weights @ np.maximum(variances, 0))


def _coarse(atoms: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most 80 atoms; intermediate ones are merged."""
    if len(atoms) <= _MOST_ATOMS:
        return atoms, weights
    logs = np.log(np.maximum(atoms, 1e-300))
    edges = np.linspace(max(logs.min(), logs.max() - 20), logs.max(), _MOST_ATOMS)
    member = np.clip(np.searchsorted(edges, logs), 0, _MOST_ATOMS - 1)
    total = np.bincount(member, weights, _MOST_ATOMS)
    mean = np.bincount(member, weights * atoms, _MOST_ATOMS)
    kept = total > 0
    return mean[kept] / total[kept], total[kept]
