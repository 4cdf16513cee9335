"""What tests of sinks share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sinks import postgres


@pytest.fixture(scope="module")
def socket() -> Iterator[Path]:
    """The folder of the socket of a PostgreSQL."""
    with postgres.served() as folder:
        yield folder
