"""Rows as files in a directory."""

from __future__ import annotations

import argparse
import hashlib
import io
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import apache_beam as beam
import fastavro
from apache_beam.io.avroio import WriteToAvro
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.forms import to_avro, to_json

from .. import cli
from ..sources import Source
from ..whole_file import whole_file
from .sink import Output, Sink


def to_json_lines(rows: Sequence[Any], schema: Any) -> bytes:
    """One JSON object a line."""
    return "".join(f"{to_json(row)}\n" for row in rows).encode("utf-8")


def to_avro_file(rows: Sequence[Any], schema: Any) -> bytes:
    """An Avro object container file; equal rows make equal bytes."""
    records = [to_avro(row, schema) for row in rows]
    sync = hashlib.sha256(to_json_lines(rows, schema)).digest()[:16]
    out = io.BytesIO()
    fastavro.writer(out, schema, records, sync_marker=sync)
    return out.getvalue()


ENCODERS: dict[str, Callable[[Sequence[Any], Any], bytes]] = {"jsonl": to_json_lines, "avro": to_avro_file}


class WriteRowFiles(beam.PTransform[PCollection[Any], Any]):
    """Writes rows to ``DIR/NAME.jsonl`` or ``.avro``.

    Bounded input: one file, also when there are no rows. Unbounded input: one file for each bundle of rows,
    ``NAME-RUN-HASH``. If each row
    stands for a key, window and pane, files are named by these and their content, so that a repeated bundle writes the
    same file again; other files have random names.

    Args:
        directory: where to.
        name: of the files, without ending.
        form: jsonl or avro.
        schema: Avro schema of the rows.
        unbounded: whether rows go on coming.
        keyed: whether each row stands for a key, window and pane.
        run: name of the run, for the files of unbounded input; None: they are without.
    """

    def __init__(
        self,
        directory: str,
        name: str,
        form: str,
        schema: Any,
        *,
        unbounded: bool,
        keyed: bool = True,
        run: str | None = None,
    ):
        super().__init__()
        self._path = FileSystems.join(directory, name if run is None or not unbounded else f"{name}-{run}")
        self._form = form
        self._schema = schema
        self._unbounded = unbounded
        self._keyed = keyed

    def expand(self, rows: PCollection[Any]) -> Any:
        if self._unbounded:
            return rows | "WriteBundles" >> beam.ParDo(
                _WriteBundlesFn(self._path, self._form, self._schema, self._keyed)
            )
        one_file: dict[str, Any] = {"file_name_suffix": f".{self._form}", "num_shards": 1, "shard_name_template": ""}
        if self._form == "jsonl":
            return rows | "Lines" >> beam.Map(to_json) | "Write" >> beam.io.WriteToText(self._path, **one_file)
        return (
            rows
            | "Records" >> beam.Map(to_avro, self._schema)
            | "Write" >> WriteToAvro(self._path, self._schema, **one_file)
        )


class _WriteBundlesFn(beam.DoFn):
    def __init__(self, path: str, form: str, schema: Any, keyed: bool):
        self._path = path
        self._form = form
        self._schema = schema
        self._keyed = keyed

    def start_bundle(self) -> None:
        self._rows: list[Any] = []
        self._identity = hashlib.sha256() if self._keyed else hashlib.sha256(os.urandom(32))

    def process(self, row: Any, window: Any = beam.DoFn.WindowParam, pane: Any = beam.DoFn.PaneInfoParam) -> None:
        self._rows.append(row)
        self._identity.update(f"{window} {pane.index} {to_json(row)}\n".encode())

    def finish_bundle(self) -> None:
        if self._rows:
            content = ENCODERS[self._form](self._rows, self._schema)
            with whole_file(f"{self._path}-{self._identity.hexdigest()[:32]}.{self._form}") as file:
                file.write(content)


class RowFiles(Sink):
    """All rows, as files in the directory of ``--output``."""

    options: ClassVar[cli.Options] = {
        "--output": {"required": True, "help": "directory for the results"},
        "--write_counts": cli.SWITCH
        | {"help": "also write the counts of each window, for estimating them again (uldp reestimate)"},
    }

    FORMS = (
        ("estimates", "jsonl", "WriteEstimatesJson"),
        ("estimates", "avro", "WriteEstimatesAvro"),
        ("rejected", "avro", "WriteRejected"),
        ("ledger", "jsonl", "WriteLedger"),
        ("health", "jsonl", "WriteHealth"),
        ("counts", "avro", "WriteCounts"),
        ("discovered", "jsonl", "WriteDiscovered"),
    )
    """Kinds of rows, the forms in which they are written, and the names of these steps."""

    def __init__(
        self, directory: str, *, unbounded: bool, with_counts: bool, rows: str | None = None, run: str | None = None
    ):
        self.directory = directory
        self._rows = rows or directory
        self._run = run
        self._unbounded = unbounded
        self.takes_counts = with_counts

    @classmethod
    def of(cls, args: argparse.Namespace, source: type[Source], options: PipelineOptions) -> RowFiles:
        unbounded, with_counts = not source.bounded, args.write_counts
        return cls(args.output, unbounded=unbounded, with_counts=with_counts, rows=args.rows, run=args.run)

    def write(self, outputs: Sequence[Output]) -> None:
        of_name = {output.name: output for output in outputs}
        for name, form, label in self.FORMS:
            if name in of_name and (name != "counts" or self.takes_counts):
                output = of_name[name]
                _ = output.rows | label >> WriteRowFiles(
                    self._rows,
                    name,
                    form,
                    output.schema,
                    unbounded=self._unbounded,
                    keyed=output.keyed,
                    run=self._run,
                )

    def prepare(self) -> None:
        old_counts = FileSystems.join(self.directory, "counts.avro")
        if not self._unbounded and not self.takes_counts and FileSystems.exists(old_counts):
            raise SpecError(
                "--output has counts.avro of an earlier job, which would not belong to the new estimates: give "
                f"--write_counts or another directory, got {self.directory!r}"
            )
