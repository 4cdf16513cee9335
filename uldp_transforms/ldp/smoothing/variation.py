"""How much a value varies while nothing happens: a bank of Kalman filters, one for each law of drift and day effects.

A law (rho, sigma) says of the share s of a value, and of what the reports of window t say of it,

    s_t = s_(t-1) + N(0, (rho s)^2)                drift
    y_t = s_t + D_t + N(0, R_t),                   R_t known; day effects D_t of standard deviation sigma s

Day effects multiply a share, so above it their tails are as heavy as those of lognormal numbers (``TAILS``). Each value
has weights of all laws, learned from its own past windows, and from those of the other values through common weights.
A window counts for less the older it is, and no window changes the odds of two laws by more than a limit, so that a
change is not taken for the law before it rings.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from uldp_transforms.ldp.smoothing.normal_tail import normal_tail
from uldp_transforms.ldp.smoothing.series import LEAST_SHARE

KIND = np.float32
"""Of the arrays of the bank."""

_RHO, _SIGMA = (0.0, 0.02, 0.04, 0.08, 0.16, 0.32), (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
DRIFTS, EFFECTS = (grid.reshape(-1, 1).astype(KIND) for grid in np.meshgrid(_RHO, _SIGMA, indexing="ij"))
"""(G, 1) rho and sigma of the laws; laws of the same rho are neighbours."""

_FIRST = 1 / EFFECTS[:, 0] ** 1.5 / np.maximum(DRIFTS[:, 0], _RHO[1])
FIRST_WEIGHTS: np.ndarray = (_FIRST / _FIRST.sum()).astype(np.float64)
"""(G,) weights before any window: small variation first."""

TAILS = ((0.65, 0.0), (0.3, 4.0), (0.05, 8.0))
"""Day effects above the share are a mixture of normal numbers: weights, and b of variances exp(b sigma) sigma^2."""

_MOST = 4.0  # standard deviation of a component of the mixture, in shares
_PARTS = np.array([weight for weight, _ in TAILS], dtype=KIND)
_FACTORS = np.array([np.maximum(np.minimum(np.exp(b * EFFECTS), (_MOST / EFFECTS) ** 2), 1) for _, b in TAILS])
_KEPT = 0.98  # of what was learned, from window to window
_ONE_WINDOW = 3.0  # logarithm of odds that one window can change, at most
_DRIFT = 1.0  # the same, in favour of drift
_OWN = 0.2  # values that the first weights count for beside those of a collection
_ROUNDS = 6  # of expectation and maximisation a window
_UNSEEN = 1e30  # variance of what a window does not say


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Memory:
    """What the bank keeps of the windows so far, for S values and G laws.

    Attributes:
        seen: (S,) windows in which the value was seen.
        windows, share, report: (S,) the windows since the value began anew, and of these the mean of the raw shares
            and of the variances per report.
        level, variance: (G, S) of the drifting share.
        odds: (G, S) logarithms of how likely the past of the value is under each law; 0 of the likeliest.
        common: (G,) weights of the laws in the collection.
    """

    seen: np.ndarray
    windows: np.ndarray
    share: np.ndarray
    report: np.ndarray
    level: np.ndarray
    variance: np.ndarray
    odds: np.ndarray
    common: np.ndarray

    @classmethod
    def empty(cls, size: int) -> Memory:
        """Before the first window."""
        own: dict[str, Any] = {name: np.zeros(size) for name in ("seen", "windows", "share", "report")}
        level, variance, odds = np.zeros((3, len(DRIFTS), size), dtype=KIND)
        return cls(**own, level=level, variance=variance + 1, odds=odds, common=FIRST_WEIGHTS)

    def placed(self, size: int, here: Any) -> Memory:
        """The same among ``size`` values, of which these are at the places ``here``; of others nothing is known."""
        wider: dict[str, Any] = dataclasses.asdict(Memory.empty(size)) | {"common": self.common}
        for name in wider.keys() - {"common"}:
            wider[name][..., here] = getattr(self, name)
        return Memory(**wider)

    def to_bytes(self) -> bytes:
        """Little-endian, in the order of the attributes."""
        names = [field.name for field in dataclasses.fields(self)]
        parts = [getattr(self, name) for name in names]
        return b"".join(part.astype(part.dtype.newbyteorder("<")).tobytes() for part in parts)

    @classmethod
    def from_bytes(cls, encoded: bytes, size: int) -> Memory:
        """What ``to_bytes`` made, of ``size`` values."""
        parts, at = {}, 0
        for name, like in dataclasses.asdict(cls.empty(size)).items():
            kind = like.dtype.newbyteorder("<")
            parts[name] = np.frombuffer(encoded, kind, like.size, at).reshape(like.shape).astype(like.dtype)
            at += like.nbytes
        return cls(**parts)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Expectation:
    """What the bank expects of a window; all but ``noise`` (G, S).

    Attributes:
        weights: of the laws.
        level, variance: of the drifting share.
        step: variance of a step of the drift.
        effect: variance of the day effects, without tails.
        noise: (S,) known variance of the raw share.
    """

    weights: np.ndarray
    level: np.ndarray
    variance: np.ndarray
    step: np.ndarray
    effect: np.ndarray
    noise: np.ndarray

    def with_noise(self, more: np.ndarray | float) -> Expectation:
        """The same of a window with that known variance besides."""
        return dataclasses.replace(self, noise=(self.noise + more).astype(KIND))

    def mean(self, of_laws: np.ndarray) -> np.ndarray:
        """(S,) mean over laws of (G, S) numbers."""
        mean: np.ndarray = np.add.reduce(self.weights * of_laws, axis=0)
        return mean

    def tails(self, raw: np.ndarray, jump: float) -> np.ndarray:
        """(S,) two-sided probabilities of changes as large as that to ``raw`` or larger; ``jump`` is of one report.

        Counts are no normal numbers: a rise by z needs z^2 / 6 reports more for the same probability (Bernstein). A
        fall does not, whose tail is below that of a normal number with the variance of the count.
        """
        change = raw.astype(KIND) - self.level
        side = np.where(self.mean(change) > 0, -1, 1).astype(KIND)
        fixed = self.variance + self.noise
        falls = np.minimum(change, 0)
        falls /= np.sqrt(fixed + self.effect)
        falls *= side
        away = np.maximum(change, 0, out=change)
        scale = _FACTORS * self.effect
        scale += fixed
        limit = np.sqrt(scale)  # z = limit + jump / error / 6 limit^2, solved for the limit
        scale += KIND(4 * jump / 6) * away
        limit += np.sqrt(scale, out=scale)
        away *= 2 * side
        np.divide(away, limit, out=limit)
        limit += falls
        of_laws = (_PARTS @ normal_tail(limit).reshape(len(TAILS), -1)).reshape(change.shape)
        two_sided: np.ndarray = np.minimum(2 * self.mean(of_laws).astype(np.float64), 1)
        return two_sided


def expect(memory: Memory, report: np.ndarray, num_reports: int, steps: int, jump: float) -> Expectation:
    """Of a window with so many reports, so many steps after the last one.

    Args:
        memory: of the windows before.
        report: (S,) the window's own variances per report, used for values that were not seen yet.
        jump: n times what one more counted report adds to an estimate.
    """
    report = np.where(memory.windows > 0, memory.report, report)
    least = max(jump, 1.0) * np.maximum(LEAST_SHARE, 1 / (num_reports * (memory.windows + 1)))  # one report more
    noise = (np.maximum(report, least) / num_reports).astype(KIND)
    size = np.maximum(memory.level, np.maximum(memory.share, 0).astype(KIND))
    size += np.sqrt(np.minimum(memory.variance, noise))  # a share that is not known well may be larger
    size *= size
    step = DRIFTS**2 * size
    return Expectation(
        weights=_weights(memory.odds, memory.common),
        level=memory.level,
        variance=memory.variance + KIND(steps) * step,
        step=step,
        effect=EFFECTS**2 * size,
        noise=noise,
    )


def learn(memory: Memory, expectation: Expectation, raw: np.ndarray, report: np.ndarray, moved: np.ndarray) -> Memory:
    """The memory after a window.

    Args:
        memory, expectation: before it.
        raw, report: (S,) what the window says, NaN where it does not: shares, and their variances per report.
        moved: (S,) bool, values that begin anew in it.
    """
    seen = ~np.isnan(raw)
    change = np.where(seen, raw, 0).astype(KIND) - expectation.level
    rest = expectation.effect + np.where(seen, expectation.noise, _UNSEEN).astype(KIND)
    told = _told(expectation.weights, change, expectation.variance + rest)
    told *= seen & (memory.seen > 0)
    odds = KIND(_KEPT) * memory.odds
    odds += told
    odds -= odds.max(axis=0)
    prior = expectation.variance + moved.astype(KIND)
    total = prior + rest
    change *= prior
    change /= total
    rest *= prior
    rest /= total
    windows = np.where(seen, np.where(moved, 0, memory.windows) + 1, memory.windows)
    kept = np.where(seen, np.where(moved, 0, 1 - 1 / np.maximum(windows, 1)), 1)
    return Memory(
        seen=memory.seen + seen,
        windows=windows,
        share=kept * memory.share + (1 - kept) * np.where(seen, raw, 0),
        report=kept * memory.report + (1 - kept) * np.where(seen, report, 0),
        level=expectation.level + change,
        variance=rest,
        odds=odds,
        common=_common(odds, memory.common),
    )


def _told(weights: np.ndarray, change: np.ndarray, total: np.ndarray) -> np.ndarray:
    """(G, S) logarithms of likelihoods of a change, at most 0, with the limits of what one window can say.

    All that drift has over no drift is made smaller by the same factor, so that the best drift has at most _DRIFT.
    """
    told = change * change
    told /= total
    told += np.log(total)
    told *= KIND(-0.5)
    told -= told.max(axis=0)
    mixed = np.exp(told)
    mixed *= weights
    split = (len(_RHO), len(_SIGMA), -1)
    likely = np.log(np.maximum(mixed.reshape(split).sum(axis=1), KIND(1e-37)))
    likely -= np.log(np.maximum(weights.reshape(split).sum(axis=1), KIND(1e-37)))
    ahead = np.maximum(likely - likely[0], 0)
    most = np.maximum(ahead.max(axis=0), KIND(_DRIFT))
    of_drifts = told.reshape(split)
    of_drifts -= (ahead * (1 - KIND(_DRIFT) / most))[:, np.newaxis]
    told -= told.max(axis=0)
    limited: np.ndarray = np.maximum(told, KIND(-_ONE_WINDOW), out=told)
    return limited


def _common(odds: np.ndarray, common: np.ndarray) -> np.ndarray:
    """(G,) weights of the laws in a collection, nearer to their most likely values: expectation and maximisation."""
    likely = np.exp(odds).astype(np.float64)
    for _ in range(_ROUNDS):
        common = _OWN * FIRST_WEIGHTS + common * (likely @ (1 / (common @ likely)))
        common /= _OWN + odds.shape[1]
    return common


def _weights(odds: np.ndarray, common: np.ndarray) -> np.ndarray:
    """(G, S) weights of the laws of each value."""
    weights: np.ndarray = np.exp(odds)
    weights *= common[:, np.newaxis].astype(KIND)
    weights /= weights.sum(axis=0)
    return weights
