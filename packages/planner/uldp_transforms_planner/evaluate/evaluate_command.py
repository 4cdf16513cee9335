"""Tries mechanisms and estimators on your own data, and reports the error, the coverage and the time of each.

Every repetition draws people from the file, by default as many as it has; each sends one report, and the collector
estimates the shares. Errors are relative to the shares in the file, which is the sampled population. With --open people
may send any text; the candidates are estimated with the buckets and cohorts that ``uldp plan`` chooses.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.text_table import aligned
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.jobs.spec_options import spec_option
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.confidence import percent
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.registry import Registry
from uldp_transforms.spec.spec_fields import ESTIMATOR
from uldp_transforms_planner.evaluate.number_trials import NumberTrial, read_number_trial, run_number_trial
from uldp_transforms_planner.evaluate.trial_ways import closed_ways, open_ways
from uldp_transforms_planner.evaluate.trials import Outcome, Trial, evaluate, tried
from uldp_transforms_planner.plan.value_lists import value_lines
from uldp_transforms_planner.planning import OpenQuestion
from uldp_transforms_planner.utility.arguments import require_signal
from uldp_transforms_tables.people_options import PEOPLE, TABLE, people_in, say_missing
from uldp_transforms_tables.values_file import ValuesFile

_OPEN_ONLY = ("candidates", "max_cohorts")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Options of an evaluation, and the files to write (None: no file)."""

    trial: Trial
    json: str | None
    png: str | None


def configure(argv: Sequence[str]) -> Evaluation | NumberTrial:
    """Parse the command line; raises SpecError, OSError."""
    args = _parser().parse_args(argv)
    require_signal("--epsilons", min(args.epsilons))
    for name in _OPEN_ONLY:
        if getattr(args, name) is not None and not args.open:
            raise SpecError(f"--{name} can be given only with --open, got {getattr(args, name)}")
    if args.png is not None:
        drawing("trials")
    numbers = None if args.collection is None else Collection.from_json(args.collection).alphabet
    file = people_in(args.values, args, listed={"": (numbers and numbers.known_values) or ()})
    values, held = _people(file)
    say_missing("evaluate", file)
    if args.collection is not None:
        return read_number_trial(args, ESTIMATOR, values, held)
    trial = (_open_trial if args.open else _closed_trial)(args, values, held)
    if all(way.reason for way in trial.ways):
        raise SpecError(
            "--mechanisms must name at least one mechanism that can be tried, got "
            f"{trial.ways[0].mechanism}: {trial.ways[0].reason}"
        )
    return Evaluation(trial=trial, json=args.json, png=args.png)


def _parser() -> cli.Parser:
    parser = cli.Parser("evaluate", description=__doc__)
    add = parser.add_argument
    add("--values", required=True, help=f"table of people's values, as they would report them: {TABLE}")
    cli.add_options(parser, PEOPLE)
    add(
        "--collection",
        help="JSON file of a collection with an ordered alphabet, for means and quantiles of numbers; its mechanism "
        "has no effect",
    )
    add("--sensitive", help="text file of the sensitive values, one per line (default: all)")
    add("--open", action="store_true", help="open alphabet: people may send any text")
    add(
        "--candidates",
        help="values to estimate in open alphabets: a text file with one value per line; with --open (default: all "
        "texts in --values)",
    )
    add("--max_cohorts", type=cli.positive(), help="limit on the number of cohorts, as for uldp plan; with --open")
    add("--mechanisms", type=_mechanisms, help="comma-separated ids of mechanisms (default: all that apply)")
    add("--epsilons", type=cli.numbers, default="0.5,1,2", help="comma-separated values of epsilon")
    add(
        "--estimators",
        metavar="ESTIMATORS",
        type=cli.Listed(ESTIMATORS, _estimators),
        default=ESTIMATOR,
        help="comma-separated ids",
    )
    add("--repetitions", type=cli.positive(), default=5, help="number of repetitions")
    add(
        "--reports",
        type=cli.positive(),
        help="number of reports in each repetition, one per person (default: as many as people in the file)",
    )
    add("--confidence", **spec_option("confidence", help="level of confidence of the intervals"))
    add("--seed", type=cli.seed, help="seed for reproducible results (except times)")
    add("--json", help="JSON file for the table")
    add("--png", help="PNG file to write; needs the extra 'plot'")
    return parser


def _mechanisms(text: str) -> tuple[str, ...]:
    """An argparse type: ids of mechanisms."""
    return _ids(text, MECHANISMS)


def _estimators(text: str) -> tuple[str, ...]:
    """An argparse type: ids of estimators."""
    return _ids(text, ESTIMATORS)


