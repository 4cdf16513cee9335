"""Values that may be missing: the LAST symbol, K - 1, stands for "no answer"; d = K - 1 symbols are answers.

UP treats "missing" as one more value. TSP needs less noise if the rate of missing answers is public.

Source: Tang, Shao, Chen, Wang and Guo, "Enhanced Accuracy in Local Differential Privacy via Leveraging Inherent
Uncertainty", section on missing data.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.checks import describe, is_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.channels.matrix_channel import MatrixChannel, Weights
from uldp_transforms.ldp.mechanisms.declared_priors import MAX_VALUES
from uldp_transforms.ldp.mechanisms.integer_reports import ONE_SYMBOL
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind
from uldp_transforms.ldp.mechanisms.randomized_response import KaryRR
from uldp_transforms.ldp.sampling import WORD, WordSource, below, exp_bounds


@dataclasses.dataclass(frozen=True, kw_only=True)
class UniformPerturbation(KaryRR):
    """UP: k-RR over the answers and "missing" alike; epsilon-LDP without any assumption.

    Source: see the module.
    """

    id: ClassVar[str] = "up"
    about: ClassVar[About] = About(
        sends='one symbol by k-RR, the last of which means "no answer"',
        protects="every value, and whether it is missing",
        source="Tang et al.",
        payload=ONE_SYMBOL,
    )
    last_is_missing: ClassVar[bool] = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoStage(MatrixChannel):
    """TSP: an answer is perturbed among the answers, then answers and "missing" among all K symbols.

    With probabilities p1, q1 of the first and p2, q2 of the second stage (the mechanism draws both at once):

        missing -> missing p2, each answer q2;    answer -> missing q2, itself p*, each other answer q*.

    p*/q* = E = e**epsilon, so answers are epsilon-LDP among themselves. Whether a person's answer is missing is
    protected under the declared rates: for states s, s' with Pr(missing | s) among them, Pr(report | s) <= E
    Pr(report | s') if the answer, when present, does not depend on the state. Otherwise the bound can be exceeded;
    ``epsilon_if_state_is_value`` gives the worst case.

    Attributes:
        missing_rates: Pr(missing | state), one per state, at least two, each in (0, 1).

    Source: see the module.
    """

    id: ClassVar[str] = "tsp"
    about: ClassVar[About] = About(
        sends='one symbol, the last of which means "no answer"; `missing_rates`',
        protects="answers; whether one is missing: under these rates only, and if answers do not depend on the state",
        source="TSP: Tang et al.",
        payload=ONE_SYMBOL,
    )
    protects_all: ClassVar[bool] = True
    names_values: ClassVar[bool] = True
    last_is_missing: ClassVar[bool] = True

    missing_rates: tuple[float, ...] = dataclasses.field(
        metadata={
            "schema": {
                "description": "Pr(missing | state), one a state.",
                "type": "array",
                "minItems": 2,
                "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            }
        }
    )

    def check_own_fields(self) -> None:
        name, rates = type(self).__name__, self.missing_rates
        if not 3 <= self.num_symbols <= MAX_VALUES:
            raise SpecError(
                f"{name}.num_symbols must be 3 to {MAX_VALUES} (at least two answers and the missing one), "
                f"got {self.num_symbols}"
            )
        listed = isinstance(rates, (list, tuple)) and len(rates) >= 2
        if not listed or not all(is_number(rate) and 0 < rate < 1 for rate in rates):
            raise SpecError(
                f"{name}.missing_rates must be a list of at least 2 numbers in (0, 1), got {describe(rates)}"
            )
        object.__setattr__(self, "missing_rates", tuple(map(float, rates)))

    # ------------------------------------------------------------------ the definition

    @functools.cached_property
    def _weights(self) -> tuple[int, int]:
        """Number of the 2**64 words that send another stage-2 symbol (q2) and another answer (q*); both rounded up."""
        d, e = self.num_symbols - 1, exp_bounds(self.epsilon)[0]
        high, low = Fraction(max(self.missing_rates)), Fraction(min(self.missing_rates))
        if high * (1 - high) < low * (1 - low):
            high, low = 1 - low, 1 - high
        excess = max(high - low * e, Fraction(0))
        p2 = (e - 1 + excess) / (e - 1 + (d + 1) * excess)
        q2 = (1 - p2) / d
        p1 = (e * (p2 + d * q2 - 2 * q2) - q2 * (d - 1)) / ((d - 1 + e) * (p2 - q2))
        q1 = (1 - p1) / (d - 1)
        q_star = q1 * p2 + (1 - q1) * q2
        return tuple(-(-(WORD * q).numerator // (WORD * q).denominator) for q in (q2, q_star))  # type: ignore[return-value]

    @functools.cached_property
    def weights(self) -> Weights:
        d, (q2, q_star) = self.num_symbols - 1, self._weights
        matrix = np.full((d + 1, d + 1), q_star, dtype=object)
        matrix[d, :], matrix[:, d] = q2, q2
        np.fill_diagonal(matrix, WORD - q2 - (d - 1) * q_star)
        matrix[d, d] = WORD - d * q2
        return tuple(tuple(map(int, row)) for row in matrix)

    @property
    def has_signal(self) -> bool:
        rows = self.weights
        return rows[-1][-1] > rows[-1][0] and rows[0][0] > rows[0][1]

    @property
    def exact_ratio(self) -> Fraction:
        """The larger of the ratio between two answers and that between two states."""
        d, rows = self.num_symbols - 1, self.channel()[1]
        missing = [rows[d][d] * rate + rows[d][0] * (1 - rate) for rate in map(Fraction, self.missing_rates)]
        present = [1 - share for share in missing]
        answers = (rows[0][0], rows[0][1])
        return max(max(shares) / min(shares) for shares in (answers, missing, present))

    @property
    def caveats(self) -> list[str]:
        clear = "Whether an answer is missing is reported in clear, because the declared rates alone satisfy epsilon."
        return [clear] * self.sends_clear + [
            "That an answer is missing is protected under the declared rates only, and if answers do not depend on the "
            "state; if every answer is a state of its own, the largest log ratio is "
            f"{self.epsilon_if_state_is_value:.6g}."
        ]

    def kinds(self) -> Iterator[Kind]:
        """An answer under itself and under another answer; and, under two rates, "missing" and any answer."""
        d, (q2, q_star) = self.num_symbols - 1, self._weights
        own = WORD - q2 - (d - 1) * q_star
        yield Kind("an answer", ("that answer", "another answer"), (Fraction(own), Fraction(q_star)))
        rates = list(map(Fraction, self.missing_rates))
        missing = [rate * (WORD - d * q2) + (1 - rate) * q2 for rate in rates]
        present = [WORD - weight for weight in missing]
        for what, weights in (('"missing"', missing), ("an answer", present)):
            high, low = (weights.index(extreme(weights)) for extreme in (max, min))
            yield Kind(what, (f"state {high}", f"state {low}"), (weights[high], weights[low]))

    @property
    def num_outputs(self) -> int:
        return self.num_symbols

    @property
    def protected_inputs(self) -> list[list[list[Fraction]]]:
        """Two answers; and two states, with different rates of missing answers but the same distribution of answers."""
        d = self.num_symbols - 1
        answers = [[Fraction(int(x == answer)) for x in range(d + 1)] for answer in range(d)]
        states = [[(1 - rate) / d] * d + [rate] for rate in map(Fraction, self.missing_rates)]
        return [answers, states]

    @property
    def exact_weights(self) -> dict[str, int | str]:
        return dict(zip(("noise_weight", "answer_noise_weight"), self._weights))

    @property
    def client_sampler(self) -> dict[str, Any]:
        return {"sampler": "two_stages"} | {name: str(weight) for name, weight in self.exact_weights.items()}

    @property
    def effective_epsilon(self) -> float:
        return math.log(self.exact_ratio)

    @property
    def epsilon_if_state_is_value(self) -> float:
        """ln of the largest ratio between states if every answer is a separate state with any of the declared rates."""
        d, rows = self.num_symbols - 1, self.channel()[1]
        rates = list(map(Fraction, self.missing_rates))
        own = [rate * rows[0][d] + (1 - rate) * rows[0][0] for rate in rates]
        other = [rate * rows[0][d] + (1 - rate) * rows[0][1] for rate in rates]
        shares = (*own, *other)
        return max(self.effective_epsilon, math.log(max(shares) / min(shares)))

    # ------------------------------------------------------------------ reports

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """One word per report: equal slices for the other answers, one for "missing", the rest for the own symbol.

        The slices are assigned to the other answers by their cyclic distance from the own symbol.
        """
        d, (q2, q_star) = self.num_symbols - 1, self._weights
        words = source.words(len(symbols))
        missing = symbols == d
        slices = np.where(missing, np.uint64(q2), np.uint64(q_star))
        others = np.where(missing, d, d - 1)
        step = (words // np.maximum(slices, np.uint64(1))).astype(np.int64)  # number of the slice; below 2**63 if used
        noise = np.where(missing, step, (symbols + 1 + step) % d)
        to_other = words < slices * others.astype(np.uint64)
        to_missing = ~missing & ~to_other & below(words, (d - 1) * q_star + q2)
        return self.as_payloads(np.where(to_other, noise, np.where(to_missing, d, symbols)))
