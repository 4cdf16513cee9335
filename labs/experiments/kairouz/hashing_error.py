"""The exact error of least squares over cohorts, so that buckets and cohorts can be chosen without simulating.

Cohort c sees the symbol h_c(s) of value s. With X_c the 0/1 matrix of h_c minus 1/k, least squares over equally large
cohorts has, n being the number of reports, the covariance

    n Cov = P M P,    P^-1 = mean_c X_c^T X_c  (on the plane sum(p) = 1, if all values are listed),
    M = mean_c X_c^T (diag(d_c) - q_c q_c^T) X_c,    q_c = H_c p,

where d_c is the unshared part of the variance of the mechanism's inverse, an affine function of q_c: the mechanism
and epsilon enter through two numbers only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from labs.experiments.kairouz import inputs
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import KaryRR, Rappor

COUNTERS = 1 << 14
"""C * k, the counters of a window: what precision is bought with, equal for all designs."""

BUCKETS = (2, 4, 8, 16, 32, 64, 128, 256)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Buckets and cohorts, with all that the error depends on besides the mechanism; arrays are (S,).

    Attributes:
        num_buckets: k.
        num_cohorts: C.
        noise: n times the variance per unit of d_c that is the same in all buckets.
        held: n times the variance per unit of the slope of d_c.
        sampling: what is known better because the people of a bucket exclude those of another.
    """

    num_buckets: int
    num_cohorts: int
    noise: np.ndarray
    held: np.ndarray
    sampling: np.ndarray

    def variances(self, mechanism: str, epsilon: float) -> np.ndarray:
        """n times the variance of each estimated share; (S,)."""
        of_empty, slope = _bucket_noise(mechanism, self.num_buckets, epsilon)
        return of_empty * self.noise + slope * self.held - self.sampling

    def expected(self, mechanism: str, epsilon: float) -> float:
        """n times the expected squared l2 loss of the empirical estimate."""
        return float(self.variances(mechanism, epsilon).sum())


def _bucket_noise(mechanism: str, num_buckets: int, epsilon: float) -> tuple[float, float]:
    """Unshared variance of an empty bucket, and what it grows by per share of people in the bucket."""
    kinds = {KaryRR.id: KaryRR, Rappor.id: Rappor}
    of_bucket = kinds[mechanism](num_symbols=num_buckets, num_sensitive=num_buckets, epsilon=epsilon)
    full, empty = of_bucket.private_variances(np.eye(num_buckets)[0])[:2]
    return float(empty), float(full - empty)


def design(spec: Collection, values: tuple[str, ...], frequencies: np.ndarray) -> Design:
    """Expected errors of least squares over the collection's alphabet and cohorts.

    Args:
        spec: over a permuted or a hashed alphabet; its mechanism does not matter.
        values: S candidates, all that people hold.
        frequencies: (S,) of people.
    """
    k, num_cohorts = spec.alphabet.num_symbols, spec.num_cohorts
    table = spec.alphabet.symbol_table(values, num_cohorts)
    cells = (table[..., np.newaxis] == np.arange(k)).transpose(0, 2, 1).reshape(num_cohorts * k, len(values))
    held = cells @ frequencies
    spread = held.reshape(num_cohorts, k)[np.arange(num_cohorts)[:, np.newaxis], table] - 1 / k
    matrix = cells - 1 / k
    gram = matrix.T @ matrix / num_cohorts
    if spec.alphabet.known_values is None:
        inverse = np.linalg.inv(gram)
    else:
        plane = np.eye(len(values)) - 1 / len(values)
        inverse = np.linalg.pinv(plane @ gram @ plane, hermitian=True)
    return Design(
        num_buckets=k,
        num_cohorts=num_cohorts,
        noise=np.diag(inverse),
        held=_diagonal(inverse, np.sqrt(held)[:, np.newaxis] * matrix) / num_cohorts,
        sampling=_diagonal(inverse, spread) / num_cohorts,
    )


def _diagonal(inverse: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Diagonal of ``inverse @ rows.T @ rows @ inverse``."""
    return ((rows @ inverse) ** 2).sum(axis=0)


def designs(
    frequencies: np.ndarray,
    *,
    closed: bool,
    counters: int = COUNTERS,
    values: tuple[str, ...] | None = None,
) -> list[Design]:
    """Designs with as many cohorts as the counters allow, where these are enough.

    A closed alphabet is folded into fewer buckets than it has values.
    """
    values = inputs.names(len(frequencies)) if values is None else values
    plans = [(k, counters // k) for k in BUCKETS if k < len(values) or not closed]
    plans = [(k, num_cohorts) for k, num_cohorts in plans if num_cohorts * (k - 1) >= 2 * len(values)]
    return [planned(values, frequencies, plan, closed=closed) for plan in plans]


def planned(values: tuple[str, ...], frequencies: np.ndarray, plan: tuple[int, int], *, closed: bool) -> Design:
    """The design with these numbers of buckets and cohorts."""
    spec = collection(KaryRR.id, 1.0, values, plan, closed=closed)  # whose mechanism does not matter
    return design(spec, values, frequencies)


def collection(
    mechanism: str, epsilon: float, values: tuple[str, ...], plan: tuple[int, int], *, closed: bool
) -> Collection:
    """O-RR or O-RAPPOR with these numbers of buckets and cohorts, for these values or for any texts."""
    if closed:
        return inputs.permuted(mechanism, len(values), *plan, epsilon)
    return inputs.hashed(mechanism, *plan, epsilon)


def best(choices: Iterable[Design], mechanism: str, epsilon: float) -> Design:
    """The design with the least expected l2 loss."""
    return min(choices, key=lambda choice: choice.expected(mechanism, epsilon))
