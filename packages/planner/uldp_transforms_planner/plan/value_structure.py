"""What a plan is told of its values beside their number: their public blocks, and levels of sensitive values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from uldp_transforms.files.text_files import read_text
from uldp_transforms.jobs import cli
from uldp_transforms.ldp.alphabets import Blocks
from uldp_transforms.ldp.checks import describe, parse_json, require_int, require_mapping, require_texts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.mechanisms.mechanism import MAX_SYMBOLS
from uldp_transforms.ldp.mechanisms.nested.nested_channel import Level, checked_levels
from uldp_transforms_planner.planning.planned_question import placeholders
from uldp_transforms_planner.utility.arguments import require_signal

STRUCTURE: cli.Options = {
    "--blocks": {
        cli.IS_COMMON: True,
        "help": "JSON file {block: values}, as in the alphabet blocks, if it may be public in which block a value is; "
        "a number of values in place of each list stands for placeholders",
    },
    "--levels": {
        cli.IS_COMMON: True,
        "help": "JSON file of levels, as in the mechanism levels, instead of --epsilon: each has an epsilon and its "
        "sensitive values, or their number. Rows without levels protect all of them by the smallest epsilon",
    },
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Structure:
    """What is known of values.

    Attributes:
        blocks: {block: values}; None: blocks are not public.
        levels: with increasing epsilons; None: one epsilon.
        has_names: whether the files name the values, instead of saying how many there are; False without files.
        path: of the file of blocks.
    """

    blocks: dict[str, list[str]] | None
    levels: tuple[Level, ...] | None
    has_names: bool
    path: str | None = None

    @property
    def in_levels(self) -> list[str] | None:
        """The sensitive values, if there are levels."""
        if self.levels is None:
            return None
        return [value for level in self.levels for value in level.values or ()]

    def blocks_of(self, sensitive: Sequence[str] | None) -> Blocks | None:
        """The blocks, some or (None) all of whose values are sensitive; raises SpecError."""
        if self.blocks is None:
            return None
        try:
            return Blocks(blocks=self.blocks, sensitive=None if sensitive is None else tuple(sensitive))
        except SpecError as error:
            raise SpecError(f"{self.path}: {error}") from None


def read_structure(blocks: str | None, levels: str | None) -> Structure:
    """The contents of both files; raises SpecError, OSError."""
    given, with_levels = None, None
    names = []
    if blocks is not None:
        given, named = _lists(blocks, require_mapping(blocks, parse_json(read_text(blocks), blocks)))
        for block, values in given.items():
            require_texts(f"{blocks}: values of {describe(block)}", values, at_least=1)
            given[block] = list(map(canonical, values))
        names.append(named)
    if levels is not None:
        plain = parse_json(read_text(levels), levels)
        if isinstance(plain, list) and all(isinstance(level, dict) and "values" in level for level in plain):
            values, named = _lists(levels, {number: level["values"] for number, level in enumerate(plain)})
            plain = [level | {"values": values[number]} for number, level in enumerate(plain)]
            names.append(named)
        with_levels = _checked(levels, plain)
    if len(set(names)) > 1:
        raise SpecError("--levels must name the values if --blocks does, and only then, got one of the two")
    if given is not None and with_levels is not None:
        known = {value for own in given.values() for value in own}
        for value in (value for level in with_levels for value in level.values or ()):
            if value not in known:
                raise SpecError(f"{levels} must have only values of {blocks}, got {describe(value)}")
    return Structure(blocks=given, levels=with_levels, has_names=any(names), path=blocks)


def _lists(path: str, given: Any) -> tuple[dict[Any, Any], bool]:
    """Lists of values, or of placeholders if it is said how many there are; and whether they are named."""
    sizes = [value for value in given.values() if not isinstance(value, list)]
    if not sizes:
        return dict(given), True
    if len(sizes) < len(given):
        raise SpecError(f"{path} must have a list of values, or their number, throughout, got {describe(sizes[0])}")
    for size in sizes:
        require_int(f"{path}: a number of values", size, 1, MAX_SYMBOLS)
    names = iter(placeholders(sum(sizes)))
    return {key: _next(names, given[key]) for key in sorted(given)}, False


def _next(names: Iterable[str], number: int) -> list[str]:
    return [name for _, name in zip(range(number), names)]


def _checked(path: str, plain: Any) -> tuple[Level, ...]:
    levels = checked_levels(f"{path}: levels", plain)
    if levels[0].values is None:
        raise SpecError(f"{path}: levels[0] must have values, got none")
    require_signal(f"{path}: levels[0].epsilon", levels[0].epsilon)
    return levels
