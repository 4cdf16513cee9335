"""Windows that know their neighbours: a Kalman filter forwards, and a Rauch-Tung-Striebel smoother back again.

Of T consecutive windows and S values, each value for itself:

    y_t = f_t + noise of variance R_t        what the reports of window t say
    f_t = s_t + N(0, W_t)                    the shares of exactly the people of that window
    s_t = s_(t-1) + N(0, Q)                  what drifts from window to window

R_t is known: it is the mechanism's. W_t = w p + p (1 - p) / n_t is how people and days differ, and Q = q p, with p the
mean share; the two numbers (q, w) are the most likely ones. docs/smoothing.md derives it. No Python loop over values.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
from scipy import special

LEAST_SHARE = 1e-5
"""The share from which a value's drift and nugget are scaled, if it has less."""

LEAST_HISTORY = 8
"""Windows in which a value was seen before it can be said to have moved: a week and a day."""

SUDDEN = 0.9
"""What share of all false alarms is spent on jumps, that is on a single window; the rest is for changes that last.

Their evidence grows by a factor with each window, so that a tenth costs them a window or two.
"""

_SIZES = np.array([1.0, -1.0, 2.0, -2.0, 4.0, -4.0])[:, np.newaxis]  # of changes that last, in standard deviations
_BEND = 3.0  # standard deviations from which an innovation counts linearly, so that one jump is not taken for drift
_FITTED = 256  # values that decide on the two numbers, at most
_COARSE = np.array([0.0, *np.logspace(-8, 0, 5)])
_FINER = (10 ** np.linspace(-1, 1, 5), 10 ** np.linspace(-0.25, 0.25, 5))
_LEAST_TAIL = 1e-300  # its normal number is 37
_TOGETHER = 16  # windows whose likelihoods are computed at once
_FACTORS = 4  # variances whose product is a number of 32 bits: fewer logarithms
_LEAST_UNIT = 1e-8  # of variances in the fit


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """Unbiased estimates of S values in T windows, in order of time.

    Attributes:
        raw: (T, S) shares; NaN where a window does not say.
        variances: (T, S) of ``raw`` as estimates of the shares of a population, without ``common``.
        common: (S,) variance of what is the same in all windows, such as the noise of hash functions.
        num_reports: (T,) n_t, at least 1.
        steps: (T,) int64 windows from the one before to this one, at least 1; more where some are missing.
        jump: n times what one more counted report adds to an estimate.
        level, spread: (S,) mean and variance of the drifting share just before the first window, from windows that
            are no longer here. By default nothing is known: 0 and 1.
        history, squares: (S,) how many standardised innovations these windows had, and the sum of their squares.
        evidence: (6, S) of changes that last, see ``track``.
    """

    raw: np.ndarray
    variances: np.ndarray
    common: np.ndarray
    num_reports: np.ndarray
    steps: np.ndarray
    jump: float = 0.0
    level: np.ndarray | float = 0.0
    spread: np.ndarray | float = 1.0
    history: np.ndarray | int = 0
    squares: np.ndarray | float = 0.0
    evidence: np.ndarray | float = 0.0

    @property
    def seen(self) -> np.ndarray:
        """(T, S) bool: where there is an estimate."""
        seen: np.ndarray = ~np.isnan(self.raw)
        return seen

    def law(self) -> Law:
        """What is known of the noise."""
        seen = self.seen
        times = np.maximum(seen.sum(axis=0), 1)
        raw, variances = np.where(seen, self.raw, 0), np.where(seen, self.variances, 0)
        n = self.num_reports[:, np.newaxis]
        shares = np.clip(raw.sum(axis=0) / times, LEAST_SHARE, 1)
        each = (variances * n).sum(axis=0) / times  # of one report
        people = (raw - raw**2 + variances).sum(axis=0) / times  # raw^2 is too large by its variance
        people = np.clip(people, LEAST_SHARE, 1 / 4)
        least = self.jump * shares / max(float(self.num_reports.sum()), 1.0)
        return Law(shares, np.maximum(each - people, least) / n, people / n)


@dataclasses.dataclass(frozen=True, eq=False)
class Law:
    """The noise of a series.

    Attributes:
        shares: (S,) p, at least LEAST_SHARE.
        noise: (T, S) R. The variance of a report, the mean of all windows, by the number of reports: what a single
            window says of its own variance depends on its own estimate, and would weight small estimates more.
        people: (T, S) the mean of p (1 - p) over windows, by n: what people differ from the population by.
    """

    shares: np.ndarray
    noise: np.ndarray
    people: np.ndarray


