"""Linear estimates of values in public blocks, from those within the blocks.

With w_b the share of the reports that state block b, and q the estimated share of a value within it, the value has the
share p = w_b q. Of n people drawn from a population n_b are in the block, so that

    Var(p) = w_b^2 Var(q | n_b) + q^2 w_b (1 - w_b) / n.

Values that share symbols are solved block by block, as if each block were a collection of its own. Given the n_b, the
estimates of different blocks are independent. So with the sums m_b = a_b'q_b within the blocks,

    Var(a'p) = sum_b w_b^2 Var(m_b | n_b) + (sum_b w_b m_b^2 - (sum_b w_b m_b)^2) / n.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals
from uldp_transforms.ldp.mechanisms.public_blocks.within_blocks import WithinBlocks, ends_of_product
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.question import Intervals, LinearEstimate, Question, Within, ask

_OfSymbols = Callable[[Mechanism, CohortCounts], tuple[np.ndarray, Intervals]]
_UNKNOWN = 0.5  # standard error of an unlisted share of which nothing is known, the largest that a share can have


def with_blocks(
    linear: LinearEstimate, mechanism: Mechanism, counts: CohortCounts, of_symbols: _OfSymbols
) -> LinearEstimate:
    """A linear estimate of all symbols, with the part within each block that has reports.

    Args:
        linear: of the symbols.
        mechanism: of the collection.
        counts: (1, M), of its reports.
        of_symbols: the errors and the intervals of the symbols of a mechanism from counts of its reports.
    """
    if not isinstance(mechanism, WithinBlocks):
        return linear
    found = []
    for block, (symbols, reports) in enumerate(mechanism.stated_sums(counts)):
        if reports:
            mass = reports / counts.total
            errors, intervals = of_symbols(*mechanism.part_and_counts(counts, block))
            found.append(
                Within(
                    positions=symbols,
                    mass=mass,
                    num_reports=reports,
                    linear=restricted(linear, symbols, mass),
                    question=None,
                    standard_errors=errors,
                    intervals=intervals,
                )
            )
    within = tuple(found)
    shares = np.zeros(len(linear.raw))
    for one in within:
        shares[one.positions] = one.mass
    return dataclasses.replace(linear, within=within, block_frequencies=shares)


def restricted(linear: LinearEstimate, positions: np.ndarray, mass: float) -> LinearEstimate:
    """The shares of some unknowns among the people who hold them, if these are the share ``mass`` of all people."""

    def intervals(confidence: Confidence, strict: bool = False, at_edge: bool = False) -> tuple[np.ndarray, np.ndarray]:
        of_all = confidence
        if np.ndim(confidence):
            of_all = np.full(len(linear.raw), np.nan)
            of_all[positions] = confidence
        low, high = linear.intervals(of_all, strict, at_edge)
        return low[positions] / mass, high[positions] / mass

    return LinearEstimate(
        raw=linear.raw[positions] / mass,
        joint=linear.joint[positions] / mass,
        null_errors=linear.null_errors[positions] / mass,
        frequencies=linear.frequencies[positions] / mass,
        standard_errors=linear.standard_errors[positions] / mass,
        intervals=intervals,
        rest_standard_error=0.0,
    )


_Solve = Callable[[Question, np.ndarray], LinearEstimate]


def join_blocks(question: Question, sums: np.ndarray, solve: _Solve) -> LinearEstimate:
    """The linear estimate of values that share symbols within their blocks.

    Values of a block without reports, or with too few to be solved, have the estimate 0, and an interval that reaches
    up to the share of the block.

    Args:
        question: about values; its alphabet has ``block_members``.
        sums: (R, U), as for ``estimate_linear``.
        solve: ``estimate_linear``.
    """
    of_block: dict[int, list[int]] = defaultdict(list)
    for position, value in enumerate(question.unknowns):
        of_block[question.model.alphabet.block_of(value)].append(position)
    mechanism = question.model.mechanism
    assert isinstance(mechanism, WithinBlocks), "Collection.from_json"
    reports = mechanism.reports_of(question.counts).sum(axis=0)
    found = {block: _within(question, block, np.array(places), sums, solve) for block, places in of_block.items()}
    within = tuple(one for one in found.values() if one is not None)
    size, total = len(question.unknowns), int(reports.sum())
    held = np.zeros(size)  # share of the block of each unknown
    for block, places in of_block.items():
        held[places] = reports[block] / total
    columns = {name: np.zeros(size) for name in ("raw", "joint", "null_errors", "frequencies")}
    variances, common = (held + 1 / total) ** 2, np.zeros(size)
    for one in within:
        for name, column in columns.items():
            column[one.positions] = one.mass * getattr(one.linear, name)
        inside = np.clip(one.linear.frequencies, 0, 1)
        noise = (one.mass * one.linear.standard_errors) ** 2
        variances[one.positions] = noise + inside**2 * one.mass * (1 - one.mass) / total
        if one.linear.common is not None:
            common[one.positions] = one.mass**2 * one.linear.common
    unsolved = [reports[block] / total for block, one in found.items() if one is None]
    fits = [one.linear.fit_p_value for one in within if one.linear.fit_p_value is not None]
    return LinearEstimate(
        **columns,
        standard_errors=np.sqrt(variances),
        intervals=_Intervals(within, of_block, reports, columns["frequencies"]),
        rest_standard_error=_rest_error(within, unsolved, total),
        rest_spare=min((one.linear.rest_spare for one in within), default=np.inf),
        fit_p_value=1 - (1 - min(fits)) ** len(fits) if fits else None,
        common=common,
        of_sums=_of_sums(within, sums, variances, total),
        within=within,
        block_frequencies=held,
    )


def _of_sums(within: Sequence[Within], sums: np.ndarray, variances: np.ndarray, total: int) -> np.ndarray:
    """(2, R), see ``LinearEstimate.of_sums``; values of blocks without an estimate have independent errors."""
    found, unsolved = np.zeros((2, len(sums))), np.ones(sums.shape[1], dtype=bool)
    mean, square = np.zeros((2, len(sums)))
    for one in within:
        unsolved[one.positions] = False
        inside = sums[:, one.positions] @ one.linear.frequencies
        found += one.mass**2 * one.linear.of_sums
        mean += one.mass * inside
        square += one.mass * inside**2
    found[0] += (square - mean**2) / total + sums[:, unsolved] ** 2 @ variances[unsolved]
    return found


def _within(question: Question, block: int, positions: np.ndarray, sums: np.ndarray, solve: _Solve) -> Within | None:
    """The estimate within a block; None if its reports do not allow one."""
    model, mechanism = question.model, question.model.mechanism
    assert isinstance(mechanism, WithinBlocks), "join_blocks"
    part, counts = mechanism.part_and_counts(question.counts, block)
    members = model.alphabet.block_members[block]
    own = Model(id=model.id, alphabet=members, mechanism=part, num_cohorts=model.num_cohorts)
    try:
        asked = ask(own, counts, tuple(question.unknowns[position] for position in positions))
        linear = solve(asked, sums[:, positions])
    except EstimationError:
        return None
    mass = counts.total / question.counts.total
    return Within(
        positions=positions,
        mass=mass,
        num_reports=counts.total,
        linear=linear,
        question=asked,
        standard_errors=linear.standard_errors,
        intervals=linear.intervals,
    )


def _rest_error(within: Sequence[Within], unsolved: Sequence[float], total: int) -> float:
    """Standard error of the share of all people whose value is not among the unknowns."""
    mass = np.array([one.mass for one in within])
    rests = np.array([np.clip(1 - one.linear.frequencies.sum(), 0, 1) for one in within])
    others = max(1 - float(mass.sum()), 0.0)  # in blocks without an estimate everybody is counted as unlisted
    noise = sum((one.mass * one.linear.rest_standard_error) ** 2 for one in within)
    noise += sum((share * _UNKNOWN) ** 2 for share in unsolved)
    mean = float(mass @ rests) + others
    sampling = (float(mass @ rests**2) + others - mean**2) / total
    return float(np.sqrt(max(noise + sampling, 0.0)))


@dataclasses.dataclass(frozen=True, eq=False)
class _Intervals:
    """The intervals of all unknowns: half widths within the block and of the share of the block, added in squares."""

    within: tuple[Within, ...]
    of_block: dict[int, list[int]]
    reports: np.ndarray
    frequencies: np.ndarray

    def __call__(
        self, confidence: Confidence, strict: bool = False, at_edge: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """See ``Intervals``."""
        low, high = np.zeros((2, len(self.frequencies)))
        total = int(self.reports.sum())
        levels = np.broadcast_to(confidence, low.shape)
        for block, places in self.of_block.items():
            counted = np.full(len(places), self.reports[block])
            high[places] = binomial_intervals(counted, total, levels[places], strict)[1]
        for one in self.within:
            own = levels[one.positions] if np.ndim(confidence) else confidence
            ends, inside = one.linear.intervals(own, strict, at_edge), one.linear.frequencies
            inside = np.clip(inside, 0, 1) if at_edge else inside
            counted = np.full(len(inside), one.num_reports)
            shares = binomial_intervals(counted, total, levels[one.positions], strict)
            low[one.positions], high[one.positions] = ends_of_product(inside, ends, one.mass, shares)
        return low, high
