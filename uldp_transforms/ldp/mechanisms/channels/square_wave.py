"""The square wave: reports a number near the true one, so that means and distribution functions have little noise.

Source: Li, Wang, Li, Lopuhaä-Zwakenberg and Škorić, "Estimating Numerical Distributions under Local Differential
Privacy", 2020, section 5, in its discrete form; symbols without a place in the order are an addition.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.channels.matrix_channel import MatrixChannel, Weights
from uldp_transforms.ldp.mechanisms.declared_priors import MAX_VALUES
from uldp_transforms.ldp.mechanisms.mechanism import About
from uldp_transforms.ldp.sampling import WORD, WordSource, exp_bounds


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquareWave(MatrixChannel):
    """An ordered symbol x is reported as each of the w = 2 b + 1 outputs x..x + 2 b with E times the odds of any other
    output.

    With K ordered symbols there are K + 2 b ordered outputs; with A symbols behind them that have no place in the
    order there are A more outputs, each of which has w shares of probability. E = e**epsilon, and one share is

        q = 1 / (w E + K + 2 b - w + w A);    Pr(y | x) = E q near x, else q;    Pr(y_a | x) = w q;
        Pr(y_a | a) = w E q;    Pr(y | a) = q for ordered outputs;    Pr(y_c | a) = w q for other a, c.

    Every ratio is 1 or E. The ordered symbols must be in their order, as bins of the alphabet ``ordered`` and values of
    ``closed`` are.

    Attributes:
        half_width: b, in [1, K]; None: the b that carries most information about a number,
            max(1, round(K (epsilon E - E + 1) / (2 E (E - 1 - epsilon)))).

    Source: see the module; the inverse and its covariance: ``matrix_channel``.
    """

    id: ClassVar[str] = "sw"
    about: ClassVar[About] = About(
        sends="a bin near the number, or any other with lower probability; optional `half_width`",
        protects="every value: epsilon-LDP",
        source="Li et al. 2020, section 5",
        payload="the output, little-endian, in 1 byte (up to 256 outputs), 2 (up to 65,536) or 4",
    )
    protects_all: ClassVar[bool] = True
    names_values: ClassVar[bool] = True
    alike_in_blocks: ClassVar[bool] = False

    half_width: int | None = dataclasses.field(
        default=None,
        metadata={
            "schema": {
                "description": "Bins on each side of a number that are reported with the higher probability; null or "
                "absent: the number with the most information.",
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": MAX_VALUES,
            }
        },
    )

    def check_own_fields(self) -> None:
        name, bins = type(self).__name__, self.num_symbols - self.num_others
        if bins < 2 or self.num_symbols > MAX_VALUES:
            raise SpecError(
                f"{name}.num_symbols must be at most {MAX_VALUES}, two or more of them with a place in the order, got "
                f"{self.num_symbols}, {bins} of them with a place in the order"
            )
        if self.half_width is not None:
            require_int(f"{name}.half_width", self.half_width, 1, bins)

    # ------------------------------------------------------------------ the definition

    @functools.cached_property
    def reach(self) -> int:
        """b."""
        if self.half_width is not None:
            return self.half_width
        e, bins = math.exp(self.epsilon), self.num_symbols - self.num_others
        best = (self.epsilon * e - math.expm1(self.epsilon)) / (2 * e * (math.expm1(self.epsilon) - self.epsilon))
        return max(1, round(bins * best))

    @property
    def _near(self) -> int:
        """w, number of shares of the own symbol."""
        return 2 * self.reach + 1

    @property
    def _line(self) -> int:
        """K + 2 b, number of ordered outputs."""
        return self.num_symbols - self.num_others + 2 * self.reach

    @property
    def _far(self) -> int:
        """Number of shares of all outputs except those near the own symbol."""
        return self._line + self._near * self.num_others - self._near

    @functools.cached_property
    def noise_weight(self) -> int:
        """Number of the 2**64 words that send one far share: q rounded up, plus w.

        The additional w compensate for the remainder of the division of near words, which goes to the own output.
        """
        share = WORD / (self._near * exp_bounds(self.epsilon)[0] + self._far)
        return -(-share.numerator // share.denominator) + self._near

    @functools.cached_property
    def near_weight(self) -> int:
        """An equal slice of the remaining words for each near share."""
        return (WORD - self._far * self.noise_weight) // self._near

    @functools.cached_property
    def weights(self) -> Weights:
        bins, near, line = self.num_symbols - self.num_others, self._near, self._line
        matrix = np.full((self.num_outputs, self.num_symbols), self.noise_weight, dtype=object)
        matrix[line:] *= near
        rest = WORD - self._far * self.noise_weight
        for symbol in range(bins):
            matrix[symbol : symbol + near, symbol] = self.near_weight
            matrix[symbol + self.reach, symbol] += rest - near * self.near_weight
        for symbol in range(bins, self.num_symbols):
            matrix[symbol + 2 * self.reach, symbol] = rest
        return tuple(map(tuple, matrix.tolist()))

    @property
    def num_outputs(self) -> int:
        return self.num_symbols + 2 * self.reach

    @functools.cached_property
    def exact_ratio(self) -> Fraction:
        """The largest ratio of two probabilities of an output."""
        return max(Fraction(max(row), min(row)) for row in self.weights)

    @property
    def effective_epsilon(self) -> float:
        return math.log(self.exact_ratio)

    @property
    def exact_weights(self) -> dict[str, Any]:
        return {"half_width": self.reach, "near_weight": self.near_weight, "noise_weight": self.noise_weight}

    @property
    def client_sampler(self) -> dict[str, Any]:
        weights = {"near_weight": str(self.near_weight), "noise_weight": str(self.noise_weight)}
        return {"sampler": "wave", "half_width": self.reach, "num_others": self.num_others} | weights

    # ------------------------------------------------------------------ reports

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """One word per report: equal slices for the far shares in their order, then equal slices for the near ones.

        Ordered outputs have one share each, others w. The words after the last slice send the own output.
        """
        near, line, far = self._near, self._line, self._far
        words = source.words(len(symbols))
        outputs = symbols + 2 * self.reach
        own = np.where(outputs < line, symbols, line + near * (outputs - line))  # the first near share
        slices = (words // np.uint64(self.noise_weight)).astype(np.int64)
        beyond = words - np.uint64(far * self.noise_weight)  # wraps around where it is not used
        step = (beyond // np.uint64(self.near_weight)).astype(np.int64)
        shares = np.where(slices < far, slices + near * (slices >= own), own + np.where(step < near, step, self.reach))
        return self.as_payloads(np.where(shares < line, shares, line + (shares - line) // near))
