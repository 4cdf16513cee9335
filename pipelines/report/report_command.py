"""Write the page of a directory of ``uldp estimate``, and a picture; or serve it while a stream writes there.

The page is one file that needs nothing but itself. It shows what counts by the readers' rule, says what it leaves out,
and says plainly where there is not enough data.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence

from uldp_transforms.ldp.errors import SpecError

from .. import cli
from ..whole_file import whole_file
from .facts import Limits
from .gathering import Asked, gather
from .truth_file import Truth

TITLE = "What people hold, learned privately"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """What to show, and where it goes."""

    asked: Asked
    output: str | None
    png: str | None


def require_charts() -> None:
    """Raises SpecError where what draws is not installed."""
    try:
        import altair  # noqa: F401, PLC0415  # an optional extra, slow to import
        import jinja2  # noqa: F401, PLC0415
        import vl_convert  # noqa: F401, PLC0415
    except ImportError as error:
        raise SpecError(f"a report needs {error.name}, of the extra 'plot': pip install '.[plot]'") from None


def configure(argv: Sequence[str]) -> Task:
    """The command line of ``pipelines.report``; raises SpecError or OSError."""
    parser = cli.Parser("report", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--input", metavar="DIR", help="--output of uldp estimate or uldp reestimate")
    parser.add_argument("--output", metavar="PAGE.html", help="file of the page")
    parser.add_argument("--png", metavar="P.png", help="file of a picture of the most important things")
    parser.add_argument("--truth", metavar="V.csv", help="CSV file of what people hold, as given to uldp simulate")
    parser.add_argument("--truth_column", default="value", help="name of its column of values")
    parser.add_argument(
        "--collection", action="append", default=[], help="JSON file of a collection that no run of the directory names"
    )
    parser.add_argument("--title", default=TITLE, help="title of the page")
    limits = Limits()
    parser.add_argument("--trends", type=cli.positive(), default=limits.trends, help="values with a chart of their own")
    parser.add_argument("--windows", type=cli.positive(), default=limits.windows, help="windows shown, the latest ones")
    parser.add_argument("--rows", type=cli.positive(), default=limits.rows, help="rows of a table, at most")
    args = parser.parse_args(argv)
    if args.output is None and args.png is None:
        raise SpecError("--input needs --output or --png, got neither")
    if "://" not in args.input and not os.path.isdir(args.input):
        raise SpecError(f"--input must be a directory, got {args.input!r}")
    require_charts()
    return Task(
        asked=Asked(
            directory=args.input,
            title=args.title,
            limits=Limits(trends=args.trends, windows=args.windows, rows=args.rows),
            truth=None if args.truth is None else Truth(args.truth, args.truth_column),
            collections=tuple(cli.read_collections(args.collection)),
        ),
        output=args.output,
        png=args.png,
    )


def write(asked: Asked, output: str | None, png: str | None) -> None:
    """The page and the picture of a directory, each into a file that appears when it is whole.

    Raises:
        SpecError: for rows that are none.
        OSError: for what cannot be read or written.
    """
    from .charts import picture  # noqa: PLC0415  # an optional extra
    from .web_page import page  # noqa: PLC0415

    report = gather(asked)
    if output is not None:
        with whole_file(output) as file:
            file.write(page(report, asked.limits).encode("utf-8"))
    if png is not None:
        with whole_file(png) as file:
            file.write(picture(report))


def job(task: Task) -> int:
    write(task.asked, task.output, task.png)
    print(f"report: {' and '.join(path for path in (task.output, task.png) if path)}", file=sys.stderr)
    return cli.DONE


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("report", configure, job, argv, faults_of_job=(SpecError, OSError))
