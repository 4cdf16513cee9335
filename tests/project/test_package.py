"""The wheel: one name at its top, everything in it that programs need, and imports that nothing else can disturb."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import uldp_transforms
from tests.support.messages_cases import KRR, container, single, write_files
from tests.support.project.shipped import FILES, NAME, SHIPPED
from uldp_transforms.beam.runtime.coders import ROWS
from uldp_transforms.messages.native_module import decoder_name

ROOT = Path(__file__).parents[2]
MOST_BYTES = 900_000
"""Of the wheel: nine tenths are modules with their docstrings."""


def python(*command: str, folder: Path, path: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """A Python of its own in a folder; ``path`` is where it looks for packages first."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    environment |= {} if path is None else {"PYTHONPATH": str(path)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left behind here, by the locked setuptools."""
    setuptools = importlib.metadata.version("setuptools")
    if int(setuptools.split(".")[0]) < 77:
        pytest.skip(f"a wheel is built with setuptools 77 or newer, here is {setuptools}")
    folder = tmp_path_factory.mktemp("wheel")
    for name in (NAME, *SHIPPED):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / "source")
    options = ("-q", "--no-deps", "--no-build-isolation", "-w", "out")
    built = python("-m", "pip", "wheel", *options, "./source", folder=folder)
    assert built.returncode == 0, built.stderr
    (found,) = (folder / "out").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel is installed, beside what it needs."""
    folder = tmp_path_factory.mktemp("installed")
    done = python("-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), str(wheel), folder=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with packages of somebody else, whose names are those of the folders of our checkout."""
    for name in ("labs", "pipelines", "schemas", "tests"):
        write_files(tmp_path, {f"{name}/__init__.py": "raise RuntimeError('a foreign package was imported')\n"})
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, single())])})
    return tmp_path


# ---------------------------------------------------------------------- what is in it


def modules() -> set[str]:
    """The modules of the checkout, by their names in the wheel."""
    return {f"{NAME}/{path.relative_to(ROOT / NAME).as_posix()}" for path in (ROOT / NAME).rglob("*.py")}


def test_the_wheel_has_one_name(wheel: Path) -> None:
    """And that of its own description."""
    with zipfile.ZipFile(wheel) as archive:
        top = {name.partition("/")[0] for name in archive.namelist()}
        (record,) = (name for name in archive.namelist() if name.endswith("top_level.txt"))
        assert archive.read(record).decode().split() == [NAME]
    assert top == {NAME, f"{NAME}-{uldp_transforms.__version__}.dist-info"}


def test_the_wheel_has_everything(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith(f"{NAME}/")}
    beside = {
        f"{NAME}/{path.relative_to(ROOT / NAME).as_posix()}"
        for path in (ROOT / NAME).rglob("*.*")
        if path.is_file() and path.suffix not in (".py", ".pyc", ".md")  # pages are for readers of the repository
    }
    kinds = {path.rpartition(".")[2] for path in beside}
    assert kinds == {"typed"}
    contract = [*(ROOT / "schemas").glob("*.*s*"), *(ROOT / "schemas").glob("sql/*.sql")]
    assert len(contract) >= 20
    shipped = {f"{NAME}/_shipped/{path.relative_to(ROOT).as_posix()}" for path in contract}
    assert names == modules() | beside | shipped


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES


# ---------------------------------------------------------------------- one identity


PROGRAM = """
import importlib, pkgutil, sys
import uldp_transforms
for found in pkgutil.walk_packages(uldp_transforms.__path__, "uldp_transforms."):
    importlib.import_module(found.name)
files = {}
for name, module in list(sys.modules.items()):
    if name != "__main__" and (getattr(module, "__file__", None) or "").startswith(tuple(sys.argv[1:])):
        files.setdefault(module.__file__, []).append(name)
print(len(files), *(names for names in files.values() if len(names) > 1))
"""


def test_no_module_has_two_names() -> None:
    """Of all that is installed, and of what a checkout starts."""
    program = "import pipelines.estimate, pipelines.demo, pipelines.reproduce\n" + PROGRAM
    done = python("-c", program, *(f"{ROOT / folder}{os.sep}" for folder in (NAME, "pipelines", "labs")), folder=ROOT)
    assert done.returncode == 0, done.stderr
    number, *twice = done.stdout.split()
    assert int(number) >= len(modules())
    assert not twice


# ---------------------------------------------------------------------- the version


def test_the_version_stands_in_one_place() -> None:
    version = uldp_transforms.__version__
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version)
    assert importlib.metadata.version("uldp-transforms") == version
    sources = [ROOT / name for name in FILES if name.endswith((".toml", ".py"))]
    sources += [path for of in (NAME, "pipelines", "labs") for path in (ROOT / of).rglob("*.py")]
    assert [path.name for path in sources if version in path.read_text("utf-8")] == ["version.py"]


