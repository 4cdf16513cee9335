"""The question of a command line of ``uldp plan``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms_planner.plan.value_lists import value_lines
from uldp_transforms_planner.plan.value_structure import Structure
from uldp_transforms_planner.planning import ClosedQuestion, OpenQuestion
from uldp_transforms_planner.planning.open_question import ZIPF
from uldp_transforms_planner.planning.planned_question import placeholders
from uldp_transforms_planner.planning.structured_rows import values_by_symbol
from uldp_transforms_tables.people_options import people_in, refuse_people_options, say_missing

NUMBERS = ("num_values", "num_sensitive", "num_candidates", "num_non_sensitive")
OPEN_ONLY = ("num_candidates", "num_non_sensitive", "unlisted_share", "heaviest_unlisted", "frequencies")
CLOSED_ONLY = ("num_values", "num_sensitive", "liars", "blocks", "levels")


def question_of(args: Any, structure: Structure) -> ClosedQuestion | OpenQuestion:
    """The question; raises SpecError, OSError."""
    _refuse(args, CLOSED_ONLY if args.open else OPEN_ONLY, "without --open" if args.open else "with --open")
    if args.blocks is not None:
        _refuse(args, ("num_values", "num_sensitive"), "without --blocks")
    if args.levels is not None:
        _refuse(args, ("num_sensitive", "sensitive", "epsilon"), "without --levels")
    if args.values is not None:
        _refuse(args, (*NUMBERS, "sensitive_share", "frequencies"), "without --values")
        return _question_of_values(args, structure)
    refuse_people_options(args, "--values")
    if structure.blocks is None:
        _refuse(args, ("sensitive",), "with --values or --blocks")
    if args.blocks is None and args.levels is None:
        return _question_of_numbers(args)
    return _question_of_structure(args, structure)


def _refuse(args: Any, names: Sequence[str], where: str) -> None:
    for name in names:
        if getattr(args, name) is not None:
            raise SpecError(f"--{name} can be given only {where}, got {getattr(args, name)}")


def _question_of_numbers(args: Any) -> ClosedQuestion | OpenQuestion:
    needed = "num_candidates" if args.open else "num_values"
    if getattr(args, needed) is None:
        raise SpecError(f"--{needed} must be given {'with' if args.open else 'without'} --open, got none")
    harmless = args.num_non_sensitive or 0 if args.open else args.num_values - (args.num_sensitive or args.num_values)
    _refuse_share(args, harmless)
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


def _refuse_share(args: Any, harmless: int) -> None:
    if args.sensitive_share is not None and not harmless:
        raise SpecError(
            f"--sensitive_share needs values that are not sensitive, got {args.sensitive_share} without any"
        )


def _given(args: Any, *names: str) -> dict[str, Any]:
    """The options that were given."""
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _of_open(args: Any) -> dict[str, Any]:
    """The fields that all open questions share."""
    return _given(args, "unlisted_share", "heaviest_unlisted", "max_cohorts")


def _question_of_structure(args: Any, structure: Structure) -> ClosedQuestion:
    """The question about the values of blocks, or of levels and further ones up to ``--num_values``."""
    sensitive = structure.in_levels
    if structure.blocks is not None:
        listed = [value for values in structure.blocks.values() for value in values]
        if args.sensitive is not None:
            sensitive = _sensitive(args, listed)
        names = listed
    else:
        assert sensitive is not None
        wanted = args.num_values or len(sensitive)
        if wanted < len(sensitive):
            raise SpecError(f"--num_values must be at least {len(sensitive):,}, those of --levels, got {wanted:,}")
        names = [*sensitive, *placeholders(wanted)[len(sensitive) :]]
    _refuse_share(args, 0 if sensitive is None else len(names) - len(sensitive))
    return _closed(args, structure, names, sensitive, sensitive_share=args.sensitive_share)


def _sensitive(args: Any, known: Sequence[str]) -> list[str]:
    found = value_lines(args.sensitive, known)
    if not found:
        raise SpecError(f"{args.sensitive} must name a sensitive value, got none")
    return found


def _closed(
    args: Any, structure: Structure, listed: Sequence[str], sensitive: Sequence[str] | None, **fields: Any
) -> ClosedQuestion:
    """The question about a list, which is put in the order of its symbols.

    Args:
        args, structure: of the command line.
        listed: all values.
        sensitive: those that are sensitive; None: all.
        fields: further ones; ``held`` counts people by value, instead of ``frequencies``.
    """
    blocks, chosen = structure.blocks_of(sensitive), set(listed if sensitive is None else sensitive)
    names = tuple(sorted(listed, key=lambda value: value not in chosen)) if blocks is None else values_by_symbol(blocks)
    if "held" in fields:
        held = fields.pop("held")
        fields["frequencies"] = tuple(held[value] / held.total() for value in names)
    return ClosedQuestion(
        num_values=len(names),
        num_sensitive=len(chosen),
        names=names,
        blocks=blocks,
        levels=structure.levels,
        **fields,
        **_given(args, "max_cohorts"),
    )


def _question_of_values(args: Any, structure: Structure) -> ClosedQuestion | OpenQuestion:
    """The question about a file of values, in alphabetical order: the order of frequencies would reveal private
    counts."""
    known = None if structure.blocks is None else {value for own in structure.blocks.values() for value in own}
    held = Counter(_column(args, known or structure.in_levels or ()))
    if len(held) < 2:
        raise SpecError(f"{args.values} must have at least 2 different values, got {len(held)}")
    if known is not None and (strange := len(set(held) - known)):
        raise SpecError(f"{args.values} must have only values of {args.blocks}, got {strange:,} others")
    chosen = structure.in_levels if args.sensitive is None else _sensitive(args, sorted(known or held))
    sensitive = sorted(set(held) if chosen is None else chosen)
    if args.open:
        others, total = sorted(set(held) - set(sensitive)), sum(held.values())
        return OpenQuestion(
            num_candidates=len(sensitive),
            num_non_sensitive=len(others),
            frequencies=tuple(held[value] / total for value in (*sensitive, *others)),
            names=tuple(others),
            **_of_open(args),
        )
    listed = sorted(known or {*held, *sensitive})
    return _closed(args, structure, listed, None if known and chosen is None else sensitive, held=held)


def _column(args: Any, listed: Sequence[str] | set[str]) -> Iterator[str]:
    file = people_in(args.values, args, listed={"": listed} if listed else None)
    for values, _ in file.read():
        yield from map(canonical, values)
    say_missing("plan", file)
