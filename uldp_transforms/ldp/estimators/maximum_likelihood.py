"""The most likely distribution, in closed form."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.estimator import Estimator
from uldp_transforms.ldp.estimators.linear import LinearEstimate
from uldp_transforms.ldp.estimators.question import Question

if TYPE_CHECKING:
    from uldp_transforms.ldp.collection import Collection


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaximumLikelihood(Estimator):
    """Exact maximum likelihood where the mechanism has a formula for it and every value a symbol of its own.

    That is k-RR and uRR over closed and tagged alphabets. Everything else: ``em``.

    Source: Kairouz, Bonawitz and Ramage 2016, Proposition 6; see the mechanism's ``most_likely``.
    """

    id: ClassVar[str] = "ml"

    def refusal(self, collection: Collection, *, reports: bool = False) -> str | None:
        known = collection.alphabet.known_values
        if known is None or not collection.alphabet.has_own_symbol(known).all():
            return "values need symbols of their own; em takes others"
        if not collection.mechanism.has_closed_form:
            return f"there is no closed form for {collection.mechanism.id}; em takes others"
        return None

    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        return question.collection.mechanism.most_likely(question.counts.pooled().cells[0]), None
