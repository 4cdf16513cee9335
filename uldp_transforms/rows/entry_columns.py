"""The entries of a window's row, stored as columns; the objects are created on access."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from uldp_transforms.rows.row_types import (
    CurveBin,
    DimensionValue,
    HealthFinding,
    MeanFigure,
    NumberFigures,
    QuantileFigure,
    ShareBelow,
    ShareFigure,
    ShareInBlock,
    SumFigure,
    SumOfShares,
    ValueEstimate,
    WindowedEstimate,
    WindowHealth,
)

if TYPE_CHECKING:  # SciPy takes long to import, and rows are read without it
    from uldp_transforms.ldp.estimators import Estimate

_NUMBERS = ValueEstimate._fields[1:]
_VERSION = 1
_HEAD = struct.Struct("<BII")  # version, length of the description in bytes, length of the values in bytes
_ESTIMATES = WindowedEstimate._fields.index("estimates")
_FIGURES, _SUMS, _IN_BLOCKS = map(WindowedEstimate._fields.index, ("numbers", "sums", "in_blocks"))
_DIMENSIONS, _OF_HEALTH = (row._fields.index("dimensions") for row in (WindowedEstimate, WindowHealth))
_FINDINGS = WindowHealth._fields.index("findings")
_as_json = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
_make_entry = functools.partial(tuple.__new__, ValueEstimate)


@dataclasses.dataclass(frozen=True, eq=False)
class EntryColumns(Sequence[ValueEstimate]):
    """``WindowedEstimate.estimates`` until rows are written or leave the package: a sequence backed by arrays.

    Attributes:
        values: the S values as texts.
        names: the fields of ``ValueEstimate`` that are stored; all others are None.
        numbers: (len(names), S); NaN where an entry has None.
    """

    values: tuple[str, ...]
    names: tuple[str, ...]
    numbers: np.ndarray

    @classmethod
    def of(cls, entries: Sequence[ValueEstimate]) -> EntryColumns:
        """Convert entries to columns."""
        if isinstance(entries, EntryColumns):
            return entries
        values, *columns = list(zip(*entries)) or [()]
        told = {name: column for name, column in zip(_NUMBERS, columns) if any(part is not None for part in column)}
        numbers = np.array(list(told.values()), dtype=np.float64).reshape(len(told), len(values))
        return cls(values, tuple(told), numbers)

    @classmethod
    def of_estimate(cls, estimate: Estimate, show: int | None = None) -> EntryColumns:
        """Columns of the ``show`` values (None: all) with the largest frequencies, in the estimate's order."""
        number = len(estimate.values) if show is None else show
        shown = estimate.largest(number)
        low, high = estimate.display_intervals(number)
        columns = {
            "frequency": estimate.frequencies[shown],
            "standard_error": estimate.standard_errors[shown],
            "ci_low": estimate.ci_low[shown],
            "ci_high": estimate.ci_high[shown],
            "raw_frequency": estimate.raw_frequencies[shown],
            "display_low": low,
            "display_high": high,
        }
        if estimate.common_variances is not None:
            columns["common_variance"] = estimate.common_variances[shown]
        if estimate.in_blocks is not None:
            columns["block_frequency"] = estimate.in_blocks.mass[shown]
        values = estimate.values
        if len(shown) < len(values):
            values = tuple(values[place] for place in shown)
        return cls(values, tuple(columns), np.array(list(columns.values()), dtype=np.float64))

    def column(self, name: str) -> np.ndarray:
        """(S,) numbers of a field; NaN where the field is None."""
        if name not in self.names:
            return np.full(len(self.values), np.nan)
        column: np.ndarray = self.numbers[self.names.index(name)]
        return column

    def with_columns(self, names: tuple[str, ...], numbers: np.ndarray) -> EntryColumns:
        """A copy with new numbers, (len(names), S), in some fields."""
        kept, own = self.names, self.numbers
        if not set(names).isdisjoint(kept):
            places = [place for place, name in enumerate(kept) if name not in names]
            kept, own = tuple(kept[place] for place in places), own[places]
        return EntryColumns(self.values, kept + names, np.concatenate([own, numbers]))

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[ValueEstimate]:
        columns: list[list[float]] = self.numbers.tolist()
        lists: dict[str, Sequence[float | None]] = dict(zip(self.names, columns))
        if np.isnan(np.add.reduce(self.numbers, axis=None)):
            lists = {name: [None if math.isnan(x) else x for x in column] for name, column in zip(self.names, columns)}
        nothing = itertools.repeat(None)
        return map(_make_entry, zip(self.values, *(lists.get(name, nothing) for name in _NUMBERS)))

    @overload
    def __getitem__(self, place: int) -> ValueEstimate: ...
    @overload
    def __getitem__(self, place: slice) -> list[ValueEstimate]: ...
    def __getitem__(self, place: int | slice) -> ValueEstimate | list[ValueEstimate]:
        if isinstance(place, slice):
            return list(self)[place]
        column = dict(zip(self.names, self.numbers[:, place].tolist()))
        numbers = (column.get(name) for name in _NUMBERS)
        return _make_entry((self.values[place], *(None if one is None or math.isnan(one) else one for one in numbers)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list has none


def with_list(row: WindowedEstimate) -> WindowedEstimate:
    """The row with its entries as a list of objects."""
    return row._replace(estimates=list(row.estimates)) if isinstance(row.estimates, EntryColumns) else row


def packed(row: WindowedEstimate, health: WindowHealth) -> bytes:
    """Encode both rows of a window: version, a JSON description, the values, then the numbers, little-endian."""
    columns = EntryColumns.of(row.estimates)
    told = [row._replace(estimates=()), health, columns.names]
    head, values = _to_json(told), _values_to_bytes(columns.values)
    return _HEAD.pack(_VERSION, len(head), len(values)) + head + values + columns.numbers.astype("<f8").tobytes()


def unpacked(encoded: bytes) -> tuple[WindowedEstimate, WindowHealth]:
    """Reverse ``packed``; the entries remain columns."""
    version, head, length = _HEAD.unpack_from(encoded)
    if version != _VERSION:
        raise ValueError(f"unpacked reads version {_VERSION}, got version {version}")
    row, health, names = json.loads(encoded[_HEAD.size : _HEAD.size + head])
    begin = _HEAD.size + head
    values = _values_of_bytes(encoded[begin : begin + length])
    numbers = np.frombuffer(encoded, "<f8", -1, begin + length).reshape(len(names), len(values))
    row[_ESTIMATES] = EntryColumns(values, tuple(names), numbers)
    row[_FIGURES] = _figures_of(*row[_FIGURES])
    for place, kind in ((_SUMS, SumOfShares), (_IN_BLOCKS, ShareInBlock)):
        row[place : place + 1] = [tuple(map(kind._make, of)) for of in row[place : place + 1]]
    for told, place in ((row, _DIMENSIONS), (health, _OF_HEALTH)):
        told[place : place + 1] = [tuple(map(DimensionValue._make, of)) for of in told[place : place + 1]]
    health[_FINDINGS] = list(map(HealthFinding._make, health[_FINDINGS]))
    return WindowedEstimate(*row), WindowHealth(*health)  # of older versions without the last fields


def _figures_of(
    mean: Any, quantiles: Any, shares_above: Any, curve: Any, below: Any, share: float | None, total: Any
) -> NumberFigures:
    return NumberFigures(
        MeanFigure._make(mean),
        tuple(map(QuantileFigure._make, quantiles)),
        tuple(map(ShareFigure._make, shares_above)),
        tuple(map(CurveBin._make, curve)),
        tuple(map(ShareBelow._make, below)),
        share,
        SumFigure._make(total),
    )


def _to_json(told: Any) -> bytes:
    return _as_json(told).encode()


@functools.lru_cache(maxsize=64)  # all windows of a collection have the same ones
def _values_to_bytes(values: tuple[str, ...]) -> bytes:
    return _to_json(values)


@functools.lru_cache(maxsize=64)
def _values_of_bytes(encoded: bytes) -> tuple[str, ...]:
    return tuple(json.loads(encoded))
