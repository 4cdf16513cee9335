"""Differences of rare values: an estimate below 0 in one group is no evidence about the other.

``python -m packages.compare.tests.test_noisy_zero_differences`` prints how often a difference is found, with and
without the extension of intervals.
"""

from __future__ import annotations

import numpy as np

from tests.support.ldp.made_collections import made
from tests.support.ldp.noisy_zeros import of_counts, rare
from tests.support.tolerance import generator
from uldp_transforms.rows.figures.compared_figures import difference_interval
from uldp_transforms_compare.comparisons import compare
from uldp_transforms_compare.comparisons.compare import _Pair

WINDOWS = 400


def test_differences_and_lifts_take_a_noisy_zero_as_0() -> None:
    item, low_counts, zero_counts = rare()
    noisy, zero = (item.estimate(each, "eb") for each in (low_counts, zero_counts))
    own, as_zero = (compare(one, zero) for one in (noisy, zero))
    assert own.differences[0] == noisy.raw_frequencies[0] - zero.raw_frequencies[0]  # unbiased as before
    assert own.high[0] >= as_zero.high[0] - 1e-3 and own.low[0] <= own.differences[0]
    assert own.p_values[0] > 0.5  # nothing is told from nothing
    turned = compare(zero, noisy)
    np.testing.assert_allclose((turned.low[0], turned.high[0]), (-own.high[0], -own.low[0]))
    lifts = compare(noisy, item.estimate(of_counts(item, *[400] * 16), "eb"))
    assert lifts.lifts[0] < 0 and lifts.lift_low[0] <= lifts.lifts[0]
    assert lifts.lift_high[0] > 1.5 * noisy.standard_errors[0] / (1 / 16)


def found_differences(share: float, windows: int = WINDOWS) -> tuple[float, float]:
    """Share of comparisons in which an interval without 0 tells a group of which nobody has a value from one of which
    this share has it, before and after; with k-RR, 16 values, epsilon 2 and 6,423 people in each group."""
    names, rng = sorted(map(str, range(16))), generator("differences of noisy zeros", share)
    item = made({"id": "closed", "values": names}, {"id": "krr", "epsilon": 2.0}, id="a")
    shares = [np.array([of_rare, *[(1 - of_rare) / 15] * 15]) for of_rare in (0.0, share)]
    found = np.zeros(2)
    for _ in range(windows):
        people = (rng.choice(names, 6_423, p=each).tolist() for each in shares)
        one, other = (item.estimate(item.count(item.perturb(each, rng)), "projected") for each in people)
        ends = difference_interval(
            one.raw_frequencies, other.raw_frequencies, *one.unclipped(0.95), *other.unclipped(0.95)
        )
        pair = _Pair.of(one, other, 0.95, None)
        found += [not low[0] <= 0 <= high[0] for low, high in (ends, pair.interval(0.95))]
    return tuple(found / windows)


def main() -> None:
    print("| share in the other group | found without the rule | with it |\n|---|---|---|")
    for share in (0.0, 0.02, 0.035, 0.05):
        print("| {} | {:.3f} | {:.3f} |".format(share, *found_differences(share)), flush=True)


if __name__ == "__main__":
    main()
