"""What a broker answers that is asked for the identity of a topic."""

from __future__ import annotations

import itertools
from typing import Any
from unittest import mock

from uldp_transforms_follow.topic_identity import TopicIds


def ids(*answers: str | Exception | None) -> Any:
    """Brokers that give these ids, the last one from then on; the mock cluster gives none."""
    return mock.patch.object(TopicIds, "ask", side_effect=itertools.chain(answers, itertools.repeat(answers[-1])))
