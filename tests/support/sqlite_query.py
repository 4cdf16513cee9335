"""BigQuery's SQL on SQLite, as far as both say the same: ``UNNEST`` of a repeated record is put into SQLite's words."""

from __future__ import annotations

import datetime
import json
import re
import sqlite3
from typing import Any

Column = dict[str, Any]


def answer(sql: str, tables: dict[str, dict[str, Any]], rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """What ``jobs.query`` of BigQuery's REST interface answers, all rows at once.

    Args:
        sql: reads from tables named DATASET.TABLE.
        tables: their resources, by that name.
        rows: theirs, as they were inserted.
    """
    with sqlite3.connect(":memory:") as database:
        for name, table in tables.items():
            _fill(database, name, table["schema"]["fields"], rows[name])
        cursor = database.execute(translated(sql))
        found = cursor.fetchall()
    known = {column["name"]: column for table in tables.values() for column in _all(table["schema"]["fields"])}
    columns = [_result(name, [row[i] for row in found], known) for i, (name, *_) in enumerate(cursor.description)]
    return {
        "jobComplete": True,
        "jobReference": {"projectId": "test-project", "jobId": "query"},
        "schema": {"fields": columns},
        "totalRows": str(len(found)),
        "rows": [{"f": [{"v": _cell(value, column)} for value, column in zip(row, columns)]} for row in found],
    }


def translated(sql: str) -> str:
    """``UNNEST(a) AS e`` becomes ``json_each(a) AS e``, and a field ``e.x`` a field of its JSON value."""
    for name in dict.fromkeys(re.findall(r"UNNEST\([\w.]+\) AS (\w+)", sql)):
        sql = re.sub(rf"\b{name}\.(\w+)", rf"json_extract({name}.__value, '$.\1')", sql)
    return re.sub(r"UNNEST\(([\w.]+)\)", r"json_each(\1)", sql).replace("__value", "value")


def _fill(database: sqlite3.Connection, name: str, columns: list[Column], rows: list[dict[str, Any]]) -> None:
    dataset = name.split(".", maxsplit=1)[0]
    if dataset not in [row[1] for row in database.execute("PRAGMA database_list")]:
        database.execute(f"ATTACH ':memory:' AS {dataset}")
    names = [column["name"] for column in columns]
    quoted = ", ".join(f'"{column}"' for column in names)
    database.execute(f"CREATE TABLE {name} ({quoted})")
    values = [[_stored(row.get(column)) for column in names] for row in rows]
    database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(names))})", values)
    database.commit()


def _stored(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _all(columns: list[Column]) -> list[Column]:
    """Columns of records first, those of the table over them."""
    return [inner for column in columns for inner in _all(column.get("fields", []))] + columns


def _result(name: str, values: list[Any], known: dict[str, Column]) -> Column:
    """The column of a result: numbers have the type of their values, anything else that of the table."""
    numbers = {float: "FLOAT", int: "INTEGER"}
    kinds = [numbers[type(value)] for value in values if type(value) in numbers]
    if kinds or name not in known:
        return {"name": name, "type": kinds[0] if kinds else "STRING", "mode": "NULLABLE"}
    return known[name]


def _cell(value: Any, column: Column) -> Any:
    if value is None:
        return None
    if column["mode"] == "REPEATED":
        one = column | {"mode": "REQUIRED"}
        return [{"v": _cell(item, one)} for item in _parsed(value)]
    if column["type"] == "RECORD":
        record = _parsed(value)
        return {"f": [{"v": _cell(record[inner["name"]], inner)} for inner in column["fields"]]}
    if column["type"] == "TIMESTAMP":
        moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        return str(round(moment.timestamp() * 1e6))
    return str(value)


def _parsed(value: Any) -> Any:
    """A list or record: JSON where it is a column of its own, itself within another."""
    return json.loads(value) if isinstance(value, str) else value
