"""Parts of a job that follows a source: its state, where it begins to read, what it says, and how it ends."""

from __future__ import annotations

import contextlib
import errno
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from packages.follow.tests.support.spools import Followed
from tests.support.commands import last_of_each
from tests.support.messages_cases import KRR, NOON, URR, decoder, single
from uldp_transforms import JobSpec
from uldp_transforms.collector.owners import Owners
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.kafka.offsets import BrokersAwayError, Part
from uldp_transforms.jobs.kafka.reader import KafkaReadError
from uldp_transforms.jobs.kafka.records import Polled
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.ldp import CohortCounts, Collection, SpecError
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.windows import rfc3339
from uldp_transforms_follow import follow_job as job_module
from uldp_transforms_follow import follower as follower_module
from uldp_transforms_follow import row_outbox, topic_identity, topic_reading
from uldp_transforms_follow.follow_job import FollowJob, follow_job, run_follow
from uldp_transforms_follow.follow_reading import MessageCounter, Reading
from uldp_transforms_follow.follower import Follower
from uldp_transforms_follow.notices import Notices
from uldp_transforms_follow.row_outbox import put_rows, write_outbox
from uldp_transforms_follow.spool_reading import check_spool, list_spool
from uldp_transforms_follow.state import NAME, CountedFile, FollowState, PendingWindow, run_of
from uldp_transforms_follow.topic_reading import Start, TopicSource, start_of

A, B = KRR.fingerprint, URR.fingerprint
AWAY = BrokersAwayError("of this test")

# ---------------------------------------------------------------------- the state


@pytest.fixture
def state(tmp_path: Path) -> Iterator[FollowState]:
    found = FollowState(str(tmp_path), "run", "windows")
    yield found
    found.close()


def counts(number: int) -> CohortCounts:
    """Of so many reports of one value."""
    [batch] = decoder().decode([single(KRR)] * number).batches
    found = KRR.count(batch)
    assert found.total == number
    return found


def total(found: CohortCounts | None) -> int | None:
    return None if found is None else found.total


def test_counts_of_a_window_are_those_of_its_base_periods(state: FollowState) -> None:
    with state:
        state.add({(A, 0): counts(1), (A, 10): counts(2), (B, 10): counts(4)})
        state.add({(A, 10): counts(8), (A, 20): counts(16)})
    for start, stop, expected in ((0, 10, 1), (0, 11, 11), (10, 20, 10), (10, 21, 26), (1, 10, None), (21, 99, None)):
        assert total(state.counts_between(A, start, stop)) == expected
    assert total(state.counts_between(B, 0, 99)) == 4


def test_groups_are_those_of_one_collection(state: FollowState) -> None:
    first, second = A + b"\0\1", A + b"\xff\xff\xff\xff"
    with state:
        state.add({(A, 0): counts(1), (first, 0): counts(2), (second, 10): counts(4), (B + b"\0\1", 0): counts(8)})
        state.add({(first, 10): counts(16), (A[:-1] + bytes([A[-1] + 1]), 0): counts(32)})
    assert {key: found.total for key, found in state.groups_between(A, 0, 20).items()} == {first: 18, second: 4}
    assert list(state.groups_between(A, 0, 20)) == [first, second]
    assert {key: found.total for key, found in state.groups_between(A, 0, 10).items()} == {first: 2}
    assert {key: found.total for key, found in state.groups_between(A, 1, 11).items()} == {first: 16, second: 4}


