"""Ways to ask a question, with their expected errors: what the planner compares."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

from scipy import optimize

from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism
from uldp_transforms.ldp.mechanisms.subset_selection import SMALLEST_SHARE
from uldp_transforms.ldp.planning.forecast import Estimates, Together

_FINEST_STEP = 1.04  # of sizes: the loss is flat around the best one
_DIGITS = 4  # of the share of larger subsets
_WORTH_IT = 1.0002  # a second size has to save more than this part


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """What to expect of the raw estimates from n reports.

    Attributes:
        for_l1: all values, at the frequencies for which ``l1`` is meant.
        for_l2: all values, at those for which everything else is meant.
        sensitive: the sensitive ones of ``for_l2``.
        null_variance: of the estimate of a sensitive value that nobody holds.
    """

    for_l1: Estimates | Together
    for_l2: Estimates | Together
    sensitive: Estimates
    null_variance: float

    @property
    def l1(self) -> float:
        """Expected sum of absolute errors over all values."""
        return self.for_l1.l1

    @property
    def l2(self) -> float:
        """Expected sum of squared errors over all values."""
        return self.for_l2.l2

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of a sensitive value, root mean square over these."""
        return self.sensitive.half_width()

    def change(self, num_tests: int) -> float:
        """How much a sensitive value must change between two windows to be noticed; see ``Estimates.change``."""
        return self.sensitive.change(num_tests)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup:
    """A mechanism over an alphabet, and what to expect of it (population model, raw estimates).

    Attributes:
        mechanism: over the alphabet's symbols.
        alphabet: its JSON form without long lists of values.
        num_cohorts: C.
        forecast: from n.
        l2: the same of the expected sum of squared errors alone, which is quicker.
        noise: n times the expected sum of squared errors, without what does not fall with n: chooses sizes.
        worst_l2: n times the largest expected sum of squared errors over all distributions; None where that is not
            known.
    """

    mechanism: Mechanism
    alphabet: dict[str, Any]
    num_cohorts: int
    forecast: Callable[[int], Forecast]
    l2: Callable[[int], float]
    noise: float
    worst_l2: float | None = None


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
    def setups(self, num_reports: int) -> dict[str, Callable[[float], Setup | None]]:
        """Name -> the setup for an epsilon, with the best sizes for it and for so many reports.

        None if no collection can have such sizes.
        """

    @abc.abstractmethod
    def least_l2(self, epsilon: float) -> float | None:
        """n times the least possible worst squared error of any mechanism; None where it is not known."""

    @abc.abstractmethod
    def without_privacy(self, num_reports: int) -> Forecast:
        """What to expect if people tell their values."""

    @abc.abstractmethod
    def named_alphabet(self, setup: Setup) -> dict[str, Any]:
        """The alphabet of a setup with its values: their names, or placeholders ``value-001``, ``value-002``, ..."""


def placeholders(number: int) -> list[str]:
    """``value-001`` and so on, all of one length."""
    width = max(3, len(str(number)))
    return [f"value-{i:0{width}}" for i in range(1, number + 1)]


def comparable() -> dict[str, type[Mechanism]]:
    """The mechanisms for values of any kind, by id: those that protect all symbols first."""
    classes = {name: MECHANISMS[name] for name in MECHANISMS}
    fitting = {name: cls for name, cls in classes.items() if not (cls.names_values or cls.last_is_missing)}
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


def nearly_best_size(start: int, largest: int, loss: Callable[[int], float]) -> int:
    """The size in [2, largest] with nearly the least loss, for losses that fall and then rise: within a step of 4 %.

    Goes from ``start`` in steps of a factor, which becomes smaller where neither direction is better. Sizes that cannot
    be have the loss infinity; it looks for larger ones first.
    """
    loss = functools.cache(loss)
    at, factor = min(max(start, 2), largest), 2.0
    while math.isinf(loss(at)) and at < largest:
        at = min(2 * at, largest)
    while factor > _FINEST_STEP:
        around = (max(min(math.floor(at / factor), at - 1), 2), min(max(math.ceil(at * factor), at + 1), largest))
        better = min(around, key=loss)
        if loss(better) < loss(at):
            at = better
        else:
            factor = math.sqrt(factor)
    return at


def best_subsets(make: Callable[..., Setup | None], num_symbols: int, num_sensitive: int) -> Setup | None:
    """The setup with the least noise among subsets of one size, and of two adjacent sizes next to the best one.

    Args:
        make: takes ``subset_size`` and ``larger_share``.
        num_symbols, num_sensitive: of the mechanism.
    """

    @functools.cache
    def noise(size: int, share: float | None = None) -> float:
        setup = make(subset_size=size, larger_share=share)
        return setup.noise if setup else 0.0

    size = best_size(num_sensitive - 1, noise)
    found: list[tuple[float, int, float | None]] = [(noise(size), size, None)]
    for lower in (size - 1, size):
        if 1 <= lower < min(num_sensitive, num_symbols - 1):
            share = optimize.minimize_scalar(
                lambda share, lower=lower: noise(lower, float(share)),
                bounds=(SMALLEST_SHARE, 1 - SMALLEST_SHARE),
                method="bounded",
                options={"xatol": 1e-4},
            )
            rounded = min(max(round(float(share.x), _DIGITS), 10**-_DIGITS), 1 - 10**-_DIGITS)
            found.append((noise(lower, rounded) * _WORTH_IT, lower, rounded))
    _, size, larger = min(found, key=lambda option: option[0])
    return make(subset_size=size, larger_share=larger)
