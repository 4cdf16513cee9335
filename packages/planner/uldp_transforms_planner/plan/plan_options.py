"""The command line of ``uldp plan``, and the resulting question."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.jobs.spec_options import spec_option
from uldp_transforms.ldp.alphabets.dimensions import MAX_GROUPS
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_planner.plan.group_plan import GROUPS, GroupPlan, read_groups
from uldp_transforms_planner.plan.number_plan import NumberPlanning, read_number_arguments
from uldp_transforms_planner.plan.plan_question import question_of
from uldp_transforms_planner.plan.plan_targets import TARGETS, epsilon_of, targets_of
from uldp_transforms_planner.plan.value_structure import STRUCTURE, read_structure
from uldp_transforms_planner.planning import ClosedQuestion, OpenQuestion, least_epsilon
from uldp_transforms_planner.planning.open_question import FLAT, ZIPF
from uldp_transforms_planner.planning.planning import BYTE_COST
from uldp_transforms_tables.people_options import PEOPLE, TABLE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planning:
    """Options of the planner.

    ``is_least`` tells whether epsilon is the smallest that meets the target, ``has_names`` whether the names of the
    values are known.
    """

    question: ClosedQuestion | OpenQuestion
    epsilon: float
    num_reports: int
    targets: dict[str, float]
    values: str | None
    output: str | None
    png: str | None
    reports_per_person: int | None
    epsilon_inf: float | None
    has_names: bool = False
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
        "help": "text file of the sensitive values, one per line; with --values or --blocks (default: all)",
    },
    **STRUCTURE,
    "--open": {cli.IS_COMMON: True, "action": "store_true", "help": "open alphabet: people may send any text"},
    "--num_candidates": {
        cli.IS_COMMON: True,
        "type": cli.positive(),
        "help": "with --open: number of sensitive texts to estimate",
    },
    "--num_non_sensitive": {"type": cli.positive(), "help": "with --open: number of further texts, on a public list"},
    "--unlisted_share": {
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
    groups, structure = read_groups(args), read_structure(args.blocks, args.levels)
    question = question_of(args, structure)
    if groups is not None:
        if isinstance(question, OpenQuestion) and groups.max_cohorts < 2:
            raise SpecError(f"--groups must be at most {MAX_GROUPS // 2:,} with --open, got {groups.number:,}")
        question = dataclasses.replace(question, max_cohorts=min(question.max_cohorts, groups.max_cohorts))
    targets, reports = targets_of(args), args.reports if groups is None else groups.reports_of(args.reports)

    def least() -> float | None:
        return least_epsilon(question, reports, confidence=args.confidence, **targets)

    return Planning(
        question=question,
        groups=groups,
        liars=args.liars,
        confidence=args.confidence,
        epsilon=structure.levels[0].epsilon if structure.levels else epsilon_of(args, least),
        is_least=args.epsilon is None and structure.levels is None,
        num_reports=args.reports,
        targets=targets,
        values=args.values,
        output=args.output,
        png=args.png,
        reports_per_person=args.reports_per_person,
        epsilon_inf=args.epsilon_inf,
        has_names=structure.has_names or args.values is not None,
        byte_cost=BYTE_COST if args.byte_cost is None else args.byte_cost,
    )
