"""Ways to ask a question, with their expected errors: what the planner compares."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any

from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup:
    """A mechanism over an alphabet, and its errors per report (population model, raw estimates).

    Attributes:
        mechanism: over the alphabet's symbols.
        alphabet: its JSON form without long lists of values.
        num_cohorts: C.
        l1: sqrt(n) times the expected sum of absolute errors over all values, by the normal approximation.
        l2: n times the expected sum of squared errors over all values.
        worst_l2: the largest ``l2`` over all distributions; ``l2`` itself unless a share was guessed.
        null_variance: n times the variance of the estimate of a sensitive value that nobody holds.
    """

    mechanism: Mechanism
    alphabet: dict[str, Any]
    num_cohorts: int
    l1: float
    l2: float
    worst_l2: float
    null_variance: float


class PlannedQuestion(abc.ABC):
    """What is asked of people, apart from epsilon and the mechanism."""

    @property
    @abc.abstractmethod
    def num_frequencies(self) -> int:
        """Values whose frequencies are wanted."""

    @property
    @abc.abstractmethod
    def num_tests(self) -> int:
        """Sensitive values that one looks for."""

    @abc.abstractmethod
    def setups(self) -> dict[str, Callable[[float], Setup | None]]:
        """Name -> the setup for an epsilon, with the best sizes for it; None if no collection can have these sizes."""

    @abc.abstractmethod
    def least_l2(self, epsilon: float) -> float | None:
        """n times the least possible worst squared error of any mechanism; None where it is not known."""

    @abc.abstractmethod
    def without_privacy(self) -> tuple[float, float]:
        """``l1`` and ``l2`` of a setup in which people tell their values."""

    @abc.abstractmethod
    def named_alphabet(self, setup: Setup) -> dict[str, Any]:
        """The alphabet of a setup with placeholders ``value-001``, ``value-002``, ... where it lists values."""


def placeholders(number: int) -> list[str]:
    """``value-001`` and so on, all of one length."""
    width = max(3, len(str(number)))
    return [f"value-{i:0{width}}" for i in range(1, number + 1)]


def comparable() -> dict[str, type[Mechanism]]:
    """The mechanisms for values of any kind, by id: those that protect all symbols first."""
    classes = {name: MECHANISMS[name] for name in MECHANISMS}
    fitting = {name: cls for name, cls in classes.items() if not (cls.declares_priors or cls.last_is_missing)}
    return dict(sorted(fitting.items(), key=lambda item: not item[1].protects_all))


def build(name: str, num_symbols: int, num_sensitive: int, **fields: Any) -> Mechanism:
    """The mechanism with this id."""
    return MECHANISMS[name](num_symbols=num_symbols, num_sensitive=num_sensitive, **fields)


def best_size(largest: int, loss: Callable[[int], float]) -> int:
    """The size in [1, largest] with the least loss, for losses that fall and then rise; O(log largest)."""
    low, high = 1, largest
    while low < high:
        middle = (low + high) // 2
        if loss(middle) <= loss(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def normal_l1(number: int, variance: float) -> float:
    """What ``number`` values with this variance of one report add to ``l1``."""
    return math.sqrt(2 / math.pi) * number * math.sqrt(max(variance, 0.0))
