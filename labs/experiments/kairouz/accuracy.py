"""The l1 loss of O-RR and O-RAPPOR against epsilon, with the best parameters: Figures 3, 7, 8 and 13."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, progress
from labs.experiments.kairouz import inputs, losses
from labs.experiments.kairouz.curves import K_RAPPOR, K_RR, draw_series, with_hashes
from labs.experiments.kairouz.ours import OURS
from labs.experiments.kairouz.plans import O_RAPPOR, O_RR, Plan, best, grid, powers_of_two

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 3
"""Plans that are simulated in each setting, of those that the forecast puts first."""

COHORTS = tuple(1 << power for power in range(11))
CLEARLY, STANDARD_ERRORS = 1.02, 4.0
"""Ratio of two medians, and standard errors of their difference, beyond which one is called larger."""

ALIKE = f"within {CLEARLY - 1:.0%} and {STANDARD_ERRORS:.0f} standard errors"

SEARCH = (
    "For each epsilon the forecast searches all k, C and h of the paper's grid that can tell the values apart; the "
    "best "
    f"{FEW} numbers of buckets are simulated, and the one with the least median l1 is drawn (its forecast is in the "
    "table, also where it is not the one that the forecast puts first). Loss: l1 distance of the projected estimate to "
    "the distribution; bands: 90 % of the runs. Beside it: the planner's collection with the estimator eb."
)


class _Accuracy(Experiment):
    """l1 against epsilon in panels of (closed, people)."""

    panels: ClassVar[tuple[tuple[bool, int], ...]]
    size: ClassVar[int] = 256
    most_buckets: ClassVar[int] = 4096
    hashes: ClassVar[tuple[int, ...]] = ()
    """Numbers of hash functions that have a curve of their own."""
    plain: ClassVar[bool] = False
    """Whether k-RR and k-RAPPOR have curves."""

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        size, runs = (32 if reduced else self.size), runs or (8 if reduced else 50)
        most, hashes = (64, self.hashes[:1]) if reduced else (self.most_buckets, self.hashes)
        cohorts = COHORTS[:8] if reduced else COHORTS
        epsilons = (1.0, 4.0) if reduced else (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
        rows = []
        for closed, number in self.panels:
            people = inputs.population(inputs.geometric(size), number // 10 if reduced else number)
            about = {"alphabet": "closed" if closed else "open", "values": size, "people": people.number}
            series = self._series(size, most, cohorts, hashes, closed=closed)
            rows += [about | row for row in _rows(series, people, epsilons, runs, rng, closed=closed)]
        return Result(rows=rows, verdicts=verdicts(rows))

    def _series(
        self, size: int, most_buckets: int, cohorts: tuple[int, ...], hashes: tuple[int, ...], *, closed: bool
    ) -> dict[str, list[Plan]]:
        """The plans among which the best is looked for, by name of the curve."""
        buckets = powers_of_two(most_buckets)

        def plans(mechanism: str, hashes: tuple[int, ...]) -> list[Plan]:
            return grid(mechanism, size, closed=closed, buckets=buckets, cohorts=cohorts, hashes=hashes)

        found = {O_RR: plans(O_RR, (1,)), O_RAPPOR: plans(O_RAPPOR, (1, *hashes))}
        found |= {with_hashes(number): plans(O_RAPPOR, (number,)) for number in hashes if not closed}
        if self.plain and closed:
            found |= {
                name: [plan for plan in found[mechanism] if plan.is_plain]
                for name, mechanism in ((K_RR, O_RR), (K_RAPPOR, O_RAPPOR))
            }
        return found

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        panels = list(dict.fromkeys((row["alphabet"], row["people"]) for row in rows))
        figure.set_size_inches(4.6 * len(panels) + 2.4, 4.6)
        for axes, panel in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels):
            here = [row for row in rows if (row["alphabet"], row["people"]) == panel]
            draw_series(axes, [row for row in here if row.get("chosen", "simulation") != ""], "epsilon")
            title = f"{panel[0]} alphabet, {here[0]['values']:,} values, {panel[1]:,} people"
            axes.set(xlabel="epsilon", yscale="log", title=title)
            axes.title.set_size(10)
        figure.axes[0].set_ylabel("l1 distance to the distribution (median)")
        handles = {label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels())}
        figure.legend(handles.values(), handles, loc="outside right upper", fontsize=8)


class Figure3(_Accuracy):
    id = "kairouz-figure-3"
    title = "O-RR and O-RAPPOR: l1 against epsilon over open and closed alphabets"
    source = f"{inputs.SOURCE}, Figure 3"
    abstract = (
        "256 values (reduced: 32) with geometric shares, 1,000,000 (100,000) people: (a) open alphabet, by hash "
        f"functions; (b) closed alphabet, by permutations. {SEARCH}"
    )
    panels = ((False, 1_000_000), (True, 1_000_000))
    hashes = (2, 4, 8, 16)


class Figure7(_Accuracy):
    id = "kairouz-figure-7"
    title = "Figure 3 (a), large: open alphabets, with each number of hash functions"
    source = f"{inputs.SOURCE}, Figure 7"
    abstract = (
        "As the left panel of Figure 3, with a curve for each number of hash functions of O-RAPPOR, which share "
        f"epsilon. {SEARCH}"
    )
    panels = ((False, 1_000_000),)
    hashes = (2, 4, 8, 16)


class Figure8(_Accuracy):
    id = "kairouz-figure-8"
    title = "Figure 3 (b), large: closed alphabets, with k-RR and k-RAPPOR"
    source = f"{inputs.SOURCE}, Figure 8"
    abstract = f"As the right panel of Figure 3, with k-RR and k-RAPPOR over all values. {SEARCH}"
    panels = ((True, 1_000_000),)
    plain = True


class Figure13(_Accuracy):
    id = "kairouz-figure-13"
    title = "O-RR and O-RAPPOR: l1 against epsilon over 4,096 values, 10^6 and 10^8 people"
    source = f"{inputs.SOURCE}, Figure 13"
    abstract = (
        "4,096 candidates (reduced: 32) with geometric shares in an open alphabet; (a) 10^6, (b) 10^8 people (reduced: "
        "a tenth). k up to 16,384, as far as 4,194,304 counters allow; more than 16 cohorts; candidates are "
        "estimated by "
        f"message passing, which needs fewer equations than candidates. {SEARCH}"
    )
    panels = ((False, 1_000_000), (False, 100_000_000))
    size = 4096
    most_buckets = 1 << 14
    hashes = (2,)


def _rows(
    series: dict[str, list[Plan]],
    people: inputs.Population,
    epsilons: tuple[float, ...],
    runs: int,
    rng: np.random.Generator,
    *,
    closed: bool,
) -> Iterator[dict[str, Any]]:
    """The baselines, and at each epsilon the plans of each curve and what this library does today."""
    for name, row in losses.baselines(people, runs, rng).items():
        yield {"series": name} | row
    for epsilon in progress(epsilons, "epsilon"):
        for name, plans in series.items():
            few = FEW if name in (O_RR, O_RAPPOR) else 1
            for row in searched(plans, people, epsilon, few, runs, rng):
                yield {"series": name} | row
        about = {"series": OURS, "epsilon": epsilon}
        yield about | losses.of_ours(people, epsilon, _fewer(people, runs), rng, closed=closed)


def searched(
    plans: list[Plan], people: inputs.Population, epsilon: float, few: int, runs: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """A row for each plan that is simulated; ``chosen`` says who would take it: the forecast, the simulation, both."""
    rows: list[dict[str, Any]] = []
    for plan, forecast in best(plans, epsilon, people, few):
        row = {"epsilon": epsilon, **plan.about, "forecast_l1": forecast, "chosen": ""}
        rows.append(row | losses.of_plan(plan, people, epsilon, runs, rng))
    least = min(rows, key=lambda row: float(row["l1"]))
    rows[0]["forecast_chooses"], least["chosen"] = 1, "simulation"
    return rows


def _fewer(people: inputs.Population, runs: int) -> int:
    """Runs of what is drawn report by report over closed alphabets."""
    return min(runs, 10) if people.number <= 1_000_000 else min(runs, 3)


# -------------------------------------------------------------------------------------------------------- verdicts

Key = tuple[str, int, float]


@dataclasses.dataclass(frozen=True)
class Loss:
    """A median with its standard error."""

    l1: float
    error: float

    def clearly_above(self, other: Loss) -> bool:
        """Beyond 2 % and chance."""
        return self.l1 - CLEARLY * other.l1 > STANDARD_ERRORS * math.hypot(self.error, other.error)


def chosen(rows: list[dict[str, Any]], series: str) -> dict[Key, Loss]:
    """Median l1 of a curve, by panel and epsilon."""
    return {
        (row["alphabet"], row["people"], row["epsilon"]): Loss(row["l1"], row["l1_error"])
        for row in rows
        if row["series"] == series and "epsilon" in row and row.get("chosen") != ""
    }


def verdicts(rows: list[dict[str, Any]]) -> list[Verdict]:
    """O-RR against O-RAPPOR, one hash function against several, the library of today against both."""
    found = [response_is_never_worse(rows)]
    if any(row["series"] == with_hashes(2) for row in rows):
        found.append(one_hash_is_best(rows))
    return [*found, ours_is_better(rows)]


def response_is_never_worse(rows: list[dict[str, Any]]) -> Verdict:
    """Medians of the best plans."""
    response, bits = chosen(rows, O_RR), chosen(rows, O_RAPPOR)
    ratios = {key: response[key].l1 / bits[key].l1 for key in response}
    worst = max(ratios, key=lambda key: ratios[key])
    return Verdict(
        claim=f"O-RR loses no more than O-RAPPOR at every epsilon ({ALIKE}).",
        holds=not any(response[key].clearly_above(bits[key]) for key in response),
        evidence=f"Its l1 loss is {min(ratios.values()):.2f} to {max(ratios.values()):.2f} times that of O-RAPPOR in "
        f"{len(ratios)} settings; largest: {worst[0]}, {worst[1]:,} people, epsilon {worst[2]:g}.",
    )


def one_hash_is_best(rows: list[dict[str, Any]]) -> Verdict:
    """O-RAPPOR with each number of hash functions against one."""
    numbers = [number for number in (2, 4, 8, 16) if any(row["series"] == with_hashes(number) for row in rows)]
    one = {key: loss for key, loss in chosen(rows, O_RAPPOR).items() if key[0] == "open"}
    texts, ratios = [], []
    for number in numbers:
        of_number = [loss.l1 / one[key].l1 for key, loss in chosen(rows, with_hashes(number)).items()]
        ratios += of_number
        texts.append(f"{min(of_number):.2f} to {max(of_number):.2f} with {number}")
    return Verdict(
        claim="O-RAPPOR is best with one hash function.",
        holds=min(ratios) >= 1 / CLEARLY,
        evidence=f"Its l1 loss in parts of that with one: {'; '.join(texts)}.",
    )


def ours_is_better(rows: list[dict[str, Any]]) -> Verdict:
    """The planner's collection with eb."""
    response, bits, ours = chosen(rows, O_RR), chosen(rows, O_RAPPOR), chosen(rows, OURS)
    best_of = {key: min(response[key], bits[key], key=lambda loss: loss.l1) for key in ours}
    ratios = [ours[key].l1 / best_of[key].l1 for key in ours]
    return Verdict(
        claim="Beyond the paper: the planner's collection with eb, which knows no shares, loses no more than the best "
        f"plan of the paper with the projected decoder ({ALIKE}).",
        holds=not any(ours[key].clearly_above(best_of[key]) for key in ours),
        evidence=f"Its l1 loss is {min(ratios):.2f} to {max(ratios):.2f} times that.",
    )
