"""The alarm: its probabilities against enumeration, what it keeps, what rings and what must not, by simulation."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from tests.support.ldp.alarm_memories import after, some_memory
from tests.support.ldp.noisy_stream import SHARES, noisy_stream
from tests.support.tolerance import binomial_limits, student_limit
from uldp_transforms.ldp.smoothing import (
    LEAST_HISTORY,
    SUDDEN,
    Alarms,
    Series,
    change_of,
    follow,
    judge,
    smoothed,
    variation,
)
from uldp_transforms.ldp.smoothing import alarm as alarm_module
from uldp_transforms.ldp.smoothing import alarm as evidence_module
from uldp_transforms.ldp.smoothing.alarm import lasting_evidence, which_moved
from uldp_transforms.ldp.smoothing.variation import (
    DRIFTS,
    EFFECTS,
    FIRST_WEIGHTS,
    JUDGED,
    Expectation,
    Memory,
    Told,
    ahead,
    redrawn,
)

EVERY = 1000
LAWS = len(DRIFTS)
MISSED = 2e-6  # rate of false alarms of a test: twice what a side of its limits has


# ------------------------------------------------------------------------------------------------ evidence


def one_law(evidence: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(T, D, 1, S) evidence of lasting changes of (T, S) normal numbers, if there is one law only."""
    judged = np.ones(u.shape, dtype=bool)
    each, _ = lasting_evidence(evidence, u[:, np.newaxis], judged, judged[:, np.newaxis] * 1.0, [np.eye(1)] * len(u))
    return each


def scores(rng: np.random.Generator, windows: int, values: int) -> np.ndarray:
    """Two-sided probabilities of normal numbers (windows, values) of which neighbouring values are much alike."""
    normal = rng.normal(size=(windows, values))
    normal += 2 * rng.normal(size=(windows, 1))  # all values share most of their noise
    return normal / np.sqrt(5)


@pytest.mark.parametrize("sudden", [1.0, SUDDEN, 0.1])
def test_alarms_of_independent_windows_are_as_rare_as_proved_however_values_depend(sudden: float) -> None:
    """One alarm in 20 windows at most: 10 in a stream of 200 windows, on average. Student's limit over streams."""
    every, streams, windows = 20, 40, 200
    alarms = np.zeros(streams)
    for seed in range(streams):
        evidence: np.ndarray = np.zeros((4, 1, 10))
        for u in scores(np.random.default_rng([19, seed]), windows, 10):
            tails = 2 * stats.norm.sf(np.abs(u))
            each = one_law(evidence, u[np.newaxis])
            lasting = np.tensordot(evidence_module.SHARES, each, axes=(0, 1))[:, 0]
            _, moved = which_moved(lasting, tails[np.newaxis], every, sudden)
            evidence = each[0] * (not moved.any())
            alarms[seed] += moved.any()
    limit = student_limit(streams)
    assert alarms.mean() <= windows / every + limit * max(alarms.std(ddof=1), 1) / np.sqrt(streams)
    assert alarms.sum() > 0


def test_evidence_of_one_window_has_at_most_the_mean_1() -> None:
    """By integration over a normal number, for each size and for jumps; numbers beyond 4.5 count as 4.5."""
    u = np.linspace(-14, 14, 200_001)
    weights = stats.norm.pdf(u) * (u[1] - u[0])
    first = one_law(np.zeros((4, 1, len(u))), u[np.newaxis])
    means = first[0, :, 0].astype(float) @ weights
    assert (means < 1 + 1e-6).all()
    size = np.abs(evidence_module.SIZES.astype(float))
    capped = stats.norm.cdf(4.5 - size) + np.exp(4.5 * size - size**2 / 2) * stats.norm.sf(4.5)
    np.testing.assert_allclose(means, capped, rtol=5e-5)
    alone = 0.8 * evidence_module.SHARES * np.exp(4.5 * size - size**2 / 2)
    assert (alone < EVERY).all(), "no window alone is evidence of a change that lasts"
    assert evidence_module.SHARES.sum() == pytest.approx(1)
    every, sudden, size = 50.0, 0.5, 4  # a jump counts size every / sudden, and is as likely as sudden / (size every)
    rates = [
        which_moved(np.zeros((1, size)), np.array([[tail, 1, 1, 1]]), every, sudden)[1].any()
        for tail in (0.0024, 0.0026)
    ]
    assert rates == [True, False]


