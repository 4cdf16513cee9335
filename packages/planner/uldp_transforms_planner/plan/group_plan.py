"""Groups in a plan: the reports of the smallest, and what public facts tell about the value."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from uldp_transforms.jobs import cli
from uldp_transforms.ldp.alphabets.dimensions import MAX_GROUPS
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms_planner.plan.group_power import GroupPower
from uldp_transforms_planner.planning import Plan
from uldp_transforms_tables.people_options import people_in, say_missing

_MUCH = 0.05
"""Share of the value's entropy from which a fact is said to give it away."""

_SURE = 0.01
"""Largest p-value at which a table is taken to show any dependence."""

GROUPS: cli.Options = {
    "--groups": {
        cli.IS_COMMON: True,
        "type": cli.positive(),
        "help": "number of groups to estimate separately; every dimension has `other` as one more value. The plan is "
        "then for the smallest group",
    },
    "--smallest_group": {
        "type": cli.positive(float),
        "help": "with --groups: share of the reports that come from the smallest group (default: 1 / groups)",
    },
    "--dimensions": {
        "type": cli.columns,
        "help": "with --values, instead of --groups: columns of public facts, such as country,arm; also prints how "
        "much they reveal about the value",
    },
    "--difference": {
        "type": cli.positive(float),
        "help": "with --groups or --dimensions: also say how many reports show this difference in one value between "
        "two groups, such as 0.01",
    },
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Told:
    """What a public fact tells about the value.

    Attributes:
        name: of the dimension, or of several together.
        bits: mutual information in bits, less its bias in a table of this size (Miller 1955); not negative.
        entropy: of the value, in bits.
        p_value: of the likelihood-ratio test of independence.
        guess, informed: share of people whose value is guessed right by the most frequent value of all people, and by
            that of their group. In small groups the latter is too large.
    """

    name: str
    bits: float
    entropy: float
    p_value: float
    guess: float
    informed: float

    @property
    def much(self) -> bool:
        """Whether the fact gives a noticeable part of the value away."""
        return self.bits >= _MUCH * self.entropy and self.p_value <= _SURE


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """Groups of a planned collection.

    Attributes:
        number: of groups, with ``other`` of each dimension.
        smallest: share of the reports that come from the smallest group.
        told: what each dimension tells about the value, and all together; empty without a table.
        difference: difference between two groups that is to show; None: not asked for.
    """

    number: int
    smallest: float
    told: tuple[Told, ...] = ()
    difference: float | None = None

    def __post_init__(self) -> None:
        if self.number > MAX_GROUPS:
            raise SpecError(f"--groups times cohorts must be at most {MAX_GROUPS:,}, got {self.number:,} groups")
        if not 0 < self.smallest <= 1 / 2:
            raise SpecError(f"--smallest_group must be a share above 0, at most 0.5, got {self.smallest:g}")
        if self.difference is not None and not 0 < self.difference < 1:
            raise SpecError(f"--difference must be between 0 and 1, got {self.difference:g}")

    @property
    def max_cohorts(self) -> int:
        """Maximum number of cohorts of a collection with these groups."""
        return MAX_GROUPS // self.number

    def reports_of(self, num_reports: int) -> int:
        """Expected number of reports of the smallest group; raises SpecError if there are none."""
        of_group = int(num_reports * self.smallest)
        if of_group < 1:
            raise SpecError(f"--reports must give the smallest group at least 1 report, got {num_reports:,} for all")
        return of_group


def read_groups(args: Any) -> GroupPlan | None:
    """The groups of a command line; None without. Raises SpecError, OSError."""
    if args.dimensions is not None:
        if args.values is None:
            raise SpecError(f"--dimensions can be given only with --values, got {','.join(args.dimensions)}")
        for name in ("groups", "smallest_group"):
            if getattr(args, name) is not None:
                raise SpecError(f"--{name} can be given only without --dimensions, got {getattr(args, name):g}")
        return _groups_of_table(args)
    if args.groups is None:
        for name, where in (("smallest_group", "--groups"), ("difference", "--groups or --dimensions")):
            if getattr(args, name) is not None:
                raise SpecError(f"--{name} can be given only with {where}, got {getattr(args, name):g}")
        return None
    if args.groups < 2:
        raise SpecError(f"--groups must be at least 2, got {args.groups}")
    return GroupPlan(number=args.groups, smallest=args.smallest_group or 1 / args.groups, difference=args.difference)


def _groups_of_table(args: Any) -> GroupPlan:
    names = args.dimensions
    if "" in names or len(set(names)) < len(names):
        raise SpecError(f"--dimensions must name each column once, such as country,arm, got {','.join(names)}")
    held = Counter(_rows(args, names))
    if not held:
        raise SpecError(f"{args.values} must have at least 1 value, got none")
    of_groups: Counter[tuple[str, ...]] = Counter()
    for (_, *facts), number in held.items():
        of_groups[tuple(facts)] += number
    if len(of_groups) < 2:
        raise SpecError("--dimensions must be columns with at least 2 different groups, got 1")
    number = math.prod(len({facts[at] for facts in of_groups}) + 1 for at in range(len(names)))
    sets: list[tuple[str, tuple[int, ...]]] = [(name, (at,)) for at, name in enumerate(names)]
    if len(names) > 1:
        sets.append(("+".join(names), tuple(range(len(names)))))
    told = tuple(_told(name, held, places) for name, places in sets)
    return GroupPlan(
        number=number,
        smallest=min(of_groups.values()) / of_groups.total(),
        told=told,
        difference=args.difference,
    )


def _rows(args: Any, names: list[str]) -> Iterator[tuple[str, ...]]:
    """Value and facts of each row that has all of them."""
    file = people_in(args.values, args, dict.fromkeys(names, "--dimensions"))
    for rows in file.rows():
        for texts in zip(*(rows.columns[name] for name in (file.column, *names))):
            yield tuple(map(canonical, texts))
    say_missing("plan", file, (file.column,))  # of that column, another reading says it


def _told(name: str, held: Counter[tuple[str, ...]], places: tuple[int, ...]) -> Told:
    pairs: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for (value, *facts), number in held.items():
        pairs[value, tuple(facts[at] for at in places)] += number
    rows = {value: at for at, value in enumerate(sorted({value for value, _ in pairs}))}
    groups = {facts: at for at, facts in enumerate(sorted({facts for _, facts in pairs}))}
    table = np.zeros((len(rows), len(groups)))
    for (value, group), number in pairs.items():
        table[rows[value], groups[group]] = number
    return told_by(name, table)


def told_by(name: str, table: np.ndarray) -> Told:
    """What a fact tells, from a table (S, G) of people by value and group without empty rows and columns."""
    n, degrees = table.sum(), (table.shape[0] - 1) * (table.shape[1] - 1)
    nats = _entropy(table.sum(1)) + _entropy(table.sum(0)) - _entropy(table.ravel())
    return Told(
        name=name,
        bits=max(nats - degrees / (2 * n), 0.0) / math.log(2),
        entropy=_entropy(table.sum(1)) / math.log(2),
        p_value=float(special.chdtrc(degrees, max(2 * n * nats, 0.0))) if degrees else 1.0,
        guess=float(table.sum(1).max() / n),
        informed=float(table.max(0).sum() / n),
    )


def _entropy(counts: np.ndarray) -> float:
    """Entropy in nats of the shares of these counts."""
    return float(special.entr(counts / counts.sum()).sum())


def heading_of_groups(groups: GroupPlan, num_reports: int) -> list[str]:
    """The line before the table."""
    return [
        f"{groups.number:,} groups; this plan is for the smallest one, with {groups.reports_of(num_reports):,} "
        f"({groups.smallest:.2g}) of {num_reports:,} reports."
    ]


def advice_on_groups(groups: GroupPlan, found: Plan, num_values: int, liars: float = 0.0) -> list[str]:
    """What two groups show, the limit of their number, and what the dimensions reveal.

    Args:
        groups: the groups.
        found: the plan for the smallest one.
        num_values: number of values that are compared.
        liars: largest share of false reports in each group.
    """
    power = GroupPower(
        plan=found, num_groups=groups.number, num_values=num_values, smallest=groups.smallest, liars=liars
    )
    setup = found.best.setup
    cohorts = 1 if setup is None else setup.num_cohorts
    lines = [
        *power.advice(),
        *([] if groups.difference is None else [power.needed_for(groups.difference)]),
        f"Groups times cohorts: {groups.number:,} x {cohorts:,} = {groups.number * cohorts:,} (limit {MAX_GROUPS:,}).",
    ]
    for told in groups.told:
        lines.append(
            f"{told.name} tells {told.bits:.2g} of the {told.entropy:.2g} bits of the value: the most frequent value "
            f"is right for {told.guess:.1%} of all people, and that of each group for {told.informed:.1%}."
        )
    much = [told.name for told in groups.told if told.much]
    if much:  # the last of several is all together, which is news only if no single one is enough
        named = ", ".join(much[:-1] or much)
        lines.append(f"Warning: sent in the clear, {named} gives much of the value away. No epsilon protects that.")
    return lines
