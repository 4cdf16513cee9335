"""PostgreSQL, started for the tests of a module."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

NEEDED = ("initdb", "postgres", "pg_ctl", "psql")
USER = "postgres" if os.geteuid() == 0 else None
"""PostgreSQL refuses to run as root."""


def program(name: str) -> str | None:
    """Its path; Debian keeps those of the server in folders of their versions."""
    beside = sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))
    return shutil.which(name) or next(reversed(beside), None)


PROGRAMS = {name: program(name) for name in NEEDED}
MISSING = [name for name, path in PROGRAMS.items() if path is None]


def call(name: str, *arguments: str, user: str | None = None) -> str:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    command = [str(PROGRAMS[name]), *arguments]
    done = subprocess.run(
        command, cwd="/", env=environment, user=user, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def served() -> Iterator[Path]:
    """The folder with the socket of a server that listens nowhere else."""
    with tempfile.TemporaryDirectory() as name:  # names of sockets must be short
        folder = Path(name)
        if USER:
            shutil.chown(folder, USER)
        data = str(folder / "data")
        call("initdb", f"--pgdata={data}", "--auth=trust", "--username=reader", "--no-sync", user=USER)
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        log = str(folder / "log")
        call("pg_ctl", "start", "--wait", f"--pgdata={data}", f"--log={log}", f"--options={options}", user=USER)
        try:
            yield folder
        finally:
            call("pg_ctl", "stop", f"--pgdata={data}", "--mode=immediate", user=USER)


def psql(socket: Path, *arguments: str) -> str:
    at = [f"--host={socket}", "--username=reader", "--dbname=postgres", "--no-psqlrc", "--quiet"]
    return call("psql", *at, "--set=ON_ERROR_STOP=1", *arguments)
