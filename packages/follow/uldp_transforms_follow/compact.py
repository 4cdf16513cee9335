"""Merges the many small files of a stream's output directory into few, with the same rows.

A stream writes some files a minute, a year of them is a million. Files of one run, kind and format that are older than
``--older_than`` are joined; all rows and panes stay, in the same order, so that every reader finds what it found
before. Stop it at any moment: the next run goes on. A running stream need not be stopped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import itertools
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import fastavro

from uldp_transforms.files.whole_file import sync_file, sync_folder, whole_file
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.records.run_records import read_records
from uldp_transforms.jobs.records.superseded_files import GENERATION, JOURNAL, NAME, read_journal
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import duration_text, milliseconds

FULL = 1 << 25
"""Bytes; files of at least half of this are left alone, and merged files are not much larger."""

OLDER_THAN = "1d"


class Group(NamedTuple):
    """Files to be merged, in order: names, and the beginning and the end of the merged name."""

    names: tuple[str, ...]
    prefix: str
    form: str

    @property
    def merged(self) -> str:
        """A name that no file of a stream has, and that depends on the names of the parts."""
        digest = hashlib.sha256("\n".join(self.names).encode()).hexdigest()[:32]
        return f"{self.prefix}-merged-{digest}.{self.form}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Compaction:
    """Options of the program; ``older_than`` in milliseconds."""

    directory: str
    older_than: int


def configure(argv: Sequence[str]) -> Compaction:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("compact", description=__doc__)
    parser.add_argument("directory", metavar="DIR", help="output directory of a stream of uldp estimate, a local one")
    parser.add_argument(
        "--older_than",
        type=cli.duration("--older_than"),
        help=f"smallest age of the files to merge; longer than late rows may change them (default: {OLDER_THAN})",
    )
    args = parser.parse_args(argv)
    if not os.path.isdir(args.directory):
        raise SpecError(f"DIR must be a local directory, got {args.directory!r}")
    if not read_records(args.directory):
        raise SpecError(f"DIR must contain the record of a run, got {args.directory!r}")
    age = milliseconds(OLDER_THAN, "--older_than") if args.older_than is None else int(args.older_than)
    return Compaction(directory=args.directory, older_than=age)


def job(task: Compaction) -> int:
    """Merge all groups, and print how many files became how many."""
    with _alone(task.directory):
        finish(task.directory)
        before = rows = after = 0
        for group in groups_of(task.directory, time.time_ns() - task.older_than * 1_000_000):
            rows += merge(task.directory, group)
            before, after = before + len(group.names), after + 1
    old = f"older than {duration_text(task.older_than)}"
    print(f"{before:,} files {old} became {after:,}; {rows:,} rows" if before else f"no files {old} to merge")
    return cli.DONE


def groups_of(directory: str, before: int) -> list[Group]:
    """Groups of at least two files that were last written until a time, in nanoseconds since 1970."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for entry in os.scandir(directory):
        if (match := NAME.fullmatch(entry.name)) and entry.is_file(follow_symlinks=False):
            there = entry.stat(follow_symlinks=False)
            if there.st_mtime_ns <= before and there.st_size < FULL // 2:
                found[f"{match[1]}-{match[2]}", match[3]].append((entry.name, there.st_size))
    groups = []
    for (prefix, form), files in sorted(found.items()):
        files.sort()
        ends = itertools.accumulate(size for _, size in files)
        for _, some in itertools.groupby(zip(files, ends), key=lambda file: file[1] // FULL):
            names = tuple(name for (name, _), _ in some)
            groups += [Group(names, prefix, form)] if len(names) > 1 else []
    return groups


def merge(directory: str, group: Group) -> int:
    """Replace some files by one with all their rows; returns the number of rows.

    Raises:
        SpecError: if a file has other content; nothing is changed.
        OSError: if a file cannot be read or written.
    """
    paths, unfinished = [os.path.join(directory, name) for name in group.names], _unfinished(directory, group.merged)
    try:
        _remove(unfinished)
        with open(unfinished, "xb") as file:
            number = _WRITERS[group.form](paths, file)
            sync_file(file)
        newest = max(os.stat(path).st_mtime_ns for path in paths)
        os.utime(unfinished, ns=(newest, newest))  # so that its age is that of its rows
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(unfinished)
        raise
    _write(directory, JOURNAL, json.dumps({"merged": group.merged, "parts": group.names}))
    _write(directory, GENERATION, str(_generation(directory) + 1))
    os.replace(unfinished, os.path.join(directory, group.merged))  # the commit point
    sync_folder(directory)
    finish(directory)
    return number


def finish(directory: str) -> None:
    """Finish the merge of the journal, or undo it if it was not committed."""
    found = read_journal(directory)
    if found is None:
        return
    if os.path.exists(os.path.join(directory, found.merged)):
        for name in found.parts:
            _remove(os.path.join(directory, name))
    else:
        _remove(_unfinished(directory, found.merged))
    sync_folder(directory)
    os.remove(os.path.join(directory, JOURNAL))
    sync_folder(directory)


def _json_lines(paths: Sequence[str], file: IO[bytes]) -> int:
    number = 0
    for path in paths:
        content = Path(path).read_bytes()
        lines = content.splitlines()
        whole = not content or content.endswith(b"\n")
        if not whole or not all(line.startswith(b"{") for line in lines):
            raise _foreign(path)
        file.write(content)
        number += len(lines)
    return number


def _avro(paths: Sequence[str], file: IO[bytes]) -> int:
    with open(paths[0], "rb") as first:
        schema = fastavro.reader(first).writer_schema
    number = 0

    def rows() -> Iterator[Any]:
        nonlocal number
        for path in paths:
            with open(path, "rb") as part, _of(path):
                reader = fastavro.reader(part)
                if reader.writer_schema != schema:
                    raise SpecError(f"files of one run must have one schema, got another one in {path}")
                for row in reader:
                    number += 1
                    yield row

    fastavro.writer(file, schema, rows(), codec="deflate")
    return number


def _parquet(paths: Sequence[str], file: IO[bytes]) -> int:
    import pyarrow as pa  # noqa: PLC0415  # takes a second to import
    from pyarrow import parquet  # noqa: PLC0415  # takes a second to import

    tables = []
    for path in paths:
        with _of(path):
            tables.append(parquet.read_table(path))
    whole = pa.concat_tables(tables)
    parquet.write_table(whole, file, compression="zstd")
    return int(whole.num_rows)


_WRITERS = {"jsonl": _json_lines, "avro": _avro, "parquet": _parquet}


@contextlib.contextmanager
def _of(path: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, EOFError, IndexError) as error:
        if isinstance(error, SpecError):
            raise
        raise _foreign(path) from error


def _foreign(path: str) -> SpecError:
    return SpecError(f"{path} must contain rows of uldp estimate (the content is not shown)")


@contextlib.contextmanager
def _alone(directory: str) -> Iterator[None]:
    """A lock, which the kernel releases when this process ends for any reason."""
    with open(os.path.join(directory, ".compact.lock"), "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SpecError(f"DIR must not be compacted by another program, got {directory!r}") from None
        yield


def _unfinished(directory: str, merged: str) -> str:
    return os.path.join(directory, f".{merged}.unfinished")


def _write(directory: str, name: str, text: str) -> None:
    with whole_file(os.path.join(directory, name)) as file:
        file.write(text.encode())


def _generation(directory: str) -> int:
    try:
        return int(Path(directory, GENERATION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("compact", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    uldp.run_program("compact")
