"""The Kalman filter: what the windows up to each one say, and where values moved and are followed anew."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.smoothing.evidence import (
    LEAST_HISTORY,
    SIZES,
    SUDDEN,
    lasting_evidence,
    tails_of,
    which_moved,
)
from uldp_transforms.ldp.smoothing.series import Law, Series

_TOGETHER = 16  # windows that are followed at once, until one rings


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Track:
    """What the windows up to each one say of the drifting share, and where values moved. All (T, S).

    Attributes:
        expected, expected_variance: before a window is looked at.
        level, variance: after it.
        moved: bool, whether the value was found to begin anew in this window.
        change: raw - expected.
        change_error: its standard deviation, if nothing had moved.
        p_value: (T,) false alarms a window of a rule that would just ring here; 1 if nothing could be judged.
        history, squares: as in ``Series``, after each window.
        evidence: (T, 6, S), the same.
        drift: (S,) variance of a step of the drifting share.
    """

    expected: np.ndarray
    expected_variance: np.ndarray
    level: np.ndarray
    variance: np.ndarray
    moved: np.ndarray
    change: np.ndarray
    change_error: np.ndarray
    p_value: np.ndarray
    history: np.ndarray
    squares: np.ndarray
    evidence: np.ndarray
    drift: np.ndarray


def track(
    series: Series, law: Law, drift: float, nugget: float, alarm_every: float | None = None, sudden: float = SUDDEN
) -> Track:
    """The Kalman filter. A value that moved is followed anew from there; all others go on.

    A change z, in standard deviations, is judged by the value's own past ones: under a steady course z / rms of m past
    ones is Student's with m degrees of freedom, whatever the scale is (at least 1), so that weekly patterns, and days
    that differ more than the model thinks, widen the limit by themselves. Let u be the standard normal number of the
    same probability, and a = ``sudden`` / (``alarm_every`` S). Of each value

        jump = 1 / a if |u| is less likely than a, else 0           evidence of this window alone
        R_d <- (R_d + 1) exp(d u - d^2 / 2),  d in SIZES           evidence of a change that lasts (Shiryaev, Roberts)

    and its evidence is ``sudden`` times the jump and 1 - ``sudden`` times the mean of the R_d. It rings when the mean
    over values is ``alarm_every`` or more; then all R begin at 0 again. If nothing moves, each factor has the mean 1
    given the past, so that the mean evidence grows by at most 1 a window, and it falls by ``alarm_every`` at least at
    each alarm: there is at most one alarm in ``alarm_every`` windows, in the mean, however values depend on each other.
    Those whose own evidence is ``alarm_every`` or more have moved; it is at least one.

    Args:
        series, law: T windows.
        drift, nugget: q and w.
        alarm_every: windows; None: nothing is judged.
        sudden: in (0, 1], the share of false alarms spent on jumps.
    """
    tracker = _Tracker(series, law, drift, nugget)
    begin, together, size = 0, _TOGETHER, len(series.raw)
    while begin < size:
        end = min(begin + together, size)
        tracker.follow(begin, end)
        begin = end if alarm_every is None else tracker.judge(begin, end, alarm_every, sudden)
        together = min(2 * together, _TOGETHER) if begin == end else 1  # alarms are rare, or come in crowds
    return tracker.course()


class _Tracker:
    """The filter while it runs. Arrays of T + 1 rows hold what is known before each window, and after the last.

    Windows are followed some at a time, as if nothing moved, and then judged together; after one that rings it goes on
    from there.
    """

    def __init__(self, series: Series, law: Law, drift: float, nugget: float):
        size = series.raw.shape
        self._seen, self._steps, self._step = series.seen, series.steps, drift * law.shares
        self._raw = np.where(self._seen, series.raw, 0)
        self._fixed = law.noise + law.people + nugget * law.shares
        self._noise = np.where(self._seen, self._fixed, np.inf)  # of what is not seen nothing is learned
        self._turnover = series.turnover
        self._rise = (series.jump / series.num_reports)[:, np.newaxis]
        starts = (series.level, series.spread, series.history, series.squares)
        self._level, self._variance, self._history, self._squares = np.zeros((len(starts), size[0] + 1, size[1]))
        for part, start in zip((self._level, self._variance, self._history, self._squares), starts):
            part[0] = start
        known = np.concatenate([self._variance[:1] < 1, self._seen])
        self._judged = self._seen & np.logical_or.accumulate(known)[:-1]
        self._prior, self._change, self._error = np.zeros((3, *size))
        self._moved, self._p_value = np.zeros(size, dtype=bool), np.ones(size[0])
        self._evidence = np.empty((size[0], len(SIZES), size[1]), dtype=np.float32)
        self._evidence[:] = series.evidence
        self._lasting: np.ndarray = np.zeros((len(SIZES), size[1])) + series.evidence

    def follow(self, begin: int, end: int) -> None:
        """Windows in which nothing moves."""
        for t in range(begin, end):
            np.add(self._variance[t], self._steps[t] * self._step, out=self._prior[t])
            self._look(t)
        here, sums = slice(begin, end), slice(begin, end + 1)
        np.subtract(self._raw[here], self._level[here], out=self._change[here], where=self._seen[here])
        scale = self._prior[here] + self._fixed[here] + self._turnover
        self._error[here] = np.sqrt(scale)
        judged, after = self._judged[here], slice(begin + 1, end + 1)
        self._history[after], self._squares[after] = judged, judged * self._change[here] ** 2 / scale
        for part in (self._history, self._squares):
            np.cumsum(part[sums], axis=0, out=part[sums])

    def _look(self, t: int) -> None:
        """What is known after a window, from what was expected of it."""
        gain = self._prior[t] / (self._prior[t] + self._noise[t])
        np.multiply(self._prior[t], 1 - gain, out=self._variance[t + 1])
        gain *= self._raw[t] - self._level[t]
        np.add(self._level[t], gain, out=self._level[t + 1])

    def judge(self, begin: int, end: int, alarm_every: float, sudden: float) -> int:
        """Windows that were followed, up to the first that rings; the one after it."""
        here = slice(begin, end)
        told = self._judged[here] & (self._history[here] >= LEAST_HISTORY)
        past = self._history[here], self._squares[here]
        tails = np.where(told, tails_of(self._change[here], self._error[here], self._rise[here], *past), 1)
        evidence = lasting_evidence(self._lasting, tails, np.sign(self._change[here]))
        rates, moved = which_moved(evidence, tails, alarm_every, sudden)
        rang = np.flatnonzero(moved.any(axis=1)).tolist()
        number = rang[0] + 1 if rang else end - begin
        if rang:
            evidence[rang[0]] = 0
            self._begin_anew(begin + rang[0], moved[rang[0]])
        self._lasting = evidence[number - 1]
        here = slice(begin, begin + number)
        self._evidence[here], self._p_value[here] = evidence[:number], rates[:number]
        return begin + number

    def _begin_anew(self, t: int, moved: np.ndarray) -> None:
        """Values (S,) bool are followed from this window on as if nothing was before; it is no part of their past."""
        self._moved[t] = moved
        self._prior[t] += moved
        self._look(t)
        for part in (self._history, self._squares):
            part[t + 1] = np.where(moved, part[t], part[t + 1])

    def course(self) -> Track:
        return Track(
            expected=self._level[:-1],
            expected_variance=self._prior,
            level=self._level[1:],
            variance=self._variance[1:],
            moved=self._moved,
            change=self._change,
            change_error=self._error,
            p_value=self._p_value,
            history=self._history[1:],
            squares=self._squares[1:],
            evidence=self._evidence,
            drift=self._step,
        )
