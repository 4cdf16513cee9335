"""From counts to unbiased frequencies: inversion for one symbol per value, least squares for hashed values."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.alphabets.alphabet import Part
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.intervals import PickedIntervals, SymbolIntervals, quantile, score_intervals
from uldp_transforms.ldp.solvers.least_squares import least_squares, spare_equations
from uldp_transforms.ldp.solvers.message_passing import pass_messages
from uldp_transforms.ldp.solvers.observation import B, Observation, Solution
from uldp_transforms.ldp.solvers.packed import packed_buckets
from uldp_transforms.ldp.solvers.prefix_parts import solve_parts
from uldp_transforms.ldp.solvers.public_blocks.joined_blocks import join_blocks, with_blocks
from uldp_transforms.ldp.solvers.question import MAX_DENSE, Intervals, LinearEstimate, Question, symbol_table
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize

FEW_UNKNOWNS = 512
"""Maximum number of values in shared buckets that are always solved exactly, in less than a second."""

MANY_COHORTS = 16
"""Minimum number of equal cohorts for which the hashing error is nearly normal; below it, message passing may
diverge.
"""

_SHORT = 96
"""Maximum number of symbols of windows that are inverted together: with more, arrays take longer than calls."""

MANY_EQUATIONS = 500
"""Minimum number of equations for which the asymptotic theory of message passing holds."""


@dataclasses.dataclass(frozen=True, eq=False)
class Inverses:
    """The mechanism's own inverses of the counts of W windows.

    Attributes:
        counts: one row for each window.
        raw, alone: (W, K), see ``Mechanism.inverses``.
        plausible: (W, K), the nearest distributions.
        null_errors: (W, K), standard errors of ``alone`` if nobody held the symbol.
        jumps: (W, K), contributions of one more counted report.
        errors: (W, K), standard errors of ``raw``.
    """

    counts: CohortCounts
    raw: np.ndarray
    alone: np.ndarray
    plausible: np.ndarray
    null_errors: np.ndarray
    jumps: np.ndarray
    errors: np.ndarray

    def of_window(self, window: int) -> Inverses:
        """Those of one window, as one row."""
        row = slice(window, window + 1)
        own = {name: part[row] for name, part in vars(self).items() if name != "counts"}
        return Inverses(CohortCounts(self.counts.num_reports[row], self.counts.cells[row]), **own)


def invert_each(questions: Sequence[Question]) -> list[Inverses | None]:
    """The inverses of windows for ``estimate_linear``, each the same, bit for bit, as alone.

    Args:
        questions: of any collections.

    Returns:
        One entry for each; None where nothing is gained by inverting windows together.
    """
    alike: dict[int, list[int]] = {}
    for place, question in enumerate(questions):
        mechanism = question.model.mechanism
        if mechanism.has_equal_rows and mechanism.num_symbols <= _SHORT:
            alike.setdefault(id(mechanism), []).append(place)
    found: list[Inverses | None] = [None] * len(questions)
    for places in alike.values():
        windows = [questions[place].counts.pooled() for place in places]
        counts = (np.concatenate([getattr(one, name) for one in windows]) for name in ("num_reports", "cells"))
        together = _invert(questions[places[0]].model.mechanism, CohortCounts(*counts))
        for row, place in enumerate(places):
            found[place] = together.of_window(row)
    return found


def _invert(mechanism: Mechanism, counts: CohortCounts) -> Inverses:
    """The inverses of windows, one row of counts each; several only if the mechanism ``has_equal_rows``."""
    raw, alone = mechanism.inverses(counts)
    plausible, num_reports = clip_and_normalize(raw), counts.num_reports[:, np.newaxis]
    rows = plausible if len(plausible) > 1 else plausible[0]
    null_errors = np.sqrt(np.maximum(mechanism.null_variances(rows).reshape(raw.shape), 0) / num_reports)
    jumps = mechanism.jumps / num_reports  # as if one more had been counted: with 0 reports the error is not 0
    errors = np.sqrt(np.maximum(mechanism.variances(rows).reshape(raw.shape), 0) / num_reports + jumps**2)
    return Inverses(counts, raw, alone, plausible, null_errors, jumps, errors)


def estimate_linear(
    question: Question, sums: np.ndarray | None = None, inverses: Inverses | None = None
) -> LinearEstimate:
    """Unbiased estimates with standard errors and intervals; see ``Estimator.estimate`` for errors.

    Args:
        question: with U unknowns.
        sums: (R, U), weights of sums whose variances are of interest; None: there are none.
        inverses: of the window, if they are known.
    """
    sums = np.zeros((0, len(question.own))) if sums is None else sums
    if question.model.alphabet.block_members:
        return join_blocks(question, sums, estimate_linear)
    inverses = inverses or _invert(question.model.mechanism, question.counts.pooled())
    of_symbols = sums if question.of_symbols else np.zeros((0, question.model.mechanism.num_symbols))
    found = _of_symbols(question, of_symbols, inverses)
    return found if question.of_symbols else _solve(question, found, sums)


def _of_symbols(question: Question, sums: np.ndarray, inverses: Inverses) -> LinearEstimate:
    """The mechanism's own inverse for each symbol, its exact standard error, and its interval; U = K."""
    mechanism, alphabet, counts = question.model.mechanism, question.model.alphabet, inverses.counts
    raw, alone, plausible = inverses.raw[0], inverses.alone[0], inverses.plausible[0]
    null_errors, jumps, errors = inverses.null_errors[0], inverses.jumps[0], inverses.errors[0]
    left_out = question.left_out.astype(np.float64) if question.of_symbols else np.zeros(len(raw))
    derivative = alphabet.redistribution(plausible)
    frequencies = raw
    intervals: Intervals = SymbolIntervals(mechanism, counts, inverses.plausible)
    if derivative is not None:
        frequencies = alphabet.redistribute(raw)
        shared = derivative - np.diag(np.diag(derivative))
        scale = np.diag(derivative)
        intervals = _shared_out(intervals, raw, frequencies, scale, _errors_of(question, shared, plausible))
        errors = np.hypot(_errors_of(question, derivative, plausible), scale * jumps)
        left_out, sums = left_out @ derivative, sums @ derivative
    rest = float(_errors_of(question, left_out, plausible)) if left_out.any() else 0.0
    of_sums = np.zeros((2, len(sums)))
    if len(sums):
        of_sums[0] = _errors_of(question, sums, _with_known_totals(mechanism, counts, raw)) ** 2
    linear = LinearEstimate(alone, raw, null_errors, frequencies, errors, intervals, rest, of_sums=of_sums)
    return with_blocks(linear, mechanism, counts, _of_part)


