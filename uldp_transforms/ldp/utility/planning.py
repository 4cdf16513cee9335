"""The planner: which mechanism, how precise, how many reports, at what epsilon."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from scipy import special

from uldp_transforms.ldp.checks import is_number, require_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms.ldp.utility.arguments import require_epsilon, require_reports
from uldp_transforms.ldp.utility.planned_question import PlannedQuestion, Setup
from uldp_transforms.ldp.utility.poisoning import Amplification, amplification
from uldp_transforms.ldp.utility.worst_case import L1, L2

STEPS_OF_EPSILON = 1000
"""Needed epsilons are given in steps of 1/1000, rounded up."""

FALSE_ALARM, MISSED = 0.05, 0.2
"""Of the detectable frequency: false alarm over all sensitive values together; a present value overlooked."""

NEARLY_BEST = 1.05
"""Among setups whose loss is within 5 % of the least, the one with the shortest report is recommended."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One way to ask, with the errors of its raw estimates.

    Attributes:
        name: id of the mechanism, with what was chosen for it.
        setup: None for people who tell their values, the yardstick.
        l1: expected sum of absolute errors over all values (normal approximation).
        l2: expected sum of squared errors over all values.
        above_optimum: how much the worst l2 exceeds the least possible one, as a share; None where it is not known.
        reports_needed: smallest number of reports that meets the target at this epsilon; None without a target.
        epsilon_needed: smallest epsilon, in steps of 1/1000, that meets the target with this many reports; None
            without a target or if none up to 16 does.
    """

    name: str
    setup: Setup | None = None
    l1: float
    l2: float
    above_optimum: float | None = None
    reports_needed: int | None = None
    epsilon_needed: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What ``plan`` found.

    Attributes:
        rows: people who tell their values first, then the setups.
        best: the recommended row.
        collection: JSON form of the recommended collection, with placeholders for its values.
        amplification: what one lie can do to it.
        detectable_frequency: how frequent a sensitive value must be to be found with probability 0.8, if values that
            nobody holds are to be mistaken for frequent ones with probability 0.05 over all of them; above 1: none is.
    """

    rows: tuple[PlanRow, ...]
    best: PlanRow
    collection: dict[str, Any]
    amplification: Amplification
    detectable_frequency: float


def plan(
    question: PlannedQuestion,
    epsilon: float,
    num_reports: int,
    target_l1: float | None = None,
    target_l2: float | None = None,
) -> Plan:
    """Compare all ways to ask a question.

    Args:
        question: values, candidates, guesses.
        epsilon: of one report, in (0, 16].
        num_reports: n.
        target_l1: wanted expected sum of absolute errors; this or the next.
        target_l2: wanted expected sum of squared errors.

    Raises:
        SpecError: for arguments out of range.
    """
    require_epsilon("plan.epsilon", epsilon)
    require_reports("plan.num_reports", num_reports)
    if target_l1 is not None and target_l2 is not None:
        raise SpecError(f"plan.target_l2 must be absent where plan.target_l1 is given, got {target_l2!r}")
    for name, target in (("target_l1", target_l1), ("target_l2", target_l2)):
        if target is not None:
            require_number(f"plan.{name}", target, "a number above 0", is_number(target) and 0 < target < math.inf)
    aim = _Aim(num_reports, *((L1, target_l1) if target_l1 is not None else (L2, target_l2)))
    rows = [_row("no privacy", *question.without_privacy(), aim)]
    optimum = question.least_l2(epsilon)
    for name, make in question.setups().items():
        setup = make(epsilon)
        if setup is None:
            continue
        rows.append(
            dataclasses.replace(
                _row(name, setup.l1, setup.l2, aim),
                setup=setup,
                epsilon_needed=_epsilon_needed(make, aim),
                above_optimum=None if optimum is None else max(setup.worst_l2 / optimum - 1, 0.0),
            )
        )
    best, setup = _recommended(rows, aim)
    return Plan(
        rows=tuple(rows),
        best=best,
        collection=_collection(question, setup),
        amplification=amplification(setup.mechanism),
        detectable_frequency=_detectable(question, setup, num_reports),
    )


@dataclasses.dataclass(frozen=True)
class _Aim:
    """With how many reports, and which loss is to be at most what (None: as small as possible)."""

    num_reports: int
    loss: str
    target: float | None

    def loss_of(self, l1: float, l2: float, num_reports: int) -> float:
        """From sqrt(n) l1 and n l2."""
        return l1 / math.sqrt(num_reports) if self.loss == L1 else l2 / num_reports


def _row(name: str, l1: float, l2: float, aim: _Aim) -> PlanRow:
    needed = _reports_needed(l1, l2, aim)
    return PlanRow(name=name, l1=l1 / math.sqrt(aim.num_reports), l2=l2 / aim.num_reports, reports_needed=needed)


def _reports_needed(l1: float, l2: float, aim: _Aim) -> int | None:
    if aim.target is None:
        return None
    number = max(1, math.ceil((l1 / aim.target) ** 2 if aim.loss == L1 else l2 / aim.target))
    while aim.loss_of(l1, l2, number) > aim.target:  # rounding
        number += max(1, number >> 50)
    return number


def _epsilon_needed(make: Callable[[float], Setup | None], aim: _Aim) -> float | None:
    """By halving; what is returned was looked at and meets the target."""
    if aim.target is None:
        return None

    def meets(step: int, target: float = aim.target) -> bool:
        setup = make(step / STEPS_OF_EPSILON)
        return setup is not None and aim.loss_of(setup.l1, setup.l2, aim.num_reports) <= target

    low, high = 0, round(MAX_EPSILON * STEPS_OF_EPSILON)
    if not meets(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high / STEPS_OF_EPSILON


def _recommended(rows: list[PlanRow], aim: _Aim) -> tuple[PlanRow, Setup]:
    candidates = [(row, row.setup) for row in rows if row.setup is not None]

    def error(pair: tuple[PlanRow, Setup]) -> float:
        return pair[0].l1 if aim.loss == L1 else pair[0].l2

    limit = NEARLY_BEST * min(map(error, candidates))
    good = [pair for pair in candidates if error(pair) <= limit]
    return min(good, key=lambda pair: (pair[1].mechanism.payload_size, error(pair)))


def _collection(question: PlannedQuestion, setup: Setup) -> dict[str, Any]:
    spec = {
        "id": "planned",
        "version": 1,
        "alphabet": question.named_alphabet(setup),
        "mechanism": setup.mechanism.to_json(),
    }
    return spec if setup.num_cohorts == 1 else spec | {"num_cohorts": setup.num_cohorts}


def _detectable(question: PlannedQuestion, setup: Setup, num_reports: int) -> float:
    quantiles = special.ndtri(1 - FALSE_ALARM / question.num_tests) + special.ndtri(1 - MISSED)
    return float(quantiles * math.sqrt(setup.null_variance / num_reports))
