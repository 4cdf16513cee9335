"""Any text, hashed into buckets; candidates are named when estimating, and some may be public and not sensitive."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.question import MAX_CANDIDATES
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.model import MAX_CELLS, MAX_COHORTS
from uldp_transforms.ldp.utility.arguments import require_share
from uldp_transforms.ldp.utility.hashed_errors import best_num_buckets, cohorts_needed, hashed_variance
from uldp_transforms.ldp.utility.planned_question import (
    PlannedQuestion,
    Setup,
    best_size,
    build,
    normal_l1,
    placeholders,
)
from uldp_transforms.ldp.utility.worst_case import concave_maximum

BIT_BUCKETS = 64
"""Buckets of reports that are sets: 8 bytes, or 1 for hr. More would save cohorts, not reports."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenQuestion(PlannedQuestion):
    """The frequencies of candidates among texts of any kind.

    Attributes:
        num_candidates: sensitive texts that are candidates, in [1, 8191].
        num_non_sensitive: L, further candidates on a public list of texts that are not sensitive.
        sensitive_share: a guess of the share of people with sensitive texts, only for L > 0. None: the worst one.
    """

    num_candidates: int
    num_non_sensitive: int = 0
    sensitive_share: float | None = None

    def __post_init__(self) -> None:
        require_int("OpenQuestion.num_candidates", self.num_candidates, 1, MAX_CANDIDATES)
        largest = MAX_CANDIDATES - self.num_candidates
        require_int("OpenQuestion.num_non_sensitive", self.num_non_sensitive, 0, largest)
        if self.sensitive_share is not None:
            require_share("OpenQuestion.sensitive_share", self.sensitive_share)
            if not self.num_non_sensitive:
                raise SpecError(
                    f"OpenQuestion.sensitive_share must be absent where all texts are sensitive, "
                    f"got {self.sensitive_share!r}"
                )

    @property
    def num_frequencies(self) -> int:
        return self.num_candidates + self.num_non_sensitive

    @property
    def num_tests(self) -> int:
        return self.num_candidates

    def setups(self) -> dict[str, Callable[[float], Setup | None]]:
        found: dict[str, Callable[[float], Setup | None]] = {
            "krr": self._krr,
            "rappor": functools.partial(self._hashed, "rappor", BIT_BUCKETS, 0),
            "rappor, theta 0.5": functools.partial(self._hashed, "rappor", BIT_BUCKETS, 0, theta=0.5),
            "ss": functools.partial(self._hashed, "ss", BIT_BUCKETS, 0),
            "hr": functools.partial(self._hashed, "hr", BIT_BUCKETS, 0),
        }
        if self.num_non_sensitive:
            found["urr"] = self._urr
            found["uss"] = self._uss
            found["uhr"] = functools.partial(self._hashed, "uhr", BIT_BUCKETS, self.num_non_sensitive)
        return found

    def _krr(self, epsilon: float) -> Setup | None:
        return self._hashed("krr", best_num_buckets(epsilon), 0, epsilon)

    def _urr(self, epsilon: float) -> Setup | None:
        share = 1.0 if self.sensitive_share is None else self.sensitive_share
        num_buckets = best_num_buckets(epsilon, share, self.num_candidates)
        return self._hashed("urr", num_buckets, self.num_non_sensitive, epsilon)

    def _uss(self, epsilon: float) -> Setup | None:
        @functools.cache
        def sized(size: int) -> Setup | None:
            return self._hashed("uss", BIT_BUCKETS, self.num_non_sensitive, epsilon, subset_size=size)

        def loss(size: int) -> float:
            setup = sized(size)
            return setup.l2 if setup else 0.0

        return sized(best_size(BIT_BUCKETS - 1, loss))

    def _hashed(self, name: str, num_buckets: int, listed: int, epsilon: float, **fields: Any) -> Setup | None:
        """With ``listed`` texts that have a symbol of their own; the other candidates share the buckets."""
        hashed = self.num_frequencies - listed
        num_cohorts = cohorts_needed(hashed, num_buckets)
        if num_cohorts > MAX_COHORTS or num_cohorts * (num_buckets + listed) > MAX_CELLS:
            return None
        mechanism = build(name, num_buckets + listed, num_buckets, epsilon=epsilon, **fields)
        errors = _Errors(mechanism, num_cohorts, hashed, listed)
        worst = concave_maximum(errors.l2) if listed else 1.0
        if self.sensitive_share is not None and listed:
            first = second = self.sensitive_share
        else:
            first, second = concave_maximum(errors.l1) if listed else 1.0, worst
        return Setup(
            mechanism=mechanism,
            alphabet={"id": "hashed", "num_buckets": num_buckets},
            num_cohorts=num_cohorts,
            l1=errors.l1(first),
            l2=errors.l2(second),
            worst_l2=errors.l2(worst),
            null_variance=errors.hashed_variance(second),
        )

    def least_l2(self, epsilon: float) -> None:
        return None

    def without_privacy(self) -> tuple[float, float]:
        """At equal frequencies of all candidates, or of those of each kind."""
        share = self.sensitive_share
        if share is None:
            share = self.num_candidates / self.num_frequencies
        blocks = ((self.num_candidates, share), (self.num_non_sensitive, 1 - share))
        variances = [(s, part / s * (1 - part / s)) for s, part in blocks if s]
        return sum(normal_l1(s, variance) for s, variance in variances), sum(s * variance for s, variance in variances)

    def named_alphabet(self, setup: Setup) -> dict[str, Any]:
        listed = setup.mechanism.num_symbols - setup.alphabet["num_buckets"]
        return setup.alphabet | ({"non_sensitive": placeholders(listed)} if listed else {})


@dataclasses.dataclass(frozen=True)
class _Errors:
    """Errors of one report as functions of the share of people with sensitive texts; both are concave."""

    mechanism: Mechanism
    num_cohorts: int
    hashed: int
    listed: int

    def hashed_variance(self, share: float) -> float:
        assert isinstance(self.mechanism, SetReportMechanism), "an open alphabet takes no other"
        return hashed_variance(self.mechanism, 1, self.num_cohorts, self.hashed, sensitive_share=share)

    def _clear_variance(self, share: float) -> float:
        p = (1 - share) / max(self.listed, 1)
        return p / self.mechanism.reveal_rate - p**2 if self.listed else 0.0

    def l1(self, share: float) -> float:
        return normal_l1(self.hashed, self.hashed_variance(share)) + normal_l1(self.listed, self._clear_variance(share))

    def l2(self, share: float) -> float:
        return self.hashed * self.hashed_variance(share) + self.listed * self._clear_variance(share)
