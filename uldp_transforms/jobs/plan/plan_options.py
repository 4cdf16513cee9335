"""The command line of ``uldp plan``, and the resulting question."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.people_options import PEOPLE, TABLE, people_in, refuse_people_options, say_missing
from uldp_transforms.jobs.files.value_lists import value_lines
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.jobs.plan.group_plan import GROUPS, GroupPlan, read_groups
from uldp_transforms.jobs.plan.number_plan import NumberPlanning, read_number_arguments
from uldp_transforms.jobs.plan.plan_targets import TARGETS, epsilon_of, targets_of
from uldp_transforms.jobs.spec_options import spec_option
from uldp_transforms.ldp.alphabets.dimensions import MAX_GROUPS
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.planning import ClosedQuestion, OpenQuestion, least_epsilon
from uldp_transforms.ldp.planning.open_question import FLAT, ZIPF
from uldp_transforms.ldp.planning.planning import BYTE_COST


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planning:
    """Options of the planner; ``is_least`` tells whether epsilon is the smallest that meets the target."""

    question: ClosedQuestion | OpenQuestion
    epsilon: float
    num_reports: int
    targets: dict[str, float]
    values: str | None
    output: str | None
    png: str | None
    reports_per_person: int | None
    epsilon_inf: float | None
    groups: GroupPlan | None = None
    liars: float | None = None
    confidence: float = CONFIDENCE
    is_least: bool = False
    byte_cost: float = BYTE_COST

    @property
    def planned_reports(self) -> int:
        """Number of reports for which errors are computed: of the smallest group, if there are groups."""
        return self.num_reports if self.groups is None else self.groups.reports_of(self.num_reports)


_QUESTION: cli.Options = {
    "--collection": {
        cli.IS_COMMON: True,
        "help": "JSON file of a collection with an ordered alphabet, for means and quantiles of numbers; its mechanism "
        "is to be chosen",
    },
    "--num_values": {cli.IS_COMMON: True, "type": cli.positive(), "help": "number of values in a known list"},
    "--num_sensitive": {
        cli.IS_COMMON: True,
        "type": cli.positive(),
        "help": "number of sensitive values (default: all)",
    },
    "--values": {
        cli.IS_COMMON: True,
        "help": f"table of people's values ({TABLE}), instead of --num_values and --num_sensitive",
    },
    **PEOPLE,
    "--sensitive": {
        cli.IS_COMMON: True,
        "help": "text file of the sensitive values, one per line; with --values (default: all)",
    },
    "--open": {cli.IS_COMMON: True, "action": "store_true", "help": "open alphabet: people may send any text"},
    "--num_candidates": {
        cli.IS_COMMON: True,
        "type": cli.positive(),
        "help": "with --open: number of sensitive texts to estimate",
    },
    "--num_non_sensitive": {"type": cli.positive(), "help": "with --open: number of further texts, on a public list"},
    "--unlisted_share": {
        cli.IS_COMMON: True,
        "type": float,
        "help": "with --open: share of people whose text is on no list (default: 0.1)",
    },
    "--heaviest_unlisted": {
        "type": float,
        "help": "with --open: share of all people who hold the most frequent unlisted text (default: assumes that "
        "unlisted texts are as numerous and as unevenly distributed as the candidates)",
    },
    "--frequencies": {
        "choices": (ZIPF, FLAT),
        "help": "with --open: distribution of texts (default: zipf, like 1 / rank)",
    },
    "--max_cohorts": {
        "type": cli.positive(),
        "help": "limit on the number of cohorts, for fewer counters or fixed cohorts; 1: do not fold a known list into "
        "buckets",
    },
    "--epsilon": {
        cli.IS_COMMON: True,
        "type": cli.positive(float),
        "help": "epsilon of one report, up to 16 (default: the smallest that meets the target)",
    },
    "--reports": {
        cli.IS_COMMON: True,
        "type": cli.positive(),
        "required": True,
        "help": "number of reports that are expected",
    },
    "--sensitive_share": {
        "type": float,
        "help": "assumed share of people with sensitive values (default: worst case)",
    },
    **GROUPS,
    "--liars": {
        cli.IS_COMMON: True,
        "type": cli.positive(float),
        "help": "largest share of reports that may be false, such as 0.01, for which intervals and comparisons are to "
        "allow; without --open",
    },
}

_RESULT: cli.Options = {
    "--confidence": spec_option(
        "confidence", is_common=True, help="level of confidence of the intervals whose half width is expected"
    ),
    "--byte_cost": {
        "type": float,
        "help": "relative increase of the error that is acceptable for a report that is one byte shorter (default: "
        f"{BYTE_COST:g}, so 250 bytes count as much as a quarter of the error)",
    },
    "--reports_per_person": {
        cli.IS_COMMON: True,
        "type": cli.positive(),
        "help": "number of windows in which each person reports, for the privacy cost",
    },
    "--epsilon_inf": {
        cli.IS_COMMON: True,
        "type": cli.positive(float),
        "help": "with --reports_per_person: epsilon of all reports about one value together; the recommended "
        "collection then uses memos (default: no memos; costs with memos are printed for twice epsilon)",
    },
    "--output": {
        cli.IS_COMMON: True,
        "help": "where to write the recommended collection: a JSON file (default: print it)",
    },
    "--png": {cli.IS_COMMON: True, "help": "PNG file to write; needs the extra 'plot'"},
}


def read_arguments(argv: Sequence[str], description: str | None) -> Planning | NumberPlanning:
    """Parse a command line; raises SpecError, OSError."""
    parser = cli.Parser("plan", has_short_help=True, description=description)
    cli.add_options(parser, _QUESTION)
    target = parser.add_mutually_exclusive_group()
    for name, option in TARGETS.items():
        cli.add_options(target, {name: {"type": cli.positive(float), **option}})
    cli.add_options(parser, _RESULT)
    args = parser.parse_args(argv)
    if args.collection is not None:
        return read_number_arguments(args)
    if args.png is not None:
        drawing("plan")
    if args.epsilon_inf is not None and args.reports_per_person is None:
        raise SpecError(f"--epsilon_inf needs --reports_per_person, got {args.epsilon_inf:g} alone")
    if args.liars is not None and not args.liars < 1:
        raise SpecError(f"--liars must be below 1, got {args.liars:g}")
    if args.byte_cost is not None and not args.byte_cost >= 0:
        raise SpecError(f"--byte_cost must be at least 0, got {args.byte_cost:g}")
    groups = read_groups(args)
    question = _question(args)
    if groups is not None:
        if isinstance(question, OpenQuestion) and groups.max_cohorts < 2:
            raise SpecError(f"--groups must be at most {MAX_GROUPS // 2:,} with --open, got {groups.number:,}")
        question = dataclasses.replace(question, max_cohorts=min(question.max_cohorts, groups.max_cohorts))
    targets, reports = targets_of(args), args.reports if groups is None else groups.reports_of(args.reports)
    return Planning(
        question=question,
        groups=groups,
        liars=args.liars,
        confidence=args.confidence,
        epsilon=epsilon_of(args, lambda: least_epsilon(question, reports, confidence=args.confidence, **targets)),
        is_least=args.epsilon is None,
        num_reports=args.reports,
        targets=targets,
        values=args.values,
        output=args.output,
        png=args.png,
        reports_per_person=args.reports_per_person,
        epsilon_inf=args.epsilon_inf,
        **_given(args, "byte_cost"),
    )


NUMBERS = ("num_values", "num_sensitive", "num_candidates", "num_non_sensitive")
OPEN_ONLY = ("num_candidates", "num_non_sensitive", "unlisted_share", "heaviest_unlisted", "frequencies")
CLOSED_ONLY = ("num_values", "num_sensitive", "liars")


def _question(args: Any) -> ClosedQuestion | OpenQuestion:
    _refuse(args, CLOSED_ONLY if args.open else OPEN_ONLY, "without --open" if args.open else "with --open")
    if args.values is None:
        refuse_people_options(args, "--values")
        _refuse(args, ("sensitive",), "with --values")
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
        **_given(args, "max_cohorts"),
    )


def _given(args: Any, *names: str) -> dict[str, Any]:
    """The options that were given."""
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _of_open(args: Any) -> dict[str, Any]:
    """The fields that all open questions share."""
    return _given(args, "unlisted_share", "heaviest_unlisted", "max_cohorts")


def _question_of_values(args: Any) -> ClosedQuestion | OpenQuestion:
    """The question about a file of values, in alphabetical order: the order of frequencies would reveal private
    counts."""
    held = Counter(_column(args))
    if len(held) < 2:
        raise SpecError(f"{args.values} must have at least 2 different values, got {len(held)}")
    chosen = set(held) if args.sensitive is None else set(value_lines(args.sensitive, held))
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
    sizes = {"num_values": len(names), "num_sensitive": len(sensitive)}
    return ClosedQuestion(**sizes, frequencies=shares, names=names, **_given(args, "max_cohorts"))


def _column(args: Any) -> Iterator[str]:
    file = people_in(args.values, args)
    for values, _ in file.read():
        yield from map(canonical, values)
    say_missing("plan", file)
