"""The most likely distribution, in closed form."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.estimator import Estimator
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.question import LinearEstimate, Question


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaximumLikelihood(Estimator):
    """Exact maximum likelihood for mechanisms with a closed form and alphabets with one symbol per value.

    These are k-RR and uRR over closed and tagged alphabets. For all others use ``em``.

    Source: Kairouz, Bonawitz and Ramage 2016, Proposition 6; see the mechanism's ``most_likely``.
    """

    id: ClassVar[str] = "ml"

    def refusal(self, model: Model, *, reports: bool = False) -> str | None:
        known = model.alphabet.known_values
        if known is None or not model.alphabet.has_own_symbol(known).all():
            return "every value needs its own symbol; the estimator em has no such limit"
        if not model.mechanism.has_closed_form:
            return f"there is no closed form for {model.mechanism.id}; use the estimator em"
        return None

    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        return question.model.mechanism.most_likely(question.counts.pooled().cells[0]), None