def test_windows_are_due_when_all_is_counted_and_late_ones_after_a_while(state: FollowState) -> None:
    """New reports do not put off those that wait; a clock that was set back puts off nothing."""
    with state:
        state.touch([(A, 0, 10), (B, 0, 10), (A, 10, 20)], now=1000)
    assert state.pending(9, 1000, 50) == []
    assert state.pending(10, 1000, 50) == [PendingWindow(*each) for each in sorted([(A, 0, 10, 0), (B, 0, 10, 0)])]
    assert state.pending(20, 1000, 50)[-1] == PendingWindow(A, 10, 20, 0)
    window = PendingWindow(A, 0, 10, 0)
    with state:
        for each in state.pending(20, 1000, 50):
            state.estimated(each)
        assert state.pending(99, 5000, 0) == []
        state.touch([(A, 0, 10)], now=2000)
        state.touch([(A, 0, 10)], now=2040)
    late = [window._replace(panes=1)]
    for now, due in ((2049, []), (2050, late), (1999, late), (2000, [])):
        assert state.pending(99, now, 50) == due
    with state:
        state.estimated(late[0])
        state.touch([(A, 0, 10)], now=3000)
    assert state.pending(99, 4000, 50) == [window._replace(panes=2)]


def test_open_windows_are_due_a_while_after_new_reports_and_at_their_end(state: FollowState) -> None:
    """At the end even without new reports, and whatever the next start is asked for; afterwards late reports are."""
    with state:
        state.touch([(A, 0, 10), (B, 20, 30)], now=1000)
    window = PendingWindow(A, 0, 10, 0, is_open=True)
    for now, due in ((1049, []), (1050, [window, PendingWindow(B, 20, 30, 0, is_open=True)]), (1000, [])):
        assert state.pending(9, now, 50, 50) == due
        assert state.pending(9, now, 50) == []
    with state:
        state.estimated(window)
        assert state.pending(9, 1049, 50, 50) == []
        state.touch([(A, 0, 10)], now=2000)
    window = PendingWindow(A, 0, 10, 1, all_early=True, is_open=True)
    assert window in state.pending(9, 2050, 50, 50)
    with state:
        state.estimated(window)
    for early_every in (None, 50):
        [last, *_] = state.pending(10, 2050, 50, early_every)
        assert last == PendingWindow(A, 0, 10, 2, all_early=True)
        assert (window.timing, last.timing) == ("EARLY", "ON_TIME")
    with state:
        state.estimated(last)
        assert state.pending(10, 2050, 50) == []
        state.touch([(A, 0, 10)], now=3000)
    [late] = state.pending(10, 3050, 50)
    assert (late, late.timing) == (PendingWindow(A, 0, 10, 3), "LATE")


def test_files_offsets_and_the_topic_are_remembered(state: FollowState) -> None:
    assert (state.counted_of("abcd"), state.simulated(), state.offsets(), state.topic_id()) == (set(), False, {}, None)
    with state:
        for number, name in enumerate("cab"):
            state.list_file(CountedFile(name, "hash" if number else "other", False))
    assert (state.counted_of("abcd"), state.same_content("hash"), state.same_content("none")) == ({*"abc"}, "a", None)
    assert not state.simulated()
    with pytest.raises(sqlite3.IntegrityError), state:
        state.list_file(CountedFile("d", "d", True))
        state.list_file(CountedFile("a", "e", True))
    assert (state.counted_of("abcd"), state.simulated()) == ({*"abc"}, False), "all of a transaction or nothing"
    with state:
        state.list_file(CountedFile("d", "d", True))
        state.advance({0: 5, 1: 7}, {0: 100})
        state.advance({0: 6}, {0: 90})
    assert state.simulated()
    assert (state.offsets(), state.last_records()) == ({0: 6, 1: 7}, {0: (5, 90)})
    state.set_topic_id("id")
    assert state.topic_id() == "id"
    with pytest.raises(sqlite3.IntegrityError):
        state.set_topic_id("other")
    assert state.topic_id() == "id"


