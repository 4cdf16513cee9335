"""A collector's knowledge about the cells behind a tag, and the cost of knowing less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from labs.experiments.frame import draw_people, shares, simulate_counts, squared_error, total_variation
from labs.experiments.uldp.check_ins import TAGS, CheckIns
from labs.experiments.uldp.expected_losses import expected_with_bias, symbol_frequencies
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts

NONE, UNIFORM, SURVEY, TRUE = "none", "uniform", "survey", "true"
KNOWLEDGE = (NONE, UNIFORM, SURVEY, TRUE)
SURVEYED = 1_000
"""People per tag who have told the collector, outside of this collection, where they live and work."""

NOTHING_HIDDEN, ALL_PROTECTED = "nothing hidden", "all protected"


def background(data: CheckIns, knowledge: str, rng: np.random.Generator) -> np.ndarray | None:
    """(2, K): the distribution behind each tag as the collector believes it to be; None: no belief."""
    if knowledge == NONE:
        return None
    if knowledge == UNIFORM:
        return np.stack([shares(data.hideable)] * len(TAGS))
    if knowledge == SURVEY:
        return np.stack([shares(draw_people(behind, SURVEYED, rng)) for behind in data.behind_tags])
    return data.behind_tags


def one_run(
    data: CheckIns, mechanism: str, epsilon: float, *, asked: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Losses of one run of new people, for each kind of knowledge and for the alternatives to tags."""
    people = data.draw(asked, rng)
    hidden = np.append(people[0], people[1:].sum(axis=1))
    counts = simulate_counts(data.collection(mechanism, epsilon), (*data.values, *TAGS), hidden, rng)
    for knowledge in KNOWLEDGE:
        belief = background(data, knowledge, rng)
        collection = data.collection(mechanism, epsilon, belief)
        yield {"knowledge": knowledge} | judged(data, collection, belief, counts)
    plain = people.sum(axis=0)
    for name, protecting in ((NOTHING_HIDDEN, mechanism), (ALL_PROTECTED, "RR")):
        untagged = data.plain_collection(protecting, epsilon)
        counts = simulate_counts(untagged, data.values, plain, rng)
        yield {"knowledge": name} | _losses(data, untagged, counts)


def _losses(data: CheckIns, collection: Collection, counts: CohortCounts) -> dict[str, float]:
    """Losses of the unbiased estimate and, under names that end with threshold, of the one with the threshold."""
    unbiased, tested = (collection.estimate(counts, name).frequencies for name in ("empirical", "threshold"))
    return {
        "loss": total_variation(unbiased, data.frequencies),
        "squared": squared_error(unbiased, data.frequencies),
        "threshold": total_variation(tested, data.frequencies),
        "squared_threshold": squared_error(tested, data.frequencies),
    }


def judged(data: CheckIns, collection: Collection, belief: np.ndarray | None, counts: CohortCounts) -> dict[str, float]:
    """The loss of one estimate, and its expectation.

    Args:
        data: the truth.
        collection: what was asked, with the belief as its background.
        belief: (2, K), see ``background``.
        counts: of the reports.

    Returns:
        loss, threshold: total variation distance to the truth, of the unbiased estimate and with the threshold.
        squared, squared_threshold, squared_expected, squared_floor: the same of the squared l2 distance.
        expected: its expected value; errors are taken for normal, and for small where nothing is known of a tag.
        floor: what is left of it with any number of people.
        bound: of the loss, by theorem 1, from this run's intermediate estimate r and assumed distributions pi behind
            the tags: (l1 error of r + sum over tags of abs(r(tag)) * l1 error of pi) / 2.
        home, work: total variation between assumed and true distribution behind the tag.
    """
    found = collection.mechanism.invert(counts.pooled())[0]
    texts = (*data.values, *TAGS)
    true = symbol_frequencies(collection, texts, data.intermediate)
    order = collection.alphabet.symbol_table(texts, 1)[0]
    wrong = [total_variation(*pair) for pair in zip(_assumed(data, belief, found[order]), data.behind_tags)]
    tags = np.abs(found[order[len(data.values) :]])
    means, deviations = _after_tags(collection, true, counts.total)
    bias = means[order[: len(data.values)]] - data.frequencies
    own = deviations[order[: len(data.values)]]
    return _losses(data, collection, counts) | {
        "squared_expected": float((bias**2 + own**2).sum()),
        "squared_floor": float((bias**2).sum()),
        "expected": expected_with_bias(bias, own),
        "floor": float(np.abs(bias).sum() / 2),
        "bound": total_variation(found, true) + float(tags @ wrong),
        **dict(zip(TAGS, wrong)),
    }


def _assumed(data: CheckIns, belief: np.ndarray | None, found: np.ndarray) -> np.ndarray:
    """(2, K): the distributions behind tags that this estimate used; without a belief like the other cells."""
    return np.stack([shares(found[: len(data.values)] * data.hideable)] * len(TAGS)) if belief is None else belief


def _after_tags(collection: Collection, frequencies: np.ndarray, asked: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each symbol's estimate after the people behind tags are redistributed."""
    slope = collection.alphabet.redistribution(frequencies)
    weights = np.eye(len(frequencies)) if slope is None else slope
    variances = collection.mechanism.variance_of(weights, frequencies) / asked
    return collection.alphabet.redistribute(frequencies), np.sqrt(np.maximum(variances, 0))
