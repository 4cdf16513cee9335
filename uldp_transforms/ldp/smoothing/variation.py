"""Normal variation of a value: a bank of Kalman filters, one for each pair of drift and day effects (a law).

A law (rho, sigma) describes the share s of a value and the estimate y of window t:

    s_t = s_(t-1) + N(0, (rho v)^2)                drift; v = s (1 - s)
    y_t = s_t + D_t + N(0, R_t),                   R_t known; day effects D_t of standard deviation sigma v

Day effects multiply odds, so the shares of a question with two values vary by the same law, and changes away from the
nearer end of [0, 1] have approximately lognormal probabilities (``Expectation.scores``).
The scale of day effects is a nuisance that is integrated over: 12 sizes, each twice the one before, from practically 0
on, and 14 laws with drifts. Each value has a weight for each law, learned from its own past windows, and from those of
the other values through common weights. In each window a value may change its law, usually to a neighbouring one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from uldp_transforms.ldp.smoothing.series import LEAST_SHARE, Series

_SCALE = np.float32(0.36)
_LOGARITHM = np.array([-1.94091944, 1.00854329, 0.29521119, 0.36904743, -0.63539031, 0.21034036], dtype=np.float32)
_LEAST = np.float32(-80)  # of exponents, so that nothing underflows


def normal_tail(x: np.ndarray) -> np.ndarray:
    """float32 probabilities that a standard normal variable is at most x, for float32 ``x``; down to 1e-36.

    With t = 1 / (1 + 0.36 |x|) the logarithm of the probability of -|x| is log t - x^2 / 2 plus a polynomial of t. Its
    six coefficients minimise the maximum error in |x| < 40; they were found by weighted least squares.
    """
    t = np.abs(x)
    t *= _SCALE
    t += np.float32(1)
    np.reciprocal(t, out=t)
    logarithm = t * _LOGARITHM[-1]
    for coefficient in _LOGARITHM[-2:0:-1]:
        logarithm += coefficient
        logarithm *= t
    logarithm += _LOGARITHM[0]
    square = x * x
    square *= np.float32(0.5)
    logarithm -= square
    np.maximum(logarithm, _LEAST, out=logarithm)
    tail: np.ndarray = np.exp(logarithm, out=logarithm)
    tail *= t
    tail -= x > 0
    np.abs(tail, out=tail)  # 1 - tail above 0
    return tail


KIND = np.float32
"""Dtype of the arrays of the bank."""

_SIGMAS = 1.35 / 2.0 ** np.arange(11, -1, -1)
_RHOS, _RATIOS = (0.0025, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32), (0.5, 4.0)
_LAWS = [(0.0, sigma) for sigma in _SIGMAS] + [(rho, rho * ratio) for rho in _RHOS for ratio in _RATIOS]
DRIFTS, EFFECTS = (column.reshape(-1, 1).astype(KIND) for column in np.array(_LAWS).T)
"""rho and sigma of the laws, (G, 1) each. The first law has day effects of practically 0."""

_EDGE = np.where(np.arange(len(_LAWS)) > 0, 1.5, 1.0).astype(KIND)[:, np.newaxis]
JUDGED = EFFECTS * _EDGE
"""Day effects by which changes are judged, (G, 1): a little more than the largest for which a law is the likeliest.

Between two laws of which one varies twice as much, windows of 1.36 times the smaller variation are as likely under
both. With 1.36 in place of 1.5, random walks rang more often than promised (seeds apart from those of the page's
tables); the first law stands for known noise alone and is judged by it.
"""
WIDER = _EDGE**2 - 1
"""The same of drift: additional variance of a change, in variances of a step."""

_OTHERS = 1e-7  # below 1 / (alarm_every S) for S up to 10,000: a likelier law would explain every change
_DRIFTING = 0.3
_FIRST = np.where(DRIFTS > 0, _DRIFTING, 1)[:, 0] / np.sqrt(np.hypot(EFFECTS, 2 * DRIFTS)[:, 0])
FIRST_WEIGHTS: np.ndarray = (_OTHERS * _FIRST / _FIRST.sum()).astype(KIND)
"""Prior weights, (G,): nearly all of it says that only known noise varies, and the rest favours small variation.

