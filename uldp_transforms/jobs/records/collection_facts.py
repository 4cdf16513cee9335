"""A collection in words: what is asked, sent and protected, as descriptions and pages say it."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

from uldp_transforms.jobs.records.unknown_repeats import has_unknown_repeats
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import Mechanism

_ASIDE = re.compile("`|optimal|^for small epsilon")
_HARDLY_ANY = 1e-3

_UNKNOWN_REPEATS = (
    "number per window not known, and they share part of their noise (memos): intervals are valid only if "
    "nobody reports twice in a window, and the sentinels are off. The next version of the collection "
    "should name a client_window"
)


def sensitive_values(collection: Collection | None) -> frozenset[str] | None:
    """The protected values, if the collection distinguishes them from others."""
    if collection is None or collection.mechanism.num_sensitive == collection.mechanism.num_symbols:
        return None
    alphabet, values = collection.alphabet, collection.alphabet.known_values
    if values is None:
        return None
    symbols = alphabet.symbol_table(values, collection.num_cohorts)[0].tolist()
    return frozenset(value for value, symbol in zip(values, symbols) if symbol < alphabet.num_sensitive)


def facts_of(collection: Collection | None, specification: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and text of each fact about the question and its perturbation."""
    if collection is None:
        return [("Question", "not known: no run record in the directory names the collection")]
    mechanism = collection.mechanism
    epsilon = mechanism.epsilon
    about = mechanism.described
    promised = about.protects.replace("`", "").partition(". ")[0]  # without special cases
    protects = promised if math.isfinite(epsilon) else "nothing: a report can rule values out"
    facts = [
        ("Answers", answers_in_words(collection, specification)),
        ("A device sends", f"{_sent(about.sends)} ({mechanism.id})"),
        ("Protected", protects),
        ("Epsilon of one report", epsilons_in_words(mechanism)),
    ]
    if has_unknown_repeats(collection):
        facts.append(("Reports of one person", _UNKNOWN_REPEATS))
    caveats = " ".join([*collection.alphabet.caveats, *mechanism.caveats])
    return facts + [("Not protected", caveats)] * bool(caveats)


def _sent(text: str) -> str:
    """What a device sends, without options (in backquotes) and recommendations, which follow a semicolon."""
    first, *more = text.split("; ")
    return "; ".join([first, *(part for part in more if not _ASIDE.search(part))]).replace("`", "")


def epsilons_in_words(mechanism: Mechanism) -> str:
    """The guarantee in words, or those of all levels."""
    levels = mechanism.guarantees
    if len(levels) == 1:
        return _epsilon_in_words(mechanism.epsilon, " of its block" if len(mechanism.confusable) > 1 else "")
    return "; ".join(
        f"{one.epsilon:g} for {one.of}: its reports are at most {math.exp(one.epsilon):,.3g} times as likely from one "
        f"value as from any other{' of this level or a later one, and rule earlier levels out' if place else ''}"
        for place, one in enumerate(levels)
    )


def _epsilon_in_words(epsilon: float, within: str) -> str:
    if math.isinf(epsilon):
        return "infinite"
    of_one = within.replace("its", "one")
    return (
        f"{epsilon:g}: a protected report is at most {math.exp(epsilon):,.3g} times as likely from one value as from "
        f"any other{within}. An observer who considers two values{of_one} equally likely can be at most "
        f"{_sure(epsilon)} sure after seeing it"
    )


def _sure(epsilon: float) -> str:
    doubt = 1 / (1 + math.exp(epsilon))
    return f"{100 * (1 - doubt):.1f} %" if doubt > _HARDLY_ANY else "more than 99.9 %"


def answers_in_words(collection: Collection, specification: dict[str, Any]) -> str:
    """The values that a collection takes, or where its texts go."""
    form, mechanism = collection.alphabet.to_json(), collection.mechanism
    cohorts = f", {collection.num_cohorts:,} cohorts" if collection.num_cohorts > 1 else ""
    number = specification.get("candidates")
    candidates = f"; the collector looks for {number:,} candidates" if number else ""
    if collection.alphabet.in_words is not None:
        return f"{collection.alphabet.in_words} ({form['id']}{cohorts}){candidates}"
    if "values" in form:
        values = f"{len(form['values']):,} listed values"
        if mechanism.num_sensitive < mechanism.num_symbols and "sensitive" in form:
            values += f", {len(form['sensitive']):,} of them sensitive"
        return f"{values} ({form['id']}{cohorts})"
    if collection.alphabet.bin_edges is not None:
        return f"{_numbers_in_words(collection)} ({form['id']}{cohorts})"
    return f"any text, hashed into {form['num_buckets']:,} buckets ({form['id']}{cohorts}){candidates}"


def _numbers_in_words(collection: Collection) -> str:
    """The numbers that a collection takes, and what becomes of them."""
    alphabet = collection.alphabet
    edges, others = alphabet.bin_edges, alphabet.to_json().get("others", ())
    assert edges is not None
    unit = f" {alphabet.unit}" if alphabet.unit else ""
    number = f"a number (in {alphabet.unit})" if unit else "a number"
    texts = f", or one of these texts: {', '.join(others)}" if others else ""
    return (
        f"{number}{texts}. A device keeps only in which of {len(edges) - 1} bins the number is, not where in it. All "
        f"numbers below {edges[1]:g}{unit} are in the first bin, and all from {edges[-2]:g}{unit} on in the last one"
    )


def sensitive_in_words(collection: Collection) -> str:
    """What is sensitive among numbers and texts, with whole bins."""
    alphabet = collection.alphabet
    edges, bins = alphabet.bin_edges, alphabet.known_values
    assert edges is not None
    assert bins is not None
    unit = f" {alphabet.unit}" if alphabet.unit else ""
    protected = sensitive_values(collection) or frozenset()
    number = len(edges) - 1
    held = [at for at in range(number) if bins[at] in protected]
    runs = [list(run) for _, run in itertools.groupby(held, key=lambda at: at - held.index(at))]
    said = []
    for run in runs:
        low = None if run[0] == 0 else f"{edges[run[0]]:g}"
        high = None if run[-1] == number - 1 else f"{edges[run[-1] + 1]:g}"
        words = [f"from {low}" if low else "", f"below {high}" if high else ""]
        said.append(f"numbers {' and '.join(filter(None, words))}{unit}" if low or high else "all numbers")
    return "; ".join([*said, *(text for text in bins[number:] if text in protected)])
