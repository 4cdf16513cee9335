"""The channel of a block without sensitive values: every value is sent as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.mechanisms.channels.matrix_channel import MatrixChannel, Weights
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals
from uldp_transforms.ldp.mechanisms.integer_reports import ONE_SYMBOL
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind
from uldp_transforms.ldp.sampling import WORD, WordSource


@dataclasses.dataclass(frozen=True, kw_only=True)
class InClear(MatrixChannel):
    """The identity on K symbols, none of which is sensitive; a part of ``WithinBlocks``, not a mechanism of its own."""

    id: ClassVar[str] = "in_clear"
    about: ClassVar[About] = About(sends="the value", protects="nothing", source="", payload=ONE_SYMBOL)

    epsilon: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self) -> None:
        """Check nothing: the alphabet determines the symbols."""

    @property
    def weights(self) -> Weights:
        return tuple(tuple(WORD * (x == y) for x in range(self.num_symbols)) for y in range(self.num_symbols))

    @property
    def num_outputs(self) -> int:
        return self.num_symbols

    @property
    def exact_ratio(self) -> Fraction:
        """1: no two inputs are protected from each other."""
        return Fraction(1)

    @property
    def effective_epsilon(self) -> float:
        return 0.0

    def kinds(self) -> Iterator[Kind]:
        """None: no report is protected."""
        return iter(())

    @property
    def exact_weights(self) -> dict[str, Any]:
        return {}

    @property
    def client_sampler(self) -> dict[str, Any]:
        return {"sampler": "in_clear"}

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """The symbols, without a random word."""
        return self.as_payloads(symbols)

    def null_variances(self, frequencies: np.ndarray) -> np.ndarray:
        return np.zeros_like(frequencies)

    def intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those of binomial probabilities; the share of a single value is 1."""
        if self.num_symbols == 1:
            return np.ones(1), np.ones(1)
        return binomial_intervals(counts.cells[0], counts.total, confidence, strict)

    @property
    def reveal_rate(self) -> float:
        return 1.0
