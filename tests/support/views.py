"""The views of ``schemas/sql``: one rule, in the words of each database. ``tests.support.golden`` writes the files."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

from uldp_transforms.rows.renamed_fields import former_names
from uldp_transforms.schemas import load

TABLES = {"estimates": load("windowed_estimate.avsc"), "health": load("health.avsc")}
"""Tables and their schemas."""

RULE = """\
PARTITION BY fingerprint, window_start, window_end{group}
ORDER BY
  CASE WHEN status = 'partial' THEN 1 ELSE 0 END,
  COALESCE(run, '') DESC,
  COALESCE(num_reports, -1) DESC,
  pane_index DESC"""
"""Which row of a window is the first. COALESCE, because databases differ in where they sort nulls."""

WITH_COLUMN = """\
{create} {place}latest_{table} AS
SELECT {columns}
FROM (
  SELECT *, ROW_NUMBER() OVER (
{rule}
  ) AS place
  FROM {place}{table}
) AS ranked
WHERE place = 1;
"""

WITH_QUALIFY = """\
{create} {place}latest_{table} AS
SELECT {columns}
FROM {place}{table}
WHERE TRUE
QUALIFY
  ROW_NUMBER() OVER (
{rule}
  ) = 1;
"""

FROM_JSON = """\
CREATE OR REPLACE VIEW {table} AS
SELECT *
FROM read_json('{table}*.jsonl', format = 'newline_delimited', union_by_name = true, sample_size = -1);
"""

FROM_PARQUET = """\
CREATE OR REPLACE VIEW {table} AS
SELECT *
FROM read_parquet('{table}*.parquet', union_by_name = true);
"""


class Dialect(NamedTuple):
    """What a file says at its top, and how it spells a view of a table, after what it needs before."""

    about: str
    views: tuple[str, ...]
    create: str = "CREATE OR REPLACE VIEW"
    place: str = ""
    group: str = "{table}.group"


_RULE_OF = "The row of each window that counts, by the rule of docs/consume.md"

DIALECTS = {
    "latest": Dialect(
        f"{_RULE_OF}: no partial row if there is another one, the latest run, and of that run the row with the most "
        "reports and the highest pane_index. Plain SQL, for SQLite and PostgreSQL. The column place is always 1.",
        (WITH_COLUMN,),
        create="CREATE VIEW",
        group='"group"',
    ),
    "latest_flink_spark": Dialect(
        f"{_RULE_OF}. Flink and Spark. The column place is always 1.",
        (WITH_COLUMN,),
        create="CREATE VIEW",
        group="`group`",
    ),
    "latest_bigquery": Dialect(
        f"{_RULE_OF}. BigQuery; put your dataset for my_dataset.", (WITH_QUALIFY,), place="my_dataset."
    ),
    "latest_duckdb": Dialect(
        f"{_RULE_OF}. DuckDB, over the files of a job: run it in the directory in which they are. Times are TIMESTAMP "
        "in UTC.",
        (FROM_JSON, WITH_QUALIFY),
    ),
    "latest_duckdb_parquet": Dialect(
        f"{_RULE_OF}. DuckDB, over the Parquet files of a job (--write_parquet): run it in the directory in which they "
        "are. Times are TIMESTAMP WITH TIME ZONE.",
        (FROM_PARQUET, WITH_QUALIFY),
    ),
}


def files() -> dict[str, str]:
    """Path below the root -> what the file should be."""
    return {f"schemas/sql/{name}.sql": text_of(dialect) for name, dialect in DIALECTS.items()}


def columns(schema: Mapping[str, Any], group: str) -> str:
    """The columns of a view: all as they are, but a renamed one of older rows has the value of its former name.

    Args:
        schema: Avro schema of the table.
        group: how the column ``group`` is written, whose name is a word of SQL.
    """
    former = {new: old for old, new in former_names(schema).items()}
    names = [field["name"] for field in schema["fields"]]
    if not former:
        return "*"
    return ", ".join(
        f"COALESCE({name}, {former[name]}) AS {name}" if name in former else group if name == "group" else name
        for name in names
    )


def text_of(dialect: Dialect, tables: Mapping[str, Any] = TABLES) -> str:
    about = "".join(f"-- {line}\n" for line in textwrap.wrap(dialect.about, 117))
    views = [
        view.format(
            create=dialect.create,
            place=dialect.place,
            table=table,
            rule=_rule(dialect, table),
            columns=columns(schema, dialect.group.format(table=table)),
        )
        for table, schema in tables.items()
        for view in dialect.views
    ]
    return "\n".join([about, *views])


def _rule(dialect: Dialect, table: str) -> str:
    group = f", COALESCE({dialect.group.format(table=table)}, '')"
    return "".join(f"    {line}\n" for line in RULE.format(group=group).splitlines()).rstrip("\n")
