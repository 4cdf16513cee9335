"""The personalised mechanism with semantic tags, by knowledge about the tags: total variation (8), squared l2 (13)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict
from labs.experiments.uldp.background import (
    ALL_PROTECTED,
    NONE,
    NOTHING_HIDDEN,
    SURVEY,
    SURVEYED,
    TRUE,
    UNIFORM,
    one_run,
)
from labs.experiments.uldp.check_ins import CheckIns, city, homelocator
from labs.experiments.uldp.people_and_mechanisms import mean_and_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, PEOPLE = 1.0, 100_000
"""Where the other one varies."""

STYLES = {
    ALL_PROTECTED: ("#cc79a7", "RR, everything protected"),
    NONE: ("#d55e00", "tags: no knowledge"),
    UNIFORM: ("#e69f00", "tags: taken for uniform"),
    SURVEY: ("#009e73", f"tags: survey of {SURVEYED:,}"),
    TRUE: ("#0072b2", "tags: true distribution"),
    NOTHING_HIDDEN: ("#555555", "no tags, homes in clear"),
}

TRAITS = ("threshold", "expected", "floor", "bound", "home", "work")


class Personalised(Experiment):
    squared: ClassVar[bool] = False
    """Whether losses are squared l2 distances."""

    id = "uldp-figure-8"
    title = "Personalised ULDP with semantic tags: total variation by background knowledge"
    source = "Murakami and Kawamoto 2019, section 5, figure 8 and theorem 1"
    abstract = (
        "Independent people report one check-in each; everybody hides the own home and workplace behind the tags "
        "'home' and 'work', and 15 cells are sensitive to all. The collector knows nothing about the cells behind a "
        f"tag, takes them for uniform, has asked {SURVEYED:,} people per tag, or knows their true distribution. "
        "Estimates of the perturbed distribution, unbiased and with the threshold; loss against the one that people "
        "are drawn from. Data: a simulated city (25 x 25 cells) and the homelocator messages, in place of Foursquare "
        "check-ins in Manhattan."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        runs = runs or ((16 if self.squared else 4) if reduced else 20)
        rows, shares_of_bound = [], []
        for data in [city()] if reduced else [city(), homelocator()]:
            for mechanism, epsilon, asked in settings(data, reduced):
                every = [one_run(data, mechanism, epsilon, asked=asked, rng=rng) for _ in range(runs)]
                records = [record for run in every for record in run]
                base = {"data": data.name, "asked": asked, "epsilon": epsilon, "mechanism": mechanism, "runs": runs}
                rows += [base | row for row in averages([_in_squares(r) for r in records] if self.squared else records)]
                shares_of_bound += [record["loss"] / record["bound"] for record in records if "bound" in record]
        if self.squared:
            return Result(rows=rows, verdicts=[_little_knowledge(rows), _squares_expected(rows)])
        verdicts = [judge(rows) for judge in (_little_knowledge, _floor, _no_floor, _price_of_tags)]
        return Result(rows=rows, verdicts=[*verdicts, _theorem(shares_of_bound)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        figure.set_size_inches(12, 7)
        names = list(dict.fromkeys(row["data"] for row in rows))
        panels = figure.subplots(len(names), 3, squeeze=False)
        for name, (by_epsilon, tested, by_number) in zip(names, panels):
            own = [row for row in rows if row["data"] == name and row["mechanism"] == "uRR"]
            _draw(by_epsilon, [row for row in own if row["asked"] == PEOPLE], "epsilon")
            _draw(tested, [_with_threshold(row) for row in own if row["asked"] == PEOPLE], "epsilon")
            tested.set(xlabel="epsilon", title=f"{name}: the same, with the threshold", ylim=by_epsilon.get_ylim())
            tagged = [row for row in own if row["epsilon"] == EPSILON and row["knowledge"] != ALL_PROTECTED]
            _draw(by_number, tagged, "asked")
            by_epsilon.set(xlabel="epsilon", title=f"{name}: uRR, {PEOPLE:,} people")
            by_number.set(xlabel="people", title=f"{name}: uRR, epsilon {EPSILON:g}; dashed: floors")
        for axes in panels.flat:
            axes.title.set_size(10)
        panels[0, 1].legend(fontsize=7)  # above losses with the threshold, which are small
        figure.supylabel(f"{'squared l2' if self.squared else 'total variation'} distance to the truth")


class SquaredPersonalised(Personalised):
    squared = True
    id = "uldp-figure-13"
    title = "Personalised ULDP with semantic tags: squared l2 loss by background knowledge"
    source = "Murakami and Kawamoto 2019, figure 13"
    abstract = (
        "As Figure 8, with squared l2 distances: people hide home and workplace behind tags, of which the collector "
        "knows "
        f"nothing, takes them for uniform, has asked {SURVEYED:,} people per tag, or knows the truth. Data: a "
        "simulated "
        "city and the homelocator messages, in place of Foursquare check-ins in Manhattan."
    )


def _in_squares(record: dict[str, Any]) -> dict[str, Any]:
    """A record of one run whose losses are the squared ones."""
    names = {"squared": "loss"} | {f"squared_{name}": name for name in ("threshold", "expected", "floor")}
    rest = {name: value for name, value in record.items() if name not in (*names, *names.values(), "bound")}
    return rest | {name: record[squared] for squared, name in names.items() if squared in record}


def settings(data: CheckIns, reduced: bool) -> Iterator[tuple[str, float, int]]:
    """Mechanism, epsilon and number of people of each simulation."""
    levels = (EPSILON,) if reduced else (0.1, 0.2, 0.5, EPSILON, 2.0, 4.0, math.log(len(data.values)))
    for mechanism in ("uRR",) if reduced else ("uRR", "uRAP", "uRAP aware"):
        for epsilon in levels:
            yield mechanism, epsilon, PEOPLE
    for asked in (10_000, 1_000_000) if reduced else (10_000, 30_000, 300_000, 1_000_000, 3_000_000):
        yield "uRR", EPSILON, asked


def averages(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Records of single runs, averaged by kind of knowledge."""
    for knowledge in dict.fromkeys(record["knowledge"] for record in records):
        own = [record for record in records if record["knowledge"] == knowledge]
        means = {trait: float(np.mean([record[trait] for record in own])) for trait in TRAITS if trait in own[0]}
        yield {"knowledge": knowledge} | mean_and_error([record["loss"] for record in own]) | means


