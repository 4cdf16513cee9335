"""Expected errors of raw estimates as a function of the number of people n, for given frequencies.

An estimate changes by one step for each report that is counted for its value. So its error is that of a binomial number
of steps plus the noise from other counts. With many counted reports both are normal. With few they are not, and neither
variances nor the normal form of the absolute error would be right.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy
from scipy import special

from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.mechanisms import Mechanism

FALSE_ALARM, MISSED = 0.05, 0.2
"""Error probabilities of detection: of a false alarm over all sensitive values, and of a missed value."""

_MANY = 50.0  # expected counts from which the normal distribution is used
_SMALL_STEP = 0.02  # width in log frequency of groups of similar values, if there are many
_LATTICE = 1024  # number of lattice points of a shift
_NEGLIGIBLE = 1e-9  # probability below which a lattice point is dropped
_ALONE = 128  # up to this number, values are not grouped


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """The distinct frequencies of values, and the number of values with each.

    Attributes:
        frequencies: (G,), frequency of each value in a group.
        numbers: (G,), number of values in each group.
    """

    frequencies: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, frequencies: np.ndarray) -> Groups:
        """Group equal frequencies; if there are many, also those that differ by up to 2 %, preserving their sum."""
        if len(frequencies) <= _ALONE:
            return cls(*np.unique(frequencies, return_counts=True))
        logs = np.floor(np.log(np.maximum(frequencies, 1e-300)) / _SMALL_STEP)
        _, member, numbers = np.unique(logs, return_inverse=True, return_counts=True)
        return cls(np.bincount(member, frequencies) / numbers, numbers)

    @property
    def squares(self) -> float:
        """Sum of the squared frequencies of all values."""
        return float(self.numbers @ self.frequencies**2)

    @property
    def total(self) -> int:
        """Number of values."""
        return int(self.numbers.sum())

    def joined(self, other: Groups) -> Groups:
        """The groups of both together."""
        both = (self.frequencies, other.frequencies), (self.numbers, other.numbers)
        return Groups(*map(np.concatenate, both))

    def times(self, share: float) -> Groups:
        """The same values with all frequencies multiplied by ``share``."""
        return Groups(self.frequencies * share, self.numbers)


@dataclasses.dataclass(frozen=True, eq=False)
class Shift:
    """An error with mean 0 and a non-normal distribution, for instance rare and large.

    Attributes:
        errors: (X,) possible errors.
        weights: (X,) their probabilities.
    """

    errors: np.ndarray
    weights: np.ndarray

    @property
    def variance(self) -> float:
        """The mean square of the error."""
        return float(self.weights @ self.errors**2)


def rare_shift(sizes: np.ndarray, rates: np.ndarray, variance: float) -> Shift:
    """Centred sum of independent Poisson events (A,) with these sizes and rates, scaled to a variance.

    Computed on a lattice; each size is split between two lattice points such that its mean is preserved.
    """
    sizes = sizes * math.sqrt(variance / float(rates @ sizes**2))
    top = float(rates @ sizes) + max(12 * math.sqrt(variance), 4 * float(sizes.max()))
    place = sizes * (_LATTICE - 1) / top
    low = np.floor(place).astype(np.int64)
    intensity = np.bincount(low, rates * (1 - place + low), _LATTICE)
    intensity = intensity + np.bincount(low + 1, rates * (place - low), _LATTICE)
    law = np.fft.irfft(np.exp(np.fft.rfft(intensity) - intensity.sum()), _LATTICE)
    kept = law > _NEGLIGIBLE
    errors, weights = np.linspace(0, top, _LATTICE)[kept], law[kept] / law[kept].sum()
    return Shift(errors - weights @ errors, weights)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Estimates:
    """Distributions of the raw estimates of groups of values.

    Attributes:
        numbers: (G,) number of values in each group.
        variances: (G,) variance of an estimate.
        counted: (G,) expected number of reports that are counted for a value.
        steps: (G,) change of the estimate per counted report.
        num_reports: n.
        shift: non-normal error of each estimate, included in ``variances``; None: negligible.
    """

    numbers: np.ndarray
    variances: np.ndarray
    counted: np.ndarray
    steps: np.ndarray
    num_reports: int
    shift: Shift | None = None

    @property
    def l2(self) -> float:
        """Expected sum of squared errors."""
        return float(self.numbers @ self.variances)

    @property
    def l1(self) -> float:
        """Expected sum of absolute errors."""
        if self.shift is None:
            return float(self.numbers @ self._deviations())
        rest = dataclasses.replace(self, variances=np.maximum(self.variances - self.shift.variance, 0), shift=None)
        as_normal = math.sqrt(np.pi / 2) * rest._deviations()[:, np.newaxis]
        return float(self.numbers @ (_folded(self.shift.errors, as_normal) @ self.shift.weights))

    @property
    def normal_l1(self) -> float:
        """``l1`` if all estimates were normal: concave in the distribution of people."""
        return math.sqrt(2 / math.pi) * float(self.numbers @ np.sqrt(self.variances))

    def _deviations(self) -> np.ndarray:
        """(G,) expected absolute errors of a binomial number of steps plus normal noise."""
        deviations = np.sqrt(2 / np.pi * self.variances)
        few = np.flatnonzero(self.counted < _MANY)
        if not len(few):
            return deviations
        mean, step, variance = (column[few, np.newaxis] for column in (self.counted, self.steps, self.variances))
        rates, top = np.minimum(mean / self.num_reports, 1), float(mean.max())
        counts = np.arange(min(self.num_reports, math.ceil(top + 10 * math.sqrt(top) + 10)) + 1)
        of_steps = step**2 * mean * (1 - rates)
        with np.errstate(invalid="ignore", divide="ignore"):
            shrink = np.where(of_steps > variance, np.sqrt(variance / of_steps), 1.0)
        rest = np.sqrt(np.maximum(variance - of_steps, 0))
        weights = scipy.stats.binom.pmf(counts, self.num_reports, rates)
        deviations[few] = (weights * _folded(shrink * step * (counts - mean), rest)).sum(axis=1)
        return deviations

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Half width of the interval of a value, root mean square over all values.

        The interval is a score interval, slightly longer than that of a normal estimate if few reports are counted.
        """
        z = float(special.ndtri((1 + confidence) / 2))
        squares = self.variances + (z * self.steps / 2) ** 2
        return z * math.sqrt(float(self.numbers @ squares) / float(self.numbers.sum()))

    def change(self, num_tests: int) -> float:
        """Change of a frequency between two such windows that is detected with probability 0.8, root mean square.

        The two-sided test has a false-alarm probability of 0.05 over all ``num_tests`` values together.
        """
        quantiles = special.ndtri(1 - FALSE_ALARM / (2 * num_tests)) + special.ndtri(1 - MISSED)
        return float(quantiles) * math.sqrt(2 * self.l2 / float(self.numbers.sum()))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PerReport:
    """The distributions for one report, from which ``of`` computes those for n reports.

    Attributes:
        numbers: (G,) number of values in each group.
        variances: (G,) n times the variance of an estimate.
        rates: (G,) probability that a report is counted for a value.
        steps: (G,) n times the change of the estimate per counted report.
    """

    numbers: np.ndarray
    variances: np.ndarray
    rates: np.ndarray
    steps: np.ndarray

    def of(self, num_reports: int) -> Estimates:
        """The estimates from n reports."""
        return Estimates(
            numbers=self.numbers,
            variances=self.variances / num_reports,
            counted=self.rates * num_reports,
            steps=self.steps / num_reports,
            num_reports=num_reports,
        )


