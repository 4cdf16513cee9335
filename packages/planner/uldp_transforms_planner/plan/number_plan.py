"""Plans a collection of numbers: the intervals of its mean and quantiles by every mechanism."""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.text_table import aligned
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.confidence import CONFIDENCE, percent
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_planner.plan.collection_text import spec_text
from uldp_transforms_planner.plan.plan_targets import epsilon_of, verdict
from uldp_transforms_planner.planning.number_forecast import (
    NumberForecast,
    forecast_numbers,
    least_epsilon_of_mean,
    needed_for_mean,
    plan_numbers,
)
from uldp_transforms_tables.people_options import PEOPLE, people_in, refuse_people_options, say_missing

_MULTIPLES = (0.1, 1, 10)
_PEOPLE = tuple(name.removeprefix("--") for name in PEOPLE)
_TAKEN = ("collection", "epsilon", "reports", "values", *_PEOPLE, "output", "open", "target_half_width", "confidence")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberPlanning:
    """Options of a plan for numbers.

    Attributes:
        collection: with an ordered alphabet; its mechanism has no effect.
        epsilon, num_reports: of the plan.
        values: file of people's values; None: equal shares of all bins.
        shares: (K,) shares of symbols in this file.
        output: file for the recommended collection; None: print it.
        target: half width that the mean's interval should have, in the unit of the numbers; None: no target.
        confidence: of the intervals.
        is_least: whether epsilon is the smallest that meets the target.
    """

    collection: Collection
    epsilon: float
    num_reports: int
    values: str | None
    shares: np.ndarray | None
    output: str | None
    target: float | None
    confidence: float = CONFIDENCE
    is_least: bool = False


def read_number_arguments(args: argparse.Namespace) -> NumberPlanning:
    """Options of a command line with ``--collection``; raises SpecError, OSError."""
    for name, value in vars(args).items():
        if (name not in _TAKEN and value is not None) or (name == "open" and value):
            raise SpecError(f"--{name} can be given only without --collection, got {value}")
    collection = Collection.from_json(args.collection)
    if collection.alphabet.bin_edges is None:
        raise SpecError(f"--collection must have the alphabet ordered, got {collection.alphabet.id}")
    if args.values is None:
        refuse_people_options(args, "--values")
    shares, target = None if args.values is None else _shares_in_file(collection, args), args.target_half_width
    epsilon = epsilon_of(args, lambda: least_epsilon_of_mean(collection, target, args.reports, shares, args.confidence))
    return NumberPlanning(
        collection=collection,
        epsilon=epsilon,
        is_least=args.epsilon is None,
        num_reports=args.reports,
        values=args.values,
        shares=shares,
        output=args.output,
        target=target,
        confidence=args.confidence,
    )


def _shares_in_file(collection: Collection, args: argparse.Namespace) -> np.ndarray:
    """(K,) shares of people with each symbol of the alphabet; raises SpecError without saying a value."""
    alphabet = collection.alphabet
    file = people_in(args.values, args, listed={"": alphabet.known_values or ()})
    counts = np.zeros(alphabet.num_symbols)
    for values, _ in file.read():
        symbols = alphabet.encode(values, np.zeros(len(values), dtype=np.int64), 1)
        counts += np.bincount(symbols, minlength=len(counts))
    if not counts.any():
        raise SpecError(f"{file.path} must have at least 1 value, got none")
    say_missing("plan", file)
    shares: np.ndarray = counts / counts.sum()
    return shares


def run_number_plan(planning: NumberPlanning) -> int:
    """Compute the plan, write the file, print the table."""
    found, best = plan_numbers(
        planning.collection,
        planning.epsilon,
        planning.num_reports,
        planning.shares,
        planning.confidence,
        planning.target,
    )
    later = {
        number: forecast_numbers(best.collection, number, planning.shares, planning.confidence)
        for number in (max(round(planning.num_reports * times), 1) for times in _MULTIPLES)
    }
    spec = best.collection.to_json()
    if planning.output is not None:
        with open(planning.output, "w", encoding="utf-8") as file:
            file.write(spec_text(spec))
    lines = [*_heading(planning), "", *_table(found), "", *_explained(), ""]
    if planning.target is not None:
        lines += [*_needed(planning, planning.target, found), ""]
    print("\n".join([*lines, *_advice(planning, best), "", *_by_reports(later)]))
    print(
        "\n" + spec_text(spec) if planning.output is None else f"The recommended collection: {planning.output}\n",
        end="",
    )
    return cli.DONE


