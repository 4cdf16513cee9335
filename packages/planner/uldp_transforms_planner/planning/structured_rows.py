"""Rows for what a question says of its values: that their blocks are public, or that they have levels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.alphabets import Blocks
from uldp_transforms.ldp.counts.block_places import symbols_of_blocks
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms.ldp.mechanisms.nested.nested_channel import FAMILY, Level
from uldp_transforms.ldp.mechanisms.nested.nested_levels import NestedLevels
from uldp_transforms.ldp.mechanisms.public_blocks.within_blocks import WithinBlocks
from uldp_transforms_planner.planning.listed_values import ComparedMechanisms, ListedValues, Makers
from uldp_transforms_planner.planning.planned_question import Setup


def values_by_symbol(blocks: Blocks) -> tuple[str, ...]:
    """The values of blocks with closed members, in the order of their symbols: sensitive ones first."""
    assert blocks.known_values is not None, "blocks with hashed members have no list of values"
    symbols = blocks.symbol_table(blocks.known_values, 1)[0]
    return tuple(blocks.known_values[place] for place in np.argsort(symbols).tolist())


def rows_of_blocks(blocks: Blocks, **held: Any) -> Makers:
    """Each mechanism within blocks.

    Blocks of one size are alike, and their sensitive values, and their others.

    Args:
        blocks: with closed members.
        held: ``num_sensitive``, ``frequencies`` and ``sensitive_share`` of ``ListedValues``.
    """
    sizes = blocks.block_sizes
    places: dict[tuple[int, int, bool], int] = {}
    kinds = np.empty(blocks.num_symbols, dtype=np.int64)
    for (size, own), symbols in zip(sizes, symbols_of_blocks(sizes)):
        for is_sensitive, some in ((True, symbols[:own]), (False, symbols[own:])):
            if len(some):
                kinds[some] = places.setdefault((size, own, is_sensitive), len(places))
    form = blocks.to_json()
    values = ListedValues(
        kinds=kinds,
        alphabet={"id": form.pop("id")},
        lists=lambda *_: {name: lists for name, lists in form.items() if lists is not None},
        caveats=blocks.caveats,
        **held,
    )

    def build(name: str, **fields: Any) -> Mechanism:
        return WithinBlocks.of(sizes, functools.partial(MECHANISMS[name], **fields))

    return ComparedMechanisms(sizes=sizes, values=values, build=build, ending=f", {Blocks.id}").rows()


def rows_of_levels(levels: Sequence[Level], names: Sequence[str], **held: Any) -> Makers:
    """Levels of each mechanism that they can be made of; their epsilons are in proportion to that of the first.

    Args:
        levels: epsilons and values.
        names: all values, in the order of their symbols.
        held: ``num_sensitive``, ``frequencies`` and ``sensitive_share`` of ``ListedValues``.
    """
    places = {name: place for place, name in enumerate(names)}
    kinds = np.full(len(names), len(levels))
    for number, level in enumerate(levels):
        kinds[[places[name] for name in level.values or ()]] = number
    values = ListedValues(kinds=kinds, **held)

    def setup(of: str, epsilon: float) -> Setup:
        scaled = [min(level.epsilon * (epsilon / levels[0].epsilon), MAX_EPSILON) for level in levels]
        mechanism = NestedLevels(
            num_symbols=len(names),
            num_sensitive=held["num_sensitive"],
            levels=tuple(Level(one, level.values) for one, level in zip(scaled, levels)),
            of=of,
            symbols_of=lambda named: [places[name] for name in named],
        )
        return values.setup(mechanism)

    return {f"{NestedLevels.id}, of {of}": functools.partial(setup, of) for of in FAMILY}
