"""The command line of ``uldp navigations``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli, navigations
from uldp_transforms.jobs.files.text_table import aligned
from uldp_transforms.jobs.navigations.navigations_table import Columns, Navigations, read_navigations
from uldp_transforms.jobs.survey.cells import used
from uldp_transforms.ldp.clear_numbers import Bounded, mean_of, quantile_of, share_of, two_answer_weights
from uldp_transforms.ldp.errors import SpecError

NOTHING_USED = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """Options of the program."""

    columns: Columns
    quantile: float
    json: str | None


def configure(argv: Sequence[str]) -> Question:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("navigations", description=navigations.__doc__)
    parser.add_argument(
        "path",
        metavar="FILE",
        help="table of navigations: JSON lines (.jsonl), CSV with a header (compressed if it ends in .gz), or .parquet",
    )
    parser.add_argument("--value_column", default="confidence", help='name of the column of answers, "high" or "low"')
    parser.add_argument(
        "--rate_column", default="rate", help="name of the column of replacement rates (randomizedTriggerRate)"
    )
    parser.add_argument(
        "--duration_column", default="duration", help="name of the column of loading times, in milliseconds"
    )
    parser.add_argument("--quantile", type=_quantile, default=0.75, help="quantile of the loading time to estimate")
    parser.add_argument("--json", metavar="FILE", help="also write the estimates to this file, as one JSON object")
    args = parser.parse_args(argv)
    columns = Columns(path=args.path, value=args.value_column, rate=args.rate_column, duration=args.duration_column)
    return Question(columns=columns, quantile=args.quantile, json=args.json)


def job(question: Question) -> int:
    """Read the table, and print the estimates and the omitted rows."""
    found = read_navigations(question.columns)
    if len(found.high):
        row = estimates(found, question.quantile)
        if question.json is not None:
            with whole_file(question.json) as file:
                file.write(f"{json.dumps(row)}\n".encode())
        print("\n".join([*_lines(row), ""]))
    print("\n".join(used(len(found.high), found.num_rows, found.left_out)))
    return cli.DONE if len(found.high) else NOTHING_USED


def estimates(found: Navigations, q: float) -> dict[str, Any]:
    """The share of "high", and of each class the mean and a quantile of the loading time; null: the noise leaves a
    number or an end of an interval open."""
    share, error = share_of(found.high, found.rates)
    weights = {
        "high": two_answer_weights(found.high, found.rates),
        "low": two_answer_weights(~found.high, found.rates),
        "all": np.ones(len(found.high)),
    }
    return {
        "num_reports": len(found.high),
        "value": "high",
        "frequency": min(max(share.value, 0.0), 1.0),
        "raw_frequency": share.value,
        "standard_error": error,
        "ci_low": share.low,
        "ci_high": share.high,
        "durations": [
            {
                "class": name,
                "mean": _plain(mean_of(own, found.durations)),
                "quantile": {"q": q} | _plain(quantile_of(own, found.durations, q)),
            }
            for name, own in weights.items()
        ],
    }


def _plain(number: Bounded) -> dict[str, float | None]:
    return {name: each if math.isfinite(each) else None for name, each in number._asdict().items()}


def _lines(row: dict[str, Any]) -> list[str]:
    share = f"{row['raw_frequency']:.4f} ({row['ci_low']:.4f} to {row['ci_high']:.4f})"
    q = row["durations"][0]["quantile"]["q"]
    table = [("navigations", "mean ms", "95 % interval", f"p{100 * q:g} ms", "95 % interval")]
    for each in row["durations"]:
        table.append((each["class"], *_shown(each["mean"]), *_shown(each["quantile"])))
    return [f"{row['num_reports']:,} navigations, undisturbed: {share}", "", *aligned(table)]


def _shown(number: dict[str, float | None]) -> tuple[str, str]:
    value, low, high = (None if (each := number[name]) is None else f"{each:,.0f}" for name in ("value", "low", "high"))
    if low is None and high is None:
        return value or "-", "not known"
    between = f"{low} to {high}" if low and high else (f"at least {low}" if low else f"at most {high}")
    return value or "-", between


def _quantile(text: str) -> float:
    """An argparse type: a number between 0 and 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {text!r}")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    return cli.run("navigations", configure, job, argv, faults_of_job=(SpecError, OSError))
