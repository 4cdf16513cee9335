"""The distributions with the largest errors of a mechanism, and these errors.

A mechanism treats all symbols of a block alike: the sensitive ones and the others (tsp: the answers and "missing"). The
expected squared loss is linear in p minus sum(p**2), and the square root of each variance is a concave function of p.
So both losses are concave in p and invariant under exchanges inside a block: their maximum has equal frequencies inside
each block. The only free parameter is the share of the first block. The squared loss is a parabola in it; the absolute
loss is concave, and its maximum is found numerically (to twelve digits of the loss). This holds for every mechanism of
the library except declared channels, whose columns may all differ.

Source: the closed forms of Murakami and Kawamoto 2019, Propositions 7, 8, 10, 15, 16 and 18 and of Kairouz, Bonawitz
and Ramage 2016 are the special cases that the tests compare with; docs/decisions/0063-planning.md has the derivation.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import scipy

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms_planner.utility.arguments import require_one_symbol, require_reports

L1, L2 = "l1", "l2"
_FINE = {"xatol": 1e-13}


@dataclasses.dataclass(frozen=True)
class TwoBlocks:
    """Errors as functions of one number: the share of people whose symbol is in the first of two blocks.

    Inside a block all symbols are equally frequent.

    Attributes:
        sizes: numbers of symbols of the two blocks, each at least 1.
        squares: squares[i][j] = E[(contribution of one report to the estimate of a symbol of block j)**2] if everybody
            is in block i.
    """

    sizes: tuple[int, int]
    squares: tuple[tuple[float, float], tuple[float, float]]

    @classmethod
    def of(cls, mechanism: Mechanism, first: int | None = None) -> TwoBlocks:
        """The blocks of a mechanism.

        Args:
            mechanism: mechanism with one symbol per value.
            first: size of the first block, for a mechanism that treats all symbols alike. None: the sensitive
                symbols; all but the last if all are sensitive.

        Raises:
            SpecError: if values have more than one symbol, or the mechanism does not treat them alike.
        """
        require_one_symbol("TwoBlocks.of: mechanism", mechanism)
        if not mechanism.alike_in_blocks:
            raise SpecError(
                f"TwoBlocks.of: mechanism must treat all symbols of a block alike, got {mechanism.id}, which need not"
            )
        k, v = mechanism.num_symbols, mechanism.num_sensitive
        first = first if first is not None else v if v < k else k - 1
        ends = np.zeros((2, k))
        ends[0, :first], ends[1, first:] = 1 / first, 1 / (k - first)
        squares = (mechanism.variances(ends) + ends**2)[:, [0, -1]]
        (a, b), (c, d) = squares.tolist()
        return cls((first, k - first), ((a, b), (c, d)))

    def variances(self, share: float) -> tuple[float, float]:
        """n times the variance of the estimate of a symbol of each block."""
        p = (share / self.sizes[0], (1 - share) / self.sizes[1])
        mean_squares = (share * one + (1 - share) * other for one, other in zip(*self.squares))
        first, second = (max(square - q**2, 0.0) for square, q in zip(mean_squares, p))
        return first, second

    def l1(self, share: float) -> float:
        """sqrt(n) times the expected sum of absolute errors, by the normal approximation."""
        return math.sqrt(2 / math.pi) * sum(s * math.sqrt(v) for s, v in zip(self.sizes, self.variances(share)))

    def l2(self, share: float) -> float:
        """n times the expected sum of squared errors."""
        return sum(s * v for s, v in zip(self.sizes, self.variances(share)))

    @property
    def worst_share_of_l2(self) -> float:
        """Share of the first block with the largest l2: the vertex of the parabola, or the nearest end."""
        s, r = self.sizes
        slope = s * (self.squares[0][0] - self.squares[1][0]) + r * (self.squares[0][1] - self.squares[1][1])
        return min(max((slope / 2 + 1 / r) / (1 / s + 1 / r), 0.0), 1.0)

    @property
    def worst_share_of_l1(self) -> float:
        """Share of the first block with the largest l1, found numerically."""
        return concave_maximum(self.l1)


def concave_maximum(function: Callable[[float], float]) -> float:
    """The point of [0, 1], ends included, at which a concave function is largest."""
    found = scipy.optimize.minimize_scalar(
        lambda share: -function(share), bounds=(0, 1), method="bounded", options=_FINE
    )
    return max((0.0, 1.0, float(found.x)), key=function)


def worst_case_distribution(mechanism: Mechanism, loss: str) -> np.ndarray:
    """The distribution of symbols with the largest loss (population model; "l1" by the normal approximation).

    Args:
        mechanism: mechanism with one symbol per value.
        loss: "l1" or "l2".

    Returns:
        (K,) float64.

    Raises:
        SpecError: if ``loss`` is not one of these.
    """
    if loss not in (L1, L2):
        raise SpecError(f'worst_case_distribution.loss must be "{L1}" or "{L2}", got {describe(loss)}')
    blocks = TwoBlocks.of(mechanism)
    share = blocks.worst_share_of_l1 if loss == L1 else blocks.worst_share_of_l2
    return np.repeat([share / blocks.sizes[0], (1 - share) / blocks.sizes[1]], blocks.sizes)


def worst_case_l1(mechanism: Mechanism, num_reports: int) -> float:
    """The largest expected sum of absolute errors, by the normal approximation."""
    require_reports("worst_case_l1.num_reports", num_reports)
    blocks = TwoBlocks.of(mechanism)
    return blocks.l1(blocks.worst_share_of_l1) / math.sqrt(num_reports)


def worst_case_l2(mechanism: Mechanism, num_reports: int) -> float:
    """The largest expected sum of squared errors; exact."""
    require_reports("worst_case_l2.num_reports", num_reports)
    blocks = TwoBlocks.of(mechanism)
    return blocks.l2(blocks.worst_share_of_l2) / num_reports