def _of_part(mechanism: Mechanism, counts: CohortCounts) -> tuple[np.ndarray, Intervals]:
    """Standard errors (K,) and intervals of all symbols, from the reports of one block."""
    found = _invert(mechanism, counts)
    return found.errors[0], SymbolIntervals(mechanism, counts, found.plausible)


def _with_known_totals(mechanism: Mechanism, counts: CohortCounts, raw: np.ndarray) -> np.ndarray:
    """Unbiased frequencies (K,) that sum to 1, and in public blocks to the shares of the blocks, at which
    ``variance_of`` of a sum of many of them is nearly unbiased: it is linear in them but for the square of the sum.
    Small plausible frequencies are too large on average."""
    moved: np.ndarray = raw.copy()
    for symbols, reports in mechanism.stated_sums(counts) or [(np.arange(len(raw)), counts.total)]:
        sensitive = symbols[symbols < mechanism.num_sensitive]
        if len(sensitive):
            moved[sensitive] += (reports / counts.total - raw[symbols].sum()) / len(sensitive)
    return moved


def _shared_out(
    of_symbols: Intervals, raw: np.ndarray, frequencies: np.ndarray, scale: np.ndarray, errors: np.ndarray
) -> Intervals:
    """Intervals of values: half widths of their own symbols' intervals and errors of the tags, added in squares."""

    def intervals(confidence: Confidence, strict: bool = False, at_edge: bool = False) -> tuple[np.ndarray, np.ndarray]:
        low, high = of_symbols(confidence, strict, at_edge)
        centres, own = (np.clip(part, 0, 1) if at_edge else part for part in (frequencies, raw))
        half = quantile(np.inf, confidence) * errors
        return centres - np.hypot(scale * (own - low), half), centres + np.hypot(scale * (high - own), half)

    return intervals


