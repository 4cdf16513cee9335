"""Trials of means and quantiles on given numbers: errors, and what intervals cover.

Every repetition draws people from the file; each sends one report, and the collector estimates the figures. The truth
is that of the numbers in the file, once clamped to the range of the bins.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence

import numpy as np

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.text_table import aligned
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Alphabet
from uldp_transforms.ldp.confidence import CONFIDENCE, percent
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.number_estimates import Mean, Quantile, estimate_numbers
from uldp_transforms_planner.planning.number_forecast import PLANNED, mechanisms, with_mechanism

MEAN, NAMES = "mean", ("median", "p90")
_REFUSED = ("sensitive", "open", "candidates", "max_cohorts", "png")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberTrial:
    """Definition of a trial.

    Attributes:
        collections: to try, all with the same ordered alphabet.
        values: the distinct texts in the file.
        held: (n,) position of each person's value.
        truth: figure -> its value among the numbers in the file.
        repetitions, num_reports, seed: as for ``Trial``.
        json: file for the table; None: none.
        confidence: of the intervals.
    """

    collections: tuple[Collection, ...]
    values: tuple[str, ...]
    held: np.ndarray
    truth: dict[str, float]
    repetitions: int
    num_reports: int
    seed: int | None
    json: str | None
    confidence: float = CONFIDENCE


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberOutcome:
    """Errors of one figure over the repetitions; the fields are those of ``--json``.

    Attributes:
        mechanism, epsilon, figure: what is estimated, and by which reports.
        error: root mean square error: of the unbiased mean, and of quantiles of the smooth distribution, or of the
            unbiased one for mechanisms that have no smooth one.
        covered, half_width: share of the intervals of this estimate that contain the truth, and their mean half width;
            open intervals count up to the end of the range.
        sure_covered, sure_half_width: the same of the intervals that assume no smoothness.
    """

    mechanism: str
    epsilon: float
    figure: str
    error: float
    covered: float
    half_width: float
    sure_covered: float
    sure_half_width: float


def read_number_trial(
    args: argparse.Namespace, estimator: str, values: tuple[str, ...], held: np.ndarray
) -> NumberTrial:
    """The trial of a command line with ``--collection``; raises SpecError, OSError."""
    for name in _REFUSED:
        if getattr(args, name):
            raise SpecError(f"--{name} can be given only without --collection, got {getattr(args, name)}")
    if args.estimators != (estimator,):
        raise SpecError(f"--estimators can be given only without --collection, got {','.join(args.estimators)}")
    collection = Collection.from_json(args.collection)
    if collection.alphabet.bin_edges is None:
        raise SpecError(f"--collection must have the alphabet ordered, got {collection.alphabet.id}")
    makers = {make.id: make for make in mechanisms(collection.alphabet)}
    unknown = [name for name in args.mechanisms or () if name not in makers]
    if unknown:
        raise SpecError(f"--mechanisms must only name {', '.join(makers)} with --collection, got {', '.join(unknown)}")
    return NumberTrial(
        collections=tuple(
            with_mechanism(collection, makers[name], epsilon)
            for name in args.mechanisms or makers
            for epsilon in dict.fromkeys(args.epsilons)
        ),
        values=values,
        held=held,
        truth=_truth(collection.alphabet, values, held),
        repetitions=args.repetitions,
        num_reports=args.reports or len(held),
        seed=args.seed,
        json=args.json,
        confidence=args.confidence,
    )


def _truth(alphabet: Alphabet, values: Sequence[str], held: np.ndarray) -> dict[str, float]:
    """Figures of the numbers; raises SpecError if a text is no value, or if all stand for no number."""
    edges = alphabet.bin_edges
    assert edges is not None
    is_number = np.isin(
        alphabet.encode(values, np.zeros(len(values), dtype=np.int64), 1), alphabet.symbols_in_order[: len(edges) - 1]
    )
    if not is_number.any():
        raise SpecError(f"--values must have a number, got {len(values)} texts that stand for none")
    numbers = np.array([float(value) if is_one else np.nan for value, is_one in zip(values, is_number)])[held]
    numbers = np.clip(numbers[~np.isnan(numbers)], edges[0], edges[-1])
    found = dict(zip(NAMES, np.quantile(numbers, PLANNED).tolist()))
    return found if alphabet.bin_centres is None else {MEAN: float(numbers.mean())} | found


def evaluate_numbers(trial: NumberTrial) -> list[NumberOutcome]:
    """Outcomes: one per collection and figure."""
    seeds = np.random.SeedSequence(trial.seed).spawn(len(trial.collections))
    return [
        outcome
        for collection, seed in zip(trial.collections, seeds)
        for outcome in _tried(trial, collection, np.random.default_rng(seed))
    ]


def _tried(trial: NumberTrial, collection: Collection, rng: np.random.Generator) -> Iterator[NumberOutcome]:
    people, found = np.array(trial.values, dtype=object), []
    for _ in range(trial.repetitions):
        texts = people[rng.choice(trial.held, trial.num_reports)].tolist()
        counts = collection.count(collection.perturb(texts, rng))
        found.append(estimate_numbers(collection, counts, quantiles=PLANNED, confidence=trial.confidence))
    edges = collection.alphabet.bin_edges
    assert edges is not None
    for name, true in trial.truth.items():
        figures = [one.mean if name == MEAN else one.quantiles[NAMES.index(name)] for one in found]
        rows = np.array([_row(one, edges, name != MEAN) for one in figures if one is not None])
        value, low, high, sure_low, sure_high = rows.T
        yield NumberOutcome(
            mechanism=collection.mechanism.id,
            epsilon=collection.mechanism.epsilon,
            figure=name,
            error=float(np.sqrt(((value - true) ** 2).mean())),
            covered=float(((low <= true) & (true <= high)).mean()),
            half_width=float((high - low).mean() / 2),
            sure_covered=float(((sure_low <= true) & (true <= sure_high)).mean()),
            sure_half_width=float((sure_high - sure_low).mean() / 2),
        )


def _row(one: Mean | Quantile, edges: np.ndarray, prefers_smooth: bool) -> tuple[float, ...]:
    """Estimate and both intervals; an open end is the end of the range, and an unknown estimate its middle."""
    is_smooth = prefers_smooth and one.display_value is not None
    shown = (one.display_value, one.display_low, one.display_high) if is_smooth else (one.value, one.low, one.high)
    ends = (float(edges.mean()), edges[0], edges[-1], edges[0], edges[-1])
    return tuple(end if number is None else number for number, end in zip((*shown, one.low, one.high), ends))


def run_number_trial(trial: NumberTrial) -> int:
    """Run the trial, print the table, write the file."""
    outcomes = evaluate_numbers(trial)
    titles = ["mechanism", "epsilon", "figure", "truth", "error", "covered", "half width"]
    titles += ["covered, sure", "half, sure"]
    print(
        f"{trial.num_reports:,} reports, drawn from the {len(trial.held):,} people in the file, "
        f"{trial.repetitions} times",
        *aligned([titles, *(_cells(of, trial.truth[of.figure]) for of in outcomes)], left=(0, 2)),
        "truth: of the numbers in the file, clamped to the range of the bins. error: root mean square.",
        f"covered: {percent(trial.confidence)} intervals that contain the truth. sure: intervals that assume no smooth",
        "distribution; the others take neighbouring bins to be alike, where the mechanism allows it.",
        sep="\n",
    )
    if trial.json is not None:
        with whole_file(trial.json) as file:
            file.write(json.dumps([dataclasses.asdict(of) for of in outcomes], indent=1).encode())
    return cli.DONE


def _cells(of: NumberOutcome, truth: float) -> list[str]:
    return [
        of.mechanism,
        f"{of.epsilon:g}",
        of.figure,
        f"{truth:.4g}",
        f"{of.error:.3g}",
        f"{100 * of.covered:.0f} %",
        f"{of.half_width:.3g}",
        f"{100 * of.sure_covered:.0f} %",
        f"{of.sure_half_width:.3g}",
    ]
