"""Names that tests, labs and programs import from this repository exist: read from the sources, nothing is run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project.sources import PLACES, ROOT, path_of, statements, tree_of

READ = ("labs", "packages", "pipelines", "requirements", "tests")


def bound(node: ast.AST) -> Iterator[str]:
    """Names that a statement binds, without those of its blocks."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    targets = [*getattr(node, "targets", ()), getattr(node, "target", None)]
    targets += [item.optional_vars for item in getattr(node, "items", ())]
    for target in filter(None, targets):
        yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


@functools.cache
def names_of(path: Path) -> frozenset[str]:
    """Names of a module, with those of ``__all__``: some are there only once they are asked for."""
    if path.is_dir():
        return frozenset()
    tree = tree_of(path)
    listed = {
        item.value
        for node in tree.body
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]
        for item in ast.walk(node.value)
        if isinstance(item, ast.Constant)
    }
    return (
        frozenset(name for node in statements(tree.body, inside=False) for name in bound(node))
        | listed
        | {"__doc__", "__file__", "__name__", "__path__"}
    )


def missing(tree: ast.Module, root: Path | None = None) -> Iterator[str]:
    """What a module imports from this repository and does not exist."""
    for node in statements(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in PLACES and path_of(alias.name, root) is None:
                    yield alias.name
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in PLACES:
            path = path_of(node.module, root)
            if path is None:
                yield node.module
                continue
            for alias in node.names:
                if alias.name not in names_of(path) and path_of(f"{node.module}.{alias.name}", root) is None:
                    yield f"{node.module}.{alias.name}"


@pytest.mark.parametrize("folder", READ)
def test_what_is_imported_exists(folder: str) -> None:
    sources = sorted((ROOT / folder).rglob("*.py"))
    assert sources
    found = {str(path.relative_to(ROOT)): list(missing(tree_of(path))) for path in sources}
    assert {path: names for path, names in found.items() if names} == {}


def test_what_does_not_exist_is_found(tmp_path: Path) -> None:
    (tmp_path / "labs").mkdir()
    module = "if True:\n    here = 1\nwith open() as file, open() as (other_file, a):\n    pass\n"
    (tmp_path / "labs" / "some.py").write_text(module + "def function():\n    hidden = 2\n")
    source = "import labs.none, json\nfrom labs import some, other\n"
    source += "def f():\n    from labs.some import here, other_file, function, hidden\n    from labs.gone import x\n"
    assert sorted(missing(ast.parse(source), tmp_path)) == ["labs.gone", "labs.none", "labs.other", "labs.some.hidden"]
