"""What is to be estimated from which counts: values, and the unknowns that are solved for together."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import NoReportsError, SpecError
from uldp_transforms.ldp.model import Model

MAX_CANDIDATES = 8192
"""Candidates of one estimate over a hashed alphabet: exact standard errors need dense S x S matrices."""


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """U unknown frequencies, and which of them belong to the values asked for.

    Where every value has a symbol of its own the unknowns are the K symbols themselves (tags among them); otherwise
    they are values: all of a permuted alphabet, the candidates and the public values of a hashed one.

    Attributes:
        model: what the reports were made for.
        counts: of its reports; at least one.
        values: the texts asked for.
        picked: (len(values),) position of each among the unknowns.
        table: (1, U) or (C, U) or (C, U, h) int64, the symbols of the unknowns in each cohort.
        own: (U,) bool, the unknown has a symbol for itself alone, in all cohorts.
        open: True if people may hold values that are not among the unknowns.
    """

    model: Model
    counts: CohortCounts
    values: tuple[str, ...]
    picked: np.ndarray
    table: np.ndarray
    own: np.ndarray
    open: bool

    @property
    def of_symbols(self) -> bool:
        """True if the unknowns are the K symbols, in their order."""
        return not self.open and bool(self.own.all())

    @property
    def left_out(self) -> np.ndarray:
        """(U,) bool: unknowns that nobody asked for."""
        mask = np.ones(len(self.own), dtype=bool)
        mask[self.picked] = False
        return mask


def ask(model: Model, counts: CohortCounts, candidates: tuple[str, ...] | None) -> Question:
    """The question behind ``Estimator.estimate``; see there for arguments and errors."""
    if counts.total == 0:
        raise NoReportsError(f"collection {model.id!r}: an estimate needs at least 1 report, got 0")
    alphabet = model.alphabet
    known = alphabet.known_values
    asked = candidates if candidates is not None else known if known is not None else alphabet.clear_values
    if not asked:
        raise SpecError(f"collection {model.id!r} has an open alphabet and needs a list of candidate values, got none")
    if known is None:
        solved = tuple(dict.fromkeys((*asked, *alphabet.clear_values)))
        if len(solved) > MAX_CANDIDATES:
            raise SpecError(
                f"candidates of an open alphabet, with its non-sensitive values, must be at most {MAX_CANDIDATES}, "
                f"got {len(solved)}"
            )
    else:
        solved = known
    positions = _positions(model.id, solved, asked)
    own = alphabet.has_own_symbol(solved)
    if known is None or not own.all():
        table = symbol_table(alphabet, solved, model.num_cohorts)
        return Question(model, counts, asked, positions, table, own, known is None)
    symbols = symbol_table(alphabet, solved, model.num_cohorts)[0]
    everything = np.arange(alphabet.num_symbols)
    return Question(model, counts, asked, symbols[positions], everything[np.newaxis], everything >= 0, False)


def _positions(collection_id: str, values: tuple[str, ...], asked: tuple[str, ...]) -> np.ndarray:
    position = {value: i for i, value in enumerate(values)}
    strangers = sum(value not in position for value in asked)
    if strangers:
        raise SpecError(
            f"collection {collection_id!r} has a closed alphabet of {len(values)} values, got {strangers} "
            f"candidate(s) that are not among them"
        )
    return np.array([position[value] for value in asked], dtype=np.int64)


@functools.lru_cache(maxsize=32)
def symbol_table(alphabet: Alphabet, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
    """``alphabet.symbol_table``, kept between windows."""
    return alphabet.symbol_table(values, num_cohorts)
