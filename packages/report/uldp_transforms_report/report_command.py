"""Writes a page and a picture of an output directory of ``uldp estimate``, or serves the page while a stream writes
there.

The page is one self-contained file. It shows the valid row of each window (docs/consume.md), and states what it leaves
out and where there is not enough data.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence

from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_report.facts import Limits
from uldp_transforms_report.gathering import TITLE, Asked
from uldp_transforms_report.truth_file import Truth
from uldp_transforms_tables.people_options import PEOPLE, people_in, refuse_people_options, say_missing


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """Options of a report page."""

    asked: Asked
    output: str | None
    png: str | None
    svg: str | None
    charts: str | None
    style: str | None
    serve: int | None
    host: str


def _parser() -> cli.Parser:
    parser = cli.Parser("report", description=__doc__)
    parser.add_argument("directory", metavar="DIR", help="output directory of uldp estimate or uldp reestimate")
    parser.add_argument(
        "--follow",
        **cli.SWITCH,
        help="run until SIGTERM, over the DIR of a running stream: serve a page that is updated continuously",
    )
    parser.add_argument(
        "--serve", type=_port, metavar="PORT", help="with --follow: port to listen on; 0 means any free port"
    )
    parser.add_argument("--host", help="address to listen on, with --follow (default: localhost only)")
    parser.add_argument("--output", metavar="PAGE.html", help="where to write the page: an HTML file")
    parser.add_argument("--png", help="PNG file to write, with the main charts")
    parser.add_argument("--svg", metavar="P.svg", help="the same picture as an SVG file")
    parser.add_argument("--charts", metavar="CHARTS", help="directory to write, with a file of each chart")
    parser.add_argument(
        "--style",
        choices=("slide", "paper"),
        help="with --charts: SVG and PNG of 16 to 9 for slides (default), or for one column of a paper (3.3 inches, "
        "without colours) also PDF, each with its caption as a text",
    )
    parser.add_argument("--truth", metavar="V.csv", help="table of the true values, the input of uldp simulate")
    cli.add_options(parser.add_argument_group("file of --truth"), PEOPLE)
    parser.add_argument(
        "--collection",
        action="append",
        default=[],
        help="JSON file of a collection that the run records of the directory do not name",
    )
    parser.add_argument("--title", default=TITLE, help="title of the page")
    parser.add_argument("--note", default="", help="sentence to print under the title (default: no sentence)")
    parser.add_argument("--value", action="append", default=[], help="value to chart first; may be given several times")
    limits = Limits()
    parser.add_argument(
        "--trends", type=cli.positive(), default=limits.trends, help="number of values with their own chart"
    )
    parser.add_argument(
        "--latest_windows", type=cli.positive(), default=limits.windows, help="number of latest windows to show"
    )
    parser.add_argument("--rows", type=cli.positive(), default=limits.rows, help="largest number of rows in a table")
    return parser


def configure(argv: Sequence[str]) -> Task:
    """Parse the command line; raises SpecError or OSError."""
    args = _parser().parse_args(argv)
    for wrong, sentence in _contradictions(args):
        if wrong:
            raise SpecError(sentence)
    drawing("report")
    return Task(
        asked=Asked(
            directory=args.directory,
            title=args.title,
            note=args.note,
            limits=Limits(trends=args.trends, windows=args.latest_windows, rows=args.rows),
            values=tuple(args.value),
            truth=_truth(args),
            collections=tuple(read_collections(args.collection)),
        ),
        output=args.output,
        png=args.png,
        svg=args.svg,
        charts=args.charts,
        style=args.style,
        serve=args.serve,
        host=args.host or "127.0.0.1",
    )


def _truth(args: argparse.Namespace) -> Truth | None:
    if args.truth is None:
        refuse_people_options(args, "--truth")
        return None
    file = people_in(args.truth, args)
    truth = Truth(file)
    say_missing("report", file)
    return truth


def _port(text: str) -> int:
    """An argparse type: a port number."""
    if not (text.isdecimal() and text.isascii() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, got {text!r}")
    return int(text)


def _contradictions(args: argparse.Namespace) -> list[tuple[bool, str]]:
    """Checks of contradictory options, each with its error message."""
    is_there = args.follow or "://" in args.directory or os.path.isdir(args.directory)
    return [
        (
            not args.follow and not (args.output or args.png or args.svg or args.charts),
            "one of --output, --png, --svg, --charts and --follow must be given, got none",
        ),
        (not is_there, f"DIR must be a directory, got {args.directory!r}"),
        *(
            (not args.follow and getattr(args, name) is not None, f"--{name} needs --follow, got DIR alone")
            for name in ("serve", "host")
        ),
        *(
            (args.follow and getattr(args, name) is not None, f"--{name} must not be given with --follow, got both")
            for name in ("output", "png", "svg", "charts")
        ),
        (args.style is not None and args.charts is None, "--style needs --charts, got none"),
        (args.follow and args.serve is None, "--follow needs --serve, got none"),
    ]


def job(task: Task) -> int:
    if task.serve is not None:
        from uldp_transforms_report.follow import serve  # noqa: PLC0415  # slow to import

        serve(task.asked, task.host, task.serve, lambda address: print(f"report: {address}", file=sys.stderr))
        return cli.DONE
    from uldp_transforms_report.written_report import write  # noqa: PLC0415  # slow to import

    write(task.asked, task.output, task.png, task.svg, task.charts, task.style or "slide")
    print(f"report: {' and '.join(filter(None, (task.output, task.png, task.svg, task.charts)))}", file=sys.stderr)
    return cli.DONE


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("report", configure, job, argv, faults_of_job=(SpecError, OSError))
