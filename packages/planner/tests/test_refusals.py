"""Every sentence with which this package refuses something."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packages.planner.tests.support import refused_programs, refused_theory
from tests.support.messages_cases import write_files
from tests.support.refusals.raised import calls_of, check_sentence, refusals_of, sources_of, without_a_row
from tests.support.refusals.stated import refusals
from tests.support.refusals.tables import with_kinds
from uldp_transforms_planner import evaluate, plan, planning, utility

THEORY, PROGRAMS = with_kinds(refused_theory.REFUSED), with_kinds(refused_programs.REFUSED)
ROWS = [*THEORY, *PROGRAMS]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, refused_programs.FILES)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("kind", "call", "sentence"), ROWS, ids=[row[2][:60] for row in ROWS])
@pytest.mark.usefixtures("folder")
def test_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    check_sentence(kind, call, sentence)


@pytest.mark.parametrize("package", [planning, utility], ids=["planning", "utility"])
def test_every_sentence_of_the_theory_has_a_row(package: Any) -> None:
    """Also where a function of another module raises it."""
    sentences = [sentence + "..." * sentence.endswith(" ") for _, _, sentence in THEORY]
    stated = [found for source in sources_of(package).values() for found in refusals(source)]
    assert len(stated) > 20
    assert [place for place, text in stated if not any(re.fullmatch(text, said) for said in sentences)] == []


@pytest.mark.usefixtures("folder")
def test_every_refusal_of_the_programs_has_a_row() -> None:
    raised = refusals_of(sources_of(plan) | sources_of(evaluate))
    assert len(set(raised.values())) > 20
    assert without_a_row(raised, calls_of([PROGRAMS])) == []