Chosen by simulation, with seeds apart from those of the page's tables: with 1e-3 for all other laws, moves of 3
standard errors rang in .3 to .8 of streams after 8 to 15 windows, with 1e-7 in .76 or more. Days rang as rarely, and
walks of 3 % with 2,000 reports 2 times in 1,000 windows instead of 1.
"""
FIRST_WEIGHTS[0] += KIND(1 - _OTHERS)

ANEW = 0.001
"""Probability that a value changes to a law of half or twice the variation before a window."""

_LEAST_ANEW = 1e-12  # of a change to any other law
_GROWTH = np.maximum(DRIFTS, _RHOS[0] / 4)
_OCTAVES = sum(np.abs(np.log2(of_laws / of_laws.T)) for of_laws in (EFFECTS, _GROWTH))
_NEAR = np.maximum(ANEW ** _OCTAVES.astype(float), _LEAST_ANEW).astype(KIND)
np.fill_diagonal(_NEAR, 0)

_OWN = KIND(2)  # weight of the first weights, in values, beside the values of a collection
_UNSEEN = KIND(1e8)  # variance of a missing estimate
_ALONE = 256  # values whose products are so small that BLAS uses one thread: several would wait for each other


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Memory:
    """State of the bank after the windows so far, for S values and G laws; or of several moments, along the first axis.

    Attributes:
        seen: (S,) windows in which the value was seen.
        windows, report: (S,) number of windows since the value restarted, and the mean over these of the variances
            per report.
        level, variance: (G, S) of the drifting share.
        odds: (G, S) likelihood of the value's past under each law, relative to the mean over ``common``.
        common: (G,) weights of the laws in the collection.
    """

    seen: np.ndarray
    windows: np.ndarray
    report: np.ndarray
    level: np.ndarray
    variance: np.ndarray
    odds: np.ndarray
    common: np.ndarray

    @classmethod
    def empty(cls, size: int) -> Memory:
        """The state before the first window."""
        own: dict[str, Any] = {name: np.zeros(size, dtype=KIND) for name in ("seen", "windows", "report")}
        level, variance, odds = np.zeros((3, len(DRIFTS), size), dtype=KIND)
        return cls(**own, level=level, variance=variance + 1, odds=odds + 1, common=FIRST_WEIGHTS)

    def at(self, moment: int) -> Memory:
        """The state at one of several moments."""
        return Memory(**{field.name: getattr(self, field.name)[moment] for field in dataclasses.fields(self)})

    def placed(self, size: int, here: Any) -> Memory:
        """This state among ``size`` values, at the positions ``here``; nothing is known of the other values."""
        wider: dict[str, Any] = dataclasses.asdict(Memory.empty(size)) | {"common": self.common}
        for name in wider.keys() - {"common"}:
            wider[name][..., here] = getattr(self, name)
        return Memory(**wider)

    def with_laws(self, weights: np.ndarray, moved: np.ndarray) -> Memory:
        """This state, in which the laws of the values (S,) ``moved`` have (G, S) ``weights``, up to a factor."""
        weights = weights / np.maximum(np.add.reduce(weights, axis=0), np.finfo(KIND).tiny)
        odds = weights / np.maximum(self.common, np.finfo(KIND).tiny)[:, np.newaxis]
        return dataclasses.replace(self, odds=np.where(moved, odds, self.odds))

    def to_bytes(self) -> bytes:
        """Little-endian, in the order of the attributes."""
        names = [field.name for field in dataclasses.fields(self)]
        parts = [getattr(self, name) for name in names]
        return b"".join(part.astype(part.dtype.newbyteorder("<")).tobytes() for part in parts)

    @classmethod
    def from_bytes(cls, encoded: bytes, size: int) -> Memory:
        """The state of ``size`` values from the bytes that ``to_bytes`` made."""
        parts, at = {}, 0
        for name, like in dataclasses.asdict(cls.empty(size)).items():
            kind = like.dtype.newbyteorder("<")
            parts[name] = np.frombuffer(encoded, kind, like.size, at).reshape(like.shape).astype(like.dtype)
            at += like.nbytes
        return cls(**parts)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Expectation:
    """Predictions of the bank for B windows; all (B, G, S) except ``noise`` and
    ``common``.

    Attributes:
        weights, posterior: of the laws, before the window and given its estimates.
        common: (B, G) weights of the laws in the collection.
        level, variance: of the drifting share.
        size: s (1 - s), which multiplies drift and day effects.
        noise: (B, 1, S) known variance of the raw share.
    """

    weights: np.ndarray
    level: np.ndarray
    variance: np.ndarray
    size: np.ndarray
    noise: np.ndarray
    posterior: np.ndarray
    common: np.ndarray

    @property
    def step(self) -> np.ndarray:
        """Variance of a step of the drift."""
        step: np.ndarray = np.square(DRIFTS * self.size)
        return step

    @property
    def effect(self) -> np.ndarray:
        """Variance of the day effects."""
        effect: np.ndarray = np.square(EFFECTS * self.size)
        return effect

    def with_noise(self, more: np.ndarray | float) -> Expectation:
        """This expectation with additional known variance."""
        return dataclasses.replace(self, noise=(self.noise + more).astype(KIND))

    def mean(self, of_laws: np.ndarray) -> np.ndarray:
        """(B, S) mean over laws."""
        mean: np.ndarray = np.add.reduce(self.weights * of_laws, axis=1)
        return mean

    def scores(self, raw: np.ndarray, jump: np.ndarray | float) -> np.ndarray:
        """(B, G, S) standard normal numbers of the changes to (B, S) ``raw`` under each law.

        Falls are measured by the normal distribution, rises by ``_rises``; of a share above 1/2, its complement falls
        or rises. Counts are not exactly normal: a rise by z needs z^2 / 6 more reports for the same probability
        (Bernstein). A fall does not: its tail is below that of a normal variable with the variance of the count.

        Args:
            raw: shares.
            jump: contribution of one more report to the shares, (B, 1, 1) or a number.
        """
        change = raw.astype(KIND)[:, np.newaxis] - self.level
        side = 1 - 2 * (self.level > 1 / 2).astype(KIND)
        change *= side
        fixed = self.variance + self.noise + WIDER * self.step
        base = JUDGED * self.size
        error = np.sqrt(base * base + fixed)
        limit = _rises(np.maximum(change, 0), base, error, fixed)
        lump = limit * KIND(4 / 6)  # z = limit + jump / error / 6 limit^2, solved for the limit
        lump *= jump
        lump /= error
        lump += 1
        np.sqrt(lump, out=lump)
        lump += 1
        limit *= 2
        limit /= lump
        np.minimum(change, 0, out=change)
        change /= error
        limit += change
        limit *= side
        return limit

    def tails(self, scores: np.ndarray) -> np.ndarray:
        """(B, S) two-sided probabilities of changes at least as large as those with these ``scores``."""
        up = self.mean(scores)[:, np.newaxis] > 0
        one_sided = normal_tail(np.where(up, -scores, scores))
        two_sided: np.ndarray = np.minimum(2 * self.mean(one_sided).astype(np.float64), 1)
        return two_sided


def _rises(rise: np.ndarray, base: np.ndarray, error: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Number of standard deviations of a rise if day effects are lognormal; a conservative approximation.

    The standard deviation sqrt(F + (sigma s)^2) of a window grows with its share s. So a rise is measured on the
    variance-stabilising scale (Bartlett 1947, "The use of transformations"),

        z = (asinh(sigma (s + rise) / sqrt F) - asinh(sigma s / sqrt F)) / sigma.

    Where day effects dominate, this is log(1 + rise / s) / sigma, and where noise dominates, rise / sqrt(F) for small
    sigma; in between it is too small, because day effects then multiply noise too.

    Args:
        rise: (B, G, S).
        base: sigma s.
        error: sqrt(F + (sigma s)^2).
        fixed: F.
    """
    found: np.ndarray = JUDGED * rise
    found += base
    wide = found * found
    wide += fixed
    found += np.sqrt(wide, out=wide)
    found /= base + error
    np.log(found, out=found)
    found /= JUDGED
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Told:
    """Estimates of S values in B windows.

    Attributes:
        raw, report: (B, S) shares, NaN where a window has no estimate, and their variances per report.
        num_reports, steps: (B,), as in ``Series``.
        jump: n times the contribution of one more counted report to an estimate.
    """

    raw: np.ndarray
    report: np.ndarray
    num_reports: np.ndarray
    steps: np.ndarray
    jump: float

    @classmethod
    def of(cls, series: Series, begin: int, end: int) -> Told:
        """The windows of a series from ``begin`` to before ``end``."""
        raw, n = series.raw[begin:end], series.num_reports[begin:end]
        report = np.where(np.isnan(raw), 0, series.variances[begin:end] * n[:, np.newaxis])
        return cls(raw, report, n, series.steps[begin:end], series.jump)

    def only(self, t: int) -> Told:
        """The window at position t."""
        here = slice(t, t + 1)
        return Told(self.raw[here], self.report[here], self.num_reports[here], self.steps[here], self.jump)


