"""From counts to unbiased candidate frequencies: inversion where symbols are values, least squares otherwise.

Letters: C cohorts, K symbols, S candidates, n_c reports of cohort c. A symbol table (C, S) says which symbol h_c(s)
each candidate has; H_c is its 0/1 matrix (K x S). The mechanism gives unbiased symbol frequencies u_c with
E[u_c] = H_c p.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg, sparse, special

from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import (
    IllConditionedError,
    InsufficientCohortsError,
    NoReportsError,
    SpecError,
)
from uldp_transforms.ldp.estimators.simplex import clip_and_normalize

if TYPE_CHECKING:
    from uldp_transforms.ldp.collection import Collection

MAX_CANDIDATES = 8192
"""Candidates of one estimate over a hashed alphabet: exact standard errors need dense S x S matrices."""

_MAX_CONDITION = 1e8


@dataclasses.dataclass(frozen=True, eq=False)
class LinearEstimate:
    """Unbiased frequencies before any post-processing.

    Attributes:
        values: the values asked for.
        picked: (len(values),) positions of these in the arrays.
        raw, standard_errors, low, high: (S,) of everything that was estimated together.
        open: True if people may hold values that are not among the S.
        rest_standard_error: of the share of all other values; 0 if none is left out of a complete list.
    """

    values: tuple[str, ...]
    picked: np.ndarray
    raw: np.ndarray
    standard_errors: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open: bool
    rest_standard_error: float


def estimate_linear(
    collection: Collection, counts: CohortCounts, candidates: tuple[str, ...] | None, confidence: float
) -> LinearEstimate:
    """Unbiased estimates with standard errors and intervals; see ``Estimator.estimate`` for arguments and errors."""
    if counts.total == 0:
        raise NoReportsError(f"collection {collection.id!r}: an estimate needs at least 1 report, got 0")
    known = collection.alphabet.known_values
    solved = candidates if known is None else known
    asked = candidates if candidates is not None else known
    if solved is None or asked is None:
        raise SpecError(
            f"collection {collection.id!r} has an open alphabet and needs a list of candidate values, got none"
        )
    if known is None and len(solved) > MAX_CANDIDATES:
        raise SpecError(f"candidates of an open alphabet must be at most {MAX_CANDIDATES}, got {len(solved)}")
    picked = np.arange(len(solved)) if asked is solved else _positions(collection.id, solved, asked)
    left_out = np.ones(len(solved), dtype=bool)
    left_out[picked] = False
    table = symbol_table(collection.alphabet, solved, collection.num_cohorts)
    if len(table) == 1:
        symbols = table[0]
        raw, standard_errors, low, high = (
            column[symbols] for column in _invert(collection, counts.pooled(), confidence)
        )
        rest_error = _rest_error(collection, counts.pooled(), symbols[left_out])
    else:
        raw, covariance = _least_squares(collection, counts, table, complete=known is not None)
        standard_errors = np.sqrt(np.maximum(np.diag(covariance), 0))
        half = special.ndtri((1 + confidence) / 2) * standard_errors
        low, high = raw - half, raw + half
        rest = covariance if known is None else covariance[np.ix_(left_out, left_out)]
        rest_error = float(np.sqrt(max(rest.sum(), 0)))
    return LinearEstimate(asked, picked, raw, standard_errors, low, high, known is None, rest_error)


def _positions(collection_id: str, values: tuple[str, ...], asked: tuple[str, ...]) -> np.ndarray:
    position = {value: i for i, value in enumerate(values)}
    strangers = sum(value not in position for value in asked)
    if strangers:
        raise SpecError(
            f"collection {collection_id!r} has a closed alphabet of {len(values)} values, got {strangers} "
            f"candidate(s) that are not among them"
        )
    return np.array([position[value] for value in asked], dtype=np.int64)


@functools.lru_cache(maxsize=32)
def symbol_table(alphabet, candidates: tuple[str, ...], num_cohorts: int) -> np.ndarray:
    """``alphabet.symbol_table``, kept between windows."""
    return alphabet.symbol_table(candidates, num_cohorts)


def _invert(collection: Collection, pooled: CohortCounts, confidence: float) -> tuple[np.ndarray, ...]:
    """The mechanism's own inverse of each symbol, its exact standard error, and its interval; each (K,)."""
    mechanism = collection.mechanism
    raw = mechanism.invert(pooled)[0]
    plausible = clip_and_normalize(raw)
    standard_errors = np.sqrt(np.maximum(mechanism.variances(plausible), 0) / pooled.total)
    return raw, standard_errors, *mechanism.intervals(pooled, plausible, confidence)


def _rest_error(collection: Collection, pooled: CohortCounts, symbols: np.ndarray) -> float:
    """Standard error of the summed frequencies of some symbols."""
    mechanism = collection.mechanism
    members = np.zeros(mechanism.num_symbols, dtype=bool)
    members[symbols] = True
    plausible = clip_and_normalize(mechanism.invert(pooled)[0])
    return float(np.sqrt(max(mechanism.variance_of_sum(plausible, members), 0) / pooled.total)) if len(symbols) else 0.0


