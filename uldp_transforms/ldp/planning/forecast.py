"""What errors to expect of raw estimates when n people answer: of values that have these frequencies, for any n.

An estimate moves by one step for each report that is counted for its value, so it is a binomial number of steps and, on
top, what other counts add. Where many reports are counted all of this is normal; where few are, it is not, and neither
variances nor the normal form of the absolute error would be right.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from uldp_transforms.ldp.mechanisms import SetReportMechanism

CONFIDENCE = 0.95
"""Of the intervals whose half width is forecast."""

FALSE_ALARM, MISSED = 0.05, 0.2
"""Of what can be detected: a false alarm over all sensitive values together; a present one overlooked."""

_MANY = 50.0  # expected counts from which on they are normal
_SMALL_STEP = 0.02  # of log frequencies, within which values are put together where there are many
_LATTICE = 1024  # errors that a shift can be
_NEGLIGIBLE = 1e-9  # probability of one of them
_ALONE = 128  # values up to which none are


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """Frequencies that values have, and how many have each.

    Attributes:
        frequencies: (G,), of one value.
        numbers: (G,), of values.
    """

    frequencies: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, frequencies: np.ndarray) -> Groups:
        """Equal ones together; among many also those that differ by up to 2 %, with their sum kept."""
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
        """How many values there are."""
        return int(self.numbers.sum())

    def joined(self, other: Groups) -> Groups:
        """Both."""
        both = (self.frequencies, other.frequencies), (self.numbers, other.numbers)
        return Groups(*map(np.concatenate, both))

    def times(self, share: float) -> Groups:
        """The same values, if they share so much more or less between them."""
        return Groups(self.frequencies * share, self.numbers)


@dataclasses.dataclass(frozen=True, eq=False)
class Shift:
    """An error with a law of its own, with mean 0: rare and large, for instance.

    Attributes:
        errors: (X,) that it can be.
        weights: (X,) probabilities.
    """

    errors: np.ndarray
    weights: np.ndarray

    @property
    def variance(self) -> float:
        """Its mean square."""
        return float(self.weights @ self.errors**2)


def rare_shift(sizes: np.ndarray, rates: np.ndarray, variance: float) -> Shift:
    """The sum of events (A,) of these sizes, Poisson with these rates, less its mean; scaled to a variance.

    On a lattice, to which each size is split so that its mean is kept.
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
    """The raw estimates of groups of values.

    Attributes:
        numbers: (G,) values in each group.
        variances: (G,) of an estimate.
        counted: (G,) reports that are expected to be counted for a value.
        steps: (G,) by how much one of them moves the estimate.
        num_reports: n, of which each is counted or not.
        shift: what else moves each estimate, part of ``variances``; None: nothing that is not nearly normal.
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
        """``l1`` if all estimates were normal: concave in how people are distributed."""
        return math.sqrt(2 / math.pi) * float(self.numbers @ np.sqrt(self.variances))

    def _deviations(self) -> np.ndarray:
        """(G,) expected absolute errors: of a binomial number of steps, plus a normal rest."""
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
        weights = stats.binom.pmf(counts, self.num_reports, rates)
        deviations[few] = (weights * _folded(shrink * step * (counts - mean), rest)).sum(axis=1)
        return deviations

    def half_width(self) -> float:
        """Half of the 95 % interval of a value, as root mean square over all of them.

        That of a score interval, which is a little longer than two standard errors where few reports are counted.
        """
        z = float(special.ndtri((1 + CONFIDENCE) / 2))
        squares = self.variances + (z * self.steps / 2) ** 2
        return z * math.sqrt(float(self.numbers @ squares) / float(self.numbers.sum()))

    def change(self, num_tests: int) -> float:
        """How much a frequency must change between two such windows to be found 4 times in 5, root mean square.

        With 1 false alarm in 20 over ``num_tests`` values, either way.
        """
        quantiles = special.ndtri(1 - FALSE_ALARM / (2 * num_tests)) + special.ndtri(1 - MISSED)
        return float(quantiles) * math.sqrt(2 * self.l2 / float(self.numbers.sum()))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PerReport:
    """The same of one report, from which ``of`` makes those of n.

    Attributes:
        numbers: (G,) values in each group.
        variances: (G,) n times the variance of an estimate.
        rates: (G,) probability that a report is counted for a value.
        steps: (G,) n times what that moves.
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


def of_symbols(mechanism: SetReportMechanism, frequencies: np.ndarray, first: int) -> tuple[PerReport, PerReport]:
    """All symbols with these frequencies (K,), and the first of them; equal ones together."""
    rates = mechanism.response(frequencies)[: mechanism.num_symbols]
    columns = np.stack([mechanism.variances(frequencies), rates, mechanism.jumps])
    found = []
    for some in (columns, columns[:, :first]):
        (variances, rates, steps), numbers = np.unique(some, axis=1, return_counts=True)
        found.append(PerReport(numbers=numbers, variances=np.maximum(variances, 0), rates=rates, steps=steps))
    return found[0], found[1]


def told(values: Groups, num_reports: int, rate: float = 1.0) -> Estimates:
    """Of values that people tell with this probability and hide otherwise: R / (n rate)."""
    p = values.frequencies
    variances = np.maximum(p / rate - p**2, 0)
    one = PerReport(numbers=values.numbers, variances=variances, rates=rate * p, steps=np.full(len(p), 1 / rate))
    return one.of(num_reports)


class Together(NamedTuple):
    """Estimates of different kinds."""

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
        """``l1`` if all estimates were normal: concave in how people are distributed."""
        return sum(part.normal_l1 for part in self.parts)


def _folded(means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """E |X| of normal X."""
    ratios = np.clip(means / np.maximum(deviations, 1e-300), -30, 30)
    density = math.sqrt(2 / math.pi) * np.exp(-(ratios**2) / 2)
    folded: np.ndarray = deviations * density + means * special.erf(ratios / math.sqrt(2))
    return folded
