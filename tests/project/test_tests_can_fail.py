"""No test hides its own failure, or asserts what is always true; ruff and pytest refuse what is not refused here.

Ruff: comparisons without an assert, of a thing with itself, tuples and constants that are asserted, tests that another
one of the same name replaces. Pytest: parameters of which there are none, tests that return a value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from requirements.companions import ROOT, companions
from tests.support.project.sources import tree_of

TESTS = Path(__file__).parents[1]
HIDING = {"AssertionError", "BaseException", "Exception"}
LAZY = {"filter", "iter", "map", "reversed", "zip"}


def names_in(node: ast.expr | None) -> set[str]:
    """The names of exceptions, of one or of a tuple; without any, all are meant."""
    if node is None:
        return {"BaseException"}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def is_named(function: ast.expr, name: str) -> bool:
    return name in (getattr(function, "attr", None), getattr(function, "id", None))


def is_lazy(node: ast.expr) -> bool:
    """Whether it is a generator or function, which is true, and equal to nothing else, whatever is in it."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LAZY
    return called or isinstance(node, ast.GeneratorExp | ast.Lambda)


def faults_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines at which a test cannot fail, with the reason."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            sides = [node.test]
            if isinstance(node.test, ast.Compare):
                sides += [node.test.left, *node.test.comparators]
            if any(map(is_lazy, sides)):
                yield node.lineno, "a generator or function is asserted, not what is in it"
        elif isinstance(node, ast.Call) and is_named(node.func, "suppress"):
            if any(HIDING & names_in(argument) for argument in node.args):
                yield node.lineno, "failed assertions are suppressed"
        elif isinstance(node, ast.ExceptHandler):
            goes_on = all(isinstance(line, ast.Pass | ast.Continue | ast.Break) for line in node.body)
            if goes_on and HIDING & names_in(node.type):
                yield node.lineno, "failed assertions are swallowed"


@pytest.mark.parametrize(
    "text",
    [
        "assert (x for x in y)",
        "assert map(f, x) == [1]",
        "assert [1] == (x for x in y)",
        "assert lambda: x",
        "with suppress(AssertionError): f()",
        "with contextlib.suppress(OSError, Exception): f()",
        "try:\n    f()\nexcept (OSError, AssertionError):\n    pass",
        "for x in y:\n    try:\n        f()\n    except:\n        continue",
    ],
)
def test_what_cannot_fail_is_found(text: str) -> None:
    assert len(list(faults_of(ast.parse(text)))) == 1


def test_what_can_fail_is_not_refused() -> None:
    text = "assert list(map(f, x)) == [1] and all(x for x in y)\nwith suppress(OSError): f()\n"
    text += "try:\n    f()\nexcept Exception as error:\n    raise AssertionError from error\nexcept KeyError:\n    pass"
    assert list(faults_of(ast.parse(text))) == []


def test_all_tests_can_fail() -> None:
    folders = (TESTS, ROOT / "labs" / "tests", *(each.tests for each in companions()))
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py")) if "campaigns" not in path.parts]
    assert len(paths) > 400
    found = [f"{path.relative_to(ROOT)}:{line}: {why}" for path in paths for line, why in faults_of(tree_of(path))]
    assert found == []