def log_likelihood(
    series: Series,
    law: Law,
    drift: np.ndarray,
    nugget: np.ndarray,
    moved: np.ndarray | None = None,
    bend: float = np.inf,
) -> np.ndarray:
    """Of the innovations, up to a constant of 2 pi; for many pairs of parameters at once.

    Args:
        series, law: T windows.
        drift, nugget: (G,) q and w.
        moved: (T, S) the variance that is added where a value begins anew, 1 or True; None: nowhere.
        bend: standard deviations beyond which a square goes on as its tangent.

    Computed as ``series.raw`` is stored, in 64 or 32 bits; summed up in 64.

    Returns:
        (G,).
    """
    kind = np.result_type(series.raw, law.noise)
    drift_of, nugget_of = ((part[:, np.newaxis] * law.shares).astype(kind) for part in (drift, nugget))
    mean, variance = ((np.zeros_like(drift_of) + start).astype(kind) for start in (series.level, series.spread))
    total, gain, seen = np.zeros(len(drift)), np.empty_like(variance), series.seen
    raw, fixed = np.where(seen, series.raw, kind.type(0)), law.noise + law.people
    steps, whole = series.steps.tolist(), set(np.flatnonzero(seen.all(axis=1)).tolist())
    anew = set() if moved is None else set(np.flatnonzero(moved.any(axis=1)).tolist())
    blocks = np.empty((3, min(_TOGETHER, len(raw)), *variance.shape), dtype=kind)
    for begin in range(0, len(raw), _TOGETHER):
        here = slice(begin, begin + _TOGETHER)
        noises, scales, innovations = blocks[:, : len(raw) - begin]
        np.add(nugget_of, fixed[here, np.newaxis], out=noises)
        innovations[:] = raw[here, np.newaxis]
        for t, noise, scale, innovation in zip(itertools.count(begin), noises, scales, innovations):
            variance += drift_of if steps[t] == 1 else kind.type(steps[t]) * drift_of
            if moved is not None and t in anew:
                variance += moved[t]
            np.add(variance, noise, out=scale)
            np.subtract(innovation, mean, out=innovation)
            np.divide(variance, scale, out=gain)
            if t in whole:
                np.multiply(noise, gain, out=variance)  # what is left, without a difference of large numbers
            else:
                gain *= seen[t]
                variance = np.where(seen[t], noise * gain, variance)
                scale[:, ~seen[t]], innovation[:, ~seen[t]] = 1, 0
            mean += np.multiply(gain, innovation, out=gain)
        innovations *= innovations
        innovations /= scales
        _bend(innovations.reshape(-1), bend)
        parts = [np.log(np.multiply.reduce(scales[at : at + _FACTORS])) for at in range(0, len(scales), _FACTORS)]
        for part in (np.add.reduce(innovations), *parts):
            total += part.sum(axis=1, dtype=np.float64)
    return -total / 2


def _bend(squares: np.ndarray, bend: float) -> None:
    """From ``bend`` squared on, squares (N,) go on as their tangents."""
    far = np.flatnonzero(squares > bend**2)
    squares[far] = 2 * bend * np.sqrt(squares[far]) - bend**2


def fit(series: Series, law: Law, moved: np.ndarray | None = None) -> tuple[float, float]:
    """The most likely (q, w), by finer and finer grids; of at most 256 values, those of the largest shares."""
    if len(law.shares) > _FITTED:
        chosen = np.argsort(-law.shares, kind="stable")[:_FITTED]
        series, law = _of_values(series, chosen), Law(law.shares[chosen], law.noise[:, chosen], law.people[:, chosen])
        moved = None if moved is None else moved[:, chosen]
    series, law, moved = _in_units(series, law, moved)
    best = _best(series, law, _COARSE, _COARSE, moved)
    for factors in _FINER:
        best = _best(series, law, best[0] * factors, best[1] * factors, moved)
    return best


def _in_units(series: Series, law: Law, moved: np.ndarray | None) -> tuple[Series, Law, np.ndarray | None]:
    """The same, of each value in multiples of its noise: numbers near 1, for which 32 bits are enough.

    Likelihoods differ by a constant from those of the shares themselves.
    """
    unit = np.maximum((law.noise + law.people).mean(axis=0), _LEAST_UNIT)
    parts: dict[str, np.ndarray] = {
        "raw": series.raw / np.sqrt(unit),
        "level": series.level / np.sqrt(unit),
        "spread": series.spread / unit,
    }
    small: dict[str, Any] = {name: part.astype(np.float32) for name, part in parts.items()}
    own = Law(*((part / unit).astype(np.float32) for part in (law.shares, law.noise, law.people)))
    return dataclasses.replace(series, **small), own, None if moved is None else (moved / unit).astype(np.float32)


