"""Canaries by hand, and those that say nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.cases import ALL_COLLECTIONS
from tests.support.ldp.made_collections import made
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.planning.canaries import CanaryShare, canary_share


def collection(mechanism: str, sensitive: list[str] | None = None) -> Collection:
    alphabet = {"id": "closed", "values": list("abcd")} | ({"sensitive": sensitive} if sensitive else {})
    return made(alphabet, {"id": mechanism, "epsilon": math.log(4)})


def counted(*cells: int) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)]), np.array([cells]))


def test_the_share_of_reports_without_noise_by_hand() -> None:
    """k-RR of four values draws a canary with 1/7, so two canaries in 2 of 7 reports. If they are in 1 of 7, half of
    the reports have no noise; if in 4 of 7, the share is as far below 0.

    Honest people report one of them with 2/7, a coin: its standard deviation, in units of 2/7, is the error.
    """
    error = math.sqrt(2 / 7 * 5 / 7 / 700) / (2 / 7)
    for cells, share in (((50, 300, 50, 300), 0.5), ((200, 150, 200, 150), -1.0), ((100, 500, 100, 0), 0.0)):
        found = canary_share(collection("krr"), counted(*cells), ["a", "c"])
        assert found == CanaryShare(share=pytest.approx(share, abs=1e-12), standard_error=pytest.approx(error))


def test_canaries_are_sensitive_values_with_symbols_of_their_own() -> None:
    some = collection("urr", ["a", "b"])
    assert canary_share(some, counted(10, 10, 10, 10), ["b"]) is not None
    for canaries in (["c"], ["b", "c"], ["d"]):
        assert canary_share(some, counted(10, 10, 10, 10), canaries) is None
    assert canary_share(some, CohortCounts.empty(1, 4), ["b"]) is None
    hashed = ALL_COLLECTIONS["hashed-krr"]
    assert canary_share(hashed, hashed.count(hashed.perturb(["ant"] * 9)), ["yak"]) is None
