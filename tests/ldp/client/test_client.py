"""The client that is asked again and again: its storage, its budget, its memos; with real forks, threads and kills."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.ldp.clients import NOON, SECRET, answers, client, illness, message
from tests.support.tolerance import binomial_limits, within
from tests.support.vectors import Memory
from uldp_transforms.ldp import BudgetSpentError, Client, Collection, FileStorage, ReportBatch, SpecError
from uldp_transforms.ldp.client.client import _unfinished
from uldp_transforms.ldp.client_window import DAY

PATIENCE = 600


@pytest.fixture()
def storage(tmp_path: Path) -> FileStorage:
    return FileStorage(tmp_path / "state.json")


# ---------------------------------------------------------------------- one answer a window


@pytest.mark.parametrize("collection", [illness(), illness(None)], ids=["memos", "fresh"])
def test_a_window_has_one_answer_also_after_a_restart(collection: Collection, storage: FileStorage) -> None:
    first = client(storage, collection)
    made = message(first.report("flu", NOON))
    assert message(first.report("flu", NOON)) == made
    assert message(first.report("gout", NOON + 1)) == made
    assert message(client(storage, collection).report("cold", NOON + DAY // 2 - 1)) == made
    other = message(client(storage, collection).report("flu", NOON + DAY))
    assert (other[1:9], other[9:25] == made[9:25]) == (made[1:9], False)


def test_a_new_period_keeps_answers_of_windows_that_go_on() -> None:
    """Those of calendar windows, which are named by their ends; one that ends as the period begins has ended."""
    assert _unfinished({"/10": [1], "/11": [2], "12": [3]}, 10) == {"/11": [2]}


def test_an_earlier_period_is_refused() -> None:
    asked = client(Memory())
    asked.report("flu", NOON)
    with pytest.raises(SpecError, match="got one 2 period"):
        asked.report("flu", NOON - 2 * DAY)


def test_reports_are_counted(storage: FileStorage) -> None:
    collection = illness()
    report = client(storage, collection).report("flu", NOON)
    assert report is not None
    assert not report.seeded
    assert collection.count(report).total == 1
    assert report.event_times.tolist() == [NOON]


def test_a_wrong_value_is_refused_and_not_charged(storage: FileStorage, tmp_path: Path) -> None:
    asked = client(storage)
    asked.report("flu", NOON - DAY)
    before = json.loads((tmp_path / "state.json").read_text())
    with pytest.raises(SpecError) as caught:
        asked.report("secret", NOON)
    assert "secret" not in str(caught.value)
    after = json.loads((tmp_path / "state.json").read_text())
    assert after == before | {"period": before["period"] + 1, "spent": {}, "answers": {}}


def kind(asked: Client, value: str, event_time: int) -> object:
    """What comes of a call: a message, None, or the type of an error."""
    try:
        report = asked.report(value, event_time)
    except (SpecError, BudgetSpentError) as error:
        return type(error)
    return None if report is None else message(report)


@pytest.mark.parametrize("wrong", ["secret", "\ud800"], ids=["not listed", "no Unicode"])
@pytest.mark.parametrize("epsilon_inf", [2.0, None])
def test_the_value_is_looked_at_where_a_report_is_drawn_only(epsilon_inf: float | None, wrong: str) -> None:
    asked = client(Memory(), illness(epsilon_inf), lifetime=2.0, report_every=2, secret=SECRET)
    first = NOON if asked.report("flu", NOON) else NOON + DAY
    report = kind(asked, "flu", first)
    assert kind(asked, wrong, first) == report
    assert kind(asked, wrong, first + DAY) is None
    assert kind(asked, wrong, first + 2 * DAY) is SpecError
    assert isinstance(kind(asked, "flu", first + 2 * DAY), bytes)
    assert kind(asked, "flu", first + 4 * DAY) is BudgetSpentError
    assert kind(asked, wrong, first + 4 * DAY) is BudgetSpentError


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"report_every": 7, "secret": SECRET}, None), ({"lifetime": 1.0}, BudgetSpentError)],
    ids=["silent", "refused"],
)
def test_answers_of_periods_that_are_over_are_erased_whatever_comes_of_the_call(
    options: dict[str, Any], expected: type[BudgetSpentError] | None
) -> None:
    store = Memory()
    asked = client(store, **options)
    day = next(day for day in range(7) if asked.report("flu", NOON + day * DAY))
    [of] = json.loads(store.text or "")["answers"].values()
    assert len(of) == 1
    assert kind(asked, "flu", NOON + (day + 1) * DAY) is expected
    assert json.loads(store.text or "")["answers"] == {}
    assert kind(asked, "flu", NOON + day * DAY) is SpecError  # never a second answer, should the clock go back


# ---------------------------------------------------------------------- event times

HOUR = DAY // 24
BERLIN = {"client_window": "1d", "client_timezone": "Europe/Berlin"}
LATE = NOON + 5 * HOUR + 1_234_567  # 17:20:34.567 UTC
SPRING = 19_813 * DAY  # 2024-03-31, on which clocks are put forward


def said(report: ReportBatch | None) -> int:
    assert report is not None
    return int(report.event_times[0])


@pytest.mark.parametrize(
    ("fields", "options", "expected"),
    [
        ({}, {}, LATE // HOUR * HOUR),
        ({}, {"window_ms": DAY // 12}, LATE // HOUR * HOUR),
        ({}, {"window_ms": DAY // 96}, LATE // (DAY // 96) * (DAY // 96)),
        ({}, {"time_unit_ms": 1}, LATE),
        ({}, {"time_unit_ms": 60_000}, LATE // 60_000 * 60_000),
        ({"client_window": "1d"}, {}, NOON - DAY // 2),
        ({"client_window": "6h"}, {}, NOON),
        ({"client_window": "1d"}, {"time_unit_ms": 1}, LATE),
        (BERLIN, {}, NOON - 14 * HOUR),  # in summer: 2024-10-04
    ],
)
@pytest.mark.parametrize("epsilon_inf", [None, 2.0])
def test_event_times_are_rounded_down(
    epsilon_inf: float | None, fields: dict[str, Any], options: dict[str, int], expected: int
) -> None:
    asked = client(Memory(), illness(epsilon_inf, **fields), **options)
    assert said(asked.report("flu", LATE)) == expected


@pytest.mark.parametrize("unit", [60_000, HOUR, 6 * HOUR, DAY])
@pytest.mark.parametrize("place", ["Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "America/New_York"])
def test_rounded_times_stay_in_their_window(place: str, unit: int) -> None:
    """Over the last days of 2024-03 and a change of clocks, where days begin within an hour of UTC or change length."""
    collection = illness(client_window="1d", client_timezone=place)
    window = collection.asked
    assert window is not None
    for time in range(SPRING - DAY, SPRING + 8 * DAY, 47 * 60_000 + 1):
        rounded = said(client(Memory(), collection, time_unit_ms=unit).report("flu", time))
        assert window.number_of(rounded) == window.number_of(time)
        assert time - unit < rounded <= time


def test_days_of_a_place_have_one_answer_each(storage: FileStorage) -> None:
    """Asked every hour, over a change of clocks, while the budget's period (a day of UTC) changes in between."""
    collection, answers = illness(**BERLIN), []
    for hour in range(72):
        answers.append(client(storage, collection).report("flu", SPRING - DAY + hour * HOUR))
    assert [said(answer) for answer in answers] == [
        *[SPRING - DAY - HOUR] * 23,
        *[SPRING - HOUR] * 23,
        *[SPRING + 22 * HOUR] * 24,
        *[SPRING + DAY + 22 * HOUR] * 2,
    ]
    assert len({message(answer) for answer in answers}) == 4


