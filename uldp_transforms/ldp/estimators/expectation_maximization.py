"""The most likely distribution, by expectation maximisation, from counts or from the reports themselves."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from scipy import sparse

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.estimator import TOLERANCE, Estimate, Estimator, everybody, problem_of
from uldp_transforms.ldp.mechanisms.outcomes import Outcomes
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.likelihood import Likelihood, maximize
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.question import MAX_DENSE, LinearEstimate, Question, ask
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex

MAX_STEPS = 2000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExpectationMaximization(Estimator):
    """Maximum likelihood for every alphabet and almost every mechanism, by iteration.

    Counts are sufficient if a report is one symbol. The bits of one report are dependent, so mechanisms of bits and
    subsets need the reports (``estimate_reports``). The iteration starts at the projected linear estimate. It stops
    when the likelihood is provably within 0.01 of its maximum, or after 2,000 steps; see ``Estimate.converged``. In an
    open alphabet the unlisted values are one more unknown, spread evenly over all sensitive buckets.

    Source: Murakami and Kawamoto 2019, section 6 (EM); acceleration and stopping rule: ``likelihood``.
    """

    id: ClassVar[str] = "em"
    max_candidates: ClassVar[int] = MAX_DENSE

    def refusal(self, model: Model, *, reports: bool = False) -> str | None:
        if model.mechanism.num_hashes > 1:
            return "the likelihood of several hash functions per cohort is not implemented"
        nothing = CohortCounts.empty(model.num_cohorts, model.num_cells)
        if reports and model.alphabet.block_members:
            return "the likelihood of reports of hashed values in blocks is not implemented; its counts suffice for krr"
        if not reports and model.mechanism.outcomes_of_counts(nothing) is None:
            return f"counts do not hold the likelihood of {model.mechanism.id}; estimate_reports takes the reports"
        return None

    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        if any(one.question is not None for one in linear.within):
            found = [self.shares(one.question, one.linear) for one in linear.within if one.question is not None]
            joined = problem_of(question, linear).joined([shares for shares, _ in found])
            return joined, sum(gap or 0.0 for _, gap in found)
        outcomes = question.model.mechanism.outcomes_of_counts(question.counts)
        assert outcomes is not None, "see refusal"
        return _most_likely(question, linear, outcomes)

    def estimate_reports(
        self, model: Model, counts: CohortCounts, batch: ReportBatch, candidates: tuple[str, ...] | None = None
    ) -> Estimate:
        question = ask(model, counts, candidates)
        outcomes = model.mechanism.outcomes_of_reports(batch.payloads, batch.cohorts)
        assert outcomes is not None, "see refusal"
        linear = estimate_linear(question)
        return self._assemble(question, linear, *_most_likely(question, linear, outcomes))


def _most_likely(question: Question, linear: LinearEstimate, outcomes: Outcomes) -> tuple[np.ndarray, float]:
    if question.open and len(question.own) > MAX_DENSE:
        raise SpecError(
            "candidates of an open alphabet, including its non-sensitive values, must be at most "
            f"{MAX_DENSE} for estimator 'em', got {len(question.own)}"
        )
    outcomes = _of_whole_values(question, outcomes)
    rows = _rows(question, outcomes)
    start = project_onto_simplex(everybody(problem_of(question, linear)))
    return maximize(Likelihood(outcomes.counts, outcomes.base, rows), start, TOLERANCE, MAX_STEPS)


def _of_whole_values(question: Question, outcomes: Outcomes) -> Outcomes:
    """Outcomes of the cohorts that hash whole values; in the others, unlisted values share prefixes with listed
    ones."""
    whole = np.zeros(question.model.num_cohorts, dtype=bool)
    whole[question.model.alphabet.whole_cohorts] = True
    if whole.all() or question.own.all():
        return outcomes
    kept = whole[outcomes.cohorts]
    return Outcomes(outcomes.counts[kept], outcomes.cohorts[kept], outcomes.base[kept], outcomes.rows[kept])


def _rows(question: Question, outcomes: Outcomes) -> sparse.csr_array:
    """Coefficients of the outcomes in the unknowns (and in the unlisted values): (Y, U) or (Y, U + 1)."""
    if question.of_symbols:
        return outcomes.rows
    num_symbols, table = outcomes.rows.shape[1], question.table(question.own >= 0)
    placed = sparse.csr_array(
        (
            outcomes.rows.data,
            outcomes.rows.indices + num_symbols * np.repeat(outcomes.cohorts, np.diff(outcomes.rows.indptr)),
            outcomes.rows.indptr,
        ),
        shape=(len(outcomes.counts), num_symbols * len(table)),
    )
    rows = placed @ Buckets(table, num_symbols).matrix()
    if not question.open:
        return sparse.csr_array(rows)
    v = question.model.alphabet.num_sensitive  # a mechanism that also protects listed values has more
    unlisted = outcomes.rows[:, :v].sum(axis=1) / v
    return sparse.hstack([rows, sparse.csr_array(unlisted[:, np.newaxis])], format="csr")
