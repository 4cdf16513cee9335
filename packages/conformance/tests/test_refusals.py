"""Every sentence with which this package refuses something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import uldp_transforms_conformance
from packages.conformance.tests.support.refused import REFUSED
from tests.support.refusals.raised import calls_of, check_sentence, refusals_of, sources_of, without_a_row


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2][:60] for row in REFUSED])
def test_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    check_sentence(kind, call, sentence)


def test_every_refusal_has_a_row() -> None:
    refusals = refusals_of(sources_of(uldp_transforms_conformance))
    assert len(set(refusals.values())) >= 3
    assert without_a_row(refusals, calls_of([REFUSED])) == []
