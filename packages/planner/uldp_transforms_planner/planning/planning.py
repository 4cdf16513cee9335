"""The planner: chooses a mechanism and computes errors, the number of reports, and epsilon."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

from scipy import special

from uldp_transforms.ldp.checks import is_number, require_number
from uldp_transforms.ldp.confidence import CONFIDENCE, check_confidence
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_planner.planning.forecast import FALSE_ALARM, MISSED
from uldp_transforms_planner.planning.planned_question import Forecast, PlannedQuestion, Setup
from uldp_transforms_planner.utility.arguments import MAX_REPORTS, require_epsilon, require_reports
from uldp_transforms_planner.utility.poisoning import Amplification, amplification

STEPS_OF_EPSILON = 1000
"""Required epsilons are rounded up to multiples of 1/1000."""

NEARLY_BEST = 1.05
"""Relative loss tolerance: among setups within 5 % of the least loss, bytes included, the one with the shortest report
is recommended; if some meet the target, among these.
"""

BYTE_COST = 0.001
"""Default of ``byte_cost``: a byte costs as much as 0.1 % of the loss, so 250 bytes as much as a quarter of it."""

_NOTICED = 0.1
"""CPU seconds of a client: of equally short reports, one that takes longer is recommended only without another one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One mechanism and alphabet, with the errors of its raw estimates.

    Attributes:
        name: id of the mechanism, with its chosen parameters.
        setup: the setup; None for the baseline, in which people reveal their values.
        l1: expected sum of absolute errors over all values.
        l2: expected sum of squared errors over all values.
        half_width: half width of the interval of a sensitive value, root mean square over these.
        change: change of a sensitive value between two windows with this number of reports that is detected with
            probability 0.8, with a false alarm about any of them in at most 1 of 20 windows.
        lie: number of honest reports of a sensitive value that one false report can count for.
        above_optimum: relative excess of the worst l2 over the minimax one; None if unknown.
        reports_needed: smallest number of reports with which ``setup`` meets the target; None without a target, or if
            no number does, because of collisions with unlisted texts.
        epsilon_needed: smallest epsilon, in steps of 1/1000, that meets the target with this number of reports; None
            without a target, or if no epsilon up to ``max_epsilon`` of the question does.
        client_seconds: CPU seconds of a client for a report.
        window_seconds: CPU seconds of the collector for counting and estimating the reports.
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
    client_seconds: float = 0.0
    window_seconds: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """Result of ``plan``.

    Attributes:
        rows: the baseline, in which people reveal their values, followed by the setups.
        best: the recommended row.
        collection: JSON form of the recommended collection, with placeholders for its values.
        amplification: largest effect of one false report on the recommended collection.
        detectable_frequency: smallest frequency of a sensitive value that is detected with probability 0.8, with
            probability 0.05 of any false detection among values that nobody holds; above 1: none is detectable.
        confidence: of the intervals.
    """

    rows: tuple[PlanRow, ...]
    best: PlanRow
    collection: dict[str, Any]
    amplification: Amplification
    detectable_frequency: float
    confidence: float = CONFIDENCE


def plan(
    question: PlannedQuestion,
    epsilon: float,
    num_reports: int,
    target_l1: float | None = None,
    target_l2: float | None = None,
    target_half_width: float | None = None,
    confidence: float = CONFIDENCE,
    byte_cost: float = BYTE_COST,
) -> Plan:
    """Compare all setups for a question.

    Args:
        question: the question, with its values and assumptions.
        epsilon: epsilon of one report, in (0, 16].
        num_reports: n.
        target_l1: target for the expected sum of absolute errors; give at most one of the three targets.
        target_l2: target for the expected sum of squared errors.
        target_half_width: target for the half width of the interval of a sensitive value.
        confidence: of the intervals.
        byte_cost: relative increase of the loss that is acceptable for a report that is one byte shorter; at least 0.

    Raises:
        SpecError: if an argument is out of range.
    """
    require_epsilon("plan.epsilon", epsilon)
    require_number(
        "plan.byte_cost", byte_cost, "a number of at least 0", is_number(byte_cost) and 0 <= byte_cost < math.inf
    )
    targets = {"l1": target_l1, "l2": target_l2, "half_width": target_half_width}
    aim = _aim("plan", num_reports, targets, confidence)
    rows = list(_rows(question, epsilon, aim))
    best, setup = _recommended(rows, aim, byte_cost)
    return Plan(
        rows=tuple(rows),
        best=best,
        collection=_collection(question, setup),
        amplification=amplification(setup.mechanism),
        detectable_frequency=_detectable(question, setup, num_reports),
        confidence=confidence,
    )


def least_epsilon(
    question: PlannedQuestion,
    num_reports: int,
    target_l1: float | None = None,
    target_l2: float | None = None,
    target_half_width: float | None = None,
    confidence: float = CONFIDENCE,
) -> float | None:
    """Smallest epsilon, in steps of 1/1000, with which some setup meets the target; None: none up to 16 does.

    Args:
        question, num_reports, confidence: see ``plan``.
        target_l1, target_l2, target_half_width: see ``plan``; exactly one must be given.

    Raises:
        SpecError: if an argument is out of range.
    """
    targets = {"l1": target_l1, "l2": target_l2, "half_width": target_half_width}
    aim = _aim("least_epsilon", num_reports, targets, confidence)
    if aim.target is None:
        raise SpecError("least_epsilon.target must be given, got none")
    needed = [_epsilon_needed(make, aim, question.max_epsilon) for make in question.setups_once(num_reports).values()]
    return min((epsilon for epsilon in needed if epsilon is not None), default=None)


