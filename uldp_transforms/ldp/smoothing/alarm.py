"""The alarm: in which windows values moved, judged by the windows before each one alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from uldp_transforms.ldp.smoothing.evidence import LEAST_HISTORY, SIZES, SUDDEN, lasting_evidence, which_moved
from uldp_transforms.ldp.smoothing.series import Series
from uldp_transforms.ldp.smoothing.variation import Expectation, Memory, expect, learn


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
        return cls(memory=Memory.empty(size), evidence=np.zeros((len(SIZES), size)))

    def placed(self, size: int, here: Any) -> Past:
        """The same among ``size`` values, of which these are at the places ``here``; of others nothing is known."""
        evidence = np.zeros((len(SIZES), size))
        evidence[:, here] = self.evidence
        return Past(memory=self.memory.placed(size, here), evidence=evidence)

    def to_bytes(self) -> bytes:
        """Evidence, then the memory, little-endian."""
        return self.evidence.astype("<f8").tobytes() + self.memory.to_bytes()

    @classmethod
    def from_bytes(cls, encoded: bytes, size: int) -> Past:
        """What ``to_bytes`` made, of ``size`` values."""
        number = len(SIZES) * size
        evidence = np.frombuffer(encoded, "<f8", number).reshape(len(SIZES), size).astype(np.float64)
        return cls(memory=Memory.from_bytes(encoded[8 * number :], size), evidence=evidence)


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
    memory, evidence = past.memory, past.evidence
    moved, p_value = np.zeros(size, dtype=bool), np.ones(size[0])
    told = np.zeros((5, *size))
    reports = series.variances * series.num_reports[:, np.newaxis]
    for t, (raw, report) in enumerate(zip(series.raw, reports)):
        n, seen = int(series.num_reports[t]), ~np.isnan(raw)
        expectation = expect(memory, np.where(seen, report, 0), n, int(series.steps[t]), series.jump)
        wider = expectation.with_noise(series.turnover) if turns else expectation
        told[:, t] = _numbers(wider, raw, seen)
        judged = seen & (memory.seen >= LEAST_HISTORY)
        if judged.any():
            tails = np.where(judged, wider.tails(np.where(seen, raw, 0), series.jump / n), 1)[np.newaxis]
            after = lasting_evidence(evidence, tails, np.sign(told[2, t])[np.newaxis])
            rates, rings = which_moved(after, tails, alarm_every, sudden)
            moved[t], p_value[t], evidence = rings[0], rates[0], after[0] * (not rings.any())
        memory = learn(memory, expectation, raw, report, moved[t])
    expected, variance, change, error, step = told
    return Alarms(
        moved=moved,
        p_value=p_value,
        expected=expected,
        expected_variance=variance,
        change=change,
        change_error=error,
        step=step,
        past=Past(memory=memory, evidence=evidence),
    )


def _numbers(expectation: Expectation, raw: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of a window, all (S,): mean and variance of the share, the change, its error, and the variance of a step."""
    level = expectation.mean(expectation.level)
    apart = expectation.level - level
    apart *= apart
    apart += expectation.variance
    variance = expectation.mean(apart)
    error = np.sqrt(variance + expectation.mean(expectation.effect) + expectation.noise)
    return level, variance, np.where(seen, raw - level, 0), error, expectation.mean(expectation.step)
