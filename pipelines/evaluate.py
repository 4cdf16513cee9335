"""Tries mechanisms on one's own data: how wrong, how honest and how fast each of them would be.

Every repetition draws as many people as the file has, from the file; each sends one report, and the collector estimates
the shares. Errors are against the shares in the file, the population that people are drawn from.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.spec import ESTIMATOR

from . import cli
from .report.report_command import require_charts
from .text_table import aligned
from .values import ValuesFile
from .whole_file import whole_file

EVERYBODY = ("krr", "rappor", "ss", "hr")
SENSITIVE_ONLY = ("urr", "urap", "uss", "uhr")
"""Mechanisms that an epsilon alone describes: those that protect every value, and those that protect sensitive ones."""

_ROWS_AT_ONCE = 1 << 16
_CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """What to try.

    Attributes:
        collections: to try, on the same values.
        values: the different texts, S of them.
        held: (n,) which of them each person holds.
        estimator: id of the one whose ``frequency`` is judged.
        repetitions: of everything.
        num_reports: people in each repetition.
        seed: of what is drawn; None: another one each time.
        json, png: files to write; None: none.
    """

    collections: tuple[Collection, ...]
    values: tuple[str, ...]
    held: np.ndarray
    estimator: str
    repetitions: int
    num_reports: int
    seed: int | None
    json: str | None
    png: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """Means over values and repetitions; the fields are those of ``--json``.

    Attributes:
        mechanism, epsilon, payload_bytes: what was tried, and the size of its report without a header.
        raw_error: root mean square error of raw estimates.
        error: the same of ``frequency``.
        l1: sum over values of the absolute error of ``frequency``.
        covered: share of 95 % intervals that hold the share in the file.
        half_width: of these intervals.
        client_us, collector_us: microseconds per report to perturb, and to count and estimate.
    """

    mechanism: str
    epsilon: float
    payload_bytes: int
    raw_error: float
    error: float
    l1: float
    covered: float
    half_width: float
    client_us: float
    collector_us: float


def configure(argv: Sequence[str]) -> Trial:
    """The command line of ``pipelines.evaluate``; raises SpecError, OSError."""
    parser = cli.Parser("evaluate", description=__doc__)
    parser.add_argument("--values", required=True, help="CSV file of people's values, as they would report them")
    parser.add_argument("--column", default="value", help="name of its column")
    parser.add_argument("--sensitive", help="text file of the sensitive values, one a line (default: all)")
    parser.add_argument("--mechanisms", type=_names, help="ids with commas between (default: all that fit)")
    parser.add_argument("--epsilon", type=_numbers, default="0.5,1,2", help="numbers with commas between")
    parser.add_argument("--estimator", default=ESTIMATOR, help=f"one of {', '.join(sorted(ESTIMATORS))}")
    parser.add_argument("--repetitions", type=cli.positive(), default=5, help="of everything; more make means surer")
    parser.add_argument("--reports", type=cli.positive(), help="people in each repetition (default: as in the file)")
    parser.add_argument("--seed", type=int, help="makes results reproducible, but for times")
    parser.add_argument("--json", help="file to write the table to, as JSON")
    parser.add_argument("--png", help="file of a picture; needs the extra 'plot'")
    args = parser.parse_args(argv)
    if args.estimator not in ESTIMATORS:
        raise SpecError(f"--estimator must be one of {', '.join(sorted(ESTIMATORS))}, got {args.estimator!r}")
    if args.seed is not None and args.seed < 0:
        raise SpecError(f"--seed must be a whole number from 0 on, got {args.seed}")
    if args.png is not None:
        require_charts()
    values, held = _people(args.values, args.column)
    sensitive = None if args.sensitive is None else _sensitive(args.sensitive, values)
    return Trial(
        collections=tuple(_collections(args.mechanisms, args.epsilon, values, sensitive)),
        values=values,
        held=held,
        estimator=args.estimator,
        repetitions=args.repetitions,
        num_reports=args.reports or len(held),
        seed=args.seed,
        json=args.json,
        png=args.png,
    )


def _names(text: str) -> tuple[str, ...]:
    """An argparse type: ids of mechanisms."""
    names, known = tuple(dict.fromkeys(text.split(","))), (*EVERYBODY, *SENSITIVE_ONLY)
    if not set(names) <= set(known):
        raise argparse.ArgumentTypeError(f"must be some of {', '.join(known)}, got {text!r}")
    return names


def _numbers(text: str) -> tuple[float, ...]:
    """An argparse type: numbers above 0."""
    try:
        numbers = tuple(dict.fromkeys(map(float, text.split(","))))
    except ValueError:
        numbers = ()
    if not numbers:
        raise argparse.ArgumentTypeError(f"must be numbers with commas between, got {text!r}")
    return numbers


def _people(path: str, column: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The different values in alphabetical order, and which of them each person holds."""
    codes: dict[str, int] = {}
    found = [
        np.array([codes.setdefault(canonical(value), len(codes)) for value in values])
        for values, _ in ValuesFile(path, column).read(_ROWS_AT_ONCE)
    ]
    if len(codes) < 2:
        raise SpecError(f"{path} must have at least 2 different values, got {len(codes)}")
    order = sorted(range(len(codes)), key=list(codes).__getitem__)
    return tuple(sorted(codes)), np.argsort(order)[np.concatenate(found)]


