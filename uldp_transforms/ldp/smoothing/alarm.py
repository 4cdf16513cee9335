"""The alarm: in which windows values moved, judged by the windows before each one alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from uldp_transforms.ldp.smoothing.evidence import LEAST_HISTORY, SIZES, SUDDEN, lasting_evidence, which_moved
from uldp_transforms.ldp.smoothing.series import Series
from uldp_transforms.ldp.smoothing.variation import DRIFTS, KIND, Expectation, Memory, ahead

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
    size, turns = series.raw.shape, bool(np.any(series.turnover))
    sudden = 1.0 if turns else sudden
    past = Past.empty(size[1]) if past is None else past
    memory, evidence = past.memory, past.evidence.astype(float)
    moved, p_value, told = np.zeros(size, dtype=bool), np.ones(size[0]), np.zeros((5, *size))
    reports = np.where(series.seen, series.variances, 0) * series.num_reports[:, np.newaxis]
    begin, together, most = 0, 1, _together(size[1])
    while begin < size[0]:
        here = slice(begin, begin + together)
        raw, report, n = series.raw[here], reports[here], series.num_reports[here]
        told_of = (raw, report, n, series.steps[here])
        memories, expectations = ahead(memory, *told_of, series.jump)
        wider = expectations.with_noise(series.turnover) if turns else expectations
        numbers = _numbers(wider, raw)
        judged = ~np.isnan(raw) & (memories.seen[:-1] >= LEAST_HISTORY)
        tails = np.ones(raw.shape)
        if judged.any():
            jumps = (series.jump / n).astype(KIND)[:, np.newaxis, np.newaxis]
            tails = np.where(judged, wider.tails(np.where(judged, raw, 0), jumps), 1)
        after = lasting_evidence(evidence, tails, np.sign(numbers[2]))
        rates, rings = which_moved(after, tails, alarm_every, sudden)
        rang = np.flatnonzero(rings.any(axis=1))[:1]
        last = int(rang[0]) if len(rang) else len(raw) - 1
        done, some = slice(begin, begin + last + 1), slice(last + 1)
        told[:, done], moved[done], p_value[done] = numbers[:, some], rings[some], rates[some]
        memory, evidence, together = memories.at(-1), after[-1], min(2 * together, most)
        if len(rang):  # what was followed after it knew nothing of that
            window = (part[last : last + 1] for part in told_of)
            memory = ahead(memories.at(last), *window, series.jump, moved[begin + last])[0].at(-1)
            evidence, together = np.zeros_like(evidence), 1
        begin += last + 1
    expected, variance, change, error, step = told
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
