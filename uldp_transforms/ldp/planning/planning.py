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
from uldp_transforms.ldp.planning.forecast import FALSE_ALARM, MISSED
from uldp_transforms.ldp.planning.planned_question import Forecast, PlannedQuestion, Setup
from uldp_transforms.ldp.utility.arguments import MAX_REPORTS, require_epsilon, require_reports
from uldp_transforms.ldp.utility.poisoning import Amplification, amplification

STEPS_OF_EPSILON = 1000
"""Needed epsilons are given in steps of 1/1000, rounded up."""

NEARLY_BEST = 1.05
"""Among setups whose loss is within 5 % of the least, the one with the shortest report is recommended."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One way to ask, with the errors of its raw estimates.

    Attributes:
        name: id of the mechanism, with what was chosen for it.
        setup: None for people who tell their values, the yardstick.
        l1: expected sum of absolute errors over all values.
        l2: expected sum of squared errors over all values.
        half_width: half of the 95 % interval of a sensitive value, root mean square over these.
        change: how much a sensitive value must change from one window with so many reports to the next to be found
            with probability 0.8, if 1 in 20 windows may raise a false alarm about any of them.
        lie: how many honest reports of a sensitive value one lie can count as.
        above_optimum: how much the worst l2 exceeds the least possible one, as a share; None where it is not known.
        reports_needed: smallest number of reports with which ``setup`` meets the target; None without a target, or if
            no number does: collisions with unlisted texts stay.
        epsilon_needed: smallest epsilon, in steps of 1/1000, that meets the target with this many reports; None
            without a target or if none up to 16 does.
    """

    name: str
    setup: Setup | None = None
    l1: float
    l2: float
    half_width: float
    change: float
    lie: float = 1.0
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
    target_half_width: float | None = None,
) -> Plan:
    """Compare all ways to ask a question.

    Args:
        question: values, candidates, guesses.
        epsilon: of one report, in (0, 16].
        num_reports: n.
        target_l1: wanted expected sum of absolute errors; one of the three.
        target_l2: wanted expected sum of squared errors.
        target_half_width: wanted half width of the interval of a sensitive value.

    Raises:
        SpecError: for arguments out of range.
    """
    require_epsilon("plan.epsilon", epsilon)
    require_reports("plan.num_reports", num_reports)
    targets = {"l1": target_l1, "l2": target_l2, "half_width": target_half_width}
    given = {name: target for name, target in targets.items() if target is not None}
    if len(given) > 1:
        raise SpecError(f"plan.target must be given once at most, got {', '.join(given)}")
    for name, target in given.items():
        require_number(f"plan.target_{name}", target, "a number above 0", is_number(target) and 0 < target < math.inf)
    loss = next(iter(given), "l2")
    aim = _Aim(num_reports, loss, targets[loss])
    rows = [_row("no privacy", question.without_privacy, question.num_tests, aim)]
    optimum = question.least_l2(epsilon)
    for name, make in question.setups(num_reports).items():
        setup = make(epsilon)
        if setup is None:
            continue
        worst = setup.worst_l2
        rows.append(
            dataclasses.replace(
                _row(name, setup.forecast, question.num_tests, aim),
                setup=setup,
                lie=amplification(setup.mechanism).sensitive,
                epsilon_needed=_epsilon_needed(make, aim),
                above_optimum=None if optimum is None or worst is None else max(worst / optimum - 1, 0.0),
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
    """With how many reports, and what is to be at most what (None: as small as possible)."""

    num_reports: int
    loss: str
    target: float | None

    def is_met(self, forecast: Forecast) -> bool:
        """Whether the target is reached."""
        assert self.target is not None
        return bool(getattr(forecast, self.loss) <= self.target)


def _row(name: str, forecast: Callable[[int], Forecast], num_tests: int, aim: _Aim) -> PlanRow:
    found = forecast(aim.num_reports)
    return PlanRow(
        name=name,
        l1=found.l1,
        l2=found.l2,
        half_width=found.half_width,
        change=found.change(num_tests),
        reports_needed=_reports_needed(forecast, aim),
    )


def _reports_needed(forecast: Callable[[int], Forecast], aim: _Aim) -> int | None:
    """By doubling and halving; what is returned was looked at and meets the target, and one less does not."""
    if aim.target is None or not aim.is_met(forecast(MAX_REPORTS)):
        return None
    low, high = 0, 1
    while not aim.is_met(forecast(high)):
        low, high = high, min(2 * high, MAX_REPORTS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if aim.is_met(forecast(middle)) else (middle, high)
    return high


def _epsilon_needed(make: Callable[[float], Setup | None], aim: _Aim) -> float | None:
    """By halving; what is returned was looked at and meets the target."""
    if aim.target is None:
        return None

    def meets(step: int) -> bool:
        setup = make(step / STEPS_OF_EPSILON)
        return setup is not None and aim.is_met(setup.forecast(aim.num_reports))

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
        return float(getattr(pair[0], aim.loss))

    limit = NEARLY_BEST * min(map(error, candidates))
    good = [pair for pair in candidates if error(pair) <= limit]
    return min(good, key=lambda pair: (pair[1].mechanism.payload_size, pair[0].l2))


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
    return float(quantiles * math.sqrt(setup.forecast(num_reports).null_variance))
