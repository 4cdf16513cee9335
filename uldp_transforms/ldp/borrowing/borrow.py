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

*Several versions of a question.* The unbiased estimates are u = sum_v w_v u_v, with weights (K,) that depend on the
numbers of reports alone: w of the group, W of all reports. Of N_v reports, n_v are the group's. So V is the sum of
diag(w_v) V_v diag(w_v) / n_v, with V_v the covariance of one report, and dt is taken along C instead of n / N times V,
where

    C = Cov(u, u of all reports) = sum_v diag(w_v) V_v diag(W_v) / N_v.

In the expectation for a group like all, 1 - tr C / tr V stands for the part 1 - n / N of all reports that is not the
group's. With one version, both are the same numbers as without.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from uldp_transforms.ldp.borrowing.weights import Evidence, weights_of
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms.ldp.estimators import Estimator
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.question import LinearEstimate, ask
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize

K = TypeVar("K")

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
    picked = ask(model, total, None).picked
    return borrow_between(
        side_of(model, total, estimator), [side_of(model, counts, estimator) for counts in groups], picked
    )


def borrow_between(everybody: Side, sides: Sequence[Side], picked: np.ndarray) -> list[BorrowedShares]:
    """The shares of each group, drawn towards those of all reports.

    Args:
        everybody: all reports.
        sides: groups of different people, whose reports are among them.
        picked: (S,), positions of the values among the unknowns of the sides.
    """
    weights = _weights(everybody, sides)
    mixed = [side.shares + weight * (everybody.shares - side.shares) for side, weight in zip(sides, weights)]
    return [BorrowedShares(shares[picked], float(weight)) for shares, weight in zip(mixed, weights)]