def test_numbers_of_rows_are_never_given_again(tmp_path: Path) -> None:
    """But those of a transaction that was rolled back; a run continues in its directory."""
    assert run_of(str(tmp_path), "new") == "new"
    sqlite3.connect(tmp_path / NAME).close()
    assert run_of(str(tmp_path), "new") == "new", "a database that was only created"
    with contextlib.closing(FollowState(str(tmp_path), "first", "windows")) as state:
        with state:
            assert [state.next_number() for _ in range(2)] == [1, 2]
        with contextlib.suppress(ZeroDivisionError), state:
            assert state.next_number() == 3
            _ = 1 / 0
        assert not state._database.in_transaction
    with contextlib.closing(FollowState(str(tmp_path), "second", "windows")) as state:
        assert (state.run, run_of(str(tmp_path), "new")) == ("first", "first")
        with state:
            assert state.next_number() == 3
        assert state._database.execute("PRAGMA synchronous").fetchone() == (3,), "EXTRA: a loss of power undoes nothing"
        assert state._database.execute("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.parametrize(
    ("fault", "number"), [("database or disk is full", errno.ENOSPC), ("disk I/O error", errno.EIO)]
)
def test_faults_of_the_disk_are_those_of_the_system(fault: str, number: int, tmp_path: Path) -> None:
    with mock.patch.object(sqlite3, "connect", side_effect=sqlite3.OperationalError(fault)):
        with pytest.raises(OSError, match=fault) as caught:
            FollowState(str(tmp_path), "run", "windows")
        assert (caught.value.errno, caught.value.filename) == (number, str(tmp_path / NAME))
    (tmp_path / NAME).write_bytes(b"no database" * 999)
    with pytest.raises(
        SpecError, match=r"^--output must have a follow\.sqlite that SQLite can read, got .*not a database"
    ):
        run_of(str(tmp_path), "new")


@pytest.mark.parametrize(("windows", "source", "name"), [("other", "spool", "windows"), ("windows", "other", "source")])
def test_a_directory_counts_for_one_source_and_its_windows(
    windows: str, source: str, name: str, tmp_path: Path
) -> None:
    for _ in range(2):
        FollowState(str(tmp_path), "run", "windows", "spool").close()
    with pytest.raises(SpecError) as caught:
        FollowState(str(tmp_path), "run", windows, source)
    stored = {"windows": "windows", "source": "spool"}[name]
    assert str(caught.value) == (
        f"--output must be a directory for the same {name}, got {str(tmp_path)!r}, which counts for {stored}"
    )


