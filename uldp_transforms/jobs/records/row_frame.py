"""Rows of an output directory as a data frame, for notebooks."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.jobs.records.row_reading import Row
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.arrow_form import arrow_record, arrow_schema
from uldp_transforms.rows.avro_fields import map_fields, time_fields
from uldp_transforms.rows.renamed_fields import former_names, with_new_names
from uldp_transforms.schemas import load

FORMS = ("pandas", "arrow", "polars")


def read_rows(directory: str, kind: str = "estimates", form: str = "pandas") -> Any:
    """Read the rows that count from an output directory of ``uldp estimate`` or ``uldp reestimate``.

    Of each window it takes the one row that docs/consume.md selects: runs, panes and partial rows need no further
    treatment. Times are UTC.

    Args:
        directory: path of the directory, local or in a store such as ``gs://bucket/folder``.
        kind: ``"estimates"`` (one row per value of each window that has numbers, with the fields of its window),
            ``"groups"`` (the same of each group of a job with ``--by``), ``"windows"`` (one row per window, with its
            status and without values), ``"health"`` (one row per window, and per window and group of a job with
            ``--by`` and ``--smooth``), ``"discovered"``,
            ``"totals"`` (one row per value of the whole period and of its groups, as ``uldp reestimate`` wrote them),
            ``"comparisons"`` (one row per value of each pair, as ``uldp compare`` wrote them), ``"ledger"`` (all rows
            of the latest run; ledger rows are sums and add up), or ``"rejected"`` (of the latest run).
        form: ``"pandas"`` for a ``pandas.DataFrame``, ``"arrow"`` for a ``pyarrow.Table``, ``"polars"`` for a
            ``polars.DataFrame``.

    Returns:
        the table; its columns have the names and the meaning of the fields of the Avro schema of these rows.

    Examples:
        >>> from uldp_transforms import read_rows
        >>> from uldp_transforms.jobs import uldp
        >>> uldp.main("estimate --collection C.json --input reports.avro --output output".split())
        0
        >>> frame = read_rows("output")
        >>> len(frame), int(frame["num_reports"].iloc[0]), float(frame["frequency"].sum().round(6))
        (4, 10000, 1.0)
        >>> int(read_rows("output", "ledger")["received"].sum())
        10000

    Raises:
        SpecError: for another kind or form, a directory without such rows, or a file with other content.
        ImportError: if the package of the form is not installed.
    """
    if kind not in _READERS:
        raise SpecError(f"kind must be one of {', '.join(_READERS)}, got {describe(kind)}")
    if form not in FORMS:
        raise SpecError(f"form must be one of {', '.join(FORMS)}, got {describe(form)}")
    schema, rows = _READERS[kind](RowDirectory(directory))
    if not rows and not RowDirectory(directory).windows():
        raise SpecError(f"{directory} must contain rows of uldp estimate, got none")
    table = _table(rows, schema)
    return table if form == "arrow" else _frame(table, form)


def _frame(table: pa.Table, package: str) -> Any:
    try:
        frames = importlib.import_module(package)
    except ImportError:
        raise ImportError(f'read_rows(form="{package}") needs {package}; install it, or ask for form="arrow"') from None
    return frames.from_arrow(table) if package == "polars" else table.to_pandas()


def _estimates(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    return load("estimated_value.avsc"), _values(directory, directory.windows())


def _groups(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    return load("estimated_value.avsc"), _values(directory, directory.groups())


def _values(directory: RowDirectory, windows: list[Row]) -> list[Row]:
    shown = [row for row in windows if row["num_shown"]]
    rows: list[Row] = [{**window, **entry} for window, entries in directory.entries(shown) for entry in entries]
    rows.sort(key=_place)
    return rows


def _place(row: Row) -> tuple[Any, ...]:
    return row["collection_id"], row["collection_version"], row.get("group") or "", row["window_start"] or ""


def _windows(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    schema = load("windowed_estimate.avsc")
    fields = [field for field in schema["fields"] if field["name"] != "estimates"]
    return {**schema, "fields": fields}, directory.windows()


def _health(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    return load("health.avsc"), directory.health()


def _discovered(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    return load("discovered_value.avsc"), directory.discovered(directory.windows())


def _totals(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    return load("estimated_value.avsc"), [
        {**row, **entry} for row in directory.totals() for entry in row["estimates"] or ()
    ]


def _comparisons(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    return load("compared_value.avsc"), directory.comparisons()


def _ledger(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    return load("ledger.avsc"), directory.ledger(_latest_run(directory))


def _rejected(directory: RowDirectory) -> tuple[Mapping[str, Any], list[Row]]:
    return load("rejected_report.avsc"), directory.rejected(_latest_run(directory))


def _latest_run(directory: RowDirectory) -> list[str]:
    return [record.run for record in directory.records()[-1:]]


_READERS: dict[str, Callable[[RowDirectory], tuple[Mapping[str, Any], list[Row]]]] = {
    "estimates": _estimates,
    "groups": _groups,
    "windows": _windows,
    "health": _health,
    "discovered": _discovered,
    "totals": _totals,
    "comparisons": _comparisons,
    "ledger": _ledger,
    "rejected": _rejected,
}


def _table(rows: list[Row], schema: Mapping[str, Any]) -> pa.Table:
    """Rows in JSON form as an Arrow table with the fields of an Avro schema; rows of older jobs lack some of them."""
    names, times = [field["name"] for field in schema["fields"]], set(time_fields(schema))
    former = former_names(schema)
    records = [
        {name: _moment(row.get(name)) if name in times else row.get(name) for name in names if name in row}
        for row in (with_new_names(row, former) for row in rows)
    ]
    maps = map_fields(schema)
    return pa.Table.from_pylist([arrow_record(record, maps) for record in records], arrow_schema(schema))


def _moment(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text.removesuffix("Z") + "+00:00")
