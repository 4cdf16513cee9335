"""Questions about a known list of values, some or all of them sensitive."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism, SetReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import MAX_SYMBOLS
from uldp_transforms.ldp.model import MAX_COHORTS
from uldp_transforms.ldp.planning.cpu_time import client_seconds, window_seconds
from uldp_transforms.ldp.planning.folded_lists import FOLDS, LONG_LIST, Fold, FoldedList
from uldp_transforms.ldp.planning.forecast import Groups, of_symbols, told
from uldp_transforms.ldp.planning.planned_question import (
    Forecast,
    PlannedQuestion,
    Setup,
    best_subsets,
    build,
    comparable,
    placeholders,
)
from uldp_transforms.ldp.utility.arguments import require_distribution, require_share
from uldp_transforms.ldp.utility.minimax import uldp_minimax
from uldp_transforms.ldp.utility.theta import optimal_theta
from uldp_transforms.ldp.utility.worst_case import TwoBlocks


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
    """

    num_values: int
    num_sensitive: int
    sensitive_share: float | None = None
    frequencies: tuple[float, ...] | None = None
    names: tuple[str, ...] | None = None
    max_cohorts: int = MAX_COHORTS

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

    @property
    def num_frequencies(self) -> int:
        return self.num_values

    @property
    def num_tests(self) -> int:
        return self.num_sensitive

    def setups(self, num_reports: int) -> dict[str, Callable[[float], Setup | None]]:
        """The rows of all ``CANDIDATES``."""
        return {name: make for rows in CANDIDATES for name, make in rows(self, num_reports).items()}

    def own_symbols(self) -> dict[str, Callable[[float], Setup | None]]:
        """Rows with a symbol for each value: every mechanism; those with a theta also with theta 1/2 (if all values are
        protected) and the best theta.

        The best sizes are the same for any number of reports.
        """
        found: dict[str, Callable[[float], Setup | None]] = {}
        for name, cls in comparable().items():
            protected = self.num_values if cls.protects_all else self.num_sensitive
            if not cls.protects_all and self.num_sensitive == self.num_values:
                continue
            if cls.takes("subset_size"):
                if cls.protects_all and protected > 2:
                    found[name] = functools.partial(self._setup, name)
                elif not cls.protects_all and protected > 1:
                    found[name] = functools.partial(self._best_subsets, name)
                continue
            found[name] = functools.partial(self._setup, name)
            if cls.takes("theta") and cls.protects_all:
                found[f"{name}, theta 0.5"] = functools.partial(self._setup, name, theta=0.5)
            if cls.takes("theta"):
                found[f"{name}, best theta"] = functools.partial(self._best_theta, name)
        return found

    def _setup(self, name: str, epsilon: float, **fields: Any) -> Setup:
        mechanism = build(name, self.num_values, self.num_sensitive, epsilon=epsilon, **fields)
        assert isinstance(mechanism, SetReportMechanism), "others are not compared"
        blocks = self._blocks(mechanism)
        places = self._places(blocks)
        (at_l1, _), (at_l2, sensitive) = (of_symbols(mechanism, p, self.num_sensitive) for p in places)
        null = float(mechanism.null_variances(places[1])[0])

        def forecast(num_reports: int) -> Forecast:
            return Forecast(
                for_l1=at_l1.of(num_reports),
                for_l2=at_l2.of(num_reports),
                sensitive=sensitive.of(num_reports),
                null_variance=null / num_reports,
            )

        return Setup(
            mechanism=mechanism,
            alphabet={"id": "closed"},
            num_cohorts=1,
            forecast=forecast,
            l2=lambda num_reports: at_l2.of(num_reports).l2,
            noise=at_l2.of(1).l2,
            worst_l2=blocks.l2(blocks.worst_share_of_l2),
            client_seconds=client_seconds(mechanism),
            window_seconds=lambda n: window_seconds(mechanism, n, self.num_values),
        )

    def _blocks(self, mechanism: Mechanism) -> TwoBlocks:
        if self.num_sensitive == self.num_values:
            return TwoBlocks.of(mechanism)
        return TwoBlocks.of(mechanism, self.num_sensitive)

    def _places(self, blocks: TwoBlocks) -> tuple[np.ndarray, np.ndarray]:
        """The frequencies (K,) at which l1 is forecast, and those at which l2 and all other errors are."""
        if self.frequencies is not None:
            p = np.array(self.frequencies)
            return p, p
        share = self.sensitive_share
        shares = (blocks.worst_share_of_l1, blocks.worst_share_of_l2) if share is None else (share, share)
        first, second = (np.repeat([a / blocks.sizes[0], (1 - a) / blocks.sizes[1]], blocks.sizes) for a in shares)
        return first, second

    def _best_theta(self, name: str, epsilon: float) -> Setup:
        share = self.sensitive_share if self.frequencies is None else sum(self.frequencies[: self.num_sensitive])
        if share is None or MECHANISMS[name].protects_all:
            return self._setup(name, epsilon, theta="optimal")
        return self._setup(name, epsilon, theta=optimal_theta(self.num_sensitive, epsilon, min(share, 1.0)))

    def _best_subsets(self, name: str, epsilon: float) -> Setup | None:
        make = functools.partial(self._setup, name, epsilon)
        return best_subsets(make, self.num_values, self.num_sensitive)

    def least_l2(self, epsilon: float) -> float:
        return uldp_minimax(self.num_values, self.num_sensitive, epsilon).risk

    def without_privacy(self, num_reports: int) -> Forecast:
        first = self.num_sensitive if self.num_sensitive < self.num_values else self.num_values - 1
        sizes = (first, self.num_values - first)
        blocks = TwoBlocks(sizes, ((1 / sizes[0], 0.0), (0.0, 1 / sizes[1])))
        p = self._places(blocks)[1] if self._is_given else np.full(self.num_values, 1 / self.num_values)
        everything, sensitive = told(Groups.of(p), num_reports), told(Groups.of(p[: self.num_sensitive]), num_reports)
        return Forecast(for_l1=everything, for_l2=everything, sensitive=sensitive, null_variance=0.0)

    @property
    def _is_given(self) -> bool:
        return self.frequencies is not None or self.sensitive_share is not None

    def named_alphabet(self, setup: Setup) -> dict[str, Any]:
        values = placeholders(self.num_values) if self.names is None else list(self.names)
        return setup.alphabet | setup.lists(values[: self.num_sensitive], values[self.num_sensitive :])


def _folded(fold: Fold, question: ClosedQuestion, num_reports: int) -> dict[str, Callable[[float], Setup | None]]:
    """The rows of a list that is long enough to be folded."""
    if question.num_sensitive <= LONG_LIST or question.max_cohorts < 2:
        return {}
    folded = FoldedList(
        fold=fold,
        num_candidates=question.num_sensitive,
        num_non_sensitive=question.num_values - question.num_sensitive,
        sensitive_share=question.sensitive_share,
        frequencies=question.frequencies,
        max_cohorts=question.max_cohorts,
    )
    return folded.rows(num_reports)


Rows = Callable[[ClosedQuestion, int], dict[str, Callable[[float], Setup | None]]]
"""Function of a question and a number of reports that returns setups by name, see ``PlannedQuestion.setups``."""

CANDIDATES: tuple[Rows, ...] = (
    lambda question, _: question.own_symbols(),
    *(functools.partial(_folded, fold) for fold in FOLDS),
)
"""What the planner compares for a known list; each entry makes the rows that suit the question, if there are any."""