def test_a_rate_is_that_of_the_rule_that_would_just_alarm() -> None:
    """For jumps of one value of several: rules of a little more and a little fewer false alarms than the rate."""
    tails, nothing = np.array([[0.3, 1e-4, 0.8, 1.0]]), np.zeros((1, 4))
    for sudden in (1.0, SUDDEN, 0.1):
        [rate], _ = which_moved(nothing, tails, 50.0, sudden)
        rings = [which_moved(nothing, tails, every / rate, sudden)[1].any() for every in (0.99, 1.01)]
        assert rings == [True, False], sudden


# ------------------------------------------------------------------------------------------------ laws


def test_a_state_is_placed_among_more_values() -> None:
    """New values begin as in a first window; the others, and what all of them share, are as they were."""
    own = alarm_module.Past(memory=some_memory(5), evidence=np.arange(12 * LAWS, dtype=np.float32).reshape(4, LAWS, 3))
    here, wider = [4, 0, 2], own.placed(5, [4, 0, 2])
    empty = alarm_module.Past.empty(2)
    assert (wider.evidence[..., here] == own.evidence).all() and (wider.evidence[..., [1, 3]] == empty.evidence).all()
    for field in dataclasses.fields(Memory):
        old, new, first = (getattr(each.memory, field.name) for each in (own, wider, empty))
        if field.name == "common":
            assert (new == old).all() and not (old == first).all()
        else:
            assert (new[..., here] == old).all() and (new[..., [1, 3]] == first).all(), field.name


def one_sided(expected: Expectation, law: int, value: int, raw: float, jump: float, *, rises: bool) -> float:
    """Probability of what is as high as a raw share, or as low, under one law; in 64 bits."""
    names = ("level", "variance", "size")
    level, variance, size = (float(getattr(expected, name)[0, law, value]) for name in names)
    edge = 1.5 if law else 1.0  # of the cell of the law
    sigma, step = edge * float(EFFECTS[law, 0]), float(expected.step[0, law, value])
    fixed = variance + float(expected.noise[0, 0, value]) + (edge**2 - 1) * step
    error = np.sqrt(fixed + (sigma * size) ** 2)
    z = (raw - level) / error
    if z > 0:
        ends = np.arcsinh(sigma * np.array([size + raw - level, size]) / np.sqrt(fixed))
        z = (ends[0] - ends[1]) / sigma
        if jump:  # z = limit + lump limit^2
            lump = jump / error / 6
            z = (np.sqrt(1 + 4 * lump * z) - 1) / (2 * lump)
    return float(stats.norm.sf(z) if rises else stats.norm.cdf(z))


@pytest.mark.parametrize("jump", [0.0, 0.02])
def test_probabilities_are_those_of_the_mixture(jump: float) -> None:
    """Summed up law by law, and the side chosen by the mean of the laws."""
    memory = some_memory(1)
    raw = memory.level[0] + np.array([0.2, -0.1, 0.001])
    _, expected = after(memory, raw, np.ones(3), 2000, 2, 1.5)
    scores_of_laws = expected.scores(raw[np.newaxis], jump)
    found = expected.tails(scores_of_laws)[0]
    weights = memory.common[:, np.newaxis].astype(float) * memory.odds
    weights /= weights.sum(axis=0)
    for value in range(3):
        rises = bool(weights[:, value] @ scores_of_laws[0, :, value] > 0)
        each = [one_sided(expected, law, value, raw[value], jump, rises=rises) for law in range(len(DRIFTS))]
        assert found[value] == pytest.approx(min(1, 2 * weights[:, value] @ each), rel=5e-3)


