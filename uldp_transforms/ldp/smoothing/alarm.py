"""The alarm: detects the windows in which values moved, using only the windows before each one; sizes of changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.smoothing.series import Series
from uldp_transforms.ldp.smoothing.variation import DRIFTS, KIND, Expectation, Memory, Told, ahead, mixed, redrawn

LEAST_HISTORY = 8
"""Number of windows with a value before a change can be reported: for daily windows, a week and a day."""

SUDDEN = 0.2
"""Share of the false-alarm budget for jumps in a single window; the rest is for lasting changes."""

SIZES = np.array([2.0, -2.0, 6.0, -6.0], dtype=np.float32)
"""Sizes d of lasting changes, in standard deviations of a window under each law."""

SHARES = np.array([0.4, 0.4, 0.1, 0.1], dtype=np.float32)
"""Share of each size in the evidence of lasting changes."""

_FARTHEST = np.float32(4.5)
"""Scores beyond it count as it, so that no window alone is evidence of a change that lasts, at one alarm in 1,000.

Jumps have evidence of their own. Without the limit a lognormal day of a rare value rang, since it is far likelier than
the normal likelihoods of wide laws say.
"""
_MOST = np.float32(1e18)  # maximum evidence under a law, which keeps 32 bits from overflowing


def lasting_evidence(
    evidence: np.ndarray, scores: np.ndarray, judged: np.ndarray, posterior: np.ndarray, moves: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Evidence of lasting changes after each of T windows if there is no alarm.

    Under each law the evidence of a change by d standard deviations that began in any window so far is a sum of
    likelihood ratios. The mean over laws, weighted by the posterior, is the ratio of the likelihoods in which the law
    is integrated over.

    Args:
        evidence: (D, G, S) before the first window.
        scores: (T, G, S) standard normal numbers of the changes under each law.
        judged: (T, S) bool, whether the window is evidence about the value.
        posterior: (T, G, S) weights of the laws given the window.
        moves: T matrices (G, G) of the probabilities of the law of the next window, in columns for each law now.

    Returns:
        (T, D, G, S) evidence under each law, and (D, G, S) that of the last window after laws are redrawn.
    """
    near, later = np.clip(scores, -_FARTHEST, _FARTHEST), np.empty((len(scores), *evidence.shape), dtype=np.float32)
    for place, size in enumerate(SIZES):
        np.exp(size * near - size**2 / 2, out=later[:, place])
    np.copyto(later, np.float32(1), where=~judged[:, np.newaxis, np.newaxis])
    begun = judged[:, np.newaxis, np.newaxis].astype(np.float32)
    for t in range(len(later)):
        after = later[t]
        after *= evidence + begun[t]
        np.minimum(after, _MOST, out=after)
        evidence = np.minimum(mixed(moves[t], posterior[t] * after) / mixed(moves[t], posterior[t]), _MOST)
    return later, evidence


def jumps_of(tails: np.ndarray, alarm_every: float, sudden: float) -> np.ndarray:
    """(..., S) evidence of windows alone, from their tail probabilities."""
    limit = sudden / max(tails.shape[-1], 1) / alarm_every
    jumps: np.ndarray = np.where(tails < limit, 1 / limit, 0)
    return jumps


def which_moved(
    evidence: np.ndarray, tails: np.ndarray, alarm_every: float, sudden: float
) -> tuple[np.ndarray, np.ndarray]:
    """(T,) false alarms per window of rules that would just alarm, at most 1; and (T, S) bool, which values moved."""
    size = max(tails.shape[1], 1)
    lasting = (1 - sudden) * evidence if sudden < 1 else np.zeros_like(tails)
    own = lasting + sudden * jumps_of(tails, alarm_every, sudden)
    rings = np.add.reduce(own, axis=1) >= alarm_every * size
    lasts = np.add.reduce(lasting, axis=1) / size
    rates = np.minimum(np.minimum.reduce(tails, axis=1, initial=1) * size / sudden, 1 / np.maximum(lasts, 1))
    rates = np.where((tails < 1).any(axis=1), rates, 1)
    return rates, (own >= alarm_every) & rings[:, np.newaxis]