def _losses(rows: list[dict[str, Any]], knowledge: str, column: str = "loss") -> dict[tuple[str, int], float]:
    """Losses of uRR by data and number of people, in increasing order, at the epsilon at which that number varies."""
    return {
        (row["data"], row["asked"]): row[column]
        for row in sorted(rows, key=lambda row: row["asked"])
        if (row["knowledge"], row["mechanism"], row["epsilon"]) == (knowledge, "uRR", EPSILON)
    }


def _ends(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """The fewest and the most people asked, by data."""
    asked = {name: [row["asked"] for row in rows if row["data"] == name] for name in {row["data"] for row in rows}}
    return {name: (min(numbers), max(numbers)) for name, numbers in sorted(asked.items())}


def _little_knowledge(rows: list[dict[str, Any]]) -> Verdict:
    none, survey, true = (_losses(rows, knowledge) for knowledge in (NONE, SURVEY, TRUE))
    closed = {
        name: (none[name, PEOPLE] - survey[name, PEOPLE]) / (none[name, PEOPLE] - true[name, PEOPLE])
        for name in _ends(rows)
    }
    return Verdict(
        claim="With a little background knowledge the loss comes close to that with full knowledge.",
        holds=all(share > 0.5 for share in closed.values()),
        evidence="; ".join(
            f"{name}, {PEOPLE:,} people: {none[name, PEOPLE]:.3g} without, {survey[name, PEOPLE]:.3g} with a survey of "
            f"{SURVEYED:,} per tag, {true[name, PEOPLE]:.3g} with the truth ({share:.0%} of the way)"
            for name, share in closed.items()
        )
        + ".",
    )


def _floor(rows: list[dict[str, Any]]) -> Verdict:
    holds, texts = True, []
    for knowledge in (NONE, UNIFORM):
        losses, floors = _losses(rows, knowledge), _losses(rows, knowledge, "floor")
        for name, (_, most) in _ends(rows).items():
            loss, floor = losses[name, most], floors[name, most]
            holds &= 0.98 * floor < loss < 1.25 * floor
            texts.append(f"{name}, {knowledge}: {loss:.3f} at {most:,} people, floor {floor:.3f}")
    return Verdict(
        claim="Wrong beliefs about the tags leave a loss that does not fall with the number of people (theorem 1).",
        holds=holds,
        evidence="; ".join(texts) + ".",
    )


def _no_floor(rows: list[dict[str, Any]]) -> Verdict:
    losses = _losses(rows, TRUE)
    kept = {
        name: losses[name, most] / losses[name, least] * math.sqrt(most / least)
        for name, (least, most) in _ends(rows).items()
    }
    return Verdict(
        claim="With the true distribution behind the tags the loss falls as one over the root of the number of people.",
        holds=all(0.7 < ratio < 1.3 for ratio in kept.values()),
        evidence="Loss times that root, most against fewest people: "
        + ", ".join(f"{name} {ratio:.2f}" for name, ratio in kept.items())
        + ".",
    )


def _price_of_tags(rows: list[dict[str, Any]]) -> Verdict:
    true, open_, every = (_losses(rows, knowledge) for knowledge in (TRUE, NOTHING_HIDDEN, ALL_PROTECTED))
    pairs = [(true[case] / open_[case], every[case] / true[case]) for case in true]
    return Verdict(
        claim="Hiding home and workplace behind tags, if these are known, costs little against leaving them in clear, "
        "and far less than protecting every cell.",
        holds=all(against_open < 1.2 and against_every > 10 for against_open, against_every in pairs),
        evidence=f"Loss against leaving them in clear: at most {max(pair[0] for pair in pairs):.2f} times; RR loses at "
        f"least {min(pair[1] for pair in pairs):.0f} times as much.",
    )


def _squares_expected(rows: list[dict[str, Any]]) -> Verdict:
    ratios = [row["loss"] / row["expected"] for row in rows if "expected" in row and row["knowledge"] != NONE]
    return Verdict(
        claim="The expected squared l2 losses are those of the covariance after the people behind tags are shared out.",
        holds=all(abs(ratio - 1) < 0.35 for ratio in ratios),
        evidence=f"Simulated / expected: {min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} points.",
    )


def _theorem(shares_of_bound: list[float]) -> Verdict:
    return Verdict(
        claim="The loss is at most that of the perturbed distribution plus what is wrong behind the tags (theorem 1, "
        "with the modulus of the estimated share of each tag).",
        holds=max(shares_of_bound) <= 1 + 1e-9,
        evidence=f"Loss / bound: {min(shares_of_bound):.2f} to {max(shares_of_bound):.2f} in "
        f"{len(shares_of_bound)} estimates.",
    )


def _with_threshold(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the loss of the estimate with the threshold, whose expectation is not known."""
    return {name: cell for name, cell in row.items() if name != "expected"} | {"loss": row["threshold"]}


def _draw(axes: Any, rows: list[dict[str, Any]], against: str) -> None:
    for knowledge, (colour, label) in STYLES.items():
        own = sorted((row for row in rows if row["knowledge"] == knowledge), key=lambda row: row[against])
        if not own:
            continue
        at = [row[against] for row in own]
        axes.plot(at, [row["loss"] for row in own], "o", color=colour, ms=4, label=label)
        expected = "expected" in own[0]
        axes.plot(at, [row["expected" if expected else "loss"] for row in own], "-" if expected else ":", color=colour)
        if against == "asked" and knowledge in (NONE, UNIFORM, SURVEY):
            axes.axhline(own[-1]["floor"], color=colour, ls="--", lw=1)
    axes.set(xscale="log", yscale="log")
    axes.grid(color="#e6e6e6")
