"""Draws the shares of each group towards those of all reports, as far as Stein's unbiased estimate of the risk says.

The shown shares of group g are z = (1 - w) a + w t: a is the group's own estimate, t that of all reports together, both
by the same decoder. With u the unbiased estimate of the group, V its covariance, and p the true shares,

    E |z - p|^2 = E[ |z - u|^2 + 2 tr(V dz/du) ] - tr V                                             (Stein 1981)

is a parabola in w. Half its slope at the group's own estimate is what borrowing saves at first, estimated by

    gain = (a - u) . (a - t) + tr(V da/du) - tr(V dt/du),

whose standard error follows from its derivative by u (delta method, with J = da/du taken as diagonal). The product
(u - t) . (a - t) exceeds what it is expected to be in a group that is like all reports by what borrowing costs. That
expectation, and its variance, come from J; and from the group's estimate if its unbiased shares were those of all
reports, moved by a standard error: where the group's own estimate is at a limit, J is 0, as if nothing were noise.

Group by group, both are noisy: ``weights`` learns from all groups together how much groups differ.
``python -m labs.experiments.borrow_flights`` measures the result on real flights.

The traces are means over a few vectors of signs: tr(V J) = E[cov(b / s, J (s b))], where b has independent signs and s
is any scale. The signs are rows of a Hadamard matrix, so that equal counts always give equal shares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.borrowing.weights import Evidence, weights_of
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import Estimator
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.linear import LinearEstimate, estimate_linear
from uldp_transforms.ldp.solvers.question import Question, ask
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize

_PROBES = 4  # vectors of signs; the diagonal of a derivative needs one, the rest averages out
_EXACT = 8  # largest number of symbols for which as many vectors are used as there are symbols
_STEP = 0.1  # standard errors, of numerical derivatives
_TINY = 1e-18


@dataclasses.dataclass(frozen=True, eq=False)
class BorrowedShares:
    """The shares of one group.

    Attributes:
        frequencies: (S,) of the values of the alphabet, summing to 1.
        weight: w in [0, 1], that of the shares of all reports.
    """

    frequencies: np.ndarray
    weight: float


def need_of_borrowing(model: Model, estimator: Estimator) -> str | None:
    """What ``borrow`` needs and this collection or estimator does not have; None if they have everything."""
    alphabet = model.alphabet
    if not estimator.is_continuous:
        return "an estimator whose shares are a continuous function of the unbiased ones, such as eb or projected"
    if alphabet.known_values is None or not alphabet.has_own_symbol(alphabet.known_values).all():
        return "a list of all values, each with a symbol of its own"
    if alphabet.bin_edges is not None:
        return "values that are not numbers"
    if alphabet.redistribution(np.ones(alphabet.num_symbols)) is not None:
        return "values that clients name, without tags"
    return None


def borrow(
    model: Model, total: CohortCounts, groups: Sequence[CohortCounts], estimator: Estimator
) -> list[BorrowedShares]:
    """The shares of each group, drawn towards those of all reports; the estimates of groups are independent.

    Costs 18 estimates for each group, and up to 33 where an estimate of 5 to 8 values is cheap.

    Args:
        model: the collection, with ``need_of_borrowing`` None.
        total: counts of all reports, which contain those of the groups.
        groups: counts of G groups of different people, each with reports.
        estimator: of the shares.

    Raises:
        SpecError: if the collection or the estimator is not supported.
        EstimationError: as ``Estimator.estimate``.
    """
    if need := need_of_borrowing(model, estimator):
        raise SpecError(f"borrow needs {need}, got collection {model.id!r} and estimator {estimator.id!r}")
    everybody = _Side(model, total, estimator)
    sides = [_Side(model, counts, estimator) for counts in groups]
    weights = _weights(everybody, sides)
    mixed = [side.shares + weight * (everybody.shares - side.shares) for side, weight in zip(sides, weights)]
    return [BorrowedShares(shares[everybody.picked], float(weight)) for shares, weight in zip(mixed, weights)]


class _Side:
    """The estimate from some counts, and its derivative along vectors of signs.

    Attributes:
        number: n, of reports.
        raw: u (K,), unbiased, of symbols.
        shares: (K,) by the estimator.
        responses: (P, K), derivatives of the shares along ``scale`` times each vector of signs.
        picked: positions of the values among the symbols.
    """

    def __init__(self, model: Model, counts: CohortCounts, estimator: Estimator):
        self._question = question = ask(model, counts, None)
        self._linear = linear = estimate_linear(question)
        self._mechanism, self._estimator = model.mechanism, estimator
        self.number, self.picked = counts.total, question.picked
        self.raw = linear.joint
        self._plausible = clip_and_normalize(self.raw)
        self.shares = estimator.shares(question, linear)[0]
        self.scale = self.errors(self._plausible)
        steps = _STEP * self.scale * _signs(len(self.raw))
        self.responses = np.array([_change(question, linear, estimator, step) for step in steps])

    def errors(self, shares: np.ndarray) -> np.ndarray:
        """(K,) standard errors of ``raw`` if these are the shares."""
        found: np.ndarray = np.sqrt(np.maximum(self._mechanism.variances(shares) / self.number, _TINY))
        return found

    def variance(self, weights: np.ndarray) -> np.ndarray:
        """Variance (...) of sums of ``raw`` with these weights (..., K)."""
        of_report = self._mechanism.variance_of(weights, self._plausible)
        variance: np.ndarray = np.maximum(of_report, 0) / self.number
        return variance

    def variance_of_weight(self, apart: np.ndarray, weight: float) -> float:
        """Variance of the group's own weight times D, with ``apart`` = a - t (K,)."""
        diagonal = (_signs(len(self.raw)) * self.responses).mean(axis=0) / self.scale
        moves = apart + self.shares - self.raw - 2 * weight * apart
        return float(self.variance(diagonal * moves - apart))

    def if_like(self, shares: np.ndarray) -> tuple[float, float]:
        """Mean and variance of (raw - p) . (shares of the estimator - p), if p (K,) are the shares of the group.

        Noise of one standard error with each vector of signs, and with the opposite signs, stands for all noise, less
        the part that would change the sum of the frequencies.
        """
        likely, size = clip_and_normalize(shares), len(shares)
        steps = self.errors(likely) * _signs(size)
        steps = (steps - steps.mean(axis=1, keepdims=True)) * np.sqrt(size / max(size - 1, 1))
        ahead, behind = (
            np.array(
                [self._estimator.shares(self._question, _at(self._linear, shares + each))[0] for each in way * steps]
            )
            for way in (1, -1)
        )
        moves, bias = (ahead - behind) / 2, ((ahead + behind) / 2 - shares).mean(axis=0)
        of_moves, of_bias = (self._mechanism.variance_of(each, likely) / self.number for each in (moves, bias))
        variance = 2 * max(float(of_moves.mean()), 0) + 4 * max(float(of_bias), 0)
        return float((steps * moves).sum(axis=1).mean()), variance

    def trace(self, of: _Side) -> float:
        """tr(V J), with the covariance V of this side's ``raw``, and the derivative J of the shares ``of`` a side."""
        typical = float(np.sqrt((of.scale**2).mean()))
        left, right = typical * _signs(len(self.raw)) / of.scale, of.responses / typical
        return float((self.variance(left + right) - self.variance(left - right)).mean() / 4)


