"""Base class of alphabets: the public map from values to the symbols that a mechanism perturbs."""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.alphabets.dimensions import Dimension
from uldp_transforms.ldp.counts.block_places import Sizes
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical

_TABLE_CELLS = 4_194_304  # encoding many different values looks at a part of the table at a time

_ANY_TEXTS = ("", "uldp", "\N{LATIN SMALL LETTER E WITH ACUTE}")
_EXAMPLES = 4


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """The unknowns of the cohorts of one part, in which several values may share one unknown.

    Attributes:
        alphabet: of these cohorts alone, in their order.
        cohorts: which they are.
        values: U texts, one for each unknown.
        member: (S,) int64, the unknown that each value belongs to.
        whole: (S,) bool, the unknown is this value and nothing else, whatever people hold.
    """

    alphabet: Alphabet
    cohorts: slice
    values: tuple[str, ...]
    member: np.ndarray
    whole: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alphabet(abc.ABC):
    """Maps values (text) to symbols 0..K-1, possibly differently in each cohort; symbols below v are sensitive.

    The fields of a subclass are its whole configuration and its JSON form.

    Attributes:
        id: name in the JSON form.
    """

    id: ClassVar[str]

    @property
    def known_values(self) -> tuple[str, ...] | None:
        """All values of a closed alphabet; None if any text may occur."""
        return None

    @property
    @abc.abstractmethod
    def num_symbols(self) -> int:
        """K, the number of symbols that a mechanism perturbs."""

    @property
    @abc.abstractmethod
    def num_sensitive(self) -> int:
        """v, the number of sensitive symbols, which are 0..v-1."""

    @property
    def num_others(self) -> int:
        """Number of sensitive symbols that have no place in the order of symbols; they are the last of the v."""
        return 0

    @property
    def num_hashes(self) -> int:
        """h, the number of symbols that a value has in one cohort."""
        return 1

    @property
    def clear_values(self) -> tuple[str, ...]:
        """The values with symbols apart from the buckets that the others share, because they are public and not
        sensitive; those of an open alphabet are known in advance."""
        return ()

    def estimated_values(self, candidates: Sequence[str] | None) -> tuple[str, ...]:
        """The values of an estimate: all values of a closed alphabet, or those of them that are requested; the
        candidates of an open one and, whatever the candidates are, its public values.

        Args:
            candidates: canonical values, each once; None: no list.

        Returns:
            each value once, the candidates first; empty if an open alphabet has neither candidates nor public values.
        """
        if self.known_values is not None:
            return self.known_values if candidates is None else tuple(candidates)
        return tuple(dict.fromkeys((*(candidates or ()), *self.clear_values)))

    @property
    def bin_edges(self) -> np.ndarray | None:
        """(B + 1,) float64, increasing, if B symbols are bins of numbers between these edges; else None."""
        return None

    @property
    def symbols_in_order(self) -> np.ndarray:
        """(K,) int64: the symbol of each bin of numbers, in the order of the bins, and then of each other value."""
        return np.arange(self.num_symbols)

    @property
    def bin_centres(self) -> np.ndarray | None:
        """(B,) float64: the number that represents each bin in a mean; None if no such number would be adequate."""
        return None

    @property
    def atom_bins(self) -> frozenset[int]:
        """Bins whose share a smooth distribution must not take to be like that of their neighbours."""
        return frozenset()

    @property
    def unit(self) -> str:
        """Unit of the numbers; empty if they have none, or if values are no numbers."""
        return ""

    @property
    def allowed(self) -> str:
        """Description of valid values, for error messages about ``strangers``."""
        return f"one of the {len(self.known_values or ())} values of the collection"

    def strangers(self, values: Sequence[str]) -> np.ndarray:
        """(n,) bool: texts that are not values of this alphabet."""
        known = self.known_values
        listed = None if known is None else set(known)
        return np.array([listed is not None and canonical(value) not in listed for value in values], dtype=bool)

    @property
    def examples(self) -> tuple[str, ...]:
        """Some possible values, for test vectors of symbols."""
        known = self.known_values
        return (*self.clear_values[:_EXAMPLES], *_ANY_TEXTS) if known is None else known[:_EXAMPLES]

    def has_own_symbol(self, values: tuple[str, ...]) -> np.ndarray:
        """(S,) bool: the value is the only one with its symbol, and has the same one in all cohorts."""
        return np.zeros(len(values), dtype=bool)

    @property
    def named_values(self) -> tuple[str, ...]:
        """The values of a list: all of a closed alphabet, the public ones of an open one."""
        return self.clear_values if self.known_values is None else self.known_values

    def protected_symbols(self, values: tuple[str, ...]) -> list[int | None]:
        """The symbol of each value that a mechanism may protect by itself; None for others.

        These are the sensitive values of a closed alphabet, and the public values of an open one, if they have symbols
        of their own.
        """
        named = set(self.named_values)
        known = tuple(value for value in values if value in named)
        single = bool(known) and bool(self.has_own_symbol(known).all())
        found = dict(zip(known, self.symbol_table(known, 1)[0].tolist())) if single else {}
        most = self.num_symbols if self.known_values is None else self.num_sensitive
        return [symbol if (symbol := found.get(value, most)) < most else None for value in values]

    @abc.abstractmethod
    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        """The symbol of each value in each cohort: the operator H in its smallest form.

        Args:
            values: canonical values, S of them.
            num_cohorts: C.

        Returns:
            (C, S) int64, or (1, S) if every value has a symbol of its own; (C, S, h) if values have h > 1 symbols.

        Raises:
            SpecError: if a value cannot occur in this alphabet.
        """

    @property
    @abc.abstractmethod
    def client_rule(self) -> dict[str, Any]:
        """The complete rule by which a client maps a value to symbols; ``rule`` names one of the methods in
        docs/client.md.

        The other keys are its parameters. Texts are canonical and in the order of their symbols; numbers of 64 bits are
        decimal texts.
        """

    def symbol_rows(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        """``symbol_table`` with one row per value, in small integers, for lists that are too long for a complete table.

        Returns:
            (S, C h), unsigned: the h symbols of cohort 0, those of cohort 1, and so on; (S, 1) if there is one row.
        """
        table = self.symbol_table(values, num_cohorts).astype(np.uint32)
        return np.ascontiguousarray(np.moveaxis(table, 1, 0)).reshape(len(values), -1)

    @property
    def whole_cohorts(self) -> slice:
        """The cohorts in which values are hashed as a whole, each into its own bucket."""
        return slice(None)

    def parts(self, values: tuple[str, ...]) -> tuple[Part, ...]:
        """The cohorts in parts, such that all cohorts of a part hash the same prefix of a value, or the whole value.

        Args:
            values: canonical and sensitive, S of them.

        Returns:
            the parts, of which all cohorts are made; in the last of them every value is an unknown of its own.
        """
        every = np.arange(len(values))
        whole = np.ones(len(values), dtype=bool)
        return (Part(alphabet=self, cohorts=slice(None), values=values, member=every, whole=whole),)

    def redistribute(self, frequencies: np.ndarray) -> np.ndarray:
        """Convert symbol frequencies (K,) to frequencies (K,) of the values of these symbols.

        The identity, unless some symbols stand for several values (tags).
        """
        return frequencies

    def redistribution(self, frequencies: np.ndarray) -> np.ndarray | None:
        """(K, K) derivative of ``redistribute`` at symbol frequencies (K,); None for the identity."""
        return None

    def redistributed_mass(self, frequencies: np.ndarray) -> float:
        """Share of people whose values ``redistribute`` takes from public knowledge, at symbol frequencies (K,)."""
        return 0.0

    @property
    def in_words(self) -> str | None:
        """Its values, for a reader; None if their number and kind say enough."""
        return None

    @property
    def caveats(self) -> list[str]:
        """What a report says about its value whatever the mechanism is, as sentences."""
        return []

    @property
    def block_sizes(self) -> Sizes | None:
        """(K_b, v_b) of each public block, if reports state the block of their value; None without blocks."""
        return None

    @property
    def block_members(self) -> tuple[Alphabet, ...]:
        """The alphabet of each public block whose members share symbols; none if every value has one of its own."""
        return ()

    @property
    def block_names(self) -> tuple[str, ...]:
        """The name of each public block; none without blocks."""
        return ()

    def block_of(self, value: str) -> int:
        """Number of the public block of a canonical value; -1 if it is in none."""
        return -1

    def check_dimensions(self, dimensions: Sequence[Dimension]) -> None:  # noqa: B027  # most alphabets accept any
        """Refuse dimensions that repeat what each report states anyway (raises SpecError)."""

    def check_cohorts(self, num_cohorts: int) -> None:  # noqa: B027  # most alphabets accept any number
        """Refuse a number of cohorts with which this alphabet can never be decoded (raises SpecError)."""

    def encode(self, values: Sequence[Any] | np.ndarray, cohorts: np.ndarray, num_cohorts: int) -> np.ndarray:
        """Map each value to its symbol in its cohort; run by the client.

        Args:
            values: n texts, or what a subclass takes.
            cohorts: (n,) integers in [0, C).
            num_cohorts: C.

        Returns:
            (n,) int64; (n, h) if values have h > 1 symbols.
        """
        positions: dict[str, int] = defaultdict(itertools.count().__next__)
        try:
            inverse = np.fromiter(map(positions.__getitem__, values), np.int64, len(values))
        except TypeError:  # a value that cannot be a key is no text
            _require_text(values, np.arange(len(values)))
            raise
        _require_text(positions, inverse)
        texts = tuple(map(canonical, positions))
        symbols = np.empty((len(values), self.num_hashes) if self.num_hashes > 1 else len(values), dtype=np.int64)
        step = max(1, _TABLE_CELLS // num_cohorts)
        for start in range(0, len(texts), step):
            table = self.symbol_table(texts[start : start + step], num_cohorts)
            here = np.flatnonzero((inverse >= start) & (inverse < start + step))
            symbols[here] = table[cohorts[here] if len(table) > 1 else 0, inverse[here] - start]
        return symbols

    def to_json(self) -> dict[str, Any]:
        """``{"id": ..., field: value}``: the constructor's arguments, defaults included."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}
        return {"id": self.id} | {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}

    def meaning(self) -> dict[str, Any]:
        """The part of the JSON form that determines the meaning of a report, and therefore the fingerprint."""
        return self.to_json()


def index_of(where: str, values: Sequence[str], known: dict[str, int]) -> np.ndarray:
    """Position of each value in a closed list; (S,) int64.

    Raises:
        SpecError: if a value is not in the list. The sentence does not repeat the value: it may be a secret.
    """
    try:
        return np.fromiter((known[value] for value in values), dtype=np.int64, count=len(values))
    except KeyError:
        unknown = sum(value not in known for value in values)
        raise SpecError(f"{where} lists {len(known)} values, got {unknown} value(s) outside this list") from None


def places_in_list(listed: tuple[str, ...], values: Sequence[str]) -> np.ndarray:
    """Position of each value in a public list, -1 of all that are not in it; (S,) int64."""
    places = _places(listed)
    return np.fromiter((places.get(value, -1) for value in values), np.int64, len(values))


@functools.lru_cache(maxsize=16)
def _places(listed: tuple[str, ...]) -> dict[str, int]:
    return {value: place for place, value in enumerate(listed)}


def _require_text(distinct: Iterable[Any], inverse: np.ndarray) -> None:
    """Refuse missing cells and numbers among n values, by row; raises TypeError, which does not show them.

    ``inverse`` is the position of each row's value in ``distinct``.
    """
    strange = {position: type(value).__name__ for position, value in enumerate(distinct) if not isinstance(value, str)}
    if strange:
        rows = np.flatnonzero(np.isin(inverse, list(strange)))
        more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        raise TypeError(f"values must be text (str), got {strange[int(inverse[rows[0]])]} in row {rows[0]}{more}")


def table_of_rows(rows: np.ndarray, num_hashes: int = 1) -> np.ndarray:
    """``Alphabet.symbol_table`` from its rows (S, C h) of all cohorts; see ``Alphabet.symbol_rows``."""
    if num_hashes > 1:
        rows = rows.reshape(len(rows), rows.shape[1] // num_hashes, num_hashes)
    return np.ascontiguousarray(np.moveaxis(rows, 0, 1), dtype=np.int64)
