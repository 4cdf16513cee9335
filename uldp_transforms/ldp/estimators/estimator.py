"""Base class of estimators, and their result."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from uldp_transforms.ldp.alphabets.noun import ANSWER, Noun
from uldp_transforms.ldp.checks import describe, is_number
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms.ldp.estimators.anytime import confidence_of_look
from uldp_transforms.ldp.estimators.display import SHOWN, chart, in_a_line, to_frame, to_html
from uldp_transforms.ldp.estimators.number_estimates import QUANTILES, NumberEstimate, Numbers
from uldp_transforms.ldp.false_reports import Lies, need_of_liars
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.ldp.solvers.fitted_prior import Noisy
from uldp_transforms.ldp.solvers.intervals import (
    PickedIntervals,
    ShownIntervals,
    cut,
    quantile,
    reaching,
)
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.public_blocks.in_blocks import InBlocks, in_blocks
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES, Intervals, LinearEstimate, Question, Within, ask

if TYPE_CHECKING:
    import altair
    import pandas

OK, TOO_UNCERTAIN = "ok", "too_uncertain"
"""Status values: whether the share of unlisted values is known."""

FIXED, ANYTIME = "fixed", "anytime"
"""Kinds of intervals: for a single look at the data, and for all looks together while reports arrive."""

Level = Callable[[Confidence], np.ndarray]
T = TypeVar("T")

_SHORT = 96
"""Maximum number of values of windows whose intervals are computed together: for longer lists, calls cost little."""

TOLERANCE = 0.01
"""Tolerance of iterative estimators, which stop when the log-likelihood is provably this close to its maximum."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Estimate:
    """An estimated distribution with its uncertainty; arrays have one entry for each of the S values.

    Attributes:
        values: the values as texts.
        frequencies: estimated shares after this estimator's post-processing; 1 means everybody.
        raw_frequencies: unbiased and unclipped.
        standard_errors: of ``raw_frequencies``, for independent people drawn from a population; above 0.
        intervals: function that takes a confidence, such as 0.99, and returns the ends (S,), (S,) of the intervals of
            all shares: from ``raw_frequencies``, cut to [0, 1], then extended where necessary to contain
            ``frequencies``. The upper end is never below that of an estimate of 0, nor the lower one above that of an
            estimate of 1.
        unclipped: the same function before clipping and extension: intervals from ``raw_frequencies`` alone.
        num_reports: n, number of reports.
        left_over: estimated share of people with an unlisted value, so that it and ``frequencies`` sum to 1; 0 if the
            list is complete.
        raw_unexplained_mass: the share of people with an unlisted value, unbiased and unclipped.
        unexplained_standard_error: of ``raw_unexplained_mass``; 0 if the list is complete.
        unexplained_intervals: function that takes a confidence and returns the interval of that share, cut to [0, 1]
            and extended to contain ``unexplained_mass``.
        unexplained_status: ``"ok"`` if that share is known; ``"too_uncertain"`` if its unclipped interval for one look,
            at the default confidence, is longer than ``MOST_UNCERTAIN``; None if the list is complete.
        redistributed_mass: share of people who sent a tag and were distributed over its values by background knowledge.
            Wrong knowledge moves the estimate by at most twice this share (in L1 norm) for any number of reports; the
            intervals do not include this error.
        fit_p_value: for hashed alphabets, the p-value of the residuals under the hypothesis that nobody holds an
            unlisted value and all clients are honest; near 0, one of the two is false. None for other alphabets.
        likelihood_gap: for iterative estimators, an upper bound of the distance of the log-likelihood from its maximum.
        common_variances: for hashed alphabets, the part of the squared standard errors that comes from the hash
            functions and is the same in all windows. It is an unbiased estimate, so it may be negative. None for other
            alphabets.
        in_blocks: the shares within public blocks; None without blocks.
        estimator: id of the estimator.
        confidence: of the intervals ``ci_low`` to ``ci_high``, ``display_intervals``, and of the unlisted share.
        interval: kind of all intervals: FIXED, or ANYTIME if the estimate comes from ``anytime``.
        lies: false reports that the intervals allow for; None if nobody declared any.
        by_chance: ``unclipped`` before that, for chance alone; None without lies.
        borrowed: weight of the shares of all groups in ``frequencies``, from 0 to 1; None if nothing may be borrowed.
        numbers: what ``figures`` come from; None if values are no numbers, or if intervals are not for one look.
        group: dimension -> value of the people of this estimate; empty: everybody.
        noun: what is counted, as the collection calls it; texts and charts use it if it is declared.
        num_groups: G, number of groups that can be estimated by these dimensions; 1: everybody. ``display_intervals``
            count the values of all of them.
    """

    values: tuple[str, ...]
    frequencies: np.ndarray
    raw_frequencies: np.ndarray
    standard_errors: np.ndarray
    intervals: Intervals
    unclipped: Intervals
    num_reports: int
    left_over: float
    raw_unexplained_mass: float
    unexplained_standard_error: float
    unexplained_intervals: Callable[[float], tuple[float, float]]
    unexplained_status: str | None
    redistributed_mass: float
    fit_p_value: float | None = None
    likelihood_gap: float | None = None
    common_variances: np.ndarray | None = None
    in_blocks: InBlocks | None = None
    estimator: str
    confidence: float = CONFIDENCE
    interval: str = FIXED
    lies: Lies | None = None
    by_chance: Intervals | None = None
    borrowed: float | None = None
    numbers: Numbers | None = None
    group: Mapping[str, str] = dataclasses.field(default_factory=dict)
    noun: Noun = ANSWER
    num_groups: int = 1

    @property
    def liars(self) -> float | None:
        """Largest share of false reports that the intervals allow for; None if nobody declared one."""
        return None if self.lies is None else self.lies.share

    def with_borrowed(self, frequencies: np.ndarray, weight: float) -> Estimate:
        """This estimate with other shown shares (S,), which borrow from other people.

        Raw frequencies, standard errors and unclipped intervals stay those of the own reports. ``intervals`` are
        extended where they do not contain the shown share, so they cover the true share as often as before.
        """
        intervals = ShownIntervals(self.unclipped, self.raw_frequencies, frequencies)
        in_blocks = self.in_blocks and self.in_blocks.with_shown(frequencies)
        return dataclasses.replace(
            self, frequencies=frequencies, intervals=intervals, borrowed=weight, in_blocks=in_blocks
        )

    def with_liars(self, model: Model, share: float) -> Estimate:
        """This estimate with intervals of the shares among honest people, if at most ``share`` of the reports are lies.

        Liars may send any valid reports; see ``uldp_transforms.ldp.false_reports.honest_bounds``. Frequencies and
        standard errors stay as they are. The sampling part of the intervals is evaluated at the counts of all reports.

        Args:
            model: the collection, as for ``Estimator.estimate``.
            share: in [0, 1).

        Raises:
            SpecError: if the share is not allowed, or the effect of a report on these values is not bounded.
        """
        check_liars("Estimate.with_liars", model, share)
        return self.with_lies(Lies.of(model, self.values, share))

    def with_lies(self, lies: Lies) -> Estimate:
        """As ``with_liars``, for lies of a collection or, from ``PooledWindow.lies``, of the versions of a question."""
        unclipped = functools.partial(_among_honest, self.unclipped, lies)
        intervals = ShownIntervals(unclipped, self.raw_frequencies, self.frequencies)
        own = self.in_blocks
        in_blocks = own and own.bounded(lies.among(own.mass, own.sizes, own.weights).bounds)
        return dataclasses.replace(
            self, intervals=intervals, unclipped=unclipped, lies=lies, by_chance=self.unclipped, in_blocks=in_blocks
        )

    def anytime(self, scale: float, planned: bool | None = None) -> Estimate:
        """This estimate with anytime-valid intervals, which hold jointly at all looks while reports arrive.

        If the estimate is repeated, even after every report, the probability that any interval of a value misses its
        share is at most 1 - confidence. Reports must arrive in random order; if the share changes, the
        intervals cover its running mean. From ``scale`` to 10,000 ``scale`` reports they are 1.5 to 2 times as long as
        fixed-sample intervals, with the smallest ratio at 8 ``scale``. One look may be planned: its intervals are 1.14
        times as long as fixed-sample intervals, and those of all other looks 1.6 to 2.1 times.

        Args:
            scale: number of reports, above 0, chosen before any report is seen and the same at all looks; for instance
                the number of reports at the first look.
            planned: True: this is the one look that was planned before any report was seen, such as that at the end of
                a window. False: an unplanned look beside the planned one. None (default): no look is planned.

        Raises:
            SpecError: if ``scale`` is not above 0.
        """
        if not scale > 0:
            raise SpecError(f"Estimate.anytime needs a scale above 0, got {scale!r}")
        at_all_looks = functools.partial(confidence_of_look, num_reports=self.num_reports, scale=scale, planned=planned)
        own = self.in_blocks
        in_blocks = own and own.at_levels(
            functools.partial(
                confidence_of_look, num_reports=np.maximum(own.num_reports, 1), scale=scale, planned=planned
            )
        )
        return dataclasses.replace(
            self,
            intervals=functools.partial(_at_levels, self.intervals, at_all_looks),
            unclipped=functools.partial(_at_levels, self.unclipped, at_all_looks),
            by_chance=self.by_chance and functools.partial(_at_levels, self.by_chance, at_all_looks),
            unexplained_intervals=functools.partial(_at_level, self.unexplained_intervals, at_all_looks),
            interval=ANYTIME,
            numbers=None,
            in_blocks=in_blocks,
        )

    @property
    def unexplained_low(self) -> float:
        """Lower end of the interval of the unlisted share, clipped to [0, 1]."""
        return self.unexplained_intervals(self.confidence)[0]

    @property
    def unexplained_high(self) -> float:
        """Upper end of the interval of the unlisted share, clipped to [0, 1]."""
        return self.unexplained_intervals(self.confidence)[1]

    @functools.cached_property
    def _plain(self) -> tuple[np.ndarray, np.ndarray]:
        return self.intervals(self.confidence)

    @property
    def ci_low(self) -> np.ndarray:
        """(S,): lower end of the interval of each share, see ``intervals``; at most ``frequencies``."""
        return self._plain[0]

    @property
    def ci_high(self) -> np.ndarray:
        """(S,): upper end of that interval; at least ``frequencies``."""
        return self._plain[1]

    @functools.cached_property
    def _descending(self) -> np.ndarray:
        return np.argsort(-self.frequencies, kind="stable")

    def largest(self, number: int) -> np.ndarray:
        """(R,) int64: positions of the R = min(number, S) largest ``frequencies``, in ascending order of position."""
        return np.sort(self._descending[:number])

    def display_intervals(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Selection-adjusted intervals of the R = min(number, S) values that ``largest`` selects: (R,), (R,).

        The plain intervals of values that are selected for their large estimates miss far more often than they
        should. Here, with a = 1 - ``confidence``, the i-th largest of all S estimated values has the level 1 - a i / (S
        G) (equal ``frequencies`` are ranked by position), for every R. So at most a share a of the first 1, 2, ..., R
        intervals is expected to miss, for every R, in one group and among the R largest shares of all groups together;
        docs/decisions/0058-intervals.md has the proof. These intervals contain the plain ones, and never cut into an
        observed count.

        Source: false coverage-statement rate (Benjamini and Yekutieli 2005), for all R simultaneously.
        """
        if number not in self._strict:
            self._strict[number] = self.intervals(self.display_levels(number), strict=True)
        shown, (low, high) = self.largest(number), self._strict[number]
        return np.minimum(low, self.ci_low)[shown], np.maximum(high, self.ci_high)[shown]

    def display_levels(self, number: int) -> np.ndarray:
        """(S,): the levels of ``display_intervals``; nan for values that are not shown."""
        chosen, size = self._descending[:number], len(self.values)
        levels = np.full(size, np.nan)
        levels[chosen] = 1 - (1 - self.confidence) * np.arange(1, len(chosen) + 1) / (size * self.num_groups)
        return levels

    def columns_in_blocks(self, number: int) -> dict[str, np.ndarray]:
        """The shares within public blocks of the R values that ``largest`` selects, (R,) each; none without blocks.

        Names are those of ``ShareInBlock`` in rows, with both kinds of intervals. The proof for ``display_intervals``
        needs no more than the coverage of each interval at its level, so it holds for these intervals too.
        """
        if self.in_blocks is None:
            return {}
        shown, own = self.largest(number), self.in_blocks
        plain = own.intervals(self.confidence)
        chosen = own.intervals(self.display_levels(number), strict=True)
        columns = {
            "block": np.array(own.names, dtype=object),
            "num_reports": own.num_reports.astype(np.int64),
            "share": own.frequencies,
            "low": plain[0],
            "high": plain[1],
            "display_low": np.minimum(chosen[0], plain[0]),
            "display_high": np.maximum(chosen[1], plain[1]),
        }
        return {name: column[shown] for name, column in columns.items()}

    @functools.cached_property
    def _strict(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Strict intervals at ``display_levels``, by ``number``."""
        return {}

    @property
    def unexplained_mass(self) -> float | None:
        """Share of people whose value is not in ``values``; 0 if the list is complete, None if the share is too
        uncertain.
        """
        return None if self.unexplained_status == TOO_UNCERTAIN else self.left_over

    def figures(self, limits: Sequence[float] = (), quantiles: Sequence[float] = QUANTILES) -> NumberEstimate:
        """Mean, quantiles and shares above limits of an estimate of numbers, see ``NumberEstimate``.

        Args:
            limits: numbers from the first inner edge to the last, for ``shares_above``.
            quantiles: in (0, 1).

        Raises:
            SpecError: if values are no numbers, if the intervals are anytime-valid, or for limits or quantiles that
                cannot be.
        """
        if self.numbers is None:
            raise SpecError(
                "Estimate.figures needs an estimate of the alphabet ordered, with intervals for one look, got "
                f"intervals of the kind {self.interval!r} for {len(self.values):,} values"
            )
        return self.numbers.figures(limits, quantiles, confidence=self.confidence)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame with one row per value, largest ``frequency`` first; see ``display.columns`` for its columns.

        ``frame.attrs`` has the number of reports, the estimator, and the share of unlisted values of an open alphabet.

        Raises:
            ImportError: if pandas is not installed.
        """
        return to_frame(self)

    def plot(self, number: int = SHOWN) -> altair.LayerChart:
        """A chart of the ``number`` largest shares with intervals that are adjusted for their selection.

        Of numbers, it shows all bins in their order, and the median.

        Raises:
            ImportError: if Altair (extra ``plot``) is not installed.
        """
        return chart(self, number)

    def _repr_html_(self) -> str:
        return to_html(self)

    def __repr__(self) -> str:
        return in_a_line(self)

    @property
    def converged(self) -> bool:
        """False if an iterative estimator reached its step limit before ``frequencies`` were proved the most likely."""
        return self.likelihood_gap is None or self.likelihood_gap <= TOLERANCE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimator(abc.ABC):
    """Turns counts into an ``Estimate``: the unbiased linear estimate and the post-processed shares."""

    id: ClassVar[str]
    max_candidates: ClassVar[int] = MAX_CANDIDATES
    """Maximum number of values of an open alphabet, including public ones, that can be estimated together."""
    is_continuous: ClassVar[bool] = False
    """Whether shares are a continuous function of the linear estimate alone, as groups that borrow need."""

    def refusal(self, model: Model, *, reports: bool = False) -> str | None:
        """Reason why this estimator cannot process counts (or, with ``reports``, the reports); None if it can."""
        return None

    def supports(self, model: Model) -> bool:
        """Whether this estimator can process counts of the model."""
        return self.refusal(model) is None

    @abc.abstractmethod
    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        """Post-processed shares of the unknowns: (U,), or (U + 1,) with the unlisted values last if the question is
        open.

        Returns:
            Shares, and the likelihood gap (None unless the estimator is iterative).
        """

    def estimate(self, model: Model, counts: CohortCounts, candidates: tuple[str, ...] | None = None) -> Estimate:
        """The estimate of one window.

        Args:
            model: the collection's alphabet and mechanism.
            counts: counts of the window's reports.
            candidates: values to estimate; in an open alphabet, in addition to its public values. None: all values of a
                closed alphabet, or the public values of an open one.

        Raises:
            SpecError: if an open alphabet gets no candidates, or a closed one a value that it does not contain.
            EstimationError: if these counts do not allow an estimate; its ``status`` gives the reason.
        """
        question = ask(model, counts, candidates)
        return self.of_linear(question, estimate_linear(question))

    def estimate_each(
        self, windows: Sequence[tuple[Model, CohortCounts]], candidates: tuple[str, ...] | None = None
    ) -> list[Estimate | EstimationError]:
        """The estimates of many windows, each the same, bit for bit, as that of ``estimate``.

        Some estimators solve them together, which takes less time.

        Args:
            windows: collection and counts of each window.
            candidates: as for ``estimate``, for all of them.

        Returns:
            One entry for each window; an error where its counts do not allow an estimate.

        Raises:
            SpecError: as for ``estimate``.
        """
        return [or_error(functools.partial(self.estimate, *window, candidates)) for window in windows]

    def of_linear(self, question: Question, linear: LinearEstimate) -> Estimate:
        """The estimate from the linear estimate of the same question."""
        return self._assemble(question, linear, *self.shares(question, linear))

    def estimate_reports(
        self, model: Model, counts: CohortCounts, batch: ReportBatch, candidates: tuple[str, ...] | None = None
    ) -> Estimate:
        """The estimate of one window from counts and reports, for estimators that need more than counts."""
        return self.estimate(model, counts, candidates)

    def _assemble(
        self, question: Question, linear: LinearEstimate, shares: np.ndarray, likelihood_gap: float | None
    ) -> Estimate:
        alphabet, picked = question.model.alphabet, question.picked
        unknowns = len(question.own)
        shown = alphabet.redistribute(shares[:unknowns])
        rest = float(linear.frequencies[question.left_out].sum()) if linear.rest_standard_error else 0.0
        rest += float(1 - linear.frequencies.sum()) if question.open else 0.0
        unclipped = PickedIntervals(linear.intervals, picked, len(linear.frequencies))
        left_over = float(shown[question.left_out].sum() + shares[unknowns:].sum())
        status = TOO_UNCERTAIN if linear.rest_is_noise else OK
        return Estimate(
            values=question.values,
            frequencies=shown[picked],
            raw_frequencies=linear.frequencies[picked],
            standard_errors=linear.standard_errors[picked],
            intervals=ShownIntervals(unclipped, linear.frequencies[picked], shown[picked]),
            unclipped=unclipped,
            num_reports=question.counts.total,
            left_over=left_over,
            raw_unexplained_mass=rest,
            unexplained_standard_error=linear.rest_standard_error,
            unexplained_intervals=functools.partial(
                interval_around,
                rest,
                linear.rest_standard_error,
                linear.rest_spare,
                shown=None if linear.rest_is_noise else left_over,
            ),
            unexplained_status=status if linear.rest_standard_error else None,
            redistributed_mass=alphabet.redistributed_mass(linear.raw),
            fit_p_value=linear.fit_p_value,
            likelihood_gap=likelihood_gap,
            common_variances=None if linear.common is None else linear.common[picked],
            in_blocks=in_blocks(question, linear, shown),
            estimator=self.id,
            numbers=None if alphabet.bin_edges is None else Numbers(model=question.model, counts=question.counts),
        )


def or_error(estimate: Callable[[], T]) -> T | EstimationError:
    """The result of a call, or why the counts do not allow it."""
    try:
        return estimate()
    except EstimationError as error:
        return error


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Input of a decoder: the linear estimate of U unknowns, for one collection or several versions of a question.

    Attributes:
        linear: the linear estimate.
        noisy: law of its raw frequencies; None if the decoder does not need it.
        own: (U,) bool, whether the unknown has a symbol of its own in all cohorts.
        open: True if people may hold values that are not among the unknowns.
        num_reports: n, number of reports.
        within: the problems of the public blocks with reports, about the shares within them; none without blocks.
    """

    linear: LinearEstimate
    noisy: Noisy | None = None
    own: np.ndarray
    open: bool
    num_reports: int
    within: tuple[BlockProblem, ...] = ()

    def in_blocks(self, decode: Callable[[Problem], np.ndarray]) -> np.ndarray:
        """The shares of a decoder, applied to the people of each public block by themselves.

        Args:
            decode: see ``Decoder.decode``, for problems without blocks.
        """
        return self.joined([decode(one.problem) for one in self.within]) if self.within else decode(self)

    def joined(self, shares: Sequence[np.ndarray]) -> np.ndarray:
        """Shares of all people from those within each block of ``within``: (U,), or (U + 1,) if the problem is open.

        Values of other blocks have the share 0; their people are among the unlisted ones.
        """
        everybody = np.zeros(len(self.own) + self.open)
        for one, found in zip(self.within, shares):
            everybody[one.positions] = one.mass * found[: len(one.positions)]
        if self.open:
            everybody[-1] = max(1 - float(everybody[:-1].sum()), 0.0)
        return everybody


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BlockProblem:
    """The problem of one public block: positions (U_b,) of its unknowns, share of its people, and their problem."""

    positions: np.ndarray
    mass: float
    problem: Problem


def problem_of(question: Question, linear: LinearEstimate) -> Problem:
    """The problem of one collection, without the law of its noise."""
    within = tuple(
        BlockProblem(positions=one.positions, mass=one.mass, problem=_problem_within(question, one))
        for one in linear.within
    )
    return Problem(
        linear=linear, own=question.own, open=question.open, num_reports=question.counts.total, within=within
    )


def _problem_within(question: Question, one: Within) -> Problem:
    if one.question is not None:
        return problem_of(one.question, one.linear)
    return Problem(linear=one.linear, own=question.own[one.positions], open=False, num_reports=one.num_reports)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decoder(Estimator):
    """An estimator that needs no more than the linear estimate and its noise, so that it can also decode a pooled
    estimate of several versions.
    """

    def problem(self, question: Question, linear: LinearEstimate) -> Problem:
        """What this decoder needs to know of a collection's counts."""
        return problem_of(question, linear)

    @abc.abstractmethod
    def decode(self, problem: Problem) -> np.ndarray:
        """Post-processed shares of the unknowns: (U,), or (U + 1,) with the unlisted values last if it is open."""

    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        return self.decode(self.problem(question, linear)), None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PostProcessed(Decoder):
    """The linear estimate, post-processed by a named map. Unlisted values of an open alphabet are one more entry."""

    @abc.abstractmethod
    def post_process(self, raw: np.ndarray) -> np.ndarray:
        """Map raw frequencies (S,) of a complete list, the unlisted values included, to post-processed ones (S,)."""

    def decode(self, problem: Problem) -> np.ndarray:
        return problem.in_blocks(lambda one: self.post_process(everybody(one)))


def everybody(problem: Problem) -> np.ndarray:
    """Raw frequencies (U,), followed by that of the unlisted values if the problem is open.

    If the unlisted share is unknown, it is set to 0: a raw value of -5 or 7 would dominate all other shares.
    """
    raw = problem.linear.raw
    if not problem.open:
        return raw
    return np.append(raw, 0.0 if problem.linear.rest_is_noise else 1 - raw.sum())


def find_intervals(estimates: Sequence[Estimate], number: int | None) -> None:
    """Compute ``ci_low``, ``ci_high`` and ``display_intervals(number)`` of estimates of short lists together, which
    takes less time; each is the same, bit for bit, as alone. Others are computed when they are asked for.

    Args:
        estimates: in any order.
        number: None: of all values.
    """
    alike: dict[tuple[int, float], list[tuple[Estimate, ShownIntervals]]] = {}
    for one in estimates:
        if len(one.values) > _SHORT or not isinstance(one.intervals, ShownIntervals):
            continue
        if one.intervals.kind is not None:
            alike.setdefault((one.intervals.kind, one.confidence), []).append((one, one.intervals))
    for (_, confidence), found_alike in alike.items():
        members, own = zip(*found_alike)
        together = ShownIntervals.joined(own)
        numbers = [len(one.values) if number is None else number for one in members]
        levels = np.concatenate([one.display_levels(shown) for one, shown in zip(members, numbers)])
        ends = np.array([together(confidence), together(levels, strict=True)])
        found = np.split(ends, np.cumsum([len(one.values) for one in members])[:-1], axis=-1)
        for one, shown, (plain, strict) in zip(members, numbers, found):
            one.__dict__["_plain"] = plain[0], plain[1]
            one._strict[shown] = strict[0], strict[1]


def interval_around(
    share: float, error: float, spare: float, confidence: float, shown: float | None = None
) -> tuple[float, float]:
    """Interval of a share whose error has ``spare`` degrees of freedom, ``cut`` to [0, 1] and extended to the displayed
    share, if there is one."""
    half = quantile(spare, confidence) * error
    low, high = cut(share - half, share + half, share)
    low, high = (low, high) if shown is None else reaching(low, high, shown)
    return float(low), float(high)


def _at_levels(
    intervals: Intervals, level: Level, confidence: Confidence, strict: bool = False, **edge: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals at the level that ``level`` returns for the requested confidence."""
    return intervals(level(confidence), strict, **edge)


def _at_level(ends: Callable[[float], tuple[float, float]], level: Level, confidence: float) -> tuple[float, float]:
    """Ends at the level that ``level`` returns for the requested confidence."""
    return ends(float(level(confidence)))


def check_liars(where: str, model: Model, share: float) -> None:
    """Refuse a share of liars outside [0, 1), and collections whose estimates it does not bound; raises SpecError."""
    if not (is_number(share) and 0 <= share < 1):
        raise SpecError(f"{where} must have a share in [0, 1), got {describe(share)}")
    if need := need_of_liars(model):
        raise SpecError(f"{where} needs {need}, got collection {model.id!r}")


def _among_honest(
    intervals: Intervals, lies: Lies, confidence: Confidence, strict: bool = False, at_edge: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals widened for the lies, not clipped."""
    return lies.bounds(*intervals(confidence, strict, at_edge))
