"""The alarm: in which windows values moved, judged by the windows before each one alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from uldp_transforms.ldp.smoothing.evidence import LEAST_HISTORY, SIZES, SUDDEN, lasting_evidence, which_moved
from uldp_transforms.ldp.smoothing.series import Series
from uldp_transforms.ldp.smoothing.variation import DRIFTS, KIND, Expectation, Memory, Told, ahead

_MOST_TOGETHER = 16  # windows that are judged at once, as if nothing rang in them
_CELLS = 1 << 16  # laws times values times windows, at most, if there is more than one window


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Past:
    """What the alarm keeps of the windows so far.

    Attributes:
        memory: of the bank of filters.
        evidence: (6, S) of changes that last, see ``judge``.
    """

    memory: Memory
    evidence: np.ndarray

    @classmethod
    def empty(cls, size: int) -> Past:
        """Before the first window."""
        return cls(memory=Memory.empty(size), evidence=np.zeros((len(SIZES), size), dtype=KIND))

    def placed(self, size: int, here: Any) -> Past:
        """The same among ``size`` values, of which these are at the places ``here``; of others nothing is known."""
        evidence = np.zeros((len(SIZES), size), dtype=KIND)
        evidence[:, here] = self.evidence
        return Past(memory=self.memory.placed(size, here), evidence=evidence)

    def to_bytes(self) -> bytes:
        """Evidence, then the memory, little-endian."""
        return self.evidence.astype("<f4").tobytes() + self.memory.to_bytes()

    @classmethod
    def from_bytes(cls, encoded: bytes, size: int) -> Past:
        """What ``to_bytes`` made, of ``size`` values."""
        number = len(SIZES) * size
        evidence = np.frombuffer(encoded, "<f4", number).reshape(len(SIZES), size).astype(KIND)
        return cls(memory=Memory.from_bytes(encoded[4 * number :], size), evidence=evidence)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Alarms:
    """What moved in T windows. All (T, S) but ``p_value`` and ``past``.

    Attributes:
        moved: bool, whether the value was found to begin anew in this window.
        p_value: (T,) false alarms a window of a rule that would just ring here; 1 if nothing could be judged.
        expected, expected_variance: of the drifting share, before the window is looked at.
        change: raw - expected; 0 where the window does not say.
        change_error: its standard deviation, if nothing had moved.
        step: variance of a step of the drifting share.
        past: what is left of these windows for those that come.
    """

    moved: np.ndarray
    p_value: np.ndarray
    expected: np.ndarray
    expected_variance: np.ndarray
    change: np.ndarray
    change_error: np.ndarray
    step: np.ndarray
    past: Past


def judge(series: Series, alarm_every: float, past: Past | None = None, sudden: float = SUDDEN) -> Alarms:
    """Which values moved, window by window.

    A change is judged by the windows before it alone: by the known noise, and by the laws of ``variation``, weighted by
    how well they explain the past. Let u be the standard normal number of the same probability as the change, and
    a = ``sudden`` / (``alarm_every`` S). For each value

        jump = 1 / a if |u| is less likely than a, else 0           evidence of this window alone
        R_d <- (R_d + 1) exp(d u - d^2 / 2),  d in SIZES           evidence of a change that lasts (Shiryaev, Roberts)

    and its evidence is ``sudden`` times the jump and 1 - ``sudden`` times the mean of the R_d. It rings when the mean
    over values is ``alarm_every`` or more; then all R begin at 0 again. If the probabilities are right given the past,
    each factor has the mean 1, so the mean evidence grows by at most 1 a window, and each alarm takes ``alarm_every``
    or more away from it: there is at most one alarm in ``alarm_every`` windows, in the mean, however values depend on
    each other. Values whose own evidence is ``alarm_every`` or more have moved; there is at least one.

    Where noise may last for some windows and then change, because other people came (``Series.turnover``), its variance
    is added to that of every change, and only jumps can ring.

    Args:
        series: T windows.
        alarm_every: windows.
        past: of windows that are no longer here; None: there were none.
        sudden: in (0, 1], the share of false alarms spent on jumps.
    """
    size = series.raw.shape
    sudden = 1.0 if np.any(series.turnover) else sudden
    past = Past.empty(size[1]) if past is None else past
    memory, evidence = past.memory, past.evidence.astype(float)
    moved, p_value, numbers = np.zeros(size, dtype=bool), np.ones(size[0]), np.zeros((5, *size))
    begin, together, most = 0, 1, _together(size[1])
    while begin < size[0]:
        told = Told.of(series, begin, begin + together)
        memories, expectation = ahead(memory, told)
        expectation = expectation.with_noise(series.turnover)
        found = _numbers(expectation, told.raw)
        tails = _tails(expectation, told, memories.seen[:-1])
        after = lasting_evidence(evidence, tails, np.sign(found[2]))
        rates, rings = which_moved(after, tails, alarm_every, sudden)
        rang = np.flatnonzero(rings.any(axis=1))
        end = int(rang[0]) + 1 if len(rang) else len(tails)
        done = slice(begin, begin + end)
        numbers[:, done], moved[done], p_value[done] = found[:, :end], rings[:end], rates[:end]
        if len(rang):  # windows after it were followed as if nothing had moved
            memories, _ = ahead(memories.at(end - 1), told.only(end - 1), rings[end - 1])
            after, together = np.zeros_like(after), 1
        else:
            together = min(2 * together, most)
        memory, evidence, begin = memories.at(-1), after[-1], begin + end
    expected, variance, change, error, step = numbers
    return Alarms(
        moved=moved,
        p_value=p_value,
        expected=expected,
        expected_variance=variance,
        change=change,
        change_error=error,
        step=step,
        past=Past(memory=memory, evidence=evidence.astype(KIND)),
    )


def _tails(expectation: Expectation, told: Told, seen: np.ndarray) -> np.ndarray:
    """(B, S) probabilities of what windows say; 1 where it is not judged, of values (B, S) ``seen`` in few windows."""
    judged = ~np.isnan(told.raw) & (seen >= LEAST_HISTORY)
    if not judged.any():
        return np.ones(judged.shape)
    jumps = (told.jump / told.num_reports).astype(KIND)[:, np.newaxis, np.newaxis]
    tails: np.ndarray = np.where(judged, expectation.tails(np.where(judged, told.raw, 0), jumps), 1)
    return tails


def _together(size: int) -> int:
    """How many windows of so many values are judged at once: as many as fit into the caches of a processor."""
    return max(1, min(_MOST_TOGETHER, _CELLS // max(size * len(DRIFTS), 1)))


def _numbers(expectation: Expectation, raw: np.ndarray) -> np.ndarray:
    """(5, B, S) mean and variance of the share, the change, its error, and the variance of a step."""
    level = expectation.mean(expectation.level)
    apart = expectation.level - level[:, np.newaxis]
    apart *= apart
    apart += expectation.variance
    variance = expectation.mean(apart)
    error = np.sqrt(variance + expectation.mean(expectation.effect) + expectation.noise[:, 0])
    change = np.where(np.isnan(raw), 0, raw - level)
    return np.stack([level, variance, change, error, expectation.mean(expectation.step)])
