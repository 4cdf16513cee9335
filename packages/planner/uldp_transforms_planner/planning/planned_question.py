"""The candidates that the planner compares: ways to ask a question, with their expected errors."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from scipy import optimize

from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms.ldp.mechanisms.subset_selection import SMALLEST_SHARE
from uldp_transforms_planner.planning.forecast import Estimates, Together

_FINEST_STEP = 1.04  # smallest factor between sizes: the loss is flat near its minimum
_DIGITS = 4  # decimal digits of the share of larger subsets
_WORTH_IT = 1.0002  # minimum ratio of losses for using a second size


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """Expected errors of the raw estimates from n reports.

    Attributes:
        for_l1: estimates of all values at the frequencies for which ``l1`` is forecast.
        for_l2: estimates of all values at the frequencies for which all other errors are forecast.
        sensitive: the sensitive values of ``for_l2``.
        null_variance: variance of the estimate of a sensitive value that nobody holds; the largest, if they differ.
        levels: the values of each level in ``for_l2``, if there are levels.
    """

    for_l1: Estimates | Together
    for_l2: Estimates | Together
    sensitive: Estimates
    null_variance: float
    levels: tuple[Estimates, ...] = ()

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
        """Half of the interval of a sensitive value at the default confidence, root mean square over these."""
        return self.half_width_at(CONFIDENCE)

    def half_width_at(self, confidence: float) -> float:
        """The same at another confidence."""
        return self.sensitive.half_width(confidence)

    def change(self, num_tests: int) -> float:
        """Detectable change of a sensitive value between two windows; see ``Estimates.change``."""
        return self.sensitive.change(num_tests)


def whole_list(sensitive: list[str], others: list[str]) -> dict[str, Any]:
    """The lists of an alphabet that has all values, some of which may be sensitive."""
    return {"values": [*sensitive, *others]} | ({"sensitive": sensitive} if others else {})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup:
    """A mechanism over an alphabet, with its expected errors (population model, raw estimates).

    Attributes:
        mechanism: mechanism over the alphabet's symbols.
        alphabet: its JSON form without long lists of values.
        num_cohorts: C.
        forecast: function of n that returns the expected errors.
        l2: function of n that returns the expected sum of squared errors alone, which is faster.
        noise: n times the expected sum of squared errors, without the part that does not decrease with n; chooses
            sizes.
        worst_l2: n times the largest expected sum of squared errors over all distributions; None if unknown.
        lists: function of the sensitive values and of the others that returns the lists of the alphabet.
        client_seconds: CPU seconds of a client for a report.
        window_seconds: function of n that returns the CPU seconds of the collector for a window.
        needs_candidates: whether the sensitive values must be named again for each estimate.
        caveats: limitations of the guarantee that come from the alphabet, as sentences.
    """

    mechanism: Mechanism
    alphabet: dict[str, Any]
    num_cohorts: int
    forecast: Callable[[int], Forecast]
    l2: Callable[[int], float]
    noise: float
    worst_l2: float | None = None
    lists: Callable[[list[str], list[str]], dict[str, Any]] = whole_list
    client_seconds: float = 0.0
    window_seconds: Callable[[int], float] = float
    needs_candidates: bool = False
    caveats: Sequence[str] = ()


class PlannedQuestion(abc.ABC):
    """A question to plan for, without epsilon and mechanism."""

    @property
    @abc.abstractmethod
    def num_frequencies(self) -> int:
        """Number of values whose frequencies are estimated."""

    @property
    @abc.abstractmethod
    def num_tests(self) -> int:
        """Number of sensitive values that are tested."""

    @property
    def max_epsilon(self) -> float:
        """Largest epsilon with which the question can be asked."""
        return MAX_EPSILON

    @abc.abstractmethod
    def setups(self, num_reports: int) -> dict[str, Callable[[float], Setup | None]]:
        """Name -> function of epsilon that returns the setup with the best sizes for it and this number of reports.

        The function returns None if no collection can have such sizes.
        """

    @functools.cached_property
    def _kept(self) -> dict[int, dict[str, Callable[[float], Setup | None]]]:
        return {}

    def setups_once(self, num_reports: int) -> dict[str, Callable[[float], Setup | None]]:
        """``setups``, each of which is made once for an epsilon: searches of several targets meet again and again."""
        if num_reports not in self._kept:
            made = self.setups(num_reports)
            self._kept[num_reports] = {name: functools.cache(make) for name, make in made.items()}
        return self._kept[num_reports]

    @abc.abstractmethod
    def least_l2(self, epsilon: float) -> float | None:
        """n times the minimax squared error over all mechanisms; None if unknown."""

    @abc.abstractmethod
    def without_privacy(self, num_reports: int) -> Forecast:
        """Expected errors if people reveal their values."""

    @abc.abstractmethod
    def named_alphabet(self, setup: Setup) -> dict[str, Any]:
        """The alphabet of a setup with its values: their names, or the placeholders ``value-001``, ``value-002``,
        ..."""


def placeholders(number: int) -> list[str]:
    """Placeholders ``value-001``, ``value-002``, ..., all of the same length."""
    width = max(3, len(str(number)))
    return [f"value-{i:0{width}}" for i in range(1, number + 1)]


def comparable() -> dict[str, type[Mechanism]]:
    """The general-purpose mechanisms by id, first those that protect all symbols."""
    classes = {name: MECHANISMS[name] for name in MECHANISMS}
    fitting = {name: cls for name, cls in classes.items() if not (cls.names_values or cls.last_is_missing)}
    return dict(sorted(fitting.items(), key=lambda item: not item[1].protects_all))


def build(name: str, num_symbols: int, num_sensitive: int, **fields: Any) -> Mechanism:
    """The mechanism with this id."""
    return MECHANISMS[name](num_symbols=num_symbols, num_sensitive=num_sensitive, **fields)


def best_size(largest: int, loss: Callable[[int], float]) -> int:
    """The size in [1, largest] with the least loss, if the loss first falls and then rises; O(log largest)."""
    low, high = 1, largest
    while low < high:
        middle = (low + high) // 2
        if loss(middle) <= loss(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def nearly_best_size(start: int, largest: int, loss: Callable[[int], float]) -> int:
    """A size in [2, largest] within 4 % of that with the least loss, if the loss first falls and then rises.

    The search goes from ``start`` in steps of a factor, which decreases when neither direction is better. Impossible
    sizes have infinite loss; larger sizes are tried first.
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
        make: function of ``subset_size`` and ``larger_share``.
        num_symbols, num_sensitive: numbers of symbols of the mechanism.
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
