"""How many values of a window could be judged for changes, and what a quiet finding therefore says."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.sentinels import Finding
from uldp_transforms.ldp.smoothing import LEAST_HISTORY, Alarms, Series

RULE = f"values are judged after {LEAST_HISTORY} windows with numbers"


def seen_before(series: Series, alarms: Alarms, t: int) -> np.ndarray:
    """(V,) number of earlier windows with each of the V values of window ``t``."""
    seen: np.ndarray = alarms.seen[t][~np.isnan(series.raw[t])]
    return seen


def with_judged(change: Finding | None, seen: Sequence[np.ndarray]) -> Finding | None:
    """The finding with the number of values that were judged; if it did not fire, its sentence says what was not.

    Args:
        change: of a window; None if it has none.
        seen: ``seen_before`` of each kind of its values and figures.
    """
    if change is None:
        return None
    windows = np.concatenate(seen)
    judged = int((windows >= LEAST_HISTORY).sum())
    sentence = change.sentence
    if not change.fired and not judged:
        sentence = f"Changes are not judged yet: {RULE}; so far {int(windows.max(initial=-1)) + 1}."
    elif not change.fired and judged < len(windows):
        sentence = f"Nothing unusual in what was judged ({judged:,} of {len(windows):,}): {RULE}."
    return dataclasses.replace(change, judged=judged, sentence=sentence)


class Account:
    """Counts the windows in which changes were found, and those that could be judged."""

    def __init__(self) -> None:
        self._fired = self._judged = self._number = 0

    def add(self, change: Finding | None) -> bool:
        """Count a finding ``with_judged``; returns whether something changed."""
        if change is None:
            return False
        self._fired += change.fired
        self._judged += bool(change.judged)
        self._number += 1
        return change.fired

    def __bool__(self) -> bool:
        """Whether any window was looked at."""
        return self._number > 0

    def __str__(self) -> str:
        rest = self._number - self._judged
        said = f"changes in {self._fired:,} of {self._judged:,} windows that were judged"
        return said + f"; {rest:,} were not, because {RULE}" * (rest > 0)
