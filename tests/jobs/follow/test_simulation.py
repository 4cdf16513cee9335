"""Simulated clients, gateways and jobs with faults, by seed; ``python -m tests.campaigns.simulation`` runs 10,000."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.campaigns.simulation import Simulation, simulate
from uldp_transforms.jobs.follow.state import FollowState
from uldp_transforms.jobs.gateway import spool_file
from uldp_transforms.jobs.gateway.packer import Pack

FAULTS = {
    *("copies under another name", "files that come late", "kills of the gateway before it writes"),
    *("kills of the gateway in a block", "kills of the job", "lost answers", "spoiled files", "spoiled messages"),
}


def test_what_is_sent_is_counted_or_in_a_named_loss() -> None:
    """Each fault happens, and so does each loss."""
    numbers = simulate(range(80))
    losses = {"refused at the door", "never answered", "in spoiled files", "counted again after a lost answer"}
    assert all(numbers[name] > 0 for name in FAULTS | losses), numbers
    assert numbers["counted"] > numbers["sent"] / 2


def only_first(self: Pack, messages: Callable[[Pack], list[bytes]] = Pack.messages) -> list[bytes]:
    return messages(self)[:1]


def nothing_is_the_same(self: FollowState, sha256: str) -> None:
    return None


def without_the_last_block(self: Any, messages: Any, write: Any = spool_file.SpoolFile.append) -> None:
    if self.size < 1000:
        write(self, messages)


def forgets(self: Simulation, part: Any, finished: Any = Simulation._finished) -> None:
    if self.numbers["kills of the gateway in a block"] != 1:
        finished(self, part)


@pytest.mark.parametrize(
    ("place", "name", "faulty"),
    [
        (Pack, "messages", only_first),
        (FollowState, "same_content", nothing_is_the_same),
        (spool_file.SpoolFile, "append", without_the_last_block),
        (Simulation, "_finished", forgets),
    ],
    ids=["messages of a pack", "copies", "blocks", "files after a kill"],
)
def test_a_loss_or_a_repetition_is_found(place: Any, name: str, faulty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, name, faulty)
    with pytest.raises(AssertionError, match=r"^seed \d+: "):
        simulate(range(40))
