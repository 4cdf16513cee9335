"""Tests of the decoder run twice: with numpy alone, and with the compiled part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.compiled_part import COMPILED, NUMPY, decoding_with


@pytest.fixture(scope="module", params=[NUMPY, COMPILED])
def decoding_part(request: pytest.FixtureRequest) -> Iterator[str]:
    """Name of what splits messages."""
    with decoding_with(request.param):
        yield request.param
