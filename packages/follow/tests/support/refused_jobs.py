"""Refusals of ``--follow``: calls and their sentences."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packages.follow.tests.support.kill_points import _configured, configured
from packages.follow.tests.support.spools import Followed
from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.messages.files.spool_names import manifest_path
from uldp_transforms_follow.follow_job import _record, follow_job
from uldp_transforms_follow.spool_reading import SpoolReader
from uldp_transforms_follow.state import FollowState


def used(change: Callable[[Followed], object], window: tuple[str, ...] = ("--window", "1m")) -> Any:
    """The same in a folder that was used, and then changed."""
    followed = Followed(Path(tempfile.mkdtemp()))
    followed.window = ["--window", "1m"]
    followed.add_file()
    followed.steps(1)
    _record(_configured(followed)).write(str(followed.output))
    change(followed)
    followed.window = list(window)
    return _configured(followed)


def without_state(followed: Followed) -> None:
    (followed.output / "follow.sqlite").unlink()


def of_another_version(followed: Followed) -> None:
    with contextlib.closing(sqlite3.connect(followed.output / "follow.sqlite")) as database:
        database.execute("PRAGMA user_version = 9")


def damaged(followed: Followed) -> None:
    (followed.output / "follow.sqlite").write_bytes(b"no database" * 1000)


def foreign_manifest() -> Any:
    followed = Followed(Path(tempfile.mkdtemp()))
    name = followed.add_file()
    path = followed.spool / name
    manifest = manifest_path(path)
    other = manifest.read_text("utf-8").replace(name, "other.avro")
    manifest.write_text(other, encoding="utf-8")
    return SpoolReader(str(followed.spool), configured().spec).read(name)


def without_input() -> Any:
    parser = command_line()
    args, rest = parser.parse_known_args(
        ["--collection=c.json", "--output=out", "--subscription=projects/p/subscriptions/s", "--follow", "--window=1m"]
    )
    return follow_job(args, parser, rest)


REFUSED: list[Refusal] = [
    *(
        (functools.partial(configured, *change), sentence)
        for change, sentence in [
            (["--max_rejected_share", "0.5"], "--follow cannot be combined with --max_rejected_share, got both"),
            (["--early_every", "1500ms"], "JobSpec.early_every must be a whole number of seconds, got 1500 ms"),
            (
                ["--dimension", "country=attribute:cc"],
                "--dimension needs --subscription or --kafka_topic, got --input",
            ),
            (["--report"], "--follow cannot be combined with --report, got both"),
            (["--release", "final"], "--follow cannot be combined with --release, got both"),
            (["--manifest", "m.json"], "--follow cannot be combined with --manifest, got both"),
            (["--output_topic", "projects/p/topics/t"], "--follow cannot be combined with --output_topic, got both"),
            (
                ["--runner", "DirectRunner"],
                "--follow cannot be combined with --runner, got both",
            ),
        ]
    ),
    (
        without_input,
        "--follow needs --input or --kafka_topic, got none; it cannot be combined with --subscription, got both",
    ),
    (
        functools.partial(configured, "--report", "--relase=final", "--runner=Direct", window=()),
        "--follow needs --window, got none; it cannot be combined with --report, --relase and --runner, "
        "got all of them; did you mean --release?",
    ),
    (functools.partial(configured, window=()), "--follow needs --window, got none"),
    (
        functools.partial(configured, spool=False),
        "--follow needs --input to be the directory of uldp gateway --spool on this machine, got ",
    ),
    (
        functools.partial(used, lambda followed: None, ("--window", "2m")),
        "--output must be a directory for the same windows, got ",
    ),
    (functools.partial(used, without_state), "--output must be a new directory or one of --follow, got "),
    (functools.partial(used, of_another_version), "--output must have a follow.sqlite of version 1, got version 9"),
    (functools.partial(used, damaged), "--output must have a follow.sqlite that SQLite can read, got "),
    (foreign_manifest, "...avro', got other files"),
    (
        OSError,
        lambda: FollowState("no-such-folder", "run", "windows"),
        "[Errno 5] unable to open database file: 'no-such-folder/follow.sqlite'",
    ),
]
