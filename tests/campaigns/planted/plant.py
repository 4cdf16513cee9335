"""A fault that is planted by hand, where it belongs, and the tests that must see it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]

_PRODUCT = (
    *("uldp_transforms/**/*.py", "uldp_transforms/**/*.js", "packages/*/uldp_transforms_*/**/*.py"),
    "packages/*/uldp_transforms_*/**/*.js",
    *("clients/**/*.py", "clients/javascript/src/*.js"),
)
_NATIVE = ("native/*.c", "native/*.h")
_TESTS = ("tests/**/*.py", "labs/tests/**/*.py", "packages/*/tests/**/*.py")
_BESIDE = ("labs/demo/*.py", "labs/live/*.py", "labs/live/*.js", "tests/servers/pubsub/*.py")


@dataclasses.dataclass(frozen=True)
class Plant:
    """Code that is replaced, why that is a fault, and the tests that must see it.

    The code is found by its words, wherever it stands in the product: the file, line breaks, indentation and a comma
    before a closing bracket do not matter, so that moving code changes no planted fault.

    Attributes:
        name: of the fault.
        old: code, without the indentation of its first line; also a part of a line.
        new: what stands there instead, likewise.
        why: what goes wrong.
        tests: names of test files, with ``::`` and a function for one test; with folders where a name stands twice.
        within: function, class, constant or module that has the code, if it stands in more than one: ``_tried``,
            ``trials._tried``, ``trials``. A file that is not Python is one module.
    """

    name: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]
    within: str = ""


class Planted(NamedTuple):
    """A file of the product, relative to its root, with its text as it is and with the fault."""

    path: str
    source: str
    faulty: str


@functools.cache
def planted(plant: Plant) -> Planted:
    """The only place of the product where the code of a fault stands.

    Raises:
        ValueError: if it stands nowhere, or in several places.
    """
    code, places = _pattern(plant.old), []
    longest = max(re.findall(r"\w+", plant.old), key=len, default="")
    for path, source in _sources().items():
        if longest in source:  # much faster than the pattern
            spans = _spans(path, plant.within)
            places += [(path, found.span()) for found in code.finditer(source) if _inside(found.span(), spans)]
    if len(places) != 1:
        paths = ", ".join(path for path, _ in places) or "no file"
        raise ValueError(f"{plant.name}: one place must have its old code, got {len(places)} ({paths})")
    [(path, (begin, end))] = places
    source = _sources()[path]
    line = source[source.rfind("\n", 0, begin) + 1 : begin]
    indentation = line[: len(line) - len(line.lstrip())]
    new = plant.new.replace("\n", "\n" + indentation)
    return Planted(path, source, source[:begin] + new + source[end:])


def path_of_test(name: str) -> str:
    """The test of a name, with its file relative to the root of the project.

    Raises:
        ValueError: if no file has this name, or several have.
    """
    file, separator, function = name.partition("::")
    paths = [path for path in _tests() if f"/{path}".endswith(f"/{file}")]
    if len(paths) != 1:
        raise ValueError(f"one file must be the test {file}, got {', '.join(paths) or 'none'}")
    return paths[0] + separator + function


def _pattern(code: str) -> re.Pattern[str]:
    """Code with any blanks between its words, and within brackets, and a comma or none before they close."""
    parts = []
    for part in re.findall(r"\w+|\s+|[^\w\s]", code.strip()):
        if part.isspace():
            parts.append(r"\s+")
        elif part in ")]}":
            parts.append(r",?\s*" + re.escape(part))
        elif part in "([{":
            parts.append(re.escape(part) + r"\s*")
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts))


@functools.cache
def _sources() -> dict[str, str]:
    paths = [path for pattern in (*_PRODUCT, *_NATIVE, *_BESIDE) for path in sorted(ROOT.glob(pattern))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


@functools.cache
def _tests() -> tuple[str, ...]:
    paths = (path for pattern in _TESTS for path in sorted(ROOT.glob(pattern)))
    return tuple(str(path.relative_to(ROOT)) for path in paths)


def _spans(path: str, within: str) -> list[tuple[int, int]]:
    """The spans of the definitions of a name in a file; of no name, the whole file."""
    everywhere = [(0, len(_sources()[path]))]
    return (
        everywhere if not within else [span for name, span in _definitions(path) if f".{name}".endswith(f".{within}")]
    )


@functools.cache
def _definitions(path: str) -> list[tuple[str, tuple[int, int]]]:
    source = _sources()[path]
    found = [(Path(path).stem, (0, len(source)))]
    if path.endswith(".py"):
        starts = [0, *(match.end() for match in re.finditer("\n", source))]
        for name, first, last in _names_in(ast.parse(source), Path(path).stem):
            found.append((name, (starts[first - 1], starts[last] if last < len(starts) else len(source))))
    return found


def _names_in(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
    """Functions, classes and constants, by their full names, with their first and last lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            yield f"{prefix}.{child.name}", first, child.end_lineno or first
            yield from _names_in(child, f"{prefix}.{child.name}")
        elif isinstance(child, (ast.Assign, ast.AnnAssign)):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield f"{prefix}.{target.id}", child.lineno, child.end_lineno or child.lineno
        elif isinstance(child, ast.stmt):
            yield from _names_in(child, prefix)


def _inside(span: tuple[int, int], spans: list[tuple[int, int]]) -> bool:
    return any(begin <= span[0] and span[1] <= end for begin, end in spans)
