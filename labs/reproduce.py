"""Repeats experiments of the papers with this library: a table, a picture, and a verdict on each claim."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labs.experiments import EXPERIMENTS
from labs.experiments.frame import Experiment, Result, Verdict
from labs.paper_figures import draw_for_paper
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.text_table import aligned

DOTS_PER_INCH = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The experiments to repeat, and the output directory.

    Attributes:
        experiments: what to run, in this order (default: only list all experiments).
        output: directory.
        runs: number of repetitions (default: the experiment's own).
        reduced: whether to run smaller experiments, which take seconds.
        seed: seed of each experiment's random numbers.
        resume: skip experiments whose record in the directory says that they ran with the same options.
        style: ``paper``: also write a PDF for one column of a paper, with its caption; None: do not.
    """

    experiments: tuple[Experiment, ...]
    output: Path
    runs: int | None
    reduced: bool
    seed: int
    resume: bool = False
    style: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options with which a record must agree."""
        return {"seed": self.seed, "reduced": self.reduced, "runs": self.runs}


def configure(argv: Sequence[str]) -> Reproduction:
    """The command line of ``pipelines.reproduce``; raises SpecError or OSError."""
    experiments = {experiment.id: experiment for experiment in EXPERIMENTS}
    parser = cli.Parser("reproduce", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", choices=experiments, metavar="NAME", help="name of the experiment")
    what.add_argument("--list", action="store_true", help="list all experiments")
    what.add_argument(
        "--all",
        action="store_true",
        help="run all experiments one after another; started again, it skips those that finished with the same options",
    )
    parser.add_argument(
        "--output",
        default="reproduce-output",
        help="directory for NAME.csv, NAME.png, NAME.svg and the record NAME.json",
    )
    parser.add_argument("--runs", type=cli.positive(), help="repetitions over which losses are averaged")
    parser.add_argument("--reduced", action="store_true", help="a smaller version that takes seconds")
    parser.add_argument("--seed", type=int, default=0, help="seed for reproducible results (default: 0)")
    parser.add_argument(
        "--style",
        choices=("paper",),
        help="paper: also write NAME.pdf for one column of a paper (3.3 inches, lines in greys), and NAME.txt, its "
        "caption",
    )
    args = parser.parse_args(argv)
    if args.seed < 0:
        parser.error(f"--seed must be a non-negative whole number, got {args.seed}")
    output = Path(args.output)
    if not args.list:
        try:
            import matplotlib  # noqa: F401, PLC0415  # an optional extra, slow to import
        except ImportError:
            parser.error("the picture needs matplotlib, the extra 'plot': pip install '.[plot]' ./packages/report")
        output.mkdir(parents=True, exist_ok=True)
    chosen = () if args.list else EXPERIMENTS if args.all else (experiments[args.name],)
    return Reproduction(
        experiments=chosen,
        output=output,
        runs=args.runs,
        reduced=args.reduced,
        seed=args.seed,
        resume=args.all,
        style=args.style,
    )


def job(reproduction: Reproduction) -> int:
    """Run the experiments; write and print their results."""
    if not reproduction.experiments:
        print(*(f"{known.id:26}{known.title} ({known.source})" for known in EXPERIMENTS), sep="\n")
    for number, experiment in enumerate(reproduction.experiments, 1):
        if len(reproduction.experiments) > 1:
            print(f"[{number}/{len(reproduction.experiments)}] {experiment.id}", flush=True)
        if reproduction.resume and _has_run(experiment, reproduction):
            print(f"finished earlier with the same options: {_file(reproduction, experiment, 'csv')}", "", sep="\n")
        else:
            reproduce(experiment, reproduction)
    return cli.DONE


def reproduce(experiment: Experiment, reproduction: Reproduction) -> Result:
    """Run one experiment; write its table, pictures and, last, its record; print the results."""
    print(f"{experiment.title} ({experiment.source})", "", textwrap.fill(experiment.abstract, 110), "", sep="\n")
    rng = np.random.default_rng(reproduction.seed)
    started = time.process_time()
    result = experiment.run(rng, reduced=reproduction.reduced, runs=reproduction.runs)
    seconds = time.process_time() - started
    table, picture, vectors, record = (_file(reproduction, experiment, kind) for kind in ("csv", "png", "svg", "json"))
    write_table(result, reproduction, table)
    draw(experiment, result, picture)
    draw(experiment, result, vectors)
    if reproduction.style == "paper":
        draw_for_paper(experiment, result, _file(reproduction, experiment, "pdf"))
    verdicts = [dataclasses.asdict(verdict) | {"holds": bool(verdict.holds)} for verdict in result.verdicts]
    content = reproduction.options | {"cpu_seconds": round(seconds, 1), "verdicts": verdicts}
    record.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(*table_lines(result.rows), "", *map(verdict_line, result.verdicts), "", sep="\n")
    size = "reduced" if reproduction.reduced else "full"
    print(f"seed {reproduction.seed}, {size} size, {seconds:.0f} CPU seconds; written: {table}, {picture}, {vectors}")
    return result


def _file(reproduction: Reproduction, experiment: Experiment, kind: str) -> Path:
    return reproduction.output / f"{experiment.id}.{kind}"


def _has_run(experiment: Experiment, reproduction: Reproduction) -> bool:
    """Whether a run with these options finished: its record is written last."""
    try:
        content = json.loads(_file(reproduction, experiment, "json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and all(content.get(name) == value for name, value in reproduction.options.items())


def write_table(result: Result, reproduction: Reproduction, path: Path) -> None:
    """The rows as CSV, each with the seed and the size of its run."""
    origin = {"seed": reproduction.seed, "reduced": int(reproduction.reduced)}
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*columns(result.rows), *origin], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | origin for row in result.rows)


def draw(experiment: Experiment, result: Result, path: Path) -> None:
    """The picture of the experiment: .png, or .svg for print."""
    from matplotlib import rc_context  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import
    from PIL import Image  # noqa: PLC0415  # comes with matplotlib

    figure = Figure(figsize=(9, 4), layout="constrained")
    experiment.draw(result.rows, figure)
    if path.suffix == ".svg":
        with rc_context({"svg.hashsalt": experiment.id}):  # equal runs make equal files
            figure.savefig(path, metadata={"Date": None})
        return
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=DOTS_PER_INCH)
    Image.open(buffer).convert("RGB").save(path, optimize=True)  # all colours: heat maps and their scales need them


def columns(rows: list[dict[str, Any]]) -> list[str]:
    """All columns of all rows, in order of their first occurrence."""
    return list(dict.fromkeys(name for row in rows for name in row))


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as text: numbers with four significant digits, to the right."""
    names = columns(rows)
    texts = {at for at, name in enumerate(names) if any(isinstance(row.get(name), str) for row in rows)}
    return aligned([names, *([_text(row.get(name)) for name in names] for row in rows)], left=texts)


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def verdict_line(verdict: Verdict) -> str:
    return f"{'holds' if verdict.holds else 'does not hold'}: {verdict.claim} {verdict.evidence}"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("reproduce", configure, job, argv)


if __name__ == "__main__":
    sys.exit(main())
