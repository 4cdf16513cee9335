"""Clients, gateways and jobs with faults, simulated by seed (``campaigns/simulation.py`` runs 10,000) and for real."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packages.gateway.tests.campaigns import follow_soak
from packages.gateway.tests.campaigns.simulated.spool_way import SpoolWay
from packages.gateway.tests.campaigns.simulation import simulate
from tests.support import set_clock
from uldp_transforms.messages.group_keys import is_total
from uldp_transforms_follow import topic_reading
from uldp_transforms_follow.state import FollowState
from uldp_transforms_gateway import spool_file
from uldp_transforms_gateway.navigations.navigation_log import NavigationLog
from uldp_transforms_gateway.packer import Pack

FAULTS = {
    *("copies under another name", "files that come late", "kills of the gateway before it writes"),
    *("kills of the gateway in a block", "kills of the job", "lost answers", "spoiled files", "spoiled messages"),
    *("brokers that are away", "deletions", "kills of the gateway between messages", "messages of others"),
    *("messages that a producer repeats", "partitions that are added", "runs that brokers ended"),
    *("disks that are full", "kills of the gateway in a line", "lines that a kill or a full disk tore"),
}


def test_what_is_sent_is_counted_or_in_a_named_loss() -> None:
    """Each fault happens, and so does each loss."""
    numbers = simulate(range(60))
    losses = {
        "refused at the door",
        "never answered",
        "in spoiled files",
        "counted again",
        "deleted before they were read",
    }
    losses |= {"records that were deleted before they were read"}
    assert all(numbers[name] > 0 for name in FAULTS | losses), numbers
    assert numbers["counted"] > numbers["sent"] / 2


def only_first(self: Pack, messages: Callable[[Pack], list[bytes]] = Pack.messages) -> list[bytes]:
    return messages(self)[:1]


def nothing_is_the_same(self: FollowState, sha256: str) -> None:
    return None


def without_the_last_block(self: Any, messages: Any, write: Any = spool_file.SpoolFile.append) -> None:
    if self.size < 1000:
        write(self, messages)


def forgets(self: SpoolWay, part: Any, finished: Any = SpoolWay._finished) -> None:
    if self._faults.numbers["kills of the gateway in a block"] != 1:
        finished(self, part)


def offsets_stand_still(self: FollowState, offsets: Any, advance: Any = FollowState.advance) -> None:
    if not self.offsets():
        advance(self, offsets)


def nothing_is_missed(*args: Any, find: Any = topic_reading.start_of) -> Any:
    return dataclasses.replace(find(*args), lost={})


def groups_are_left_out(self: FollowState, counts: Any, add: Any = FollowState.add) -> None:
    some = {key: each for key, each in counts.items() if is_total(key[0]) or key[1] % 120_000}
    add(self, some)


def faults_are_silent(self: NavigationLog, parts: Any, append: Any = NavigationLog._append) -> None:
    append(self, parts)


@pytest.mark.parametrize(
    ("place", "name", "faulty"),
    [
        (Pack, "messages", only_first),
        (FollowState, "same_content", nothing_is_the_same),
        (spool_file.SpoolFile, "append", without_the_last_block),
        (SpoolWay, "_finished", forgets),
        (FollowState, "advance", offsets_stand_still),
        (topic_reading, "start_of", nothing_is_missed),
        (FollowState, "add", groups_are_left_out),
        (NavigationLog, "_append", faults_are_silent),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_loss_or_a_repetition_is_found(place: Any, name: str, faulty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, name, faulty)
    with pytest.raises(AssertionError, match=r"^seed \d+: "):
        simulate(range(40))


@pytest.mark.slow
@pytest.mark.skipif(not set_clock.LIBRARY.is_file(), reason=set_clock.NEEDED)
def test_clocks_that_are_set_and_pauses_cost_no_report(tmp_path: Path) -> None:
    print(follow_soak.soak(tmp_path, minutes=4, every=20, rate=10, clocks=True))
