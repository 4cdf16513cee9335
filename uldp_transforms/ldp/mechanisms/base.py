"""The set-report family: one calculus for almost every mechanism of the field.

A *noise law* g on protected outputs y, each of which supports a set S_y of sensitive symbols, makes a mechanism if
every sensitive symbol is supported equally often and every pair too:

    phi = Pr_g(u in S_y),    eta = Pr_g(u' in S_y | u in S_y),    eta3 = Pr_g(three given symbols in S_y) / phi.

The client tosses one coin, of probability kappa = keep_weight / 2**64. Tails: it sends noise y ~ g, whatever its
symbol is. Heads: a sensitive symbol sends y ~ g given that the symbol is supported; a non-sensitive one is sent in
clear. A protected report y then has probability g(y) (1 - kappa) (1 + [x in S_y] kappa / ((1 - kappa) phi)) under
every symbol x, so the odds move by at most 1 + kappa / ((1 - kappa) phi) <= e**epsilon: utility-optimised LDP
(Murakami and Kawamoto 2019, Definition 2). Without non-sensitive symbols this is plain epsilon-LDP.

Letters: n reports, C cohorts, K symbols of which v sensitive, M = K counted cells, W payload bytes. Everything that
follows from (phi, eta, eta3, kappa) is written here, once: the inverse, its variances, covariances and intervals,
the likelihood, the exact channel. A member of the family is one file that says how to draw noise, how to draw it
given a supported symbol, how to count supports in arrays, and what goes on the wire.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy import special

from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import WORD, WordSource, exp_bounds, floor_weight
from uldp_transforms.ldp.specs import is_number, require_int, require_number

MAX_EPSILON = 16.0
"""Largest epsilon; far below the 44 at which 64-bit weights saturate."""

MAX_SYMBOLS = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class SetReportMechanism(abc.ABC):
    """Perturbs symbols 0..K-1, the first v of which are sensitive.

    The JSON form holds the fields other than ``num_symbols`` and ``num_sensitive``, which come from the alphabet.

    Attributes:
        num_symbols: K.
        num_sensitive: v, in [1, K].
        epsilon: the guarantee of one report, in (0, 16].
    """

    id: ClassVar[str]
    protects_all: ClassVar[bool] = False
    """True for the LDP members, which protect every symbol, whatever the alphabet calls sensitive."""

    num_symbols: int
    num_sensitive: int
    epsilon: float

    def __post_init__(self) -> None:
        name = type(self).__name__
        require_int(f"{name}.num_symbols", self.num_symbols, 2, MAX_SYMBOLS)
        if self.protects_all:
            object.__setattr__(self, "num_sensitive", self.num_symbols)
        require_int(f"{name}.num_sensitive", self.num_sensitive, 1, self.num_symbols)
        allowed = f"a number in (0, {MAX_EPSILON:g}]"
        require_number(
            f"{name}.epsilon", self.epsilon, allowed, is_number(self.epsilon) and 0 < self.epsilon <= MAX_EPSILON
        )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        self.check_own_fields()
        if self.keep_weight < 1:
            raise SpecError(f"{name}.epsilon must be large enough to leave a signal in 64 bits, got {self.epsilon!r}")

    def check_own_fields(self) -> None:  # noqa: B027  # most mechanisms have none
        """Check the fields that a subclass adds (raises SpecError); the others are checked already."""

    def to_json(self) -> dict[str, Any]:
        """``{"id": ..., field: value}`` without what the alphabet determines."""
        outside = ("num_symbols", "num_sensitive")
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in outside}
        return {"id": self.id} | {name: value for name, value in fields.items() if value is not None}

    # ------------------------------------------------------------------ what a member of the family says

    @property
    @abc.abstractmethod
    def noise_rate(self) -> Fraction:
        """phi, exactly."""

    @property
    @abc.abstractmethod
    def pair_rate(self) -> Fraction:
        """eta, exactly."""

    @property
    @abc.abstractmethod
    def triple_rate(self) -> Fraction:
        """eta3, exactly."""

    @property
    @abc.abstractmethod
    def payload_size(self) -> int:
        """W, bytes of every payload."""

    @abc.abstractmethod
    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """Run by the client: one payload per symbol.

        Args:
            symbols: (n,) int64 in [0, K).
            source: of random words; the number drawn depends on n alone.

        Returns:
            (n, W) uint8.
        """

    @abc.abstractmethod
    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        """Run by the collector: each way in which a payload cannot come from ``perturb``, with an (n,) mask.

        A payload that is in no mask is in the support of ``perturb``, exactly.
        """

    @abc.abstractmethod
    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        """Run by the collector: how often each cell is counted in each group of reports.

        Args:
            payloads: (n, W) uint8, valid.
            groups: (n,) integers in [0, num_groups), for instance cohorts.
            num_groups: number of rows to return.

        Returns:
            (num_groups, K) int64: c_x, the protected reports that support x, for x < v; R_z, the clear reports of z,
            for z >= v.
        """

    @abc.abstractmethod
    def supports(self, payloads: np.ndarray) -> np.ndarray:
        """(n, K) bool: x in S_y for protected reports; x = z for clear reports of z."""

    @abc.abstractmethod
    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) float64: ln g(y) for protected reports; NaN for clear ones."""

    @abc.abstractmethod
    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        """Every protected payload with its exact g(y) and S_y. For small instances: there may be 2**v."""

    @abc.abstractmethod
    def clear_payload(self, symbol: int) -> bytes:
        """The payload that reveals a non-sensitive symbol."""

    # ------------------------------------------------------------------ what follows for all of them

    @property
    def keep_weight(self) -> int:
        """kappa * 2**64, rounded towards privacy: kappa / ((1 - kappa) phi) <= e**epsilon - 1."""
        gain = (exp_bounds(self.epsilon)[0] - 1) * self.noise_rate
        return floor_weight(gain / (1 + gain))

    @property
    def kappa(self) -> float:
        """Probability of an informative report."""
        return self.keep_weight / WORD

    @property
    def effective_epsilon(self) -> float:
        """ln of the largest ratio that the client really has, at most ``epsilon``."""
        return math.log1p(float(Fraction(self.keep_weight, WORD - self.keep_weight) / self.noise_rate))

    @property
    def miss(self) -> float:
        """Pr(x is supported | another sensitive symbol)."""
        return (1 - self.kappa) * float(self.noise_rate) + self.kappa * float(self.pair_rate)

    @property
    def delta(self) -> float:
        """Pr(x is supported | x) - Pr(x is supported | another sensitive symbol)."""
        return self.kappa * float(1 - self.pair_rate)

    def is_valid(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) bool: True for exactly the payloads that ``perturb`` can make."""
        valid = np.ones(len(payloads), dtype=bool)
        for _, mask in self.violations(payloads):
            valid &= ~mask
        return valid

    def log_prob(self, payloads: np.ndarray) -> np.ndarray:
        """The definition: (n, K) float64, ln Q(payload | symbol); -inf where impossible."""
        supported = self.supports(payloads)
        clear = supported[:, self.num_sensitive :].any(axis=1, keepdims=True)
        bonus = self.kappa / float(self.noise_rate)
        noise = self.log_noise(payloads)[:, np.newaxis]
        with np.errstate(divide="ignore"):
            protected = noise + np.log((1 - self.kappa) + bonus * supported)
            return np.where(clear, np.log(self.kappa * supported), protected)

    def channel(self) -> tuple[list[bytes], list[list[Fraction]]]:
        """Every payload and its exact probability under every symbol, by enumeration of a small instance.

        Returns:
            payloads, and rows[i][x] = Q(payloads[i] | x).
        """
        kappa = Fraction(self.keep_weight, WORD)
        payloads, rows = [], []
        for payload, noise, support in self.noise_law():
            boost = noise * kappa / self.noise_rate
            payloads.append(payload)
            rows.append([noise * (1 - kappa) + (boost if x in support else 0) for x in range(self.num_symbols)])
        for z in range(self.num_sensitive, self.num_symbols):
            payloads.append(self.clear_payload(z))
            rows.append([kappa if x == z else Fraction(0) for x in range(self.num_symbols)])
        return payloads, rows

    def response(self, frequencies: np.ndarray) -> np.ndarray:
        """Expected cells per report when symbols have these frequencies.

        Args:
            frequencies: (..., K) summing to 1.

        Returns:
            (..., K): mu_x for x < v, kappa p_z for z >= v.
        """
        v = self.num_sensitive
        sensitive = frequencies[..., :v].sum(axis=-1, keepdims=True)
        base = (1 - self.kappa) * float(self.noise_rate) + self.kappa * float(self.pair_rate) * sensitive
        return np.concatenate([base + self.delta * frequencies[..., :v], self.kappa * frequencies[..., v:]], axis=-1)

    def invert(self, counts: CohortCounts) -> np.ndarray:
        """Unbiased, unclipped symbol frequencies of each cohort; rows of empty cohorts are 0.

        Revealed-aware: a clear report says "not sensitive" with certainty, and that is used.

            p_x = (c_x / n + eta R / n - miss) / delta,    p_z = R_z / (n kappa),    R = sum of the R_z

        Args:
            counts: of C cohorts.

        Returns:
            (C, K) float64.
        """
        v = self.num_sensitive
        num_reports = np.maximum(counts.num_reports, 1)[:, np.newaxis]
        shares = counts.cells / num_reports
        revealed = shares[:, v:].sum(axis=1, keepdims=True)
        sensitive = (shares[:, :v] + float(self.pair_rate) * revealed - self.miss) / self.delta
        raw = np.concatenate([sensitive, shares[:, v:] / self.kappa], axis=1)
        return np.where(counts.num_reports[:, np.newaxis] > 0, raw, 0.0)

    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        """n times the variance of ``invert`` when n independent people hold symbols with these frequencies.

        Args:
            frequencies: (..., K) summing to 1.

        Returns:
            (..., K).
        """
        v, eta = self.num_sensitive, float(self.pair_rate)
        p = frequencies[..., :v]
        non_sensitive = 1 - p.sum(axis=-1, keepdims=True)
        mean_squares = self.response(frequencies)[..., :v] + eta * eta * self.kappa * non_sensitive
        sensitive = (mean_squares - (self.miss + self.delta * p) ** 2) / self.delta**2
        clear = frequencies[..., v:]
        return np.concatenate([sensitive, clear / self.kappa - clear**2], axis=-1)

    def _pair_terms(self, sensitive: np.ndarray) -> tuple[np.ndarray, float]:
        """``base`` and ``slope`` of n times the covariance of two sensitive symbols,

            base + slope (p_x + p_y) - q_x q_y    with q = miss / delta + p,

        where ``sensitive`` is the share of people with sensitive symbols.
        """
        kappa = self.kappa
        phi, eta, eta3 = map(float, (self.noise_rate, self.pair_rate, self.triple_rate))
        base = (1 - kappa) * phi * eta + kappa * eta3 * sensitive + eta * eta * kappa * (1 - sensitive)
        return base / self.delta**2, kappa * (eta - eta3) / self.delta**2

    def private_variances(self, frequencies: np.ndarray) -> np.ndarray:
        """The part of ``variances`` of the sensitive symbols that is not shared between them.

        Contrasts between symbols do not see ``base`` and ``slope`` of a pair's covariance, so on contrasts the
        covariance matrix acts as ``diag(private) - p p^T``. Centred least squares uses exactly that.

        Args:
            frequencies: (..., K) summing to 1.

        Returns:
            (..., v).
        """
        p = frequencies[..., : self.num_sensitive]
        base, slope = self._pair_terms(p.sum(axis=-1, keepdims=True))
        own = self.variances(frequencies)[..., : self.num_sensitive] + (self.miss / self.delta + p) ** 2
        return own - base - 2 * slope * p

    def variance_of_sum(self, frequencies: np.ndarray, members: np.ndarray) -> float:
        """n times the variance of the summed ``invert`` of some symbols.

        Args:
            frequencies: (K,) summing to 1.
            members: (K,) bool, the symbols that are added.
        """
        v = self.num_sensitive
        base, slope = self._pair_terms(frequencies[:v].sum())
        p, clear = frequencies[:v][members[:v]], frequencies[v:][members[v:]]
        q = self.miss / self.delta + p
        pairs = len(p) * (len(p) - 1) * base + 2 * (len(p) - 1) * slope * p.sum() - q.sum() ** 2 + (q**2).sum()
        mixed = 2 * clear.sum() * (len(p) * (float(self.pair_rate) - self.miss) / self.delta - p.sum())
        revealed = (clear**2).sum() - clear.sum() ** 2
        return float(self.variances(frequencies)[members].sum() + pairs + mixed + revealed)

    def intervals(self, counts: CohortCounts, frequencies: np.ndarray, confidence: float) -> tuple[np.ndarray, ...]:
        """Confidence intervals of the pooled symbol frequencies.

        Sensitive symbols: normal, with the exact variance. Non-sensitive ones: Clopper-Pearson on the clear count,
        which is binomial; the normal interval would have width zero where nothing was seen.

        Args:
            counts: of one (pooled) cohort with at least one report.
            frequencies: (K,) point at which the variance is taken.
            confidence: for instance 0.95.

        Returns:
            low (K,), high (K,), not cut to [0, 1].
        """
        v, n = self.num_sensitive, counts.total
        tail = (1 - confidence) / 2
        raw = self.invert(counts)[0]
        half = special.ndtri(1 - tail) * np.sqrt(np.maximum(self.variances(frequencies), 0) / n)
        low, high = raw - half, raw + half
        clear = counts.cells[0, v:]
        with np.errstate(invalid="ignore"):
            low[v:] = np.where(clear > 0, special.betaincinv(clear, n - clear + 1, tail), 0.0) / self.kappa
            high[v:] = np.where(clear < n, special.betaincinv(clear + 1, n - clear, 1 - tail), 1.0) / self.kappa
        return low, high
