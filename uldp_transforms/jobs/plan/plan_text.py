"""Output of ``uldp plan``: a table of all setups, and the capabilities of the recommended one."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from uldp_transforms.jobs.files.text_table import aligned
from uldp_transforms.jobs.plan.plan_options import Planning
from uldp_transforms.jobs.plan.plan_targets import verdict
from uldp_transforms.ldp.confidence import percent
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms.ldp.planning import ClosedQuestion, OpenQuestion, Plan, PlanRow
from uldp_transforms.ldp.planning.open_question import ZIPF
from uldp_transforms.ldp.utility import variance_of_mean, ways
from uldp_transforms.ldp.utility.longitudinal import LIFETIMES, MAX_WINDOWS
from uldp_transforms.messages import wire


def heading(planning: Planning) -> list[str]:
    """Describe the question, and the distribution for which errors are computed."""
    question = planning.question
    if isinstance(question, ClosedQuestion):
        what = f"{question.num_values:,} values, {question.num_sensitive:,} of them sensitive"
    else:
        what = f"{question.num_candidates:,} candidates of an open alphabet"
        if question.num_non_sensitive:
            what += f" and {question.num_non_sensitive:,} texts that are not sensitive"
    return [
        f"{what}; {planning.planned_reports:,} reports at epsilon {planning.epsilon:g}",
        f"Expected errors of raw estimates (`empirical`) for {_truth(planning)}:",
    ]


def _truth(planning: Planning) -> str:
    """Describe the frequencies for which the forecasts hold."""
    question, share = planning.question, planning.question.sensitive_share
    if isinstance(question, OpenQuestion):
        holders = ""
        if question.num_non_sensitive and not planning.values:
            holders = "; the share of people with sensitive ones is the worst for each row"
            if share is not None:
                holders = f"; {share:.3g} of all people hold sensitive ones"
        shape = "frequencies like 1 / rank" if question.law == ZIPF else "equal frequencies"
        if planning.values:
            shape = f"the frequencies in {planning.values}"
        unlisted = f"{question.unlisted_share:.3g} of all people with texts on no list"
        heaviest = f", the most frequent of these with {question.heaviest_share:.3g}" if question.unlisted_share else ""
        return f"{shape}, and {unlisted}{heaviest}{holders}"
    if planning.values:
        return f"the frequencies in {planning.values}"
    if share is None:
        return "the worst distribution for each row"
    return f"the worst distribution with {share:.3g} of all people holding sensitive values"


def table(planning: Planning, found: Plan) -> list[str]:
    """One line per setup, with aligned columns."""
    shape = _Table(
        groups=1 if planning.groups is None else planning.groups.number,
        has_buckets=_has_buckets(found),
        has_optimum=isinstance(planning.question, ClosedQuestion),
        has_target=bool(planning.targets),
    )
    titles = ["mechanism", "alphabet", "protects", "message", "packed", "l1", "l2", "half width", "change", "lie"]
    titles += ["client ms", "window s", *(["buckets", "cohorts"] * shape.has_buckets)]
    titles += ["% above optimum"] * shape.has_optimum
    for name, value in planning.targets.items():
        what = name.removeprefix("target_").replace("_", " ")
        titles += [f"reports for {what} {value:g}", f"epsilon for {what} {value:g}"]
    return aligned([titles, *(shape.cells(row) for row in found.rows)], left=range(3))


def _has_buckets(found: Plan) -> bool:
    """Whether a row maps values into buckets, others in each cohort."""
    return any(row.setup is not None and row.setup.num_cohorts > 1 for row in found.rows)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Table:
    """The columns that only some tables have, and the number of groups, which the cohort of a message names."""

    groups: int
    has_buckets: bool
    has_optimum: bool
    has_target: bool

    def cells(self, row: PlanRow) -> list[str]:
        """One line."""
        errors = [f"{error:.3g}" for error in (row.l1, row.l2, row.half_width, row.change, row.lie)]
        reports = f"{row.reports_needed:,}" if row.reports_needed else "no number"
        if row.setup is None:
            blank = [""] * (2 + 2 * self.has_buckets + self.has_optimum)
            return [row.name, "", "nothing", "", "", *errors, *blank, *([reports, ""] * self.has_target)]
        mechanism, cohorts = row.setup.mechanism, row.setup.num_cohorts
        protected = "all values" if mechanism.num_sensitive == mechanism.num_symbols else "sensitive values"
        size = mechanism.payload_size
        sizes = [f"{wire.single_bytes(size, self.groups * cohorts):,}", f"{wire.packed_bytes(size):,}"]
        seconds = [f"{1e3 * row.client_seconds:.2g}", f"{row.window_seconds:.2g}"]
        buckets = [f"{mechanism.num_sensitive:,}", f"{cohorts:,}"] if cohorts > 1 else ["", ""]
        above = "" if row.above_optimum is None else f"{100 * row.above_optimum:,.1f}"
        needed = f"{row.epsilon_needed:.3f}" if row.epsilon_needed else "above 16"
        return [
            *(described(mechanism), row.setup.alphabet.get("id", ""), protected, *sizes, *errors, *seconds),
            *(buckets * self.has_buckets),
            *([above] * self.has_optimum),
            *([reports, needed] * self.has_target),
        ]


def legend(planning: Planning, found: Plan) -> list[str]:
    """Explain the columns."""
    lines = [
        "message, packed: bytes of a report alone, and among others in one message. l1, l2: sum over all values of "
        "|error| and of error squared.",
        f"half width: half the width of the {percent(planning.confidence)} interval of a sensitive value's frequency.",
        "change: smallest change of a sensitive value's frequency between two such windows that is found 4 times in 5.",
        "lie: how many honest reports one false report can count as.",
        "client ms, window s: approximate CPU time of a client for a report, and of the collector for all of them.",
    ]
    if _has_buckets(found):
        lines.append(
            "buckets, cohorts: each value is mapped to one bucket, by another public function in each cohort of people."
        )
    if isinstance(planning.question, ClosedQuestion):
        lines.append(
            "% above optimum: largest l2, relative to the smallest that any mechanism with this guarantee can have."
        )
    return lines


def described(mechanism: Mechanism) -> str:
    """The id of a mechanism, with its fields except epsilon."""
    fields = {name: value for name, value in mechanism.to_json().items() if name not in ("id", "epsilon")}
    shown = (f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in fields.items())
    return ", ".join([mechanism.id, *shown])


def advice(planning: Planning, found: Plan) -> list[str]:
    """Describe what the recommended collection can and cannot detect."""
    best, setup = found.best, found.best.setup
    assert setup is not None
    rms = math.sqrt(best.l2 / planning.question.num_frequencies)
    over = f" over {setup.alphabet['id']} values" if setup.num_cohorts > 1 else ""
    lines = [
        f"Recommended: {described(setup.mechanism)}{over}. The root mean square error of a frequency is {rms:.2g}.",
        *(["Name the sensitive values with --candidates for each estimate."] * setup.needs_candidates),
        *_verdicts(planning, best),
    ]
    if best.l1 >= 1:
        lines.append(
            f"Too few reports for the whole distribution: l1 is {best.l1:.2g}, while two distributions "
            "differ by at most 2."
        )
    if found.detectable_frequency < 1:
        lines.append(
            "A sensitive value is detected 4 times in 5 if its frequency is at least "
            f"{found.detectable_frequency:.2g} (1 in 20 false alarms over all of them)."
        )
    lie = f"One false report counts as {found.amplification.sensitive:.2f} honest reports of a sensitive value"
    clear = found.amplification.clear
    lines.append(lie + (f", {clear:.2f} of another one." if clear is not None else "."))
    return lines + setup.mechanism.caveats


def _verdicts(planning: Planning, best: PlanRow) -> list[str]:
    """Whether the recommended collection meets the target, if there is one."""
    errors = {name: float(getattr(best, name.removeprefix("target_"))) for name in planning.targets}
    return [
        verdict(
            f"{name.removeprefix('target_').replace('_', ' ')} {target:g}",
            errors[name],
            errors[name] <= target,
            is_least=planning.is_least,
            epsilon=best.epsilon_needed,
            reports=best.reports_needed,
            whose="" if planning.groups is None else " of the smallest group",
        )
        for name, target in planning.targets.items()
    ]


def over_time(planning: Planning, found: Plan) -> list[str]:
    """Privacy cost of repeated reports, if it was requested."""
    setup = found.best.setup
    if planning.reports_per_person is None or setup is None:
        return []
    epsilon_inf = planning.epsilon_inf or min(2 * planning.epsilon, MAX_EPSILON)
    assert isinstance(setup.mechanism, SetReportMechanism), "the planner compares no others"
    mechanism = dataclasses.replace(setup.mechanism, epsilon_inf=epsilon_inf)
    return ["", *ways_in_words(mechanism, setup.num_cohorts, planning.planned_reports, planning.reports_per_person)]


def ways_in_words(mechanism: SetReportMechanism, num_cohorts: int, num_people: int, num_windows: int) -> list[str]:
    """Compare ways to collect repeated reports, and explain memos."""
    titles = ["", *(f"{number:,}" for number in LIFETIMES), "one window", f"mean of {num_windows:,}"]
    rows = [
        [
            way.name,
            *(f"{loss:.4g}" for loss in way.losses.values()),
            *(f"{math.sqrt(variance / num_people):.2g}" for variance in (way.one_window, way.mean_of_windows)),
        ]
        for way in ways(mechanism, num_windows)
    ]
    assert mechanism.epsilon_inf is not None
    equal = np.full(mechanism.num_symbols, 1 / mechanism.num_symbols)
    floor = math.sqrt(float(variance_of_mean(mechanism, equal, MAX_WINDOWS).mean()) / num_people)
    return [
        f"Asked in {num_windows:,} windows: privacy loss by number of windows, and the error of a symbol's "
        "frequency at equal",
        "shares (root mean square over symbols):",
        *aligned([titles, *rows]),
        f"Memos: kappa_1 {mechanism.memo.kappa:.4g}, kappa_2 {mechanism.repeat_weight / 2**64:.4g}; the "
        f"error of averages stays above {floor:.2g}.",
        f"Every symbol that a person ever holds costs epsilon_inf: {mechanism.epsilon_inf:g}, at worst "
        f"{mechanism.num_symbols:,} x {mechanism.epsilon_inf:g} = {mechanism.num_symbols * mechanism.epsilon_inf:,g}; "
        "the times of changes are not protected.",
        f"The fixed cohort is a pseudonym of {math.log2(num_cohorts):.3g} bits."
        if num_cohorts > 1
        else "There is one cohort, which does not distinguish people.",
    ]
