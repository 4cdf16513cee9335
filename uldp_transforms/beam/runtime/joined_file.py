"""Writes the rows of a job over files to one file, which appears when all of them are in it.

Each bundle writes a part: a file of its own with a random name. The parts that count are those whose names the engine
passes on, so a bundle that fails or is tried twice adds nothing; the last step joins them under the final name. Beam's
``WriteToText``, ``WriteToAvro`` and ``WriteToParquet`` write one file only by grouping all rows under one key, which
holds them in memory.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator
from typing import IO, Any

import apache_beam as beam
from apache_beam.pvalue import AsIter, PCollection
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.collector.growing_files import GROWING, GrowingFile
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import sync_file, whole_file

_PART = beam.typehints.Tuple[str, int]
"""Path of a part and its size in bytes."""


class WriteJoinedFile(beam.PTransform[PCollection[Any], PCollection[None]]):
    """Writes rows to one file, also if there are none. A failed or killed job leaves no file of this name.

    Workers need a common file system. They keep a few rows in memory. If the rows are in one bundle, as on the local
    engine, they have its order; else bundles are in any order.

    Args:
        path: path of the file, local or in a store. Until the end, parts are in a folder beside it.
        form: jsonl, avro or parquet.
        schema: Avro schema of the rows.
        run: name of the run, which distinguishes its folder from those of others; None: a random name.
    """

    def __init__(self, path: str, form: str, schema: Any, run: str | None = None):
        super().__init__()
        self._file = _JoinedFile(path, f"{path}.parts-{run or uuid.uuid4().hex}", form, schema)

    def expand(self, rows: PCollection[Any]) -> PCollection[None]:
        free = rows | "RowsNameTheirWindow" >> beam.WindowInto(GlobalWindows())
        parts = free | "WriteParts" >> beam.ParDo(_WritePartsFn(self._file)).with_output_types(_PART)
        once = rows.pipeline | "Once" >> beam.Create([None])
        joined = once | "Join" >> beam.Map(self._file.join, AsIter(parts))
        # parts are removed only when no engine repeats the step that joins them
        done: PCollection[None] = joined | "IsJoined" >> beam.Reshuffle()
        removed: PCollection[None] = done | "RemoveParts" >> beam.Map(self._file.remove_parts)
        return removed


class _JoinedFile:
    """The file and the folder of its parts."""

    def __init__(self, path: str, folder: str, form: str, schema: Any):
        self._path = path
        self._folder = folder
        self._form = form
        self._schema = schema

    def new_part(self) -> tuple[str, IO[bytes]]:
        """Path of a new part, and the open file. Locally, the folder of the file must exist."""
        path = stores.joined(self._folder, uuid.uuid4().hex)
        if stores.in_store(path):
            return path, stores.created(path)
        with contextlib.suppress(FileExistsError):  # of another part
            os.mkdir(self._folder)
        return path, open(path, "wb")

    def growing(self, file: IO[bytes]) -> GrowingFile:
        """What writes rows to an empty part."""
        return GROWING[self._form](file, self._schema, self._folder)

    def join(self, _: None, parts: Iterable[tuple[str, int]]) -> None:
        """Join parts to the file; may be repeated until ``remove_parts``."""
        found = sorted(parts)
        if len(found) == 1:
            self._rename(*found[0])
            return
        with whole_file(self._path) as file:
            GROWING[self._form].join([path for path, _ in found], file, self._schema, self._folder)

    def _rename(self, part: str, size: int) -> None:
        if stores.exists(part):
            stores.replace(part, self._path)
        elif not stores.exists(self._path) or stores.stamp_of(self._path)[1] != size:
            raise FileNotFoundError(f"{part} is missing: --output must be a folder that all workers share")

    def remove_parts(self, _: None) -> None:
        """Remove the folder of parts, with those of bundles that failed, if possible."""
        with contextlib.suppress(OSError):
            stores.delete_folder(self._folder)


class _WritePartsFn(beam.DoFn):
    """Writes the rows of a bundle to a part, and emits the part when it is complete."""

    def __init__(self, file: _JoinedFile):
        self._joined = file

    def start_bundle(self) -> None:
        self._part: _Part | None = None

    def process(self, row: Any) -> Iterator[tuple[str, int]]:
        if self._part is None:
            self._part = _Part(self._joined)
        self._part.rows.add(row)
        yield from ()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._part is not None:
            yield WindowedValue(self._part.close(), GlobalWindow().max_timestamp(), (GlobalWindow(),))


class _Part:
    """An open part."""

    def __init__(self, joined: _JoinedFile):
        self._path, self._file = joined.new_part()
        self.rows = joined.growing(self._file)

    def close(self) -> tuple[str, int]:
        """Write all pending rows; returns path and size."""
        with self._file as file:
            self.rows.end()
            if not stores.in_store(self._path):
                sync_file(file)
        return self._path, stores.stamp_of(self._path)[1]
