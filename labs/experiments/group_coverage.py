"""How often intervals of differences and lifts hold, and how often equal groups are said to differ."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from labs.experiments.drawn_counts import draw_counts
from labs.experiments.frame import Experiment, Result, Verdict, progress
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators.anytime import anytime_confidence
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.solvers.pooled_versions import PooledVersions
from uldp_transforms.rows.figures.compared_figures import difference_interval
from uldp_transforms_compare.comparisons.compare import difference_at, lift_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (200, 1_000, 5_000, 20_000)
EPSILONS = (1.0, 2.0, 4.0, 6.0)
MECHANISMS = {"krr": None, "rappor": None, "ss": None, "hr": None, "urr": 5, "urap": 5}
"""Each mechanism, with the number of sensitive values where not all are."""

LEAST, MOST = 0.94, 0.97
ENOUGH = 6
"""Counted reports that are expected in each group, from which coverage is near 95 %."""

REACHES_0 = 0.005
"""Probability that a share's interval reaches 0, up to which it counts as told apart from 0."""

FALSE_ALARM = 1e-6
LOOKS = 20

_VALUES = tuple(f"v{number}" for number in range(10))
_STEEP = np.arange(1, 11) ** -1.5 / (np.arange(1, 11) ** -1.5).sum()


def _with_rare(share: float) -> np.ndarray:
    return np.append(share, np.full(9, (1 - share) / 9))


POPULATIONS = {
    "uniform": (np.full(10, 0.1), np.full(10, 0.1)),
    "steep": (_STEEP, 0.8 * _STEEP + 0.2 * _STEEP[::-1]),
    "rare": (_with_rare(0.004), _with_rare(0.002)),
}
"""Shares in both groups."""