def exact_tail(rise: float, sigma: float, error: float) -> float:
    """Probability that a share of 1, times a lognormal day effect, plus noise, is 1 + ``rise`` or more; an integral."""
    effects = np.linspace(-9, 9, 4001)
    density = stats.norm.pdf(effects) * (effects[1] - effects[0])
    return float(density @ stats.norm.sf((1 + rise - np.exp(sigma * effects)) / error))


@pytest.mark.parametrize("error", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("rare", [1e-2, 1e-3, 1e-5])
def test_rises_are_at_least_as_probable_as_under_lognormal_effects(error: float, rare: float) -> None:
    """And as probable as that where day effects are most of a window's noise. Of a share of 1e-3, times all numbers."""
    one = np.full((1, len(DRIFTS), 1), 1e-3, dtype=np.float32)
    for law in np.flatnonzero(DRIFTS[:, 0] == 0):
        sigma = float(JUDGED[law, 0])
        rise = optimize.brentq(lambda x, *law: exact_tail(x, *law) - rare, 0, 1e4, args=(sigma, error))
        weights = (np.arange(len(DRIFTS)) == law)[np.newaxis, :, np.newaxis].astype(np.float32)
        some = Expectation(
            weights=weights,
            posterior=weights,
            common=weights[..., 0],
            level=one,
            variance=0 * one,
            size=one,
            noise=np.full((1, 1, 1), 1e-6 * error**2, np.float32),
        )
        found = some.tails(some.scores(1e-3 * np.array([[1 + rise]]), 0.0))[0, 0] / 2
        assert found > rare * 0.99
        if sigma > 30 * error:
            assert found < rare * 1.05


def test_weights_are_those_of_laws_that_may_be_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 26^3 ways in which the law of a value may change are summed up; common weights stay."""
    monkeypatch.setattr(variation, "_OWN", np.float32(1e9))
    raw, first = np.array([[0.3], [0.32], [0.35]]), FIRST_WEIGHTS.astype(float)
    told = Told(raw, np.ones((3, 1)), np.full(3, 2000), np.ones(3, dtype=np.int64), 0.0)
    memories, expected = ahead(Memory.empty(1), told)
    total = (expected.variance + expected.effect + expected.noise)[:, :, 0].astype(float)
    likely = stats.norm.pdf(raw, expected.level[:, :, 0], np.sqrt(total))[1:]
    change = redrawn(FIRST_WEIGHTS).astype(float)  # from a law, in its column, to another
    paths = np.einsum("a,ba,cb,a,b->abc", first, change, change, *likely)
    weights = (memories.odds[-1] * memories.common[-1][:, np.newaxis])[:, 0]
    np.testing.assert_allclose(weights, paths.sum(axis=(0, 1)) / paths.sum(), rtol=1e-2)


# ------------------------------------------------------------------------------------------------ what is kept


def first(series: Series, begin: int, end: int | None) -> Series:
    names = ("raw", "variances", "num_reports", "steps")
    return dataclasses.replace(series, **{name: getattr(series, name)[begin:end] for name in names})


def shaken_stream(seed: int) -> Series:
    """With jumps, gaps, missing cells and numbers of reports that differ."""
    rng = np.random.default_rng([31, seed])
    series, _ = noisy_stream(rng, drift=1e-6, nugget=5e-4)
    raw = series.raw.copy()
    for t in (20, 21, 44):
        raw[t:, t] += 0.4
    raw[rng.random(raw.shape) < 0.05] = np.nan
    raw[30] = np.nan
    return dataclasses.replace(series, raw=raw, steps=rng.integers(1, 3, len(raw)), jump=2.0)


def test_windows_are_judged_together_as_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """With alarms between them, after which windows are judged again."""
    series, found = shaken_stream(3), []
    for most in (1, 5, 16):
        monkeypatch.setattr(alarm_module, "_MOST_TOGETHER", most)
        found.append(judge(series, EVERY))
    assert found[0].moved.any(axis=1).sum() >= 2
    for other in found[1:]:
        for field in dataclasses.fields(Alarms):
            if field.name != "past":
                expected = getattr(found[0], field.name)
                np.testing.assert_allclose(getattr(other, field.name), expected, rtol=2e-3, atol=1e-5)
        np.testing.assert_allclose(other.past.memory.odds, found[0].past.memory.odds, rtol=2e-2)


@functools.cache
def judged_whole() -> Alarms:
    return judge(shaken_stream(1), EVERY)


@pytest.mark.parametrize("cut", [1, 15, 20, 31, 45])
def test_no_window_is_judged_by_a_later_one_and_what_is_cut_off_is_still_known(cut: int) -> None:
    series = shaken_stream(1)
    whole, before = judged_whole(), judge(first(series, 0, cut), EVERY)
    after = judge(first(series, cut, None), EVERY, before.past)
    assert whole.moved.any()
    for field in dataclasses.fields(Alarms):
        if field.name != "past":
            found = np.concatenate([getattr(before, field.name), getattr(after, field.name)])
            np.testing.assert_allclose(found, getattr(whole, field.name), rtol=2e-3, atol=1e-5, err_msg=field.name)


def test_what_is_not_seen_is_not_judged() -> None:
    series = shaken_stream(2)
    alarms = judge(series, EVERY)
    assert alarms.p_value[30] == 1
    assert not alarms.moved[~series.seen].any()
    assert (alarms.change[~series.seen] == 0).all()


def test_a_jump_after_seven_windows_is_not_judged_and_one_after_eight_is() -> None:
    """Each value by itself: one that is seen from the third window on is judged two windows later than the others."""
    raw = np.full((11, 3), 0.2)
    raw[:2, 1] = np.nan
    known = {"common": np.zeros(3), "steps": np.ones(11, dtype=np.int64), "num_reports": np.full(11, 10**6)}
    for t in range(1, 11):
        jumped = raw.copy()
        jumped[t] += 0.5
        alarms = judge(Series(raw=jumped, variances=np.full((11, 3), 1e-6), **known), EVERY)
        assert alarms.moved[t].tolist() == [t >= 8, t >= 10, t >= 8], t


# ------------------------------------------------------------------------------------------------ what rings


def test_a_jump_rings_at_once_and_only_the_value_that_moved_begins_anew() -> None:
    series, _ = noisy_stream(np.random.default_rng(13))
    raw = series.raw.copy()
    raw[40:, 7] += 0.4
    jumped = dataclasses.replace(series, raw=raw)
    alarms = judge(jumped, EVERY)
    assert np.argwhere(alarms.moved).tolist() == [[40, 7]]
    assert alarms.p_value[40] < 1 / EVERY
    assert alarms.change[40, 7] == pytest.approx(0.4, abs=5 * alarms.change_error[40, 7])
    law, _, course = follow(jumped, alarms.moved)
    assert course.expected_variance[40, 7] > 1
    assert course.variance[40, 7] == pytest.approx(law.noise[40, 7], rel=0.1)  # it knows this window alone
    _, _, steady = follow(series)
    others = np.arange(len(SHARES)) != 7
    np.testing.assert_allclose(course.variance[40, others], steady.variance[40, others], rtol=0.2)
    shown = smoothed(jumped).means
    assert shown[39, 7] < 0.05  # the jump is not smeared into the past
    assert shown[41, 7] > 0.35


def test_a_change_that_is_no_jump_rings_when_it_lasts() -> None:
    """Four standard errors that stay. The interval of the change is one that misses with probability 1e-9."""
    for seed in range(5):
        series, _ = noisy_stream(np.random.default_rng([23, seed]), drift=1e-6, nugget=5e-4)
        raw = series.raw.copy()
        raw[40:, 7] += (shift := 4 * np.sqrt(series.variances[40, 7]))
        moved = dataclasses.replace(series, raw=raw)
        alarms = judge(moved, EVERY)
        t, value = np.argwhere(alarms.moved)[0].tolist()
        assert value == 7 and 40 <= t < 50
        change = change_of(moved, alarms, t, np.array([value]))
        assert 1 <= change.windows[0] <= change.looks[0]
        assert abs(change.size[0] - shift) <= stats.norm.isf(0.5e-9 / change.looks[0]) * change.error[0]
        assert (judge(first(moved, 0, t + 1), EVERY).past.evidence == 0).all()


def test_reports_come_in_whole_numbers() -> None:
    """Two reports of a value that nobody had are no alarm, though they are many standard deviations."""
    rng = np.random.default_rng(17)
    n = 2000
    counts = rng.poisson(0.02, (200, 50))
    series = Series(
        raw=counts / n,
        variances=counts / n**2,
        common=np.zeros(50),
        num_reports=np.full(200, n),
        steps=np.ones(200, dtype=np.int64),
        jump=1.0,
    )
    assert judge(series, EVERY).moved.sum() <= 1


# ------------------------------------------------------------------------------------------------ simulated jobs


def reports_of(shares: np.ndarray, people: int, rng: np.random.Generator, epsilon: float = 2.0) -> Series:
    """k-RR of people that draw from shares (T, K), as the rows of a job have it."""
    size, odds = shares.shape[1], np.exp(epsilon)
    noise = 1 / (size - 1 + odds)
    clear = (odds - 1) * noise
    counted = rng.multinomial(people, noise + clear * shares) / people
    return Series(
        raw=(counted - noise) / clear,
        variances=counted * (1 - counted) / people / clear**2,
        common=np.zeros(size),
        num_reports=np.full(len(shares), people),
        steps=np.ones(len(shares), dtype=np.int64),
        jump=1 / clear,
    )


def days(windows: int, rng: np.random.Generator, **law: Any) -> np.ndarray:
    """(T, 50) shares 1 / rank that vary.

    Args:
        windows: T.
        rng: of everything.
        law: ``effect``, the size of lognormal day effects; ``weekly``, of a pattern of seven windows; ``walk``, of the
            steps of a random walk relative to shares; ``steps``, variance of its steps relative to first shares.
    """
    shares = np.broadcast_to(1 / np.arange(1, 51), (windows, 50)) / (1 / np.arange(1, 51)).sum()
    size = shares.shape
    shares = shares * np.exp(np.cumsum(rng.normal(0, law.get("walk", 0), size), axis=0))
    shares = np.maximum(shares + np.cumsum(rng.normal(0, np.sqrt(law.get("steps", 0) * shares[0]), size), axis=0), 1e-6)
    weekend = np.isin(np.arange(windows) % 7, (5, 6))[:, np.newaxis]
    shares = shares * (1 + law.get("weekly", 0) * rng.choice([-1, 1], 50) * weekend)
    shares = shares * np.exp(rng.normal(0, law.get("effect", 0), size))
    return shares / shares.sum(axis=1, keepdims=True)


def rang_within(seed: int, errors: float, quiet: int, within: int, effect: float) -> bool:
    """Whether a value that moves for good rings; any value, up or down, by known standard errors of a window."""
    rng = np.random.default_rng([41, seed])
    series = reports_of(days(quiet + within, rng, effect=effect), 2000, rng)
    value, sign = rng.integers(50), rng.choice([-1, 1])
    series.raw[quiet:, value] += sign * errors * np.sqrt(series.variances[:quiet, value].mean())
    return bool(judge(series, EVERY).moved[quiet:, value].any())


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 0.05])
@pytest.mark.parametrize(("errors", "quiet", "within", "least"), [(8, 10, 2, 0.95), (3, 30, 10, 0.8), (5, 30, 4, 0.95)])
def test_changes_ring(errors: float, quiet: int, within: int, least: float, effect: float) -> None:
    """At least as often as the page says; limits of the exact binomial law that such a rate misses with 1e-6."""
    streams = 400
    rang = sum(rang_within(seed, errors, quiet, within, effect) for seed in range(streams))
    print(f"{errors} standard errors after {quiet} windows, within {within}: {rang} of {streams}")
    assert rang >= binomial_limits(streams, least, rate=MISSED)[0], rang


HONEST: dict[str, tuple[int, dict[str, float]]] = {
    "steady": (2000, {}),
    "weekly 30 %": (2000, {"weekly": 0.3, "effect": 0.05}),
    "weekly 50 %, 20,000 people": (20_000, {"weekly": 0.5, "effect": 0.05}),
    "day effects 20 %": (2000, {"effect": 0.2}),
    "day effects 40 %": (2000, {"effect": 0.4}),
    "day effects 60 %": (2000, {"effect": 0.6}),
    "day effects 60 %, 20,000 people": (20_000, {"effect": 0.6}),
    "day effects 90 %": (2000, {"effect": 0.9}),
    "random walk 5 %": (2000, {"walk": 0.05, "effect": 0.05}),
    "random walk 3 %, 20,000 people": (20_000, {"walk": 0.03}),
    "random walk 10 %, 20,000 people": (20_000, {"walk": 0.1}),
    "random walk 5 %, day effects 20 %, 20,000 people": (20_000, {"walk": 0.05, "effect": 0.2}),
    "random walk of 1e-4 p": (2000, {"steps": 1e-4, "effect": 0.05}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_honest_streams_ring_at_most_as_often_as_promised(name: str) -> None:
    """Windows with an alarm are at most binomial of rate 1 / 1,000; the limit is exceeded with probability 1e-6."""
    (people, law), streams, windows, alarms = HONEST[name], 20, 400, 0
    for seed in range(streams):
        rng = np.random.default_rng([43, seed])
        alarms += int(judge(reports_of(days(windows, rng, **law), people, rng), EVERY).moved.any(axis=1).sum())
    judged = streams * (windows - LEAST_HISTORY)
    print(f"{name}: {alarms} alarms in {judged} windows")
    assert alarms <= binomial_limits(judged, 1 / EVERY, rate=MISSED)[1], alarms


@pytest.mark.slow
def test_rows_of_windows_that_are_corrected_ring_at_most_as_often_as_promised() -> None:
    """Each window is judged with 10, 25, 50, 75 and 100 % of its reports, after the whole windows before it."""
    rng, every, size, windows, parts = np.random.default_rng(3), 20, 30, 60, np.array([500, 1250, 2500, 3750, 5000])
    share, variance = 1 / size, 4.0 + (1 - 1 / size) / size
    rang = []
    for _ in range(12):
        whole = np.empty((0, size))
        for t in range(windows):
            added = np.diff(parts, prepend=0)[:, np.newaxis]
            rows = rng.normal(share * added, np.sqrt(variance * added), (5, size)).cumsum(axis=0) / parts[:, np.newaxis]
            for row, number in zip(rows, parts) if t >= LEAST_HISTORY else ():
                numbers = np.append(np.full(t, 5000), number)
                series = Series(
                    raw=np.vstack([whole, row]),
                    variances=np.repeat(variance / numbers[:, np.newaxis], size, axis=1),
                    common=np.zeros(size),
                    num_reports=numbers,
                    steps=np.ones(t + 1, dtype=np.int64),
                )
                rang.append(judge(series, every).moved[t].any())
            whole = np.vstack([whole, rows[-1]])
    found = np.array(rang).reshape(-1, 5)
    print(
        f"of rows {found.mean():.3f}, of last rows {found[:, -1].mean():.3f}, of windows {found.any(axis=1).mean():.3f}"
    )
    assert found[:, -1].sum() <= binomial_limits(len(found), 1 / every, rate=MISSED)[1]
    assert found.mean() <= 1 / every + 5 * found.mean(axis=1).std() / np.sqrt(len(found))
