"""Binomial, negative binomial and hypergeometric distributions: the numbers of ``scipy.stats``, without its import.

``scipy.stats`` checks its arguments and then calls these functions of ``scipy.special``. Its import takes longer than
all others together that a program needs for the estimates of a window.

Counts may lie outside the range of a distribution; its parameters must be valid.
"""

from __future__ import annotations

import numpy as np

try:
    from scipy.special._ufuncs import (
        _binom_cdf,
        _binom_pmf,
        _binom_ppf,
        _binom_sf,
        _hypergeom_cdf,
        _hypergeom_sf,
        _nbinom_isf,
        _nbinom_ppf,
    )
except ImportError:  # SciPy 1.13
    from scipy.stats._boost import (
        _binom_cdf,
        _binom_ppf,
        _binom_sf,
        _hypergeom_cdf,
        _hypergeom_sf,
        _nbinom_isf,
        _nbinom_ppf,
    )
    from scipy.stats._boost import _binom_pdf as _binom_pmf

Numbers = int | float | np.ndarray
"""Arguments, which are broadcast against each other."""


class Binomial:
    """The number of successes in independent trials with one success rate."""

    @staticmethod
    def cdf(count: Numbers, trials: Numbers, rate: Numbers) -> np.ndarray:
        """Probability of at most this number of successes."""
        return _inside(_binom_cdf(np.clip(count, 0, trials), trials, rate), count, 0, below=0.0)

    @staticmethod
    def sf(count: Numbers, trials: Numbers, rate: Numbers) -> np.ndarray:
        """Probability of more than this number of successes."""
        return _inside(_binom_sf(np.clip(count, 0, trials), trials, rate), count, 0, below=1.0)

    @staticmethod
    def pmf(count: Numbers, trials: Numbers, rate: Numbers) -> np.ndarray:
        """Probability of this number of successes, from 0 to the number of trials."""
        return np.asarray(np.clip(_binom_pmf(count, trials, rate), 0, 1))

    @staticmethod
    def ppf(probability: float, trials: Numbers, rate: Numbers) -> np.ndarray:
        """The smallest number of which ``cdf`` is at least a probability between 0 and 1."""
        return np.asarray(_binom_ppf(probability, trials, rate))


class NegativeBinomial:
    """The number of failures before a given number of successes, at least one, at a success rate above 0."""

    @staticmethod
    def ppf(probability: float, successes: Numbers, rate: Numbers) -> np.ndarray:
        """The smallest number that is not exceeded with at least a probability between 0 and 1."""
        with np.errstate(over="ignore"):
            return np.asarray(_nbinom_ppf(probability, successes, rate))

    @staticmethod
    def isf(probability: float, successes: Numbers, rate: Numbers) -> np.ndarray:
        """The smallest number that is exceeded with at most a probability between 0 and 1."""
        with np.errstate(over="ignore"):
            return np.asarray(_nbinom_isf(probability, successes, rate))


class Hypergeometric:
    """The number of marked objects among ``drawn`` of ``total`` objects, of which ``marked`` are marked."""

    @staticmethod
    def cdf(count: Numbers, total: Numbers, marked: Numbers, drawn: Numbers) -> np.ndarray:
        """Probability of at most this number of marked objects."""
        least, most = _range(total, marked, drawn)
        return _inside(_hypergeom_cdf(np.clip(count, least, most), marked, drawn, total), count, least, below=0.0)

    @staticmethod
    def sf(count: Numbers, total: Numbers, marked: Numbers, drawn: Numbers) -> np.ndarray:
        """Probability of more than this number of marked objects."""
        least, most = _range(total, marked, drawn)
        return _inside(_hypergeom_sf(np.clip(count, least, most), marked, drawn, total), count, least, below=1.0)


def _range(total: Numbers, marked: Numbers, drawn: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest possible number of marked objects."""
    return np.maximum(drawn - (total - marked), 0), np.minimum(marked, drawn)


def _inside(tails: np.ndarray, count: Numbers, least: Numbers, *, below: float) -> np.ndarray:
    """Tails at counts from ``least`` on, and ``below`` at smaller counts."""
    return np.where(np.less(count, least), below, np.clip(tails, 0, 1))