def test_rows_are_files_in_the_order_in_which_they_were_put(
    state: FollowState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One name for each transaction; a file that is on disk is forgotten, and a repetition writes the same."""
    folder, reached = tmp_path / "out", list[str]()
    folder.mkdir()
    write_outbox(state, str(folder), reached.append)
    assert reached == []
    monkeypatch.setattr(row_outbox, "file_of", lambda rows, form, _: f"{form}{rows}".encode())
    with state:
        put_rows(state, "run", {"estimates": [1], "counts": [], "ledger": [2], "rejected": ()}, RowForms())
        put_rows(state, "run", {"rejected": [3]}, RowForms())
    names = [
        *("ledger-run-0000000001.jsonl", "estimates-run-0000000001.jsonl", "estimates-run-0000000001.avro"),
        "rejected-run-0000000002.avro",
    ]
    assert state.outbox() == names
    write_outbox(state, str(folder), reached.append)
    assert state.outbox() == []
    assert [(folder / name).read_bytes() for name in names] == [b"jsonl[2]", b"jsonl[1]", b"avro[1]", b"avro[3]"]
    kinds = ["ledger", "estimates", "estimates", "rejected"]
    assert reached == [f"{when} {kind}" for kind in kinds for when in ("before", "after")] + [
        *("before emptying", "after emptying"),
    ]


# ---------------------------------------------------------------------- files of a spool


def test_a_spool_has_finished_files_and_the_earliest_that_is_not(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"^--follow needs --input to be the directory of uldp gateway --spool"):
        check_spool(str(tmp_path))
    (tmp_path / "lock").touch()
    check_spool(str(tmp_path))
    assert list_spool(str(tmp_path))[:2] == ([], None)
    for name in ("b.avro", "b.manifest.json", "a.avro", "a.manifest.json", "c.avro", "d.manifest.json"):
        (tmp_path / name).touch()
    assert list_spool(str(tmp_path)).finished == ["a.avro", "b.avro"]
    for name in ("reports-20261126T120001-x", "reports-20261126T120000-y", "other", "reports-2026-z"):
        (tmp_path / f"{name}.avro.part").touch()
    assert list_spool(str(tmp_path)).begun == 1_795_694_400_000


def test_a_sentence_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    notices = Notices()
    for sentence in ("a", "b", "a"):
        notices.say_once(sentence)
    assert capsys.readouterr().err == "estimate: a\nestimate: b\n"


def test_readings_are_added_up() -> None:
    """Later offsets and times replace earlier ones; each lost report was received."""
    first = Reading(offsets={0: 5, 1: 6}, times={0: 1}, counts={(A, 0): counts(1)})
    first.reject([Rejection(topic_reading.Reason.NOT_AS_LISTED, 3, 0, source="t/0")])
    first.merge(Reading(offsets={1: 9}, times={1: 2}, counts={(A, 0): counts(2), (A, 10): counts(4)}))
    assert (first.offsets, first.times) == ({0: 5, 1: 9}, {0: 1, 1: 2})
    assert {key: found.total for key, found in first.counts.items()} == {(A, 0): 3, (A, 10): 4}
    [entry] = first.entries
    assert (entry.bin, entry.num_reports, entry.period_start) == ("received", 3, None)
    assert [rejection.num_reports for rejection in first.rejections] == [3]


# ---------------------------------------------------------------------- topics

SPEC = JobSpec.of(collections=[KRR], bounded=True, run="run", window="1m")


@pytest.mark.parametrize(
    ("counted", "start", "stop", "expected", "lost"),
    [
        ({}, 2, 9, 4, {}),
        ({0: 5}, 2, 9, 5, {}),
        ({0: 2}, 2, 9, 2, {}),
        ({0: 1}, 2, 9, 2, {0: 1}),
        ({0: 9}, 2, 9, 9, {}),
        ({0: 0}, 0, 9, 0, {}),
        ({}, 0, 0, 4, {}),
    ],
)
def test_reading_begins_behind_what_was_counted(
    counted: dict[int, int], start: int, stop: int, expected: int, lost: dict[int, int]
) -> None:
    found = start_of("t", counted, [Part("t", 0, start, stop)], [Part("t", 0, 4, stop)])
    assert found == Start({0: expected}, lost)
    with pytest.raises(SpecError, match=rf"has counted 10 offsets in partition 0, got one that ends at offset {stop}$"):
        start_of("t", {0: 10}, [Part("t", 0, start, stop)], [Part("t", 0, 4, stop)])


class Topic:
    """A source whose brokers a test plays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, since: int | None = None, away: int = 0):
        self.now, self.parts = 100.0, [Part("t", 0, 0, 9), Part("t", 1, 2, 9)]
        self.asked, self.away = list[Any](), away
        monkeypatch.setattr(topic_reading, "clock", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(topic_reading, "parts_of", self._parts_of)
        self.identity, self.reader, self.state = mock.Mock(), mock.Mock(), mock.Mock()
        monkeypatch.setattr(topic_reading, "TopicIdentity", mock.Mock(return_value=self.identity))
        self.state.offsets.return_value, self.state.topic_id.return_value = {}, "id"
        self.state.forgotten_until.return_value = 0
        self.options = mock.Mock(idle_lag=7)
        self.options.reader.return_value = self.reader
        self.reader.poll.side_effect = self._poll
        self.reader.watermark.return_value = 55
        self.polled: list[Polled | None] = []
        self.source = TopicSource("t", self.options, since, SPEC, self.state)

    def _parts_of(self, settings: Any, topic: str, **more: Any) -> list[Part]:
        self.asked.append(more)
        if self.away:
            self.away -= 1
            raise AWAY
        return [part._replace(start=part.start + 3) for part in self.parts] if "since" in more else self.parts

    def _poll(self, seconds: float) -> Polled | None:
        self.now += seconds / 2 if self.polled else seconds
        return self.polled.pop(0) if self.polled else None

    def news(self) -> list[Reading]:
        return list(self.source.news(0))


def of_records(*records: tuple[int, int, int]) -> Polled:
    """Partition, offset and time after the events of the reports, in milliseconds."""
    return Polled([single(KRR)] * len(records), *np.add(records, [0, 0, NOON]).T)


def test_records_arrived_at_their_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual hour after the end of a window of a minute, and five minutes of a clock that is ahead."""
    topic = Topic(monkeypatch)
    end = 60_000 - NOON % 60_000
    topic.polled = [of_records((0, 0, end + 3_599_999), (0, 1, end + 3_600_000), (0, 2, -300_000), (0, 3, -300_001))]
    _, found = topic.news()
    assert sum(counted.total for counted in found.counts.values()) == 2
    assert sorted(rejection.reason.code for rejection in found.rejections) == ["too_early", "too_old"]


def test_records_are_counted_up_to_the_last_one_of_each_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a second, and only if brokers say that the topic is still the same."""
    topic = Topic(monkeypatch)
    assert topic.asked == [{"ends": True}]
    topic.identity.check.assert_called_once_with({0: 0, 1: 2})
    topic.polled = [of_records((1, 2, 30), (0, 0, 20), (1, 3, 10)), of_records((0, 1, 40))]
    begun, first, second = topic.news()
    assert (begun.offsets, begun.entries, begun.counts) == ({0: 0, 1: 2}, [], {})
    assert (first.offsets, first.times) == ({0: 1, 1: 4}, {0: NOON + 20, 1: NOON + 10})
    assert (second.offsets, second.times) == ({0: 2}, {0: NOON + 40})
    assert sum(found.total for found in first.counts.values()) == 3
    assert topic.identity.check_id.call_count == 2
    assert [call.args[0] for call in topic.reader.poll.call_args_list] == [1.0, 0.5, 0.25]
    topic.reader.seek.assert_called_once_with({0: 0, 1: 2})
    topic.reader.watermark.assert_called_once_with(7)
    assert topic.source.seen_until == 55
    assert topic.news() == [] and topic.options.reader.call_count == 1
    for _ in range(2):
        topic.source.close()
    topic.reader.close.assert_called_once_with()


def test_reading_begins_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch, since=0)
    assert topic.asked == [{"ends": True}, {"ends": True, "since": 0}]
    assert topic.news()[0].offsets == {0: 3, 1: 5}


