"""From counts to discovered values: the search, then the estimate of what was found, then the rate of false ones."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from scipy import special

from uldp_transforms.ldp.alphabets.prefixes import Prefixes
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.discovery.level import Level
from uldp_transforms.ldp.discovery.search import MOST_SCORED, Search
from uldp_transforms.ldp.errors import InsufficientCohortsError, SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.intervals import reaching, score_intervals
from uldp_transforms.ldp.solvers.linear import solve_sensitive
from uldp_transforms.ldp.solvers.observation import Solution
from uldp_transforms.ldp.solvers.question import ask

FALSE_DISCOVERIES = 0.05
"""Share of the discovered values that nobody holds, on average, at most; and of intervals that miss the truth."""


_RATES = (0.5, 0.2)  # at which the clearest false ones are left out, before the others


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Discovery:
    """Values that were found, the most frequent first; all arrays have one entry per value, R of them.

    Attributes:
        values: the texts.
        frequencies: unbiased estimates for values that are given; those of the selected ones are a little high.
        standard_errors: of the frequencies.
        ci_low, ci_high: intervals that hold the frequencies. Of the first R, for every R, at most 5 % are expected to
            miss the truth, the selection from ``num_scored`` values allowed for. Cut to [0, 1] before they are made to
            reach the frequencies.
        q_values: the rate of false discoveries at which the value would just be one.
        levels: the first level at which the whole value is hashed.
        num_scored: how many different values were looked at, whole.
    """

    values: tuple[str, ...]
    frequencies: np.ndarray
    standard_errors: np.ndarray
    ci_low: np.ndarray
    ci_high: np.ndarray
    q_values: np.ndarray
    levels: np.ndarray
    num_scored: int


def can_discover(model: Model) -> bool:
    """Whether values can be found that nobody listed: whether texts are hashed as prefixes."""
    return isinstance(model.alphabet, Prefixes)


def check_discovery(model: Model) -> None:
    """Refuse a collection in which nothing can be discovered; raises SpecError."""
    alphabet = model.alphabet
    if not isinstance(alphabet, Prefixes):
        raise SpecError(
            f"collection {model.id!r} must have an alphabet of prefixes for values that nobody listed, got "
            f"{alphabet.id!r}"
        )
    length = alphabet.lengths[0] or 1
    if (len(alphabet.tokens) + 1) ** length > MOST_SCORED:
        raise SpecError(
            f"collection {model.id!r} must have at most {MOST_SCORED} prefixes of {length} token(s) for a search, got "
            f"{len(alphabet.tokens)} tokens"
        )


def discover(model: Model, counts: CohortCounts) -> Discovery:
    """Frequent sensitive values that nobody listed.

    Args:
        model: with an alphabet of prefixes.
        counts: of its reports, of one window or the sum of several.

    Raises:
        SpecError: if the alphabet is another.
        NoReportsError: if there are no reports.
        InsufficientCohortsError: if a level has none.
    """
    check_discovery(model)
    alphabet = model.alphabet
    assert isinstance(alphabet, Prefixes)
    question = ask(model, counts, ("",))
    levels = [Level(question, alphabet, number, counts) for number in range(alphabet.num_levels)]
    silent = [number for number, level in enumerate(levels) if not level.total]
    if silent:
        raise InsufficientCohortsError(
            f"a search for values needs reports of each of its {len(levels)} levels, got none of level {silent[0]}"
        )
    search = Search(alphabet, levels)
    search.run()
    listed = set(alphabet.clear_values)
    most = max(1, min(level.most for level in levels))
    best = sorted(search.found, key=search.found.__getitem__)[:most]
    texts = {alphabet.text(sequence): sequence for sequence in best}
    values = tuple(
        text
        for text, sequence in texts.items()
        if text not in listed and canonical(text) == text and alphabet.sequence(text) == sequence
    )
    return _judge(model, counts, values, search)


def _judge(model: Model, counts: CohortCounts, values: tuple[str, ...], search: Search) -> Discovery:
    """Benjamini and Hochberg's discoveries among the values, with intervals for values that are shown because of it.

    The i-th largest has the level 1 - 0.05 i / M, with M the number of hypotheses that it counts as (``hypotheses``).
    Their inverses add up to at most 1 over all values that could have been it, which is all that the proof needs.

    All values are fitted together. Most of those that nobody holds fit noise, because they were chosen for it, and make
    the rest of it seem smaller. So they are left out, the clearest first, until all that are left are discoveries.
    """
    rates = iter(_RATES)
    while values:
        probabilities = search.p_values(values)
        numbers = search.hypotheses(values)
        q_values = false_discovery_rates(probabilities, numbers)
        rate = next(rates, FALSE_DISCOVERIES)
        kept = q_values <= rate
        if kept.all() and rate == FALSE_DISCOVERIES:
            break
        values = tuple(itertools.compress(values, kept))
    if not values:
        return _discovery(model, (), search.num_scored, *[np.zeros(0)] * 5)
    question = ask(model, counts, values)
    solution = solve_sensitive(question, ~question.own, np.ones(len(values), dtype=bool))
    raw, errors = solution.frequencies, np.sqrt(np.maximum(solution.variances, 0))
    order = np.argsort(-raw, kind="stable")
    levels = np.empty(len(values))
    levels[order] = 1 - FALSE_DISCOVERIES * np.minimum(np.arange(1, len(values) + 1) / numbers[order], 1)
    low, high = score_intervals(solution, levels, strict=True)
    longer = _longer(raw, solution, probabilities)
    low, high = np.clip(raw - longer * (raw - low), 0, 1), np.clip(raw + longer * (high - raw), 0, 1)
    low, high = reaching(low, high, raw)
    return _discovery(
        model,
        tuple(values[i] for i in order),
        search.num_scored,
        *(column[order] for column in (raw, errors, low, high, q_values)),
    )


def _longer(raw: np.ndarray, solution: Solution, probabilities: np.ndarray) -> np.ndarray:
    """(S,) by how much the tail of chance is longer than the normal one, at least 1; so are intervals made."""
    assert solution.own is not None, "open alphabets are centred"
    normal = raw / np.sqrt(np.maximum(solution.own.null + np.square(solution.jump) / 2, 1e-300))
    return np.asarray(np.maximum(normal / np.maximum(-special.ndtri(probabilities), 1e-3), 1))


def _discovery(model: Model, values: tuple[str, ...], num_scored: int, *columns: np.ndarray) -> Discovery:
    alphabet = model.alphabet
    assert isinstance(alphabet, Prefixes)
    sizes = [len(alphabet.sequence(value)) for value in values]
    levels = [
        next(g for g, length in enumerate(alphabet.lengths) if length is None or size <= length) for size in sizes
    ]
    names = ("frequencies", "standard_errors", "ci_low", "ci_high", "q_values")
    fields = dict(zip(names, columns))
    return Discovery(values=values, levels=np.array(levels, dtype=np.int64), num_scored=num_scored, **fields)


def false_discovery_rates(p_values: np.ndarray, number: np.ndarray | float) -> np.ndarray:
    """Benjamini and Hochberg's q-values of p-values (S,), with so many more that are 1 that there are ``number``.

    Numbers of their own, (S,), are the weighted procedure: a value of weight w among m is one of m / w.

    Source: Genovese, Roeder and Wasserman 2006.
    """
    weighted = p_values * number
    order = np.argsort(weighted, kind="stable")
    rates = weighted[order] / np.arange(1, len(order) + 1)
    q_values = np.empty(len(order))
    q_values[order] = np.minimum(np.minimum.accumulate(rates[::-1])[::-1], 1)
    return q_values
