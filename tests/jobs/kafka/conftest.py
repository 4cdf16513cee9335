"""A real broker that lets in who knows its secret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rigs.flink.secured import secured_broker
from tests.support.kafka.topics import SECRET


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Settings of clients that it lets in."""
    with secured_broker(tmp_path_factory.mktemp("broker"), SECRET) as found:
        yield found.for_librdkafka(SECRET)