def test_brokers_that_are_away_are_waited_for_and_named_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of what was polled is counted while they do not say which topic it is."""
    topic, said = Topic(monkeypatch, away=4), "estimate: waiting until topic 't' can be read: of this test\n"
    assert capsys.readouterr().err == said
    for later, number in ((59.9, 0), (0.1, 1), (1.0, 0)):
        topic.now += later
        assert topic.news() == []
        assert capsys.readouterr().err == said * number
    assert topic.source.seen_until is None
    topic.state.offsets.return_value = {0: 0, 1: 2}
    topic.polled, topic.identity.check_id.side_effect = [of_records((0, 0, 20))], AWAY
    [begun] = topic.news()
    assert begun.offsets == {0: 0, 1: 2}
    assert topic.source.seen_until is None
    assert topic.reader.seek.call_args_list == [mock.call({0: 0, 1: 2})] * 2


@pytest.mark.parametrize(
    ("later", "topic_id", "there", "added", "begins_again"),
    [
        (59.9, "id", {0, 1, 2}, True, False),
        (60.0, "id", {0, 1, 2}, True, True),
        (60.0, "id", {0, 1}, True, False),
        (60.0, None, {0, 1}, True, True),
        (60.0, None, {0, 1}, False, False),
    ],
)
def test_a_topic_is_looked_at_once_a_minute(
    later: float,
    topic_id: str | None,
    there: set[int],
    added: bool,
    begins_again: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For new partitions, and for another topic of its name if it has no id."""
    topic = Topic(monkeypatch)
    topic.news()
    looked = len(topic.asked)
    topic.state.offsets.return_value, topic.state.topic_id.return_value = {0: 5, 1: 6}, topic_id
    topic.reader.partitions.return_value = there
    if added:
        topic.parts = [*topic.parts, Part("t", 2, 0, 1)]
    topic.now = 100.0 + later
    topic.source._check_topic(topic.reader)
    assert (len(topic.asked) > looked) is (later >= 60 and (topic_id is None or len(there) > 2))
    assert topic.reader.close.called is begins_again
    if begins_again:
        assert topic.news()[0].offsets == {0: 5, 1: 6, 2: 0}
    assert topic.source._looked == (100.0 + later if later >= 60 else 100.0)


