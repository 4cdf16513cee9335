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
from typing import Any

import numpy as np
from scipy import special

LEAST_SHARE = 1e-5
"""The share from which a value's drift and nugget are scaled, if it has less."""

LEAST_HISTORY = 8
"""Windows in which a value was seen before it can be said to have moved: a week and a day."""

_BEND = 3.0  # standard deviations from which an innovation counts linearly, so that one jump is not taken for drift
_FITTED = 256  # values that decide on the two numbers, at most
_COARSE = np.array([0.0, *np.logspace(-8, 0, 5)])
_FINER = (10 ** np.linspace(-1, 1, 5), 10 ** np.linspace(-0.25, 0.25, 5))
_TOGETHER = 4  # variances whose product is a number of 32 bits; a logarithm costs more than all else of a step
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
    squares, logs = np.zeros(len(drift)), np.zeros(len(drift))
    some, product = np.zeros_like(variance), np.ones_like(variance)
    seen = series.seen
    raw, fixed = np.where(seen, series.raw, kind.type(0)), law.noise + law.people
    whole = set(np.flatnonzero(seen.all(axis=1)).tolist())
    for t in range(len(raw)):
        variance += drift_of if series.steps[t] == 1 else kind.type(series.steps[t]) * drift_of
        if moved is not None and moved[t].any():
            variance += moved[t]
        noise = nugget_of + fixed[t]
        scale = variance + noise
        innovation = raw[t] - mean
        gain = variance / scale
        square = innovation * innovation
        square /= scale
        if bend < np.inf:
            square = _bent(square, kind.type(bend))
        noise *= gain  # the variance that is left, without a difference of large numbers
        if t not in whole:
            parts = ((scale, 1), (square, 0), (gain, 0), (noise, variance))
            scale, square, gain, noise = (np.where(seen[t], part, other).astype(kind) for part, other in parts)
        some += square
        product *= scale
        if t % _TOGETHER == _TOGETHER - 1 or t == len(raw) - 1:
            squares += some.sum(axis=1, dtype=np.float64)
            logs += np.log(product).sum(axis=1, dtype=np.float64)
            some[:], product[:] = 0, 1
        innovation *= gain
        mean += innovation
        variance = noise
    return -(logs + squares) / 2


def _bent(square: np.ndarray, bend: np.floating) -> np.ndarray:
    """Squares that go on as their tangents; (2 r - min(r, bend)) min(r, bend) of the roots r."""
    root: np.ndarray = np.sqrt(square)
    near = np.minimum(root, bend)
    root += root
    root -= near
    root *= near
    return root


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
    parts = {name: getattr(series, name) for name in ("common", "level", "spread", "history", "squares")}
    parts = {name: part[chosen] if np.ndim(part) else part for name, part in parts.items()}
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
        p_value: (T,) of the largest change, times the number of values; 1 where nothing could be judged.
        history, squares: (S,), as in ``Series``, after each window.
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


def track(series: Series, law: Law, drift: float, nugget: float, alarm_every: float | None = None) -> Track:
    """The Kalman filter. A value that moved is followed anew from there; all others go on.

    A change z, in standard deviations, is judged by the value's own past ones: under a steady course z / rms of m past
    ones is Student's with m degrees of freedom, whatever the scale is (at least 1), so that weekly patterns, and days
    that differ more than the model thinks, widen the limit by themselves. With limits of 1 / (alarm_every S) for each
    value, the mean time between false alarms is at least ``alarm_every`` windows. Counts are no normal numbers: the
    limit z has z^2 / 6 reports on top (Bernstein).

    Args:
        series, law: T windows.
        drift, nugget: q and w.
        alarm_every: windows; None: nothing is judged.
    """
    size = series.raw.shape
    names = ("expected", "expected_variance", "level", "variance", "change", "change_error", "history", "squares")
    kept = {name: np.zeros(size) for name in names}
    moved, p_value = np.zeros(size, dtype=bool), np.ones(size[0])
    mean, variance = np.zeros(size[1]) + series.level, np.zeros(size[1]) + series.spread
    history, squares = np.zeros(size[1]) + series.history, np.zeros(size[1]) + series.squares
    fixed = law.noise + law.people + nugget * law.shares
    seen, known = series.seen, variance < 1
    for t in range(size[0]):
        here = seen[t]
        variance = variance + series.steps[t] * drift * law.shares
        scale = variance + fixed[t]
        change = np.where(here, series.raw[t] - mean, 0)
        judged = here & known
        if alarm_every is not None:
            limits = _limits(change, np.sqrt(scale), series.jump / series.num_reports[t], history, squares)
            tails = _tails(limits, history, judged & (history >= LEAST_HISTORY), 1 / alarm_every)
            p_value[t] = min(float(tails.min(initial=1)), 1)
            moved[t] = tails < 1 / alarm_every
        kept["change"][t], kept["change_error"][t] = change, np.sqrt(scale)
        usual = judged & ~moved[t]
        history, squares = history + usual, squares + np.where(usual, change**2 / scale, 0)
        variance = variance + moved[t]
        kept["expected"][t], kept["expected_variance"][t] = mean, variance
        gain = np.where(here, variance / (variance + fixed[t]), 0)
        mean, variance, known = mean + gain * change, variance * (1 - gain), known | here
        kept["level"][t], kept["variance"][t] = mean, variance
        kept["history"][t], kept["squares"][t] = history, squares
    return Track(moved=moved, p_value=p_value, **kept)


def _limits(change: np.ndarray, error: np.ndarray, jump: float, history: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """(S,) changes as multiples of the past ones of the same value, so that they are Student's."""
    z = np.abs(change) / error
    jumps = jump / error / 6  # z = limit + jumps limit^2, solved for the limit
    limit = np.where(jumps > 0, 2 * z / (1 + np.sqrt(1 + 4 * jumps * z)), z)
    scale = np.sqrt(np.maximum(squares / np.maximum(history, 1), 1))
    ratio: np.ndarray = limit / scale
    return ratio


def _tails(limits: np.ndarray, history: np.ndarray, judged: np.ndarray, least: float) -> np.ndarray:
    """(S,) two-sided probability of a change as large, times S; 1 where nothing is judged.

    Where all have the same history and not even the largest change is below ``least``, the others, which cannot be
    either, are said to be 1: the probability costs more than all else of a step.
    """
    tails = np.ones(len(limits))
    places = np.flatnonzero(judged)
    if not len(places):
        return tails
    if history[places].min() == history[places].max():
        largest = places[np.argmax(limits[places])]
        tails[largest] = len(tails) * 2 * special.stdtr(history[largest], -limits[largest])
        if tails[largest] >= least:
            return tails
    tails[places] = len(tails) * 2 * special.stdtr(history[places], -limits[places])
    return tails


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


def follow(series: Series, alarm_every: float | None) -> tuple[Law, float, Track]:
    """The law of a series, its nugget w and its track, with drift and nugget fitted beside what moved."""
    law = series.law()
    drift, nugget = fit(series, law)
    course = track(series, law, drift, nugget, alarm_every)
    if course.moved.any():
        drift, nugget = fit(series, law, course.moved)
        course = track(series, law, drift, nugget, alarm_every)
    return law, nugget, course
