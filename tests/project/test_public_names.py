"""The package itself: its names, which are imported when they are asked for, and the files that are shipped with it."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import uldp_transforms
from uldp_transforms import schemas
from uldp_transforms.lazy_names import lazy_names
from uldp_transforms.moved_modules import moved_names


def test_names_are_imported_when_they_are_asked_for() -> None:
    program = "import sys, uldp_transforms; uldp_transforms.Windows; print('apache_beam' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", uldp_transforms.__all__)
def test_a_name_is_that_of_what_it_stands_for(name: str) -> None:
    assert getattr(uldp_transforms, name).__name__ == name


_PACKAGES = (
    "uldp_transforms",
    "uldp_transforms.ldp",
    "uldp_transforms_planner.utility",
    "uldp_transforms.ldp.versions",
)
LAZY = [importlib.import_module(name) for name in _PACKAGES]


@pytest.mark.parametrize("package", LAZY, ids=lambda package: str(package.__name__))
def test_names_that_are_imported_on_first_use_are_those_that_type_checkers_see(package: ModuleType) -> None:
    assert package.__file__ is not None
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = sorted(alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names)
    assert seen == sorted(package.__all__) == sorted(package._HOMES)
    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_a_name_that_a_package_does_not_have_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(AttributeError) as caught:
        lazy_names("some.package", {"B": "b", "A": "a"})("C")
    assert str(caught.value) == "module 'some.package' has the names A, B, got 'C'"


def test_a_module_without_its_name_is_a_fault_of_the_import() -> None:
    with pytest.raises(ImportError) as caught:
        lazy_names("uldp_transforms", {"Gone": "windows"})("Gone")
    assert str(caught.value).startswith("uldp_transforms.Gone cannot be imported: ")


OF_LDP = ("Comparison", "compare", "homogeneity")


@pytest.mark.parametrize("name", OF_LDP)
def test_a_name_of_a_package_that_has_moved_is_found_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning) as caught:
        found = getattr(importlib.import_module("uldp_transforms.ldp"), name)
    home = "uldp_transforms_compare.comparisons"
    assert found is getattr(importlib.import_module(home), name)
    said = f"uldp_transforms.ldp.{name} is now {home} of the package uldp-transforms-compare"
    assert [str(each.message) for each in caught] == [said]
    assert caught[0].filename == __file__


MOVED = {
    "uldp_transforms.ldp.regression": ("uldp_transforms_survey.regression", "regress"),
    "uldp_transforms.ldp.clear_numbers": ("uldp_transforms_survey.clear_numbers", "share_of"),
    "uldp_transforms.ldp.planning": ("uldp_transforms_planner.planning", "plan"),
    "uldp_transforms.ldp.planning.canaries": ("uldp_transforms_planner.planning.canaries", "canary_share"),
    "uldp_transforms.ldp.utility": ("uldp_transforms_planner.utility", "Guarantee"),
    "uldp_transforms.ldp.conformance": ("uldp_transforms_conformance", "check_mechanism"),
    "uldp_transforms.jobs.files.event_times": ("uldp_transforms_tables.event_times", "Clock"),
    "uldp_transforms.jobs.files.tables": ("uldp_transforms_tables.tables", "table_of"),
    "uldp_transforms.jobs.files.values_file": ("uldp_transforms_tables.values_file", "ValuesFile"),
    "uldp_transforms.jobs.simulate": ("uldp_transforms_tables.simulate", "main"),
    "uldp_transforms.jobs.report.follow": ("uldp_transforms_report.follow", "Following"),
    "uldp_transforms.jobs.report.gathering": ("uldp_transforms_report.gathering", "Asked"),
}
"""Former names of modules that are now in a companion, today's names, and a name of each."""


@pytest.mark.parametrize("former", MOVED)
def test_a_name_that_has_moved_is_found_with_a_warning(former: str) -> None:
    home, name = MOVED[former]
    with pytest.warns(DeprecationWarning) as caught:
        found = getattr(importlib.import_module(former), name)
    assert found is getattr(importlib.import_module(home), name)
    package = home.partition(".")[0].replace("_", "-")
    assert [str(each.message) for each in caught] == [f"{former} is now {home} of the package {package}"]
    assert caught[0].filename == __file__


def test_a_name_that_went_elsewhere_is_found_there() -> None:
    with pytest.warns(DeprecationWarning, match=r"utility is now uldp_transforms\.ldp\.false_reports of the pack"):
        found = importlib.import_module("uldp_transforms.ldp.utility").honest_bounds
    assert found.__module__ == "uldp_transforms.ldp.false_reports"


def test_a_name_that_has_moved_into_an_absent_package_is_refused_in_one_sentence() -> None:
    find = moved_names("some.module", "absent_package.module")
    with pytest.raises(ImportError) as caught:
        find("name")
    sentence = "some.module is now absent_package.module of the package absent-package, which is not installed"
    assert str(caught.value) == sentence
    with pytest.raises(AttributeError, match=r"^module 'some.module' has no attribute '__path__'$"):
        find("__path__")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'uldp_transforms.absent'$"):
        moved_names("some.module", "uldp_transforms.absent")("name")
    with (
        pytest.raises(AttributeError, match=r"^module 'uldp_transforms.windows' has no attribute 'absent'$"),
        pytest.warns(DeprecationWarning),
    ):
        moved_names("some.module", "uldp_transforms.windows")("absent")


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
