"""Unary bits: the report is one bit per sensitive symbol. RAPPOR protects all symbols, uRAP the sensitive ones.

Noise is v independent bits, each 1 with probability psi, which support the symbols whose bit is set: phi = eta = psi,
eta3 = psi**2. Given a supported symbol its own bit is 1 and the others are noise.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Hashable, Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.checks import describe, is_number
from uldp_transforms.ldp.counts.bit_totals import count_pairs, count_weights
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.bit_reports import ALL_BITS, BITS_OR_CLEAR, BitReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind
from uldp_transforms.ldp.mechanisms.noise_bits import noise_bits
from uldp_transforms.ldp.sampling import BIT_PLANES, WordSource, below, exp_bounds

AWARE, MARGINAL = "aware", "marginal"

MAX_PAIRED_BITS = 256
"""Maximum number of bits whose pairs are counted: 32,640 pairs, 255 KiB per window."""

_ROOT_DIGITS = 1 << 200  # square roots of rationals are computed to 60 digits, so that all machines agree


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Unary(BitReportMechanism):
    """v bits, one of which can be a value's own; subclasses define what they protect.

    Attributes:
        theta: Pr(own bit 1), in (0, 1). None: e**(epsilon/2) / (1 + e**(epsilon/2)), the symmetric choice. "optimal":
            the theta with the least mean squared error for the least favourable distribution.
    """

    independent_bits: ClassVar[bool] = True

    theta: float | str | None = dataclasses.field(
        default=None,
        metadata={
            "schema": {
                "description": "Probability that the own bit is 1; null or absent: the symmetric choice; optimal: the "
                "smallest worst error.",
                "anyOf": [
                    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                    {"enum": ["optimal", None]},
                ],
            }
        },
    )

    def check_own_fields(self) -> None:
        super().check_own_fields()
        if self.theta is None or self.theta == "optimal":
            return
        if not is_number(self.theta) or not 0 < self.theta < 1:
            raise SpecError(
                f'{type(self).__name__}.theta must be a number in (0, 1), "optimal" or null, got {describe(self.theta)}'
            )
        object.__setattr__(self, "theta", float(self.theta))

    @property
    def optimal_odds(self) -> Fraction:
        """theta / (1 - theta) of the optimal theta.

        The mean squared error is (a / theta + c / (1 - theta)) / (E - 1)**2 plus a term that does not depend on theta,
        with a = E (v + E - 1) and c = v + (v - 1)(E - 1) if everybody holds a sensitive value, which is the worst case.
        """
        e, v = exp_bounds(self.epsilon)[0], self.num_sensitive
        return _root(e * (v + e - 1) / (v + (v - 1) * (e - 1)))

    @property
    def bit_epsilon(self) -> float:
        """Epsilon of one own bit."""
        return self.epsilon

    @functools.cached_property
    def noise_numerator(self) -> int:
        """psi * 2**32. Any value is private, because the coin is computed from it."""
        e = exp_bounds(self.bit_epsilon)[0]
        if self.theta is None:
            psi = 1 / (1 + exp_bounds(self.bit_epsilon / 2)[0])
        elif self.theta == "optimal":
            psi = self.optimal_odds / (e + self.optimal_odds)
        else:
            theta = Fraction(self.theta)
            psi = theta / ((1 - theta) * e + theta)
        return min(max(round(psi * (1 << BIT_PLANES)), 1), (1 << BIT_PLANES) - 1)

    @property
    def coin_epsilon(self) -> float:
        return self.bit_epsilon if self.epsilon_inf is None else self.epsilon_inf

    @property
    def num_protected_outputs(self) -> int:
        return 1 << self.num_sensitive

    @functools.cached_property
    def noise_rate(self) -> Fraction:
        return Fraction(self.noise_numerator, 1 << BIT_PLANES)

    @property
    def pair_rate(self) -> Fraction:
        return self.noise_rate

    @property
    def triple_rate(self) -> Fraction:
        return self.noise_rate**2

    @property
    def rarest(self) -> list[tuple[Fraction, Fraction]]:
        """All bits equal, except one that must differ (if all symbols are sensitive, or none would be supported)."""
        psi, v = self.noise_rate, self.num_sensitive
        most = v - 1 if v == self.num_symbols else v
        return [(min(psi * (1 - psi) ** (v - 1), psi**most * (1 - psi) ** (v - most)), 1 / psi)]

    @property
    def memo_sampler(self) -> dict[str, Any]:
        return {
            "sampler": "bits",
            "keep_weight": str(self.keep_weight),
            "noise_numerator": str(self.noise_numerator),
            "noise_in_clear": bool(self.clear_rate),
        }

    def kinds(self) -> Iterator[Kind]:
        """Two values with h own bits each, o of them in common: every number of ones among the other own bits.

        An own bit is 1 by its coin or by noise, any other bit by noise; all other bits have the same distribution under
        both values. A non-sensitive value sends noise if its coin shows tails, and is compared with one bit of a
        sensitive one.
        """
        keep, psi, h = self.informative, self.noise_rate, self.num_hashes
        own = (1 - (keep + (1 - keep) * psi), keep + (1 - keep) * psi)  # probability that an own bit is 0, 1
        noise = (1 - psi, psi)
        for apart in range(1, h + 1):
            for ones, others in itertools.product(range(apart + 1), repeat=2):
                first = own[1] ** ones * own[0] ** (apart - ones) * noise[1] ** others * noise[0] ** (apart - others)
                second = noise[1] ** ones * noise[0] ** (apart - ones) * own[1] ** others * own[0] ** (apart - others)
                bits = f"{ones} of {apart} bits of one value and {others} of {apart} of the other set"
                yield Kind(bits, ("the one", "the other"), (first, second))
        if self.num_sensitive < self.num_symbols:
            for bit in (0, 1):
                pair = (own[bit], (1 - keep) * noise[bit])
                yield Kind(f"the bit of a sensitive value is {bit}", ("that value", "a non-sensitive value"), pair)

    def draw_protected(self, symbols: np.ndarray, given: np.ndarray, source: WordSource) -> np.ndarray:
        bits = noise_bits(source, len(symbols), self.num_sensitive, self.noise_numerator)
        set_bits(bits, symbols, given)
        return self.protected(bits)

    @property
    def layout(self) -> Hashable:
        return type(self), self.num_symbols, self.num_sensitive, self.num_hashes, bool(self.clear_rate)

    @property
    def num_patterns(self) -> int:
        """v + 1 weights of a report; also pairs of bits, if there are few and no value sets two of them (h = 1)."""
        v = self.num_sensitive
        return v + 1 + (v * (v - 1) // 2 if self._has_pairs else 0)

    @property
    def _has_pairs(self) -> bool:
        return self.num_hashes == 1 and self.num_sensitive <= MAX_PAIRED_BITS

    def count_patterns(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        """Numbers of reports with 0, 1, ..., v bits set (clear ones without noise have 0), then with each pair of bits.

        See ``Mechanism.count_patterns`` and ``bitcounts.count_pairs``.
        """
        bits, v = payloads[:, : self.bit_bytes], self.num_sensitive
        weights = count_weights(bits, v, groups, num_groups)
        return np.hstack([weights, count_pairs(bits, v, groups, num_groups)]) if self._has_pairs else weights

    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        psi = float(self.noise_rate)
        supported = self.supports(payloads)
        ones = supported[:, : self.num_sensitive].sum(axis=1)
        log_g = ones * np.log(psi) + (self.num_sensitive - ones) * np.log1p(-psi)
        clear = supported[:, self.num_sensitive :].any(axis=1)
        return np.where(clear, 0.0, log_g) if not self.clear_rate else log_g

    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        psi, v = self.noise_rate, self.num_sensitive
        for bits in itertools.product((0, 1), repeat=v):
            support = frozenset(itertools.compress(range(v), bits))
            yield self.bits_payload(support), psi ** len(support) * (1 - psi) ** (v - len(support)), support


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedRappor(_Unary):
    """uRAP(theta): own bit 1 with probability theta, other sensitive bits 1 with psi; or the clear symbol.

    psi = theta / ((1 - theta) E + theta), E = e**epsilon; a non-sensitive symbol is revealed with probability (E - 1)
    theta / E, otherwise it sends v bits of pure noise. psi is rounded to 32 bits, and theta and the reveal probability
    follow from the rounded psi.

    Attributes:
        theta: Pr(own bit 1); see the base class.
        inversion: "aware" (default, as None): the noise bits that Definition 5 keeps in clear reports carry no
            information and are not sent, and the estimate uses clear reports. "marginal": they are sent and counted,
            and each bit is inverted separately, as in the paper; less precise.

    Source: Murakami and Kawamoto 2019, Definition 5; Wang et al. 2017 for theta (1/2 is OUE).
    """

    id: ClassVar[str] = "urap"
    about: ClassVar[About] = About(
        sends='one bit per sensitive symbol, or a non-sensitive one in clear; `theta`; `inversion` (`"marginal"`: as '
        "published)",
        protects="sensitive values",
        source="uRAP: Murakami & Kawamoto 2019, definition 5",
        payload=BITS_OR_CLEAR,
    )

    inversion: str | None = dataclasses.field(
        default=None,
        metadata={
            "schema": {
                "description": "aware: clear reports say that no sensitive value is held; marginal: each bit by "
                "itself, as in the paper. Null or absent: aware.",
                "enum": [AWARE, MARGINAL, None],
            }
        },
    )

    def check_own_fields(self) -> None:
        super().check_own_fields()
        if self.inversion not in (None, AWARE, MARGINAL):
            raise SpecError(
                f'{type(self).__name__}.inversion must be "{AWARE}" or "{MARGINAL}", got {describe(self.inversion)}'
            )
        if self.inversion == AWARE:  # canonical form, so that equal configurations have equal fingerprints
            object.__setattr__(self, "inversion", None)

    @property
    def clear_rate(self) -> Fraction:
        return self.noise_rate if self.inversion == MARGINAL else Fraction(0)

    @property
    def optimal_odds(self) -> Fraction:
        """As in the base class; with the marginal inversion c = v E, where nobody holds a sensitive value."""
        if self.inversion != MARGINAL:
            return super().optimal_odds
        e, v = exp_bounds(self.epsilon)[0], self.num_sensitive
        return _root((v + e - 1) / v)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rappor(_Unary):
    """Generalised RAPPOR(theta): one bit per symbol; symmetric by default, theta = 1/2 is OUE.

    Over a hashed alphabet with h hash functions a value has up to h own bits, each 1 with probability theta by an
    independent coin; two values differ in at most 2 h bits, so every own bit gets the budget epsilon / h.

    Source: Kairouz, Bonawitz and Ramage 2016, sections 4.2 (k-RAPPOR) and 5.2 (O-RAPPOR, which does not specify the
    budget for h > 1); Wang et al. 2017 (theta, OUE).
    """

    id: ClassVar[str] = "rappor"
    about: ClassVar[About] = About(
        sends='one bit per symbol; `theta` 0.5 is OUE, `"optimal"` minimises the worst error',
        protects="every value",
        source="k-RAPPOR, and O-RAPPOR over `hashed`: Kairouz, Bonawitz & Ramage 2016, sections 4.2, 5.2; Wang et al. "
        "2017",
        payload=ALL_BITS,
    )
    protects_all: ClassVar[bool] = True
    max_hashes: ClassVar[int] = 16

    @property
    def bit_epsilon(self) -> float:
        """epsilon / h, rounded down, so that h of them do not exceed epsilon."""
        share = self.epsilon / self.num_hashes
        return share if Fraction(share) * self.num_hashes <= Fraction(self.epsilon) else math.nextafter(share, 0)

    @property
    def exact_ratio(self) -> Fraction:
        """The ratio between two values without common bits, if all bits of one are set and none of the other."""
        return super().exact_ratio ** self.num_hashes

    @property
    def effective_epsilon(self) -> float:
        return self.num_hashes * super().effective_epsilon

    def draw_memos(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """As in the base class; with h > 1 hash functions every own bit has an independent coin."""
        if self.num_hashes == 1:
            return super().draw_memos(symbols, source)
        informative = below(source.words(len(symbols), self.num_hashes), self.keep_weight)
        bits = noise_bits(source, len(symbols), self.num_sensitive, self.noise_numerator)
        for own in range(self.num_hashes):  # a bit shared by two hash functions has one coin, that of the first
            new = (symbols[:, :own] != symbols[:, own : own + 1]).all(axis=1)
            set_bits(bits, symbols[:, own], informative[:, own] & new)
        return self.protected(bits)

    def response(self, frequencies: np.ndarray) -> np.ndarray:
        """Each bit separately: miss + delta p, also where frequencies sum to more than 1 because h > 1."""
        return self.miss + self.delta * frequencies

    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        mean = self.response(frequencies)
        variances: np.ndarray = mean * (1 - mean) / self.delta**2
        return variances

    def null_variances(self, frequencies: np.ndarray) -> np.ndarray:
        return self.variances(np.zeros_like(frequencies))

    def private_variances(self, frequencies: np.ndarray) -> np.ndarray:
        """As in the base class; for h > 1 an upper bound.

        The bits of one value are set together, which a diagonal matrix cannot represent: b b^T <= h diag(b) for each
        pattern b.
        """
        if self.num_hashes == 1:
            return super().private_variances(frequencies)
        psi, theta = self.miss, self.miss + self.delta
        noise = frequencies * theta * (1 - theta) + (1 - frequencies) * psi * (1 - psi)
        variances: np.ndarray = noise / self.delta**2 + self.num_hashes * frequencies
        return variances


def set_bits(bits: np.ndarray, symbols: np.ndarray, chosen: np.ndarray) -> None:
    """Set the bit of each chosen report's symbol in (n, ceil(v / 8)) packed bits, in place."""
    rows = np.flatnonzero(chosen)
    bits[rows, symbols[rows] // 8] |= np.uint8(1) << (symbols[rows] % 8).astype(np.uint8)


def _root(square: Fraction) -> Fraction:
    return Fraction(math.isqrt(square.numerator * _ROOT_DIGITS**2 // square.denominator), _ROOT_DIGITS)
