"""The estimation problem: requested values, counts, and the unknowns that are solved for; and its linear estimate."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Protocol

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import NoReportsError, SpecError
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.intervals import quantile

MAX_CANDIDATES = 1 << 20
"""Maximum number of candidates per estimate over a hashed alphabet, including its non-sensitive values."""

MAX_DENSE = 8192
"""Maximum number of unknowns S of an open alphabet for dense S x S matrices and for the likelihood."""

MOST_UNCERTAIN = 0.5
"""Maximum width of the interval of the unlisted share, at the default confidence, for which it counts as estimated."""

_LARGE = 1 << 22
"""Number of symbols above which a symbol table is large: 32 MiB."""


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """U unknown frequencies, and the positions of the requested values among them.

    If every value has a symbol of its own, the unknowns are the K symbols (including tags). Otherwise they are values:
    all values of a permuted alphabet, or the candidates and the public values of a hashed one, which are all requested.

    Attributes:
        model: the collection's alphabet and mechanism.
        counts: counts of its reports; at least one report.
        values: the requested values as texts.
        picked: (len(values),) positions of these values among the unknowns.
        unknowns: the unknown values as texts; empty if the unknowns are symbols.
        tabulate: function that returns the symbol table of chosen unknowns, (U,) bool, see ``table``.
        own: (U,) bool, whether the unknown has a symbol of its own in all cohorts.
        sensitive: (U,) bool, whether the alphabet marks it as sensitive; a mechanism may protect others too.
        open: True if people may hold values that are not among the unknowns.
    """

    model: Model
    counts: CohortCounts
    values: tuple[str, ...]
    picked: np.ndarray
    unknowns: tuple[str, ...]
    tabulate: Callable[[np.ndarray], np.ndarray]
    own: np.ndarray
    sensitive: np.ndarray
    open: bool

    def table(self, chosen: np.ndarray) -> np.ndarray:
        """(1, S) or (C, S) or (C, S, h) int64, the symbols of the chosen unknowns, (U,) bool, in each cohort."""
        return self.tabulate(chosen)

    def texts(self, chosen: np.ndarray) -> tuple[str, ...]:
        """The texts of the chosen unknowns, (U,) bool."""
        return self.unknowns if chosen.all() else tuple(itertools.compress(self.unknowns, chosen))

    @property
    def of_symbols(self) -> bool:
        """True if the unknowns are the K symbols, in their order."""
        return not self.open and bool(self.own.all())

    @property
    def left_out(self) -> np.ndarray:
        """(U,) bool: unknowns that were not requested."""
        mask = np.ones(len(self.own), dtype=bool)
        mask[self.picked] = False
        return mask


class Intervals(Protocol):
    """Intervals of S frequencies."""

    def __call__(
        self, confidence: Confidence, strict: bool = False, at_edge: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The lower ends (S,) and upper ends (S,).

        Args:
            confidence: in (0, 1); may be (S,), with nan where no interval is needed.
            strict: guarantee the coverage for every frequency, also for rare values and high confidence.
            at_edge: intervals that the nearest shares would have, for estimates outside [0, 1]; others do not matter.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class LinearEstimate:
    """Unbiased frequencies of the U unknowns before any post-processing.

    Attributes:
        raw: (U,), of the unknowns; unknowns of which only holders are counted use their own counts alone.
        joint: (U,), of the unknowns, with minimum variance; equals ``raw`` unless there are several kinds of protected
            reports.
        null_errors: (U,), standard error of ``raw`` if nobody held the value; 0 where only holders are counted.
        frequencies: (U,), of values: ``joint``, with the people behind tags distributed over the values.
        standard_errors: (U,), of ``frequencies``; above 0.
        intervals: function of a confidence, such as 0.95, that returns the ends low (U,), high (U,), not clipped to
            [0, 1].
        rest_standard_error: of the total share of all values outside the question; 0 if there are none.
        rest_spare: degrees of freedom of that error; infinity if they are negligible.
        common: (U,) hash noise: the part of the variances that is the same in all windows. Unbiased, so possibly
            negative. None where no symbols are hashed.
        fit_p_value: for hashed symbols, the p-value of the residuals; None if there are no residuals.
        of_sums: (2, R), variances of the requested weighted sums of ``frequencies``, and the ``common`` part of them.
        within: the public blocks with reports; none without blocks.
        block_frequencies: (U,) share of the reports that state the block of each unknown; None without blocks.
    """

    raw: np.ndarray
    joint: np.ndarray
    null_errors: np.ndarray
    frequencies: np.ndarray
    standard_errors: np.ndarray
    intervals: Intervals
    rest_standard_error: float
    rest_spare: float = np.inf
    fit_p_value: float | None = None
    common: np.ndarray | None = None
    of_sums: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((2, 0)))
    within: tuple[Within, ...] = ()
    block_frequencies: np.ndarray | None = None

    @property
    def rest_is_noise(self) -> bool:
        """Whether the interval of the share outside the question is uninformative: at the default confidence, which
        estimates must not depend on, more than half as long as [0, 1]."""
        if not self.rest_standard_error:
            return False
        return bool(2 * quantile(self.rest_spare, CONFIDENCE) * self.rest_standard_error > MOST_UNCERTAIN)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Within:
    """The part of a linear estimate that concerns the people of one public block.

    Attributes:
        positions: (U_b,) of its unknowns among those of the question.
        mass: share of the reports that state this block, above 0.
        num_reports: their number.
        linear: of the shares within the block.
        question: about these people alone; None if the unknowns are symbols.
        standard_errors, intervals: of the shares within the block, given ``num_reports``.
    """

    positions: np.ndarray
    mass: float
    num_reports: int
    linear: LinearEstimate
    question: Question | None
    standard_errors: np.ndarray
    intervals: Intervals


def ask(model: Model, counts: CohortCounts, candidates: tuple[str, ...] | None) -> Question:
    """Build the question for ``Estimator.estimate``; see there for arguments and errors."""
    if counts.total == 0:
        raise NoReportsError(f"collection {model.id!r}: an estimate needs at least 1 report, got 0")
    alphabet = model.alphabet
    known = alphabet.known_values
    asked = alphabet.estimated_values(candidates)
    if not asked:
        raise SpecError(f"collection {model.id!r} has an open alphabet and needs a list of candidate values, got none")
    if known is None and len(asked) > MAX_CANDIDATES:
        raise SpecError(
            "candidates of an open alphabet, including its non-sensitive values, must be at most "
            f"{MAX_CANDIDATES}, got {len(asked)}"
        )
    solved = asked if known is None else known
    positions = _positions(model.id, solved, asked)
    own = alphabet.has_own_symbol(solved)
    if known is None or not own.all():
        return _of_values(model, counts, asked, solved, positions, own)
    symbols = symbol_table(alphabet, solved, model.num_cohorts)[0]
    everything = np.arange(alphabet.num_symbols)
    return Question(
        model=model,
        counts=counts,
        values=asked,
        picked=symbols[positions],
        unknowns=(),
        tabulate=lambda chosen: everything[np.newaxis, chosen],
        own=everything >= 0,
        sensitive=everything < alphabet.num_sensitive,
        open=False,
    )


def _of_values(
    model: Model,
    counts: CohortCounts,
    asked: tuple[str, ...],
    solved: tuple[str, ...],
    positions: np.ndarray,
    own: np.ndarray,
) -> Question:
    """A question whose unknowns are values; refuses more shared clear buckets than dense matrices allow."""
    alphabet = model.alphabet
    clear = set(alphabet.clear_values)
    sensitive = np.fromiter((value not in clear for value in solved), dtype=bool, count=len(solved))
    dense = np.count_nonzero(~own & ~sensitive)
    if dense > MAX_DENSE:
        raise SpecError(
            f"non-sensitive values of an open alphabet that share clear buckets must be at most {MAX_DENSE}, "
            f"got {dense}"
        )

    def tabulate(chosen: np.ndarray) -> np.ndarray:
        return symbol_table(alphabet, question.texts(chosen), model.num_cohorts)

    question = Question(
        model=model,
        counts=counts,
        values=asked,
        picked=positions,
        unknowns=solved,
        tabulate=tabulate,
        own=own,
        sensitive=sensitive,
        open=alphabet.known_values is None,
    )
    return question


def _positions(collection_id: str, values: tuple[str, ...], asked: tuple[str, ...]) -> np.ndarray:
    if asked == values:
        return np.arange(len(values))
    position = {value: i for i, value in enumerate(values)}
    strangers = sum(value not in position for value in asked)
    if strangers:
        raise SpecError(
            f"collection {collection_id!r} has a closed alphabet of {len(values)} values, got {strangers} "
            "candidate(s) outside this list"
        )
    return np.array([position[value] for value in asked], dtype=np.int64)


def symbol_table(alphabet: Alphabet, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
    """``alphabet.symbol_table``, cached between windows: 32 tables, and 2 large ones."""
    is_large = len(values) * num_cohorts * alphabet.num_hashes > _LARGE
    return (_large_table if is_large else _small_table)(alphabet, values, num_cohorts)


def _table(alphabet: Alphabet, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
    return alphabet.symbol_table(values, num_cohorts)


_small_table, _large_table = (functools.lru_cache(maxsize=number)(_table) for number in (32, 2))
