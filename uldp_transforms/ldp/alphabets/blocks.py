"""Values in public blocks: a place in a known city, a page of a known site, a diagnosis in a known chapter.

Blocks are numbered in the order of their names (of a list of names: in its order), because the keys of a JSON object
have no order.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet, index_of
from uldp_transforms.ldp.alphabets.dimensions import Dimension
from uldp_transforms.ldp.alphabets.hashed import Hashed
from uldp_transforms.ldp.checks import describe, require_texts, require_visible_differences
from uldp_transforms.ldp.counts.block_places import Sizes, symbols_of_blocks
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.registry import Registry

SEPARATOR = "/"
"""Ends the name of the block in a value over hashed members."""

MAX_BLOCKS = 1 << 16
"""Maximum number of blocks, because a report names its block in at most 2 bytes."""

MEMBERS: Registry[Hashed] = Registry("members", (Hashed,))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Blocks(Alphabet):
    """A report states the block of its value in clear, and perturbs the value among those of its block.

    The symbols of a value are those of its block, which are sensitive symbols first; ``block_places`` numbers them.

    Attributes:
        blocks: with closed members ``{block: values}``, kept as pairs; with hashed members a list of blocks.
        sensitive: with closed members, the values that must be protected from the others of their block; None: all.
        members: with hashed members, their alphabet, or its JSON form; a value is a text ``block/anything``, or the
            name of the block alone, and ``members.non_sensitive`` lists such texts. None: closed members.

    Examples:
        >>> cities = Blocks(blocks={"paris": ["nord", "sud"], "berlin": ["mitte", "wedding", "tegel"]})
        >>> cities.known_values
        ('mitte', 'wedding', 'tegel', 'nord', 'sud')
        >>> cities.block_sizes
        ((3, 3), (2, 2))

    Source: Acharya, Bonawitz, Kairouz, Ramage and Sun 2020 (block-structured context-aware LDP).
    """

    id: ClassVar[str] = "blocks"
    blocks: Any
    sensitive: tuple[str, ...] | None = None
    members: Hashed | None = None

    def __post_init__(self) -> None:
        if self.members is None:
            self._check_closed()
        else:
            self._check_hashed()

    def _check_closed(self) -> None:
        if not isinstance(self.blocks, Mapping):
            raise SpecError(
                "Blocks.blocks must be an object {block: values}, or a list of blocks beside Blocks.members, got "
                f"{describe(self.blocks)}"
            )
        names = _names(list(self.blocks))
        given = dict(zip(names, self.blocks.values()))
        pairs = tuple((name, _values(name, given[name])) for name in sorted(names))
        values = [value for _, own in pairs for value in own]
        require_texts("Blocks.blocks: values of all blocks", values, at_least=2)
        require_visible_differences("Blocks.blocks: values of all blocks", values)
        object.__setattr__(self, "blocks", pairs)
        if self.sensitive is not None:
            require_texts("Blocks.sensitive", self.sensitive, at_least=1)
            sensitive = tuple(map(canonical, self.sensitive))
            require_texts("Blocks.sensitive", sensitive, at_least=1)
            known = set(values)
            for value in sensitive:
                if value not in known:
                    raise SpecError(
                        f"Blocks.sensitive must contain only values of Blocks.blocks, got {describe(value)}"
                    )
            object.__setattr__(self, "sensitive", sensitive)
        for name, own in pairs:
            if len(own) == 1 and (self.sensitive is None or own[0] in self.sensitive):
                raise SpecError(
                    "Blocks.blocks must have at least two values in every block, because a block of one value says "
                    f"the value in clear; or leave that value out of Blocks.sensitive; got one in {describe(name)}"
                )

    def _check_hashed(self) -> None:
        if not isinstance(self.blocks, (list, tuple)):
            raise SpecError(f"Blocks.blocks must be a list beside Blocks.members, got {describe(self.blocks)}")
        if self.sensitive is not None:
            raise SpecError(
                "Blocks.sensitive must be absent beside Blocks.members, whose non_sensitive lists the other texts, got "
                f"{describe(self.sensitive)}"
            )
        object.__setattr__(self, "blocks", _names(self.blocks))
        for name in self.blocks:
            if SEPARATOR in name:
                raise SpecError(
                    f"Blocks.blocks must have no {SEPARATOR!r}, which ends their names, got {describe(name)}"
                )
        if isinstance(self.members, Mapping) and self.members.get("id", Hashed.id) != Hashed.id:
            raise SpecError(
                f"Blocks.members.id must be {Hashed.id}, because blocks whose members are the same list are a "
                f"dimension of a collection of that list, with shares and numbers for each; got "
                f"{describe(self.members['id'])}"
            )
        members = self.members if isinstance(self.members, Hashed) else MEMBERS.build(self.members)
        object.__setattr__(self, "members", members)
        for value in members.clear_values:
            if self.block_of(value) < 0:
                raise SpecError(
                    f"Blocks.members.non_sensitive must be texts such as {self.blocks[0]}{SEPARATOR}..., which begin "
                    f"with a block, got {describe(value)}"
                )

    def to_json(self) -> dict[str, Any]:
        """Without the fields of the other form."""
        if self.members is not None:
            return {"id": self.id, "blocks": list(self.blocks), "members": self.members.to_json()}
        sensitive = None if self.sensitive is None else list(self.sensitive)
        return {"id": self.id, "blocks": {name: list(own) for name, own in self.blocks}, "sensitive": sensitive}

    def meaning(self) -> dict[str, Any]:
        """The blocks as a list of pairs, whose order is that of their numbers in all languages."""
        if self.members is not None:
            return self.to_json()
        return self.to_json() | {"blocks": [[name, list(own)] for name, own in self.blocks]}

    # ------------------------------------------------------------------ blocks

    @property
    def block_names(self) -> tuple[str, ...]:
        if self.members is not None:
            names: tuple[str, ...] = self.blocks
            return names
        return tuple(name for name, _ in self.blocks)

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        """Block of each value, or the number of each name of a block beside hashed members."""
        if self.members is not None:
            return {name: number for number, name in enumerate(self.blocks)}
        return {value: number for number, (_, own) in enumerate(self.blocks) for value in own}

    def block_of(self, value: str) -> int:
        """Number of the block of a canonical value; -1 if it is in none."""
        return self._numbers.get(value if self.members is None else value.partition(SEPARATOR)[0], -1)

    @functools.cached_property
    def block_members(self) -> tuple[Hashed, ...]:
        """The alphabet of each block with hashed members; none with closed ones."""
        if self.members is None:
            return ()
        listed: list[list[str]] = [[] for _ in self.blocks]
        for value in self.members.clear_values:
            listed[self.block_of(value)].append(value)
        return tuple(
            dataclasses.replace(
                self.members,
                non_sensitive=tuple(own) or None,
                num_clear_buckets=self.members.num_clear_buckets if own else None,
            )
            for own in listed
        )

    @functools.cached_property
    def block_sizes(self) -> Sizes:
        if self.members is not None:
            return tuple((one.num_symbols, one.num_sensitive) for one in self.block_members)
        protected = None if self.sensitive is None else set(self.sensitive)
        return tuple(
            (len(own), len(own) if protected is None else sum(value in protected for value in own))
            for _, own in self.blocks
        )

    @property
    def in_words(self) -> str:
        number = f"{len(self.block_names):,} blocks"
        if self.members is not None:
            start = f"any text that begins with one of {number}, such as {self.blocks[0]}{SEPARATOR}..."
            return f"{start}, hashed into {self.members.num_buckets:,} buckets"
        declared = "" if self.sensitive is None else f", {self.num_sensitive:,} of them sensitive"
        return f"{self.num_symbols:,} listed values in {number}{declared}"

    @property
    def caveats(self) -> list[str]:
        found = [
            "The block of a value is public: each report states it in clear, and results show exactly how many reports "
            "each block has. A value is protected from the other values of its block only"
        ]
        if self.members is None:
            hidden = [(own, name) for (_, own), name in zip(self.block_sizes, self.block_names) if own]
            smallest, name = min(hidden, key=lambda block: block[0])
            found[0] += f". The block with the fewest sensitive values, {describe(name)}, has {smallest:,}"
        return [f"{found[0]}."]

    def check_dimensions(self, dimensions: Sequence[Dimension]) -> None:
        names = set(self.block_names)
        for one in dimensions:
            if set(one.values) == names:
                raise SpecError(
                    f"Collection.dimensions must not repeat the blocks of the alphabet, which each report states "
                    f"already, got the dimension {describe(one.name)} with the same values"
                )

    # ------------------------------------------------------------------ the alphabet

    @functools.cached_property
    def known_values(self) -> tuple[str, ...] | None:
        return None if self.members is not None else tuple(value for _, own in self.blocks for value in own)

    @property
    def num_symbols(self) -> int:
        return sum(size for size, _ in self.block_sizes)

    @property
    def num_sensitive(self) -> int:
        return sum(own for _, own in self.block_sizes)

    @property
    def num_hashes(self) -> int:
        return 1 if self.members is None else self.members.num_hashes

    def estimated_values(self, candidates: Sequence[str] | None) -> tuple[str, ...]:
        """See ``Alphabet.estimated_values``; refuses candidates of unknown blocks (raises SpecError)."""
        strange = 0 if candidates is None else sum(self.block_of(value) < 0 for value in candidates)
        if strange and self.members is not None:
            raise SpecError(f"a candidate must be {self.allowed}, got {strange} other text(s)")
        return super().estimated_values(candidates)

    @property
    def clear_values(self) -> tuple[str, ...]:
        return () if self.members is None else self.members.clear_values

    @property
    def allowed(self) -> str:
        if self.members is None:
            return super().allowed
        return f"a text such as {self.blocks[0]}{SEPARATOR}..., which begins with one of the {len(self.blocks)} blocks"

    def strangers(self, values: Sequence[str]) -> np.ndarray:
        return np.array([self.block_of(canonical(value)) < 0 for value in values], dtype=bool)

    @property
    def examples(self) -> tuple[str, ...]:
        if self.members is None:
            return super().examples
        return tuple(f"{name}{SEPARATOR}{end}" for name in self.blocks[:2] for end in self.members.examples)

    def has_own_symbol(self, values: tuple[str, ...]) -> np.ndarray:
        if self.members is None or self.members.num_clear_buckets is not None:
            return np.full(len(values), self.members is None)
        return self.members.has_own_symbol(values)

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        if self.members is None:
            return index_of("Blocks.blocks", values, self._symbols)[np.newaxis]
        blocks = np.fromiter(map(self.block_of, values), np.int64, len(values))
        if (blocks < 0).any():
            raise SpecError(f"a value must be {self.allowed}, got {np.count_nonzero(blocks < 0)} other text(s)")
        shape = (num_cohorts, len(values), *([self.num_hashes] if self.num_hashes > 1 else []))
        table = np.empty(shape, dtype=np.int64)
        of_block = symbols_of_blocks(self.block_sizes)
        for block in np.unique(blocks).tolist():
            here = np.flatnonzero(blocks == block)
            own = self.block_members[block].symbol_table(tuple(values[i] for i in here), num_cohorts)
            table[:, here] = of_block[block][own]
        return table

    @functools.cached_property
    def _symbols(self) -> dict[str, int]:
        """Symbol of each closed member."""
        found: dict[str, int] = {}
        for (_, own), symbols in zip(self.blocks, symbols_of_blocks(self.block_sizes)):
            chosen = set(own) if self.sensitive is None else set(self.sensitive)
            order = sorted(own, key=lambda value: value not in chosen)  # stable
            found.update(zip(order, symbols.tolist()))
        return dict(sorted(found.items(), key=lambda item: item[1]))

    @property
    def client_rule(self) -> dict[str, Any]:
        if self.members is None:
            return {"rule": "list", "symbols": list(self._symbols)}
        listed = [list(one.clear_values) for one in self.block_members]
        rule = {key: value for key, value in self.members.client_rule.items() if key not in ("rule", "listed")}
        return {"rule": "hash_within_blocks", "blocks": list(self.blocks), "listed": listed} | rule

    def check_cohorts(self, num_cohorts: int) -> None:
        if self.members is not None:
            self.members.check_cohorts(num_cohorts)


def _names(names: Sequence[Any]) -> tuple[str, ...]:
    """Canonical, checked names of blocks."""
    require_texts("Blocks.blocks: names", names, at_least=2)
    result = tuple(map(canonical, names))
    require_texts("Blocks.blocks: names", result, at_least=2)
    require_visible_differences("Blocks.blocks: names", result)
    if len(result) > MAX_BLOCKS:
        raise SpecError(f"Blocks.blocks must be at most {MAX_BLOCKS:,} blocks, got {len(result):,}")
    return result


def _values(name: str, values: object) -> tuple[str, ...]:
    """Canonical values of a block."""
    require_texts(f"Blocks.blocks: values of {describe(name)}", values, at_least=1)
    assert isinstance(values, (list, tuple))
    return tuple(map(canonical, values))
