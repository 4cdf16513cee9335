"""Numbers in bins between public edges, and a few other texts that are not numbers."""

from __future__ import annotations

import dataclasses
import decimal
import functools
import itertools
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeGuard

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet
from uldp_transforms.ldp.checks import describe, is_number, require_int, require_texts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical

MAX_BINS = 256
DEFAULT_BINS = 32
LARGEST_EDGE = 1e15
"""Edges are smaller in absolute value, so that all programs write them in the same digits."""

SCALES = ("linear", "log")

Sensitive = tuple[float | None, float | None] | str
"""A range of numbers, None for no end; or a text of ``others``."""

_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_PRECISE = decimal.Context(prec=50)
_LOG_EDGES = decimal.Context(prec=4, rounding=decimal.ROUND_HALF_EVEN)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ordered(Alphabet):
    """The symbol of a number is its bin, in increasing order; the symbols of ``others`` follow after the bins. With
    ``sensitive``, the sensitive symbols come first, in this order, and then all others.

    Bin i holds the numbers from edge i up to, but not including, edge i + 1. The ends are clamped: numbers below the
    first edge are in the first bin and numbers from the last edge on are in the last one, so estimates name these two
    bins ``< e`` and ``>= e``.

    Attributes:
        low: first edge; above 0 on the scale ``"log"``.
        high: last edge.
        num_bins: K, 2 to 256 bins between ``low`` and ``high`` (default: 32).
        scale: ``"linear"``: bins of equal widths (default). ``"log"``: edges with equal ratios, rounded to four
            significant digits.
        edges: K + 1 increasing numbers, instead of the four fields above.
        unit: of the numbers, for pages; clients do not convert (default: no unit).
        others: texts that stand for no number, such as ``"none"``.
        atoms: numbers that many people have exactly, such as round ages or time limits (default: none). The smooth
            distribution does not take their bins to be like the neighbours. The collector alone uses them, so they
            are not part of the fingerprint.
        sensitive: what must be protected: ranges ``(low, high)`` of numbers, ``high`` not included, None where a range
            has no end; and texts of ``others``. A bin is sensitive if it holds any number of a range. None (default):
            everything is sensitive.

    Example:
        >>> alphabet = Ordered(low=0, high=60, num_bins=4, unit="min", others=("cancelled",))
        >>> alphabet.known_values
        ('< 15', '[15, 30)', '[30, 45)', '>= 45', 'cancelled')
        >>> alphabet.encode([-3, 15, 59.5, "cancelled"], np.zeros(4, dtype=int), num_cohorts=1)
        array([0, 1, 3, 4])
        >>> incomes = Ordered(low=0, high=200, num_bins=4, unit="kEUR", sensitive=((100, None),))
        >>> incomes.encode([60, 120, 190], np.zeros(3, dtype=int), num_cohorts=1)
        array([3, 0, 1])

    Source of ``sensitive``: Murakami and Kawamoto 2019, section 3.1 (X_S and X_N).
    """

    id: ClassVar[str] = "ordered"
    low: float | None = None
    high: float | None = None
    num_bins: int | None = None
    scale: str | None = None
    edges: tuple[float, ...] | None = None
    unit: str = ""
    others: tuple[str, ...] = ()
    atoms: tuple[float, ...] = ()
    sensitive: tuple[Sensitive, ...] | None = None

    def __post_init__(self) -> None:
        if self.edges is None:
            self._check_range()
        else:
            self._check_edges()
        if not isinstance(self.unit, str) or len(self.unit) > 20:
            raise SpecError(f"Ordered.unit must be a text of at most 20 characters, got {describe(self.unit)}")
        object.__setattr__(self, "unit", canonical(self.unit))
        require_texts("Ordered.others", self.others, at_least=0)
        others = tuple(map(canonical, self.others))
        require_texts("Ordered.others", others, at_least=0)
        object.__setattr__(self, "others", others)
        for text in others:
            if _DECIMAL.fullmatch(text) or text in self.bins:
                raise SpecError(
                    f"Ordered.others must be texts that are neither numbers nor names of bins, got {describe(text)}"
                )
        self._check_atoms()
        if self.sensitive is not None:
            object.__setattr__(self, "sensitive", self._checked_sensitive(self.sensitive))

    def _checked_sensitive(self, entries: object) -> tuple[Sensitive, ...]:
        """The ranges as pairs of floats, the texts in canonical form."""
        found = list[Sensitive]()
        for entry in entries if isinstance(entries, (list, tuple)) else ():
            if isinstance(entry, str) and canonical(entry) in self.others:
                found.append(canonical(entry))
            elif _is_range(entry):
                low, high = (end if end is None else end + 0.0 for end in entry)
                found.append((low, high))
            else:
                found.clear()
                break
        if not found:
            raise SpecError(
                "Ordered.sensitive must be a list of ranges [low, high], low below high or either of them null, and of "
                f"texts of Ordered.others, got {describe(entries)}"
            )
        return tuple(found)

    def _check_atoms(self) -> None:
        atoms, first, last = self.atoms, float(self.bin_edges[0]), float(self.bin_edges[-1])
        if not isinstance(atoms, (list, tuple)) or not all(is_number(atom) and first <= atom < last for atom in atoms):
            raise SpecError(
                f"Ordered.atoms must be a list of numbers from {first!r} to {last!r}, got {describe(atoms)}"
            )
        object.__setattr__(self, "atoms", tuple(atom + 0.0 for atom in atoms))

    def _check_range(self) -> None:
        object.__setattr__(self, "num_bins", DEFAULT_BINS if self.num_bins is None else self.num_bins)
        object.__setattr__(self, "scale", SCALES[0] if self.scale is None else self.scale)
        require_int("Ordered.num_bins", self.num_bins, 2, MAX_BINS)
        if self.scale not in SCALES:
            raise SpecError(f"Ordered.scale must be one of {', '.join(SCALES)}, got {describe(self.scale)}")
        low, high = self.low, self.high
        if not _is_edge(low) or not _is_edge(high) or not low < high:
            raise SpecError(
                "Ordered.low and Ordered.high must be numbers below 1e15, the second larger than the first, got "
                f"{describe(low)} and {describe(high)}"
            )
        object.__setattr__(self, "low", low + 0.0)
        object.__setattr__(self, "high", high + 0.0)
        if self.scale == "log" and not low > 0:
            raise SpecError(f"Ordered.low must be above 0 on the scale log, got {self.low!r}")
        if not _are_increasing(self.bin_edges):
            raise SpecError(
                f"Ordered.num_bins must leave edges that differ, got {self.num_bins} bins from {self.low!r} to "
                f"{self.high!r}"
            )

    def _check_edges(self) -> None:
        given = {"low": self.low, "high": self.high, "num_bins": self.num_bins, "scale": self.scale}
        for name, value in given.items():
            if value is not None:
                raise SpecError(f"Ordered.{name} must be absent if Ordered.edges is given, got {describe(value)}")
        edges, most = self.edges, MAX_BINS + 1
        if not isinstance(edges, (list, tuple)) or not 3 <= len(edges) <= most or not all(map(_is_edge, edges)):
            raise SpecError(f"Ordered.edges must be a list of 3 to {most} numbers below 1e15, got {describe(edges)}")
        object.__setattr__(self, "edges", tuple(edge + 0.0 for edge in edges))
        if not _are_increasing(self.bin_edges):
            raise SpecError(f"Ordered.edges must be increasing, got {describe(list(edges))}")

    # ------------------------------------------------------------------ bins

    @functools.cached_property
    def bin_edges(self) -> np.ndarray:
        """(K + 1,) float64, increasing."""
        if self.edges is not None:
            return np.array(self.edges)
        low, high, number = self.low, self.high, self.num_bins
        assert low is not None and high is not None and number is not None
        between = _log_edges if self.scale == "log" else _linear_edges
        return np.array([low, *between(low, high, number), high])

    @property
    def bin_centres(self) -> np.ndarray | None:
        """The centres of the bins; None on the scale ``log``, whose last bins are wide and may contain a heavy tail."""
        return None if self.scale == "log" else (self.bin_edges[:-1] + self.bin_edges[1:]) / 2

    @functools.cached_property
    def bins(self) -> tuple[str, ...]:
        """Names of the bins; the first and the last name indicate the clamping."""
        texts = [_text(edge) for edge in self.bin_edges.tolist()]
        inner = (f"[{low}, {high})" for low, high in itertools.pairwise(texts[1:-1]))
        return (f"< {texts[1]}", *inner, f">= {texts[-2]}")

    @property
    def atom_bins(self) -> frozenset[int]:
        """The bins of ``atoms``."""
        return frozenset(self._bins_of(np.array(self.atoms)).tolist())

    @functools.cached_property
    def sensitive_places(self) -> tuple[int, ...]:
        """Places of the sensitive values among the bins and, after them, ``others``; increasing."""
        if self.sensitive is None:
            return tuple(range(self.num_symbols))
        ends = [-np.inf, *self.bin_edges[1:-1].tolist(), np.inf]
        ranges = [(low, high) for low, high in (entry for entry in self.sensitive if not isinstance(entry, str))]
        held = [
            any((low is None or low < last) and (high is None or high > first) for low, high in ranges)
            for first, last in itertools.pairwise(ends)
        ]
        return tuple(np.flatnonzero([*held, *(text in self.sensitive for text in self.others)]).tolist())

    @functools.cached_property
    def symbols_in_order(self) -> np.ndarray:
        rest = sorted(set(range(self.num_symbols)) - set(self.sensitive_places))
        symbols: np.ndarray = np.argsort([*self.sensitive_places, *rest])
        return symbols

    @property
    def num_others(self) -> int:
        return sum(place >= len(self.bins) for place in self.sensitive_places)

    @property
    def known_values(self) -> tuple[str, ...]:
        """Names of the bins, then the others."""
        return (*self.bins, *self.others)

    @property
    def num_symbols(self) -> int:
        return len(self.bins) + len(self.others)

    @property
    def num_sensitive(self) -> int:
        return len(self.sensitive_places)

    def has_own_symbol(self, values: tuple[str, ...]) -> np.ndarray:
        return np.ones(len(values), dtype=bool)

    # ------------------------------------------------------------------ values

    @property
    def allowed(self) -> str:
        texts = f", or one of the {len(self.others)} texts of Ordered.others" if self.others else ""
        return f"a number such as 12.5{texts}"

    def strangers(self, values: Sequence[str]) -> np.ndarray:
        known = _symbols(self)
        return np.array([not (canonical(text) in known or _DECIMAL.fullmatch(text)) for text in values], dtype=bool)

    @property
    def examples(self) -> tuple[str, ...]:
        """Numbers at the edges of some bins, as texts, and some of ``others``."""
        inner = self.bin_edges[1:-1]
        return (*map(repr, inner[[0, len(inner) // 2, -1]].tolist()), *self.others[:1])

    def encode(self, values: Sequence[Any] | np.ndarray, cohorts: np.ndarray, num_cohorts: int) -> np.ndarray:
        """See ``Alphabet.encode``.

        Args:
            values: n numbers, their decimal texts, or texts of ``others``; a name of a bin stands for numbers in it.
            cohorts, num_cohorts: without effect.

        Raises:
            SpecError: for NaN, infinities, and other texts. The sentence does not repeat the value.
        """
        column = values if isinstance(values, np.ndarray) and values.dtype.kind in "iuf" else None
        if column is None and all(isinstance(value, (int, float, np.number)) for value in values):
            if any(isinstance(value, bool) for value in values):
                raise SpecError(f"a value must be {self.allowed}, got true or false")
            column = np.array(values, dtype=np.float64)
        if column is not None:
            strange = np.flatnonzero(~np.isfinite(column))
            if len(strange):
                raise SpecError(
                    f"a value must be {self.allowed}, got {len(strange)} not finite, the first in row {strange[0]}"
                )
            found: np.ndarray = self.symbols_in_order[self._bins_of(column)]
            return found
        texts = [
            text if isinstance(text, str) else _number_text(text, self.allowed, row) for row, text in enumerate(values)
        ]
        return super().encode(texts, cohorts, num_cohorts)

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        """The symbols of bin names, of ``others`` and of decimal texts; see ``Alphabet.symbol_table``."""
        known = _symbols(self)
        numbers = np.array([value not in known and bool(_DECIMAL.fullmatch(value)) for value in values], dtype=bool)
        places = np.empty(len(values), dtype=np.int64)
        places[numbers] = self._bins_of(np.array([float(value) for value, is_one in zip(values, numbers) if is_one]))
        named = [known.get(value, -1) for value, is_one in zip(values, numbers) if not is_one]
        if -1 in named:
            raise SpecError(f"a value must be {self.allowed}, got {named.count(-1)} other text(s)")
        places[~numbers] = named
        return self.symbols_in_order[places][np.newaxis]

    def _bins_of(self, numbers: np.ndarray) -> np.ndarray:
        bins: np.ndarray = np.searchsorted(self.bin_edges[1:-1], numbers, side="right").astype(np.int64)
        return bins

    @property
    def client_rule(self) -> dict[str, Any]:
        rule = {"rule": "bins", "edges": list(map(repr, self.bin_edges.tolist())), "others": list(self.others)}
        return rule | self._declared

    def to_json(self) -> dict[str, Any]:
        """The fields that are given; ``atoms`` only if there are some, as in collections of before this field."""
        given = {name: value for name, value in super().to_json().items() if value is not None}
        if self.sensitive is not None:
            given["sensitive"] = [entry if isinstance(entry, str) else list(entry) for entry in self.sensitive]
        return given if self.atoms else {name: value for name, value in given.items() if name != "atoms"}

    def meaning(self) -> dict[str, Any]:
        """The edges and the sensitive values in one form, whichever way they were given, because a report means a bin
        between two edges."""
        fields = {"id": self.id, "edges": self.bin_edges.tolist(), "others": list(self.others), "unit": self.unit}
        return fields | self._declared

    @property
    def _declared(self) -> dict[str, Any]:
        """Places of the sensitive values, if there are others."""
        everything = self.num_sensitive == self.num_symbols
        return {} if everything else {"sensitive": list(self.sensitive_places)}


def _linear_edges(low: float, high: float, number: int) -> list[float]:
    """The inner edges, exactly from the decimal texts of the ends and rounded once: the same on all machines."""
    begin, end = Fraction(repr(low)), Fraction(repr(high))
    return [float(begin + (end - begin) * place / number) for place in range(1, number)]


def _log_edges(low: float, high: float, number: int) -> list[float]:
    """The inner edges with equal ratios, by decimal arithmetic, which is the same on all machines."""
    begin, end = (_PRECISE.ln(decimal.Decimal(repr(end))) for end in (low, high))
    step = _PRECISE.divide(_PRECISE.subtract(end, begin), decimal.Decimal(number))
    powers = (_PRECISE.fma(step, decimal.Decimal(place), begin) for place in range(1, number))
    return [float(_LOG_EDGES.plus(_PRECISE.exp(power))) for power in powers]


def _is_edge(value: object) -> TypeGuard[float]:
    return is_number(value) and abs(value) < LARGEST_EDGE


def _is_range(entry: object) -> TypeGuard[tuple[float | None, float | None]]:
    if not isinstance(entry, (list, tuple)) or len(entry) != 2:
        return False
    low, high = entry
    ends = (low is None or _is_edge(low)) and (high is None or _is_edge(high))
    return ends and (low is None or high is None or low < high)


def _are_increasing(edges: np.ndarray) -> bool:
    return bool((np.diff(edges) > 0).all())


def _text(edge: float) -> str:
    """The shortest decimal text, without a fraction ``.0``."""
    return repr(edge).removesuffix(".0")


def _number_text(value: object, allowed: str, row: int) -> str:
    """A number beside texts, as one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)) or not np.isfinite(value):
        raise SpecError(f"a value must be {allowed}, got another type or a number that is not finite in row {row}")
    return repr(float(value))


@functools.lru_cache(maxsize=64)
def _symbols(alphabet: Ordered) -> dict[str, int]:
    return {value: symbol for symbol, value in enumerate(alphabet.known_values)}
