"""Questions about a known list of values, some or all of them sensitive."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from uldp_transforms.ldp.alphabets import Blocks
from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON, MAX_SYMBOLS
from uldp_transforms.ldp.mechanisms.nested.nested_channel import Level
from uldp_transforms.ldp.model import MAX_COHORTS
from uldp_transforms_planner.planning.folded_lists import FOLDS, Fold, FoldedList
from uldp_transforms_planner.planning.forecast import Groups, told
from uldp_transforms_planner.planning.listed_values import ComparedMechanisms, ListedValues, Makers
from uldp_transforms_planner.planning.planned_question import Forecast, PlannedQuestion, Setup, build, placeholders
from uldp_transforms_planner.planning.structured_rows import rows_of_blocks, rows_of_levels, values_by_symbol
from uldp_transforms_planner.utility.arguments import require_distribution, require_share
from uldp_transforms_planner.utility.minimax import uldp_minimax


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClosedQuestion(PlannedQuestion):
    """The frequencies of all values of a list.

    Attributes:
        num_values: w.
        num_sensitive: v in [1, w].
        sensitive_share: assumed share of people with sensitive values, only for v < w; frequencies are the worst case
            with this share. None: the worst case over all shares.
        frequencies: assumed frequencies, sensitive values first, summing to 1; excludes ``sensitive_share``. None: the
            worst case.
        names: names of the values, in the same order; None: placeholders.
        max_cohorts: maximum number of cohorts of a folded list; 1: lists are not folded.
        blocks: the public blocks of the values, with closed members; ``names`` are then in the order of its symbols.
            None: the block of a value is not public.
        levels: increasing epsilons of sensitive values, all of which have a level, by their ``names``; epsilon of the
            plan is then that of the first level, and others are in proportion. None: all have the same epsilon.
    """

    num_values: int
    num_sensitive: int
    sensitive_share: float | None = None
    frequencies: tuple[float, ...] | None = None
    names: tuple[str, ...] | None = None
    max_cohorts: int = MAX_COHORTS
    blocks: Blocks | None = None
    levels: tuple[Level, ...] | None = None

    def __post_init__(self) -> None:
        require_int("ClosedQuestion.max_cohorts", self.max_cohorts, 1, MAX_COHORTS)
        require_int("ClosedQuestion.num_values", self.num_values, 2, MAX_SYMBOLS)
        require_int("ClosedQuestion.num_sensitive", self.num_sensitive, 1, self.num_values)
        if self.sensitive_share is not None:
            require_share("ClosedQuestion.sensitive_share", self.sensitive_share)
            if self.num_sensitive == self.num_values:
                raise SpecError(
                    "ClosedQuestion.sensitive_share must be absent if all values are sensitive, got "
                    f"{self.sensitive_share!r}"
                )

        if self.frequencies is not None:
            require_distribution("ClosedQuestion.frequencies", np.array(self.frequencies), self.num_values)
            if self.sensitive_share is not None:
                raise SpecError(
                    "ClosedQuestion.sensitive_share must be absent if frequencies are given, got "
                    f"{self.sensitive_share!r}"
                )
        if self.names is not None and len(set(self.names)) != self.num_values:
            raise SpecError(
                f"ClosedQuestion.names must be {self.num_values} different texts, got {len(set(self.names))}"
            )
        if self.blocks is not None:
            sensitive = self.blocks.num_sensitive
            if self.names != values_by_symbol(self.blocks) or self.num_sensitive != sensitive:
                raise SpecError(
                    f"ClosedQuestion.names must be the values of the blocks in the order of their symbols, {sensitive} "
                    "of them sensitive, got others"
                )
        if self.levels is not None:
            of_levels = sorted(value for level in self.levels for value in level.values or ())
            if self.names is None or of_levels != sorted(self.names[: self.num_sensitive]):
                raise SpecError("ClosedQuestion.levels must have each sensitive value of names once, got others")

    @property
    def num_frequencies(self) -> int:
        return self.num_values

    @property
    def num_tests(self) -> int:
        return self.num_sensitive

    @property
    def max_epsilon(self) -> float:
        """With levels the epsilons of later ones grow in proportion."""
        return MAX_EPSILON * (self.levels[0].epsilon / self.levels[-1].epsilon if self.levels else 1.0)

    def setups(self, num_reports: int) -> Makers:
        """The rows of all ``CANDIDATES`` whose needs the question meets."""
        found = (candidate.rows(self, num_reports) for candidate in CANDIDATES if candidate.needs(self))
        return {name: make for rows in found for name, make in rows.items()}

    @property
    def held(self) -> dict[str, Any]:
        """What is assumed of people, as fields of ``ListedValues``."""
        return {
            "num_sensitive": self.num_sensitive,
            "frequencies": None if self.frequencies is None else np.array(self.frequencies),
            "sensitive_share": self.sensitive_share,
        }

    def flat_rows(self) -> Makers:
        """Rows with a symbol for each value and one epsilon for all sensitive ones: every mechanism."""
        w, v = self.num_values, self.num_sensitive
        kinds = (np.arange(w) >= v).astype(np.int64)
        return ComparedMechanisms(
            sizes=((w, v),),
            values=ListedValues(kinds=kinds, has_optimum=True, **self.held),
            build=functools.partial(build, num_symbols=w, num_sensitive=v),
            theta_share=self.sensitive_share if self.frequencies is None else sum(self.frequencies[:v]),
        ).rows()

    def least_l2(self, epsilon: float) -> float:
        return uldp_minimax(self.num_values, self.num_sensitive, epsilon).risk

    def without_privacy(self, num_reports: int) -> Forecast:
        w, v, share = self.num_values, self.num_sensitive, self.sensitive_share
        p = np.full(w, 1 / w) if self.frequencies is None else np.array(self.frequencies)
        if share is not None:
            p = np.repeat([share / v, (1 - share) / (w - v)], [v, w - v])
        everything, sensitive = told(Groups.of(p), num_reports), told(Groups.of(p[:v]), num_reports)
        return Forecast(for_l1=everything, for_l2=everything, sensitive=sensitive, null_variance=0.0)

    def named_alphabet(self, setup: Setup) -> dict[str, Any]:
        values = placeholders(self.num_values) if self.names is None else list(self.names)
        return setup.alphabet | setup.lists(values[: self.num_sensitive], values[self.num_sensitive :])


def _folded(fold: Fold, question: ClosedQuestion, num_reports: int) -> Makers:
    folded = FoldedList(
        fold=fold,
        num_candidates=question.num_sensitive,
        num_non_sensitive=question.num_values - question.num_sensitive,
        sensitive_share=question.sensitive_share,
        frequencies=question.frequencies,
        max_cohorts=question.max_cohorts,
    )
    return folded.rows(num_reports)


def _blocks(question: ClosedQuestion, _: int) -> Makers:
    assert question.blocks is not None
    return rows_of_blocks(question.blocks, **question.held)


def _levels(question: ClosedQuestion, _: int) -> Makers:
    assert question.levels is not None and question.names is not None
    return rows_of_levels(question.levels, question.names, **question.held)


class Candidate(NamedTuple):
    """Rows that the planner compares.

    Attributes:
        needs: whether a question has what the rows need.
        rows: function of such a question and a number of reports that returns setups by name.
    """

    needs: Callable[[ClosedQuestion], bool]
    rows: Callable[[ClosedQuestion, int], Makers]


CANDIDATES: tuple[Candidate, ...] = (
    Candidate(lambda question: True, lambda question, _: question.flat_rows()),
    *(Candidate(lambda question: question.max_cohorts > 1, functools.partial(_folded, fold)) for fold in FOLDS),
    Candidate(lambda question: question.blocks is not None, _blocks),
    Candidate(lambda question: question.levels is not None, _levels),
)
"""What the planner compares for a known list."""
