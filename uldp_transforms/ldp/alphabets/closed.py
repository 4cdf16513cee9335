"""A closed alphabet: a public list of values, some of them sensitive."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet, index_of
from uldp_transforms.ldp.checks import describe, require_texts, require_visible_differences
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical


@dataclasses.dataclass(frozen=True, kw_only=True)
class Closed(Alphabet):
    """Value i is one symbol, the same in all cohorts; the sensitive values get the symbols 0..v-1.

    Attributes:
        values: all values, in the order in which estimates list them.
        sensitive: those among ``values`` that must be protected; None: all of them.

    Example:
        >>> alphabet = Closed(values=("flu", "none", "hiv"), sensitive=("hiv",))
        >>> alphabet.symbol_table(("flu", "none", "hiv"), num_cohorts=1)
        array([[1, 2, 0]])

    Source: Murakami and Kawamoto 2019, section 3.1 (X, X_S and X_N).
    """

    id: ClassVar[str] = "closed"
    values: tuple[str, ...]
    sensitive: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", closed_values("Closed", self.values))
        if self.sensitive is not None:
            sensitive = sensitive_values("Closed", self.sensitive, self.values, at_least=1)
            object.__setattr__(self, "sensitive", sensitive)

    @property
    def known_values(self) -> tuple[str, ...]:
        return self.values

    @property
    def num_symbols(self) -> int:
        return len(self.values)

    @property
    def num_sensitive(self) -> int:
        return len(self.values if self.sensitive is None else self.sensitive)

    def has_own_symbol(self, values: tuple[str, ...]) -> np.ndarray:
        return np.ones(len(values), dtype=bool)

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        return index_of("Closed.values", values, _symbols(self))[np.newaxis]

    @property
    def client_rule(self) -> dict[str, Any]:
        return {"rule": "list", "symbols": list(_symbols(self))}


def closed_values(owner: str, values: Sequence[str]) -> tuple[str, ...]:
    """The canonical, checked value list of a closed alphabet."""
    require_texts(f"{owner}.values", values, at_least=2)
    result = tuple(map(canonical, values))
    require_texts(f"{owner}.values", result, at_least=2)
    require_visible_differences(f"{owner}.values", result)
    return result


def sensitive_values(owner: str, sensitive: object, values: Sequence[str], at_least: int) -> tuple[str, ...]:
    """The canonical, checked list of the sensitive ones among the values of a closed alphabet."""
    where = f"{owner}.sensitive"
    require_texts(where, sensitive, at_least)
    result = tuple(map(canonical, cast(Sequence[str], sensitive)))
    require_texts(where, result, at_least)
    known = set(values)
    strangers = [value for value in result if value not in known]
    if strangers:
        raise SpecError(f"{where} must contain only entries of {owner}.values, got {describe(strangers[0])}")
    return result


@functools.lru_cache(maxsize=64)
def _symbols(alphabet: Closed) -> dict[str, int]:
    sensitive = alphabet.values if alphabet.sensitive is None else alphabet.sensitive
    chosen = set(sensitive)
    order = (*sensitive, *(value for value in alphabet.values if value not in chosen))
    return {value: symbol for symbol, value in enumerate(order)}