Change = Callable[[np.ndarray], np.ndarray]
"""What is done to all unbiased frequencies (K,)."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Source:
    """The reports of one version on a side.

    Attributes:
        mechanism: of the version.
        number: n_v, of reports.
        weights: w_v (K,), of the version's own unbiased frequencies in those of the side.
        symbols: (K,), the symbols of the mechanism that the frequencies are of; None: 0 to K - 1.
    """

    mechanism: Mechanism
    number: int
    weights: np.ndarray
    symbols: np.ndarray | None = None

    def variances(self, shares: np.ndarray) -> np.ndarray:
        """(K,): what this version adds to the variances of the side if these are the shares (K,)."""
        of_symbols = self.mechanism.variances(self._placed(shares))
        of_report = of_symbols if self.symbols is None else of_symbols[self.symbols]
        found: np.ndarray = self.weights**2 * of_report / self.number
        return found

    def variance_of(self, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """(...): what this version adds to the variance of sums with these weights (..., K) of the side's ``raw``."""
        return self.variance_of_own(weights * self.weights, shares)

    def variance_of_own(self, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """(...): variance of sums of the version's own unbiased frequencies."""
        found: np.ndarray = self.mechanism.variance_of(self._placed(weights), self._placed(shares)) / self.number
        return found

    def _placed(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers (..., K) at the places of their symbols."""
        if self.symbols is None:
            return numbers
        placed = np.empty_like(numbers)
        placed[..., self.symbols] = numbers
        return placed


def side_of(model: Model, counts: CohortCounts, estimator: Estimator) -> Side:
    """The estimate of a collection; its unknowns are the symbols."""
    question = ask(model, counts, None)
    linear = estimate_linear(question)
    source = Source(mechanism=model.mechanism, number=counts.total, weights=np.ones(len(linear.joint)))

    def decode(change: Change) -> np.ndarray:
        return estimator.shares(question, changed(linear, change))[0]

    return Side({0: source}, linear.joint, decode)


def changed(linear: LinearEstimate, change: Change) -> LinearEstimate:
    """The estimate with other unbiased frequencies.

    All unbiased estimates move together: the covariance of ``joint``, which has minimum variance, with any other
    unbiased estimate is its variance.
    """
    joint = change(linear.joint)
    return dataclasses.replace(linear, raw=change(linear.raw), joint=joint, frequencies=joint)


class Side:
    """The estimate from the reports of one or several versions, and its derivative along vectors of signs.

    Attributes:
        sources: the reports, by a key that a version has on all sides.
        raw: u (K,), unbiased.
        shares: (K,) by the estimator.
        scale: (K,), standard errors of ``raw``.
        responses: (P, K), derivatives of the shares along ``scale`` times each vector of signs.
    """

    def __init__(self, sources: Mapping[Any, Source], raw: np.ndarray, decode: Callable[[Change], np.ndarray]):
        """Build the side.

        Args:
            sources, raw: as above.
            decode: function that returns the shares after a change of the unbiased frequencies of every version.
        """
        self.sources, self.raw, self._decode = sources, raw, decode
        self._plausible = clip_and_normalize(self.raw)
        self.shares = decode(_same)
        self.scale = self.errors(self._plausible)
        steps = _STEP * self.scale * _signs(len(self.raw))
        self.responses = np.array([self._change(step) for step in steps])

    def _change(self, step: np.ndarray) -> np.ndarray:
        """(K,) derivative of the shares along a step, in units of ``_STEP`` steps."""
        ahead, behind = (self._decode(functools.partial(np.add, way * step)) for way in (1, -1))
        change: np.ndarray = (ahead - behind) / (2 * _STEP)
        return change

    def errors(self, shares: np.ndarray) -> np.ndarray:
        """(K,) standard errors of ``raw`` if these are the shares."""
        found: np.ndarray = np.sqrt(np.maximum(sum(each.variances(shares) for each in self.sources.values()), _TINY))
        return found

    def variance(self, weights: np.ndarray) -> np.ndarray:
        """Variance (...) of sums of ``raw`` with these weights (..., K)."""
        parts = [np.maximum(each.variance_of(weights, self._plausible), 0) for each in self.sources.values()]
        variance: np.ndarray = np.sum(parts, axis=0)
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
            np.array([self._decode(functools.partial(_instead, shares + each)) for each in way * steps])
            for way in (1, -1)
        )
        moves, bias = (ahead - behind) / 2, ((ahead + behind) / 2 - shares).mean(axis=0)
        of_moves, of_bias = (
            np.sum([each.variance_of(along, likely) for each in self.sources.values()], axis=0)
            for along in (moves, bias)
        )
        variance = 2 * max(float(of_moves.mean()), 0) + 4 * max(float(of_bias), 0)
        return float((steps * moves).sum(axis=1).mean()), variance

    @property
    def trace(self) -> float:
        """tr(V J), with the covariance V of ``raw``, and the derivative J of the shares by it."""
        left, right = self._probes(self)
        return float((self.variance(left + right) - self.variance(left - right)).mean() / 4)

    def trace_of_all(self, everybody: Side) -> float:
        """tr(C J), with the covariance C of ``raw`` and that of all reports, and the derivative J of their shares."""
        left, right = self._probes(everybody)
        found = 0.0
        for key, own in self.sources.items():
            other = everybody.sources[key]
            ahead, behind = (
                np.maximum(own.variance_of_own(own.weights * left + way * other.weights * right, self._plausible), 0)
                for way in (1, -1)
            )
            found += own.number / other.number * float((ahead - behind).mean() / 4)
        return found

    def part_of_all(self, everybody: Side) -> float:
        """tr C / tr V: the part of all reports that is this side's, as far as its noise is theirs; in [0, 1]."""
        own = {key: each.variances(self._plausible) for key, each in self.sources.items()}
        whole = float(sum(each.sum() for each in own.values()))
        found = 0.0
        for key, each in self.sources.items():
            other = everybody.sources[key]
            shared = float((own[key] * other.weights / each.weights).sum())
            found += each.number / other.number * (shared / whole if whole > 0 else 1 / len(own))
        return min(max(found, 0.0), 1.0)

    def _probes(self, of: Side) -> tuple[np.ndarray, np.ndarray]:
        """(P, K), (P, K): weights of sums of ``raw``, and of the unbiased frequencies of a side, whose covariance is a
        trace on average."""
        typical = float(np.sqrt((of.scale**2).mean()))
        return typical * _signs(len(self.raw)) / of.scale, of.responses / typical


def _same(frequencies: np.ndarray) -> np.ndarray:
    return frequencies


def _instead(others: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Others, whatever the frequencies are."""
    return others


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


def _weights(everybody: Side, sides: Sequence[Side]) -> np.ndarray:
    """(G,) weights of the shares of all reports; 0 for groups whose shares are the same."""
    apart = np.array([side.shares - everybody.shares for side in sides])
    differs = (apart**2).sum(axis=1) > _TINY
    found = [_evidence(everybody, side, each) for side, each, known in zip(sides, apart, differs) if known]
    weights = np.zeros(len(sides))
    if found:
        weights[differs] = weights_of(Evidence(*np.array(found).T))
    return weights


def _evidence(everybody: Side, side: Side, apart: np.ndarray) -> tuple[float, ...]:
    """The fields of ``Evidence`` for a group, with ``apart`` = a - t (K,)."""
    distance, others = float(apart @ apart), 1 - side.part_of_all(everybody)
    gain = float((side.shares - side.raw) @ apart) + side.trace
    gain -= side.trace_of_all(everybody)
    product = float((side.raw - everybody.shares) @ apart)
    variance = side.variance_of_weight(apart, float(np.clip(gain / distance, 0, 1)))
    mean, spread = side.if_like(everybody.shares)
    expected = max(product - (distance - gain), others * mean)  # by the derivative, or where the group is like all
    return distance, gain, variance, product, expected, others**2 * spread


def borrowed_shares(
    model: Model,
    total: CohortCounts | None,
    groups: Mapping[K, CohortCounts],
    estimator: Estimator,
    min_reports: int,
) -> dict[K, BorrowedShares]:
    """The shares of the groups of one window; none for groups with too few reports, whose rows have no numbers.

    Args:
        model: the collection of the reports.
        total: counts of all reports; None: unknown, and nothing is borrowed.
        groups: counts of the groups.
        estimator: of the shares.
        min_reports: of the job.
    """
    shown = {group: counts for group, counts in groups.items() if counts.total >= max(min_reports, 1)}
    if total is None or not shown:
        return {}
    try:
        return dict(zip(shown, borrow(model, total, list(shown.values()), estimator)))
    except EstimationError:
        return {}  # the rows say why there is no estimate
