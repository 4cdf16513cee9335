"""Rows of lists in which every value has a symbol of its own: flat, in public blocks, or in levels."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.alphabets import Closed
from uldp_transforms.ldp.counts.block_places import Sizes
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism
from uldp_transforms_planner.planning.cpu_time import client_seconds, window_seconds
from uldp_transforms_planner.planning.forecast import of_symbols
from uldp_transforms_planner.planning.planned_question import Forecast, Setup, best_subsets, comparable, whole_list
from uldp_transforms_planner.utility.alike_symbols import AlikeSymbols
from uldp_transforms_planner.utility.theta import optimal_theta

Makers = dict[str, Callable[[float], Setup | None]]
"""Setups by name, see ``PlannedQuestion.setups``."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ListedValues:
    """Values whose symbols are 0, 1, ... in their order, sensitive ones first.

    Attributes:
        num_sensitive: v.
        frequencies: (K,) given frequencies; None: the worst.
        sensitive_share: share of people with sensitive values; None: the worst. Only without ``frequencies``.
        kinds: (K,) int64, from 0: the kind of each symbol; the compared mechanisms treat those of one kind alike.
        alphabet: its JSON form without long lists of values.
        lists: function of the sensitive values and of the others that returns its lists.
        has_optimum: whether the smallest possible error is known for this guarantee.
        caveats: limitations of the guarantee that come from the alphabet, as sentences.
    """

    num_sensitive: int
    frequencies: np.ndarray | None
    sensitive_share: float | None
    kinds: np.ndarray
    alphabet: Mapping[str, Any] = dataclasses.field(default_factory=lambda: {"id": Closed.id})
    lists: Callable[[list[str], list[str]], dict[str, Any]] = whole_list
    has_optimum: bool = False
    caveats: Sequence[str] = ()

    def setup(self, mechanism: Mechanism) -> Setup:
        """The setup of a mechanism over these symbols."""
        worst = AlikeSymbols.of(mechanism, self.kinds, self.num_sensitive, self.sensitive_share)
        at = worst.spread(worst.worst_of_l2, self.kinds) if self.frequencies is None else self.frequencies
        everything, *parts = of_symbols(mechanism, at, self._parts(mechanism))
        null = float(mechanism.null_variances(at)[: self.num_sensitive].max())

        @functools.cache
        def for_l1() -> Any:
            if self.frequencies is not None:
                return everything
            return of_symbols(mechanism, worst.spread(worst.worst_of_l1, self.kinds), [])[0]

        def forecast(num_reports: int) -> Forecast:
            sensitive, *levels = (part.of(num_reports) for part in parts)
            return Forecast(
                for_l1=for_l1().of(num_reports),
                for_l2=everything.of(num_reports),
                sensitive=sensitive,
                null_variance=null / num_reports,
                levels=tuple(levels),
            )

        return Setup(
            mechanism=mechanism,
            alphabet=dict(self.alphabet),
            num_cohorts=1,
            forecast=forecast,
            l2=lambda num_reports: everything.of(num_reports).l2,
            noise=everything.of(1).l2,
            worst_l2=self._worst_l2(mechanism) if self.has_optimum else None,
            lists=self.lists,
            client_seconds=client_seconds(mechanism),
            window_seconds=lambda n: window_seconds(mechanism, n, mechanism.num_symbols),
            caveats=self.caveats,
        )

    def _worst_l2(self, mechanism: Mechanism) -> float:
        worst = AlikeSymbols.of(mechanism, self.kinds, self.num_sensitive)
        return worst.l2(worst.worst_of_l2)

    def _parts(self, mechanism: Mechanism) -> list[np.ndarray]:
        """The sensitive symbols; and those of each guarantee, if there are several."""
        guarantees = mechanism.guarantees
        levels = [np.array(one.symbols) for one in guarantees] if len(guarantees) > 1 else []
        return [np.arange(self.num_sensitive), *levels]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedMechanisms:
    """The rows of every mechanism over some sensitive and other values, or over blocks of them.

    Attributes:
        sizes: (K, v); of each block.
        values: their symbols.
        build: function of the id, ``epsilon`` and further fields.
        ending: of the names of rows.
        theta_share: share of sensitive values for which theta is optimised; None: the worst.
    """

    sizes: Sizes
    values: ListedValues
    build: Callable[..., Mechanism]
    ending: str = ""
    theta_share: float | None = None

    def rows(self) -> Makers:
        """Each mechanism that these values can have; those with a theta also with theta 1/2 (if all values are
        protected) and the best theta.

        The best sizes are the same for any number of reports.
        """
        found: Makers = {}
        for name, cls in comparable().items():
            if not self._suits(cls):
                continue
            if cls.takes("subset_size") and not cls.protects_all:
                found[name] = functools.partial(self._best_subsets, name)
                continue
            found[name] = functools.partial(self._setup, name)
            if cls.takes("theta") and cls.protects_all:
                found[f"{name}, theta 0.5"] = functools.partial(self._setup, name, theta=0.5)
            if cls.takes("theta"):
                found[f"{name}, best theta"] = functools.partial(self._best_theta, name)
        return {name + self.ending: make for name, make in found.items()}

    def _suits(self, cls: type[Mechanism]) -> bool:
        if cls.protects_all:
            chosen_from = max(size for size, _ in self.sizes)
            return all(own for _, own in self.sizes) and (not cls.takes("subset_size") or chosen_from > 2)
        chosen_from = max(own for _, own in self.sizes)
        some = any(own < size for size, own in self.sizes)
        return some and (not cls.takes("subset_size") or chosen_from > 1)

    def _setup(self, name: str, epsilon: float, **fields: Any) -> Setup:
        return self.values.setup(self.build(name, epsilon=epsilon, **fields))

    def _best_theta(self, name: str, epsilon: float) -> Setup:
        if self.theta_share is None or MECHANISMS[name].protects_all:
            return self._setup(name, epsilon, theta="optimal")
        ((_, own),) = self.sizes
        return self._setup(name, epsilon, theta=optimal_theta(own, epsilon, min(self.theta_share, 1.0)))

    def _best_subsets(self, name: str, epsilon: float) -> Setup | None:
        """The best sizes for all; blocks of different sizes take the mechanism's own choice for each."""
        if len(set(self.sizes)) > 1:
            return self._setup(name, epsilon)
        return best_subsets(functools.partial(self._setup, name, epsilon), *self.sizes[0])
