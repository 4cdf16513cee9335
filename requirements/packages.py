"""Builds the sdists of the core and its companions, and a wheel from each: the same bytes wherever and whenever.

``python -m requirements.packages DIST`` builds the commit that is checked out, whatever else lies in its folder. Times
of files are that of the commit; owners, modes and the order of files do not depend on the machine.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from requirements.companions import companions

UMASK = 0o022


def main(folder: Path) -> None:
    """Write an sdist and a wheel of the core and of each companion into a folder, and print their names."""
    os.umask(UMASK)
    time = _git("log", "-1", "--format=%ct").decode().strip()
    os.environ["SOURCE_DATE_EPOCH"] = time  # for the build backend
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        commit = _unpacked(_git("archive", "--prefix=commit/", "HEAD"), Path(name, "tree"))
        for place in (commit, *(each.folder for each in companions(commit))):
            raw = _build("sdist", place, Path(name))
            sdist = folder / raw.name
            sdist.write_bytes(repacked(raw.read_bytes(), int(time)))
            wheel = _build("wheel", _unpacked(sdist.read_bytes(), Path(name, "sources", place.name)), folder)
            print(sdist.name, wheel.name, sep="\n")


def repacked(sdist: bytes, time: int) -> bytes:
    """A gzipped tar file with the same files in the order of their names, without owners, with one time."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as old,
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=time) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for item in sorted(old.getmembers(), key=lambda member: member.name):
            item.uid = item.gid = 0
            item.uname = item.gname = ""
            item.mtime, item.pax_headers = time, {}
            item.mode = 0o755 if item.isdir() or item.mode & 0o100 else 0o644
            new.addfile(item, old.extractfile(item) if item.isfile() else None)
    return packed.getvalue()


def _unpacked(archive: bytes, folder: Path) -> Path:
    """The one folder in an archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    (inside,) = folder.iterdir()
    return inside


def _build(kind: str, source: Path, folder: Path) -> Path:
    """Build one package by the project's build backend."""
    program = f"import sys; from setuptools.build_meta import build_{kind} as build; print('\\n' + build(sys.argv[1]))"
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, check=True, text=True)
    return folder / done.stdout.split("\n")[-2]


def _git(*command: str) -> bytes:
    root = Path(__file__).parents[1]
    return subprocess.run(["git", *command], cwd=root, stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