def _heading(planning: NumberPlanning) -> list[str]:
    alphabet = planning.collection.alphabet
    edges = alphabet.bin_edges
    assert edges is not None
    unit = f" {alphabet.unit}" if alphabet.unit else ""
    shares = "equal shares of all bins" if planning.values is None else f"the shares in {planning.values}"
    level = percent(planning.confidence)
    return [
        f"Numbers from {edges[0]:g} to {edges[-1]:g}{unit} in {len(edges) - 1} bins; {planning.num_reports:,} reports "
        f"at epsilon {planning.epsilon:g}",
        f"Expected half widths of {level} intervals{f' in{unit}' if unit else ''}, for {shares}:",
    ]


def _table(found: list[NumberForecast]) -> list[str]:
    titles = ["mechanism", "bytes", "mean", "median", "p90", "median, sure", "p90, sure"]
    return aligned(
        [
            titles,
            *([one.collection.mechanism.id, f"{one.collection.mechanism.payload_size}", *_cells(one)] for one in found),
        ]
    )


def _cells(one: NumberForecast) -> list[str]:
    halves = [one.mean, *one.quantiles, *one.sure_quantiles]
    return ["" if half is None else f"{half:.3g}" for half in halves]


def _needed(planning: NumberPlanning, target: float, found: list[NumberForecast]) -> list[str]:
    """What each mechanism needs for the target."""
    unit = planning.collection.alphabet.unit
    table = [["mechanism", "reports needed", "epsilon needed"]]
    for one in found:
        needed = needed_for_mean(one.collection, target, planning.num_reports, planning.shares, planning.confidence)
        reports = "" if needed.num_reports is None else f"{needed.num_reports:,}"
        table.append([one.collection.mechanism.id, reports, "" if needed.epsilon is None else f"{needed.epsilon:.3f}"])
    return [
        f"For a half width of {target:g}{f' {unit}' if unit else ''} of the mean, with the epsilon or the number of "
        "reports above:",
        "",
        *aligned(table),
    ]


def _verdict(planning: NumberPlanning, best: NumberForecast) -> list[str]:
    """Whether the recommended collection meets the target."""
    target, unit = planning.target, planning.collection.alphabet.unit
    if target is None:
        return []
    needed = needed_for_mean(best.collection, target, planning.num_reports, planning.shares, planning.confidence)
    return [
        verdict(
            f"half width {target:g}{f' {unit}' if unit else ''} of the mean",
            needed.half_width,
            needed.half_width <= target,
            is_least=planning.is_least,
            epsilon=needed.epsilon,
            reports=needed.num_reports,
        )
    ]


def _explained() -> list[str]:
    return [
        "bytes: size of a report without its header. mean: the unbiased mean. sure: intervals that assume no smooth",
        "distribution; the others take neighbouring bins to be alike, where the mechanism allows it. An open",
        "interval counts up to the end of the range.",
    ]


def _advice(planning: NumberPlanning, best: NumberForecast) -> list[str]:
    mechanism, widths = best.collection.mechanism, "With other numbers of reports it has these half widths:"
    return [" ".join([f"Recommended: {mechanism.id}.", *mechanism.caveats, *_verdict(planning, best), widths])]


def _by_reports(later: dict[int, NumberForecast]) -> list[str]:
    titles = ["reports", "mean", "median", "p90", "median, sure", "p90, sure"]
    return aligned([titles, *([f"{number:,}", *_cells(one)] for number, one in later.items())], left=())
