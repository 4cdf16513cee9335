"""Canaries: sensitive values of a closed alphabet that nobody holds, which reveal clients that do not add noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.collection import Collection, canonical_candidates
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize


@dataclasses.dataclass(frozen=True, kw_only=True)
class CanaryShare:
    """Evidence from the canaries in one window.

    Attributes:
        share: estimated share of reports without the canaries' noise: crude fakes, which never report a canary, or
            clients with a larger epsilon, which report canaries too rarely. Unbiased, so it can be negative; if it is
            far below 0, somebody holds or sends canaries, or epsilon is smaller than declared.
        standard_error: of ``share``, if all clients are honest.
    """

    share: float
    standard_error: float


def canary_share(collection: Collection, counts: CohortCounts, canaries: Sequence[str]) -> CanaryShare | None:
    """Estimate the share of reports without the noise that honest clients send.

    The raw frequency of a canary is 0 in expectation, and the contribution of a report without noise is known; the
    share is their ratio. Fakes that avoid the canaries or follow the protocol are not detected.

    Args:
        collection: collection with a closed alphabet.
        counts: counts of its reports.
        canaries: sensitive values that nobody holds; keep them secret and change them regularly.

    Returns:
        None if the share cannot be estimated: no reports, canaries that are not sensitive or have no symbols of their
        own, or a mechanism of another family.

    Raises:
        SpecError: if a canary is not in the alphabet, or is given twice.
    """
    alphabet, mechanism = collection.alphabet, collection.mechanism
    values = canonical_candidates(canaries)
    symbols = alphabet.symbol_table(values, collection.num_cohorts)[0]
    own = alphabet.has_own_symbol(values).all() and (symbols < mechanism.num_sensitive).all()
    if not counts.total or not own or not isinstance(mechanism, SetReportMechanism):
        return None
    raw = mechanism.invert(counts.pooled())[0]
    of_one = len(symbols) * mechanism.silence
    weights = np.zeros(mechanism.num_symbols)
    weights[symbols] = 1
    held = np.where(weights > 0, 0.0, raw)
    variance = float(mechanism.variance_of(weights, clip_and_normalize(held))) / counts.total
    return CanaryShare(share=float(weights @ raw) / of_one, standard_error=float(np.sqrt(variance)) / abs(of_one))