def test_the_time_of_a_record_is_that_at_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of a later one, where it no longer exists; brokers that say nothing are waited for 15 s."""
    moments, reader = iter([0.0, 0.0, 14.9, 14.95, 15.0]), mock.Mock()
    monkeypatch.setattr(topic_identity, "clock", SimpleNamespace(monotonic=lambda: next(moments)))
    options = mock.Mock()
    options.reader.return_value = reader
    assert topic_identity._times_at("t", options, {}) == {}
    options.reader.assert_not_called()
    reader.poll.side_effect = [None, of_records((0, 5, 100), (0, 6, 101), (1, 8, 300)), None]
    assert topic_identity._times_at("t", options, {0: 5, 1: 7, 2: 9}) == {0: NOON + 100}
    assert reader.poll.call_args_list == [mock.call(0.1)] * 3
    reader.seek.assert_called_once_with({0: 5, 1: 7, 2: 9})
    reader.close.assert_called_once_with()
    moments = iter([0.0, 0.0])
    reader.poll.side_effect = [of_records((0, 5, 100))]
    assert topic_identity._times_at("t", options, {0: 5}) == {0: NOON + 100}


# ---------------------------------------------------------------------- passes and runs


class Played:
    """A source that a test plays."""

    def __init__(self, *readings: Reading, seen_until: int | None = None):
        self.readings, self.seen_until = readings, seen_until
        self.closed = 0

    def news(self, time: int) -> Iterator[Reading]:
        yield from self.readings

    def close(self) -> None:
        self.closed += 1


def test_windows_are_estimated_in_transactions_of_256(state: FollowState, tmp_path: Path) -> None:
    """None before it is known what has arrived."""
    windows = [(A, 10 * number, 10 * number + 10) for number in range(257)]
    with state:
        state.touch(windows, now=0)
    source, parts = Played(), list[int]()
    follower = Follower(source, str(tmp_path), SPEC, state, late_every=0, forms=RowForms(), clock=lambda: 10_000)
    with mock.patch.object(follower, "_estimate", side_effect=lambda due: parts.append(len(due))):
        follower.step()
        assert parts == []
        source.seen_until = 2570
        follower.step()
    assert parts == [256, 1]
    assert follower_module.WINDOWS_AT_ONCE == 256


@pytest.mark.parametrize(
    ("values", "groups", "number"), [(4, 0, 256), (512, 0, 256), (1_024, 0, 128), (500, 50, 5), (4_000, 100, 1)]
)
def test_windows_with_many_entries_are_estimated_in_smaller_transactions(values: int, groups: int, number: int) -> None:
    """What is in memory at once is 131,072 entries, or one window."""
    spec = {"id": "a", "version": 1, "mechanism": {"id": "krr", "epsilon": 1.0}}
    spec |= {"alphabet": {"id": "closed", "values": list(map(str, range(values)))}}
    if groups:
        spec |= {"dimensions": [{"name": "g", "values": list(map(str, range(groups - 1)))}]}
    of = JobSpec.of(collections=[Collection.from_json(spec)], window="1h", by=("g",) if groups else None)
    assert follower_module.windows_at_once(of) == number


def job_of(folder: Path, *options: str) -> FollowJob:
    followed = Followed(folder, *options, of=(KRR,))
    parser = command_line()
    args, rest = parser.parse_known_args(followed.argv())
    return follow_job(args, parser, rest)


FULL = OSError(errno.ENOSPC, "No space left on device")
GOES_ON = "the next start continues where this one stopped"


@pytest.mark.parametrize(
    ("fault", "code", "end", "sentence"),
    [
        (None, 0, "stopped", "stopped: no reports"),
        (KeyboardInterrupt(), 130, "cancelled", f"cancelled: {GOES_ON}"),
        (SpecError("of this test"), 1, "failed", "the run failed: of this test"),
        (OSError(5, "of this test"), 1, "failed", f"the run failed: [Errno 5] of this test; {GOES_ON}"),
        (sqlite3.OperationalError("locked"), 1, "failed", f"the run failed: locked; {GOES_ON}"),
        (KafkaReadError("of this test"), 1, "failed", f"the run failed: of this test; {GOES_ON}"),
        (FULL, 6, "failed", f"the run failed: [Errno 28] No space left on device; {GOES_ON}"),
    ],
)
def test_a_run_ends_with_a_code_a_sentence_and_a_record(
    fault: BaseException | None,
    code: int,
    end: str,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And all is closed; a restart continues the record."""
    started = set[str]()
    for _ in range(2):
        job = again(tmp_path) if started else job_of(tmp_path / "0")
        signals = Signals("estimate")
        pauses = list[float]()

        def wait(seconds: float, signals: Signals = signals, pauses: list[float] = pauses) -> None:
            pauses.append(seconds)
            signals.stop.set()

        steps = mock.Mock(side_effect=fault)
        monkeypatch.setattr(Follower, "step", steps)
        monkeypatch.setattr(job_module, "warnings_at_start", lambda _: ["a warning"])
        with mock.patch.object(signals.stop, "wait", wait), mock.patch.object(job.source, "close") as closed:
            assert run_follow(job, signals) == code
        assert signals.can_drain and pauses == ([1.0] if fault is None else [])
        closed.assert_called_once_with()
        with pytest.raises(sqlite3.ProgrammingError):
            job.state.simulated()
        begins = f"following --input {job.name}; each window has its rows in {job.directory.path} when it is due"
        assert capsys.readouterr().err == f"estimate: a warning\nestimate: {begins}\nestimate: {sentence}\n"
        [path] = (tmp_path / "0" / "out").glob("run-*.json")
        record = json.loads(path.read_text("utf-8"))
        assert (record["end"], record["sentence"]) == (end, sentence)
        assert record["source"] == {
            "option": "--input",
            "name": str(tmp_path / "0" / "spool"),
            "bounded": False,
            "resumes": False,
        }
        started.add(record["started"])
    assert len(started) == 1


