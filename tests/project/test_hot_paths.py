"""No hot path does more than when its figures were stored; ``tests.campaigns.hot_paths`` counts."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import pytest

from tests.campaigns import hot_paths
from tests.campaigns.hot_paths import FIGURES, LIMIT, Cost, cost_of, grown
from tests.rigs.cache import ROOT
from uldp_transforms.messages.decoder import Decoded

COUNTED_BY = json.loads(FIGURES.read_text("utf-8"))["python"]


@pytest.mark.slow
@pytest.mark.skipif(hot_paths.version() != COUNTED_BY, reason=f"the figures are those of Python {COUNTED_BY}")
def test_no_path_has_become_dearer() -> None:
    program = [sys.executable, "-m", "tests.campaigns.hot_paths"]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_each_path_has_its_figures() -> None:
    assert hot_paths.stored().keys() == hot_paths.PATHS.keys()
    assert all(cost.calls > 0 and cost.bytes > 0 for cost in hot_paths.stored().values())


def test_growth_above_the_limit_is_told_and_below_it_is_not() -> None:
    was = Cost(2_000, 1_000, 50_000)
    most = Cost(*(int(figure * (1 + LIMIT)) for figure in was))
    assert list(grown({"a": most}, {"a": was})) == []
    assert list(grown({"a": Cost(500, 500, 20_000)}, {"a": was})) == []
    assert list(grown({"a": Cost(2_000, most.calls + 1, 2 * was.bytes)}, {"a": was})) == [
        "a: 1,021 calls, 1.02 times the stored 1,000",
        "a: 100,000 bytes, 2.00 times the stored 50,000",
    ]
    assert list(grown({"a": was}, {})) == ["a: measured or stored only"]


def add_up(messages: Sequence[bytes]) -> int:
    total = 0
    for message in messages:
        total += message[0]
    return total


PLANTED = {
    "instructions": add_up,
    "calls": lambda messages: list(map(str.upper, (message.hex() for message in messages))),
    "bytes": b"".join,
}


def path_of_messages() -> Callable[[], Any]:
    """A hot path with 200 messages instead of 2,000."""
    with mock.patch.object(hot_paths, "_REPORTS", 200):
        return hot_paths.PATHS["decode 2,000 single messages"]()


@pytest.fixture(scope="module")
def usual() -> Cost:
    gc.freeze()  # each measurement looks for garbage; what other tests have kept is none
    return cost_of(path_of_messages())


@pytest.mark.parametrize("unit", PLANTED)
def test_a_loop_over_reports_and_a_copy_of_them_are_seen(unit: str, usual: Cost) -> None:
    """Planted into a real path: the decoder of single messages."""
    decode = hot_paths.MessageDecoder.decode

    def dearer(self: hot_paths.MessageDecoder, messages: Sequence[bytes]) -> Decoded:
        kept = PLANTED[unit](messages)
        assert kept
        return decode(self, messages)

    with mock.patch.object(hot_paths.MessageDecoder, "decode", dearer):
        found = cost_of(path_of_messages())
    assert any(f" {unit}, " in sentence for sentence in grown({"a": found}, {"a": usual}))
