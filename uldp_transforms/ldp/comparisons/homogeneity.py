"""Whether groups of people differ at all."""

from __future__ import annotations

from collections.abc import Sequence

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.pooled_versions import Agreement, PooledVersions


def homogeneity(model: Model, groups: Sequence[CohortCounts]) -> Agreement | None:
    """Chi-square test whether all groups have the same shares, with (G - 1)(K - 1) degrees of freedom.

    A large p-value does not say that groups are alike: noise hides much. The intervals of ``compare`` say how much.

    Examples:
        >>> import numpy as np
        >>> from uldp_transforms.ldp import Collection, homogeneity
        >>> collection = Collection.from_json("C.json")
        >>> rng = np.random.default_rng(1)
        >>> arms = (["flu"] * 6000 + ["cold"] * 4000, ["flu"] * 3000 + ["cold"] * 7000)
        >>> counts = [collection.count(collection.perturb(arm, rng)) for arm in arms]
        >>> test = homogeneity(collection, counts)
        >>> test.degrees, bool(test.p_value < 0.001)
        (3, True)

    Args:
        model: the collection of all groups, in which every value has a symbol of its own.
        groups: counts of two groups or more; those without reports are left out.

    Returns:
        The test; None if fewer than two groups have reports.

    Raises:
        SpecError: for fewer than two groups, counts of another shape, or values that share symbols.
        NoReportsError: if no group has reports.
    """
    if len(groups) < 2:
        raise SpecError(f"homogeneity needs two groups or more, got {len(groups)}")
    return PooledVersions([model] * len(groups)).estimate(groups).agreement
