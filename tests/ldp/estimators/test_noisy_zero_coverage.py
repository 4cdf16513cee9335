"""Coverage and length of intervals of rare values, with and without their extension.

``python -m tests.ldp.estimators.test_noisy_zero_coverage`` prints a table. "Before" are the same
intervals, only cut to [0, 1] and extended to contain the number that is shown.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import RATE, generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.estimators.number_estimates import estimate_numbers
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.ldp.sampling import SeededSource
from uldp_transforms.ldp.solvers.intervals import reaching
from uldp_transforms.ldp.solvers.question import Intervals
from uldp_transforms.ldp.versions.pooled_estimate import pool

WINDOWS = 400
LEAST = 0.94
"""Coverage of the rare value that is accepted, as for the other intervals of the page."""

Way = Callable[[Collection, np.ndarray, np.random.Generator], Estimate]
"""Draws reports of people with these values and estimates the shares."""


def plain(item: Collection, people: np.ndarray, rng: np.random.Generator) -> Estimate:
    values = None if item.alphabet.known_values else tuple(np.unique(people).tolist())
    return item.estimate(item.count(item.perturb(people.tolist(), rng)), "projected", values)


def all_looks(item: Collection, people: np.ndarray, rng: np.random.Generator) -> Estimate:
    return plain(item, people, rng).anytime(1000)


def versions(item: Collection, people: np.ndarray, rng: np.random.Generator) -> Estimate:
    """A third of the people report with a new version, which has another epsilon."""
    form = item.to_json()
    other = Collection.from_json(form | {"version": 2, "mechanism": form["mechanism"] | {"epsilon": 1.0}})
    new = rng.random(len(people)) < 1 / 3
    counts = [one.count(one.perturb(people[of].tolist(), rng)) for one, of in ((item, ~new), (other, new))]
    return pool(ESTIMATORS["projected"](), [item, other], counts).estimate


def people_who_return(item: Collection, people: np.ndarray, rng: np.random.Generator) -> Estimate:
    """Everybody reports twice from one memo."""
    mechanism, source = item.mechanism, SeededSource(rng)
    assert isinstance(mechanism, SetReportMechanism)
    symbols = np.searchsorted(np.array(item.alphabet.known_values), people)
    memos = mechanism.draw_memos(symbols, source)
    places = np.zeros(len(people), dtype=np.int64)
    cells = sum(mechanism.count(mechanism.draw_reports(memos, source), places, 1) for _ in range(2))
    counts = CohortCounts(np.array([2 * len(people)]), np.asarray(cells))
    return with_repeated_people(item, item.estimate(counts, "projected"), 2)


def neighbours(values: int, epsilon: float) -> list[list[str]]:
    """A channel that keeps a value or replaces it by a near one rather than by a far one."""
    places = np.arange(values)
    weights = np.exp(-epsilon * np.abs(places[:, np.newaxis] - places))
    chances = np.round(weights / weights.sum(axis=0), 6)
    chances[0] += 1 - chances.sum(axis=0)
    return [[f"{chance:.6f}" for chance in row] for row in chances.tolist()]


class Setting(NamedTuple):
    """What is drawn: n people, of whom ``share`` have the first of the values and the others the rest alike."""

    mechanism: str
    epsilon: float
    values: int
    people: int
    share: float
    way: Way = plain

    def item(self) -> Collection:
        names = sorted(map(str, range(self.values)))
        alphabet = {"id": "closed", "values": names}
        if self.mechanism.startswith("hashed "):
            alphabet = {"id": "hashed", "num_buckets": 16}
        mechanism = {"id": self.mechanism.removeprefix("hashed ")}
        mechanism |= (
            {"matrix": neighbours(self.values, self.epsilon)}
            if self.mechanism == "channel"
            else {"epsilon": self.epsilon}
        )
        mechanism |= {"epsilon_inf": 2 * self.epsilon} if self.way is people_who_return else {}
        cohorts = {"num_cohorts": 32} if "hashed" in self.mechanism else {}
        return Collection.from_json({"id": "a", "version": 1, "alphabet": alphabet, "mechanism": mechanism} | cohorts)


SETTINGS = (
    Setting("krr", 2.0, 16, 6_423, 0.0019),
    Setting("krr", 1.0, 2, 400, 0.01),
    Setting("krr", 0.5, 2, 2_000, 0.5),
    Setting("krr", 8.0, 16, 500, 0.002),
    Setting("rappor", 2.0, 16, 3_000, 0.001),
    Setting("ss", 1.0, 16, 3_000, 0.001),
    Setting("channel", 1.0, 8, 2_000, 0.002),
    Setting("hashed rappor", 2.0, 16, 5_000, 0.001),
    Setting("krr", 2.0, 16, 6_423, 0.0019, all_looks),
    Setting("krr", 2.0, 16, 6_423, 0.0019, versions),
    Setting("krr", 1.0, 16, 4_000, 0.002, people_who_return),
)


class Measured(NamedTuple):
    """Of a setting, as (before, after): coverage and mean length of the rare value's interval; share of windows in
    which it is shorter than half a standard error; share in which the display interval of the largest value misses."""

    covered: tuple[float, float]
    length: tuple[float, float]
    short: tuple[float, float]
    largest_missed: tuple[float, float]


def cut_only(
    unclipped: Intervals, shown: np.ndarray, confidence: Confidence, strict: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    low, high = unclipped(confidence, strict)
    return reaching(np.clip(low, 0, 1), np.clip(high, 0, 1), shown)


@functools.cache
def measured(setting: Setting, windows: int = WINDOWS) -> Measured:
    """Draw the windows; every interval contains the one before."""
    item, rng = setting.item(), generator("noisy zeros", *map(str, setting[:5]), setting.way.__name__)
    names = np.array(sorted(map(str, range(setting.values))))
    number = round(setting.share * setting.people)
    symbols = np.concatenate([np.zeros(number, int), 1 + np.arange(setting.people - number) % (setting.values - 1)])
    truth = np.bincount(symbols) / setting.people
    found = np.zeros((windows, 4, 2))
    for window in range(windows):
        after = setting.way(item, names[symbols], rng)
        assert list(after.values) == names.tolist()
        before = dataclasses.replace(after, intervals=functools.partial(cut_only, after.unclipped, after.frequencies))
        largest = int(np.argmax(after.frequencies))
        for at, one in enumerate((before, after)):
            low, high = one.ci_low, one.ci_high
            of_largest = [end[largest] for end in one.display_intervals(setting.values)]
            found[window, :, at] = (
                low[0] <= truth[0] <= high[0],
                high[0] - low[0],
                high[0] - low[0] < after.standard_errors[0] / 2,
                not of_largest[0] <= truth[largest] <= of_largest[1],
            )
        assert (after.ci_low <= before.ci_low).all() and (after.ci_high >= before.ci_high).all()
    return Measured(*map(tuple, found.mean(axis=0)))


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: f"{setting.mechanism}-{setting.way.__name__}")
def test_rare_values_are_covered_and_the_largest_is_missed_no_more_often(setting: Setting) -> None:
    """The limits of a binomial number of windows; the largest is missed in 5 % of them at most."""
    told = measured(setting)
    assert told.short[1] == 0 and told.covered[1] >= told.covered[0]
    assert WINDOWS * (1 - told.covered[1]) <= stats.binom.isf(RATE, WINDOWS, 1 - LEAST)
    assert told.largest_missed[1] <= told.largest_missed[0]
    assert WINDOWS * told.largest_missed[1] <= stats.binom.isf(RATE, WINDOWS, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["krr", "sw"])
def test_figures_at_the_end_of_their_range_are_covered(mechanism: str) -> None:
    """Nearly everybody is in the first bin, so that the mean is near the least one and few are above a limit."""
    alphabet = {"id": "ordered", "low": 0, "high": 8, "num_bins": 8}
    item = made(alphabet, {"id": mechanism, "epsilon": 1.0}, id="a")
    people, rng = [0.5] * 1990 + [7.5] * 10, generator("noisy zeros of figures", mechanism)
    missed = np.zeros(2)
    for _ in range(WINDOWS):
        found = estimate_numbers(item, item.count(item.perturb(people, rng)), limits=[4], smooth=False)
        figures = ((found.mean, 0.535), (found.shares_above[0], 0.005))
        missed += [not one.low <= truth <= one.high for one, truth in figures]
    assert (missed <= stats.binom.isf(RATE / 2, WINDOWS, 1 - LEAST)).all()


def main() -> None:
    print(
        "| mechanism | epsilon | values | people | share | intervals | covered | mean length | short | largest missed |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for setting in SETTINGS:
        told, way = measured(setting), setting.way.__name__.replace("_", " ")
        parts = [f"{before:.{digits}f}, {after:.{digits}f}" for (before, after), digits in zip(told, (3, 4, 3, 3))]
        print(f"| {' | '.join(map(str, setting[:5]))} | {way} | {' | '.join(parts)} |", flush=True)


if __name__ == "__main__":
    main()
