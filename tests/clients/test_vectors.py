"""Golden vectors for clients in any language, and what the reference client makes of them."""

from __future__ import annotations

import pytest

from tests.support import vectors
from tests.support.cases import golden


@pytest.mark.parametrize("name", vectors.FILES)
def test_vectors_are_those_of_the_reference(name: str) -> None:
    proposed = list(vectors.FILES[name]())
    assert proposed == golden(name, lambda: proposed, vectors.FOLDER)
