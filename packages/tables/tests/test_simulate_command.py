"""``uldp simulate``: its options, simulated devices, the pace of what is published, and blocks of files."""

from __future__ import annotations

import hashlib
import json
import os
import time
import types
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from google.cloud import pubsub_v1

from tests.servers.pubsub.pubsub_server import PubsubServer
from uldp_transforms.jobs.engines import google_clients
from uldp_transforms.ldp import Budget, Client, Collection, FileStorage
from uldp_transforms.ldp.client.keyed_words import COHORT, MEMO, KeyedSource
from uldp_transforms.messages import wire
from uldp_transforms_tables.simulate import simulate_command as program
from uldp_transforms_tables.simulate.simulated_people import SimulatedPeople

KRR = {"id": "krr", "epsilon": 1.0}
SPEC: dict[str, Any] = {"id": "pets", "version": 1, "alphabet": {"id": "closed", "values": ["cat", "dog", "eel"]}}
SPEC |= {"mechanism": KRR, "num_cohorts": 4}
MEMOS = Collection.from_json(SPEC | {"mechanism": KRR | {"epsilon_inf": 2.0}})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("C.json").write_text(json.dumps(SPEC), encoding="utf-8")
    Path("M.json").write_text(json.dumps(MEMOS.to_json()), encoding="utf-8")
    Path("V.csv").write_text(
        "who,value,event_time\n" + "ann,cat,1000000001\nbob,dog,1000000002\n" * 3, encoding="utf-8"
    )
    return tmp_path


def configured(options: str, collection: str = "C.json") -> program.Simulation:
    return program.configure(f"{collection} --values V.csv {options}".split())