def _change(question: Question, linear: LinearEstimate, estimator: Estimator, step: np.ndarray) -> np.ndarray:
    """(K,) derivative of the shares along a step, in units of ``_STEP`` steps."""
    moved = [_at(linear, linear.raw + way * step, linear.joint + way * step) for way in (1, -1)]
    ahead, behind = (estimator.shares(question, each)[0] for each in moved)
    change: np.ndarray = (ahead - behind) / (2 * _STEP)
    return change


def _at(linear: LinearEstimate, raw: np.ndarray, joint: np.ndarray | None = None) -> LinearEstimate:
    """The estimate with other unbiased frequencies.

    All unbiased estimates move together: the covariance of ``joint``, which has minimum variance, with any other
    unbiased estimate is its variance.
    """
    joint = raw if joint is None else joint
    return dataclasses.replace(linear, raw=raw, joint=joint, frequencies=joint)


def _signs(size: int) -> np.ndarray:
    """(P, size) signs: all rows of a small Hadamard matrix, which makes traces exact, or a few of a large one."""
    order = 2 ** int(size - 1).bit_length()
    rows = np.arange(order) if order <= _EXACT else (np.arange(1, _PROBES + 1) * 2654435761) % (order - 1) + 1
    shared = rows[:, np.newaxis] & np.arange(size)
    signs = np.ones(shared.shape)
    while shared.any():
        signs = np.where(shared & 1, -signs, signs)
        shared >>= 1
    return signs


def _weights(everybody: _Side, sides: Sequence[_Side]) -> np.ndarray:
    """(G,) weights of the shares of all reports; 0 for groups whose shares are the same."""
    apart = np.array([side.shares - everybody.shares for side in sides])
    differs = (apart**2).sum(axis=1) > _TINY
    found = [_evidence(everybody, side, each) for side, each, known in zip(sides, apart, differs) if known]
    weights = np.zeros(len(sides))
    if found:
        weights[differs] = weights_of(Evidence(*np.array(found).T))
    return weights


def _evidence(everybody: _Side, side: _Side, apart: np.ndarray) -> tuple[float, ...]:
    """The fields of ``Evidence`` for a group, with ``apart`` = a - t (K,)."""
    distance, others = float(apart @ apart), 1 - side.number / everybody.number
    gain = float((side.shares - side.raw) @ apart) + side.trace(side)
    gain -= side.number / everybody.number * side.trace(everybody)
    product = float((side.raw - everybody.shares) @ apart)
    variance = side.variance_of_weight(apart, float(np.clip(gain / distance, 0, 1)))
    mean, spread = side.if_like(everybody.shares)
    expected = max(product - (distance - gain), others * mean)  # by the derivative, or where the group is like all
    return distance, gain, variance, product, expected, others**2 * spread
