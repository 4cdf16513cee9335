"""Groups on real flights: which airlines have another share of flights in the first half of the year."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.drawn_counts import draw_counts
from labs.experiments.frame import Experiment, Result, Verdict, progress, read_table, sample_people
from uldp_transforms.jobs import cli, estimate
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.figures.compared_figures import FOUND
from uldp_transforms_compare.compare import compare_command
from uldp_transforms_compare.comparisons.compare import difference_at
from uldp_transforms_tables.simulate import simulate_command

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uldp_transforms.ldp.estimators import Estimate

HALVES = ("January to June", "July to December")
REFERENCE = "UA"
LEAST_FLIGHTS = 3_000
ASKED = 5_000
RULE = 0.03
"""An airline flies differently if its true share differs from the reference by this or more."""
EPSILON = 2.0
_REPORTS_AT_ONCE = 1_000


class Carriers(Experiment):
    id = "carriers"
    title = "Airlines whose flights are spread differently over the year"
    source = "departures from New York in 2013"
    abstract = (
        "One passenger of each flight is asked in which half of 2013 it was; the airline is a dimension. All flights "
        f"of United, and at most {ASKED:,} of each other airline with {LEAST_FLIGHTS:,} flights or more, report by "
        f"k-RR at epsilon {EPSILON:g}. The main job estimates by airline, and uldp compare compares each with United. "
        f"The rule, stated before any report: an airline flies differently if its share of {HALVES[0]}, of all its "
        f"flights, differs from United's by {100 * RULE:g} points or more."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        airlines = read_airlines()
        asked = ask(airlines, rng)
        rows = [*by_job(airlines, asked, int(rng.integers(1 << 32)))]
        repetitions = runs or (20 if reduced else 500)
        others_alike = alike(airlines)
        rows += [
            repeated("flights", airlines, repetitions, rng),
            repeated("others exactly alike", others_alike, repetitions, rng),
        ]
        return Result(rows=rows, verdicts=[exactly(rows), false_shares(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        axes = figure.subplots()
        compared = sorted((row for row in rows if "carrier" in row), key=lambda row: row["difference"])
        for place, row in enumerate(compared):
            colour = "tab:red" if row["found"] else "tab:gray"
            axes.plot([row["low"], row["high"]], [place, place], color=colour)
            axes.plot(row["difference"], place, "o", color=colour)
            axes.plot(row["true_difference"], place, "kx")
        axes.axvline(0, color="black", linewidth=0.5)
        axes.set_yticks(range(len(compared)), [row["carrier"] for row in compared])
        axes.set_xlabel(f"share of {HALVES[0]} minus that of {REFERENCE}: 95 % interval; x: all flights; red: found")


def read_airlines() -> dict[str, np.ndarray]:
    """(2,) flights in each half of the year, by airline with enough flights; the reference comes first."""
    table = read_table("flights_2013_carriers.csv")
    months = np.array([table[str(month)] for month in range(1, 13)], dtype=np.int64)
    halves = dict(zip(table["carrier"], months.reshape(2, 6, -1).sum(axis=1).T))
    enough = {name: flights for name, flights in halves.items() if flights.sum() >= LEAST_FLIGHTS}
    return {REFERENCE: enough[REFERENCE]} | enough


def true_difference(airlines: dict[str, np.ndarray], name: str) -> float:
    """The share of the first half of the year in all flights, minus that of the reference."""
    of, reference = airlines[name], airlines[REFERENCE]
    return float(of[0] / of.sum() - reference[0] / reference.sum())


def different(airlines: dict[str, np.ndarray]) -> set[str]:
    """The airlines that fly differently by the rule."""
    return {name for name in airlines if abs(true_difference(airlines, name)) >= RULE}


def alike(airlines: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The airlines if all but those that fly differently had the flights, and so the share, of the reference."""
    truly = different(airlines)
    return {name: flights if name in truly else airlines[REFERENCE] for name, flights in airlines.items()}


