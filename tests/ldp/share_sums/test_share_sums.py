"""Sums and their variances, beside those by dense algebra, by simulation and by enumeration."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from tests.support.calibration import assert_calibrated, windows
from tests.support.lists_to_sum import VALUES, ZIPF, K, collection
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.errors import NoReportsError
from uldp_transforms.ldp.estimators.number_sums import NumberReports
from uldp_transforms.ldp.share_sums import NamedSum, ShareSums
from uldp_transforms.ldp.share_sums.sum_estimate import estimate_of_sums, figures_of_sums

COST = {value: float(at % 5) - 1.5 for at, value in enumerate(VALUES)}
SUMS = (
    NamedSum("two", ("v00", "v09")),
    NamedSum("last", VALUES[6:]),
    NamedSum("all but one", VALUES[1:]),
    NamedSum("cost", tuple(COST), tuple(COST.values())),
)
WEIGHTS = np.array([one.weights_of(VALUES) for one in SUMS])
EVERYBODY = NamedSum("everybody", match="*")


def sums_of(item: Collection, counts: CohortCounts, sums: tuple[NamedSum, ...] = SUMS, times: int = 1) -> ShareSums:
    return ShareSums([NumberReports(item, counts, times)], sums, VALUES)


def counts_of(item: Collection, people: int, *names: object) -> CohortCounts:
    rng = generator("counts", item.id, item.mechanism.id, people, *names)
    return windows(item, VALUES, ZIPF, 1, people, rng=rng)[0]


ITEMS = [
    ("urap", "half"),
    ("krr", "closed"),
    ("ss", "closed"),
    ("rappor", "closed"),
    ("hr", "closed"),
    ("urr", "half"),
    ("uss", "half"),
    ("krr", "hashed"),
    ("krr", "permuted"),
    ("urap", "listed"),
    ("krr", "blocks"),
    ("rappor", "blocks"),
    ("uss", "partly"),
    ("levels", "leveled"),
]
items = pytest.mark.parametrize(("mechanism", "of"), ITEMS)


@items
def test_sums_are_unbiased_with_their_variances_and_intervals(mechanism: str, of: str) -> None:
    """In 400 windows of 3,000 reports; sums are shares of their ranges, as in comparisons."""
    item, rng = collection(mechanism, of=of), generator("calibrated", mechanism, of)
    truth = WEIGHTS @ ZIPF
    found: list[Estimate] = []
    for counts in windows(item, VALUES, ZIPF, 400, 3_000, rng=rng):
        estimate = item.estimate(counts, "empirical", candidates=VALUES if of == "hashed" else None)
        sums = sums_of(item, counts)
        found.append(estimate_of_sums(sums, estimate))
    span = sums.spans
    assert_calibrated(found, (truth - sums.least) / span, 0.0, slack=0.1, cautious=np.ones(len(truth), dtype=bool))


@items
def test_a_sum_over_all_values_of_a_known_list_is_1(mechanism: str, of: str) -> None:
    """People have one value each, so nothing is estimated; in an open list somebody may have another value."""
    item = collection(mechanism, of=of)
    counts = counts_of(item, 500)
    sums = sums_of(item, counts, (EVERYBODY, NamedSum("price", VALUES, (7.5,) * K)))
    if of == "hashed":
        assert (sums.variances > 0).all() and sums.least.tolist() == [0, 0]
        return
    np.testing.assert_array_equal(sums.totals, [1, 7.5])
    np.testing.assert_array_equal(sums.variances, 0)
    estimate = item.estimate(counts, "eb")
    for one in figures_of_sums(sums, estimate_of_sums(sums, estimate)):
        assert one.value == one.low == one.high == one.display_low == one.display_high == one.least == one.most


@items
def test_a_set_and_its_complement_sum_to_1(mechanism: str, of: str) -> None:
    item = collection(mechanism, of=of)
    if of == "hashed":
        pytest.skip("an open list has no complement")
    parts = (NamedSum("first", VALUES[:4]), NamedSum("others", VALUES[4:]))
    sums = sums_of(item, counts_of(item, 700), parts)
    assert sums.totals.sum() == pytest.approx(1, abs=1e-9)
    assert sums.variances[0] == pytest.approx(sums.variances[1], rel=1e-6)


@pytest.mark.parametrize("mechanism", ["krr", "ss"])
def test_of_k_rr_and_subsets_a_sum_is_that_of_the_raw_shares(mechanism: str) -> None:
    """Their unbiased shares sum to 1, so nothing is left to be corrected."""
    item = collection(mechanism)
    counts = counts_of(item, 2_000)
    raw = item.estimate(counts, "empirical").raw_frequencies
    sums = sums_of(item, counts)
    np.testing.assert_allclose(sums.totals, WEIGHTS @ raw, atol=1e-12)
    dense = np.diag(WEIGHTS @ item.mechanism.covariance(raw) @ WEIGHTS.T) / 2_000
    of_symbols = item.alphabet.symbol_table(VALUES, 1)[0]
    np.testing.assert_array_equal(of_symbols, np.arange(K))
    np.testing.assert_allclose(sums.variances, dense, rtol=0.01)


@pytest.mark.parametrize("mechanism", ["rappor", "hr"])
def test_the_known_total_makes_large_sets_precise(mechanism: str) -> None:
    """Bits are noisy one by one: all values but one are known as well as the one that is missing."""
    item = collection(mechanism)
    counts = counts_of(item, 5_000)
    sums = sums_of(item, counts, (NamedSum("one", VALUES[:1]), NamedSum("others", VALUES[1:])))
    raw = item.estimate(counts, "empirical")
    alone = item.mechanism.variance_of(np.append(0.0, np.ones(K - 1)), ZIPF) / 5_000
    assert sums.variances[1] == pytest.approx(sums.variances[0]) and sums.variances[1] < 0.5 * alone
    assert sums.variances[0] <= raw.standard_errors[0] ** 2


def test_weights_far_from_0_are_those_near_0() -> None:
    """Such as seconds since 1970."""
    item = collection("rappor")
    counts = counts_of(item, 2_000)
    shifted = tuple(COST[value] + 1.7e9 for value in VALUES)
    near, far = (
        sums_of(item, counts, (NamedSum("cost", VALUES, weights),)) for weights in (tuple(COST.values()), shifted)
    )
    assert far.totals[0] - 1.7e9 == pytest.approx(near.totals[0], abs=1e-5)
    assert far.variances[0] == pytest.approx(near.variances[0], rel=1e-6)


# ---------------------------------------------------------------------- versions, repeated people, memos


@pytest.mark.parametrize("unit", [1e-90, 1e-15, 1e-5, 1e8, 1e90])
@pytest.mark.parametrize(("mechanism", "of"), [("rappor", "closed"), ("uss", "half"), ("krr", "permuted")])
def test_sums_do_not_depend_on_units(mechanism: str, of: str, unit: float) -> None:
    item = collection(mechanism, of=of)
    counts = counts_of(item, 3_000, "units", of)
    own = sums_of(item, counts, SUMS[3:])
    other = sums_of(item, counts, (NamedSum("in units", tuple(COST), tuple(unit * one for one in COST.values())),))
    np.testing.assert_allclose(other.totals, unit * own.totals, rtol=1e-9, atol=1e-9 * unit)
    np.testing.assert_allclose(np.sqrt(other.variances), unit * np.sqrt(own.variances), rtol=1e-9)


def test_versions_are_pooled_by_their_numbers_of_reports() -> None:
    """Two versions of k-RR with as many reports are one with twice as many."""
    item, later = collection("krr"), dataclasses.replace(collection("krr"), version=2)
    parts = [counts_of(item, 4_000, part) for part in range(2)]
    both = ShareSums([NumberReports(item, parts[0]), NumberReports(later, parts[1])], SUMS, VALUES)
    whole = sums_of(item, CohortCounts(parts[0].num_reports + parts[1].num_reports, parts[0].cells + parts[1].cells))
    np.testing.assert_allclose(both.totals, whole.totals, atol=1e-9)
    np.testing.assert_allclose(both.variances, whole.variances, rtol=0.01)
    for one, other in zip(both.intervals(0.95), whole.intervals(0.95)):
        np.testing.assert_allclose(one, other, atol=0.003)
    assert both.reports[0].model is item and len(both.reports) == 2


def test_without_reports_there_is_no_sum() -> None:
    item = collection("krr")
    nothing = counts_of(item, 5)
    empty = CohortCounts(0 * nothing.num_reports, 0 * nothing.cells)
    with pytest.raises(NoReportsError, match="sums need reports, got none"):
        sums_of(item, empty)
    both = ShareSums([NumberReports(item, empty), NumberReports(item, nothing)], SUMS, VALUES)
    np.testing.assert_array_equal(both.totals, sums_of(item, nothing).totals)


@pytest.mark.parametrize("times", [1, 5])
def test_people_who_report_several_times_add_the_variance_of_their_values(times: int) -> None:
    """Reports of a person agree in the value, not in the noise: t (1 - t) / n for each report more, of a set."""
    item = collection("krr")
    counts = counts_of(item, 3_000)
    once, often = sums_of(item, counts), sums_of(item, counts, times=times)
    shares = once.totals[:3]
    people = (shares * (1 - shares) + once.variances[:3]) / 3_000
    np.testing.assert_allclose(often.variances[:3] - once.variances[:3], (times - 1) * people, rtol=1e-4, atol=1e-15)
    np.testing.assert_allclose(often.of_people[:3], times * people, rtol=1e-4)
    low, high = often.intervals(0.95)
    narrow_low, narrow_high = once.intervals(0.95)
    np.testing.assert_allclose((high - low) / (narrow_high - narrow_low), np.sqrt(often.variances / once.variances))
    np.testing.assert_array_equal(often.common, 0)


def test_memos_are_noise_that_windows_share() -> None:
    item = collection("krr", 3.0, epsilon_inf=4.0)
    counts = counts_of(item, 20_000)
    sums = sums_of(item, counts)
    memo = item.mechanism.memo.variance_of(WEIGHTS, ZIPF) / 20_000  # type: ignore[attr-defined]
    people = (WEIGHTS**2 @ ZIPF - (WEIGHTS @ ZIPF) ** 2) / 20_000
    np.testing.assert_allclose(sums.common, memo - people, rtol=0.1)
    assert (sums.common + sums.of_people < sums.variances).all()
    often = sums_of(item, counts, times=3)
    np.testing.assert_allclose(often.common, 3 * sums.common)
    np.testing.assert_allclose(often.variances - sums.variances, 2 * memo, rtol=0.1)


def test_hash_noise_is_common() -> None:
    """Windows of the same hash functions; unlisted texts collide with the listed ones."""
    item, rng = collection("krr", 6.0, of="hashed"), generator("hash noise")
    people = rng.choice([*VALUES, *(f"other {at}" for at in range(40))], 200_000, p=[*(ZIPF / 2), *([1 / 80] * 40)])
    counts = item.count(item.perturb(people.tolist(), rng))
    sums = sums_of(item, counts)
    assert (sums.common > 0.5 * sums.variances).all() and (sums.common <= sums.variances).all()


# ---------------------------------------------------------------------- what is shown


def test_the_shown_sum_is_that_of_the_shown_shares_within_a_standard_error() -> None:
    """Of 60 values with much noise, half of which everybody has: shrunk shares are far from what their sum is known to
    be, and the interval is not made longer for them."""
    values = tuple(f"w{at:02}" for at in range(60))
    item = Collection.from_json(
        {
            "id": "rare",
            "version": 1,
            "alphabet": {"id": "closed", "values": list(values)},
            "mechanism": {"id": "ss", "epsilon": 1.0},
        }
    )
    shares = np.repeat([1 / 30, 0.0], 30)
    [counts] = windows(item, values, shares, 1, 4_000, rng=generator("shrunk"))
    estimate = item.estimate(counts, "eb")
    sums = ShareSums(
        [NumberReports(item, counts)], (NamedSum("held", values[:30]), NamedSum("one", values[:1])), values
    )
    held, one = figures_of_sums(sums, estimate_of_sums(sums, estimate))
    added = sums.weights @ estimate.frequencies
    assert added[0] < held.low < held.display_value < held.value, "it is moved into the interval, not to its end"
    assert held.value - held.display_value == pytest.approx(held.standard_error, rel=0.05)
    assert held.display_low > added[0], "the interval does not reach the sum of the shrunk shares"
    assert one.display_value == pytest.approx(added[1]) and one.display_low <= added[1] <= one.display_high


def test_the_i_th_largest_set_has_a_level_of_its_own() -> None:
    """As single values have it; weights are in other units, and groups count for all."""
    item = collection("krr")
    counts = counts_of(item, 5_000)
    sums = sums_of(item, counts)
    estimate = dataclasses.replace(item.estimate(counts, "eb"), num_groups=3)
    scaled = estimate_of_sums(sums, estimate)
    figures = {one.name: one for one in figures_of_sums(sums, scaled)}
    order = np.argsort(-scaled.frequencies)
    for rank, place in enumerate(order.tolist(), start=1):
        one = figures[SUMS[place].name]
        if not one.is_share:
            assert (one.display_low, one.display_high) == pytest.approx((one.low, one.high))
            continue
        low, high = sums.intervals(1 - 0.05 * rank / (3 * len(SUMS)), strict=True)
        assert one.display_low == pytest.approx(max(min(low[place], one.low), 0), abs=1e-9)
        assert one.display_high == pytest.approx(min(max(high[place], one.high), 1), abs=1e-9)


# ---------------------------------------------------------------------- lies

SMALL = {"krr": {}, "ss": {"subset_size": 2}, "rappor": {}, "hr": {}, "urr": {}, "uss": {"subset_size": 2}, "urap": {}}


@pytest.mark.parametrize("name", SMALL)
def test_no_report_moves_a_sum_by_more_than_its_effect(name: str) -> None:
    """Every report that clients can send, one by one; where reports are sets, an end is reached."""
    values = [str(at) for at in range(5)]
    alphabet = {"id": "closed", "values": values} | ({"sensitive": values[:3]} if name.startswith("u") else {})
    item = Collection.from_json(
        {"id": "small", "version": 1, "alphabet": alphabet, "mechanism": {"id": name, "epsilon": 1.0} | SMALL[name]}
    )
    rng = generator("effects", name)
    batch = item.perturb(list(itertools.islice(itertools.cycle(values), 20_000)), rng)
    single = np.array(
        [
            item.mechanism.invert(item.count(dataclasses.replace(batch, **_one(batch, at))))[0]
            for at in _different(batch)
        ]
    )
    weights = np.concatenate([np.eye(5), rng.normal(size=(20, 5)), rng.integers(0, 2, (10, 5))])
    reached = weights @ single.T
    least, most = item.mechanism.effects_of_sums(weights)
    assert (reached.min(axis=1) >= least - 1e-9).all() and (reached.max(axis=1) <= most + 1e-9).all()
    if name not in ("hr",):  # of which only some sets of symbols are reports
        np.testing.assert_allclose(reached.max(axis=1), most, atol=1e-9)
        np.testing.assert_allclose(reached.min(axis=1), least, atol=1e-9)
    np.testing.assert_allclose(most[:5], item.mechanism.largest_effects)
    np.testing.assert_allclose(least[:5], item.mechanism.smallest_effects)


def _different(batch: Any) -> list[int]:
    return np.unique(batch.payloads, axis=0, return_index=True)[1].tolist()


def _one(batch: Any, at: int) -> dict[str, Any]:
    arrays = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
    return {name: value[at : at + 1] for name, value in arrays.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("mechanism", ["krr", "ss", "rappor"])
def test_intervals_allow_for_lies(mechanism: str) -> None:
    """Liars who all name one value of the set do not move the truth among honest people out of the interval."""
    item, rng = collection(mechanism, 3.0), generator("liars", mechanism)
    honest, lies = rng.choice(VALUES, 19_000, p=ZIPF).tolist(), ["v11"] * 1_000
    counts = item.count(item.perturb(honest + lies, rng))
    sums, estimate = sums_of(item, counts), item.estimate(counts, "eb")
    truth = np.array([np.mean([value in VALUES[6:] for value in honest])])
    allowing = estimate_of_sums(sums, estimate).with_lies(sums.lies(0.05))
    one = figures_of_sums(sums, allowing)[1]
    plain = figures_of_sums(sums, estimate_of_sums(sums, estimate))[1]
    assert plain.low > truth[0], "the lies are seen"
    assert one.low < truth[0] < one.high and one.high - one.low > plain.high - plain.low
    np.testing.assert_allclose(sums.lies(0.0).bounds(*sums.intervals(0.95)), sums.intervals(0.95))