def ahead(memory: Memory, told: Told, moved: np.ndarray | None = None) -> tuple[Memory, Expectation]:
    """Memories before each of B windows and after the last, (B + 1, ...), and the predictions for the windows.

    Args:
        memory: state before the first window.
        told: estimates of the windows.
        moved: (S,) bool, values that restart in the first window; None: no value does.
    """
    seen: np.ndarray = ~np.isnan(told.raw)
    moved = np.zeros(seen.shape[1], dtype=bool) if moved is None else moved
    raw, first = np.nan_to_num(told.raw), np.where(moved, 0, memory.windows)
    windows = _after(memory.windows, first + np.cumsum(seen, axis=0))
    reports = memory.report * first + np.cumsum(np.where(seen, told.report, 0), axis=0)
    each = _after(memory.report, reports / np.maximum(windows[1:], 1))
    times = _after(memory.seen, memory.seen + np.cumsum(seen, axis=0))
    n = told.num_reports[:, np.newaxis]
    least = max(told.jump, 1.0) * np.maximum(LEAST_SHARE, 1 / (n * (windows[:-1] + 1)))  # one more report
    noise = (np.maximum(np.where(windows[:-1] > 0, each[:-1], told.report), least) / n).astype(KIND)
    anew = windows[:-1] == 0
    anew[0] |= moved
    raw = raw.astype(KIND)
    level, variance, prior, size = _levels(memory, raw, seen, noise, told.steps, anew, moved)
    likely = _likelihoods(raw, level[:-1], prior, size, noise)
    told_of = seen & (times[:-1] > 0)
    told_of[0] &= ~moved  # a change says nothing about laws
    odds, common, posterior = _odds(memory, np.where(told_of[:, np.newaxis], likely, KIND(1)))
    kept = {"level": level, "variance": variance, "odds": odds, "common": common}
    expectation = Expectation(
        weights=odds[:-1] * common[:-1, :, np.newaxis],
        level=level[:-1],
        variance=prior,
        size=size,
        noise=noise[:, np.newaxis],
        posterior=posterior,
        common=common[:-1],
    )
    return Memory(seen=times, windows=windows, report=each, **kept), expectation


