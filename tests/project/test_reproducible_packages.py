"""The packages of one commit have the same bytes wherever, whenever and under whatever umask they are built."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from requirements.companions import companions

ROOT = Path(__file__).parents[2]
TREE = ("uldp_transforms", "schemas", "clients", "packages", "requirements")
FILES = ("LICENSE", "README.md", "MANIFEST.in", "pyproject.toml", "setup.py")
TIME = 1_700_000_000
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


def built(folder: Path, umask: int, age: int) -> dict[str, bytes]:
    """The packages of a commit of a copy, by name; its files are so many seconds old, and others lie beside them."""
    source = folder / "source"
    for name in TREE:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in FILES:
        shutil.copy(ROOT / name, source)
    for path in source.rglob("*"):
        os.utime(path, (TIME - age, TIME - age))
        path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)
    environment = os.environ | {"GIT_COMMITTER_DATE": f"{TIME} +0000", "PYTHONHASHSEED": str(age)}
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a"]):
        subprocess.run([*GIT, *command], cwd=source, env=environment, check=True)
    left = source / "uldp_transforms.egg-info" / "SOURCES.txt"  # as an earlier build leaves it
    left.parent.mkdir()
    left.write_text(f"schemas/{age}.json\n", encoding="utf-8")
    (source / "schemas" / f"{age}.json").write_text("{}", encoding="utf-8")
    program = f"import os, runpy, sys; os.umask({umask}); sys.argv = ['packages', {str(folder / 'dist')!r}]\n"
    program += "runpy.run_module('requirements.packages', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {path.name: path.read_bytes() for path in (folder / "dist").iterdir()}
    assert sorted(done.stdout.split()) == sorted(found)
    return found


@pytest.mark.skipif(int(version("setuptools").split(".")[0]) < 77, reason="packages are built with setuptools 77")
def test_two_builds_have_the_same_bytes(tmp_path: Path) -> None:
    first, second = built(tmp_path / "a", 0o022, 10), built(tmp_path / "elsewhere" / "b", 0o077, 10**6)
    kinds = {kind: sorted(name for name in first if name.endswith(kind)) for kind in (".tar.gz", ".whl")}
    number = 1 + len(companions(ROOT))
    assert [len(names) for names in kinds.values()] == [number, number] and len(first) == 2 * number
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    for package in kinds[".tar.gz"]:
        with tarfile.open(fileobj=io.BytesIO(first[package])) as sdist:
            assert {(item.mtime, item.uid, item.uname) for item in sdist.getmembers()} == {(TIME, 0, "")}
            names = [item.name for item in sdist.getmembers()]
        assert names == sorted(names)
        is_core = package.startswith("uldp_transforms-")
        assert any(name.endswith("/schemas/report.avsc") for name in names) == is_core
    for package in kinds[".whl"]:
        with zipfile.ZipFile(io.BytesIO(first[package])) as wheel:
            assert {item.date_time[0] for item in wheel.infolist()} == {2023}
            assert {item.external_attr >> 16 & 0o777 for item in wheel.infolist()} <= {0o644, 0o755, 0o664}