def test_clients_of_several_places_share_a_storage(storage: FileStorage) -> None:
    """One is in tomorrow while another is in today, and one begins the period in which another's day ends."""
    kinds = [illness(id=name[-6:].lower(), client_window="1d", client_timezone=name) for name in (
        "Pacific/Auckland", "Europe/Berlin", "America/New_York"
    )]  # fmt: skip
    kinds.append(illness(id="hours", client_window="1h"))
    made: dict[tuple[str, int], set[bytes]] = {}
    for hour in range(72):
        for collection in kinds:
            answer = client(storage, collection).report("flu", SPRING + hour * HOUR + 7)
            made.setdefault((collection.id, said(answer)), set()).add(message(answer))
    assert {len(messages) for messages in made.values()} == {1}
    assert [sum(name == collection.id for name, _ in made) for collection in kinds] == [4, 4, 4, 72]


# ---------------------------------------------------------------------- memos


def keyed(collection: Collection, purpose: int, number: int, size: int) -> bytes:
    """As docs/client.md says it."""
    text = b"uldp-client-1\0" + SECRET + collection.fingerprint + bytes([purpose]) + number.to_bytes(8, "little")
    return hashlib.shake_256(text).digest(size)


def test_cohort_memo_and_turn_follow_from_the_secret() -> None:
    """For randomized response, where one word is a memo; the cohort decides the symbol."""
    collection = illness(alphabet={"id": "hashed", "num_buckets": 5, "seed": 3}, num_cohorts=16)
    mechanism: Any = collection.mechanism
    asked = client(Memory(), collection, secret=SECRET, report_every=3)
    cohort = int.from_bytes(keyed(collection, 0, 0, 8), "little") * 16 >> 64
    turn = int.from_bytes(keyed(collection, 2, 3, 8), "little") * 3 >> 64
    symbol = int(collection.alphabet.encode(["flu"], np.array([cohort]), 16)[0])
    word = int.from_bytes(keyed(collection, 1, symbol, 8), "little")
    memo = symbol if word < mechanism.keep_weight else (word - mechanism.keep_weight) // mechanism.noise_weight
    days = [day for day in range(20_000, 20_000 + 1500) if day % 3 == turn]
    reports = [asked.report("flu", day * DAY) for day in days]
    assert {int(report.cohorts[0]) for report in reports if report is not None} == {cohort}
    sent = [int(report.payloads[0, 0]) for report in reports if report is not None]
    shares = np.full(5, mechanism.report_noise_weight / 2**64)
    shares[memo] += mechanism.repeat_weight / 2**64
    assert within(np.bincount(sent, minlength=5), binomial_limits(len(days), shares)).all()