def _sensitive(path: str, values: Sequence[str]) -> list[str]:
    """Those values that a list names; nobody holds its others, so nothing can be tried on them."""
    named = {canonical(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line}
    found = [value for value in values if value in named]
    if not found:
        raise SpecError(f"{path} must name a value that somebody holds, got none")
    return found


def _collections(
    names: Sequence[str] | None, epsilons: Sequence[float], values: Sequence[str], sensitive: Sequence[str] | None
) -> Iterator[Collection]:
    """Where every value is sensitive, mechanisms for sensitive values are the others under another name."""
    default = EVERYBODY if sensitive is None else (*EVERYBODY, *SENSITIVE_ONLY)
    for name in names or default:
        only_some = name in SENSITIVE_ONLY and sensitive is not None
        alphabet = {"id": "closed", "values": list(values)} | ({"sensitive": sensitive} if only_some else {})
        for epsilon in epsilons:
            mechanism = {"id": name, "epsilon": epsilon}
            yield Collection.from_json({"id": "evaluation", "version": 1, "alphabet": alphabet, "mechanism": mechanism})


def evaluate(trial: Trial) -> list[Outcome]:
    """What came out, one for each collection."""
    shares = np.bincount(trial.held, minlength=len(trial.values)) / len(trial.held)
    seeds = np.random.SeedSequence(trial.seed).spawn(len(trial.collections))
    return [_tried(trial, of, shares, np.random.default_rng(seed)) for of, seed in zip(trial.collections, seeds)]


def _tried(trial: Trial, collection: Collection, shares: np.ndarray, rng: np.random.Generator) -> Outcome:
    values, rows = np.array(trial.values, dtype=object), []
    for _ in range(trial.repetitions):
        people = values[rng.choice(trial.held, trial.num_reports)].tolist()
        began = time.perf_counter()
        batch = collection.perturb(people, rng)
        sent = time.perf_counter()
        estimate = collection.estimate(collection.count(batch), trial.estimator)
        low, high = estimate.intervals(_CONFIDENCE)
        done = time.perf_counter()
        errors = estimate.frequencies - shares
        rows.append(
            (
                ((estimate.raw_frequencies - shares) ** 2).mean(),
                (errors**2).mean(),
                np.abs(errors).sum(),
                ((low <= shares) & (shares <= high)).mean(),
                ((high - low) / 2).mean(),
                (sent - began) / trial.num_reports * 1e6,
                (done - sent) / trial.num_reports * 1e6,
            )
        )
    means = np.mean(rows, axis=0)
    raw, error, l1, covered, half_width, client, collector = (float(mean) for mean in means)
    return Outcome(
        mechanism=collection.mechanism.id,
        epsilon=collection.mechanism.epsilon,
        payload_bytes=collection.mechanism.payload_size,
        raw_error=raw**0.5,
        error=error**0.5,
        l1=l1,
        covered=covered,
        half_width=half_width,
        client_us=client,
        collector_us=collector,
    )


def job(trial: Trial) -> int:
    """Try everything, print the table, write the files."""
    outcomes = evaluate(trial)
    drawn = (
        f"{trial.num_reports:,} reports, drawn from the file's {len(trial.held):,} people, {trial.repetitions} times"
    )
    print(
        f"{len(trial.values):,} values; {drawn}; estimator {trial.estimator}",
        *table(outcomes),
        "error: root mean square over values, of raw estimates and of the estimator's; l1: sum of its absolute errors.",
        "covered: 95 % intervals that hold the share in the file. Times in microseconds per report, on this machine.",
        sep="\n",
    )
    if trial.json is not None:
        with whole_file(trial.json) as file:
            file.write(json.dumps([dataclasses.asdict(of) for of in outcomes], indent=1).encode())
    if trial.png is not None:
        from .report.trial_chart import picture_of_trials  # noqa: PLC0415  # an optional extra

        with whole_file(trial.png) as file:
            file.write(picture_of_trials(outcomes))
    return cli.DONE


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """One line for each outcome, columns aligned."""
    titles = [
        "mechanism",
        "epsilon",
        "bytes",
        "raw error",
        "error",
        "l1",
        "covered",
        "half width",
        "client",
        "collector",
    ]
    return aligned([titles, *(_cells(of) for of in outcomes)])


def _cells(of: Outcome) -> list[str]:
    errors = [f"{number:.3g}" for number in (of.raw_error, of.error, of.l1)]
    times = [f"{number:.2f}" for number in (of.client_us, of.collector_us)]
    return [
        of.mechanism,
        f"{of.epsilon:g}",
        f"{of.payload_bytes:,}",
        *errors,
        f"{100 * of.covered:.1f} %",
        f"{of.half_width:.3g}",
        *times,
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("evaluate", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    sys.exit(main())