def _least_squares(
    collection: Collection, counts: CohortCounts, table: np.ndarray, complete: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Centred least squares: minimise sum_c n_c |(u_c - mean u_c) - (H_c p - mean H_c p)|^2.

    Centring removes what unlisted values add to every bucket alike, so they add noise and no bias. If the list is
    complete, sum(p) = 1 is imposed.

    Standard errors: the known covariance of u_c through the linear map ("sandwich"), plus what the residuals show
    beyond it, which is the hash noise of unlisted values.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5; centring, weights and errors are derived in
    docs/estimation.md.

    Returns:
        raw (S,), covariance (S, S).
    """
    k, num_candidates = collection.alphabet.num_symbols, table.shape[1]
    reporting = counts.num_reports > 0
    n, cells, table = counts.num_reports[reporting], counts.cells[reporting], table[reporting]
    degrees = len(n) * (k - 1) + complete - num_candidates
    if degrees < 0:
        raise InsufficientCohortsError(
            f"collection {collection.id!r}: {num_candidates} candidates need at least "
            f"{-(-(num_candidates - complete) // (k - 1))} reporting cohorts, got {len(n)}"
        )
    weights = n[:, np.newaxis].astype(np.float64)
    design = _design(table, k)
    u = collection.mechanism.invert(CohortCounts(n, cells))
    u -= u.mean(axis=1, keepdims=True)
    solve, offset = _solver(_centred_gram(design, np.broadcast_to(weights, u.shape)), complete, collection.id)
    raw = solve @ (design.T @ (weights * u).ravel()) + offset

    fitted = (design @ raw).reshape(u.shape)
    fitted -= fitted.mean(axis=1, keepdims=True)
    shares = clip_and_normalize(fitted + 1 / k)  # of the buckets; unlisted values lie evenly in all of them
    variances = collection.mechanism.private_variances(shares)
    noise = _centred_gram(design, weights * variances)
    spread = np.sqrt(weights) * (np.take_along_axis(shares, table, axis=1) - 1 / k)
    noise -= spread.T @ spread
    covariance = solve @ noise @ solve
    if degrees > 0:
        observed = (weights * (u - fitted) ** 2).sum() / degrees
        expected = (variances.sum(axis=1) * (1 - 1 / k) - (shares**2).sum(axis=1) + 1 / k).mean() / (k - 1)
        covariance += max(observed - expected, 0.0) * solve
    return raw, covariance


def _design(table: np.ndarray, k: int) -> sparse.csr_array:
    """H of all cohorts below each other, (C k x S): one 1 per cohort and candidate."""
    num_cohorts, num_candidates = table.shape
    rows = (table + k * np.arange(num_cohorts)[:, np.newaxis]).ravel()
    columns = np.tile(np.arange(num_candidates), num_cohorts)
    return sparse.csr_array(
        (np.ones(rows.size), (rows, columns)), shape=(num_cohorts * k, num_candidates), dtype=np.float64
    )


def _centred_gram(design: sparse.csr_array, weights: np.ndarray) -> np.ndarray:
    """sum_c H_c^T J W_c J H_c with J = I - 1/k and diagonal W_c; weights (C, k), result (S, S)."""
    k = weights.shape[1]
    flat = np.ascontiguousarray(weights).ravel()
    weighted = sparse.csr_array(design.T.multiply(flat))
    gram = (weighted @ design).toarray()
    crossed = (design.T @ flat) / k  # J has the same row for every candidate: H_c^T 1 = 1
    gram -= crossed[:, np.newaxis] + crossed[np.newaxis, :]
    gram += flat.sum() / k**2
    return gram


def _solver(gram: np.ndarray, complete: bool, collection_id: str) -> tuple[np.ndarray, np.ndarray]:
    """Matrix P and vector q such that p = P g + q minimises p^T G p / 2 - g^T p, with sum(p) = 1 if complete.

    Raises:
        IllConditionedError: if G is singular (on the plane sum(p) = 1, if complete) or nearly so.
    """
    size = len(gram)
    system = gram + np.trace(gram) / size**2 if complete else gram  # does not change minima with sum(p) = 1
    factor, info = linalg.lapack.dpotrf(system, lower=True)
    inverse, info = linalg.lapack.dpotri(factor, lower=True) if info == 0 else (system, info)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    condition = np.linalg.norm(system, 1) * np.linalg.norm(inverse, 1) if info == 0 else np.inf
    if not condition < _MAX_CONDITION:
        raise IllConditionedError(
            f"collection {collection_id!r}: {size} candidates must be distinguishable with a condition number below "
            f"{_MAX_CONDITION:g}, got {condition:.3g}"
        )
    if not complete:
        return inverse, np.zeros(size)
    direction = inverse.sum(axis=1)
    offset = direction / direction.sum()
    return inverse - np.outer(offset, direction), offset