def of_symbols(mechanism: Mechanism, frequencies: np.ndarray, parts: Sequence[np.ndarray]) -> list[PerReport]:
    """All symbols with the frequencies (K,), then each of these parts; equal frequencies are grouped."""
    rates = mechanism.response(frequencies)[: mechanism.num_symbols]
    columns = np.stack([mechanism.variances(frequencies), rates, mechanism.jumps])
    found = []
    for some in (columns, *(columns[:, part] for part in parts)):
        (variances, rates, steps), numbers = np.unique(some, axis=1, return_counts=True)
        found.append(PerReport(numbers=numbers, variances=np.maximum(variances, 0), rates=rates, steps=steps))
    return found


def told(values: Groups, num_reports: int, rate: float = 1.0) -> Estimates:
    """Estimates if people reveal their values with probability ``rate`` and hide them otherwise: R / (n rate)."""
    p = values.frequencies
    variances = np.maximum(p / rate - p**2, 0)
    one = PerReport(numbers=values.numbers, variances=variances, rates=rate * p, steps=np.full(len(p), 1 / rate))
    return one.of(num_reports)


class Together(NamedTuple):
    """Estimates of several kinds, with their total errors."""

    parts: tuple[Estimates, ...]

    @property
    def l1(self) -> float:
        """Expected sum of absolute errors."""
        return sum(part.l1 for part in self.parts)

    @property
    def l2(self) -> float:
        """Expected sum of squared errors."""
        return sum(part.l2 for part in self.parts)

    @property
    def normal_l1(self) -> float:
        """``l1`` if all estimates were normal: concave in the distribution of people."""
        return sum(part.normal_l1 for part in self.parts)


def _folded(means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """E |X| for normal X."""
    ratios = np.clip(means / np.maximum(deviations, 1e-300), -30, 30)
    density = math.sqrt(2 / math.pi) * np.exp(-(ratios**2) / 2)
    folded: np.ndarray = deviations * density + means * special.erf(ratios / math.sqrt(2))
    return folded
