"""Counts of simulated clients by their exact law: the time depends on cells and values, not on the number of people.

People choose cohorts at random, so the holders of a value are spread by a multinomial law. Within a cohort

- reports of one symbol (k-RR, uRR): a report keeps its symbol with probability kappa and is a uniform sensitive symbol
  otherwise (a protected one, where the value is sensitive, and noise where it is not revealed), which is one binomial
  number for each symbol and one multinomial draw of the rest;
- independent bits: given the values, the bits of a report are independent, and a bit is 1 with probability theta under
  the values that own it and psi under the others, which is two binomial numbers for each bit;
- subsets of d symbols: of the holders of a symbol, a binomial number has it in the set. The other members are a uniform
  subset: one symbol after the other, each set with j members left of r symbols takes the next one with probability j/r,
  which is one binomial number for each j. This costs K (d + 1) numbers for each cohort and symbol, so it is used if
  there are more reports than that.

Other reports are drawn one by one, as ``frame.simulate_counts`` does.
"""

from __future__ import annotations

import functools

import numpy as np

from labs.experiments.frame import simulate_counts
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms.mechanism import Mechanism
from uldp_transforms.ldp.mechanisms.subset_selection import UtilityOptimizedSubsetSelection


def draw_counts(
    collection: Collection, values: tuple[str, ...], people: np.ndarray, rng: np.random.Generator
) -> CohortCounts:
    """What the collector counts when these people report, each once.

    Args:
        collection: what they are asked.
        values: S canonical texts.
        people: (S,) integers, how many hold each value.
        rng: of cohorts and clients.
    """
    mechanism = collection.mechanism
    one_symbol = mechanism.support_size == 1 and mechanism.num_cells == mechanism.num_symbols
    bits = mechanism.independent_bits and mechanism.num_sensitive == mechanism.num_symbols
    subsets = _has_fixed_subsets(mechanism) and collection.num_cohorts * _numbers_of_subsets(mechanism) < people.sum()
    if not (one_symbol or bits or subsets):
        return simulate_counts(collection, values, people, rng)
    cohorts = spread(people, collection.num_cohorts, rng)
    held = holders(symbol_table(collection, values), cohorts, mechanism.num_symbols)
    number = cohorts.sum(axis=1)
    if one_symbol:
        return CohortCounts(number, _one_symbol(collection, held, rng))
    return CohortCounts(number, _bits(collection, held, number, rng) if bits else _subsets(collection, held, rng))


def spread(people: np.ndarray, num_cohorts: int, rng: np.random.Generator) -> np.ndarray:
    """(C, S) int64: how many holders of each value are in each cohort."""
    if num_cohorts == 1:
        return np.asarray(people, dtype=np.int64)[np.newaxis]
    return rng.multinomial(people, np.full(num_cohorts, 1 / num_cohorts)).T.astype(np.int64)


@functools.lru_cache(maxsize=4)
def symbol_table(collection: Collection, values: tuple[str, ...]) -> np.ndarray:
    """(C, S) or (C, S, h): the symbols of each value; kept, because hashing takes longer than drawing."""
    table = collection.alphabet.symbol_table(values, collection.num_cohorts)
    return np.broadcast_to(table, (collection.num_cohorts, *table.shape[1:]))


def holders(table: np.ndarray, cohorts: np.ndarray, num_symbols: int) -> np.ndarray:
    """(C, K) int64: people of each cohort whose value has this symbol, each once, though two hashes may agree.

    Args:
        table: (C, S) or (C, S, h) symbols.
        cohorts: (C, S) people.
        num_symbols: K.
    """
    symbols = np.sort(table[..., np.newaxis] if table.ndim == 2 else table, axis=-1)
    repeated = np.zeros(symbols.shape, dtype=bool)
    repeated[..., 1:] = symbols[..., 1:] == symbols[..., :-1]
    people = np.where(repeated, 0, cohorts[..., np.newaxis])
    cells = np.arange(len(table))[:, np.newaxis, np.newaxis] * num_symbols + symbols
    counted = np.bincount(cells.ravel(), people.ravel(), len(table) * num_symbols)  # exact: below 2**53
    return counted.reshape(len(table), num_symbols).astype(np.int64)


def _one_symbol(collection: Collection, held: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mechanism, v = collection.mechanism, collection.mechanism.num_sensitive
    kept = rng.binomial(held, mechanism.kappa)
    noise = rng.multinomial((held - kept).sum(axis=1), np.full(v, 1 / v))
    kept[:, :v] += noise
    cells: np.ndarray = kept
    return cells


def _has_fixed_subsets(mechanism: Mechanism) -> bool:
    """Whether reports are subsets of one size, and no symbol is sent in clear."""
    is_subset = isinstance(mechanism, UtilityOptimizedSubsetSelection)
    return is_subset and mechanism.support_size is not None and mechanism.num_sensitive == mechanism.num_symbols


def _numbers_of_subsets(mechanism: Mechanism) -> int:
    """Binomial numbers that one symbol of one cohort takes."""
    return int(mechanism.num_symbols * ((mechanism.support_size or 0) + 1))


def _subsets(collection: Collection, held: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mechanism = collection.mechanism
    size, v = int(mechanism.support_size or 0), mechanism.num_symbols
    cells = rng.binomial(held, mechanism.miss + mechanism.delta)
    left = np.zeros((*held.shape, size + 1), dtype=np.int64)  # sets by holder and number of members to come
    left[..., size - 1], left[..., size] = cells, held - cells
    for step in range(1, v):
        taken = rng.binomial(left, np.minimum(np.arange(size + 1) / (v - step), 1.0))
        cells[:, (np.arange(v) + step) % v] += taken.sum(axis=-1)
        left -= taken
        left[..., :-1] += taken[..., 1:]
    return np.asarray(cells)


def _bits(collection: Collection, held: np.ndarray, number: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mechanism = collection.mechanism
    own = rng.binomial(held, mechanism.miss + mechanism.delta)
    cells: np.ndarray = own + rng.binomial(number[:, np.newaxis] - held, mechanism.miss)
    return cells
