"""Canaries by hand, and those that say nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.campaigns.attacks import CANARIES, UNSOUND, WATCHED, closed, missing_noise, with_canaries
from tests.support.cases import ALL_COLLECTIONS
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator, normal_limit
from uldp_transforms.ldp import CohortCounts, Collection, SpecError
from uldp_transforms_planner.planning.canaries import CanaryShare, canary_share


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


@pytest.mark.parametrize(("share", "epsilon"), UNSOUND)
def test_canaries_measure_who_sends_no_noise(share, epsilon):
    """Mean as computed, spread as reported; the standard error is the one of a binomial count."""
    rng, draw, num_windows = generator("canary", share, epsilon), with_canaries(share, epsilon), 40
    found = [canary_share(WATCHED, draw(rng), CANARIES) for _ in range(num_windows)]
    shares = np.array([item.share for item in found])
    noise = 10 / (50 + math.expm1(1))  # a canary, in an honest report
    error = math.sqrt((1 - noise) / (200_000 * noise))
    assert [item.standard_error for item in found] == pytest.approx([error] * num_windows, rel=1e-6)
    # clients of another epsilon send noise too: their variance differs by at most the share of them
    assert abs(shares.mean() - missing_noise(share, epsilon)) <= normal_limit() * 1.1 * error / math.sqrt(num_windows)


@pytest.mark.parametrize("mechanism", ["krr", "urr", "ss", "uss", "rappor", "urap", "hr", "uhr"])
def test_the_share_of_silent_reports_is_exact(mechanism):
    """Expected counts of honest people who hold no canary, and silent protected reports among them."""
    item = closed(mechanism, 9, 6)
    shares = np.where(np.isin(np.arange(9), (2, 3)), 0.0, 1 / 7)
    n, fake = 10**12, 3 * 10**10
    cells = np.rint((n - fake) * item.mechanism.response(shares)).astype(np.int64)
    found = canary_share(item, CohortCounts(np.array([n]), cells[np.newaxis]), ["value 2", "value 3"])
    assert found.share == pytest.approx(0.03, rel=1e-6)


def test_canaries_of_unary_bits_are_compared_with_protected_reports():
    item = closed("urap", 9, 6)
    counts = CohortCounts(np.array([10_000]), np.array([[2900, 3000, 2500, 2700, 2800, 2900, 700, 500, 400]]))
    psi = 1 / (1 + math.exp(0.5))
    found = canary_share(item, counts, ["value 2", "value 3"])
    assert found.share == pytest.approx((2 * psi * 8400 - 5200) / (2 * psi * 10_000), rel=1e-6)


def test_canaries_that_cannot_speak():
    item = closed("urr", 6, 3)
    counts = item.count(item.perturb(["value 1"] * 20, generator("silent")))
    assert canary_share(item, counts, ["value 5"]) is None  # not sensitive
    assert canary_share(item, CohortCounts.empty(1, 6), ["value 2"]) is None
    buckets = ALL_COLLECTIONS["hashed-krr"]
    assert canary_share(buckets, buckets.count(buckets.perturb(["ant"] * 9, generator("b"))), ["yak"]) is None
    missing = ALL_COLLECTIONS["closed-tsp"]
    assert canary_share(missing, missing.count(missing.perturb(["ant"] * 9, generator("t"))), ["bee"]) is None
    with pytest.raises(SpecError, match=r"Closed\.values lists 6 values, got 1 value"):
        canary_share(item, counts, ["yak"])
    with pytest.raises(SpecError, match="candidates must"):
        canary_share(item, counts, [])