def _after(before: np.ndarray, later: np.ndarray) -> np.ndarray:
    """Stack (S,) and (B, S) into (B + 1, S)."""
    return np.concatenate([before[np.newaxis], later]).astype(KIND)


def _levels(
    memory: Memory,
    raw: np.ndarray,
    seen: np.ndarray,
    noise: np.ndarray,
    steps: np.ndarray,
    anew: np.ndarray,
    moved: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Filter: levels and variances of B + 1 moments, and prior variances and sizes of B windows; (..., G, S)."""
    shape = (len(raw), *memory.level.shape)
    level, variance = np.empty((2, len(raw) + 1, *memory.level.shape), dtype=KIND)
    prior, size = np.empty((2, *shape), dtype=KIND)
    level[0], variance[0], error = memory.level, memory.variance, np.sqrt(noise)
    rest, gain = np.empty((2, *memory.level.shape), dtype=KIND)
    some_anew, some_missing = np.logical_or.reduce(anew, axis=1), ~np.logical_and.reduce(seen, axis=1)
    for t, step in enumerate(steps.astype(KIND)):
        size[t] = _spread(level[t])
        np.minimum(np.sqrt(variance[t], out=gain), error[t], out=gain)
        size[t] += gain  # that of an uncertain share may be larger
        np.multiply(DRIFTS * np.sqrt(step), size[t], out=prior[t])
        prior[t] *= prior[t]
        prior[t] += variance[t]
        np.multiply(EFFECTS, size[t], out=rest)
        rest *= rest
        rest += noise[t]
        before = prior[t]
        if some_anew[t]:  # day effects are relative to the new share
            own = EFFECTS * (_spread(raw[t]) + error[t])
            rest = np.where(anew[t], own * own + noise[t], rest)
            before = before + moved if t == 0 else before
        if some_missing[t]:
            rest += np.where(seen[t], KIND(0), _UNSEEN)
        np.add(before, rest, out=gain)
        np.divide(before, gain, out=gain)
        np.multiply(rest, gain, out=variance[t + 1])
        gain *= raw[t] - level[t]
        np.add(level[t], gain, out=level[t + 1])
    return level, variance, prior, size


def _spread(share: np.ndarray) -> np.ndarray:
    """s (1 - s) of shares s, and 0 of estimates outside [0, 1]."""
    spread = 1 - share
    spread *= share
    largest: np.ndarray = np.maximum(spread, 0, out=spread)
    return largest


def _likelihoods(
    raw: np.ndarray, level: np.ndarray, prior: np.ndarray, size: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """(B, G, S) normal likelihoods relative to the likeliest law; long tails increase the learned day effects."""
    total = EFFECTS * size
    total *= total
    total += prior
    total += noise[:, np.newaxis]
    told = raw[:, np.newaxis] - level
    told *= told
    told /= total
    told += np.log(total, out=total)
    told *= KIND(-0.5)
    told -= told.max(axis=1, keepdims=True)
    likely: np.ndarray = np.exp(told, out=told)
    return likely


def redrawn(common: np.ndarray) -> np.ndarray:
    """Probabilities (G, G) of the law of the next window, in columns for each law now.

    A law is left for another one, by Metropolis' rule, so that the weights (G,) ``common`` are stationary.
    """
    moves: np.ndarray = _NEAR * np.minimum(1, common[:, np.newaxis] / common)
    np.fill_diagonal(moves, 1 - np.add.reduce(moves, axis=0))
    return moves


def mixed(weights: np.ndarray, of_laws: np.ndarray) -> np.ndarray:
    """Products ``weights @ of_laws`` of (G,) or (G, G) weights with numbers (..., G, S) of laws and values."""
    parts = [weights @ of_laws[..., begin : begin + _ALONE] for begin in range(0, of_laws.shape[-1], _ALONE)]
    return np.concatenate(parts, axis=-1) if len(parts) > 1 else weights @ of_laws


def _odds(memory: Memory, likely: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Odds and common weights of B + 1 moments, and weights (B, G, S) given the windows between them, from their
    likelihoods (B, G, S).

    The law of a value may be redrawn (``redrawn``; Herbster and Warmuth 1998, "Tracking the best expert"). Common
    weights are the mean of the weights of all values and, as ``_OWN`` more values, of the first weights.
    """
    odds = np.empty((len(likely) + 1, *memory.odds.shape), dtype=KIND)
    common = np.empty((len(likely) + 1, len(DRIFTS)), dtype=KIND)
    posterior = np.empty_like(likely)
    odds[0], common[0], values = memory.odds, memory.common, _OWN + KIND(likely.shape[2])
    for t, told in enumerate(likely):
        new, weights, given = odds[t + 1], common[t], posterior[t]
        np.multiply(odds[t], told, out=new)
        new /= mixed(weights, new)
        np.multiply(new, weights[:, np.newaxis], out=given)
        weights = (np.add.reduce(given, axis=1) + _OWN * FIRST_WEIGHTS) / values
        np.divide(mixed(redrawn(common[t]), given), common[t][:, np.newaxis], out=new)
        new /= mixed(weights, new)
        common[t + 1] = weights
    return odds, common, posterior
