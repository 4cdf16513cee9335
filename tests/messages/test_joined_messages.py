"""Messages in one buffer are what the same messages in a list are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.messages_cases import KRR, NOON, decoder, long, packed, single
from uldp_transforms.messages.joined_messages import JoinedMessages, cut, join_singles, num_reports

pytestmark = pytest.mark.usefixtures("decoding_part")

LIST = [single(event_time=long(NOON + i), report_id=i.to_bytes(16, "big")) for i in range(5)]


def test_it_is_a_sequence() -> None:
    joined = JoinedMessages.join(LIST)
    assert len(joined) == 5
    assert list(joined) == LIST == joined
    assert [joined[0], joined[4], joined[-1]] == [LIST[0], LIST[4], LIST[4]]
    assert joined[1:3] == LIST[1:3]
    assert joined[::-1] == LIST[::-1]
    with pytest.raises(IndexError):
        joined[5]
    assert joined != LIST[1:]
    assert joined != 5
    assert JoinedMessages.join(joined) is joined
    assert JoinedMessages.join([]) == []


@pytest.mark.parametrize("most", [1, 2, 4, 5, 6])
def test_parts_together_are_the_whole(most: int) -> None:
    joined = JoinedMessages.join(LIST)
    parts = list(joined.parts(most))
    assert [len(part) for part in parts] == [min(most, 5 - first) for first in range(0, 5, most)]
    again = JoinedMessages.concatenate(parts)
    assert (again.data, again.ends) == (joined.data, joined.ends)


def test_numbers_of_reports_are_those_of_a_list() -> None:
    joined = JoinedMessages.join(LIST)
    assert num_reports(joined) == num_reports(LIST) == 5
    assert num_reports([*LIST, packed(KRR, [(0, NOON, bytes(16), b"\0")] * 3)]) == 8


def test_only_single_reports_are_joined() -> None:
    batch = packed(KRR, [(0, NOON, bytes(16), b"\0")] * 3)
    joined = JoinedMessages.join(LIST)
    whole = join_singles([joined, joined])
    assert isinstance(whole, JoinedMessages)
    assert whole == [*LIST, *LIST]
    for part in ([batch], LIST, JoinedMessages.join([batch]), JoinedMessages.join([LIST[0], b""])):
        found = join_singles([joined, part])
        assert type(found) is list
        assert found == [*LIST, *part]


@pytest.mark.parametrize("size", [1, 34, 35, 70, 71, 1000])
def test_groups_of_a_size_are_those_of_a_list(size: int) -> None:
    joined = JoinedMessages.join(LIST)
    groups = list(cut(joined, size))
    assert all(isinstance(group, JoinedMessages) for group in groups)
    assert groups == list(cut(LIST, size))
    assert [message for group in groups for message in group] == LIST
    assert list(cut([], size)) == list(cut(JoinedMessages.join([]), size)) == []


def test_every_kind_of_message_is_decoded_as_in_a_list() -> None:
    batch = packed(KRR, [(0, NOON, bytes(16), b"\0")] * 3)
    messages = [b"", *LIST, b"", batch, LIST[0][:-1], b"\xc3\x01", batch[:-1], b"\x02", single(cohort=long(-1)), b""]
    found = [decoder([KRR]).decode(form) for form in (messages, JoinedMessages.join(messages))]
    assert found[0].batches == found[1].batches
    assert found[0].rejections == found[1].rejections
    assert found[0].num_received == found[1].num_received
    assert np.array_equal(found[0].received, found[1].received)
    assert sum(map(len, found[1].batches)) == 8
