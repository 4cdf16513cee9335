"""Weights of versions, by which the pooled share of a value is nearly as precise as the best version, or more so.

If everybody holds z, one report of version a gives the share of x the variance N_a(z). Of a population p,

    V_a(p) = sum_z p_z N_a(z) + p_x (1 - p_x),

so with t = p_x, and r_z the shares among all others, V_a is the mean over z, with weights r_z, of

    (1 - t)^2 N_a(z) + t (1 - t) (N_a(z) + N_a(x) + 1) + t^2 N_a(x).

These are non-negative sums of the *terms* N_a(x), N_a(z) and (N_a(z) + N_a(x) + 1) / 2 with coefficients that are the
same for all versions. Let s_a be a term over the number of reports, plus the square of the estimate's jump, and
q_a = s_a / min_b s_b >= 1. Then for weights w that sum to 1, and for every population,

    variance of the pooled share <= max over terms (sum_a w_a^2 q_a) * variance of the most precise version.

The weights are the best ones for a uniform population if this *loss* is at most 1. Otherwise they are those on the way
to w_a ~ 1 / max(q_a) at which it first is. If there are none, as between few reports with little noise and many with
much noise, the loss is known before the data are.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.model import Model

_STEPS = 12  # of the bisection, to 1 / 4096 of the way


@dataclasses.dataclass(frozen=True, eq=False)
class VersionWeights:
    """What weights depend on beside the numbers of reports, for A versions and S values in G kinds.

    Attributes:
        kinds: (S,) int64, the kind of each value; values of one kind have the same noise in all versions.
        terms: (A, G, T), variances of one report that bound those of all populations.
        jumps: (A, G), n times the effect of one more counted report.
        even: (A, G), variance of one report in a uniform population.
    """

    kinds: np.ndarray
    terms: np.ndarray
    jumps: np.ndarray
    even: np.ndarray

    def of(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights of versions with these numbers of reports (A,), each at least 1.

        Returns:
            (A, S) weights with the sum 1 for each value; (S,) the loss, an upper bound for all populations of the
            pooled variance in units of that of the most precise version.
        """
        numbers = sizes[:, np.newaxis].astype(np.float64)
        terms = self.terms / numbers[:, :, np.newaxis] + ((self.jumps / numbers) ** 2)[:, :, np.newaxis]
        ratios = terms / terms.min(axis=0)
        even, worst = self.even / numbers, ratios.max(axis=2)
        even = even / even.min(axis=0)
        limit = np.maximum(1.0, _loss(_weights(even, worst, np.ones(1)), ratios))
        low = np.zeros(len(limit))
        high = np.where(_loss(_weights(even, worst, low), ratios) <= limit, 0.0, 1.0)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            good = _loss(_weights(even, worst, middle), ratios) <= limit
            low, high = np.where(good, low, middle), np.where(good, middle, high)
        weights = _weights(even, worst, high)
        return weights[:, self.kinds], _loss(weights, ratios)[self.kinds]


def _weights(even: np.ndarray, worst: np.ndarray, caution: np.ndarray) -> np.ndarray:
    """(A, G): the best ones for the uniform population (caution 0), for the worst population (1), or between."""
    precisions: np.ndarray = 1 / ((1 - caution) * even + caution * worst)
    weights: np.ndarray = precisions / precisions.sum(axis=0)
    return weights


def _loss(weights: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """(G,)."""
    loss: np.ndarray = np.einsum("ag,agt->gt", weights**2, ratios).max(axis=1)
    return loss


@functools.lru_cache(maxsize=64)
def version_weights(versions: tuple[Model, ...], values: tuple[str, ...]) -> VersionWeights:
    """The weights of versions for these values; cached between windows.

    A hashed value is estimated from its h of k buckets, and from the other buckets with the opposite sign, so its
    variance is that of a bucket divided by h (1 - h / k).
    """
    places = [_symbols(model, values) for model in versions]
    table = np.array([labels for labels, *_ in places]).T
    _, first, kinds = np.unique(table, axis=0, return_index=True, return_inverse=True)
    kinds = kinds.reshape(-1)
    others = _others(kinds, first)
    terms, jumps, even = [], [], []
    for model, (_, own, other, scale) in zip(versions, places):
        size = model.mechanism.num_symbols
        held = np.unique(np.append(own[first], other[others]))
        of_held = model.mechanism.variances(np.eye(size)[held])
        alone = of_held[np.searchsorted(held, own[first]), own[first]]
        beside = of_held[np.searchsorted(held, other[others]), own[first][:, np.newaxis]]
        beside = np.where(others == first[:, np.newaxis], alone[:, np.newaxis], beside)
        alone, beside = alone / scale[first], beside / scale[first][:, np.newaxis]
        middle = (beside + alone[:, np.newaxis] + 1) / 2
        terms.append(np.concatenate([alone[:, np.newaxis], beside, middle], axis=1))
        jumps.append(model.mechanism.jumps[own[first]] / scale[first])
        even.append(model.mechanism.variances(np.full(size, 1 / size))[own[first]] / scale[first])
    return VersionWeights(kinds, np.array(terms), np.array(jumps), np.array(even))


def _others(kinds: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(G, H) positions of values: for each kind, another value of every kind; itself if it is the only one."""
    order = np.argsort(kinds, kind="stable")
    starts = np.searchsorted(kinds[order], np.arange(len(first)))
    second = order[np.minimum(starts + 1, len(kinds) - 1)]
    second = np.where(kinds[second] == np.arange(len(first)), second, first)
    others: np.ndarray = np.tile(first, (len(first), 1))
    np.fill_diagonal(others, second)
    return others


def _symbols(model: Model, values: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(S,) each: a label that values with the same noise share; the own symbol, that of another holder, and the factor
    by which the value is more precise than its symbol. Of hashed values, two buckets represent all."""
    mechanism, alphabet = model.mechanism, model.alphabet
    own, listed = alphabet.has_own_symbol(values), frozenset(alphabet.clear_values)
    clear = ~own & np.array([value in listed for value in values], dtype=bool)
    first = np.where(clear, alphabet.num_sensitive, 0)
    buckets = np.where(clear, alphabet.num_symbols - alphabet.num_sensitive, alphabet.num_sensitive)
    symbols, others = first.copy(), first + (buckets > 1)
    if own.any():
        texts = tuple(value for value, single in zip(values, own) if single)
        symbols[own] = others[own] = alphabet.symbol_table(texts, 1)[0]
    hashes = alphabet.num_hashes
    share = np.minimum(hashes / np.maximum(buckets, 1), 0.5)
    scale = np.where(own, 1.0, hashes * (1 - share))
    alike = (symbols >= mechanism.num_sensitive) if isinstance(mechanism, SetReportMechanism) else symbols
    return np.where(own, alike + 2, clear.astype(np.int64)), symbols, others, scale