def _errors_of(question: Question, weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Standard errors of weighted sums of symbol frequencies, one for each row of ``weights``."""
    variances = question.model.mechanism.variance_of(weights, frequencies)
    errors: np.ndarray = np.sqrt(np.maximum(variances, 0) / question.counts.total)
    return errors


def _solve(question: Question, pooled: LinearEstimate, sums: np.ndarray) -> LinearEstimate:
    """Hashed symbols: least squares for sensitive and clear buckets, inversion for values with a symbol of their own.

    The three parts are uncorrelated except for the multinomial sampling of people, -p_x p_z / n between two values.
    """
    raw, variances = np.zeros((2, len(question.own)))
    parts: list[tuple[np.ndarray, Intervals]] = []
    asked = ~question.left_out
    of_rest = asked if question.open else ~asked  # the share outside the question is 1 less its sum, or its sum
    sensitive, clear = ~question.own & question.sensitive, ~question.own & ~question.sensitive
    fit, spare, common = None, np.inf, np.zeros(len(question.own))
    rows = np.concatenate([of_rest[np.newaxis], sums])
    of_sums = np.zeros((2, len(rows)))
    for part, solve in ((sensitive, solve_sensitive), (clear, _solve_listed)):
        if not part.any():
            continue
        solution = solve(question, part, rows[:, part])
        raw[part], variances[part] = solution.frequencies, solution.variances
        parts.append((np.flatnonzero(part), functools.partial(score_intervals, solution)))
        of_sums[0] += solution.variance_of_sum
        of_sums[1] += 0.0 if solution.common_of_sum is None else solution.common_of_sum
        spare = min(spare, solution.spare)
        common[part] = 0.0 if solution.common is None else solution.common
        if solution.degrees:
            fit = float(special.chdtrc(solution.degrees, solution.misfit))
    joint, errors = raw.copy(), np.sqrt(np.maximum(variances, 0))
    noisy = question.model.mechanism.num_sensitive > question.model.alphabet.num_sensitive
    null_errors = np.where(sensitive | (clear & noisy), errors, 0.0)
    own = np.flatnonzero(question.own)
    if len(own):
        symbols = question.table(question.own)[0]
        raw[own], joint[own] = pooled.raw[symbols], pooled.joint[symbols]
        errors[own] = pooled.standard_errors[symbols]
        null_errors[own] = pooled.null_errors[symbols]
        parts.append((own, PickedIntervals(pooled.intervals, symbols, question.model.mechanism.num_symbols)))
        members = np.zeros((len(rows), question.model.mechanism.num_symbols))
        members[:, symbols] = rows[:, own]
        of_sums[0] += _errors_of(question, members, clip_and_normalize(pooled.joint)) ** 2
    listed = joint[of_rest & sensitive].sum() * joint[of_rest & ~sensitive].sum()
    rest_error = float(np.sqrt(max(of_sums[0, 0] - 2 * listed / question.counts.total, 0)))
    of_parts = np.array([rows[1:, part] @ joint[part] for part in (sensitive, clear, question.own)])
    of_sums[0, 1:] -= (of_parts.sum(axis=0) ** 2 - (of_parts**2).sum(axis=0)) / question.counts.total
    found = np.maximum(of_sums[:, 1:], 0)
    intervals = _together(parts, len(raw))
    return LinearEstimate(raw, joint, null_errors, joint, errors, intervals, rest_error, spare, fit, common, found)


def _together(parts: Sequence[tuple[np.ndarray, Intervals]], size: int) -> Intervals:
    """Intervals of all unknowns, combined from the parts and their positions."""

    def intervals(confidence: Confidence, strict: bool = False, at_edge: bool = False) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.zeros((2, size))
        for positions, of_part in parts:
            own = np.asarray(confidence)
            low[positions], high[positions] = of_part(own[positions] if own.ndim else own, strict, at_edge)
        return low, high

    return intervals


def solve_sensitive(question: Question, chosen: np.ndarray, summed: np.ndarray) -> Solution:
    """The buckets of sensitive values, centred: what is hashed evenly into all of them says nothing about one."""
    model, columns = question.model, slice(0, question.model.alphabet.num_sensitive)
    parts = model.alphabet.parts(question.texts(chosen))
    if len(parts) > 1:
        return solve_parts(parts, question.counts, columns.stop, summed, lambda *part: _solve_part(question, *part))
    return _solve_part(question, parts[0], summed, columns.stop)


def _solve_part(question: Question, part: Part, summed: np.ndarray, num_buckets: int) -> Solution:
    """The solution of a part: message passing for long lists with enough equations, else least squares."""
    counts, size, columns = _of_cohorts(question.counts, part.cohorts), len(part.values), slice(0, num_buckets)
    if size > FEW_UNKNOWNS and _suits_message_passing(counts, num_buckets, size):
        packed = packed_buckets(part.alphabet, part.values, len(counts.num_reports), num_buckets)
        return pass_messages(observe(question, packed, counts, columns), summed)
    return _solve_exactly(question, part, summed, columns)


def _solve_exactly(question: Question, part: Part, summed: np.ndarray, columns: slice) -> Solution:
    """Least squares over protected buckets, the given columns of the symbols; centred."""
    counts = _of_cohorts(question.counts, part.cohorts)
    reporting, num_buckets = counts.num_reports > 0, columns.stop - columns.start
    num_cohorts, size = int(reporting.sum()), len(part.values)
    spare_equations(question.model.id, num_cohorts, num_buckets, size, shared=not question.open)  # before the table
    table = symbol_table(part.alphabet, part.values, len(reporting))
    buckets = Buckets(table[reporting] - columns.start, num_buckets)
    return least_squares(observe(question, buckets, _of_cohorts(counts, reporting), columns), summed)


def _suits_message_passing(counts: CohortCounts, num_buckets: int, size: int) -> bool:
    """Whether equations and cohorts are sufficient; lists too long for dense matrices need no minimum of cohorts."""
    sizes = counts.num_reports.astype(np.float64)
    equal_cohorts = sizes.sum() ** 2 / max((sizes**2).sum(), 1.0)
    equations = np.count_nonzero(sizes) * (num_buckets - 1)
    return bool(equations >= MANY_EQUATIONS and (equal_cohorts >= MANY_COHORTS or size > MAX_DENSE))


def _of_cohorts(counts: CohortCounts, chosen: np.ndarray | slice) -> CohortCounts:
    return CohortCounts(counts.num_reports[chosen], counts.cells[chosen])


def observe(question: Question, buckets: B, counts: CohortCounts, columns: slice) -> Observation[B]:
    """Unbiased frequencies and noise of protected buckets, some columns of the symbols.

    Everybody who is not in another symbol is in one of these buckets.
    """
    mechanism = question.model.mechanism
    others = np.ones(mechanism.num_symbols, dtype=bool)
    others[columns] = False
    pooled = mechanism.invert(question.counts.pooled())[0]
    mass = float(np.clip(1 - pooled[others].sum(), 0, 1)) * mechanism.num_hashes
    apart = float(mechanism.variance_of(others.astype(np.float64), clip_and_normalize(pooled))) if others.any() else 0.0

    def noise(shares: np.ndarray) -> np.ndarray:
        everything = np.full((len(shares), len(others)), (1 - mass) / max(others.sum(), 1))
        everything[:, columns] = shares
        return mechanism.private_variances(everything)[:, columns]

    return Observation(
        owner=question.model.id,
        buckets=buckets,
        num_reports=counts.num_reports,
        inverted=mechanism.invert(counts)[:, columns],
        noise=noise,
        mass=mass,
        centred=True,
        complete=not question.open,
        total_variance=max(apart, 0.0) / question.counts.total,
        jump=float(mechanism.jumps[0]),
        counted=float(counts.cells[:, columns].sum()) / (max(counts.total, 1) * (columns.stop - columns.start)),
    )


def _solve_listed(question: Question, chosen: np.ndarray, summed: np.ndarray) -> Solution:
    """The buckets of listed values: clear ones, or protected ones if the mechanism protects all values."""
    mechanism, first = question.model.mechanism, question.model.alphabet.num_sensitive
    if mechanism.num_sensitive > first:
        (part,) = question.model.alphabet.parts(question.texts(chosen))
        return _solve_exactly(question, part, summed, slice(first, mechanism.num_symbols))
    return _solve_clear(question, chosen, summed)


def _solve_clear(question: Question, chosen: np.ndarray, summed: np.ndarray) -> Solution:
    """Clear buckets: all their values are listed, and an empty bucket implies that its values are absent.

    The variance is computed as if two more people held each value; without this, intervals of rare values would be far
    too short.
    """
    mechanism, reporting = question.model.mechanism, question.counts.num_reports > 0
    v, reveal_rate = mechanism.num_sensitive, mechanism.reveal_rate
    counts = _of_cohorts(question.counts, reporting)
    buckets = Buckets(question.table(chosen)[reporting] - v, mechanism.num_symbols - v)
    unseen = buckets.forward(np.full(int(chosen.sum()), 2 / (reveal_rate * counts.total)))
    given = Observation(
        owner=question.model.id,
        buckets=buckets,
        num_reports=counts.num_reports,
        inverted=mechanism.invert_alone(counts)[:, v:],
        noise=lambda shares: (shares + unseen) / reveal_rate,
        mass=1.0,
        centred=False,
        complete=False,
    )
    return least_squares(given, summed)