def _best(
    series: Series, law: Law, drifts: np.ndarray, nuggets: np.ndarray, moved: np.ndarray | None
) -> tuple[float, float]:
    """The most likely pair of a grid."""
    drift, nugget = (grid.ravel() for grid in np.meshgrid(np.unique(drifts), np.unique(nuggets)))
    place = int(np.argmax(log_likelihood(series, law, drift, nugget, moved, _BEND)))
    return float(drift[place]), float(nugget[place])


def _of_values(series: Series, chosen: np.ndarray) -> Series:
    parts = {name: getattr(series, name) for name in ("common", "level", "spread", "history", "squares", "evidence")}
    parts = {name: part[..., chosen] if np.ndim(part) else part for name, part in parts.items()}
    return dataclasses.replace(series, raw=series.raw[:, chosen], variances=series.variances[:, chosen], **parts)


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
        R_d <- (R_d + 1) exp(d u - d^2 / 2),  d in _SIZES           evidence of a change that lasts (Shiryaev, Roberts)

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
        self._rise = (series.jump / series.num_reports)[:, np.newaxis]
        starts = (series.level, series.spread, series.history, series.squares)
        self._level, self._variance, self._history, self._squares = np.zeros((len(starts), size[0] + 1, size[1]))
        for part, start in zip((self._level, self._variance, self._history, self._squares), starts):
            part[0] = start
        known = np.concatenate([self._variance[:1] < 1, self._seen])
        self._judged = self._seen & np.logical_or.accumulate(known)[:-1]
        self._prior, self._change, self._error = np.zeros((3, *size))
        self._moved, self._p_value = np.zeros(size, dtype=bool), np.ones(size[0])
        self._evidence = np.empty((size[0], len(_SIZES), size[1]), dtype=np.float32)
        self._evidence[:] = series.evidence
        self._lasting: np.ndarray = np.zeros((len(_SIZES), size[1])) + series.evidence

    def follow(self, begin: int, end: int) -> None:
        """Windows in which nothing moves."""
        for t in range(begin, end):
            np.add(self._variance[t], self._steps[t] * self._step, out=self._prior[t])
            self._look(t)
        here, sums = slice(begin, end), slice(begin, end + 1)
        np.subtract(self._raw[here], self._level[here], out=self._change[here], where=self._seen[here])
        scale = self._prior[here] + self._fixed[here]
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
        tails = np.where(told, _tails(self._change[here], self._error[here], self._rise[here], *past), 1)
        evidence = _lasting(self._lasting, tails, np.sign(self._change[here]))
        rates, moved = _judge(evidence, tails, alarm_every, sudden)
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


