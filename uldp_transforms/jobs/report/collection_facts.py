"""Descriptions of a collection and of its privacy cost per person, for the page."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.jobs.records.unknown_repeats import has_unknown_repeats
from uldp_transforms.jobs.report.facts import Cost
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.versions import VersionedQuestion, questions_of
from uldp_transforms.windows import moment_of

_ASIDE = re.compile("`|optimal|^for small epsilon")

_DAY = 86_400_000
_LENGTHS = (("a day", _DAY), ("a week", 7 * _DAY), ("30 days", 30 * _DAY), ("a year", 365 * _DAY))
_HARDLY_ANY = 1e-3

_UNKNOWN_REPEATS = (
    "number per window not known, and they share part of their noise (memos): intervals are valid only if "
    "nobody reports twice in a window, and the sentinels are off. The next version of the collection "
    "should name a client_window"
)

_MOST = 1000
"""Maximum number of reports per person for which the page shows a cost: nobody reports in every 20-second window for a
year.
"""
_SOME = 100
"""Number of reports whose cost is shown instead, if even a day has more windows."""


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
        ("Answers", _answers(collection, specification)),
        ("A device sends", f"{_sent(about.sends)} ({mechanism.id})"),
        ("Protected", protects),
        ("Epsilon of one report", _epsilon_in_words(epsilon)),
    ]
    if has_unknown_repeats(collection):
        facts.append(("Reports of one person", _UNKNOWN_REPEATS))
    caveats = " ".join([*collection.alphabet.caveats, *mechanism.caveats])
    return facts + [("Not protected", caveats)] * bool(caveats)


def _sent(text: str) -> str:
    """What a device sends, without options (in backquotes) and recommendations, which follow a semicolon."""
    first, *more = text.split("; ")
    return "; ".join([first, *(part for part in more if not _ASIDE.search(part))]).replace("`", "")


def questions_in(collections: Iterable[Collection]) -> dict[str, VersionedQuestion]:
    """Fingerprint -> question, for the questions that these collections name and that can be pooled."""
    named: dict[str | None, list[Collection]] = defaultdict(list)
    for collection in collections:
        named[collection.question].append(collection)
    found: dict[str, VersionedQuestion] = {}
    for name, versions in named.items():
        with contextlib.suppress(SpecError):  # versions of different runs, which no run could pool
            found |= {one.fingerprint.hex(): one for one in questions_of(versions if name else ())}
    return found


def facts_of_question(question: VersionedQuestion, specification: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and text of each fact about a question with versions."""
    facts = [
        ("Answers", _answers(question.collections[-1], specification)),
        ("Pooled from", "; ".join(map(_version_in_words, question.pooled))),
    ]
    others = [one for one in question.collections if one not in question.pooled]
    if others:
        facts.append(("Not pooled, because they have other answers", "; ".join(map(_version_in_words, others))))
    return facts


def _version_in_words(version: Collection) -> str:
    mechanism = version.mechanism
    epsilon = f"{mechanism.epsilon:g}" if math.isfinite(mechanism.epsilon) else "infinite"
    return f"{version.id} version {version.version} ({mechanism.id}, epsilon {epsilon})"


def reports_in_words(windows: Sequence[Mapping[str, Any]]) -> str:
    """Number of reports in words; with overlapping windows, a report is in several of them."""
    numbers = [row["num_reports"] for row in windows if row["num_reports"] is not None]
    if not numbers:
        return "not shown: every window has too few"
    begun, ended = ([row[name] or "" for row in windows] for name in ("window_start", "window_end"))
    if len(numbers) == 1:
        return f"{numbers[0]:,}"
    ends = dict.fromkeys((f"{min(numbers):,}", f"{max(numbers):,}"))
    spread = f"{' to '.join(ends)} in each of the {len(numbers):,} windows that show the number"
    overlap = any(start < end for start, end in zip(begun[1:], ended))
    return f"{spread}; windows overlap" if overlap else f"{sum(numbers):,}; {spread}"


def shares_of_liars(rows: Iterable[Mapping[str, Any] | None]) -> list[float]:
    """The declared shares of liars for which the intervals of rows allow, in ascending order."""
    return sorted({row["liars"] for row in rows if row is not None and row.get("liars") is not None})


def liars_in_words(windows: Sequence[Mapping[str, Any]], total: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Facts about the declared shares of liars in windows and in the whole period; empty if none was declared."""
    of_windows, of_total = ([f"{100 * b:.4g} %" for b in shares_of_liars(rows)] for rows in (windows, [total]))
    because = "as the operator declares; intervals are of shares among honest people"
    facts = []
    if of_windows:
        apart = "windows are not compared, because liars may be others in each"
        facts.append(("Lies among the reports of a window", f"at most {', '.join(of_windows)}, {because}, and {apart}"))
    if of_total:
        facts.append(("Lies among all reports", f"at most {', '.join(of_total)}, {because}"))
    return facts


def _epsilon_in_words(epsilon: float) -> str:
    if math.isinf(epsilon):
        return "infinite"
    return (
        f"{epsilon:g}: a protected report is at most {math.exp(epsilon):,.3g} times as likely from one value as from "
        "any other. An observer who considers two values equally likely can be at most "
        f"{_sure(epsilon)} sure after seeing it"
    )


def _sure(epsilon: float) -> str:
    doubt = 1 / (1 + math.exp(epsilon))
    return f"{100 * (1 - doubt):.1f} %" if doubt > _HARDLY_ANY else "more than 99.9 %"


def _answers(collection: Collection, specification: dict[str, Any]) -> str:
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


def costs_of(collection: Collection | None, starts: Sequence[str], ends: Sequence[str]) -> list[Cost]:
    """Privacy cost of a person who reports once in every window.

    Args:
        collection: the collection; None if unknown.
        starts, ends: bounds of the windows, in order of time.
    """
    if collection is None:
        return []
    costs = [Cost(reports="one report", epsilon=collection.mechanism.epsilon)]
    if not starts:
        return costs
    step = float(np.median(np.diff([moment_of(start) for start in starts]))) if len(starts) > 1 else 0.0
    step = step or float(moment_of(ends[0]) - moment_of(starts[0]))
    numbers = {f"one in each window of {name} ({n:,})": n for name, n in _windows_in(step) if 1 < n <= _MOST}
    if round(_DAY / step) > _MOST:
        numbers = {f"{_SOME} reports": _SOME}
    epsilon_after = collection.mechanism.epsilon_after
    return costs + [Cost(reports=what, epsilon=epsilon_after(number)) for what, number in numbers.items()]


def _windows_in(step: float) -> list[tuple[str, int]]:
    """Number of windows in each length of time, one every ``step`` milliseconds."""
    return [(name, round(length / step)) for name, length in _LENGTHS]