def ask(airlines: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """(2,) flights whose passengers report, by airline: all of the reference, some of the others."""
    return {
        name: flights if name == REFERENCE or flights.sum() <= ASKED else sample_people(flights, ASKED, rng)
        for name, flights in airlines.items()
    }


def question(airlines: dict[str, np.ndarray]) -> dict[str, Any]:
    """The collection as JSON."""
    return {
        "id": "half-years",
        "version": 1,
        "alphabet": {"id": "closed", "values": list(HALVES)},
        "mechanism": {"id": "krr", "epsilon": EPSILON},
        "dimensions": [{"name": "carrier", "values": list(airlines)}],
    }


# ------------------------------------------------------------------------------------------------- the commands


def by_job(airlines: dict[str, np.ndarray], asked: dict[str, np.ndarray], seed: int) -> list[dict[str, Any]]:
    """A row for each airline but the reference, from the commands simulate, estimate and compare."""
    with tempfile.TemporaryDirectory() as folder:
        run_commands(Path(folder), asked, seed)
        lines = Path(folder, "results", "comparisons.jsonl").read_text("utf-8").splitlines()
    of_first = [row for row in map(json.loads, lines) if row["value"] == HALVES[0]]
    truly = different(airlines)
    rows = []
    for row in of_first:
        name = row["group_a"].removeprefix("carrier=")
        rows.append(
            {
                "carrier": name,
                "reports": int(asked[name].sum()),
                "true_difference": true_difference(airlines, name),
                **{field: row[field] for field in ("difference", "low", "high", "q_value")},
                "different": int(name in truly),
                "found": int(row["q_value"] <= FOUND),
            }
        )
    return rows


def run_commands(folder: Path, asked: dict[str, np.ndarray], seed: int) -> None:
    """Simulate the passengers, estimate and compare; what compare prints is printed."""
    collection, values, reports, results = (
        str(folder / name) for name in ("C.json", "V.csv", "reports.avro", "results")
    )
    Path(collection).write_text(json.dumps(question(asked)), encoding="utf-8")
    with open(values, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["value", "event_time", "carrier"])
        for name, flights in asked.items():
            for half, number in zip(HALVES, flights.tolist()):
                writer.writerows([[half, "2014-01-02T12:00:00Z", name]] * number)
    simulate = [collection, "--values", values, "--output", reports, "--form", "packed"]
    simulate += ["--pack", str(_REPORTS_AT_ONCE), "--seed", str(seed)]
    job = ["--collection", collection, "--input", reports, "--output", results, "--window", "1d"]
    job += ["--by", "carrier", "--write_counts"]
    with contextlib.redirect_stdout(io.StringIO()):
        done = simulate_command.main(simulate) or estimate.main(job)
    done = done or compare_command.main([results, "--by", "carrier", "--against", f"carrier={REFERENCE}"])
    if done != cli.DONE:
        raise RuntimeError(f"the commands must end with {cli.DONE}, got {done}")
    print()


# ---------------------------------------------------------------------------------------------- many repetitions


@dataclasses.dataclass
class _Tally:
    exactly: int = 0
    missed: int = 0
    others: int = 0
    false_share: float = 0.0


def repeated(population: str, airlines: dict[str, np.ndarray], runs: int, rng: np.random.Generator) -> dict[str, Any]:
    """How often which airlines are found: counts by their exact law, and the library's comparison."""
    collection, truly, tally = Collection.from_json(question(airlines)), different(airlines), _Tally()
    for _ in progress(range(runs), population):
        found = find(collection, ask(airlines, rng), rng)
        tally.exactly += found == truly
        tally.missed += not truly <= found
        tally.others += not found <= truly
        tally.false_share += len(found - truly) / max(1, len(found))
    return {"population": population, "runs": runs} | {
        field: number / runs for field, number in dataclasses.asdict(tally).items()
    }


def find(collection: Collection, asked: dict[str, np.ndarray], rng: np.random.Generator) -> set[str]:
    """The airlines that one repetition finds."""
    counts = {name: draw_counts(collection, HALVES, flights, rng) for name, flights in asked.items()}
    return found_in({name: collection.estimate(of, "empirical") for name, of in counts.items()})


def found_in(sides: dict[str, Estimate]) -> set[str]:
    """The airlines with a q-value up to .05.

    They have the largest R of m rows such that R intervals at the level 1 - .05 R / m do not contain 0, which takes
    fewer intervals than p-values do.
    """
    others = [name for name in sides if name != REFERENCE]
    number = len(others) * len(HALVES)
    for rank in range(number, 0, -1):
        level = 1 - FOUND * rank / number
        ends = np.array([difference_at(sides[name], sides[REFERENCE], level) for name in others])
        outside = (ends[:, 0] > 0) | (ends[:, 1] < 0)
        if outside.sum() >= rank:
            return {name for name, apart in zip(others, outside) if apart.any()}
    return set()


# ------------------------------------------------------------------------------------------------------ verdicts


def exactly(rows: list[dict[str, Any]]) -> Verdict:
    compared = [row for row in rows if "carrier" in row]
    truly, found = ([row["carrier"] for row in compared if row[field]] for field in ("different", "found"))
    [flights] = [row for row in rows if row.get("population") == "flights"]
    return Verdict(
        claim="The airlines that fly differently are found, and no other.",
        holds=truly == found,
        evidence=f"Different: {', '.join(truly)}; found: {', '.join(found)}. In {flights['runs']} repetitions exactly "
        f"these in {flights['exactly']:.1%}, one missing in {flights['missed']:.1%}, another one in "
        f"{flights['others']:.1%}.",
    )


def false_shares(rows: list[dict[str, Any]]) -> Verdict:
    flights, alike = (row for row in rows if "population" in row)
    return Verdict(
        claim=f"If all others were exactly like {REFERENCE}, at most {FOUND:.0%} of what is found would be false.",
        holds=bool(alike["false_share"] <= FOUND + 4 * np.sqrt(FOUND / alike["runs"])),  # 0 to 1: variance <= mean
        evidence=f"{alike['false_share']:.1%}; with the real flights, whose others differ a little, "
        f"{flights['false_share']:.1%}.",
    )
