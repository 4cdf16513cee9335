"""Runs of the main job: their names, and the record that each leaves in its directory.

A run lasts from the start of a job until it is complete, stopped, cancelled or failed. All its rows carry its name;
names sort by time as text. ``DIR/run-NAME.json`` describes the run and its end; the fields are those of
``schemas/run.schema.json``. A record without an end belongs to a run that is alive, was killed, or was only launched
from here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs.records.superseded_files import without_superseded
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.checks import parse_json
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.figures.window_names import clock
from uldp_transforms.version import SOFTWARE
from uldp_transforms.windows import moment_of, now, rfc3339

if TYPE_CHECKING:  # reading records does not need Beam
    from uldp_transforms import JobSpec

COMPLETE, STOPPED, CANCELLED, FAILED = "complete", "stopped", "cancelled", "failed"
"""How a run ends: at the end of its input, drained after a signal, cancelled by a signal, or by an error."""


def new_run_id() -> str:
    """A name that sorts after those of earlier milliseconds, such as ``20261122T081503.042Z-4f2a9c``."""
    moment = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")[:23]
    return f"{re.sub('[-:]', '', moment)}Z-{secrets.token_hex(3)}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Record of a run; the fields are those of ``schemas/run.schema.json``.

    Attributes:
        run: name of the run.
        software: name and version of the software.
        started: RFC 3339 time.
        ended: RFC 3339 time; None: the run has not ended, or its end was not observed.
        source: ``option`` and ``name`` of the source, and whether it is ``bounded`` and ``resumes``.
        specification: as from ``JobSpec.to_json``, but with only the number of candidates.
        launched: whether the job runs elsewhere, so that its end is not observed.
        end: one of the four words above, or None.
        sentence: message about the end.
        ledger: sums of its ledger, and whether it ``balanced``; None if unknown.
    """

    run: str
    software: str = SOFTWARE
    started: str
    ended: str | None = None
    source: Mapping[str, Any]
    specification: Mapping[str, Any]
    launched: bool = False
    end: str | None = None
    sentence: str | None = None
    ledger: Mapping[str, Any] | None = None

    @property
    def resumes(self) -> bool:
        """Whether a later run continues where this one ended, because acknowledged reports are never delivered
        again."""
        return bool(self.source["resumes"])

    @property
    def bounded(self) -> bool:
        return bool(self.source["bounded"])

    def write(self, directory: str) -> None:
        """Write or replace the record of this run atomically; raises the errors of the file system."""
        text = json.dumps(vars(self), indent=1, ensure_ascii=False)
        path = stores.joined(directory, f"run-{self.run}.json")
        in_a_store = stores.in_store(path)  # where an object appears only when it is complete
        with stores.created(path) if in_a_store else whole_file(path) as file:
            file.write(f"{text}\n".encode())

    def with_end(self, end: str, sentence: str, ledger: Mapping[str, Any] | None) -> RunRecord:
        """The run record with the current time as its end."""
        return dataclasses.replace(self, ended=rfc3339(now()), end=end, sentence=sentence, ledger=ledger)


def start_of_run(spec: JobSpec, source: Mapping[str, Any], *, launched: bool) -> RunRecord:
    """The record of a run that starts now."""
    candidates = spec.candidates
    specification = spec.to_json() | {"candidates": None if candidates is None else len(candidates)}
    return RunRecord(
        run=str(spec.run), started=rfc3339(now()), source=source, specification=specification, launched=launched
    )


def read_records(directory: str) -> list[RunRecord]:
    """The records in a directory, local or of a store such as gs://, in the order of the runs.

    Raises:
        SpecError: if a file has the name but not the content of a record.
    """
    paths = files_of(directory, "run-*.json")
    return sorted((_read(path) for path in paths), key=lambda record: record.run)


def _read(path: str) -> RunRecord:
    with stores.opened(path) as file:
        content = file.read()
    record: RunRecord | None = None
    with contextlib.suppress(AttributeError, TypeError, KeyError, ValueError):  # SpecError among them
        found = RunRecord(**parse_json(content.decode("utf-8"), path))
        record = found if _is_sound(found, stores.name_of(path)) else None
    if record is None:
        raise SpecError(f"{path} must be a run record (the content is not shown)")
    return record


def _is_sound(record: RunRecord, name: str) -> bool:
    """Whether a record is valid; in particular its run, from which file names are made, must match its file name.

    Raises TypeError, KeyError or ValueError for some invalid records.
    """
    _ = record.resumes, record.bounded, dict(record.specification), moment_of(record.started)
    _ = record.ended is None or moment_of(record.ended)
    texts = {type(text) for text in (record.run, record.end, record.sentence)}
    collections = {type(given) for given in record.specification.get("collections") or ()}
    return name == f"run-{record.run}.json" and texts <= {str, type(None)} and collections <= {dict}


def files_of(directory: str, pattern: str) -> list[str]:
    """The files of a directory, local or in a store, that match a pattern; none if the directory does not exist."""
    if not stores.in_store(directory):
        return without_superseded(
            directory, lambda: sorted(str(path) for path in Path(directory).glob(pattern) if path.is_file())
        )
    return stores.matching(stores.joined(directory, pattern))


def read_lines(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Read the objects in JSON lines files; raises SpecError for other or truncated content."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        with stores.opened(path) as file, of_jobs(path):
            rows += ({**json.loads(line)} for line in file.read().splitlines())
    return rows


_STUMBLES = (TypeError, KeyError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)


@contextlib.contextmanager
def of_jobs(path: str) -> Iterator[None]:
    """Context for reading rows of unknown origin: any format error becomes a SpecError that names the file."""
    try:
        yield
    except SpecError:
        raise
    except _STUMBLES as error:
        raise SpecError(f"{path} must contain rows of uldp estimate (the content is not shown)") from error


def collections_of(records: Iterable[RunRecord], others: Iterable[Collection]) -> dict[str, Collection]:
    """Fingerprint -> collection, for those of runs and others, which say what equal ones are called; unreadable ones of
    runs, of newer versions, are omitted."""
    found = {}
    for record in records:
        for given in record.specification.get("collections") or ():
            try:
                collection = Collection.from_json(given)
            except SpecError:  # collection of a newer version
                continue
            found[collection.fingerprint.hex()] = collection
    return found | {collection.fingerprint.hex(): collection for collection in others}


def zone_of(records: Sequence[RunRecord]) -> datetime.tzinfo:
    """The time zone of the latest run, in which texts name windows."""
    return clock(records[-1].specification.get("timezone") if records else None)
