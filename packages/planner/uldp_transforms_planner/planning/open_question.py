"""Questions about arbitrary texts, hashed into buckets; candidates are given at estimation, and some may be public."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uldp_transforms.ldp.checks import describe, is_number, require_int, require_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.model import MAX_CELLS, MAX_COHORTS
from uldp_transforms.ldp.solvers.linear import FEW_UNKNOWNS, MANY_EQUATIONS
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES
from uldp_transforms_planner.planning.cpu_time import client_seconds, window_seconds
from uldp_transforms_planner.planning.forecast import Estimates, Groups, Together, told
from uldp_transforms_planner.planning.hashed_errors import MAX_BUCKETS, best_num_buckets, cohorts_needed
from uldp_transforms_planner.planning.hashed_forecast import HashedNoise, hashed_noise
from uldp_transforms_planner.planning.planned_question import (
    Forecast,
    PlannedQuestion,
    Setup,
    best_subsets,
    build,
    comparable,
    nearly_best_size,
    placeholders,
)
from uldp_transforms_planner.utility.arguments import require_distribution, require_share
from uldp_transforms_planner.utility.worst_case import concave_maximum

BIT_BUCKETS = 64
"""Number of buckets of set-valued reports: 8 bytes, or 1 for hr. More would save cohorts, but no reports."""

REPORTS_A_COUNTER = 32
"""Minimum number of reports per counter with more cohorts than ``cohorts_needed`` returns."""

MAX_HASHES = 1 << 24
"""Maximum number of hashes (candidates times cohorts) with more cohorts than ``cohorts_needed`` returns."""

_NEARLY = 1.01  # ratio to the least l2 that is accepted for fewer cohorts

ZIPF, FLAT = "zipf", "flat"
UNLISTED_SHARE = 0.1
"""Default share of people with an unlisted text."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenQuestion(PlannedQuestion):
    """The frequencies of candidates among arbitrary texts.

    Attributes:
        num_candidates: S, number of candidates that are sensitive texts.
        num_non_sensitive: L, number of further candidates on a public list of non-sensitive texts.
        sensitive_share: assumed share of people with sensitive texts, only for L > 0. None: the share with the largest
            error.
        unlisted_share: share of people with a sensitive text that is not a candidate. The number of these texts and the
            inequality of their frequencies are those of the candidates.
        heaviest_unlisted: share of all people who hold the most frequent unlisted text, at most ``unlisted_share``. The
            rest is divided among texts that are at most as frequent, or negligibly rare. None: the same inequality as
            for the candidates, for "zipf" 1 / (1 + 1/2 + ... + 1/S) of ``unlisted_share``.
        law: distribution of the texts of one kind: "zipf", proportional to 1 / rank, or "flat".
        frequencies: given frequencies instead of ``law``: of the S and then of the L texts, summing to 1 among people
            with listed texts. With L > 0 they also determine the sensitive share.
        max_cohorts: upper limit of the number of cohorts; see ``cohorts_needed``.
        names: names of the L texts; None: placeholders.
    """

    num_candidates: int
    num_non_sensitive: int = 0
    sensitive_share: float | None = None
    unlisted_share: float = UNLISTED_SHARE
    heaviest_unlisted: float | None = None
    law: str = ZIPF
    frequencies: tuple[float, ...] | None = None
    max_cohorts: int = MAX_COHORTS
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        require_int("OpenQuestion.num_candidates", self.num_candidates, 1, MAX_CANDIDATES)
        largest = MAX_CANDIDATES - self.num_candidates
        require_int("OpenQuestion.num_non_sensitive", self.num_non_sensitive, 0, largest)
        require_int("OpenQuestion.max_cohorts", self.max_cohorts, 2, MAX_COHORTS)
        require_share("OpenQuestion.unlisted_share", self.unlisted_share)
        if self.heaviest_unlisted is not None:
            heaviest, allowed = self.heaviest_unlisted, f"a number in [0, {self.unlisted_share:g}], the unlisted share"
            in_range = is_number(heaviest) and 0 <= heaviest <= self.unlisted_share
            require_number("OpenQuestion.heaviest_unlisted", heaviest, allowed, in_range)
        if self.law not in (ZIPF, FLAT):
            raise SpecError(f'OpenQuestion.law must be "{ZIPF}" or "{FLAT}", got {describe(self.law)}')
        if self.frequencies is not None:
            require_distribution("OpenQuestion.frequencies", np.array(self.frequencies), self.num_frequencies)
        if self.names is not None and len(self.names) != self.num_non_sensitive:
            raise SpecError(f"OpenQuestion.names must be {self.num_non_sensitive} texts, got {len(self.names)}")
        if self.sensitive_share is not None:
            require_share("OpenQuestion.sensitive_share", self.sensitive_share)
            if not self.num_non_sensitive or self.frequencies is not None:
                raise SpecError(
                    "OpenQuestion.sensitive_share must be absent if all texts are sensitive or frequencies "
                    f"are given, got {self.sensitive_share!r}"
                )
            if self.sensitive_share < self.unlisted_share:
                raise SpecError(
                    f"OpenQuestion.sensitive_share must be at least the unlisted share {self.unlisted_share!r}, "
                    f"got {self.sensitive_share!r}"
                )

    @property
    def num_frequencies(self) -> int:
        return self.num_candidates + self.num_non_sensitive

    @property
    def num_tests(self) -> int:
        return self.num_candidates

    # ------------------------------------------------------------------ frequencies

    @functools.cached_property
    def _shapes(self) -> tuple[Groups, Groups]:
        """Frequencies of the candidates and of the listed texts, each among the people who hold one of these."""
        if self.frequencies is None:
            sizes = (self.num_candidates, self.num_non_sensitive)
            raw = [1 / np.arange(1.0, size + 1) if self.law == ZIPF else np.ones(size) for size in sizes]
        else:
            raw = [np.array(self.frequencies[: self.num_candidates]), np.array(self.frequencies[self.num_candidates :])]
        candidates, listed = (Groups.of(part / max(part.sum(), 1e-300)) for part in raw)
        return candidates, listed

    @functools.cached_property
    def _unlisted(self) -> Groups:
        """Frequencies of unlisted texts among all people, none above ``heaviest_unlisted`` if that is given."""
        shape, heaviest = self._shapes[0], self.heaviest_unlisted
        if heaviest is None:
            return shape.times(self.unlisted_share)
        others = shape.times(self.unlisted_share - heaviest)
        others = Groups(np.minimum(others.frequencies, heaviest), others.numbers)
        return Groups(np.array([heaviest]), np.ones(1, dtype=np.int64)).joined(others)

    @property
    def heaviest_share(self) -> float:
        """Share of all people who hold the most frequent unlisted text."""
        return float(self._unlisted.frequencies.max())

    def _held(self, share: float) -> tuple[Groups, Groups]:
        """Frequencies among all people, ``share`` of whom have sensitive texts, unlisted ones included."""
        candidates, listed = self._shapes
        return candidates.times(max(share - self.unlisted_share, 0.0)), listed.times(1 - share)

    @property
    def _given_share(self) -> float | None:
        if not self.num_non_sensitive:
            return 1.0
        if self.frequencies is None:
            return self.sensitive_share
        return self.unlisted_share + (1 - self.unlisted_share) * sum(self.frequencies[: self.num_candidates])

    def _share_for_l2(self, loss: Callable[[float], Estimates | Together]) -> float:
        """Share of people with sensitive texts: the given one, or the maximum of l2, a parabola."""
        given = self._given_share
        if given is not None:
            return given
        low, middle, high = self.unlisted_share, (1 + self.unlisted_share) / 2, 1.0
        first, second, third = (loss(share).l2 for share in (low, middle, high))
        bend = first - 2 * second + third
        vertex = middle - (third - first) / (2 * bend) * (high - middle) if bend < 0 else float(third >= first)
        return min(max(vertex, low), high)

    def _share_for_l1(self, loss: Callable[[float], Estimates | Together]) -> float:
        """Share of people with sensitive texts: the given one, or the maximum of l1, which is concave."""
        given = self._given_share
        if given is not None:
            return given
        low, span = self.unlisted_share, 1 - self.unlisted_share
        return low + span * concave_maximum(lambda at: loss(low + span * at).normal_l1)

    # ------------------------------------------------------------------ setups to compare

    def setups(self, num_reports: int) -> dict[str, Callable[[float], Setup | None]]:
        """Setups by name: one-symbol reports with the best number of buckets by forecast, all others with 64 buckets.

        Mechanisms that leave non-sensitive texts unprotected are included only if there are such texts.
        """
        found: dict[str, Callable[[float], Setup | None]] = {}
        for name, cls in comparable().items():
            listed = 0 if cls.protects_all else self.num_non_sensitive
            if not cls.protects_all and not listed:
                continue
            if cls.one_place:
                found[name] = functools.partial(self._one_symbol, name, listed, num_reports)
            elif cls.takes("subset_size") and listed:
                found[name] = functools.partial(self._subsets, name, listed, num_reports)
            else:
                found[name] = functools.partial(self._bits, name, listed, num_reports)
            if cls.takes("theta") and cls.protects_all:
                found[f"{name}, theta 0.5"] = functools.partial(self._bits, name, listed, num_reports, theta=0.5)
        return found

    def _one_symbol(self, name: str, listed: int, num_reports: int, epsilon: float) -> Setup | None:
        """The setup with the number of buckets that minimises the forecast l2, with the maximum number of cohorts."""

        def loss(num_buckets: int) -> float:
            mechanism = self._mechanism(name, num_buckets, listed, epsilon=epsilon)
            cohorts = self._cohorts(mechanism, num_reports)
            return math.inf if cohorts is None else self._setup(mechanism, cohorts[1]).l2(num_reports)

        given = self._given_share if listed else 1.0
        share = 1.0 if given is None else given
        held = max(share - self.unlisted_share, 0.0)
        start = best_num_buckets(epsilon, share, self.num_frequencies - listed, held)
        num_buckets = nearly_best_size(start, MAX_BUCKETS, loss)
        return self._sized(self._mechanism(name, num_buckets, listed, epsilon=epsilon), num_reports)

    def _bits(self, name: str, listed: int, num_reports: int, epsilon: float, **fields: Any) -> Setup | None:
        return self._sized(self._mechanism(name, BIT_BUCKETS, listed, epsilon=epsilon, **fields), num_reports)

    def _subsets(self, name: str, listed: int, num_reports: int, epsilon: float) -> Setup | None:
        def make(**fields: Any) -> Setup | None:
            mechanism = self._mechanism(name, BIT_BUCKETS, listed, epsilon=epsilon, **fields)
            cohorts = self._cohorts(mechanism, num_reports)
            return None if cohorts is None else self._setup(mechanism, cohorts[0])

        best = best_subsets(make, BIT_BUCKETS + listed, BIT_BUCKETS)
        return None if best is None else self._bits(name, listed, num_reports, epsilon, **_sizes(best.mechanism))

    def _mechanism(self, name: str, num_buckets: int, listed: int, **fields: Any) -> SetReportMechanism:
        """A mechanism in which ``listed`` texts have symbols of their own; the other candidates share the buckets."""
        mechanism = build(name, num_buckets + listed, num_buckets, **fields)
        assert isinstance(mechanism, SetReportMechanism), "an open alphabet takes no other"
        return mechanism

    def _cohorts(self, mechanism: SetReportMechanism, num_reports: int) -> tuple[int, int] | None:
        """Minimum and maximum number of cohorts to consider; None if no number gives enough equations."""
        num_buckets = mechanism.num_sensitive
        hashed = self.num_frequencies - (mechanism.num_symbols - num_buckets)
        limit = min(self.max_cohorts, max(2, MAX_CELLS // mechanism.num_cells))
        fewest = max(cohorts_needed(hashed, num_buckets, limit), self.fewest_cohorts(mechanism))
        equations = fewest * (num_buckets - 1)
        too_few = equations <= hashed if hashed <= FEW_UNKNOWNS else equations < MANY_EQUATIONS
        if too_few or fewest > limit or fewest * mechanism.num_cells > MAX_CELLS:
            return None
        more = min(num_reports // (REPORTS_A_COUNTER * mechanism.num_cells), MAX_HASHES // hashed, limit)
        return fewest, max(fewest, more)

    def _sized(self, mechanism: SetReportMechanism, num_reports: int) -> Setup | None:
        """The setup with the fewest cohorts, in steps of doubling, whose l2 is within 1 % of that with the most
        cohorts."""
        cohorts = self._cohorts(mechanism, num_reports)
        if cohorts is None:
            return None
        number, most = cohorts
        setup = self._setup(mechanism, number)
        if number < most:
            enough = _NEARLY * self._setup(mechanism, most).l2(num_reports)
            while number < most and setup.l2(num_reports) > enough:
                number = min(2 * number, most)
                setup = self._setup(mechanism, number)
        return setup

    def _setup(self, mechanism: SetReportMechanism, num_cohorts: int) -> Setup:
        num_buckets = mechanism.num_sensitive
        listed = mechanism.num_symbols - num_buckets
        forecast_at = functools.partial(self._forecast, mechanism, num_cohorts, bool(listed))
        unlisted = self._unlisted
        nobody = unlisted.times(0.0)

        def loss(share: float) -> Estimates | Together:
            return forecast_at(share, 1, nobody).for_l2

        second = self._share_for_l2(loss) if listed else self._shares_of_telling[1]

        @functools.cache
        def first() -> float:
            return self._share_for_l1(loss) if listed else self._shares_of_telling[0]

        def forecast(num_reports: int) -> Forecast:
            found = forecast_at(second, num_reports, unlisted)
            return dataclasses.replace(found, for_l1=forecast_at(first(), num_reports, unlisted).for_l1)

        return Setup(
            mechanism=mechanism,
            alphabet={"id": "hashed", "num_buckets": num_buckets},
            num_cohorts=num_cohorts,
            forecast=forecast,
            l2=lambda num_reports: forecast_at(second, num_reports, unlisted).l2,
            noise=loss(second).l2,
            lists=lambda _, others: {"non_sensitive": others} if listed else {},
            client_seconds=client_seconds(mechanism, num_cohorts, 1),
            window_seconds=lambda n: window_seconds(mechanism, n, self.num_frequencies - listed, num_cohorts),
        )

    def _forecast(
        self,
        mechanism: SetReportMechanism,
        num_cohorts: int,
        is_listed: bool,
        share: float,
        num_reports: int,
        unlisted: Groups,
    ) -> Forecast:
        """Forecast if ``share`` of people have sensitive texts and ``unlisted`` texts are not candidates.

        With ``is_listed``, non-sensitive texts have symbols of their own.
        """
        candidates, others = self._held(share)
        solved = candidates if is_listed else candidates.joined(others)
        noise = self.hashed_noise(mechanism, num_cohorts, num_reports, solved, unlisted)
        sensitive = noise.of(candidates)
        rest = told(others, num_reports, mechanism.reveal_rate) if is_listed else noise.of(others)
        everything = Together((sensitive, rest) if self.num_non_sensitive else (sensitive,))
        return Forecast(for_l1=everything, for_l2=everything, sensitive=sensitive, null_variance=noise.common)

    def fewest_cohorts(self, mechanism: SetReportMechanism) -> int:
        """Minimum number of cohorts of a collection with this mechanism."""
        return 2

    def hashed_noise(
        self, mechanism: SetReportMechanism, num_cohorts: int, num_reports: int, solved: Groups, unlisted: Groups
    ) -> HashedNoise:
        """The noise of candidates with the frequencies ``solved``, see ``hashed_forecast``."""
        return hashed_noise(mechanism, num_cohorts, num_reports, solved, self.unlisted_share, unlisted)

    def least_l2(self, epsilon: float) -> None:
        return None

    def without_privacy(self, num_reports: int) -> Forecast:
        (for_l1, _), (for_l2, sensitive) = (self._told(share, num_reports) for share in self._shares_of_telling)
        return Forecast(for_l1=for_l1, for_l2=for_l2, sensitive=sensitive, null_variance=0.0)

    @functools.cached_property
    def _shares_of_telling(self) -> tuple[float, float]:
        """Shares of people with sensitive texts at which l1 and l2 are forecast if people reveal their texts."""

        def loss(share: float) -> Estimates | Together:
            return self._told(share, 1)[0]

        return self._share_for_l1(loss), self._share_for_l2(loss)

    def _told(self, share: float, num_reports: int) -> tuple[Together, Estimates]:
        """Estimates of all texts and of the sensitive ones if people reveal their texts."""
        sensitive, others = (told(part, num_reports) for part in self._held(share))
        return Together((sensitive, others)), sensitive

    def named_alphabet(self, setup: Setup) -> dict[str, Any]:
        names = placeholders(self.num_non_sensitive) if self.names is None else list(self.names)
        return setup.alphabet | setup.lists([], names)


def _sizes(mechanism: Mechanism) -> dict[str, Any]:
    """The fields of a mechanism that give the sizes of its subsets."""
    return {name: value for name, value in mechanism.to_json().items() if name in ("subset_size", "larger_share")}
