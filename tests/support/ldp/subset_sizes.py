"""Subset selection with two sizes: the mechanisms to test, and the sizes that people report."""

from __future__ import annotations

import numpy as np

from tests.support.cases import SET_REPORTS_TO_TEST, as_array, each_mechanism, exact_channel
from uldp_transforms.ldp.mechanisms import UtilityOptimizedSubsetSelection
from uldp_transforms.ldp.mechanisms.subset_scores import least_favourable_share

CASES = [case for case in SET_REPORTS_TO_TEST if getattr(case, "larger_share", None) is not None]
two_sizes = each_mechanism(CASES)


def sizes_of_people(mechanism: UtilityOptimizedSubsetSelection) -> np.ndarray:
    """(v,): how often people with sensitive symbols report a set of 1, ..., v, from the channel."""
    found = np.zeros(mechanism.num_sensitive)
    payloads, rows = exact_channel(mechanism)
    for size, row in zip(mechanism.supports(as_array(payloads))[:, : mechanism.num_sensitive].sum(axis=1), rows):
        found[size - 1] += float(row[0]) if size else 0.0
    return found


def share_of(mechanism: UtilityOptimizedSubsetSelection) -> float:
    """The least favourable one."""
    shares = sizes_of_people(mechanism)
    sizes = np.flatnonzero(shares) + 1.0
    counted = shares[shares > 0]
    return least_favourable_share(mechanism.num_symbols, mechanism.num_sensitive, mechanism.gain, sizes, counted)
