"""Whether groups of people differ at all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.pooled_versions import Agreement, PooledVersions
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize

POWER = 0.8
"""Probability with which a noticeable shift is noticed."""


def homogeneity(model: Model, groups: Sequence[CohortCounts]) -> Agreement | None:
    """Chi-square test whether all groups have the same shares.

    It has (G - 1)(K - 1) degrees of freedom, and G more if the frequencies of a group do not sum to 1 by themselves.
    Values with too few expected reports are merged, group by group, which leaves fewer.

    A large p-value does not say that groups are alike: noise hides much. The intervals of ``compare`` say how much.

    Examples:
        >>> import numpy as np
        >>> from uldp_transforms.ldp import Collection
        >>> from uldp_transforms_compare.comparisons import homogeneity
        >>> collection = Collection.from_json("C.json")
        >>> rng = np.random.default_rng(1)
        >>> arms = (["flu"] * 6000 + ["cold"] * 4000, ["flu"] * 3000 + ["cold"] * 7000)
        >>> counts = [collection.count(collection.perturb(arm, rng)) for arm in arms]
        >>> test = homogeneity(collection, counts)
        >>> test.degrees, bool(test.p_value < 0.001)
        (2, True)

    Args:
        model: the collection of all groups, in which every value has a symbol of its own.
        groups: counts of two groups or more; those without reports are left out.

    Returns:
        The test; None if fewer than two groups have enough reports for it.

    Raises:
        SpecError: for fewer than two groups, counts of another shape, or values that share symbols.
        NoReportsError: if no group has reports.
    """
    return Homogeneity.of(model, groups).agreement


@dataclasses.dataclass(frozen=True, eq=False)
class Homogeneity:
    """The test of ``homogeneity``, with what its power depends on.

    Attributes:
        pooled: copies of the collection.
        raw: (K,) pooled frequencies, unbiased.
        sizes: numbers of reports of the groups that have some.
        agreement: the test; None if fewer than two groups have enough reports for it.
    """

    pooled: PooledVersions
    raw: np.ndarray
    sizes: np.ndarray
    agreement: Agreement | None

    @classmethod
    def of(cls, model: Model, groups: Sequence[CohortCounts]) -> Homogeneity:
        """The test of some groups; arguments and errors as for ``homogeneity``."""
        if len(groups) < 2:
            raise SpecError(f"homogeneity needs two groups or more, got {len(groups)}")
        pooled = PooledVersions([model, model])
        raw, agreement = pooled.estimate_copies(groups)
        sizes = np.array([group.total for group in groups if group.total], dtype=np.float64)
        return cls(pooled, raw, sizes, agreement)

    def noticeable_shift(self, alpha: float, power: float = POWER) -> float:
        """See ``noticeable_shift``."""
        if self.agreement is None:
            return math.inf
        degrees, sizes = self.agreement.degrees, self.sizes
        held = clip_and_normalize(self.raw) + 0.5 / sizes.sum()
        held /= held.sum()
        shifts = np.eye(len(held)) - held / (1 - held)[:, np.newaxis]
        np.fill_diagonal(shifts, 1)
        inverse = np.linalg.pinv(self.pooled.covariance_of_report(0, held), hermitian=True)
        of_values = np.einsum("xi,ij,xj->x", shifts, inverse, shifts, optimize=True)
        noncentrality = special.chndtrinc(special.chdtri(degrees, alpha), degrees, 1 - power)
        return float(np.sqrt(noncentrality / (of_values.min() * (sizes * (1 - sizes / sizes.sum())).min())))


def noticeable_shift(model: Model, groups: Sequence[CohortCounts], alpha: float = 0.05, power: float = POWER) -> float:
    """The shift of one value in one group that ``homogeneity`` notices with this probability, whatever value and group.

    If the share of value x is higher by d in group g than in the others, and those of all other values are lower in
    proportion, the statistic has the noncentral chi-square law with noncentrality n_g (1 - n_g / n) d^2 s^T V^- s. Here
    V is the covariance of one report at the pooled estimate, and s the direction of the shift.

    Args:
        model, groups: as for ``homogeneity``.
        alpha: largest p-value of a difference that is noticed.
        power: probability, above ``alpha``.

    Returns:
        d, the largest over values and groups; above 1 if no shift is noticed so often, infinity if there is no test.

    Source: Patnaik 1949, for the power of chi-square tests.
    """
    return Homogeneity.of(model, groups).noticeable_shift(alpha, power)
