"""Discovery of values from counts: search, estimation, and control of the false discovery rate."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
from scipy import special

from uldp_transforms.ldp.alphabets.prefixes import Prefixes
from uldp_transforms.ldp.confidence import CONFIDENCE, error_rate
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.discovery.level import Level
from uldp_transforms.ldp.discovery.search import MOST_SCORED, Search
from uldp_transforms.ldp.errors import InsufficientCohortsError, SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.intervals import moved_inside, reaching, score_intervals
from uldp_transforms.ldp.solvers.linear import solve_sensitive
from uldp_transforms.ldp.solvers.observation import Solution
from uldp_transforms.ldp.solvers.question import ask

FALSE_DISCOVERIES = 0.05
"""Maximum expected share of false values among the discoveries, whatever the confidence of intervals."""


_RATES = (0.5, 0.2)  # false discovery rates at which candidates are removed in the first rounds


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Discovery:
    """Discovered values in descending order of frequency; all arrays have one entry for each of the R values.

    Attributes:
        values: the discovered values as texts.
        frequencies: estimates that are unbiased for fixed values; selection biases them slightly upwards.
        standard_errors: of the frequencies.
        ci_low, ci_high: intervals, adjusted for the selection from ``num_scored`` values: of the first R, for every R,
            at most a share of 1 - confidence is expected to miss the true frequency. Clipped to [0, 1], then extended
            to contain ``frequencies``.
        q_values: smallest false discovery rate at which each value is a discovery.
        levels: first level at which the value is hashed as a whole.
        num_scored: number of different whole values that were scored.
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
    """Whether a collection supports the discovery of unlisted values, because its alphabet hashes prefixes."""
    return isinstance(model.alphabet, Prefixes)


def check_discovery(model: Model) -> None:
    """Raise SpecError if a collection does not support discovery."""
    alphabet = model.alphabet
    if not isinstance(alphabet, Prefixes):
        raise SpecError(
            f"collection {model.id!r} must have the alphabet prefixes to discover unlisted values, got {alphabet.id!r}"
        )
    length = alphabet.lengths[0] or 1
    if (len(alphabet.tokens) + 1) ** length > MOST_SCORED:
        raise SpecError(
            f"collection {model.id!r} must have at most {MOST_SCORED} prefixes of {length} token(s) for a search, got "
            f"{len(alphabet.tokens)} tokens"
        )


def discover(model: Model, counts: CohortCounts, confidence: float = CONFIDENCE) -> Discovery:
    """Find frequent sensitive values that are not listed.

    Args:
        model: model with a prefix alphabet.
        counts: counts of its reports, of one window or the sum of several.
        confidence: of the intervals; which values are found does not depend on it.

    Raises:
        SpecError: if the alphabet is not a prefix alphabet.
        NoReportsError: if there are no reports.
        InsufficientCohortsError: if a level has no reports.
    """
    check_discovery(model)
    alphabet = model.alphabet
    assert isinstance(alphabet, Prefixes)
    question = ask(model, counts, ("",))
    levels = [Level(question, alphabet, number, counts) for number in range(alphabet.num_levels)]
    silent = [number for number, level in enumerate(levels) if not level.total]
    if silent:
        raise InsufficientCohortsError(
            f"a search for values needs reports of each of the {len(levels)} levels, got none of level {silent[0]}"
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
    return _judge(model, counts, values, search, confidence)


def _judge(model: Model, counts: CohortCounts, values: tuple[str, ...], search: Search, confidence: float) -> Discovery:
    """Benjamini-Hochberg discoveries among the values, with intervals that are adjusted for the selection.

    The i-th largest has the level 1 - (1 - confidence) i / M, with M its number of hypotheses (``hypotheses``). The sum
    of 1 / M over all possible values is at most 1, which the proof requires.

    All values are fitted together. Values that nobody holds were selected for their noise, so most of them fit noise
    and make the remaining noise seem smaller. They are removed, the clearest first, until all remaining values are
    discoveries.
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
    levels[order] = 1 - error_rate(confidence) * np.minimum(np.arange(1, len(values) + 1) / numbers[order], 1)
    nearest, low, high = moved_inside(functools.partial(score_intervals, solution), raw, levels, strict=True)
    longer = _longer(raw, solution, probabilities)
    low, high = np.clip(nearest - longer * (nearest - low), 0, 1), np.clip(nearest + longer * (high - nearest), 0, 1)
    low, high = reaching(low, high, raw)
    return _discovery(
        model,
        tuple(values[i] for i in order),
        search.num_scored,
        *(column[order] for column in (raw, errors, low, high, q_values)),
    )


def _longer(raw: np.ndarray, solution: Solution, probabilities: np.ndarray) -> np.ndarray:
    """(S,) ratio of the tail quantile under collisions to the normal one, at least 1, by which intervals are
    extended."""
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
    """Benjamini-Hochberg q-values of p-values (S,) among ``number`` hypotheses; the others have the p-value 1.

    An array (S,) of numbers gives the weighted procedure: a value of weight w among m hypotheses has the number m / w.

    Source: Genovese, Roeder and Wasserman 2006.
    """
    weighted = p_values * number
    order = np.argsort(weighted, kind="stable")
    rates = weighted[order] / np.arange(1, len(order) + 1)
    q_values = np.empty(len(order))
    q_values[order] = np.minimum(np.minimum.accumulate(rates[::-1])[::-1], 1)
    return q_values