def again(folder: Path) -> FollowJob:
    """The job of a directory that was used."""
    followed: Any = object.__new__(Followed)
    followed.spool, followed.output = folder / "0" / "spool", folder / "0" / "out"
    followed.window, followed.collections = (
        ["--window", "1m", "--min_reports", "1"],
        [f"--collection={folder}/0/krr.json"],
    )
    parser = command_line()
    args, rest = parser.parse_known_args(followed.argv())
    return follow_job(args, parser, rest)


@pytest.mark.parametrize(("options", "late"), [((), 0), (("--late_every", "90s"), 90_000)])
def test_a_job_is_what_its_command_line_says(options: tuple[str, ...], late: int, tmp_path: Path) -> None:
    """A directory is for one identity of windows; warnings of two versions are no obstacle."""
    followed = Followed(tmp_path, of=(KRR,))
    parser = command_line()
    args, rest = parser.parse_known_args(last_of_each([*followed.argv(), *options]))
    job = follow_job(args, parser, rest)
    try:
        assert (job.option, job.name, job.late_every, job.forms.counts) == ("--input", str(followed.spool), late, True)
        assert job.spec.bounded and job.spec.run == job.state.run == job.directory.run
        assert json.loads(job.state._meta("windows")) == {
            "window": "60000ms",
            "slide": None,
            "window_offset": job.spec.to_json()["window_offset"],
            "timezone": job.spec.to_json()["timezone"],
            "bit_patterns": job.spec.to_json()["bit_patterns"],
        }
        assert job.state._meta("source") == "the spool of a gateway"
    finally:
        job.state.close()
        job.directory.close()
    args, _ = parser.parse_known_args(["--collection=c", "--output=o", "--kafka_topic=t", "--follow"])
    assert job_module._kind_of_source(args) == "the topic 't'"


