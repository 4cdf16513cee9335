"""Every sentence with which this package refuses something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uldp_transforms_tables
from packages.tables.tests.support import refused
from tests.support.messages_cases import write_files
from tests.support.refusals.raised import calls_of, check_sentence, refusals_of, sources_of, without_a_row
from tests.support.refusals.tables import with_kinds

ROWS = with_kinds(refused.REFUSED)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, refused.FILES)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("kind", "call", "sentence"), ROWS, ids=[row[2][:60] for row in ROWS])
def test_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    check_sentence(kind, call, sentence)


def test_every_refusal_has_a_row() -> None:
    raised = refusals_of(sources_of(uldp_transforms_tables))
    assert len(set(raised.values())) > 20
    assert without_a_row(raised, calls_of([ROWS])) == []
