"""Dimensions: public facts about a report, such as a country or the arm of an experiment, by which counts are split.

A group is one combination of a value from each dimension. Groups are numbered in mixed radix, and the first dimension
is the most significant. A report carries its group in its cohort number, as ``group * num_cohorts + cohort``.

A dimension that clients cannot know, such as the country of an address, is set on the way: clients state ``other``, and
``messages/set_groups.py`` replaces it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.checks import (
    describe,
    require_keys,
    require_mapping,
    require_texts,
    require_visible_differences,
)
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical

OTHER = "other"
"""Implied last value of every dimension, for all texts that are not listed."""

CLIENT, GATEWAY, ATTRIBUTE = "client", "gateway", "attribute"
SETTERS = (CLIENT, GATEWAY, ATTRIBUTE)
"""What may set a dimension, in the order in which a report passes them: the client itself, the gateway by a header of
the request, or the reader of a queue by an attribute of the message.
"""

MAX_GROUPS = 1 << 16
"""Maximum number of groups of a collection times its cohorts, because packed reports have 16-bit cohort numbers."""

MAX_DIMENSIONS = 8
MAX_VALUE_BYTES = 256

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_RESERVED = ("value", "event_time")
_FORBIDDEN = re.compile(r"[,=\x00-\x1f\x7f]")


@dataclasses.dataclass(frozen=True)
class Dimension:
    """A public fact with a list of values; a text that is not listed counts as ``other``.

    Attributes:
        name: ``[a-z][a-z0-9_]{0,31}``, but not ``value`` or ``event_time``.
        values: the listed values, in Unicode NFC, without ``other``.
        set_by: one of ``SETTERS``.
    """

    name: str
    values: tuple[str, ...]
    set_by: str = CLIENT

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name) or self.name in _RESERVED:
            raise SpecError(
                "Dimension.name must be a letter and up to 31 of a-z, 0-9 and '_', other than "
                f"{' and '.join(map(repr, _RESERVED))}, got {describe(self.name)}"
            )
        where = f"dimension {self.name!r}: values"
        require_texts(where, self.values, at_least=1)
        for value in self.values:
            wrong = _FORBIDDEN.search(value) or value != value.strip() or value in ("", OTHER)
            if wrong or value != canonical(value) or len(value.encode()) > MAX_VALUE_BYTES:
                raise SpecError(
                    f"{where} must be texts in Unicode NFC of 1 to {MAX_VALUE_BYTES} bytes without ',', '=', control "
                    f"characters and outer white space, and other than {OTHER!r}, which is implied, got "
                    f"{describe(value)}"
                )
        require_visible_differences(where, self.values)
        if self.set_by not in SETTERS:
            raise SpecError(
                f"dimension {self.name!r}: set_by must be {', '.join(SETTERS[:-1])} or {SETTERS[-1]}, "
                f"got {describe(self.set_by)}"
            )

    @property
    def all_values(self) -> tuple[str, ...]:
        """The listed values, then ``other``."""
        return (*self.values, OTHER)

    def place_of(self, text: str) -> int:
        """Number of a text among ``all_values``."""
        return self._places.get(canonical(text), len(self.values))

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {value: place for place, value in enumerate(self.values)}

    @property
    def is_own(self) -> bool:
        """Whether the client states it."""
        return self.set_by == CLIENT


def dimensions_of(spec: object) -> tuple[Dimension, ...]:
    """The dimensions of a collection's JSON form; none for null.

    Raises:
        SpecError: if it is no list of objects with ``name`` and ``values``, or a dimension is not allowed.
    """
    if spec is None:
        return ()
    if not isinstance(spec, (list, tuple)) or not spec:
        raise SpecError(f"Collection.dimensions must be a list of at least one dimension or null, got {describe(spec)}")
    return tuple(_dimension(entry) for entry in spec)


def _dimension(entry: object) -> Dimension:
    fields = require_mapping("Dimension", entry)
    require_keys("Dimension", fields, ("name", "values"), ("name", "values", "set_by"))
    values = fields["values"]
    if isinstance(values, (list, tuple)) and all(isinstance(value, str) for value in values):
        values = tuple(map(canonical, values))
    return Dimension(fields["name"], values, fields.get("set_by", CLIENT))


def dimensions_json(dimensions: Sequence[Dimension]) -> list[dict[str, Any]]:
    """The JSON form from which ``dimensions_of`` makes equal dimensions."""
    return [
        {"name": dimension.name, "values": list(dimension.values)}
        | ({} if dimension.is_own else {"set_by": dimension.set_by})
        for dimension in dimensions
    ]


def check_dimensions(dimensions: object, num_cohorts: int) -> None:
    """Refuse names that repeat, and more groups than a report can number; raises SpecError."""
    if not isinstance(dimensions, tuple) or not all(isinstance(one, Dimension) for one in dimensions):
        raise SpecError(f"Collection.dimensions must be a tuple of Dimension, got {describe(dimensions)}")
    if len(dimensions) > MAX_DIMENSIONS:
        raise SpecError(f"Collection.dimensions must be at most {MAX_DIMENSIONS}, got {len(dimensions)}")
    require_texts("Collection.dimensions: names", [one.name for one in dimensions], at_least=0)
    number = num_groups(dimensions)
    if number * num_cohorts > MAX_GROUPS:
        raise SpecError(
            f"Collection.dimensions: groups times cohorts must be at most {MAX_GROUPS}, got {number} groups (each "
            f"dimension has one value more than it lists, {OTHER!r}) and {num_cohorts} cohort(s)"
        )
    if number * num_cohorts == MAX_GROUPS and not all(one.is_own for one in dimensions):
        raise SpecError(
            f"Collection.dimensions must have fewer than {MAX_GROUPS} groups times cohorts if one is not set by the "
            "client, because refused reports need a number, got as many"
        )


def num_groups(dimensions: Sequence[Dimension]) -> int:
    """Number of groups; 1 without dimensions."""
    return math.prod(_sizes(dimensions))


def _sizes(dimensions: Sequence[Dimension]) -> tuple[int, ...]:
    return tuple(len(dimension.all_values) for dimension in dimensions)


def encode_groups(
    dimensions: Sequence[Dimension], columns: Mapping[str, Sequence[str]] | None, num_reports: int
) -> np.ndarray:
    """Group numbers of reports (n,) int64, as clients state them, from one column of texts per dimension of theirs.

    Unlisted texts are ``other``, and so are all dimensions that are not set by the client.

    Raises:
        SpecError: if columns are missing, unknown, not texts or of another length.
    """
    own = [dimension.name for dimension in dimensions if dimension.is_own]
    given = {} if columns is None else columns
    if not isinstance(given, Mapping) or set(given) != set(own):
        got = ", ".join(map(str, given)) if isinstance(given, Mapping) else describe(given)
        others = "".join(f" ({one.name} is set by the {one.set_by})" for one in dimensions if not one.is_own)
        wanted = ", ".join(own) or "no dimension"
        raise SpecError(f"dimensions must give a value for {wanted}{others}, got {got or 'none'}")
    groups = np.zeros(num_reports, dtype=np.int64)
    for dimension in dimensions:
        texts = given[dimension.name] if dimension.is_own else [OTHER] * num_reports
        if isinstance(texts, (str, bytes)) or len(texts) != num_reports:
            got = f"a single {type(texts).__name__}" if isinstance(texts, (str, bytes)) else str(len(texts))
            raise SpecError(f"dimension {dimension.name!r} must have {num_reports} texts, one per report, got {got}")
        if not all(isinstance(text, str) for text in texts):
            raise SpecError(f"dimension {dimension.name!r} must have texts only, got another type")
        numbers = np.fromiter(map(dimension.place_of, texts), np.int64, num_reports)
        groups = groups * len(dimension.all_values) + numbers
    return groups


def shifts_of(dimensions: Sequence[Dimension], columns: Mapping[str, Sequence[str]], num_reports: int) -> np.ndarray:
    """What to add (n,) int64 to groups in which these dimensions are ``other``, so that they have these texts."""
    shifts = np.zeros(num_reports, dtype=np.int64)
    for dimension, stride in zip(dimensions, _strides(dimensions)):
        if dimension.name in columns:
            places = np.fromiter(map(dimension.place_of, columns[dimension.name]), np.int64, num_reports)
            shifts += stride * (places - len(dimension.values))
    return shifts


def groups_without(dimensions: Sequence[Dimension], names: Collection[str]) -> np.ndarray:
    """(G,) bool: for each group, whether the named dimensions are all ``other``."""
    groups, without = np.arange(num_groups(dimensions)), np.ones(num_groups(dimensions), dtype=bool)
    for dimension, stride in zip(dimensions, _strides(dimensions)):
        if dimension.name in names:
            without &= groups // stride % len(dimension.all_values) == len(dimension.values)
    return without


def _strides(dimensions: Sequence[Dimension]) -> list[int]:
    sizes = _sizes(dimensions)
    return [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]


@dataclasses.dataclass(frozen=True)
class RollUp:
    """The groups by some of a collection's dimensions, in the order of ``names``.

    Attributes:
        dimensions: all dimensions of the collection.
        names: names of the dimensions to keep.
    """

    dimensions: tuple[Dimension, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        known = [dimension.name for dimension in self.dimensions]
        require_texts("by", list(self.names), at_least=1)
        for name in self.names:
            if name not in known:
                raise SpecError(f"by must name dimensions of the collection ({', '.join(known)}), got {describe(name)}")

    @property
    def kept(self) -> tuple[Dimension, ...]:
        """The dimensions that are kept, in the order of ``names``."""
        of_name = {dimension.name: dimension for dimension in self.dimensions}
        return tuple(of_name[name] for name in self.names)

    def table(self) -> np.ndarray:
        """Number of the kept group (G,) int64 for each group of the collection."""
        places = np.unravel_index(np.arange(num_groups(self.dimensions)), _sizes(self.dimensions))
        index = [dimension.name for dimension in self.dimensions]
        kept = [places[index.index(name)] for name in self.names]
        table: np.ndarray = np.ravel_multi_index(kept, _sizes(self.kept)).astype(np.int64)
        return table

    def values(self, number: int) -> tuple[str, ...]:
        """The values of a kept group, one for each name."""
        places = np.unravel_index(number, _sizes(self.kept))
        return tuple(dimension.all_values[int(place)] for dimension, place in zip(self.kept, places))

    def number(self, values: Sequence[str]) -> int:
        """The reverse of ``values``."""
        places = [dimension.place_of(value) for dimension, value in zip(self.kept, values)]
        return int(np.ravel_multi_index(places, _sizes(self.kept)))

    def pairs(self, number: int) -> Iterator[tuple[str, str]]:
        """(name, value) of each kept dimension of a group."""
        return zip(self.names, self.values(number))


def roll_up_of(dimensions: tuple[Dimension, ...], names: Sequence[str]) -> RollUp | None:
    """The groups by these dimensions; None without names, or if one of the dimensions is missing."""
    known = {dimension.name for dimension in dimensions}
    return RollUp(dimensions, tuple(names)) if names and known.issuperset(names) else None


def group_text(pairs: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> str:
    """A group as text, such as ``country=DE,arm=new``; empty for the total."""
    return ",".join(f"{name}={value}" for name, value in pairs)
