"""Writes rows as files in a directory."""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import apache_beam as beam
import fastavro
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection

from uldp_transforms.beam.runtime.joined_file import WriteJoinedFile
from uldp_transforms.collector.pending_rows import head_of, records_of
from uldp_transforms.collector.row_bytes import ENCODED, JOINED
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.flushed_rows import FlushRows
from uldp_transforms.jobs.records import run_accounts
from uldp_transforms.jobs.records.row_file_options import OPTIONS, flush_every
from uldp_transforms.jobs.records.row_forms import FORMS, RowForms
from uldp_transforms.jobs.sinks.sink import Output, Sink
from uldp_transforms.jobs.sources import Source
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.row_types import VALUE_SCHEMA
from uldp_transforms.spec.spec_fields import FINAL


class WriteRowFiles(beam.PTransform[PCollection[Any], Any]):
    """Writes rows to ``DIR/NAME.jsonl``, ``.avro`` or ``.parquet``.

    Bounded input: one file, even if there are no rows. Unbounded input: files ``NAME-RUN-HASH`` of the rows within each
    ``flush_every``. If each row represents a key, window and pane, file names depend on these and on the content, so
    that repeated work writes the same file again; other files have random names. Where rows may arrive after the
    watermark, the file name contains the time of its rows instead of the hash, and the file is rewritten with all of
    them.

    Args:
        directory: output directory.
        name: name of the files, without extension.
        form: jsonl, avro or parquet.
        schema: Avro schema of the rows.
        unbounded: whether the input is unbounded.
        keyed: whether each row represents a key, window and pane.
        run: name of the run, for the files of unbounded input and the folders of parts; None: omitted from file names.
        flush_every: milliseconds over which rows of unbounded input are collected; 0: a file for each bundle.
        final: whether rows of unbounded input are emitted by the watermark, see ``FlushRows``.
        late: milliseconds after the watermark during which such rows may arrive; None: none arrive.
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
        flush_every: int = 0,
        final: bool = False,
        late: int | None = None,
    ):
        super().__init__()
        self._flush_every = flush_every
        self._final = final
        self._late = late
        self._path = stores.joined(directory, name if run is None or not unbounded else f"{name}-{run}")
        self._run = run
        self._form = form
        self._schema = schema
        self._unbounded = unbounded
        self._keyed = keyed

    def expand(self, rows: PCollection[Any]) -> Any:
        if self._unbounded and self._flush_every:
            head = b"" if self._form == "jsonl" else head_of(self._schema)
            return rows | "WriteTogether" >> FlushRows(
                functools.partial(_encoded, form=self._form, schema=fastavro.parse_schema(self._schema), head=head),
                functools.partial(_write_pending, path=self._path, form=self._form, schema=self._schema),
                flush_every=self._flush_every,
                keyed=self._keyed,
                final=self._final,
                late=self._late,
            )
        if self._unbounded:
            return rows | "WriteBundles" >> beam.ParDo(
                _WriteBundlesFn(self._path, self._form, self._schema, self._keyed)
            )
        return rows | "Write" >> WriteJoinedFile(f"{self._path}.{self._form}", self._form, self._schema, self._run)


def _encoded(row: Any, *, form: str, schema: Any, head: bytes) -> bytes:
    return head + ENCODED[form](row, schema)


def _write_pending(rows: Sequence[bytes], name: str, *, path: str, form: str, schema: Any) -> None:
    _write(rows if form == "jsonl" else records_of(rows, schema), name, path=path, form=form, schema=schema)


def _write(rows: Sequence[bytes], name: str, *, path: str, form: str, schema: Any) -> None:
    run_accounts.before_rows()
    with whole_file(f"{path}-{name}.{form}") as file:
        file.write(JOINED[form](rows, schema))


class _WriteBundlesFn(beam.DoFn):
    def __init__(self, path: str, form: str, schema: Any, keyed: bool):
        self._path = path
        self._form = form
        self._schema = schema
        self._parsed = fastavro.parse_schema(schema)
        self._keyed = keyed

    def start_bundle(self) -> None:
        self._rows: list[bytes] = []
        self._identity = hashlib.sha256() if self._keyed else hashlib.sha256(os.urandom(32))

    def process(self, row: Any, window: Any = beam.DoFn.WindowParam, pane: Any = beam.DoFn.PaneInfoParam) -> None:
        encoded = ENCODED[self._form](row, self._parsed)
        self._rows.append(encoded)
        self._identity.update(f"{window} {pane.index} ".encode() + encoded)

    def finish_bundle(self) -> None:
        if self._rows:
            name = self._identity.hexdigest()[:32]
            _write(self._rows, name, path=self._path, form=self._form, schema=self._schema)


class RowFiles(Sink):
    """Files for all rows, in the directory of ``--output``."""

    options: ClassVar[cli.Options] = OPTIONS

    BY_CLOCK, BY_WATERMARK = ("rejected",), ("ledger",)
    """Kinds of rows written by processing time even with ``--release final``; and by the watermark even without it."""

    def __init__(
        self,
        directory: str,
        *,
        unbounded: bool,
        forms: RowForms,
        rows: str | None = None,
        run: str | None = None,
        flush_every: int = 0,
        final: bool = False,
    ):
        self._flush_every = flush_every
        self._final = final
        self._forms = forms
        self.directory = directory
        self._rows = rows or directory
        self._run = run
        self._unbounded = unbounded
        self.notice = forms.notice
        self.takes_counts = forms.counts
        self.takes_values = unbounded and forms.parquet

    @classmethod
    def of(cls, args: argparse.Namespace, source: type[Source], options: PipelineOptions) -> RowFiles:
        if source.bounded and args.flush_every is not None:
            raise SpecError(f"--flush_every needs a source that does not end, got {source.option}")
        return cls(
            args.output,
            unbounded=not source.bounded,
            # the steps of a stream and the files that its readers wait for do not depend on its collections
            forms=RowForms.of(
                args.write_json,
                args.write_parquet,
                counts=args.write_counts,
                entries=args.entries if source.bounded else 0,
            ),
            rows=args.rows,
            run=args.run,
            flush_every=flush_every(args),
            final=args.release == FINAL,
        )

    def write(self, outputs: Sequence[Output]) -> None:
        of_name = {output.name: output for output in outputs}
        for name, own in FORMS.items():
            output = self._taken(name, of_name)
            if output is None:
                continue
            for form in self._forms.of_kind(name):
                _ = output.rows | f"Write{name.capitalize()}{_suffix(form, own)}" >> WriteRowFiles(
                    self._rows,
                    name,
                    form,
                    output.schema,
                    unbounded=self._unbounded,
                    keyed=output.keyed,
                    run=self._run,
                    flush_every=self._flush_every,
                    final=name in self.BY_WATERMARK or (self._final and name not in self.BY_CLOCK),
                    late=output.late,
                )

    def _taken(self, name: str, of_name: Mapping[str, Output]) -> Output | None:
        """The rows of a kind; one row per value is made of estimates where their windows are written together."""
        if name == "values" and not self._unbounded:
            return of_name["estimates"]._replace(schema=VALUE_SCHEMA)
        return of_name.get(name)

    def prepare(self) -> None:
        if not self._unbounded:
            self._forms.check_earlier(self.directory)


def _suffix(form: str, own: Sequence[str]) -> str:
    """What distinguishes the step of a form from those of others; the only form besides Parquet has no suffix."""
    return "" if [form] == [*own] else {"jsonl": "Json"}.get(form, form.capitalize())
