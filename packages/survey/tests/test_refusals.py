"""Every sentence with which this package refuses something."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import uldp_transforms_survey
from packages.survey.tests.support import refused_arrays, refused_tables

FOLDER = Path(uldp_transforms_survey.__file__).parent
SENTENCES = [*refused_arrays.REFUSED, *refused_tables.REFUSED]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("kind", "call", "sentence"), SENTENCES, ids=[row[2][:60] for row in SENTENCES])
def test_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
    assert type(caught.value) is kind


def places(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    """File and line of each call that led to an error."""
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


def test_every_refusal_has_a_row() -> None:
    """The lines of all ``raise`` statements, less those that the tables have come through."""
    refusals = {
        (str(source), line): f"{source.relative_to(FOLDER)}:{node.lineno}"
        for source in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and node.exc is not None
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    missing = set(refusals.values())
    assert len(missing) > 30
    for kind, call, _ in SENTENCES:
        with pytest.raises(kind) as caught:
            call()
        missing -= {refusals[place] for place in places(caught.tb) if place in refusals}
    assert not sorted(missing)
