"""Shares of values among the people of their public block.

Reports state their block exactly, so the n_b reports of block b are those of a collection of its own, and n_b is known,
not estimated. Given n_b, the share q of a value within the block has the estimate, the standard error and the interval
of that collection. An interval that misses q in at most a share a of cases for every n_b does so over all n_b. So the
sampling of n_b, a part of the variance of the share of all people, does not count here. (Interval of a ratio whose
denominator has no error: Fieller 1954.)

Each person who reports m times in a window has a report of the value, or none, m times at most. The variance of q is
then at most 1 + (m - 1) q (1 - q) / V as large, with V that of one report (see ``repeated_people``).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.solvers.intervals import possible, reaching
from uldp_transforms.ldp.solvers.question import Intervals, LinearEstimate, Question

Ends = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class InBlocks:
    """Shares of S values within their blocks; arrays are (S,). NaN where the block has too few reports.

    Attributes:
        names: the block of each value.
        total: n, number of all reports.
        num_reports: float64, number of those that state this block.
        is_complete: whether all values of each block are among the S.
        frequencies: as shown.
        raw_frequencies: unbiased and unclipped.
        standard_errors: of ``raw_frequencies``, given ``num_reports``.
        unclipped: intervals from ``raw_frequencies`` alone.
        sizes, weights: (A, S), for each of A versions, its part of ``num_reports``, and the weight of its estimate;
            a collection is one version.
    """

    names: tuple[str, ...]
    total: int
    num_reports: np.ndarray
    is_complete: bool
    frequencies: np.ndarray
    raw_frequencies: np.ndarray
    standard_errors: np.ndarray
    unclipped: Intervals
    sizes: np.ndarray
    weights: np.ndarray

    @property
    def mass(self) -> np.ndarray:
        """(S,) share of the reports that state the block."""
        return self.num_reports / self.total

    def intervals(self, confidence: Confidence, strict: bool = False) -> Ends:
        """As ``Estimate.intervals``, of the shares within the blocks."""
        return reaching(*possible(self.unclipped, self.raw_frequencies, confidence, strict), self.frequencies)

    def with_shown(self, frequencies: np.ndarray) -> InBlocks:
        """These shares from other shares (S,) of all people, whose sum over a block need not be ``mass``."""
        _, block = np.unique(self.names, return_inverse=True)
        whole = np.bincount(block, np.maximum(frequencies, 0))[block]
        whole = whole if self.is_complete else np.maximum(whole, self.mass)
        shown = frequencies / np.where(whole > 0, whole, np.nan)
        return dataclasses.replace(self, frequencies=np.where(np.isnan(self.raw_frequencies), np.nan, shown))

    def bounded(self, bounds: Callable[[np.ndarray, np.ndarray], Ends]) -> InBlocks:
        """These shares with ends of intervals that ``bounds`` moves."""

        def unclipped(confidence: Confidence, strict: bool = False, at_edge: bool = False) -> Ends:
            return bounds(*self.unclipped(confidence, strict, at_edge))

        return dataclasses.replace(self, unclipped=unclipped)

    def at_levels(self, level: Callable[[Confidence], np.ndarray]) -> InBlocks:
        """These shares with intervals at the level that ``level`` returns for the requested confidence."""

        def unclipped(confidence: Confidence, strict: bool = False, at_edge: bool = False) -> Ends:
            return self.unclipped(level(confidence), strict, at_edge)

        return dataclasses.replace(self, unclipped=unclipped)

    def repeated(self, times: int, is_plain: np.ndarray) -> InBlocks:
        """These shares if each person sends at most ``times`` reports.

        Args:
            times: m.
            is_plain: (S,) bool, whether reports of a person have no more in common than whether they are of the value:
                without hash functions and memos. For others, the worst case is that they are all the same.
        """
        shares = np.clip(self.raw_frequencies, 0, 1)
        common = np.minimum(shares * (1 - shares) / (self.num_reports * self.standard_errors**2), 1)
        stretch = np.sqrt(1 + (times - 1) * np.where(is_plain, common, 1))

        def unclipped(confidence: Confidence, strict: bool = False, at_edge: bool = False) -> Ends:
            low, high = self.unclipped(confidence, strict, at_edge)
            centres = np.clip(self.raw_frequencies, 0, 1) if at_edge else self.raw_frequencies
            return centres - stretch * (centres - low), centres + stretch * (high - centres)

        return dataclasses.replace(self, standard_errors=stretch * self.standard_errors, unclipped=unclipped)


def in_blocks(question: Question, linear: LinearEstimate, shown: np.ndarray) -> InBlocks | None:
    """The shares within blocks of the requested values; None without blocks.

    Args:
        question: with U unknowns.
        linear: their estimate.
        shown: (U,) shares of all people, which within each block sum to that of the block or less.
    """
    if linear.block_frequencies is None:
        return None
    picked, mass, alphabet = question.picked, linear.block_frequencies, question.model.alphabet
    raw, errors = np.full((2, len(mass)), np.nan)
    for one in linear.within:
        raw[one.positions], errors[one.positions] = one.linear.frequencies, one.standard_errors
    shares = np.where(np.isnan(raw), np.nan, shown / np.where(mass > 0, mass, 1))
    return InBlocks(
        names=tuple(alphabet.block_names[alphabet.block_of(value)] for value in question.values),
        total=question.counts.total,
        num_reports=np.rint(mass * question.counts.total)[picked],
        is_complete=not (question.open or question.left_out.any()),
        frequencies=shares[picked],
        raw_frequencies=raw[picked],
        standard_errors=errors[picked],
        unclipped=functools.partial(_intervals, linear, picked),
        sizes=np.ones((1, len(picked))),
        weights=np.ones((1, len(picked))),
    )


def _intervals(
    linear: LinearEstimate, picked: np.ndarray, confidence: Confidence, strict: bool = False, at_edge: bool = False
) -> Ends:
    """The intervals of the requested values, from those of all unknowns of each block."""
    low, high = np.full((2, len(linear.frequencies)), np.nan)
    levels = np.asarray(confidence)
    if levels.ndim:
        of_all = np.full(len(low), np.nan)
        of_all[picked] = levels
        levels = of_all
    for one in linear.within:
        own = levels[one.positions] if levels.ndim else confidence
        low[one.positions], high[one.positions] = one.intervals(own, strict, at_edge)
    return low[picked], high[picked]


def pooled_in_blocks(
    of_versions: Sequence[InBlocks | None],
    weights: np.ndarray,
    shown: np.ndarray,
    pool: Callable[[np.ndarray, Sequence[InBlocks], np.ndarray], Intervals],
) -> InBlocks | None:
    """The shares within blocks from several versions; None unless all have the same blocks of the same values.

    Args:
        of_versions: of each of the A versions.
        weights: (A, S) of the versions in the shares of all people; those with an estimate within the block have them
            here too.
        shown: (S,) shares of all people.
        pool: makes intervals of weighted means from the weights, the versions, and the means.
    """
    known = [one for one in of_versions if one is not None]
    if len(known) < len(of_versions) or len({one.names for one in known}) > 1:
        return None
    filled = [_filled(one) for one in known]
    own = np.array([np.where(np.isnan(one.raw_frequencies), 0, of) for one, of in zip(known, weights)])
    whole = own.sum(axis=0)
    own = own / np.where(whole > 0, whole, np.nan)
    raw = (own * [one.raw_frequencies for one in filled]).sum(axis=0)
    reports = np.array([one.num_reports for one in known])
    in_all = reports.sum(axis=0)
    pooled = InBlocks(
        names=known[0].names,
        total=sum(one.total for one in known),
        num_reports=in_all,
        is_complete=known[0].is_complete,
        frequencies=raw,
        raw_frequencies=raw,
        standard_errors=np.sqrt((own**2 * np.square([one.standard_errors for one in filled])).sum(axis=0)),
        unclipped=pool(own, filled, raw),
        sizes=reports / np.maximum(in_all, 1),
        weights=np.nan_to_num(own),
    )
    return pooled.with_shown(shown)


def _filled(one: InBlocks) -> InBlocks:
    """The shares with 0 for NaN, for means in which these have no weight."""

    def unclipped(confidence: Confidence, strict: bool = False, at_edge: bool = False) -> Ends:
        low, high = one.unclipped(confidence, strict, at_edge)
        return np.nan_to_num(low), np.nan_to_num(high)

    return dataclasses.replace(
        one,
        raw_frequencies=np.nan_to_num(one.raw_frequencies),
        standard_errors=np.nan_to_num(one.standard_errors),
        unclipped=unclipped,
    )
