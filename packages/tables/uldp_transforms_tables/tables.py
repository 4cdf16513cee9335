"""Tables of people, answers and navigations: the one place that finds out what kind of file a table is."""

from __future__ import annotations

import codecs
import os

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_tables.delimited_table import DelimitedTable
from uldp_transforms_tables.directory_table import DirectoryTable, files_in
from uldp_transforms_tables.json_table import JsonTable
from uldp_transforms_tables.packed_files import PackedFile
from uldp_transforms_tables.parquet_table import ParquetTable
from uldp_transforms_tables.table import Table

_PARQUET = b"PAR1"
_FOREIGN = {
    b"PK\x03\x04": "a spreadsheet or a zip archive",
    b"\xd0\xcf\x11\xe0": "a spreadsheet",
    b"$FL": "an SPSS file",
    b"<stata_dta>": "a Stata file",
    b"Obj\x01": "an Avro file",
    b"ARROW1": "an Arrow file",
    b"ORC": "an ORC file",
    b"SQLite format 3": "a database",
    b"\xfd7zXZ": "an .xz archive",
}
"""First bytes of files of other programs."""

_LINES, _OBJECTS = (".jsonl", ".ndjson"), ".json"
_BEGINNING = 1 << 12


def table_of(path: str) -> Table:
    """The table in a file: Parquet, JSON (an object per line, or an array of objects), or cells that are separated by
    commas, semicolons, tabs or bars below a header; compressed or not. A directory has such files.

    Raises:
        OSError: if the file cannot be opened.
        SpecError: if it is a file of another program, or a directory without tables or with directories.
    """
    if os.path.isdir(path):
        return DirectoryTable(path, {name: table_of(os.path.join(path, name)) for name in files_in(path)})
    file = PackedFile(path)
    beginning = file.beginning(_BEGINNING)
    kind = next((kind for first, kind in _FOREIGN.items() if beginning.startswith(first)), None)
    if kind is not None:
        raise SpecError(f"{path} must be CSV, JSON lines or Parquet, got {kind}; save it as CSV")
    ending = _ending(path.removesuffix(file.ending))
    if beginning.startswith(_PARQUET) or ending == ".parquet":
        return ParquetTable(path)
    with file.text() as text:
        begins = bytes(text.read(_BEGINNING)).removeprefix(codecs.BOM_UTF8).lstrip()
    is_json = ending in (*_LINES, _OBJECTS)
    if begins.startswith(b"[") and (is_json or begins[1:].lstrip()[:1] in b"{]"):
        return JsonTable.of_array(file)
    if ending in _LINES or (begins.startswith(b"{") and (is_json or begins[1:].lstrip()[:1] in b'"}')):
        return JsonTable.of_lines(file)
    return DelimitedTable(file)


def is_of_lines(name: str) -> bool:
    """Whether a file with this name has a JSON object per line."""
    return _ending(name) in _LINES


def _ending(name: str) -> str:
    return os.path.splitext(name.lower())[1]