# ---------------------------------------------------------------------- imports that nothing disturbs

STATEMENTS = [
    "from uldp_transforms import DecodeReports; import uldp_transforms.jobs.estimate.run",
    "from uldp_transforms import EstimateReports; EstimateReports.__mro__",
    "from uldp_transforms.schemas import load; load('report.avsc')",
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("from_wheel", [False, True], ids=["checkout", "wheel"])
def test_packages_of_the_same_names_do_not_disturb(
    statement: str, from_wheel: bool, foreign: Path, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue("installed") if from_wheel else None
    shown = f"{statement}; import uldp_transforms; print(uldp_transforms.__file__)"
    done = python("-c", shown, folder=foreign, path=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()).is_relative_to(ROOT if path is None else path)


@pytest.mark.parametrize("argv", ["--help", "estimate --help", "--version"])
def test_the_command_works_from_the_wheel(argv: str, installed: Path, foreign: Path) -> None:
    done = python(str(installed / "bin" / "uldp"), *argv.split(), folder=foreign, path=installed)
    assert (done.returncode, done.stderr) == (0, "")
    expected = {
        "--help": "usage: uldp PROGRAM [options]\n",
        "estimate --help": "usage: uldp estimate [options] --collection COLLECTION --output OUTPUT\n",
        "--version": f"uldp_transforms {uldp_transforms.__version__}, decoder: {decoder_name()}\n",
    }
    assert done.stdout.startswith(expected[argv])


def test_a_job_runs_from_the_wheel(installed: Path, foreign: Path) -> None:
    """With its schemas, beside foreign ones."""
    argv = "estimate --collection krr.json --input in.avro --output out --min_reports 1"
    done = python(str(installed / "bin" / "uldp"), *argv.split(), folder=foreign, path=installed)
    assert (done.returncode, done.stderr) == (0, "estimate: 1 received = 1 accepted + 0 rejected\n")
    (row,) = map(json.loads, (foreign / "out" / "estimates.jsonl").read_text("utf-8").splitlines())
    assert (row["num_reports"], row["software"]) == (1, f"uldp_transforms {uldp_transforms.__version__}")


# ---------------------------------------------------------------------- names that are wrong


def test_a_misspelt_name_is_named(tmp_path: Path) -> None:
    """When it is imported, and when it is used."""
    done = python("-c", "from uldp_transforms import CountReprots", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "ImportError: cannot import name 'CountReprots' from 'uldp_transforms'"
    )
    with pytest.raises(AttributeError) as caught:
        _ = uldp_transforms.CountReprots
    names = ", ".join(uldp_transforms.__all__)
    assert str(caught.value) == f"module 'uldp_transforms' has the names {names}, got 'CountReprots'"


def test_every_name_is_there_and_listed() -> None:
    """For type checkers, at run time and in the list of names."""
    assert sorted(uldp_transforms._HOMES) == sorted(uldp_transforms.__all__) == uldp_transforms.__all__
    for name in uldp_transforms.__all__:
        found, home = getattr(uldp_transforms, name), f"{NAME}.{uldp_transforms._HOMES[name]}"
        assert found.__module__ == home or found in ROWS


def test_type_checkers_know_the_names(installed: Path, tmp_path: Path) -> None:
    """And not others; what Beam has is left out here, for it takes a minute to read."""
    names = ", ".join(uldp_transforms.__all__)
    write_files(tmp_path, {"good.py": f"from {NAME} import {names}\n", "bad.py": f"from {NAME} import CountReprots\n"})
    options = ["--config-file=", "--cache-dir=cache", "--follow-imports=silent", "--ignore-missing-imports"]
    checked = python("-m", "mypy", *options, "good.py", "bad.py", folder=tmp_path, MYPYPATH=str(installed))
    assert checked.returncode == 1, checked.stderr
    (line, summary) = checked.stdout.splitlines()
    assert re.match(r'bad\.py:1: error: Module "uldp_transforms" has no attribute "CountReprots"', line)
    assert summary.startswith("Found 1 error in 1 file")


def test_a_fault_in_a_module_is_shown_as_its_cause(installed: Path, tmp_path: Path) -> None:
    """Not as a name that is not there."""
    shutil.copytree(installed / NAME, tmp_path / NAME)
    with (tmp_path / NAME / "beam" / "transforms" / "count_reports.py").open("a", encoding="utf-8") as file:
        file.write("\nimport math\nmath.broken\n")
    done = python("-c", "from uldp_transforms import CountReports", folder=tmp_path, path=tmp_path)
    assert done.returncode == 1
    assert "cannot import name" not in done.stderr
    assert "math.broken" in done.stderr
    said = "uldp_transforms.CountReports cannot be imported: module 'math' has no attribute 'broken'"
    assert done.stderr.splitlines()[-1] == f"ImportError: {said}"