def test_messages_are_received_rejected_and_in_transit() -> None:
    """What a decoder does not name is handed on by nobody."""
    reading, counter = Reading(), MessageCounter(SPEC)
    counter.count(reading, [single(KRR), b"garbage", single(URR), single(KRR)], NOON)
    bins: dict[str, int] = {}
    for entry in reading.entries:
        bins[entry.bin] = bins.get(entry.bin, 0) + entry.num_reports
    assert (bins["received"], bins["accepted"]) == (3, 2), "bytes that are no message are no report"
    assert sorted(rejection.reason.code for rejection in reading.rejections) == ["unknown_collection", "unknown_schema"]
    [((owner, start), found)] = reading.counts.items()
    assert (owner, start, found.total) == (A, NOON // 60_000 * 60_000, 2)


@pytest.mark.parametrize(("panes", "timing"), [(0, "ON_TIME"), (1, "LATE"), (2, "LATE")])
@pytest.mark.parametrize("simulated", [False, True])
def test_rows_of_a_window_say_which_they_are(panes: int, timing: str, simulated: bool) -> None:
    """Of twelve reports; with a report less than is asked for, numbers are withheld but for the counts."""
    found, window = {A: counts(12)}, PendingWindow(A, NOON, NOON + 60_000, panes)
    for asked, status in ((12, "ok"), (13, "suppressed")):
        spec = JobSpec.of(collections=[KRR], bounded=True, run="run", window="1m", min_reports=asked)
        samples = row_outbox.samples_of(spec, Owners(spec), window, found, simulated=simulated)
        assert set(row_outbox.rows_of_windows(spec, samples, with_counts=False)) == {"estimates", "health"}
        rows = row_outbox.rows_of_windows(spec, samples, with_counts=True)
        assert {kind: len(own) for kind, own in rows.items()} == {"estimates": 1, "health": 1, "counts": 1}
        [row], [stored] = rows["estimates"], rows["counts"]
        assert (row.status, row.num_reports) == (status, 12 if status == "ok" else None)
        assert (sum(stored.num_reports), stored.complete) == (12, True)
        for each in (row, stored):
            assert (each.pane_index, each.pane_timing, each.simulated, each.run) == (panes, timing, simulated, "run")
            assert (each.window_start, each.window_end) == (rfc3339(NOON), rfc3339(NOON + 60_000))


@pytest.mark.parametrize("is_used", [False, True])
def test_a_topic_is_looked_at_before_a_directory_is_made(
    is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that goes on waits for brokers instead."""
    if is_used:
        (tmp_path / NAME).touch()
    asked = mock.Mock()
    monkeypatch.setattr(job_module, "check_topic", asked)
    monkeypatch.setattr(job_module, "reading_options", lambda _: "options")
    parser = command_line()
    words = f"--collection=c --output={tmp_path} --window=1m --kafka_topic=t --bootstrap_servers=b:1 --follow"
    job_module._check(parser.parse_args(words.split()), parser, [])
    assert [call.args for call in asked.call_args_list] == ([] if is_used else [("t", "options")])
