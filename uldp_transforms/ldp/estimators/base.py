"""What an estimator is, and what it returns."""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.estimators.linear import LinearEstimate, estimate_linear

if TYPE_CHECKING:
    from uldp_transforms.ldp.collection import Collection

CONFIDENCE = 0.95
"""Confidence of all intervals."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A distribution with its uncertainty; all arrays have one entry per value, S of them.

    Attributes:
        values: the texts.
        frequencies: shares in [0, 1] scale as this estimator gives them.
        raw_frequencies: unbiased and unclipped.
        standard_errors: of ``raw_frequencies``, for independent people drawn from a population.
        ci_low, ci_high: 95 % confidence interval of each share, from ``raw_frequencies``, cut to [0, 1].
        num_reports: n.
        unexplained_mass: share of people whose value is none of ``values``; 0 if the list is complete.
        unexplained_standard_error: its standard error before post-processing.
        estimator: id of the estimator.
    """

    values: tuple[str, ...]
    frequencies: np.ndarray
    raw_frequencies: np.ndarray
    standard_errors: np.ndarray
    ci_low: np.ndarray
    ci_high: np.ndarray
    num_reports: int
    unexplained_mass: float
    unexplained_standard_error: float
    estimator: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimator(abc.ABC):
    """Turns counts into an ``Estimate``: the linear, unbiased one, then a named post-processing."""

    id: ClassVar[str]

    def supports(self, collection: Collection) -> bool:
        """Whether this estimator can be used for the collection."""
        return True

    @abc.abstractmethod
    def post_process(self, raw: np.ndarray) -> np.ndarray:
        """Map raw frequencies (K,), complete in the sense that they stand for everybody, to the shown ones (K,)."""

    def estimate(
        self, collection: Collection, counts: CohortCounts, candidates: tuple[str, ...] | None = None
    ) -> Estimate:
        """The estimate of one window.

        Args:
            collection: what the reports were made for.
            counts: of its reports.
            candidates: the values to estimate. None: all values of a closed alphabet.

        Raises:
            SpecError: if an open alphabet gets no candidates, or a closed one a stranger.
            EstimationError: if these counts cannot give an estimate; its ``status`` says why.
        """
        linear = estimate_linear(collection, counts, candidates, CONFIDENCE)
        frequencies, unexplained = self._shown(linear)
        picked = linear.picked
        return Estimate(
            values=linear.values,
            frequencies=frequencies[picked],
            raw_frequencies=linear.raw[picked],
            standard_errors=linear.standard_errors[picked],
            ci_low=np.clip(linear.low[picked], 0, 1),
            ci_high=np.clip(linear.high[picked], 0, 1),
            num_reports=counts.total,
            unexplained_mass=unexplained,
            unexplained_standard_error=linear.rest_standard_error,
            estimator=self.id,
        )

    def _shown(self, linear: LinearEstimate) -> tuple[np.ndarray, float]:
        if linear.open:  # the unlisted values take part as one more symbol
            everybody = self.post_process(np.append(linear.raw, 1 - linear.raw.sum()))
            return everybody[:-1], float(everybody[-1])
        frequencies = self.post_process(linear.raw)
        left_out = np.ones(len(frequencies), dtype=bool)
        left_out[linear.picked] = False
        return frequencies, float(frequencies[left_out].sum())