def _ids(text: str, known: Registry[Any]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    try:
        unknown = [name for name in names if name not in known]
    except SpecError as error:  # argparse would hide the message
        raise argparse.ArgumentTypeError(str(error)) from None
    if unknown:
        raise argparse.ArgumentTypeError(f"must be ids from {', '.join(sorted(known))}, got {text!r}")
    return names


def _people(file: ValuesFile) -> tuple[tuple[str, ...], np.ndarray]:
    """The distinct values in alphabetical order, and the position of each person's value."""
    codes: dict[str, int] = {}
    found = [
        np.array([codes.setdefault(canonical(value), len(codes)) for value in values]) for values, _ in file.read()
    ]
    if len(codes) < 2:
        raise SpecError(f"{file.path} must have at least 2 different values, got {len(codes)}")
    order = sorted(range(len(codes)), key=list(codes).__getitem__)
    return tuple(sorted(codes)), np.argsort(order)[np.concatenate(found)]


def _sensitive(path: str, values: Sequence[str]) -> list[str]:
    """The values that are on a list of sensitive values."""
    named = set(value_lines(path, values))
    found = [value for value in values if value in named]
    if not found:
        raise SpecError(f"{path} must list at least one value that occurs in --values, got none")
    return found


def _closed_trial(args: argparse.Namespace, values: tuple[str, ...], held: np.ndarray) -> Trial:
    sensitive = None if args.sensitive is None else _sensitive(args.sensitive, values)
    ways = closed_ways(args.mechanisms, tuple(dict.fromkeys(args.epsilons)), values, sensitive)
    return Trial(ways=tuple(ways), values=values, held=held, asked=values, is_open=False, **_common(args, held))


def _open_trial(args: argparse.Namespace, values: tuple[str, ...], held: np.ndarray) -> Trial:
    """A trial with an open alphabet: non-sensitive candidates form the public list; other texts are sensitive."""
    asked = values if args.candidates is None else tuple(value_lines(args.candidates, values))
    sensitive = list(asked) if args.sensitive is None else _sensitive(args.sensitive, asked)
    others = sorted(set(asked) - set(sensitive))
    counted = dict(zip(values, np.bincount(held, minlength=len(values)) / len(held)))
    shares = np.array([counted.get(value, 0.0) for value in (*sensitive, *others)])
    if not shares.any():
        raise SpecError(f"{args.candidates} must list at least one value that occurs in --values, got none")
    unlisted = [share for value, share in counted.items() if value not in set(asked)]
    question = OpenQuestion(
        num_candidates=len(sensitive),
        num_non_sensitive=len(others),
        frequencies=tuple((shares / shares.sum()).tolist()),
        unlisted_share=float(sum(unlisted)),
        heaviest_unlisted=float(max(unlisted, default=0.0)),
        names=tuple(others),
        **({} if args.max_cohorts is None else {"max_cohorts": args.max_cohorts}),
    )
    common = _common(args, held)
    ways = open_ways(args.mechanisms, tuple(dict.fromkeys(args.epsilons)), question, common["num_reports"])
    return Trial(ways=tuple(ways), values=values, held=held, asked=asked, is_open=True, **common)


def _common(args: argparse.Namespace, held: np.ndarray) -> dict[str, Any]:
    return {
        "estimators": args.estimators,
        "repetitions": args.repetitions,
        "num_reports": args.reports or len(held),
        "seed": args.seed,
        "confidence": args.confidence,
    }


def job(task: Evaluation | NumberTrial) -> int:
    """Run all trials, print the table, write the files."""
    if isinstance(task, NumberTrial):
        return run_number_trial(task)
    trial, outcomes = task.trial, evaluate(task.trial)
    drawn = (
        f"{trial.num_reports:,} reports, drawn from the {len(trial.held):,} people in the file, "
        f"{trial.repetitions} times"
    )
    several = "s" if len(trial.estimators) > 1 else ""
    print(
        f"{len(trial.asked):,} {'candidates' if trial.is_open else 'values'}; {drawn}; "
        f"estimator{several} {', '.join(trial.estimators)}",
        *table(outcomes),
        "error: root mean square error over values, of raw estimates and of the estimator; l1: sum of its "
        "absolute errors.",
        f"covered: {percent(trial.confidence)} intervals that contain the share in the file. Times in microseconds per "
        "report, on this machine.",
        sep="\n",
    )
    if task.json is not None:
        with whole_file(task.json) as file:
            file.write(json.dumps([dataclasses.asdict(of) for of in outcomes], indent=1).encode())
    if task.png is not None:
        with whole_file(task.png) as file:
            file.write(drawing("trials")(tried(outcomes), trial.confidence))
    return cli.DONE


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """A line per outcome, with aligned columns; configurations that were not tried come last, with the reason."""
    titles = ["mechanism", "epsilon", "estimator", "bytes", "raw error", "error", "l1", "covered", "half width"]
    lines = aligned([[*titles, "client", "collector"], *(_cells(of) for of in tried(outcomes))], left=(0, 2))
    for of in outcomes:
        if of.reason is not None:
            place = [of.mechanism, "" if of.epsilon is None else f"epsilon {of.epsilon:g}", of.estimator or ""]
            lines.append(f"{', '.join(filter(None, place))}: not tried, {of.reason}")
    return lines


def _cells(of: Outcome) -> list[str]:
    errors = [f"{number:.3g}" for number in (of.raw_error, of.error, of.l1)]
    times = [f"{number:.2f}" for number in (of.client_us, of.collector_us)]
    return [
        of.mechanism,
        f"{of.epsilon:g}",
        of.estimator or "",
        f"{of.payload_bytes:,}",
        *errors,
        f"{100 * (of.covered or 0):.1f} %",
        f"{of.half_width:.3g}",
        *times,
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("evaluate", configure, job, argv, faults_of_job=(SpecError, OSError))