@pytest.mark.parametrize("mechanism", ["rappor", "ss", "hr", "krr"])
def test_noise_is_fresh_in_every_window(mechanism: str) -> None:
    """A long report comes again if and only if it is the memo; its share is that of the second coin."""
    values = [str(i) for i in range(64)]
    collection = illness(mechanism=mechanism, alphabet={"id": "closed", "values": values})
    chosen: Any = collection.mechanism
    asked = client(Memory(), collection)
    days = 500
    sent = [message(asked.report("7", day * DAY))[-chosen.payload_size :] for day in range(days)]
    most = max(sent.count(payload) for payload in set(sent))
    memo_again = chosen.repeat_weight / 2**64
    by_noise = float(max(share for _, share, _ in chosen.noise_law())) if chosen.num_outputs < 1000 else 0.0
    share = np.array([memo_again + (1 - memo_again) * by_noise])
    assert within(np.array([most]), binomial_limits(days, share)).all()


@pytest.mark.parametrize("every", [1, 2, 7, 30])
def test_any_windows_in_a_row_have_one_report(every: int) -> None:
    """So they cost what one report costs, wherever one begins to count."""
    asked = client(Memory(), window_ms=DAY // 24, report_every=every)
    answered = [asked.report("flu", (480_000 + hour) * DAY // 24) is not None for hour in range(200)]
    assert {sum(answered[start : start + every]) for start in range(201 - every)} == {1}


@pytest.mark.parametrize("mechanism", ["krr", "rappor"])
def test_what_clients_send_is_what_the_collector_expects(mechanism: str) -> None:
    """500 devices, two days each: cells of the second day follow the channel of one report."""
    alphabet = {"id": "hashed", "num_buckets": 5, "seed": 3}
    collection = illness(mechanism=mechanism, alphabet=alphabet, num_cohorts=2)
    devices = [client(Memory(), collection) for _ in range(500)]
    reports = [device.report("flu", NOON + day * DAY) for device in devices for day in (0, 1)][1::2]
    counts = collection.count(ReportBatch.concatenate([report for report in reports if report is not None]))
    assert counts.total == len(devices)
    table = collection.alphabet.symbol_table(["flu"], 2)[:, 0]
    expected = collection.mechanism.response(np.eye(5)[table])
    assert within(counts.cells, binomial_limits(counts.num_reports[:, np.newaxis], expected)).all()


# ---------------------------------------------------------------------- the budget


def test_fresh_reports_cost_epsilon_each(storage: FileStorage) -> None:
    collection = illness(None)
    for hour in range(2):
        client(storage, collection, 2.0, window_ms=DAY // 24).report("flu", NOON + hour * DAY // 24)
    asked = client(storage, collection, 2.0, window_ms=DAY // 24)
    with pytest.raises(BudgetSpentError, match="got 2 of 2 spent and a report that adds 1"):
        asked.report("flu", NOON + 2 * DAY // 24)
    assert asked.report("flu", NOON) is not None  # made already
    assert asked.report("flu", NOON + DAY) is not None  # the next period


def test_memos_cost_what_their_reports_can_say() -> None:
    """At most epsilon_inf for each of four symbols, for ever, and no more however long the value stays."""
    asked = client(Memory(), lifetime=8.0)
    assert all(asked.report("flu", NOON + day * DAY) for day in range(400))
    asked = client(Memory(), lifetime=6.8)
    answered = [answers(asked, "flu", NOON + day * DAY) for day in range(40)]
    assert answered == [True] * 8 + [False] * 32
    with pytest.raises(
        BudgetSpentError, match=r"lifetime must not be exceeded, got 6.712 of 6.8 spent and .* adds 0.2451$"
    ):
        asked.report("flu", NOON + 40 * DAY)


def test_what_is_stored_of_reports_is_their_number_and_cost() -> None:
    store = Memory()
    collection = illness()
    asked = client(store, collection, window_ms=DAY // 24, distinct_values=2)
    for hour, value in enumerate(["flu", "gout", "flu", "flu"]):
        asked.report(value, 20_000 * DAY + hour * DAY // 24)
    state = json.loads(store.text or "")
    own, loss = collection.fingerprint.hex(), collection.mechanism.epsilon_after
    assert state["spent"] == state["ever"] == {own: [4, 2 * loss(2)]}
    assert "flu" not in (store.text or "")


def test_collections_that_share_a_storage_share_the_budget(storage: FileStorage) -> None:
    other = Collection.from_json(illness(None).to_json() | {"id": "other"})
    client(storage, illness(None), 1.5).report("flu", NOON)
    with pytest.raises(BudgetSpentError):
        client(storage, other, 1.5).report("flu", NOON)
    assert client(storage, other, 2.0).report("flu", NOON) is not None


# ---------------------------------------------------------------------- the storage


def test_the_file_is_for_its_owner(storage: FileStorage, tmp_path: Path) -> None:
    client(storage)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("is_link", [False, True])
def test_a_state_is_not_written_into_somebody_elses_file(is_link: bool, tmp_path: Path) -> None:
    """Which lies where the new state is written before it takes the old one's place."""
    other, new = tmp_path / "other", tmp_path / "state.json.new"
    other.write_text("other", encoding="utf-8")
    other.chmod(0o644)
    new.symlink_to(other) if is_link else other.rename(new)
    FileStorage(tmp_path / "state.json").update(lambda text: ("secret", None))
    assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o600
    assert not is_link or other.read_text("utf-8") == "other"


@pytest.mark.parametrize("epsilon_inf", [2.0, None], ids=["memos", "fresh"])
def test_what_is_stored_of_two_values_differs_in_the_payloads_alone(
    epsilon_inf: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files of two clients that draw the same words: whoever takes the device has the reports, and no value."""
    found = []
    for value in ("flu", "gout"):
        monkeypatch.setattr(os, "urandom", np.random.default_rng(5).bytes)
        folder = tmp_path / value
        folder.mkdir()
        asked = client(FileStorage(folder / "state.json"), illness(epsilon_inf), window_ms=DAY)
        reports = [asked.report(value, NOON + day * DAY) for day in range(2)]
        texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}
        [of] = json.loads(texts["state.json"])["answers"].values()
        for stored, report in zip(of.values(), reports[-len(of) :]):
            assert report is not None
            assert stored[2] == report.payloads.tobytes().hex()
            texts["state.json"] = texts["state.json"].replace(f'"{stored[2]}"', "payload")
        found.append(texts)
    assert found[0] == found[1]
    assert "payload" in found[0]["state.json"]


def test_a_given_secret_is_kept(storage: FileStorage) -> None:
    client(storage, secret=SECRET)
    client(storage, secret=SECRET)
    client(storage)
    with pytest.raises(SpecError, match="got a different one"):
        client(storage, secret=bytes(32))


def test_a_report_that_cannot_be_stored_is_not_made() -> None:
    class Full(Memory):
        def update(self, change: Callable[[str | None], tuple[str, Any]]) -> Any:
            text, result = change(self.text)
            if self.text is not None and text != self.text:
                raise OSError("no space left")
            self.text = text
            return result

    asked = client(Full())
    with pytest.raises(OSError, match="no space"):
        asked.report("flu", NOON)


def in_children(number: int, work: Callable[[int], bytes]) -> list[bytes]:
    """What forked processes make, all at once."""
    pipes = []
    for place in range(number):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE)
            try:
                os.write(writer, work(place))
            finally:
                os._exit(0)
        os.close(writer)
        pipes.append((reader, child))
    made = []
    for reader, child in pipes:
        with open(reader, "rb") as file:
            made.append(file.read())
        assert os.waitpid(child, 0)[1] == 0
    return made


def asking(asked: Client, window: int) -> bytes:
    """The message, or nothing if the budget is spent."""
    try:
        return message(asked.report("flu", 20_000 * DAY + window * DAY // 24))
    except BudgetSpentError:
        return b""


def test_forked_processes_give_one_answer_and_spend_one_budget(storage: FileStorage) -> None:
    asked = client(storage, illness(None), 4.0, window_ms=DAY // 24)
    [answer] = set(in_children(8, lambda _: asking(asked, 0)))
    assert answer
    made = in_children(12, lambda place: asking(asked, 1 + place))
    assert made.count(b"") == 12 - 3
    assert len(set(made)) == 4
    assert len({report[9:25] for report in made if report}) == 3


def test_threads_give_one_answer_and_spend_one_budget(storage: FileStorage) -> None:
    asked = client(storage, illness(None), 4.0, window_ms=DAY // 24)
    with ThreadPoolExecutor(12) as pool:
        [answer] = set(pool.map(lambda _: asking(asked, 0), range(48)))
        made = list(pool.map(lambda place: asking(asked, 1 + place), range(12)))
    assert answer
    assert made.count(b"") == 12 - 3
    assert len(set(made)) == 4


def test_a_child_that_was_forked_under_the_lock_does_not_wait_for_itself(storage: FileStorage) -> None:
    """It has inherited the open lock file of another thread, which goes on in the parent alone."""
    asked = client(storage)
    held, go_on = threading.Event(), threading.Event()

    def slowly(text: str | None) -> tuple[str, None]:
        held.set()
        go_on.wait(PATIENCE)
        return text or "", None

    thread = threading.Thread(target=storage.update, args=(slowly,))
    thread.start()
    held.wait(PATIENCE)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        try:
            os.write(writer, message(asked.report("flu", NOON)))
        finally:
            os._exit(0)
    os.close(writer)
    go_on.set()
    thread.join()
    with open(reader, "rb") as file:
        made = file.read()
    assert os.waitpid(child, 0)[1] == 0
    assert made == message(asked.report("gout", NOON))


PROGRAM = """
import sys
from tests.ldp.client.test_client import DAY, FileStorage, client, message
asked = client(FileStorage(sys.argv[1]), period_ms=1000 * DAY)
for day in range(20_000, 21_000):
    print(day, message(asked.report("flu", day * DAY)).hex(), flush=True)
"""


@pytest.mark.parametrize("lines", [1, 7, 20])
def test_what_was_sent_before_a_kill_is_not_answered_anew(lines: int, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    command = [sys.executable, "-c", PROGRAM, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        sent = [running.stdout.readline().split() for _ in range(lines)]
        running.kill()
        sent += [line.split() for line in running.stdout if line.endswith("\n")]
    asked = client(FileStorage(path), period_ms=1000 * DAY)
    for day, hexadecimal in sent:
        assert message(asked.report("gout", int(day) * DAY)).hex() == hexadecimal