def _tails(change: np.ndarray, error: np.ndarray, jump: Any, history: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Two-sided probabilities, all (T, S), of changes as large, given how large those of the past were.

    Counts are no normal numbers: a rise by z needs z^2 / 6 reports more for the same probability (Bernstein). A fall
    does not, whose tail is below that of a normal number with the variance of the count.
    """
    z = np.abs(change) / error
    jumps = np.where(change > 0, jump, 0) / error / 6  # z = limit + jumps limit^2, solved for the limit
    limit = np.where(jumps > 0, 2 * z / (1 + np.sqrt(1 + 4 * jumps * z)), z)
    scale = np.sqrt(np.maximum(squares / np.maximum(history, 1), 1))
    tails: np.ndarray = 2 * special.stdtr(np.maximum(history, 1), -limit / scale)
    return tails


def _lasting(evidence: np.ndarray, tails: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """(T, 6, S) evidence of lasting changes, (6, S) before, after each of T windows if none of them rings.

    It stays as it was where (T, S) ``tails`` are 1: not judged.
    """
    normal = -sign * special.ndtri(np.clip(tails / 2, _LEAST_TAIL, 0.5))
    judged = (tails < 1)[:, np.newaxis]
    factors = np.where(judged, np.exp(_SIZES * normal[:, np.newaxis] - _SIZES**2 / 2), 1)
    kept = np.empty_like(factors)
    with np.errstate(over="ignore", invalid="ignore"):  # long after one that would have rung
        for t in range(len(kept)):
            evidence = np.add(evidence, judged[t], out=kept[t])
            evidence *= factors[t]
    return kept


def _judge(evidence: np.ndarray, tails: np.ndarray, alarm_every: float, sudden: float) -> tuple[np.ndarray, np.ndarray]:
    """Of T windows false alarms a window of rules that would just ring, at most 1, and (T, S) which values moved."""
    size = tails.shape[1]
    lasting = np.add.reduce(evidence, axis=1) * ((1 - sudden) / len(_SIZES))
    own = lasting + sudden * np.where(tails * size * alarm_every < sudden, size * alarm_every / sudden, 0)
    rings = np.add.reduce(own, axis=1) >= alarm_every * size
    lasts = np.add.reduce(lasting, axis=1) / max(size, 1)
    rates = np.minimum(np.minimum.reduce(tails, axis=1, initial=1) * size / sudden, 1 / np.maximum(lasts, 1))
    return rates, (own >= alarm_every) & rings[:, np.newaxis]


@dataclasses.dataclass(frozen=True, eq=False)
class Change:
    """How much some values moved, M of them; all (M,).

    Attributes:
        size: the mean of the windows since it began, less what was expected before.
        error: its standard deviation.
        windows: int64, since it began, this one included.
        looks: int64, from how many that was chosen.
    """

    size: np.ndarray
    error: np.ndarray
    windows: np.ndarray
    looks: np.ndarray


def change_of(series: Series, course: Track, t: int, values: np.ndarray) -> Change:
    """How much values moved up to window t: since the window from which on the change is most significant.

    Args:
        series, course: T windows.
        t: the window in which they were found to have moved.
        values: (M,) int64, their places.
    """
    raw, seen = series.raw[: t + 1, values], series.seen[: t + 1, values]
    before = course.moved[:t, values][::-1]
    since = np.where(before.any(axis=0), before.argmax(axis=0), t)  # windows before this one that may be looked back
    number, total = _summed(seen), _summed(np.where(seen, raw, 0))
    known = course.expected_variance[: t + 1, values] - course.moved[: t + 1, values]
    noise = _summed(np.where(seen, course.change_error[: t + 1, values] ** 2 - known, 0))
    k = np.maximum(number, 1)
    size = total / k - course.expected[: t + 1, values]
    variance = known + noise / k**2 + course.drift[values] * (k - 1) * (2 * k - 1) / (6 * k)
    possible = seen & (known < 1 / 2) & (np.arange(t, -1, -1)[:, np.newaxis] <= since)
    z = np.where(possible, np.abs(size) / np.sqrt(variance), -1)
    best = z.argmax(axis=0), np.arange(len(values))
    return Change(size[best], np.sqrt(variance[best]), number[best], possible.sum(axis=0))


def _summed(cells: np.ndarray) -> np.ndarray:
    """(T, M) sums from each window to the last."""
    sums: np.ndarray = np.cumsum(cells[::-1], axis=0)[::-1]
    return sums


@dataclasses.dataclass(frozen=True, eq=False)
class Shares:
    """The shares of the people of each window, (T, S): estimates, and the variances of their errors.

    NaN where the window itself says nothing.
    """

    means: np.ndarray
    variances: np.ndarray


def filtered(series: Series, law: Law, nugget: float, course: Track) -> Shares:
    """What windows up to each one say."""
    return _own_shares(series, law, nugget, course.level, course.variance)


def smoothed(series: Series, law: Law, nugget: float, course: Track) -> Shares:
    """What all windows say of each one."""
    means, variances = course.level.copy(), course.variance.copy()
    for t in range(len(means) - 2, -1, -1):
        gain = course.variance[t] / course.expected_variance[t + 1]
        means[t] += gain * (means[t + 1] - course.expected[t + 1])
        variances[t] += gain**2 * (variances[t + 1] - course.expected_variance[t + 1])
    return _own_shares(series, law, nugget, means, variances)


def _own_shares(series: Series, law: Law, nugget: float, level: np.ndarray, variance: np.ndarray) -> Shares:
    """From the drifting share s to the people's own: given s, f = s + h (y - s) + N(0, h R), h = W / (W + R).

    ``level`` knows y already; that is no double use, for it is the mean of s given all data, y among them.
    """
    own = nugget * law.shares + law.people
    weight = own / (own + law.noise)
    means = level + weight * (series.raw - level)
    variances = (1 - weight) ** 2 * variance + weight * law.noise + series.common
    return Shares(means, np.where(series.seen, variances, np.nan))


def follow(series: Series, alarm_every: float | None, sudden: float = SUDDEN) -> tuple[Law, float, Track]:
    """The law of a series, its nugget w and its track, with drift and nugget fitted beside what moved."""
    law = series.law()
    drift, nugget = fit(series, law)
    course = track(series, law, drift, nugget, alarm_every, sudden)
    if course.moved.any():
        drift, nugget = fit(series, law, course.moved)
        course = track(series, law, drift, nugget, alarm_every, sudden)
    return law, nugget, course