def refusal(options: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert program.main(f"C.json --values V.csv {options}".split()) == 2
    return capsys.readouterr().err.removeprefix("simulate: ").removesuffix("\n")


# ---------------------------------------------------------------------- options


def test_every_option() -> None:
    more = "--output R.avro --manifest M --form packed --pack 3 --seed 0 --progress 2s --person_column who"
    found = configured(more, "M.json")
    assert (found.person_column, found.manifest, found.form, found.pack) == ("who", "M", "packed", 3)
    assert (found.seed, found.progress) == (0, 2000)
    topic = "projects/p/topics/t"
    published = configured(f"--topic {topic} --rate 0.5 --seed {2**64 - 1}")
    assert (published.topic, published.output, published.rate, published.seed) == (topic, None, 0.5, 2**64 - 1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("", "one of the arguments --output --topic is required"),
        (
            "--output R.avro --topic projects/p/topics/t",
            "argument --topic: not allowed with argument --output",
        ),
        ("--output R.avro --rate 5", "--rate needs --topic, got --output"),
        ("--topic projects/p/topics/t --manifest M", "--manifest needs --output, got --topic"),
        ("--output R.avro --seed 1.5", "--seed must be a non-negative whole number, got '1.5'"),
        ("--output R.avro --seed \u0661", "--seed must be a non-negative whole number, got '\u0661'"),
        ("--output R.avro --seed \u00b2", "--seed must be a non-negative whole number, got '\u00b2'"),
        (f"--output R.avro --seed {2**64}", f"--seed must be an integer in [0, {2**64 - 1}], got {2**64}"),
        ("--output R.avro --person_column who", "--person_column needs a collection with epsilon_inf, got krr without"),
        ("--output pipe", "--output must be a separate file, got 'pipe'"),
        ("--output same.csv", "--output must be a separate file, got 'same.csv'"),
        ("--output V.csv", "--output must be a separate file, got 'V.csv'"),
        ("--output .", ".: Is a directory"),
        ("--output none/R.avro", "none/R.avro: No such file or directory"),
        ("--output R.avro --manifest none/M", "none/M: No such file or directory"),
        ("--output R.avro --manifest sub", "sub: Is a directory"),
        ("--output R.avro --manifest sub/M", "--manifest must be another file in the folder of --output, got 'sub/M'"),
        (
            "--output R.avro --manifest R.avro",
            "--manifest must be another file in the folder of --output, got 'R.avro'",
        ),
        ("--output sub/R --manifest link/R", "--manifest must be another file in the folder of --output, got 'link/R'"),
    ],
)
def test_refusals(options: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a file is written: a link to the people's table would destroy it, too."""
    os.link("V.csv", "same.csv")
    os.mkfifo("pipe")
    Path("sub").mkdir()
    Path("link").symlink_to("sub")
    before = Path("V.csv").read_bytes()
    assert refusal(options, capsys) == sentence
    assert Path("V.csv").read_bytes() == before
    assert not Path("R.avro").exists()


def test_files_that_may_be_written() -> None:
    Path("sub").mkdir()
    Path("link").symlink_to("sub")
    Path("R.avro").write_text("older", encoding="utf-8")
    assert configured("--output R.avro --manifest M").output == "R.avro"
    assert configured("--output sub/R --manifest link/M").manifest == "link/M"


def test_a_topic_needs_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(google_clients, "has_google_clients", lambda: False)
    missing = "--topic needs Google's client libraries; install the extra 'gcp': pip install '.[gcp]'"
    assert refusal("--topic projects/p/topics/t", capsys) == missing
    assert configured("--output R.avro").output == "R.avro"


def test_packs_that_just_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """One more would be refused by the main job; single reports have no such limit."""
    most = (wire.MAX_MESSAGE_BYTES - 100) // wire.packed_bytes(Collection.from_json(SPEC).mechanism.payload_size)
    assert configured(f"--output R.avro --form packed --pack {most}").pack == most
    sentence = f"--pack must keep messages below 10000000 bytes, got {most + 1}"
    assert refusal(f"--output R.avro --form packed --pack {most + 1}", capsys) == sentence
    assert configured(f"--output R.avro --pack {most + 1}").pack == most + 1
    bits = {"alphabet": {"id": "closed", "values": [str(at) for at in range(32)]}, "mechanism": KRR | {"id": "rappor"}}
    Path("B.json").write_text(json.dumps(SPEC | bits), encoding="utf-8")
    assert (wire.MAX_MESSAGE_BYTES - 100) / wire.packed_bytes(
        Collection.from_json("B.json").mechanism.payload_size
    ) == 333_330
    assert configured("--output R.avro --form packed --pack 333330", "B.json").pack == 333_330


@pytest.mark.parametrize(
    "window", [{}, {"client_window": "15m"}, {"client_window": "1d", "client_timezone": "Europe/Berlin"}]
)
@pytest.mark.parametrize("times", ["event_time", "when"])
def test_times_are_those_of_clients(window: dict[str, str], times: str) -> None:
    """In files with times, and of now; exact for a collection that leaves the window to the app."""
    Path("C.json").write_text(json.dumps(SPEC | window), encoding="utf-8")
    given = [1_000_000_001, 1_000_003_602, 1_000_086_403]
    Path("V.csv").write_text(f"value,{times}\n" + "".join(f"cat,{moment}\n" for moment in given), encoding="utf-8")
    before = time.time_ns() // 1_000_000
    assert program.main(["C.json", "--values", "V.csv", "--output", "R.avro"]) == 0
    after = time.time_ns() // 1_000_000
    with open("R.avro", "rb") as file:
        found = [record["event_time"] for record in fastavro.reader(file)]
    client = Client(Collection.from_json("C.json"), FileStorage("device"), Budget(epsilon=16.0))
    if times == "event_time":
        reports = [client.report("cat", moment * 1000) for moment in given]
        of_client = [int(one.event_times[0]) for one in reports if one]
        assert found == (of_client if window else [moment * 1000 for moment in given])
    else:
        first, last = map(client._rounded if window else int, (before, after))
        assert all(first <= moment <= last for moment in found)


# ---------------------------------------------------------------------- devices


def test_a_simulated_device_is_a_client_with_a_secret() -> None:
    """The words of its cohort and of the memo of each symbol are those that a client derives from its secret."""
    people = SimulatedPeople(MEMOS, 5)
    own = hashlib.sha256(hashlib.sha256(b"people 5").digest() + b"ann").digest()
    cohort = KeyedSource(own, MEMOS.fingerprint, COHORT).integer(4)
    assert people._device("ann") == (own, cohort)
    for symbol in (0, 1, 2, 1):
        words = KeyedSource(own, MEMOS.fingerprint, MEMO, symbol)
        expected = MEMOS.mechanism.draw_memos(np.array([symbol]), words)[0]  # type: ignore[attr-defined]  # its mechanism has memos
        assert people._memo("ann", own, symbol).tolist() == expected.tolist()
    values, who = ["cat", "eel", "cat"], ["ann", "bob", "ann"]
    found = people.reports(who, values, np.random.default_rng(1), np.array([1, 2, 3]))
    devices = [people._device(person) for person in who]
    assert found.cohorts.tolist() == [cohort for _, cohort in devices]
    assert found.event_times.tolist() == [1, 2, 3]
    assert set(people._memos) == {("ann", 0), ("bob", 2), ("ann", 1), ("ann", 2)}


def test_without_a_seed_secrets_are_random() -> None:
    secrets = {SimulatedPeople(MEMOS, None)._device("ann")[0] for _ in range(20)}
    assert len(secrets) == 20
    assert all(len(secret) == 32 for secret in secrets)
    assert SimulatedPeople(MEMOS, 5)._device("ann") == SimulatedPeople(MEMOS, 5)._device("ann")
    assert SimulatedPeople(MEMOS, 5)._device("ann")[0] != SimulatedPeople(MEMOS, 6)._device("ann")[0]
    public = SimulatedPeople(MEMOS, None)
    public._secret = bytes(32)
    assert public._device("ann")[0] not in secrets


# ---------------------------------------------------------------------- what is published


class Clock:
    """Time in which only sleep passes, and a second for each look at it while something is slow."""

    def __init__(self, slow: float = 0.0) -> None:
        self.now, self.slow, self.slept = 100.0, slow, list[float]()

    def monotonic(self) -> float:
        self.now += self.slow
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


TOPIC, SUBSCRIPTION = "projects/people/topics/reports", "projects/people/subscriptions/reports"


def published(options: str, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> list[Any]:
    """The messages that the topic has after the command."""
    now = types.SimpleNamespace(time_ns=lambda: 5_000_000, monotonic=clock.monotonic, sleep=clock.sleep)
    monkeypatch.setattr(program, "time", now)
    with PubsubServer() as server:
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", server.address)
        with pubsub_v1.PublisherClient() as publisher, pubsub_v1.SubscriberClient() as subscriber:
            publisher.create_topic(name=TOPIC)
            subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC)
            assert program.main(f"C.json --values V.csv --topic {TOPIC} {options}".split()) == 0
            pulled = subscriber.pull(subscription=SUBSCRIPTION, max_messages=100, timeout=60)
            return [received.message for received in pulled.received_messages]


def test_reports_are_published_at_a_rate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A tenth of a second at a time: 6 reports at 20 a second are three messages of two, in packs."""
    clock = Clock()
    messages = published("--rate 20 --form packed --seed 3", monkeypatch, clock)
    assert clock.slept == pytest.approx([0.1, 0.1, 0.1])
    sizes = [wire.reports_in(message.data) for message in messages]
    assert sizes == [2, 2, 2]
    seeded = "seeded (3), for simulation only"
    assert [dict(one.attributes) for one in messages] == [{"uldp_collection": "pets", "uldp_randomness": seeded}] * 3
    assert capsys.readouterr().err == f"simulate: 6 reports to {TOPIC}, randomness: {seeded}\n"


def test_a_late_program_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where publishing takes longer than the rate allows, and at rates below ten a second."""
    clock = Clock(slow=0.75)
    assert len(published("--rate 4", monkeypatch, clock)) == 6
    assert clock.slept == pytest.approx([0.0] * 6)
    slow = Clock()
    assert len(published("--rate 4", monkeypatch, slow)) == 6
    assert slow.slept == pytest.approx([0.25] * 6)


def test_without_a_rate_nothing_waits_and_packs_have_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    messages = published("--form packed --pack 4", monkeypatch, clock)
    assert [wire.reports_in(message.data) for message in messages] == [4, 2]
    assert clock.slept == []
    packs = published("--form packed --pack 1 --rate 1000", monkeypatch, clock)
    assert len(packs) == 6


# ---------------------------------------------------------------------- files


def test_blocks_of_a_file_have_a_quarter_of_a_mebibyte(capsys: pytest.CaptureFixture[str]) -> None:
    """So that a reader, and a file that is cut, loses at most one. Each block ends with the file's own marker."""
    Path("V.csv").write_text("value,event_time\n" + "cat,1000000001\n" * 12_000, encoding="utf-8")
    assert program.main(["C.json", "--values=V.csv", "--output=R.avro", "--seed=7"]) == 0
    content = Path("R.avro").read_bytes()
    _, *blocks, rest = content.split(hashlib.sha256(b"sync 7").digest()[:16])
    assert rest == b""
    assert len(blocks) > 1
    assert all(1 << 18 < len(block) < (1 << 18) + 200 for block in blocks[:-1])


def test_a_value_that_the_collection_does_not_have_is_shown_by_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines are counted over the whole file; without a value there is nothing to refuse."""
    Path("V.csv").write_text('value\ncat\n""\nyak\ncat\nyak\n', encoding="utf-8")
    sentence = "V.csv line 4 must have one of the 3 values of the collection; rows with other values: 2 of 5"
    assert refusal("--output R.avro --missing skip", capsys) == sentence
