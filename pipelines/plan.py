"""Plans a collection before anybody is asked: which mechanism, how precise, how many reports, at what epsilon."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms.ldp.utility import ClosedQuestion, OpenQuestion, Plan, PlanRow, plan
from uldp_transforms.ldp.utility.longitudinal import text_of

from . import cli


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planning:
    """What to plan, and where the recommended collection goes."""

    question: ClosedQuestion | OpenQuestion
    epsilon: float
    num_reports: int
    target_l1: float | None
    target_l2: float | None
    json: str | None
    reports_per_person: int | None
    epsilon_inf: float | None


def configure(argv: Sequence[str]) -> Planning:
    """The command line of ``pipelines.plan``; raises SpecError."""
    parser = cli.Parser("plan", description=__doc__)
    parser.add_argument("--num_values", type=cli.positive(), help="number of values in a known list")
    parser.add_argument("--num_sensitive", type=cli.positive(), help="number of sensitive values (default: all)")
    parser.add_argument("--open", action="store_true", help="people may send any text, not only values of a list")
    parser.add_argument("--num_candidates", type=cli.positive(), help="with --open: sensitive texts to estimate")
    parser.add_argument(
        "--num_non_sensitive",
        type=cli.positive(),
        help="with --open: further texts, on a public list",
    )
    parser.add_argument("--epsilon", type=cli.positive(float), required=True, help="epsilon of one report, up to 16")
    parser.add_argument("--reports", type=cli.positive(), required=True, help="number of reports to expect")
    parser.add_argument(
        "--sensitive_share",
        type=float,
        help="guess of the share of people with sensitive values (default: worst case)",
    )
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--target_l1", type=cli.positive(float), help="sum of absolute errors over all values to reach")
    target.add_argument("--target_l2", type=cli.positive(float), help="sum of squared errors over all values to reach")
    parser.add_argument(
        "--reports_per_person", type=cli.positive(), help="windows in which each person is asked: what that costs them"
    )
    parser.add_argument(
        "--epsilon_inf",
        type=cli.positive(float),
        help="with --reports_per_person: guarantee of all reports of one symbol (default: twice epsilon)",
    )
    parser.add_argument("--json", help="file to write the recommended collection to (default: print it)")
    args = parser.parse_args(argv)
    if args.epsilon_inf is not None and args.reports_per_person is None:
        raise SpecError(f"--epsilon_inf needs --reports_per_person, got {args.epsilon_inf:g} alone")
    return Planning(
        question=_question(args),
        epsilon=args.epsilon,
        num_reports=args.reports,
        target_l1=args.target_l1,
        target_l2=args.target_l2,
        json=args.json,
        reports_per_person=args.reports_per_person,
        epsilon_inf=args.epsilon_inf,
    )


def _question(args: Any) -> ClosedQuestion | OpenQuestion:
    needed, further = ("num_candidates", "num_non_sensitive") if args.open else ("num_values", "num_sensitive")
    others = {"num_values", "num_sensitive", "num_candidates", "num_non_sensitive"} - {needed, further}
    for name in sorted(others):
        if getattr(args, name) is not None:
            which = "without" if args.open else "with"
            raise SpecError(f"--{name} can be given only {which} --open, got {getattr(args, name)}")
    if getattr(args, needed) is None:
        raise SpecError(f"--{needed} must be given {'with' if args.open else 'without'} --open, got none")
    harmless = args.num_non_sensitive or 0 if args.open else args.num_values - (args.num_sensitive or args.num_values)
    if args.sensitive_share is not None and not harmless:
        raise SpecError(
            f"--sensitive_share needs values that are not sensitive, got {args.sensitive_share} without any"
        )
    if args.open:
        return OpenQuestion(
            num_candidates=args.num_candidates, num_non_sensitive=harmless, sensitive_share=args.sensitive_share
        )
    return ClosedQuestion(
        num_values=args.num_values,
        num_sensitive=args.num_sensitive or args.num_values,
        sensitive_share=args.sensitive_share,
    )


def job(planning: Planning) -> int:
    """Plan, write the file, print the table."""
    found = plan(
        planning.question,
        planning.epsilon,
        planning.num_reports,
        target_l1=planning.target_l1,
        target_l2=planning.target_l2,
    )
    if planning.json is not None:
        with open(planning.json, "w", encoding="utf-8") as file:
            file.write(spec_text(found.collection))
    lines = [*heading(planning), "", *table(planning, found), "", *advice(planning, found)]
    print("\n".join([*lines, *over_time(planning, found)]))
    if planning.json is None:
        print("\n" + spec_text(found.collection), end="")
    else:
        print(f"The recommended collection, with placeholders for values: {planning.json}")
    return cli.DONE


def heading(planning: Planning) -> list[str]:
    """What is asked, and for which distribution errors are meant."""
    question = planning.question
    if isinstance(question, ClosedQuestion):
        what = f"{question.num_values:,} values, {question.num_sensitive:,} of them sensitive"
    else:
        what = f"{question.num_candidates:,} candidates of an open alphabet"
        if question.num_non_sensitive:
            what += f" and {question.num_non_sensitive:,} texts that are not sensitive"
    guess = "for each row at the distribution that is worst for it"
    if question.sensitive_share is not None:
        guess = f"at the worst distribution with {question.sensitive_share:.3g} of all people holding sensitive values"
    return [
        f"{what}; {planning.num_reports:,} reports at epsilon {planning.epsilon:g}",
        f"Expected errors of raw estimates, summed over all values, {guess}:",
    ]


def table(planning: Planning, found: Plan) -> list[str]:
    """One line a setup, columns aligned."""
    is_open = isinstance(planning.question, OpenQuestion)
    titles = ["mechanism", "protects", "bytes", "l1", "l2"]
    titles += ["buckets", "cohorts"] if is_open else ["% above optimum"]
    target = {"l1": planning.target_l1, "l2": planning.target_l2}
    for name, value in target.items():
        if value is not None:
            titles += [f"reports for {name} {value:g}", f"epsilon for {name} {value:g}"]
    lines = [titles, *(_cells(row, is_open)[: len(titles)] for row in found.rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    left = 2
    return [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width) for at, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    ]


def _cells(row: PlanRow, is_open: bool) -> list[str]:
    if row.setup is None:
        cells = [row.name, "nothing", "", f"{row.l1:.3g}", f"{row.l2:.3g}", *[""] * (2 if is_open else 1)]
        return [*cells, f"{row.reports_needed:,}" if row.reports_needed else "", ""]
    mechanism = row.setup.mechanism
    protected = "all values" if mechanism.num_sensitive == mechanism.num_symbols else "sensitive values"
    if is_open:
        sizes = [f"{mechanism.num_sensitive:,}", f"{row.setup.num_cohorts:,}"]
    else:
        sizes = [f"{100 * (row.above_optimum or 0):,.1f}"]
    return [
        described(mechanism),
        protected,
        f"{mechanism.payload_size:,}",
        f"{row.l1:.3g}",
        f"{row.l2:.3g}",
        *sizes,
        f"{row.reports_needed:,}" if row.reports_needed else "",
        f"{row.epsilon_needed:.3f}" if row.epsilon_needed else "above 16",
    ]


def described(mechanism: Mechanism) -> str:
    """Its id, and its fields other than epsilon."""
    fields = {name: value for name, value in mechanism.to_json().items() if name not in ("id", "epsilon")}
    shown = (f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in fields.items())
    return ", ".join([mechanism.id, *shown])


def advice(planning: Planning, found: Plan) -> list[str]:
    """What the recommended collection can and cannot show."""
    best, setup = found.best, found.best.setup
    assert setup is not None
    rms = math.sqrt(best.l2 / planning.question.num_frequencies)
    lines = [
        f"Recommended: {described(setup.mechanism)}. A frequency is off by {rms:.2g} (root mean square over values).",
    ]
    if best.l1 >= 1:
        lines.append(
            f"Too few reports for the whole distribution: l1 is {best.l1:.2g}, and two distributions are never more "
            "than 2 apart."
        )
    if found.detectable_frequency < 1:
        lines.append(
            f"A sensitive value stands out, 4 times in 5, from a frequency of {found.detectable_frequency:.2g} on "
            "(1 in 20 false alarms over all of them)."
        )
    lie = f"One lie counts as {found.amplification.sensitive:.2f} honest reports of a sensitive value"
    clear = found.amplification.clear
    lines.append(lie + (f", {clear:.2f} of another one." if clear is not None else "."))
    return lines


def over_time(planning: Planning, found: Plan) -> list[str]:
    """What it costs people to be asked again and again, if that was asked."""
    setup = found.best.setup
    if planning.reports_per_person is None or setup is None:
        return []
    epsilon_inf = planning.epsilon_inf or min(2 * planning.epsilon, MAX_EPSILON)
    assert isinstance(setup.mechanism, SetReportMechanism), "the planner compares no others"
    mechanism = dataclasses.replace(setup.mechanism, epsilon_inf=epsilon_inf)
    return ["", *text_of(mechanism, setup.num_cohorts, planning.num_reports, planning.reports_per_person)]


def spec_text(spec: dict[str, Any]) -> str:
    """JSON with one line a key."""
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in spec.items()) + "\n}\n"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("plan", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    sys.exit(main())
