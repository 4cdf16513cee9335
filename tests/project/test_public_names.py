"""The package itself: its names, which are imported when they are asked for, and the files that are shipped with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import uldp_transforms
from uldp_transforms import schemas


def test_names_are_imported_when_they_are_asked_for() -> None:
    program = "import sys, uldp_transforms; uldp_transforms.Windows; print('apache_beam' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", uldp_transforms.__all__)
def test_a_name_is_that_of_what_it_stands_for(name: str) -> None:
    assert getattr(uldp_transforms, name).__name__ == name


@pytest.mark.parametrize("folders", [("schemas",), ("schemas", "_shipped/schemas"), ("_shipped/schemas",)])
def test_what_is_inside_the_package_comes_first(
    folders: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a wheel the files are inside; beside an installed package may be a folder of that name of somebody else."""
    package = tmp_path / "package"
    inside, beside = package / "_shipped" / "schemas", tmp_path / "schemas"
    for folder in folders:
        (package if "_" in folder else tmp_path).joinpath(folder).mkdir(parents=True)
    monkeypatch.setattr(schemas, "_PACKAGE", package)
    assert schemas.shipped("schemas") == (inside if inside.exists() else beside)
