"""Known lists that are folded into few buckets: a message is short, and the error is that of the longest one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from uldp_transforms.ldp.alphabets import Hashed, Permuted
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms_planner.planning.cpu_time import client_seconds
from uldp_transforms_planner.planning.forecast import Groups
from uldp_transforms_planner.planning.hashed_forecast import HashedNoise, hashed_noise
from uldp_transforms_planner.planning.open_question import BIT_BUCKETS, FLAT, OpenQuestion
from uldp_transforms_planner.planning.planned_question import Forecast, Setup, comparable, whole_list

LONG_LIST = 256
"""Number of sensitive values above which a list is worth folding: their bits are longer than the rest of a message."""

LONG_BESIDE_OTHERS = 2 * BIT_BUCKETS
"""The same for mechanisms that do not protect all values: the bits are twice as long as those of a folded subset."""

_HELD_STEP = 1.5  # factor between numbers of values that people may hold


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fold:
    """A way to map a known list into buckets.

    Attributes:
        alphabet: id of the alphabet.
        lists: function of the sensitive values and of the others that returns the alphabet's lists.
        hashes_all: whether a client hashes all sensitive values, or only its own.
        balanced: whether all buckets have the same number of values, so that the collection is a complete list.
    """

    alphabet: str
    lists: Callable[[list[str], list[str]], dict[str, Any]]
    hashes_all: bool
    balanced: bool


FOLDS = (
    Fold(
        alphabet=Permuted.id,
        lists=whole_list,
        hashes_all=True,
        balanced=True,
    ),
    Fold(
        alphabet=Hashed.id,
        lists=lambda _, others: {"non_sensitive": others} if others else {},
        hashes_all=False,
        balanced=False,
    ),
)
"""Ways to fold; of two that are equally good the first is recommended."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoldedList(OpenQuestion):
    """A known list as candidates of an open question in which nobody holds another text.

    Attributes:
        fold: how it is folded.
        num_held: number of values of each kind that people hold, equally often; None: all. Only without
            ``frequencies``.
    """

    fold: Fold
    unlisted_share: float = 0.0
    law: str = FLAT
    num_held: int | None = None

    @functools.cached_property
    def _shapes(self) -> tuple[Groups, Groups]:
        if self.num_held is None or self.frequencies is not None:
            return super()._shapes
        kinds = []
        for size in (self.num_candidates, self.num_non_sensitive):
            held = min(self.num_held, size)
            kinds.append(Groups(np.array([1 / max(held, 1), 0.0]), np.array([held, size - held])))
        return kinds[0], kinds[1]

    def fewest_cohorts(self, mechanism: SetReportMechanism) -> int:
        """A complete list is refused with fewer equations than values."""
        return -(-(self.num_candidates - 1) // (mechanism.num_sensitive - 1)) if self.fold.balanced else 2

    def hashed_noise(
        self, mechanism: SetReportMechanism, num_cohorts: int, num_reports: int, solved: Groups, unlisted: Groups
    ) -> HashedNoise:
        share = self.unlisted_share
        return hashed_noise(mechanism, num_cohorts, num_reports, solved, share, unlisted, balanced=self.fold.balanced)

    def rows(self, num_reports: int) -> dict[str, Callable[[float], Setup | None]]:
        """Setups by name: of the mechanisms whose reports are one symbol, or a subset beside values in clear; if they
        are shorter than those of the list as it is."""
        short = {
            name
            for name, cls in comparable().items()
            if self.num_candidates > (LONG_LIST if cls.protects_all else LONG_BESIDE_OTHERS)
            and (cls.one_place or (cls.takes("subset_size") and not cls.protects_all))
        }
        return {
            f"{name}, {self.fold.alphabet}": functools.partial(self._row, make)
            for name, make in self.setups(num_reports).items()
            if name in short
        }

    def _row(self, make: Callable[[float], Setup | None], epsilon: float) -> Setup | None:
        """The setup with its names, its CPU time and, if frequencies are unknown, its forecast for the worst ones."""
        setup = make(epsilon)
        if setup is None:
            return None
        mechanism, cohorts = setup.mechanism, setup.num_cohorts
        assert isinstance(mechanism, SetReportMechanism), "an open alphabet takes no other"
        others = mechanism.num_symbols - mechanism.num_sensitive
        hashed = self.num_frequencies - others if self.fold.hashes_all else 1
        setup = dataclasses.replace(
            setup,
            alphabet=setup.alphabet | {"id": self.fold.alphabet},
            lists=self.fold.lists if others else lambda sensitive, rest: self.fold.lists([*sensitive, *rest], []),
            client_seconds=client_seconds(mechanism, cohorts, hashed),
            needs_candidates=not self.fold.balanced,
        )
        if self.frequencies is not None:
            return setup
        even, worst = setup.forecast, self._worst(mechanism, cohorts)

        def forecast(num_reports: int) -> Forecast:
            both = (even(num_reports).for_l1, (found := worst(num_reports).forecast(num_reports)).for_l1)
            return dataclasses.replace(found, for_l1=max(both, key=lambda estimates: estimates.l1))

        return dataclasses.replace(setup, forecast=forecast, l2=lambda n: worst(n).l2(n))

    def _worst(self, mechanism: SetReportMechanism, num_cohorts: int) -> Callable[[int], Setup]:
        """The setup at the number of values with the largest l2 if people hold these equally often, by n.

        Message passing is least precise if many values are just below the noise: neither all nor one.
        """
        longest = max(self.num_candidates, self.num_non_sensitive)
        steps = int(np.ceil(np.log(longest) / np.log(_HELD_STEP)))
        numbers = sorted({max(round(longest / _HELD_STEP**step), 1) for step in range(steps + 1)})
        setups = [dataclasses.replace(self, num_held=held)._setup(mechanism, num_cohorts) for held in numbers]
        return functools.cache(lambda n: max(setups, key=lambda setup: setup.l2(n)))