class GroupCoverage(Experiment):
    id = "group-coverage"
    title = "Coverage of differences and lifts of groups, and false alarms"
    source = "exact sums, and simulated counts"
    abstract = (
        "Two groups of 200 to 20,000 people, or one of these and one of 200, answer with one of ten values. Where an "
        "estimate depends on one count, which is binomial, the coverage of each 95 % interval is summed over all pairs "
        "of counts, without chance. Hashed values, the test whether groups differ at all, and 20 looks at growing "
        "groups are simulated from counts that are drawn by their law."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        sizes, epsilons = (SIZES[:2], EPSILONS[1:3]) if reduced else (SIZES, EPSILONS)
        grid = list(itertools.product(sizes, epsilons))
        exact = [row for cell in progress(grid, "exact") for row in of_cell(*cell, MECHANISMS)]
        repetitions = runs or (100 if reduced else 200)
        hashed = [row for cell in progress(grid, "hashed") for row in of_hashed(*cell, repetitions, rng)]
        alike = [row for cell in progress(grid, "alike") for row in of_alike(*cell, repetitions, rng)]
        looks = [row for epsilon in progress(epsilons, "looks") for row in of_looks(epsilon, 8 * repetitions, rng)]
        return Result(
            rows=[*exact, *hashed, *alike, *looks],
            verdicts=[
                differences_hold(exact),
                few_reports_hold_more_often(exact),
                lifts_hold(exact),
                hashed_hold(hashed, repetitions),
                at_most("Groups that are alike are said to differ in 5 % of all cases.", alike, repetitions),
                at_most("20 looks find a difference that is not there in at most 5 %.", looks, 8 * repetitions),
            ],
        )

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        axes = figure.subplots()
        for place, name in enumerate(MECHANISMS):
            own = [row for row in rows if row["what"] == "exact" and row["mechanism"] == name]
            points = [row["expected"] for row in own], [row["difference"] for row in own]
            axes.plot(*points, ".", label=name, color=f"C{place}")
        axes.axhspan(LEAST, MOST, color="tab:green", alpha=0.1)
        axes.axvline(ENOUGH, color="black", linewidth=0.5)
        axes.set_xscale("log")
        axes.set_xlabel("reports of the value that are expected in the smaller count")
        axes.set_ylabel("coverage of the difference's 95 % interval")
        axes.legend()


# ------------------------------------------------------------------------------------------------------------ exact


@dataclasses.dataclass(frozen=True)
class Counted:
    """All counts of one value in one group that may occur: their probabilities, estimates, and intervals, each (N,)."""

    law: np.ndarray
    raw: np.ndarray
    low: np.ndarray
    high: np.ndarray
    expected: float
    first: int

    @classmethod
    def of(
        cls, mechanism: Mechanism, symbol: int, people: int, shares: np.ndarray, confidence: float = 0.95
    ) -> Counted:
        """The law of a symbol's count, whose estimate depends on it alone; counts rarer than 1e-11 are left out."""
        rate = float(mechanism.response(shares)[symbol])
        low, high = stats.binom.ppf([1e-11, 1 - 1e-11], people, rate).astype(int)
        counts = np.arange(low, high + 1)
        kinds = (0, mechanism.num_sensitive), (mechanism.num_sensitive, mechanism.num_symbols)
        columns = np.arange(*kinds[symbol >= mechanism.num_sensitive])  # of one kind: their intervals are the same
        found = []
        for start in range(0, len(counts), len(columns)):
            part = counts[start : start + len(columns)]
            cells = np.zeros((1, mechanism.num_cells), np.int64)
            cells[0, columns[: len(part)]] = part
            given = CohortCounts(np.array([people]), cells)
            ends = mechanism.invert(given)[0], *mechanism.intervals(given, shares, confidence)
            found.append([end[columns[: len(part)]] for end in ends])
        raw, below, above = (np.concatenate(parts) for parts in zip(*found))
        law = stats.binom.pmf(counts, people, rate)
        return cls(law / law.sum(), raw, below, above, people * rate, int(low))

    @property
    def reaching_0(self) -> float:
        """Probability that the interval reaches 0."""
        return float(self.law @ (self.low <= 0))


def coverage(a: Counted, b: Counted, difference: float, lift: float) -> tuple[float, float]:
    """Probability that the interval of the difference holds, and that of the lift, if there is a lift."""
    first, second = np.ix_(range(len(a.law)), range(len(b.law)))
    ends = a.raw[first], b.raw[second], a.low[first], a.high[first], b.low[second], b.high[second]
    low, high = difference_interval(*ends)
    of_difference = a.law @ ((low <= difference + 1e-12) & (difference - 1e-12 <= high)) @ b.law
    lifts, low, high = lift_interval(*np.broadcast_arrays(*ends))
    known = ~np.isnan(lifts)
    with np.errstate(invalid="ignore"):
        holds = known & (low <= lift + 1e-12) & (lift - 1e-12 <= high)
    return float(of_difference), float(a.law @ holds @ b.law / (a.law @ known @ b.law))


def collection(mechanism: str, epsilon: float, num_sensitive: int | None = None) -> Collection:
    """A question with ten values."""
    sensitive = {} if num_sensitive is None else {"sensitive": list(_VALUES[:num_sensitive])}
    alphabet = {"id": "closed", "values": list(_VALUES)} | sensitive
    spec = {"id": "coverage", "version": 1, "alphabet": alphabet}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": epsilon}})


def of_cell(people: int, epsilon: float, mechanisms: dict[str, int | None]) -> Iterator[dict[str, Any]]:
    """Coverage of each kind of value whose estimate depends on one count."""
    for (name, num_sensitive), (population, shares) in itertools.product(mechanisms.items(), POPULATIONS.items()):
        mechanism = collection(name, epsilon, num_sensitive).mechanism
        # not of every mechanism: of those that `collection` makes here
        first = 0 if mechanism.has_binomial_estimates else mechanism.num_sensitive  # type: ignore[attr-defined]
        kinds = {(s >= mechanism.num_sensitive, *(p[s] for p in shares)): s for s in range(first, 10)}
        for other, (kind, symbol) in itertools.product(sorted({people, SIZES[0]}), kinds.items()):
            a, b = (Counted.of(mechanism, symbol, n, p) for n, p in zip((people, other), shares))
            of_difference, of_lift = coverage(a, b, kind[1] - kind[2], kind[1] / kind[2])
            yield {
                "what": "exact",
                "mechanism": name,
                "epsilon": epsilon,
                "population": population,
                "people": people,
                "others": other,
                "clear": int(kind[0]),
                "share": float(kind[1]),
                "other_share": float(kind[2]),
                "expected": float(min(a.expected, b.expected)),
                "reaching_0": max(a.reaching_0, b.reaching_0),
                "difference": of_difference,
                "lift": of_lift,
            }


# -------------------------------------------------------------------------------------------------------- simulated


def of_hashed(people: int, epsilon: float, runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Coverage of differences of hashed values, the mean over the ten.

    A tenth of the people hold unlisted texts: the same ones in both groups, whose collisions with listed values are
    then the same, or other ones in each. Values whose intervals reach 0 more rarely than ``REACHES_0`` in both groups
    are counted apart, as ``apart`` values that missed ``missed_apart`` times in all runs.
    """
    texts = (*_VALUES, "rest 1", "rest 2", "rest 3", "rest 4")
    unlisted = {"same texts": ([0.06, 0.04, 0, 0],) * 2, "other texts": ([0.06, 0.04, 0, 0], [0, 0, 0.06, 0.04])}
    for name, (rest, shares_of_rest) in itertools.product(("krr", "rappor"), unlisted.items()):
        held = [np.append(0.9 * p, of_rest) for p, of_rest in zip(POPULATIONS["steep"], shares_of_rest)]
        true = (held[0] - held[1])[: len(_VALUES)]
        missed, at_0 = np.zeros((2, len(_VALUES)))
        for seed in range(runs):
            asked = _hashed(name, epsilon, seed)
            sides = [
                asked.estimate(draw_counts(asked, texts, rng.multinomial(people, share), rng), "empirical", _VALUES)
                for share in held
            ]
            low, high = difference_at(*sides, 0.95)
            missed += (true < low) | (high < true)
            at_0 += np.min([side.unclipped(0.95)[0] for side in sides], axis=0) <= 0
        apart = at_0 <= REACHES_0 * runs
        yield {
            "what": "hashed",
            "mechanism": name,
            "epsilon": epsilon,
            "population": rest,
            "people": people,
            "others": people,
            "difference": float(1 - missed.mean() / runs),
            "least_of_values": float(1 - missed.max() / runs),
            "apart": int(apart.sum()),
            "missed_apart": int(missed[apart].sum()),
        }


def _hashed(mechanism: str, epsilon: float, seed: int) -> Collection:
    """A question with 16 buckets and 32 hash functions, which the seed chooses."""
    spec = {"id": "hashed", "version": 1, "alphabet": {"id": "hashed", "num_buckets": 16, "seed": seed}}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": epsilon}, "num_cohorts": 32})


def of_alike(people: int, epsilon: float, runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """How often four groups of one population have a p-value of .05 or less in the test of homogeneity."""
    for name in ("krr", "rappor", "urr"):
        asked = collection(name, epsilon, MECHANISMS[name])
        tested = PooledVersions([asked] * 4)
        for population, (_, shares) in POPULATIONS.items():
            alarms = 0
            for _ in range(runs):
                groups = [draw_counts(asked, _VALUES, rng.multinomial(people, shares), rng) for _ in range(4)]
                agreement = tested.estimate(groups).agreement
                alarms += agreement is not None and agreement.p_value <= 0.05
            yield {
                "what": "alike",
                "mechanism": name,
                "epsilon": epsilon,
                "population": population,
                "people": people,
                "alarms": alarms / runs,
            }


def of_looks(epsilon: float, runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """How often the interval of a difference misses it at one of 20 looks, from 200 people on in each group.

    The value is the first one: of 10 % or 72 %, or a rare one.
    """
    mechanism, step = collection("krr", epsilon).mechanism, SIZES[0]
    for population, shares in POPULATIONS.items():
        rates = [float(mechanism.response(share)[0]) for share in shares]
        counts = [rng.binomial(step, rate, (LOOKS, runs)).cumsum(axis=0) for rate in rates]
        missed = np.zeros(runs, bool)
        for look in range(LOOKS):
            people = step * (look + 1)
            level = float(anytime_confidence(0.95, people, step))
            ends = []
            for share, of_look in zip(shares, (side[look] for side in counts)):
                table = Counted.of(mechanism, 0, people, share, level)
                at = np.clip(of_look - table.first, 0, len(table.law) - 1)
                ends.append((table.raw[at], table.low[at], table.high[at]))
            (a, low_a, high_a), (b, low_b, high_b) = ends
            low, high = difference_interval(a, b, low_a, high_a, low_b, high_b)
            missed |= (shares[0][0] - shares[1][0] < low) | (shares[0][0] - shares[1][0] > high)
        yield {
            "what": "looks",
            "mechanism": "krr",
            "epsilon": epsilon,
            "population": population,
            "people": step * LOOKS,
            "alarms": float(missed.mean()),
        }


# --------------------------------------------------------------------------------------------------------- verdicts


def differences_hold(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Coverage where both counts are large enough."""
    found = [row["difference"] for row in rows if row["expected"] >= ENOUGH]
    return Verdict(
        claim=f"Intervals of differences hold in 94 to 97 % where {ENOUGH} reports or more are expected in each group.",
        holds=bool(min(found) >= LEAST and max(found) <= MOST),
        evidence=f"{len(found):,} cases: {min(found):.1%} to {max(found):.1%}",
    )


def few_reports_hold_more_often(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Coverage where a count may well be 0."""
    found = [row["difference"] for row in rows if row["expected"] < ENOUGH]
    return Verdict(
        claim="Where fewer are expected, intervals hold at least as often.",
        holds=min(found, default=1.0) >= LEAST,
        evidence=f"{len(found):,} cases: {min(found, default=1):.1%} to {max(found, default=1):.1%}",
    )


def lifts_hold(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Coverage of lifts, apart from those whose shares may be 0."""
    apart = [row["reaching_0"] <= REACHES_0 and row["expected"] >= ENOUGH for row in rows]
    known = [row["lift"] for row, is_apart in zip(rows, apart) if is_apart]
    others = [row["lift"] for row, is_apart in zip(rows, apart) if not is_apart]
    return Verdict(
        claim=f"Intervals of lifts hold in 94 to 97 % where also both shares are told apart from 0 in "
        f"{1 - REACHES_0:.1%} of cases, and at least as often elsewhere.",
        holds=bool(min(known) >= LEAST and max(known) <= MOST and min(others) >= LEAST),
        evidence=f"{len(known):,} cases: {min(known):.1%} to {max(known):.1%}; {len(others):,} others: "
        f"{min(others):.1%} to {max(others):.1%}",
    )


def hashed_hold(rows: Sequence[dict[str, Any]], runs: int) -> Verdict:
    """Coverage of hashed values, within the limits of chance."""
    same, other = ([row for row in rows if row["population"] == rest] for rest in ("same texts", "other texts"))
    apart_of_same, beside_of_same = _of_kinds(same, runs)
    apart_of_other, beside_of_other = _of_kinds(other, runs)
    most = stats.binom.isf(FALSE_ALARM / len(_VALUES) / len(rows), runs, 1 - LEAST) / runs
    least = min(row["least_of_values"] for row in rows)
    return Verdict(
        claim="Intervals of differences of hashed values that are told apart from 0 as above hold in 94 to 97 % on "
        "average if the unlisted texts of the groups are others; more often if they are the same, and beside 0; and "
        "for no value less often than chance allows.",
        holds=bool(
            LEAST <= apart_of_other <= MOST
            and min(apart_of_same, beside_of_other, beside_of_same) >= LEAST
            and 1 - least <= most
        ),
        evidence=f"other texts: {apart_of_other:.1%}, beside 0 {beside_of_other:.1%}; the same: {apart_of_same:.1%}, "
        f"beside 0 {beside_of_same:.1%}; one value alone at least {least:.1%} (limit {1 - most:.1%})",
    )


def _of_kinds(rows: Sequence[dict[str, Any]], runs: int) -> tuple[float, float]:
    """Coverage of values that are told apart from 0, and of the others."""
    values, missed = sum(row["apart"] for row in rows), sum(row["missed_apart"] for row in rows)
    all_missed = sum(1 - row["difference"] for row in rows) * len(_VALUES) * runs
    others = len(_VALUES) * len(rows) - values
    return 1 - missed / (values * runs), float(1 - (all_missed - missed) / (others * runs))


def at_most(claim: str, rows: Sequence[dict[str, Any]], runs: int) -> Verdict:
    """Rates of alarms that exceed 5 % by chance at most."""
    rates = [row["alarms"] for row in rows]
    most = stats.binom.isf(FALSE_ALARM / len(rows), runs, 0.05) / runs
    return Verdict(
        claim=claim,
        holds=bool(max(rates) <= most),
        evidence=f"{len(rows):,} cases: {min(rates):.1%} to {max(rates):.1%}, mean {np.mean(rates):.2%} (limit "
        f"{most:.1%})",
    )
