"""Privacy cost of repeated reports in the output of ``uldp plan``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from uldp_transforms.jobs.files.text_table import aligned
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms_planner.plan.plan_options import Planning
from uldp_transforms_planner.planning import Plan
from uldp_transforms_planner.utility import Way, fresh_ways, variance_of_mean, ways
from uldp_transforms_planner.utility.longitudinal import LIFETIMES, MAX_WINDOWS


def over_time(planning: Planning, found: Plan) -> list[str]:
    """Privacy cost of repeated reports, if it was requested."""
    setup, num_windows = found.best.setup, planning.reports_per_person
    if num_windows is None or setup is None:
        return []
    mechanism, people = setup.mechanism, planning.planned_reports
    if not isinstance(mechanism, SetReportMechanism):
        return ["", *_fresh_in_words(mechanism, people, num_windows), _cohorts_in_words(setup.num_cohorts)]
    epsilon_inf = planning.epsilon_inf or min(2 * planning.epsilon, MAX_EPSILON)
    with_memos = dataclasses.replace(mechanism, epsilon_inf=epsilon_inf)
    return ["", *ways_in_words(with_memos, setup.num_cohorts, people, num_windows)]


def ways_in_words(mechanism: SetReportMechanism, num_cohorts: int, num_people: int, num_windows: int) -> list[str]:
    """Compare ways to collect repeated reports, and explain memos."""
    assert mechanism.epsilon_inf is not None
    equal = np.full(mechanism.num_symbols, 1 / mechanism.num_symbols)
    floor = math.sqrt(float(variance_of_mean(mechanism, equal, MAX_WINDOWS).mean()) / num_people)
    return [
        *_table(ways(mechanism, num_windows), num_people, num_windows),
        f"Memos: kappa_1 {mechanism.memo.kappa:.4g}, kappa_2 {mechanism.repeat_weight / 2**64:.4g}; the "
        f"error of averages stays above {floor:.2g}.",
        f"Every symbol that a person ever holds costs epsilon_inf: {mechanism.epsilon_inf:g}, at worst "
        f"{mechanism.num_symbols:,} x {mechanism.epsilon_inf:g} = {mechanism.num_symbols * mechanism.epsilon_inf:,g}; "
        "the times of changes are not protected.",
        _cohorts_in_words(num_cohorts),
    ]


def _fresh_in_words(mechanism: Mechanism, num_people: int, num_windows: int) -> list[str]:
    """The cost of reports without memos."""
    return [*_table(fresh_ways(mechanism, num_windows), num_people, num_windows), "This mechanism has no memos."]


def _table(found: Sequence[Way], num_people: int, num_windows: int) -> list[str]:
    titles = ["", *(f"{number:,}" for number in LIFETIMES), "one window", f"mean of {num_windows:,}"]
    rows = [
        [
            way.name,
            *(f"{loss:.4g}" for loss in way.losses.values()),
            *(f"{math.sqrt(variance / num_people):.2g}" for variance in (way.one_window, way.mean_of_windows)),
        ]
        for way in found
    ]
    return [
        f"Asked in {num_windows:,} windows: privacy loss by number of windows, and the error of a symbol's "
        "frequency at equal",
        "shares (root mean square over symbols):",
        *aligned([titles, *rows]),
    ]


def _cohorts_in_words(num_cohorts: int) -> str:
    if num_cohorts > 1:
        return f"The fixed cohort is a pseudonym of {math.log2(num_cohorts):.3g} bits."
    return "There is one cohort, which does not distinguish people."
