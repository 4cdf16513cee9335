"""Prints a query that counts reports where they lie, in a table of a database or a data lake.

The table has the columns of schemas/report.avsc. The query returns one row for each collection, period, cohort and
payload, with the number of reports and the length of the period. Write its result to a Parquet file, and estimate it:

    uldp estimate --collection C.json --input counts.parquet --window 1h --output DIR

All checks of reports stay in uldp estimate; reports of other collections are counted together, so that its ledger
accounts for each row of the table.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence

from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.files.text_table import printable
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.report_tables import PERIOD
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, duration_text

QUARTER_HOUR = 15 * 60_000
"""Default period in milliseconds: the hours and days of today's time zones consist of such periods."""

LONGEST = 365 * 24 * 60 * 60_000
"""Longest period in milliseconds, which is that of a window."""

_TABLE = r"(?!.*--)[A-Za-z0-9_.$`\"-]+"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dialect:
    """What databases say differently: bytes from hexadecimal digits, the remainder of a division, and milliseconds."""

    literal: str
    remainder: str
    milliseconds: str


DIALECTS = {
    "duckdb": Dialect(literal="from_hex('{}')", remainder="({}) % {}", milliseconds="epoch_ms({})"),
    "bigquery": Dialect(literal="FROM_HEX('{}')", remainder="MOD({}, {})", milliseconds="UNIX_MILLIS({})"),
    "snowflake": Dialect(
        literal="TO_BINARY('{}', 'HEX')", remainder="MOD({}, {})", milliseconds="DATE_PART(EPOCH_MILLISECOND, {})"
    ),
    "spark": Dialect(literal="unhex('{}')", remainder="MOD({}, {})", milliseconds="unix_millis({})"),
}


_WITHOUT_ID = "SUM(CASE WHEN report_id IS NULL THEN 1 ELSE 0 END)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Query:
    """Options of a query."""

    collections: list[Collection]
    dialect: Dialect
    table: str
    period: int
    timestamps: bool
    distinct: bool


def configure(argv: Sequence[str]) -> Query:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("sql", description=__doc__)
    add = parser.add_argument
    add("collections", metavar="C.json", nargs="+", help="JSON file of a collection")
    add("--dialect", required=True, help=f"database that runs the query: {', '.join(DIALECTS)}")
    add(
        "--table",
        default="reports",
        type=cli.matches(_TABLE, "the name of a table"),
        help="table of reports (default: reports)",
    )
    add(
        "--period",
        default=QUARTER_HOUR,
        type=cli.duration("--period"),
        help="reports of the same period are counted together; windows must consist of whole periods, such as 1d or 1w "
        "(default: 15m)",
    )
    add("--timestamps", **cli.SWITCH, help="event_time is a timestamp instead of milliseconds since 1970")
    add(
        "--distinct",
        **cli.SWITCH,
        help="count each report_id once in its period, cohort and payload, if delivery may repeat reports",
    )
    args = parser.parse_args(argv)
    if args.dialect not in DIALECTS:
        raise SpecError(f"--dialect must be one of {', '.join(DIALECTS)}, got {args.dialect!r}")
    if not 1 <= args.period <= LONGEST:
        raise SpecError(f"--period must be from 1ms to {duration_text(LONGEST)}, got {args.period}ms")
    return Query(
        collections=read_collections(args.collections),
        dialect=DIALECTS[args.dialect],
        table=args.table,
        period=args.period,
        timestamps=args.timestamps,
        distinct=args.distinct,
    )


def text_of(query: Query) -> str:
    """The query, with comments that say what it does."""
    return "\n".join(_lines(query)) + "\n"


def _lines(query: Query) -> Iterator[str]:
    dialect = query.dialect
    names = printable(", ".join(f"{one.id} version {one.version}" for one in query.collections))
    literals = [dialect.literal.format(one.fingerprint[:PREFIX_BYTES].hex()) for one in query.collections]
    known = f"collection IN ({', '.join(literals)})"
    time = dialect.milliseconds.format("event_time") if query.timestamps else "event_time"
    inner = dialect.remainder.format(time, query.period)
    start = f"{time} - {dialect.remainder.format(f'{inner} + {query.period}', query.period)}"
    possible = f"{time} BETWEEN {MIN_EVENT_TIME} AND {MAX_EVENT_TIME}"
    number = f"COUNT(DISTINCT report_id) + {_WITHOUT_ID}" if query.distinct else "COUNT(*)"
    yield f"-- Reports of {names}, counted by period of {query.period:,} ms, cohort and payload."
    yield "-- Reports of other collections are counted together. uldp estimate checks all rows."
    if query.distinct:
        yield "-- Copies of a report are left out, and are in no ledger. Reports without an id all count."
    yield "SELECT"
    yield "  collection,"
    yield f"  CASE WHEN {possible} THEN {start} ELSE {time} END AS event_time,"
    yield f"  CASE WHEN {known} THEN cohort ELSE 0 END AS cohort,"
    yield f"  CASE WHEN {known} THEN payload ELSE {dialect.literal.format('')} END AS payload,"
    yield f"  {query.period} AS {PERIOD},"
    yield f"  {number} AS num_reports"
    yield f"FROM {query.table}"
    yield "GROUP BY 1, 2, 3, 4"


def job(query: Query) -> int:
    """Print the query."""
    sys.stdout.write(text_of(query))
    return cli.DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    return cli.run("sql", configure, job, argv, faults_of_job=(OSError,))


if __name__ == "__main__":
    uldp.run_program("sql")
