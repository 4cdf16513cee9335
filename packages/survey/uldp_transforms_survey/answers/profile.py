"""Profile-likelihood interval of a share that is a function of several parameters.

The interval has the shares of all parameters whose log-likelihood is at most ``drop`` below its maximum: those that a
likelihood-ratio test does not reject. Its ends are the least and the largest share of these parameters, found by
sequential quadratic programming.

It does not depend on the scale of the parameters, as an interval from an estimate and its standard error does. That
matters where a share is near 0: nothing bounds its log odds from below, and their standard error says little about
larger shares.

Source: Venzon and Moolgavkar 1988 (profile likelihood); Kraft 1988 (the algorithm, from scipy).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import scipy
from scipy import special

FARTHEST = 20.0
"""Log odds of the ends that count as 1; those of 0 are -20."""

_LARGEST_UNIT = 1.0  # of a parameter that the likelihood hardly bounds; of the others it is the standard error
_LIMIT = FARTHEST + 1
_STARTS = (1.0, 0.03)  # lengths of the first steps: the farthest of the ends to which they lead is taken
_CLOSE, _MOST_STEPS = 1e-6, 200  # of the log odds, in half lengths of the interval
_ROUNDING = 1e-4  # of the log-likelihood of an end

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""A value and its derivatives (P,), of parameters (P,)."""


def profile_interval(
    log_likelihood: Function, log_odds: Function, best: np.ndarray, covariance: np.ndarray, drop: float
) -> tuple[float, float]:
    """Ends of the profile-likelihood interval of a share.

    Args:
        log_likelihood: in nats.
        log_odds: of the share.
        best: (P,), the parameters with the largest likelihood.
        covariance: (P, P), of these parameters; positive definite.
        drop: half a quantile of the chi-square distribution with one degree of freedom, above 0.

    Returns:
        two shares; 0 or 1 if no share down to 2e-9, or up to 1 - 2e-9, is rejected, or if the steps do not converge.
        They are local extremes, the farther one of two searches.
    """
    squares, directions = np.linalg.eigh(covariance)
    units = directions * np.minimum(np.sqrt(squares), _LARGEST_UNIT)
    search = _Search(log_likelihood, log_odds, best, units, log_likelihood(best)[0] - drop)
    low, high = search.end(-1), search.end(1)
    return (
        float(special.expit(low)) if low > -FARTHEST else 0.0,
        float(special.expit(high)) if high < FARTHEST else 1.0,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Search:
    """The largest log odds, or their negative, where the log-likelihood is not below ``least``.

    ``units`` (P, P) map points of the search to differences from ``best``.
    """

    log_likelihood: Function
    log_odds: Function
    best: np.ndarray
    units: np.ndarray
    least: float

    def end(self, side: int) -> float:
        """Log odds at the end on this side, 1 or -1, from -20 to 20; that number itself if no steps converge."""
        (_, centre), (_, slope) = self._at(np.zeros_like(self.best))
        length = float(np.linalg.norm(slope))
        ends = []
        for start in _STARTS:
            found = self._climb(side, start * side * slope / length, length)
            (above, odds), _ = self._at(found.x)
            if found.success and above >= -_ROUNDING and side * (odds - centre) >= 0:
                ends.append(float(np.clip(odds, -FARTHEST, FARTHEST)))
        return side * max((side * odds for odds in ends), default=FARTHEST)

    def _climb(self, side: int, start: np.ndarray, length: float) -> scipy.optimize.OptimizeResult:
        """Sequential quadratic programming from a point; the log odds are divided by a length, their slope."""
        signs, limits = np.array([1.0, -side / length]), np.array([0.0, _LIMIT / length])

        @functools.lru_cache(maxsize=1)  # all functions are called at one point after the other
        def at(point: bytes) -> tuple[np.ndarray, np.ndarray]:
            values, slopes = self._at(np.frombuffer(point))
            return signs * values, signs[:, np.newaxis] * slopes

        return scipy.optimize.minimize(
            lambda point: at(point.tobytes())[0][1],
            start,
            jac=lambda point: at(point.tobytes())[1][1],
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda point: at(point.tobytes())[0] + limits,
                "jac": lambda point: at(point.tobytes())[1],
            },
            options={"ftol": _CLOSE, "maxiter": _MOST_STEPS},
        )

    def _at(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The excess of the log-likelihood and the log odds (2,), and their derivatives (2, P)."""
        at = self.best + self.units @ point
        (height, ascent), (odds, slope) = self.log_likelihood(at), self.log_odds(at)
        return np.array([height - self.least, odds]), np.stack([ascent, slope]) @ self.units