@dataclasses.dataclass(frozen=True)
class _Aim:
    """The number of reports, and the target of each error (None: no target, minimise)."""

    num_reports: int
    loss: str
    target: float | None
    confidence: float

    def is_met(self, forecast: Forecast) -> bool:
        """Whether the target is reached."""
        assert self.target is not None
        is_width = self.loss == "half_width"
        error = forecast.half_width_at(self.confidence) if is_width else getattr(forecast, self.loss)
        return bool(error <= self.target)


def _aim(name: str, num_reports: int, targets: dict[str, float | None], confidence: float) -> _Aim:
    """The checked arguments of the function ``name``; raises SpecError."""
    require_reports(f"{name}.num_reports", num_reports)
    check_confidence(f"{name}.confidence", confidence)
    given = {loss: target for loss, target in targets.items() if target is not None}
    if len(given) > 1:
        raise SpecError(f"{name}.target must be given at most once, got {', '.join(given)}")
    for loss, target in given.items():
        require_number(f"{name}.target_{loss}", target, "a number above 0", is_number(target) and 0 < target < math.inf)
    loss = next(iter(given), "l2")
    return _Aim(num_reports, loss, targets[loss], confidence)


def _rows(question: PlannedQuestion, epsilon: float, aim: _Aim) -> Iterator[PlanRow]:
    """The baseline, then each setup that is possible."""
    yield _row("no privacy", question.without_privacy, question.num_tests, aim)
    optimum = question.least_l2(epsilon)
    for name, make in question.setups_once(aim.num_reports).items():
        setup = make(epsilon)
        if setup is None:
            continue
        worst = setup.worst_l2
        yield dataclasses.replace(
            _row(name, setup.forecast, question.num_tests, aim),
            setup=setup,
            lie=amplification(setup.mechanism).sensitive,
            epsilon_needed=_epsilon_needed(make, aim, question.max_epsilon),
            client_seconds=setup.client_seconds,
            window_seconds=setup.window_seconds(aim.num_reports),
            above_optimum=None if optimum is None or worst is None else max(worst / optimum - 1, 0.0),
        )


def _row(name: str, forecast: Callable[[int], Forecast], num_tests: int, aim: _Aim) -> PlanRow:
    found = forecast(aim.num_reports)
    return PlanRow(
        name=name,
        l1=found.l1,
        l2=found.l2,
        half_width=found.half_width_at(aim.confidence),
        change=found.change(num_tests),
        reports_needed=_reports_needed(forecast, aim),
    )


def _reports_needed(forecast: Callable[[int], Forecast], aim: _Aim) -> int | None:
    """Smallest number of reports that meets the target, by doubling and bisection; both sides are evaluated."""
    if aim.target is None or not aim.is_met(forecast(MAX_REPORTS)):
        return None
    low, high = 0, 1
    while not aim.is_met(forecast(high)):
        low, high = high, min(2 * high, MAX_REPORTS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if aim.is_met(forecast(middle)) else (middle, high)
    return high


def reports_for_half_width(setup: Setup, half_width: float, confidence: float = CONFIDENCE) -> int | None:
    """Smallest number of reports with which the half width of intervals is at most this number; None: none is.

    Args:
        setup: mechanism and alphabet.
        half_width: above 0.
        confidence: of the intervals.
    """
    return _reports_needed(setup.forecast, _Aim(1, "half_width", half_width, confidence))


def _epsilon_needed(make: Callable[[float], Setup | None], aim: _Aim, largest: float) -> float | None:
    """Smallest epsilon, up to the largest one, that meets the target, by bisection; the result is evaluated."""
    if aim.target is None:
        return None

    def meets(step: int) -> bool:
        setup = make(step / STEPS_OF_EPSILON)
        return setup is not None and aim.is_met(setup.forecast(aim.num_reports))

    low, high = 0, math.floor(largest * STEPS_OF_EPSILON)
    if not meets(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high / STEPS_OF_EPSILON


def _recommended(rows: list[PlanRow], aim: _Aim, byte_cost: float) -> tuple[PlanRow, Setup]:
    candidates = [(row, row.setup) for row in rows if row.setup is not None]

    def error(pair: tuple[PlanRow, Setup]) -> float:
        return float(getattr(pair[0], aim.loss))

    def cost(pair: tuple[PlanRow, Setup]) -> float:
        return error(pair) * (1 + byte_cost * pair[1].mechanism.payload_size)

    candidates = [pair for pair in candidates if aim.target is not None and error(pair) <= aim.target] or candidates
    limit = NEARLY_BEST * min(map(cost, candidates))
    good = [pair for pair in candidates if cost(pair) <= limit]
    return min(good, key=lambda pair: (pair[1].mechanism.payload_size, pair[0].client_seconds > _NOTICED, pair[0].l2))


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
