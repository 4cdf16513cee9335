"""Output of ``uldp plan``: a table of all setups, and the capabilities of the recommended one."""

from __future__ import annotations

import dataclasses
import math

from uldp_transforms.jobs.files.text_table import aligned
from uldp_transforms.jobs.records.collection_facts import epsilons_in_words
from uldp_transforms.ldp.confidence import percent
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.messages import wire
from uldp_transforms_planner.plan.plan_options import Planning
from uldp_transforms_planner.plan.plan_targets import verdict
from uldp_transforms_planner.planning import ClosedQuestion, OpenQuestion, Plan, PlanRow
from uldp_transforms_planner.planning.open_question import ZIPF

WITHIN, BY_LEVEL = ", within blocks", ", by level"
_PROTECTION = {
    WITHIN: "within blocks: a value is protected from the other values of its block; the block is sent in clear.",
    BY_LEVEL: "by level: a value is protected by the epsilon of its level; in other rows, by that of the first one.",
}
"""What endings of ``protects`` mean."""

_LEVEL_1 = " of level 1 (others in proportion)"


def heading(planning: Planning) -> list[str]:
    """Describe the question, and the distribution for which errors are computed."""
    question = planning.question
    if isinstance(question, ClosedQuestion):
        where = f" in {len(question.blocks.block_names):,} blocks" if question.blocks else ""
        what = f"{question.num_values:,} values{where}, {question.num_sensitive:,} of them sensitive"
    else:
        what = f"{question.num_candidates:,} candidates of an open alphabet"
        if question.num_non_sensitive:
            what += f" and {question.num_non_sensitive:,} texts that are not sensitive"
    return [
        f"{what}; {planning.planned_reports:,} reports at epsilon {planning.epsilon:g}{_levels(question)}",
        f"Expected errors of raw estimates (`empirical`) for {_truth(planning)}:",
    ]


def _levels(question: ClosedQuestion | OpenQuestion) -> str:
    """The epsilons of a question with levels."""
    levels = question.levels if isinstance(question, ClosedQuestion) else None
    if not levels:
        return ""
    sizes = ((level.epsilon, len(level.values or ())) for level in levels)
    named = [f"{epsilon:g} ({size:,} {'value' if size == 1 else 'values'})" for epsilon, size in sizes]
    return f", in levels at {', '.join(named[:-1])} and {named[-1]}"


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
        max_epsilon=planning.question.max_epsilon,
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
    max_epsilon: float

    def cells(self, row: PlanRow) -> list[str]:
        """One line."""
        errors = [f"{error:.3g}" for error in (row.l1, row.l2, row.half_width, row.change, row.lie)]
        reports = f"{row.reports_needed:,}" if row.reports_needed else "no number"
        if row.setup is None:
            blank = [""] * (2 + 2 * self.has_buckets + self.has_optimum)
            return [row.name, "", "nothing", "", "", *errors, *blank, *([reports, ""] * self.has_target)]
        mechanism, cohorts = row.setup.mechanism, row.setup.num_cohorts
        size = mechanism.payload_size
        sizes = [f"{wire.single_bytes(size, self.groups * cohorts):,}", f"{wire.packed_bytes(size):,}"]
        seconds = [f"{1e3 * row.client_seconds:.2g}", f"{row.window_seconds:.2g}"]
        buckets = [f"{mechanism.num_sensitive:,}", f"{cohorts:,}"] if cohorts > 1 else ["", ""]
        above = "" if row.above_optimum is None else f"{100 * row.above_optimum:,.1f}"
        needed = f"{row.epsilon_needed:.3f}" if row.epsilon_needed else f"above {self.max_epsilon:g}"
        return [
            *(described(mechanism), row.setup.alphabet.get("id", ""), _protects(mechanism), *sizes, *errors, *seconds),
            *(buckets * self.has_buckets),
            *([above] * self.has_optimum),
            *([reports, needed] * self.has_target),
        ]


def _protects(mechanism: Mechanism) -> str:
    """What a mechanism protects, and where that differs from one epsilon between any two values."""
    protected = "all values" if mechanism.num_sensitive == mechanism.num_symbols else "sensitive values"
    within = WITHIN if len(mechanism.confusable) > 1 else ""
    return protected + within + (BY_LEVEL if len(mechanism.guarantees) > 1 else "")


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
    protects = [_protects(row.setup.mechanism) for row in found.rows if row.setup is not None]
    lines += [sentence for ending, sentence in _PROTECTION.items() if any(each.endswith(ending) for each in protects)]
    return lines


def described(mechanism: Mechanism) -> str:
    """The id of a mechanism, with its fields except epsilon and lists."""
    fields = {
        name: value
        for name, value in mechanism.to_json().items()
        if name not in ("id", "epsilon") and not isinstance(value, list)
    }
    shown = (f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in fields.items())
    return ", ".join([mechanism.id, *shown])


def advice(planning: Planning, found: Plan) -> list[str]:
    """Describe what the recommended collection can and cannot detect."""
    best, setup = found.best, found.best.setup
    assert setup is not None
    rms = math.sqrt(best.l2 / planning.question.num_frequencies)
    over = f" over {setup.alphabet['id']} values" if setup.num_cohorts > 1 else ""
    over += " within public blocks" if len(setup.mechanism.confusable) > 1 else ""
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
    return [*lines, *_of_levels(planning, found), *setup.caveats, *setup.mechanism.caveats]


def _of_levels(planning: Planning, found: Plan) -> list[str]:
    """What each level is promised, and how precise its values are, if there are levels."""
    setup = found.best.setup
    assert setup is not None
    levels = setup.mechanism.guarantees
    if len(levels) == 1:
        return []
    of_each = setup.forecast(planning.planned_reports).levels
    widths = (f"{one.of} {part.half_width(planning.confidence):.2g}" for one, part in zip(levels, of_each))
    return [
        f"Half width of the {percent(planning.confidence)} interval of a value: {', '.join(widths)}.",
        f"Epsilon: {epsilons_in_words(setup.mechanism)}.",
    ]


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
            which=_LEVEL_1 if best.setup and len(best.setup.mechanism.guarantees) > 1 else "",
            whose="" if planning.groups is None else " of the smallest group",
        )
        for name, target in planning.targets.items()
    ]
