"""No test file imports another: what several of them need is in ``tests/support``. Read from the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests", "packages/*/tests")
"""Where tests are."""

COMPANIONS = {
    "tests/beam/accounts/test_errors_beam.py",
    "tests/jobs/gateway/test_gateway_limits.py",
    "tests/jobs/gateway/test_gateway_serving.py",
    "tests/jobs/gateway/test_once_per_token.py",
    "tests/jobs/gateway/test_used_tokens.py",
    "tests/ldp/test_errors_ldp.py",
}
"""Files that import tests of the gateway, of surveys and of the demonstrations, which become packages of their own."""


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
    found = {
        str(path.relative_to(ROOT)): names
        for path in paths
        if (names := list(imported_tests(ast.parse(path.read_bytes()))))
    }
    assert found.keys() <= COMPANIONS, found
