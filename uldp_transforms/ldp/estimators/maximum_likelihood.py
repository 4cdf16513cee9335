"""The most likely distribution, in closed form."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.estimator import Estimator
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.linear import LinearEstimate
from uldp_transforms.ldp.solvers.question import Question


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaximumLikelihood(Estimator):
    """Exact maximum likelihood where the mechanism has a formula for it and every value a symbol of its own.

    That is k-RR and uRR over closed and tagged alphabets. Everything else: ``em``.

    Source: Kairouz, Bonawitz and Ramage 2016, Proposition 6; see the mechanism's ``most_likely``.
    """

    id: ClassVar[str] = "ml"

    def refusal(self, model: Model, *, reports: bool = False) -> str | None:
        known = model.alphabet.known_values
        if known is None or not model.alphabet.has_own_symbol(known).all():
            return "values need symbols of their own; em takes others"
        if not model.mechanism.has_closed_form:
            return f"there is no closed form for {model.mechanism.id}; em takes others"
        return None

    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        return question.model.mechanism.most_likely(question.counts.pooled().cells[0]), None
