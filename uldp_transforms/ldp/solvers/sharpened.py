"""A second fit of hashed frequencies, with each bucket weighted by its own noise: the input of decoders.

The raw frequencies weight all buckets of a cohort equally, which keeps them unbiased. Fuller buckets are noisier,
though, and at large epsilon much noisier. For the notation see ``observation``.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.least_squares import solver, spare_equations
from uldp_transforms.ldp.solvers.linear import FEW_UNKNOWNS, observe
from uldp_transforms.ldp.solvers.observation import Observation, common_noise
from uldp_transforms.ldp.solvers.overfull import centre, leave_out
from uldp_transforms.ldp.solvers.question import LinearEstimate, Question, symbol_table

_ROUNDS = 2  # of weights, which depend on the frequencies


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _Fit:
    """Weighted least squares over some cells; see ``overfull.Fit``.

    Attributes:
        kept, fitted, residuals: (C, k).
        weights: (C,), means over the cells in use of a cohort.
        common, error: in units of squared frequencies and of frequencies.
        frequencies, errors: (S,).
    """

    kept: np.ndarray
    fitted: np.ndarray
    residuals: np.ndarray
    weights: np.ndarray
    common: float
    error: float
    frequencies: np.ndarray
    errors: np.ndarray


def sharpened(question: Question, linear: LinearEstimate) -> LinearEstimate:
    """The estimate with more precise frequencies of hashed sensitive values, if these are at most 512.

    They minimise sum_cb (u_cb - m_c - (H_c p)_b)^2 / (D_cb / n_c + t), m_c being the contribution of unlisted values to
    all buckets of a cohort. The noise D_cb is computed from the frequencies themselves, as if one more report of each
    value had been counted; so they are efficient, and unbiased up to terms of order 1 / n. If the system cannot be
    solved, or with several hash functions, the estimate is returned unchanged.

    Source: Aitken 1936 (generalised least squares).
    """
    chosen = ~question.own & question.sensitive
    if not 0 < np.count_nonzero(chosen) <= FEW_UNKNOWNS or question.model.mechanism.num_hashes > 1:
        return linear
    parts = question.model.alphabet.parts(question.texts(chosen))
    if len(parts) > 1:
        return linear
    reporting, num_buckets = question.counts.num_reports > 0, question.model.alphabet.num_sensitive
    counts = CohortCounts(question.counts.num_reports[reporting], question.counts.cells[reporting])
    table = symbol_table(parts[0].alphabet, parts[0].values, len(reporting))[reporting]
    given = observe(question, Buckets(table, num_buckets), counts, slice(0, num_buckets))
    try:
        fit = _best(given, linear.raw[chosen])
    except EstimationError:
        return linear
    raw, errors, null_errors = linear.raw.copy(), linear.standard_errors.copy(), linear.null_errors.copy()
    raw[chosen] = fit.frequencies
    errors[chosen] = null_errors[chosen] = fit.errors
    return dataclasses.replace(linear, raw=raw, standard_errors=errors, null_errors=null_errors)


def _best(given: Observation[Buckets], start: np.ndarray) -> _Fit:
    """The best fit, without the cells that are filled by frequent unlisted texts."""
    kept = np.ones_like(given.inverted)
    fit = _fit(given, start, kept)
    if given.complete:
        return fit
    return leave_out(given, fit, _again)


def _again(given: Observation[Buckets], last: _Fit, kept: np.ndarray) -> _Fit | None:
    try:
        return _fit(given, last.frequencies, kept)
    except EstimationError:
        return None


def _fit(given: Observation[Buckets], frequencies: np.ndarray, kept: np.ndarray) -> _Fit:
    """One weighted fit over the kept cells. Raises EstimationError if the unknowns are nearly indistinguishable."""
    buckets, u, n = given.buckets, given.inverted, given.num_reports[:, np.newaxis]
    left_out = kept.size - np.count_nonzero(kept)
    spare = spare_equations(
        given.owner, len(n), buckets.num_buckets, len(frequencies) + left_out, shared=given.complete
    )
    for _ in range(_ROUNDS):
        seen = np.maximum(frequencies, 0) + given.jump / n.sum()
        known = given.noise(given.plausible(buckets.forward(seen))) / n
        residuals = centre(u - buckets.forward(frequencies), kept)
        used = kept > 0
        common = common_noise(residuals[used] ** 2, spare, known[used]) if spare else 0.0
        cells = kept / (known + common)
        totals = cells.sum(axis=1, keepdims=True)
        present = buckets.gather(cells / np.sqrt(totals))
        gram = buckets.gram(cells, centred=False) - present.T @ present
        inverse, offset = solver(gram, given.complete, given.owner)
        means = (cells * u).sum(axis=1, keepdims=True) / totals
        frequencies = inverse @ buckets.collect(cells * (u - means)) + offset * given.total
    fitted, errors = buckets.forward(frequencies), np.sqrt(np.maximum(np.diag(inverse), 0))
    return _Fit(
        kept=kept,
        fitted=fitted,
        residuals=centre(u - fitted, kept),
        weights=totals[:, 0] / np.maximum(kept.sum(axis=1), 1),
        common=common,
        error=float(np.sqrt((errors**2).mean())),
        frequencies=frequencies,
        errors=errors,
    )
