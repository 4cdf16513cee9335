"""Plans a collection before anybody is asked: which mechanism, how precise, how many reports, at what epsilon."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms.ldp.utility import ClosedQuestion, OpenQuestion, Plan, PlanRow, plan
from uldp_transforms.ldp.utility.longitudinal import text_of
from uldp_transforms.ldp.utility.open_question import FLAT, ZIPF

from . import cli
from .report.report_command import require_charts
from .values import ValuesFile
from .whole_file import whole_file

_ROWS_AT_ONCE = 1 << 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planning:
    """What to plan, and where the recommended collection goes."""

    question: ClosedQuestion | OpenQuestion
    epsilon: float
    num_reports: int
    targets: dict[str, float]
    values: str | None
    json: str | None
    png: str | None
    reports_per_person: int | None
    epsilon_inf: float | None


TARGETS: cli.Options = {
    "--target_l1": {"help": "sum of absolute errors over all values to reach"},
    "--target_l2": {"help": "sum of squared errors over all values to reach"},
    "--target_half_width": {"help": "half width of the 95 %% interval of a sensitive value to reach"},
}


def configure(argv: Sequence[str]) -> Planning:
    """The command line of ``pipelines.plan``; raises SpecError, OSError."""
    parser = cli.Parser("plan", description=__doc__)
    parser.add_argument("--num_values", type=cli.positive(), help="number of values in a known list")
    parser.add_argument("--num_sensitive", type=cli.positive(), help="number of sensitive values (default: all)")
    parser.add_argument("--values", help="CSV file of people's values, as they would report them, instead of numbers")
    parser.add_argument("--column", help="with --values: name of its column (default: value)")
    parser.add_argument("--sensitive", help="with --values: text file of the sensitive ones, one a line (default: all)")
    parser.add_argument("--open", action="store_true", help="people may send any text, not only values of a list")
    parser.add_argument("--num_candidates", type=cli.positive(), help="with --open: sensitive texts to estimate")
    parser.add_argument("--num_non_sensitive", type=cli.positive(), help="with --open: further texts, on a public list")
    parser.add_argument(
        "--unlisted_share", type=float, help="with --open: share of people whose text is on no list (default: 0.1)"
    )
    parser.add_argument(
        "--frequencies", choices=(ZIPF, FLAT), help="with --open: how frequent texts are (default: zipf, like 1 / rank)"
    )
    parser.add_argument(
        "--max_cohorts",
        type=cli.positive(),
        help="with --open: fewer cohorts than accuracy wants, for fewer counters or people who keep their cohort",
    )
    parser.add_argument("--epsilon", type=cli.positive(float), required=True, help="epsilon of one report, up to 16")
    parser.add_argument("--reports", type=cli.positive(), required=True, help="number of reports to expect")
    parser.add_argument(
        "--sensitive_share",
        type=float,
        help="guess of the share of people with sensitive values (default: worst case)",
    )
    target = parser.add_mutually_exclusive_group()
    for name, option in TARGETS.items():
        target.add_argument(name, type=cli.positive(float), **option)
    parser.add_argument(
        "--reports_per_person", type=cli.positive(), help="windows in which each person is asked: what that costs them"
    )
    parser.add_argument(
        "--epsilon_inf",
        type=cli.positive(float),
        help="with --reports_per_person: guarantee of all reports of one symbol, which the recommended collection then "
        "has; by default it has none, and what is said of memos is for twice epsilon",
    )
    parser.add_argument("--json", help="file to write the recommended collection to (default: print it)")
    parser.add_argument("--png", help="file of a picture; needs the extra 'plot'")
    args = parser.parse_args(argv)
    if args.png is not None:
        require_charts()
    if args.epsilon_inf is not None and args.reports_per_person is None:
        raise SpecError(f"--epsilon_inf needs --reports_per_person, got {args.epsilon_inf:g} alone")
    names = [name.removeprefix("--") for name in TARGETS]
    return Planning(
        question=_question(args),
        epsilon=args.epsilon,
        num_reports=args.reports,
        targets={name: getattr(args, name) for name in names if getattr(args, name) is not None},
        values=args.values,
        json=args.json,
        png=args.png,
        reports_per_person=args.reports_per_person,
        epsilon_inf=args.epsilon_inf,
    )


NUMBERS = ("num_values", "num_sensitive", "num_candidates", "num_non_sensitive")
OPEN_ONLY = ("num_candidates", "num_non_sensitive", "unlisted_share", "frequencies", "max_cohorts")
CLOSED_ONLY = ("num_values", "num_sensitive")


def _question(args: Any) -> ClosedQuestion | OpenQuestion:
    _refuse(args, CLOSED_ONLY if args.open else OPEN_ONLY, "without --open" if args.open else "with --open")
    if args.values is None:
        _refuse(args, ("column", "sensitive"), "with --values")
        return _question_of_numbers(args)
    _refuse(args, (*NUMBERS, "sensitive_share", "frequencies"), "without --values")
    return _question_of_values(args)


def _refuse(args: Any, names: Sequence[str], where: str) -> None:
    for name in names:
        if getattr(args, name) is not None:
            raise SpecError(f"--{name} can be given only {where}, got {getattr(args, name)}")


def _question_of_numbers(args: Any) -> ClosedQuestion | OpenQuestion:
    needed = "num_candidates" if args.open else "num_values"
    if getattr(args, needed) is None:
        raise SpecError(f"--{needed} must be given {'with' if args.open else 'without'} --open, got none")
    harmless = args.num_non_sensitive or 0 if args.open else args.num_values - (args.num_sensitive or args.num_values)
    if args.sensitive_share is not None and not harmless:
        raise SpecError(
            f"--sensitive_share needs values that are not sensitive, got {args.sensitive_share} without any"
        )
    if args.open:
        return OpenQuestion(
            num_candidates=args.num_candidates,
            num_non_sensitive=harmless,
            sensitive_share=args.sensitive_share,
            law=args.frequencies or ZIPF,
            **_of_open(args),
        )
    return ClosedQuestion(
        num_values=args.num_values,
        num_sensitive=args.num_sensitive or args.num_values,
        sensitive_share=args.sensitive_share,
    )


def _of_open(args: Any) -> dict[str, Any]:
    """Fields of any open question."""
    names = ("unlisted_share", "max_cohorts")
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _question_of_values(args: Any) -> ClosedQuestion | OpenQuestion:
    """Values in alphabetical order: that of their frequencies would say in public what was counted in private."""
    held = Counter(_column(args.values, args.column or "value"))
    if len(held) < 2:
        raise SpecError(f"{args.values} must have at least 2 different values, got {len(held)}")
    chosen = set(held) if args.sensitive is None else {canonical(line) for line in _lines(args.sensitive)}
    sensitive, others, total = sorted(chosen), sorted(set(held) - chosen), sum(held.values())
    if not sensitive:
        raise SpecError(f"{args.sensitive} must name a sensitive value, got none")
    shares = tuple(held[value] / total for value in (*sensitive, *others))
    if args.open:
        return OpenQuestion(
            num_candidates=len(sensitive),
            num_non_sensitive=len(others),
            frequencies=shares,
            names=tuple(others),
            **_of_open(args),
        )
    names = (*sensitive, *others)
    return ClosedQuestion(num_values=len(names), num_sensitive=len(sensitive), frequencies=shares, names=names)


def _column(path: str, name: str) -> Iterator[str]:
    for values, _ in ValuesFile(path, name).read(_ROWS_AT_ONCE):
        yield from map(canonical, values)


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return [line for line in file.read().splitlines() if line]


def job(planning: Planning) -> int:
    """Plan, write the file, print the table."""
    targets = {f"target_{name.removeprefix('target_')}": value for name, value in planning.targets.items()}
    found = plan(planning.question, planning.epsilon, planning.num_reports, **targets)
    spec = recommended(planning, found)
    if planning.png is not None:
        from .report.plan_chart import picture_of_plan  # noqa: PLC0415  # an optional extra

        with whole_file(planning.png) as picture:
            picture.write(picture_of_plan([_drawn(row) for row in found.rows]))
    if planning.json is not None:
        with open(planning.json, "w", encoding="utf-8") as file:
            file.write(spec_text(spec))
    lines = [*heading(planning), "", *table(planning, found), "", *legend(planning), "", *advice(planning, found)]
    print("\n".join([*lines, *over_time(planning, found)]))
    if planning.json is None:
        print("\n" + spec_text(spec), end="")
    else:
        what = "The recommended collection" + ("" if planning.values else ", with placeholders for values")
        print(f"{what}: {planning.json}")
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
    return [
        f"{what}; {planning.num_reports:,} reports at epsilon {planning.epsilon:g}",
        f"Expected errors of raw estimates (`empirical`) for {_truth(planning)}:",
    ]


def _truth(planning: Planning) -> str:
    """The frequencies that forecasts are for."""
    question, share = planning.question, planning.question.sensitive_share
    if isinstance(question, OpenQuestion):
        holders = ""
        if question.num_non_sensitive and not planning.values:
            holders = "; as many hold sensitive ones as is worst for each row"
            if share is not None:
                holders = f"; {share:.3g} of all people hold sensitive ones"
        shape = "frequencies like 1 / rank" if question.law == ZIPF else "equal frequencies"
        if planning.values:
            shape = f"the frequencies in {planning.values}"
        return f"{shape}, and {question.unlisted_share:.3g} of all people with texts on no list{holders}"
    if planning.values:
        return f"the frequencies in {planning.values}"
    if share is None:
        return "the distribution that is worst for each row"
    return f"the worst distribution with {share:.3g} of all people holding sensitive values"


def table(planning: Planning, found: Plan) -> list[str]:
    """One line a setup, columns aligned."""
    is_open = isinstance(planning.question, OpenQuestion)
    titles = ["mechanism", "protects", "bytes", "l1", "l2", "half width", "change", "lie"]
    titles += ["buckets", "cohorts"] if is_open else ["% above optimum"]
    for name, value in planning.targets.items():
        what = name.removeprefix("target_").replace("_", " ")
        titles += [f"reports for {what} {value:g}", f"epsilon for {what} {value:g}"]
    lines = [titles, *(_cells(row, is_open, bool(planning.targets)) for row in found.rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    left = 2
    return [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width) for at, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    ]


def _cells(row: PlanRow, is_open: bool, has_target: bool) -> list[str]:
    errors = [f"{error:.3g}" for error in (row.l1, row.l2, row.half_width, row.change, row.lie)]
    reports = f"{row.reports_needed:,}" if row.reports_needed else "no number"
    if row.setup is None:
        cells = [row.name, "nothing", "", *errors, *[""] * (2 if is_open else 1)]
        return cells + ([reports, ""] if has_target else [])
    mechanism = row.setup.mechanism
    protected = "all values" if mechanism.num_sensitive == mechanism.num_symbols else "sensitive values"
    if is_open:
        sizes = [f"{mechanism.num_sensitive:,}", f"{row.setup.num_cohorts:,}"]
    else:
        sizes = [f"{100 * (row.above_optimum or 0):,.1f}"]
    cells = [described(mechanism), protected, f"{mechanism.payload_size:,}", *errors, *sizes]
    needed = f"{row.epsilon_needed:.3f}" if row.epsilon_needed else "above 16"
    return cells + ([reports, needed] if has_target else [])


def _drawn(row: PlanRow) -> dict[str, Any]:
    name = row.name if row.setup is None else described(row.setup.mechanism)
    return {"name": name, "l1": row.l1, "half_width": row.half_width, "private": row.setup is not None}


def legend(planning: Planning) -> list[str]:
    """What the columns say."""
    lines = [
        "bytes: of a report, without its header. l1, l2: sum over all values of |error|, of error squared.",
        "half width: of the 95 % interval of a sensitive value's frequency.",
        "change: of a sensitive value's frequency between two such windows, from which on it is found 4 times in 5.",
        "lie: honest reports that one freely chosen report can count as.",
    ]
    if isinstance(planning.question, OpenQuestion):
        lines.append("buckets, cohorts: each text falls into one bucket, another one in each cohort of people.")
    else:
        lines.append("% above optimum: largest l2 over the smallest that any mechanism with this promise can have.")
    return lines


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


def recommended(planning: Planning, found: Plan) -> dict[str, Any]:
    """The collection, with memos if their guarantee was given."""
    setup = found.best.setup
    if planning.epsilon_inf is None or setup is None:
        return found.collection
    assert isinstance(setup.mechanism, SetReportMechanism), "the planner compares no others"
    mechanism = dataclasses.replace(setup.mechanism, epsilon_inf=planning.epsilon_inf)  # refuses less than epsilon
    return found.collection | {"mechanism": mechanism.to_json()}


def spec_text(spec: dict[str, Any]) -> str:
    """JSON with one line a key."""
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in spec.items()) + "\n}\n"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("plan", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    sys.exit(main())