_ALMOST_1 = 1 - 2.0**-53  # probability of a window that is judged
_MOST_TOGETHER = 16  # windows that are judged as one block, assuming no alarm in them
_CELLS = 1 << 16  # maximum laws times values times windows of a block of more than one window


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Past:
    """State of the alarm after the windows so far.

    Attributes:
        memory: state of the bank of filters.
        evidence: (D, G, S) evidence of lasting changes under each law, see ``judge``.
    """

    memory: Memory
    evidence: np.ndarray

    @classmethod
    def empty(cls, size: int) -> Past:
        """The state before the first window."""
        return cls(memory=Memory.empty(size), evidence=np.zeros((len(SIZES), len(DRIFTS), size), dtype=KIND))

    def placed(self, size: int, here: Any) -> Past:
        """This state among ``size`` values, at the positions ``here``; nothing is known of the other values."""
        evidence = np.zeros((len(SIZES), len(DRIFTS), size), dtype=KIND)
        evidence[..., here] = self.evidence
        return Past(memory=self.memory.placed(size, here), evidence=evidence)

    def to_bytes(self) -> bytes:
        """The evidence, then the memory, little-endian."""
        return self.evidence.astype("<f4").tobytes() + self.memory.to_bytes()

    @classmethod
    def from_bytes(cls, encoded: bytes, size: int) -> Past:
        """The state of ``size`` values from the bytes that ``to_bytes`` made."""
        number = len(SIZES) * len(DRIFTS) * size
        evidence = np.frombuffer(encoded, "<f4", number).reshape(len(SIZES), len(DRIFTS), size).astype(KIND)
        return cls(memory=Memory.from_bytes(encoded[4 * number :], size), evidence=evidence)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Alarms:
    """Detected changes in T windows. All (T, S) except ``p_value`` and ``past``.

    Attributes:
        moved: bool, whether a change of the value was detected in this window.
        seen: number of earlier windows with the value; it is judged from ``LEAST_HISTORY`` on.
        p_value: (T,) false alarms per window of a rule that would just alarm here; 1 if nothing could be judged.
        expected, expected_variance: of the drifting share, given the windows before.
        change: raw - expected; 0 where the window has no estimate.
        change_error: standard deviation of ``change`` if nothing moved.
        step: variance of a step of the drifting share.
        past: state after these windows, for the next ones.
    """

    moved: np.ndarray
    seen: np.ndarray
    p_value: np.ndarray
    expected: np.ndarray
    expected_variance: np.ndarray
    change: np.ndarray
    change_error: np.ndarray
    step: np.ndarray
    past: Past


def judge(series: Series, alarm_every: float, past: Past | None = None, sudden: float = SUDDEN) -> Alarms:
    """Detect the values that moved, window by window.

    A change is judged by the windows before it alone: by the known noise, and by the laws of ``variation``, weighted by
    how well they explain the past. Let u_g be the standard normal number of the change under law g, w_g the weight of
    the law given the window, p the mean probability of as large a change, and a = ``sudden`` / (``alarm_every`` S). For
    each value

        jump = 1 / a if p is less than a, else 0                    evidence of this window alone
        R_gd <- (R_gd + 1) exp(d u_g - d^2 / 2),  d in SIZES        evidence of a change that lasts (Shiryaev, Roberts)
        lasting = sum of w_g R_gd, mean over d

    and its evidence is ``sudden`` times the jump plus 1 - ``sudden`` times the lasting one, which is a ratio of two
    likelihoods that both integrate over the laws. An alarm is raised when the mean over values is at least
    ``alarm_every``; then all R restart at 0. If the windows follow the mixture of the laws, the mean evidence grows by
    at most 1 per window, and each alarm removes at least ``alarm_every`` from it: the expected rate is at most one
    alarm in ``alarm_every`` windows, for any dependence between values. The values whose own evidence is at least
    ``alarm_every`` have moved; there is at least one.

    If noise can persist for some windows and then change, because the people change (``Series.turnover``), its variance
    is added to that of every change, and only jumps can raise an alarm.

    Args:
        series: T windows.
        alarm_every: mean number of windows between false alarms, at least.
        past: state after earlier windows that are not in ``series``; None: there were none.
        sudden: in (0, 1], the share of false alarms spent on jumps.
    """
    size = series.raw.shape
    sudden = 1.0 if np.any(series.turnover) else sudden
    past = Past.empty(size[1]) if past is None else past
    memory, evidence = past.memory, past.evidence
    moved, seen = np.zeros(size, dtype=bool), np.zeros(size, dtype=KIND)
    p_value, numbers = np.ones(size[0]), np.zeros((5, *size))
    begin, together, most = 0, 1, _together(size[1])
    while begin < size[0]:
        told = Told.of(series, begin, begin + together)
        block = _until_alarm(memory, evidence, told, series.turnover, alarm_every, sudden)
        memory, evidence = block.memory, block.evidence
        done = slice(begin, begin + len(block.moved))
        numbers[:, done], moved[done], p_value[done] = block.numbers, block.moved, block.p_value
        seen[done] = block.seen
        begin, together = done.stop, 1 if block.moved[-1].any() else min(2 * together, most)
    expected, variance, change, error, step = numbers
    return Alarms(
        moved=moved,
        seen=seen,
        p_value=p_value,
        expected=expected,
        expected_variance=variance,
        change=change,
        change_error=error,
        step=step,
        past=Past(memory=memory, evidence=evidence.astype(KIND)),
    )


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _Judged:
    """B windows of which only the last can have an alarm: ``Alarms`` of them, and the state after them."""

    moved: np.ndarray
    seen: np.ndarray
    p_value: np.ndarray
    numbers: np.ndarray
    memory: Memory
    evidence: np.ndarray


