"""Unary bits: the report is one bit per sensitive symbol. RAPPOR protects all symbols, uRAP the sensitive ones.

Noise is v independent bits, each 1 with probability psi, which support the symbols whose bit is set: phi = eta = psi,
eta3 = psi**2. Given a supported symbol its own bit is 1 and the others are noise.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.mechanisms.bit_reports import BitReportMechanism
from uldp_transforms.ldp.sampling import BIT_PLANES, WordSource, below, bernoulli_planes, exp_bounds
from uldp_transforms.ldp.specs import is_number, require_number


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedRappor(BitReportMechanism):
    """uRAP(theta): own bit 1 with probability theta, other sensitive bits 1 with psi; or the symbol in clear.

    psi = theta / ((1 - theta) E + theta), E = e**epsilon; a non-sensitive symbol is revealed with probability
    (E - 1) theta / E, otherwise it sends v bits of pure noise. psi is rounded to 32 bits, and theta and the
    probability of revealing follow from the rounded psi.

    The noise bits that Definition 5 keeps in clear reports carry nothing and are not sent.

    Attributes:
        theta: Pr(own bit 1), in (0, 1); None: e**(epsilon/2) / (1 + e**(epsilon/2)), the symmetric choice.

    Source: Murakami and Kawamoto 2019, Definition 5; Wang et al. 2017 for theta (1/2 is OUE).
    """

    id: ClassVar[str] = "urap"

    theta: float | None = None

    def check_own_fields(self) -> None:
        if self.theta is not None:
            require_number(
                f"{type(self).__name__}.theta",
                self.theta,
                "a number in (0, 1)",
                is_number(self.theta) and 0 < self.theta < 1,
            )
            object.__setattr__(self, "theta", float(self.theta))

    @property
    def noise_numerator(self) -> int:
        """psi * 2**32. Any value is private: the coin is computed from it."""
        if self.theta is None:
            psi = 1 / (1 + exp_bounds(self.epsilon / 2)[0])
        else:
            theta = Fraction(self.theta)
            psi = theta / ((1 - theta) * exp_bounds(self.epsilon)[0] + theta)
        return min(max(round(psi * (1 << BIT_PLANES)), 1), (1 << BIT_PLANES) - 1)

    @property
    def noise_rate(self) -> Fraction:
        return Fraction(self.noise_numerator, 1 << BIT_PLANES)

    @property
    def pair_rate(self) -> Fraction:
        return self.noise_rate

    @property
    def triple_rate(self) -> Fraction:
        return self.noise_rate**2

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        informative = below(source.words(len(symbols)), self.keep_weight)
        bits = bernoulli_planes(source, len(symbols), self.num_sensitive, self.noise_numerator)
        sensitive = symbols < self.num_sensitive
        own = np.flatnonzero(informative & sensitive)
        bits[own, symbols[own] // 8] |= np.uint8(1) << (symbols[own] % 8).astype(np.uint8)
        return self.assemble(bits, symbols, informative & ~sensitive)

    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        psi = float(self.noise_rate)
        supported = self.supports(payloads)
        ones = supported[:, : self.num_sensitive].sum(axis=1)
        log_g = ones * np.log(psi) + (self.num_sensitive - ones) * np.log1p(-psi)
        return np.where(supported[:, self.num_sensitive :].any(axis=1), np.nan, log_g)

    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        psi, v = self.noise_rate, self.num_sensitive
        for bits in itertools.product((0, 1), repeat=v):
            support = frozenset(itertools.compress(range(v), bits))
            yield self.bits_payload(support), psi ** len(support) * (1 - psi) ** (v - len(support)), support


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rappor(UtilityOptimizedRappor):
    """Generalised RAPPOR(theta): one bit per symbol; symmetric by default, theta = 1/2 is OUE.

    Source: Kairouz, Bonawitz and Ramage 2016, section 4.2 (k-RAPPOR); Wang et al. 2017 (theta, OUE).
    """

    id: ClassVar[str] = "rappor"
    protects_all: ClassVar[bool] = True
