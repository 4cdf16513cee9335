"""What a page says about a question beside the collection: its versions, its reports, lies, and the cost per person."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.jobs.records.collection_facts import answers_in_words
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.versions import VersionedQuestion, questions_of
from uldp_transforms.windows import moment_of
from uldp_transforms_report.facts import Cost

_DAY = 86_400_000
_LENGTHS = (("a day", _DAY), ("a week", 7 * _DAY), ("30 days", 30 * _DAY), ("a year", 365 * _DAY))

_MOST = 1000
"""Maximum number of reports per person for which the page shows a cost: nobody reports in every 20-second window for a
year.
"""

_SOME = 100
"""Number of reports whose cost is shown instead, if even a day has more windows."""


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
        ("Answers", answers_in_words(question.collections[-1], specification)),
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
