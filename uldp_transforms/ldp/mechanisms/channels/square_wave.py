"""The square wave: reports a number near the true one, so that means and distribution functions have little noise.

Source: Li, Wang, Li, Lopuhaä-Zwakenberg and Škorić, "Estimating Numerical Distributions under Local Differential
Privacy", 2020, section 5, in its discrete form; symbols without a place in the order are an addition, and so are clear
reports of symbols that are not sensitive, in the sense of Murakami and Kawamoto 2019, Definition 2.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.channels.matrix_channel import MatrixChannel, Weights, inverse_of
from uldp_transforms.ldp.mechanisms.declared_priors import MAX_VALUES
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind
from uldp_transforms.ldp.sampling import WORD, WordSource, exp_bounds


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedSquareWave(MatrixChannel):
    """A sensitive symbol x with a place in the order is reported as each of the w = 2 b + 1 outputs x..x + 2 b with E
    times the odds of any other protected output; a symbol that is not sensitive is often reported in clear.

    Of v sensitive symbols B = v - A have a place in the order; the A behind them have none. There are B + 2 b ordered
    outputs, A more, each of which has w shares of probability, and a clear output for each of the K - v symbols that
    are not sensitive. E = e**epsilon, and one share is

        q = 1 / (w E + B + 2 b - w + w A);    Pr(y | x) = E q near x, else q;    Pr(y_a | x) = w q;
        Pr(y_a | a) = w E q;    Pr(y | a) = q for ordered outputs;    Pr(y_c | a) = w q for other a, c;
        Pr(y | z) = q, Pr(y_a | z) = w q, and Pr(y_z | z) = w (E - 1) q for z that is not sensitive.

    In other words, a coin of probability w (E - 1) q decides whether a report is uniform near the symbol (its clear
    output for z), or noise: uniform over shares. Every ratio of a protected output is 1 or E, and a clear output comes
    from one symbol alone, so that reports are (X_S, Y_P, epsilon)-ULDP. With v = K it is the square wave.

    The sensitive symbols must be in their order, as those of the alphabets ``ordered`` and ``closed`` are.

    Attributes:
        half_width: b, in [1, B]; None: the b that carries most information about a number,
            max(1, round(B (epsilon E - E + 1) / (2 E (E - 1 - epsilon)))).

    Source: see the module; the inverse and its covariance: ``matrix_channel``.
    """

    id: ClassVar[str] = "usw"
    about: ClassVar[About] = About(
        sends="a sensitive bin near the number, or any other with lower probability; non-sensitive ones often in "
        "clear; optional `half_width`",
        protects="sensitive values",
        source="the ULDP form of Li et al. 2020, section 5; derived here",
        payload="the output, little-endian, in 1 byte (up to 256 outputs), 2 (up to 65,536) or 4",
    )
    names_values: ClassVar[bool] = True
    alike_in_blocks: ClassVar[bool] = False
    least_bins: ClassVar[int] = 1
    """Minimum number of sensitive symbols with a place in the order."""

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
        name, bins = type(self).__name__, self._bins
        if bins < self.least_bins or self.num_symbols > MAX_VALUES:
            least = "two or more" if self.least_bins > 1 else "one or more"
            noun = "them" if self.protects_all else "the sensitive ones"
            raise SpecError(
                f"{name}.num_symbols must be at most {MAX_VALUES}, {least} of {noun} with a place in the order, got "
                f"{self.num_symbols}, {bins} of {noun} with a place in the order"
            )
        if self.half_width is not None:
            require_int(f"{name}.half_width", self.half_width, 1, bins)

    # ------------------------------------------------------------------ the definition

    @functools.cached_property
    def reach(self) -> int:
        """b."""
        if self.half_width is not None:
            return self.half_width
        e, bins, more = math.exp(self.epsilon), self._bins, math.expm1(self.epsilon) - self.epsilon
        best = (self.epsilon * e - math.expm1(self.epsilon)) / (2 * e * more) if more else 1 / 2
        return max(1, round(bins * best))

    @property
    def _bins(self) -> int:
        """B, number of sensitive symbols with a place in the order."""
        return self.num_sensitive - self.num_others

    @property
    def _near(self) -> int:
        """w, number of shares of the own symbol."""
        return 2 * self.reach + 1

    @property
    def _line(self) -> int:
        """B + 2 b, number of ordered outputs."""
        return self._bins + 2 * self.reach

    @property
    def _protected(self) -> int:
        """Number of protected outputs, which are the first ones."""
        return self._line + self.num_others

    @property
    def _far(self) -> int:
        """Number of shares of all protected outputs except those near the own symbol."""
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

    @property
    def clear_weight(self) -> int:
        """Number of words that send a symbol that is not sensitive in clear: all except its noise words."""
        return WORD - (self._far + self._near) * self.noise_weight

    @functools.cached_property
    def weights(self) -> Weights:
        near, rest = self._near, WORD - self._far * self.noise_weight
        matrix = np.full((self.num_outputs, self.num_symbols), self.noise_weight, dtype=object)
        matrix[self._line :] *= near
        matrix[self._protected :] = 0
        for symbol in range(self._bins):
            matrix[symbol : symbol + near, symbol] = self.near_weight
            matrix[symbol + self.reach, symbol] += rest - near * self.near_weight
        for symbol in range(self._bins, self.num_symbols):
            matrix[symbol + 2 * self.reach, symbol] = rest if symbol < self.num_sensitive else self.clear_weight
        return tuple(map(tuple, matrix.tolist()))

    @functools.cached_property
    def inverse(self) -> np.ndarray:
        """B, (K, M) float64; a symbol that is not sensitive is estimated from its clear output alone."""
        inverse = inverse_of(self.probabilities)
        inverse[self.num_sensitive :] = 0
        symbols, outputs, _, slopes = self._outputs_that_tell
        inverse[symbols, outputs] = 1 / slopes
        return inverse

    @functools.cached_property
    def _outputs_that_tell(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        symbols = np.arange(self.num_sensitive, self.num_symbols)
        slopes = np.full(len(symbols), self.clear_weight / WORD)
        return symbols, symbols + 2 * self.reach, np.zeros(len(symbols)), slopes

    @property
    def num_outputs(self) -> int:
        return self.num_symbols + 2 * self.reach

    @functools.cached_property
    def exact_ratio(self) -> Fraction:
        """The largest ratio of two probabilities of a protected output."""
        return max(Fraction(max(row), min(row)) for row in self.weights[: self._protected])

    def kinds(self) -> Iterator[Kind]:
        """Each protected output, under the symbols that send it most and least often."""
        return itertools.islice(super().kinds(), self._protected)

    @property
    def reveal_rate(self) -> float:
        return self.clear_weight / WORD if self.num_sensitive < self.num_symbols else 0.0

    def clear_reports(self, counts: CohortCounts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Those of the last outputs. See ``Mechanism.clear_reports``."""
        clear = counts.cells[:, self.num_sensitive + 2 * self.reach :].sum()
        return np.array([clear]), np.array([counts.total]), np.array([self.reveal_rate])

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
        """One word per report: equal slices for the noise shares in their order, then the own output.

        Noise of a sensitive symbol is all protected shares but the near ones, which then have equal slices too; the
        words after the last one send the own output. Noise of another symbol is all protected shares. An ordered
        output has one share; an output of sensitive symbols that has no place in the order has w.
        """
        near, line, far = self._near, self._line, self._far
        words = source.words(len(symbols))
        outputs, in_clear = symbols + 2 * self.reach, symbols >= self.num_sensitive
        own = np.where(outputs < line, symbols, line + near * (outputs - line))  # the first near share
        slices = (words // np.uint64(self.noise_weight)).astype(np.int64)
        beyond = words - np.uint64(far * self.noise_weight)  # wraps around where it is not used
        step = (beyond // np.uint64(self.near_weight)).astype(np.int64)
        noise = slices + near * ((slices >= own) & ~in_clear)
        shares = np.where(slices < far + near * in_clear, noise, own + np.where(step < near, step, self.reach))
        drawn = np.where(shares < line, shares, line + (shares - line) // near)
        return self.as_payloads(np.where(in_clear & (slices >= far + near), outputs, drawn))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquareWave(UtilityOptimizedSquareWave):
    """The square wave, which protects all symbols: v = K.

    Source: Li et al. 2020, section 5.
    """

    id: ClassVar[str] = "sw"
    about: ClassVar[About] = About(
        sends="a bin near the number, or any other with lower probability; optional `half_width`",
        protects="every value: epsilon-LDP",
        source="Li et al. 2020, section 5",
        payload="the output, little-endian, in 1 byte (up to 256 outputs), 2 (up to 65,536) or 4",
    )
    protects_all: ClassVar[bool] = True
    least_bins: ClassVar[int] = 2
