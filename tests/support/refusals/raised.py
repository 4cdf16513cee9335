"""Which ``raise`` statements of some sources the tables of refusals come through."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

import pytest

from tests.support.project.sources import tree_of


def calls_of(tables: Iterable[Iterable[Any]]) -> Iterator[Callable[[], Any]]:
    """The call of each row: its part that is callable and no class of exceptions."""
    for table in tables:
        for row in table:
            yield next(
                part for part in row if callable(part) and not (isinstance(part, type) and issubclass(part, Exception))
            )


def check_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str, **names: str) -> None:
    """A call raises exactly this class with this sentence, in which texts have these names.

    A sentence that ends with a space is only the beginning of what is said; one that begins with dots is only its end.
    """
    error = raised(call).error
    said = str(error)
    for name, text in names.items():
        said = said.replace(text, name)
    fits = said.startswith(sentence) if sentence.endswith(" ") else said == sentence
    assert fits or (sentence.startswith("...") and said.endswith(sentence.removeprefix("..."))), said
    assert type(error) is kind, repr(error)


def sources_of(package: ModuleType) -> dict[str, Path]:
    """The Python files of a package, by their paths in it."""
    folder = Path(str(package.__file__)).parent
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.py"))}


def refusals_of(sources: Mapping[str, Path]) -> dict[tuple[str, int], str]:
    """Name and line of each ``raise`` statement but interrupts, by file and line of its code."""
    return {
        (str(source), line): f"{name}:{node.lineno}"
        for name, source in sources.items()
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.Raise) and node.exc is not None and ast.unparse(node.exc) != "KeyboardInterrupt"
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


class Raised(NamedTuple):
    """How a call ends: its error, and file and line of each call that led to it."""

    error: Exception
    places: tuple[tuple[str, int], ...]


@functools.cache
def raised(call: Callable[[], Any]) -> Raised:
    """The error of a call, which is made once: in the folder of the test that asks first."""
    with pytest.raises(Exception) as caught:  # which one it is: the test of the sentences
        call()
    return Raised(caught.value.with_traceback(None), tuple(_places(caught.tb)))


def without_a_row(refusals: Mapping[tuple[str, int], str], calls: Iterable[Callable[[], Any]]) -> list[str]:
    """The refusals that no call comes through; each call must raise."""
    missing = set(refusals.values())
    for call in calls:
        missing -= {refusals[place] for place in raised(call).places if place in refusals}
    return sorted(missing)


def _places(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    """File and line of each call that led to an error."""
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
