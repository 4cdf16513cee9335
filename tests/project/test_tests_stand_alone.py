"""No test file imports another: what several need is in ``tests/support``. Rooms without Beam are tested without it."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

import pytest

from tests.support.project.sources import ROOT, path_of, statements, tree_of

FOLDERS = ("tests", "labs/tests", "packages/*/tests")
"""Where tests are."""


def imported_tests(tree: ast.AST) -> Iterator[str]:
    """Test files that a source imports, at the top or inside, as modules or for names of theirs."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        for name in names:
            *folders, last = name.split(".")
            is_test = any(part.startswith("test_") for part in folders) or (folders and last.startswith("test_"))
            if is_test and folders[0] != "apache_beam":
                yield name


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from tests.ldp.test_borrow import EB", ["tests.ldp.test_borrow.EB"]),
        ("def f():\n    from tests.ldp import test_borrow as b", ["tests.ldp.test_borrow"]),
        ("from .test_borrow import EB", ["test_borrow.EB"]),
        ("from . import test_borrow", [".test_borrow"]),
        ("import tests.ldp.test_borrow", ["tests.ldp.test_borrow"]),
        ("from apache_beam.testing.test_stream import TestStream", []),
        ("from tests.support.ldp import dimensions\nimport tests.conftest", []),
    ],
)
def test_imports_of_tests_are_found(source: str, found: list[str]) -> None:
    assert list(imported_tests(ast.parse(source))) == found


def test_no_test_file_imports_another() -> None:
    paths = [path for folder in FOLDERS for path in sorted(ROOT.glob(f"{folder}/**/*.py"))]
    found = {str(path.relative_to(ROOT)): names for path in paths if (names := list(imported_tests(tree_of(path))))}
    assert not found, found


def test_a_package_of_tests_lies_in_packages() -> None:
    """Else pytest gives it the name of its folder alone, and ``kafka`` hides the client of that name."""
    found = (path for top in ("tests", "labs/tests") for path in ROOT.glob(f"{top}/*/**/__init__.py"))
    lost = [str(path.relative_to(ROOT)) for path in found if not (path.parent.parent / "__init__.py").exists()]
    assert not lost, lost


WITHOUT_BEAM = ("collector", "files", "ldp", "messages", "rows", "spec")
"""Folders of tests, each of a room of the package."""


def loaded(modules: Iterable[str]) -> dict[str, str]:
    """Modules of this repository that are loaded with some, and Beam if it is: each with the one that imports it."""
    found = dict.fromkeys(modules, "")
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        path = path_of(name)
        if path is None or path.is_dir():
            continue
        for module in at_once(tree_of(path)):
            parts = module.split(".")
            for each in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):
                if each not in found and (each == "apache_beam" or path_of(each)):
                    found[each] = name
                    waiting.append(each)
    return found


def at_once(tree: ast.Module) -> Iterator[str]:
    """What a module imports when it is imported, and the homes of names that packages import on first use."""
    for_types = {id(each) for node in tree.body if _is_for_types(node) for each in statements(node.body)}
    for node in statements(tree.body, inside=False):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            homes: dict[str, str] = {}
            if node.module.startswith("uldp_transforms"):
                homes = getattr(importlib.import_module(node.module), "_HOMES", {})
            yield from (f"{node.module}.{homes.get(alias.name, alias.name)}" for alias in node.names)


def _is_for_types(node: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def modules_of(*folders: str) -> list[str]:
    """The modules of folders of tests, and what pytest imports before them."""
    paths = [ROOT / "tests" / "conftest.py"]
    paths += [path for folder in folders for path in sorted((ROOT / "tests" / folder).rglob("*.py"))]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]


@pytest.mark.parametrize("folder", WITHOUT_BEAM)
def test_rooms_without_beam_are_tested_without_it(folder: str) -> None:
    found = loaded(modules_of(folder))
    assert f"uldp_transforms.{folder}" in found
    assert "apache_beam" not in found, chain(found)


def chain(found: dict[str, str]) -> list[Any]:
    """The modules over which Beam is imported."""
    names = ["apache_beam"]
    while found.get(names[-1]):
        names.append(found[names[-1]])
    return names


def test_a_way_to_beam_is_found() -> None:
    found = loaded(["tests.beam.windows.test_windows_of_beam"])
    assert chain(found) == ["apache_beam", "tests.beam.windows.test_windows_of_beam"]
    assert "uldp_transforms.beam.transforms.estimate_distribution" in found, "a name that is imported on first use"
