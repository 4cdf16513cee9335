"""Draws the shares of each group towards those of all reports, as far as Stein's unbiased estimate of the risk says.

The shown shares of group g are z = (1 - w) a + w t: a is the group's own estimate, t that of all reports together, both
by the same decoder. With u the unbiased estimate of the group, V its covariance, and p the true shares,

    E |z - p|^2 = E[ |z - u|^2 + 2 tr(V dz/du) ] - tr V                                             (Stein 1981)

is a parabola in w whose lowest point, estimated from the group's own counts, is

    w_g = ((a - u) . (a - t) + tr(V da/du) - tr(V dt/du)) / D_g,     D_g = |a - t|^2,

whose standard error s_g follows from its derivative by u (delta method, with J = da/du taken as diagonal):

    s_g^2 = r^T V r / D_g^2,     r = J (2 a - t - u - 2 w_g (a - t)) - (a - t).

One by one, these weights are noisy. So they are drawn towards a common weight m, w = m + A / (A + s_g^2) (w_g - m),
where m and A minimise the unbiased estimate of sum_g D_g (w - true w)^2 (Xie, Kou and Brown 2012): A = 0 is one weight
for all groups, A = infinity one for each. A is 0 unless another one is better by a standard error of this sum, and one
weight for all is 0 or 1 if that is within its standard error. In the end weights are clipped to [0, 1].
``python -m labs.experiments.borrow_flights`` measures the result on real flights.

The traces are means over a few vectors of signs: tr(V J) = E[cov(b / s, J (s b))], where b has independent signs and s
is any scale. The signs are rows of a Hadamard matrix, so that equal counts always give equal shares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

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
_SPREADS = (*np.logspace(-6, 1.5, 31).tolist(), np.inf)  # values of A that are tried beside 0
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

    Costs ten estimates for each group, and up to 17 where an estimate of 5 to 8 values is cheap.

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
        question = ask(model, counts, None)
        linear = estimate_linear(question)
        self._mechanism, self.number, self.picked = model.mechanism, counts.total, question.picked
        self.raw = linear.joint
        self._plausible = clip_and_normalize(self.raw)
        self.shares = estimator.shares(question, linear)[0]
        self.scale = np.sqrt(np.maximum(self._mechanism.variances(self._plausible) / self.number, _TINY))
        steps = _STEP * self.scale * _signs(len(self.raw))
        self.responses = np.array([_change(question, linear, estimator, step) for step in steps])

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

    def trace(self, of: _Side) -> float:
        """tr(V J), with the covariance V of this side's ``raw``, and the derivative J of the shares ``of`` a side."""
        typical = float(np.sqrt((of.scale**2).mean()))
        left, right = typical * _signs(len(self.raw)) / of.scale, of.responses / typical
        return float((self.variance(left + right) - self.variance(left - right)).mean() / 4)


def _change(question: Question, linear: LinearEstimate, estimator: Estimator, step: np.ndarray) -> np.ndarray:
    """(K,) derivative of the shares along a step, in units of ``_STEP`` steps.

    All unbiased estimates move together: the covariance of ``joint``, which has minimum variance, with any other
    unbiased estimate is its variance.
    """
    moved = [
        dataclasses.replace(linear, **{name: getattr(linear, name) + way for name in ("raw", "joint", "frequencies")})
        for way in (step, -step)
    ]
    ahead, behind = (estimator.shares(question, each)[0] for each in moved)
    change: np.ndarray = (ahead - behind) / (2 * _STEP)
    return change


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
    """(G,) weights of the shares of all reports."""
    own, spreads, distances = np.zeros((3, len(sides)))
    for place, side in enumerate(sides):
        apart = side.shares - everybody.shares
        distances[place] = apart @ apart
        if distances[place] > _TINY:
            gain = (side.shares - side.raw) @ apart + side.trace(side)
            gain -= side.number / everybody.number * side.trace(everybody)
            own[place] = gain / distances[place]
            spreads[place] = side.variance_of_weight(apart, float(np.clip(own[place], 0, 1))) / distances[place] ** 2
    risk_of_one, one = _common(own, spreads, distances, 0.0)
    risk, several = min((_common(own, spreads, distances, each) for each in _SPREADS), key=lambda found: found[0])
    error = np.sqrt(2 * (distances * spreads) @ (distances * spreads))
    weights = several if risk < risk_of_one - error else one
    clipped: np.ndarray = np.clip(weights, 0, 1)
    return clipped


def _common(own: np.ndarray, spreads: np.ndarray, distances: np.ndarray, spread: float) -> tuple[float, np.ndarray]:
    """Unbiased estimate of the excess risk, and the weights, if weights are drawn together by this spread A."""
    kept = np.ones(len(own)) if np.isinf(spread) else spread / np.maximum(spread + spreads, _TINY)
    pull = distances * (1 - kept) ** 2
    middle = float(np.clip(pull @ own / max(pull.sum(), _TINY), 0, 1))
    if spread == 0 and abs(round(middle) - middle) * distances.sum() <= np.sqrt(distances**2 @ spreads):
        middle = round(middle)
    risk = distances @ ((1 - kept) ** 2 * (own - middle) ** 2 + (2 * kept - 1) * spreads)
    return float(risk), middle + kept * (own - middle)
