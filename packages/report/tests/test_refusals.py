"""Every sentence with which this package refuses something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uldp_transforms_report
from packages.report.tests.support import compared_pages
from packages.report.tests.support.refused import REFUSED
from tests.support.refusals.raised import calls_of, check_sentence, refusals_of, sources_of, without_a_row


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2][:60] for row in REFUSED])
def test_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    check_sentence(kind, call, sentence)


def test_every_refusal_has_a_row() -> None:
    refusals = refusals_of(sources_of(uldp_transforms_report))
    assert len(set(refusals.values())) > 5
    assert without_a_row(refusals, calls_of([REFUSED, compared_pages.REFUSED])) == []
