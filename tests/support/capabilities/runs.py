"""What goes into a program of the table, and what comes out."""

from __future__ import annotations

import contextlib
import io
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.capabilities.jobs import Job
from tests.support.capabilities.studies import STUDIES, messages
from tests.support.messages_cases import BATCH, container, write_files
from uldp_transforms.jobs import cli
from uldp_transforms.messages.containers import RANDOMNESS, SEEDED

Rows = Mapping[str, Sequence[dict[str, Any]]]
"""Rows by kind, as in JSON lines."""

ALWAYS: dict[str, Any] = {"min_reports": 15}
LONG_AGO = "20000d"
"""An allowed lateness for reports of 2001 that arrive now."""


class Refused(Exception):
    """A program does not run a job; the message is the sentence that its user reads."""


# ---------------------------------------------------------------------- what goes in


def words_of(options: Mapping[str, Any], folder: Path) -> list[str]:
    """Options of a command line."""
    words: list[str] = []
    for name, value in options.items():
        if name == "candidates":
            (folder / name).write_text("\n".join(value), encoding="utf-8")
            words.append(f"--{name}={folder / name}")
        elif value is True:
            words.append(f"--{name}")
        else:
            words.append(f"--{name}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")
    return words


def container_of(sent: Sequence[bytes]) -> bytes:
    """A file of messages that says that they are simulated."""
    blocks = [(1, message) for message in sent]
    return container(blocks, BATCH, sync=secrets.token_bytes(16), **{RANDOMNESS: SEEDED.encode()})


def write_study(job: Job, folder: Path) -> list[str]:
    """Write the collections and reports of a study; returns the options that name the collections."""
    files: dict[str, Any] = {"in.avro": container_of(messages(job.study) * (2 if job.copies else 1))}
    of = {f"{number}.json": one for number, one in enumerate(STUDIES[job.study].of)}
    write_files(folder, files | of)
    return [f"--collection={folder / name}" for name in of]


# ---------------------------------------------------------------------- what comes out


def read_rows_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of JSON lines in a directory, by the kind that the name of their file begins with."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        found.setdefault(path.stem.partition("-")[0], []).extend(lines_of(path))
    return found


def lines_of(path: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, path.read_text("utf-8").splitlines()))


def check_outcome(program: str, run: Callable[[], int]) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            code = run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    if code != cli.DONE:
        lines = said.getvalue().splitlines()
        raise Refused(next((line for line in reversed(lines) if f"{program}: " in line), "\n".join(lines)))
