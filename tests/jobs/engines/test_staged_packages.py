"""Workers that install this package from what the job has staged, by Beam's own entry point, and then run it.

``make prism`` builds Prism, and the entry point of Beam's containers.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rigs import compare, container_worker, job, prism
from tests.rigs.cache import ROOT
from uldp_transforms import __version__

MISSING = prism.missing() or container_worker.BOOT.missing()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of reports, with the rows of the local engine in its ``local``."""
    folder = tmp_path_factory.mktemp("reports")
    for form in ("single", "packed"):
        job.make_reports(folder, form, 2_000)
    job.run(folder, str(folder / "*.avro"), folder / "local", [])
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", f"--wheel-dir={folder}", str(ROOT)]
    subprocess.run([sys.executable, *build], check=True)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture
def worker(tmp_path: Path) -> container_worker.ContainerWorker:
    made = container_worker.ContainerWorker(tmp_path / "worker")
    made.make()
    assert not made.installed()
    return made


def setup_file(folder: Path, wheel: Path) -> list[str]:
    return [f"--setup_file={ROOT / 'setup.py'}"]


def requirements_file(folder: Path, wheel: Path) -> list[str]:
    """The package is in the cache of requirements, from which Beam stages it; pip asks no index."""
    path = folder / "requirements.txt"
    path.write_text(f"uldp-transforms=={__version__}\n", encoding="utf-8")
    return [f"--requirements_file={path}", f"--requirements_cache={wheel.parent}"]


def extra_package(folder: Path, wheel: Path) -> list[str]:
    return [f"--extra_package={wheel}"]


@pytest.mark.parametrize("staged", [setup_file, requirements_file, extra_package])
def test_workers_install_the_package_and_give_the_rows_of_the_local_engine(
    staged: Callable[[Path, Path], list[str]],
    reports: Path,
    wheel: Path,
    worker: container_worker.ContainerWorker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    options = [*prism.options(), *worker.options(), *staged(tmp_path, wheel)]
    job.run(reports, str(reports / "*.avro"), tmp_path / "rows", options)
    assert compare.differences(tmp_path / "rows", reports / "local") == []
    assert worker.installed()


def test_workers_without_the_package_say_so(
    reports: Path, worker: container_worker.ContainerWorker, tmp_path: Path
) -> None:
    """So the environment of the tests above has the package from nowhere else."""
    with pytest.raises(RuntimeError, match=re.escape("No module named 'uldp_transforms'")):
        job.run(reports, str(reports / "*.avro"), tmp_path / "rows", [*prism.options(), *worker.options()])
