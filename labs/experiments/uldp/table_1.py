"""Table 1: the l1 loss of the personalised mechanism, and the two terms of its bound (equation 23)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, shares, simulate_reports
from labs.experiments.uldp.background import NONE, SURVEY, SURVEYED, TRUE, background
from labs.experiments.uldp.check_ins import TAGS, CheckIns, city, homelocator
from labs.experiments.uldp.people_and_mechanisms import Population, mean_and_error, most_likely

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASES = {"I": NONE, "II": SURVEY, "III": TRUE}
"""What the collector knows of the cells behind the tags."""

PRINTED = {
    ("uRR", "I"): (0.0673, 0.0270, 0.0734),
    ("uRR", "II"): (0.0424, 0.0270, 0.0296),
    ("uRR", "III"): (0.0262, 0.0270, 0.0),
    ("uRAP", "I"): (0.0677, 0.0276, 0.0735),
    ("uRAP", "II"): (0.0428, 0.0276, 0.0296),
    ("uRAP", "III"): (0.0267, 0.0276, 0.0),
}
"""The paper's l1 loss, first and second term, on its own data."""

TERMS = ("l1", "first_term", "second_term")


class BoundTerms(Experiment):
    id = "uldp-table-1"
    title = "l1 loss of the personalised mechanism and the two terms of its bound"
    source = "Murakami and Kawamoto 2019, table 1"
    abstract = (
        "uRR and uRAP at epsilon = ln of the number of cells, maximum likelihood (EM; closed form for uRR), from "
        "100,000 "
        "people (reduced: 5,000). Home and workplace are hidden behind tags; the collector knows nothing of them (case "
        f"I), has asked {SURVEYED:,} people per tag (II; in the paper, the distribution of POIs), or knows the truth "
        "(III). "
        "First term: l1 error of the perturbed distribution; second: sum over tags of the absolute estimated share "
        "times "
        "the l1 error of what is believed behind the tag. The printed numbers of the paper stand beside ours: its "
        "data are "
        "Foursquare check-ins, ours a simulated city and the homelocator messages."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        asked, runs = (5_000, runs or 2) if reduced else (100_000, runs or 10)
        rows = [
            row
            for data in ([city()] if reduced else [city(), homelocator()])
            for mechanism in ("uRR", "uRAP")
            for row in table_rows(data, mechanism, asked, runs, rng)
        ]
        return Result(rows=rows, verdicts=[bound_holds(rows), knowledge_helps(rows), first_term_stays(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        names = list(dict.fromkeys(row["data"] for row in rows))
        figure.set_size_inches(4.6 * len(names) + 1.4, 4)
        for axes, name in zip(figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names):
            here = [row for row in rows if row["data"] == name]
            at = np.arange(len(here))
            first, second = (np.array([row[term] for row in here]) for term in TERMS[1:])
            axes.bar(at, first, color="#56b4e9", label="first term")
            axes.bar(at, second, bottom=first, color="#e69f00", label="second term")
            bars = [2 * row["l1_error"] for row in here]
            axes.errorbar(at, [row["l1"] for row in here], bars, fmt="ko", ms=4, capsize=3, label="l1 loss")
            axes.plot(at, [row["printed_l1"] for row in here], "x", color="#d55e00", label="l1 printed (its data)")
            axes.set_xticks(at, [f"{row['mechanism']}\n{row['case']}" for row in here])
            axes.set(title=f"{name}, {here[0]['asked']:,} people")
        figure.axes[0].set_ylabel("l1 distance")
        figure.axes[-1].legend(fontsize=8)


def table_rows(data: CheckIns, mechanism: str, asked: int, runs: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """One row for each case, averaged over the same runs."""
    texts = (*data.values, *TAGS)
    symbols = Population(
        name=data.name, values=texts, sensitive=(*data.sensitive, *TAGS), people=np.ones(len(texts), dtype=np.int64)
    )
    epsilon = math.log(len(data.values))
    collection = symbols.collection(mechanism, epsilon)
    found: dict[str, list[tuple[float, float, float]]] = {case: [] for case in CASES}
    for _ in range(runs):
        people = data.draw(asked, rng)
        batch = simulate_reports(collection, texts, np.append(people[0], people[1:].sum(axis=1)), rng)
        perturbed = most_likely(collection, batch)
        for case, knowledge in CASES.items():
            belief = background(data, knowledge, rng)
            found[case].append(terms(data, perturbed, belief))
    rows = []
    for case, sample in found.items():
        columns = np.array(sample).T
        row: dict[str, Any] = {"data": data.name, "mechanism": mechanism, "case": case, "knowledge": CASES[case]}
        row |= {"epsilon": epsilon, "asked": asked, "runs": runs}
        row |= {term: float(column.mean()) for term, column in zip(TERMS, columns)}
        row["l1_error"] = mean_and_error(columns[0])["standard_error"]
        row |= {f"printed_{term}": number for term, number in zip(TERMS, PRINTED[mechanism, case])}
        rows.append(row)
    return rows


def terms(data: CheckIns, perturbed: np.ndarray, belief: np.ndarray | None) -> tuple[float, float, float]:
    """The l1 loss and the two terms of equation (23), from the estimate (K + 2,) of cells and tags."""
    cells, tags = perturbed[: len(data.values)], perturbed[len(data.values) :]
    behind = np.stack([shares(cells * data.hideable)] * len(TAGS)) if belief is None else belief
    estimate = cells + tags @ behind
    wrong = np.abs(behind - data.behind_tags).sum(axis=1)
    first = np.abs(perturbed - data.intermediate).sum()
    return float(np.abs(estimate - data.frequencies).sum()), float(first), float(np.abs(tags) @ wrong)


def bound_holds(rows: list[dict[str, Any]]) -> Verdict:
    """Whether Theorem 1 holds on average."""
    ratios = [row["l1"] / (row["first_term"] + row["second_term"]) for row in rows]
    return Verdict(
        claim="The l1 loss is at most the sum of the two terms (theorem 1).",
        holds=max(ratios) <= 1 + 1e-9,
        evidence=f"{min(ratios):.2f} to {max(ratios):.2f} of it in {len(rows)} rows.",
    )


def knowledge_helps(rows: list[dict[str, Any]]) -> Verdict:
    """Cases I, II, III in this order."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["data"], row["mechanism"]), []).append(row["l1"])
    return Verdict(
        claim="The loss falls from case I to II to III.",
        holds=all(losses[0] > losses[1] > losses[2] for losses in found.values()),
        evidence="; ".join(f"{' '.join(key)}: {', '.join(f'{x:.3f}' for x in line)}" for key, line in found.items())
        + ".",
    )


def first_term_stays(rows: list[dict[str, Any]]) -> Verdict:
    """The second term of case III."""
    last = [row["second_term"] for row in rows if row["case"] == "III"]
    return Verdict(
        claim="What is known of the tags changes the second term only, which is 0 in case III.",
        holds=max(last) <= 1e-9,
        evidence=f"Second term of case III: at most {max(last):.1e}.",
    )
