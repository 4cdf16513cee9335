"""A known list of values, some or all of them sensitive."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism
from uldp_transforms.ldp.mechanisms.mechanism import MAX_SYMBOLS
from uldp_transforms.ldp.utility.arguments import require_share
from uldp_transforms.ldp.utility.minimax import uldp_minimax
from uldp_transforms.ldp.utility.planned_question import (
    PlannedQuestion,
    Setup,
    best_size,
    build,
    comparable,
    placeholders,
)
from uldp_transforms.ldp.utility.theta import optimal_theta
from uldp_transforms.ldp.utility.worst_case import TwoBlocks


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClosedQuestion(PlannedQuestion):
    """The frequencies of all values of a list.

    Attributes:
        num_values: w.
        num_sensitive: v in [1, w].
        sensitive_share: a guess of the share of people with sensitive values, only for v < w; frequencies are then
            the worst ones with this share. None: the worst ones at all.
    """

    num_values: int
    num_sensitive: int
    sensitive_share: float | None = None

    def __post_init__(self) -> None:
        require_int("ClosedQuestion.num_values", self.num_values, 2, MAX_SYMBOLS)
        require_int("ClosedQuestion.num_sensitive", self.num_sensitive, 1, self.num_values)
        if self.sensitive_share is not None:
            require_share("ClosedQuestion.sensitive_share", self.sensitive_share)
            if self.num_sensitive == self.num_values:
                raise SpecError(
                    f"ClosedQuestion.sensitive_share must be absent where all values are sensitive, "
                    f"got {self.sensitive_share!r}"
                )

    @property
    def num_frequencies(self) -> int:
        return self.num_values

    @property
    def num_tests(self) -> int:
        return self.num_sensitive

    def setups(self) -> dict[str, Callable[[float], Setup | None]]:
        """Every mechanism by itself; those with a theta also with 1/2 (if all is protected) and with the best one."""
        found: dict[str, Callable[[float], Setup | None]] = {}
        for name, cls in comparable().items():
            protected = self.num_values if cls.protects_all else self.num_sensitive
            if not cls.protects_all and self.num_sensitive == self.num_values:
                continue
            if cls.takes("subset_size"):
                if protected > 2:
                    found[name] = functools.partial(self._setup if cls.protects_all else self._best_subsets, name)
                continue
            found[name] = functools.partial(self._setup, name)
            if cls.takes("theta") and cls.protects_all:
                found[f"{name}, theta 0.5"] = functools.partial(self._setup, name, theta=0.5)
            if cls.takes("theta"):
                found[f"{name}, best theta"] = functools.partial(self._best_theta, name)
        return found

    def _setup(self, name: str, epsilon: float, **fields: Any) -> Setup:
        mechanism = build(name, self.num_values, self.num_sensitive, epsilon=epsilon, **fields)
        blocks, (first, second) = self._blocks(mechanism)
        share = second / blocks.sizes[0], (1 - second) / blocks.sizes[1]
        return Setup(
            mechanism=mechanism,
            alphabet={"id": "closed"},
            num_cohorts=1,
            l1=blocks.l1(first),
            l2=blocks.l2(second),
            worst_l2=blocks.l2(blocks.worst_share_of_l2),
            null_variance=float(mechanism.null_variances(np.repeat(share, blocks.sizes))[0]),
        )

    def _blocks(self, mechanism: Mechanism) -> tuple[TwoBlocks, tuple[float, float]]:
        """The two blocks, and the shares of the first one for which l1 and l2 are meant."""
        if self.num_sensitive == self.num_values:
            blocks = TwoBlocks.of(mechanism)
        else:
            blocks = TwoBlocks.of(mechanism, self.num_sensitive)
        if self.sensitive_share is not None:
            return blocks, (self.sensitive_share, self.sensitive_share)
        return blocks, (blocks.worst_share_of_l1, blocks.worst_share_of_l2)

    def _best_theta(self, name: str, epsilon: float) -> Setup:
        if self.sensitive_share is None or MECHANISMS[name].protects_all:
            return self._setup(name, epsilon, theta="optimal")
        return self._setup(name, epsilon, theta=optimal_theta(self.num_sensitive, epsilon, self.sensitive_share))

    def _best_subsets(self, name: str, epsilon: float) -> Setup:
        @functools.cache
        def sized(size: int) -> Setup:
            return self._setup(name, epsilon, subset_size=size)

        return sized(best_size(self.num_sensitive - 1, lambda size: sized(size).l2))

    def least_l2(self, epsilon: float) -> float:
        return uldp_minimax(self.num_values, self.num_sensitive, epsilon).risk

    def without_privacy(self) -> tuple[float, float]:
        first = self.num_sensitive if self.num_sensitive < self.num_values else self.num_values - 1
        sizes = (first, self.num_values - first)
        blocks = TwoBlocks(sizes, ((1 / sizes[0], 0.0), (0.0, 1 / sizes[1])))
        share = self.sensitive_share
        if share is None:
            share = sizes[0] / self.num_values
        return blocks.l1(share), blocks.l2(share)

    def named_alphabet(self, setup: Setup) -> dict[str, Any]:
        values = placeholders(self.num_values)
        some = {"sensitive": values[: self.num_sensitive]} if self.num_sensitive < self.num_values else {}
        return setup.alphabet | {"values": values} | some
