"""Verdicts alone: every report is received once, and rejections are grouped by what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.messages_cases import KNOWN, KRR
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.joined_messages import JoinedMessages
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.verdicts import NOBODY, Verdicts

CATALOG = CollectionCatalog(KNOWN)
NUMBER = CATALOG.numbered.index(KRR)
MESSAGES = [b"aa", b"bbb", b"cc", b"", b"eee"]


def at(*places: int) -> np.ndarray:
    return np.array(places, dtype=np.int64)


@pytest.mark.parametrize("messages", [MESSAGES, JoinedMessages.join(MESSAGES)], ids=["list", "joined"])
def test_rejections_are_grouped_by_size_arrival_period_and_collection(messages: list[bytes]) -> None:
    verdicts = Verdicts(CATALOG, messages, at(7, 7, 7, 7, 9))
    assert verdicts.lengths.tolist() == [2, 3, 2, 0, 3]
    assert verdicts.arrival_range == (7, 9)
    verdicts.refuse(at(0, 2), Reason.MALFORMED, num_reports=0)
    verdicts.refuse(at(1), Reason.PAYLOAD_LENGTH, at(NUMBER), 40)
    verdicts.refuse(at(), Reason.TOO_LARGE)
    verdicts.take_out(at(4), at(NUMBER), 5)
    verdicts.refuse_reports(at(4, 4, 4), Reason.TOO_OLD, at(NUMBER, NUMBER, NUMBER), at(100, 200, 100))
    verdicts.refuse_reports(at(4), Reason.TOO_OLD, at(NUMBER), at(100))
    assert verdicts.rejections == [
        Rejection(Reason.MALFORMED, 0, 2, None, None, 7, num_messages=2),
        Rejection(Reason.PAYLOAD_LENGTH, 40, 3, KRR, None, 7),
        Rejection(Reason.TOO_OLD, 3, 3, KRR, 100, 9),
        Rejection(Reason.TOO_OLD, 1, 3, KRR, 200, 9),
    ]
    received = np.zeros(len(KNOWN) + 1, dtype=np.int64)
    received[NUMBER], received[NOBODY] = 45, 1  # the message that nobody looked at
    assert verdicts.num_received().tolist() == received.tolist()


def test_without_arrival_times_rejections_have_none() -> None:
    verdicts = Verdicts(CATALOG, MESSAGES, None)
    verdicts.refuse_each(at(0, 1, 2, 3), np.array([0, Reason.MALFORMED, Reason.TRAILING_BYTES, Reason.MALFORMED]))
    assert not any(one.num_reports for one in verdicts.rejections)
    found = {(one.reason, one.num_messages, one.message_bytes, one.arrival_time) for one in verdicts.rejections}
    assert found == {
        (Reason.MALFORMED, 1, 3, None),
        (Reason.MALFORMED, 1, 0, None),
        (Reason.TRAILING_BYTES, 1, 2, None),
    }
    assert verdicts.num_received()[NOBODY] == 2, "the messages that nobody looked at"


def test_messages_that_were_all_taken_out_leave_nobody() -> None:
    verdicts = Verdicts(CATALOG, MESSAGES, None)
    verdicts.take_out_all(at(1, 4), at(2, 3))
    assert verdicts.num_received().tolist() == [0, 2, 0, 0, 3, 0, 0]


def test_the_largest_miss_of_a_limit_is_noted() -> None:
    verdicts = Verdicts(CATALOG, MESSAGES, None)
    for misses, largest in (((3, 9, 5), 9), ((2,), 9), ((12, 1), 12)):
        verdicts.note(Reason.TOO_OLD, at(*misses))
        assert verdicts.off_by == {Reason.TOO_OLD: largest}
    verdicts.note(Reason.TOO_EARLY, at(4))
    assert verdicts.off_by == {Reason.TOO_OLD: 12, Reason.TOO_EARLY: 4}
