"""Every sentence with which the Pub/Sub stand-in refuses a request; ``test_pubsub_server.py`` sends some over gRPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.refusals.jobs.pubsub_server import REFUSED


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2] for row in REFUSED])
def test_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