def _until_alarm(
    memory: Memory,
    evidence: np.ndarray,
    told: Told,
    turnover: np.ndarray | float,
    alarm_every: float,
    sudden: float,
) -> _Judged:
    """Judge windows together, as if none had an alarm, and keep them as far as the first alarm."""
    memories, expectation = ahead(memory, told)
    expectation = expectation.with_noise(turnover)
    seen = memories.seen[:-1]
    scores, tails = _scores(expectation, told, seen)
    moves = list(map(redrawn, expectation.common))
    each, after = lasting_evidence(evidence, scores, tails < 1, expectation.posterior, moves)
    lasting = np.tensordot(SHARES, each, axes=(0, 1)) * expectation.posterior
    rates, moved = which_moved(np.add.reduce(lasting, axis=1), tails, alarm_every, sudden)
    rang = np.flatnonzero(moved.any(axis=1))
    end = int(rang[0]) + 1 if len(rang) else len(tails)
    if len(rang):  # the windows after it were followed without the detected change
        last = end - 1
        jumped = jumps_of(tails[last], alarm_every, sudden) * expectation.weights[last]
        laws = alarm_every * expectation.posterior[last] + (1 - sudden) * lasting[last] + sudden * jumped
        before = memories.at(last).with_laws(laws, moved[last])
        memories, _ = ahead(before, told.only(last), moved[last])
        after = np.zeros_like(after)
    numbers = _numbers(expectation, told.raw)
    return _Judged(
        moved=moved[:end],
        seen=seen[:end],
        p_value=rates[:end],
        numbers=numbers[:, :end],
        memory=memories.at(-1),
        evidence=after,
    )


def _scores(expectation: Expectation, told: Told, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(B, G, S) standard normal numbers of the changes, and (B, S) their tail probabilities; the latter are 1 where
    changes are not judged, such as values ``seen`` in few windows.
    """
    judged = ~np.isnan(told.raw) & (seen >= LEAST_HISTORY)
    jumps = (told.jump / told.num_reports).astype(KIND)[:, np.newaxis, np.newaxis]
    scores = expectation.scores(np.nan_to_num(told.raw), jumps)
    return scores, np.where(judged, np.minimum(expectation.tails(scores), _ALMOST_1), 1)


def _together(size: int) -> int:
    """Number of windows of ``size`` values that are judged as one block, so that they fit into processor caches."""
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


@dataclasses.dataclass(frozen=True, eq=False)
class Change:
    """Sizes of the changes of M values; all (M,).

    Attributes:
        size: mean of the windows since the change began, less the expectation before it.
        error: standard deviation of ``size``.
        windows: int64, number of windows since the change began, including the current one.
        looks: int64, number of possible beginnings that were compared.
    """

    size: np.ndarray
    error: np.ndarray
    windows: np.ndarray
    looks: np.ndarray


def change_of(series: Series, alarms: Alarms, t: int, values: np.ndarray) -> Change:
    """Size of the changes up to window t, from the beginning for which the change is most significant.

    Args:
        series, alarms: T windows.
        t: the window in which the changes were detected.
        values: (M,) int64, positions of the values.
    """
    raw, seen = series.raw[: t + 1, values], series.seen[: t + 1, values]
    before = alarms.moved[:t, values][::-1]
    since = np.where(before.any(axis=0), before.argmax(axis=0), t)  # number of earlier windows that may be included
    number, total = _summed(seen), _summed(np.where(seen, raw, 0))
    known = alarms.expected_variance[: t + 1, values]
    noise = _summed(np.where(seen, alarms.change_error[: t + 1, values] ** 2 - known, 0))
    k = np.maximum(number, 1)
    size = total / k - alarms.expected[: t + 1, values]
    variance = known + noise / k**2 + alarms.step[: t + 1, values] * (k - 1) * (2 * k - 1) / (6 * k)
    possible = seen & (known < 1 / 2) & (np.arange(t, -1, -1)[:, np.newaxis] <= since)
    z = np.where(possible, np.abs(size) / np.sqrt(variance), -1)
    best = z.argmax(axis=0), np.arange(len(values))
    return Change(size[best], np.sqrt(variance[best]), number[best], possible.sum(axis=0))


def _summed(cells: np.ndarray) -> np.ndarray:
    """(T, M) sums from each window to the last one."""
    sums: np.ndarray = np.cumsum(cells[::-1], axis=0)[::-1]
    return sums
