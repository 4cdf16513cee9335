"""Messages that come in groups, as sources make them that read many at once: the same counts, the same ledger."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.support import replay
from tests.support.messages_cases import KRR, NOON, single
from tests.support.refusals.jobs.group_files import FILES, HOUR, MESSAGES, STREAM
from uldp_transforms import EstimateReports
from uldp_transforms.beam.transforms import gather_messages
from uldp_transforms.beam.transforms.gather_messages import GATHERED, GatheredCoder, Grouping
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.joined_messages import JoinedMessages, RepeatedMessages
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.windows import Windows

TIMES = NOON + np.array([0, 1000, 2 * HOUR, HOUR // 2, -HOUR])
"""Of arrival; the last two are before the one in front of them."""


def run(
    form: Callable[[Any], Any] | None, *, ends: bool, options: PipelineOptions
) -> tuple[Counter[str], Counter[str]]:
    """The ledger of the same messages, in groups of two of this form, or one by one; and the messages that could not be
    read."""
    spec = replay.spec([KRR], Windows(size=HOUR), bounded=ends, allowed_lateness=HOUR)
    with replay.collector() as (collect, found):
        with beam.Pipeline(options=options) as pipeline:
            groups = [((form or list)(MESSAGES[at : at + 2]), TIMES[at : at + 2]) for at in range(0, len(MESSAGES), 2)]
            if ends:
                source = pipeline | beam.Create([pickle.dumps(group) for group in groups], reshuffle=False)
            else:
                source = pipeline | replay.stream([replay.arrive(NOON, [pickle.dumps(group)]) for group in groups])
            messages = source | "Load" >> beam.Map(pickle.loads).with_output_types(GATHERED)
            if form is None:
                messages = messages | "One" >> beam.FlatMap(_one_by_one).with_output_types(bytes)
            out = messages | EstimateReports(spec)
            _ = out.ledger | "Ledger" >> collect
        rows = [row for row, _, _ in found]
        assert not replay.unbalanced(rows)
        return sum(replay.sum_ledger(rows).values(), Counter()), replay.sum_unread(rows)[0]


def _one_by_one(group: Any) -> list[Any]:
    return [beam.window.TimestampedValue(message, replay.timestamp(int(time))) for message, time in zip(*group)]


@pytest.mark.parametrize(("ends", "options"), [(True, FILES), (False, STREAM)], ids=["files", "stream"])
def test_groups_are_counted_as_their_messages_are(ends: bool, options: PipelineOptions) -> None:
    grouped, joined, alone = (run(form, ends=ends, options=options) for form in (list, JoinedMessages.join, None))
    assert grouped == joined == alone
    reports, unread = grouped
    assert reports["received"] == len(MESSAGES) - 1
    assert unread == Counter(malformed=1)
    assert bool(reports["too_old"]) is not ends


def test_groups_cross_between_workers() -> None:
    """An engine may encode them: a list is then in one buffer."""
    coder = beam.coders.registry.get_coder(GATHERED)
    for times in (TIMES, TIMES.tolist(), []):
        for group in ((MESSAGES, times), (JoinedMessages.join(MESSAGES), times)):
            messages, again = coder.decode(coder.encode(group))
            assert messages == MESSAGES
            assert np.asarray(again).tolist() == list(times)
    assert coder.decode(coder.encode(([], [])))[0] == []
    assert coder.is_deterministic()


def test_a_group_that_was_cut_off_is_refused() -> None:
    """At every byte, in a sentence."""
    coder = GatheredCoder()
    for messages in (MESSAGES, RepeatedMessages(MESSAGES, 3)):
        for times in (TIMES, []):
            encoded = coder.encode((messages, times))
            assert len(coder.decode(encoded)[0]) == len(MESSAGES)
            for length in range(len(encoded)):
                with pytest.raises(ValueError, match="GatheredCoder reads whole groups of messages, got"):
                    coder.decode(encoded[:length])


def test_the_size_of_a_group_is_estimated_without_encoding_it() -> None:
    coder = GatheredCoder()
    exact = len(coder.encode(([single()] * 1000, [])))
    assert coder.estimate_size((JoinedMessages.join([single()] * 1000), [])) == exact - 6
    assert coder.estimate_size(([single()] * 1000, [])) == exact - 6
    assert coder.estimate_size(([], [])) == 0


def test_groups_are_formed_across_blocks_and_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both kinds: single reports in one buffer, packed ones in a list."""
    monkeypatch.setattr(gather_messages, "_FLUSH_MESSAGES", 4)
    grouping, lost = Grouping(), Rejection(Reason.CORRUPT_BLOCK, 1, 0)
    blocks = [JoinedMessages.join([single()] * number) for number in (3, 0, 6)]
    items = [blocks[0], lost, [b"a", b"b"], blocks[1], blocks[2], [b"c"]]
    found = [*grouping.add(iter(items)), *grouping.rest()]
    assert found[0] is lost
    groups = [messages for messages, arrived in found[1:] if arrived == []]
    assert [(type(group), len(group)) for group in groups] == [
        *((JoinedMessages, 3), (list, 1)),  # full with the first of the list
        *((JoinedMessages, 4), (list, 1)),  # the second, and the beginning of the long block
        *((JoinedMessages, 2), (list, 1)),
    ]
    assert grouping.rest() == []


def test_a_long_message_fills_a_group() -> None:
    grouping = Grouping()
    assert len(list(grouping.add(iter([[bytes(1 << 20)] * 5])))) == 2
    assert len(grouping.rest()) == 1
