"""The main job on a live subscription: started, fed, read and stopped as an operator would, in a process of its own."""

from __future__ import annotations

import csv
import datetime
import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from google.cloud import pubsub_v1

from tests.servers import pubsub_servers
from tests.support import cases, forked, replay
from tests.support.live import PATIENCE
from tests.support.live import rows as rows_in
from tests.support.looks import without_intervals
from tests.support.messages_cases import header
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, LEDGER_SCHEMA, REJECTED_SCHEMA
from uldp_transforms.windows import Windows

PROJECT = "projects/test-project"
REPORTS, ESTIMATES, REFUSED = (f"{PROJECT}/topics/{name}" for name in ("reports", "estimates", "refused"))
FROM_REPORTS, FROM_ESTIMATES, FROM_REFUSED = (
    f"{PROJECT}/subscriptions/from-{name}" for name in ("reports", "estimates", "refused")
)

WINDOW = 2000  # milliseconds

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]
PLACES = Collection.from_json(cases.COLLECTIONS["hashed-krr"].to_json() | {"id": "places"})
STRANGERS = Collection.from_json(ANIMALS.to_json() | {"version": 9})


@pytest.fixture(params=pubsub_servers.params())
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the Pub/Sub server at which all clients look."""
    with pubsub_servers.serving(request.param):
        yield request.param


class Topics:
    """The topics with a subscription each, and what comes out of those that the job publishes to."""

    def __init__(self) -> None:
        self.publisher = pubsub_v1.PublisherClient()
        self.subscriber = pubsub_v1.SubscriberClient()
        subscriptions = {REPORTS: FROM_REPORTS, ESTIMATES: FROM_ESTIMATES, REFUSED: FROM_REFUSED}
        for topic, subscription in subscriptions.items():
            self.publisher.create_topic(name=topic, timeout=PATIENCE)
            self.subscriber.create_subscription(name=subscription, topic=topic, ack_deadline_seconds=600)
        self.estimates: list[Any] = []
        self.refused: list[Any] = []

    def publish(self, messages: list[bytes]) -> None:
        for future in [self.publisher.publish(REPORTS, message) for message in messages]:
            future.result(timeout=PATIENCE)

    def pull(self) -> None:
        """Take what is there, or wait for it for a moment."""
        self.estimates += self._pull(FROM_ESTIMATES)
        self.refused += self._pull(FROM_REFUSED)

    def _pull(self, subscription: str) -> list[Any]:
        response = self.subscriber.pull(subscription=subscription, max_messages=1000, timeout=PATIENCE, retry=None)
        return list(response.received_messages)

    def nack_estimates(self) -> list[Any]:
        """Give all of them back, and take them again."""
        ack_ids = [received.ack_id for received in self.estimates]
        self.subscriber.modify_ack_deadline(subscription=FROM_ESTIMATES, ack_ids=ack_ids, ack_deadline_seconds=0)
        again: list[Any] = []
        end = time.monotonic() + PATIENCE
        while len(again) < len(ack_ids) and time.monotonic() < end:
            again += self._pull(FROM_ESTIMATES)
        return again


@pytest.fixture
def topics(server: str) -> Iterator[Topics]:
    topics = Topics()
    yield topics
    topics.publisher.stop()
    topics.publisher.transport.close()
    topics.subscriber.close()


@contextmanager
def started(options: list[str], log: Path) -> Iterator[Any]:
    """The job in a process of its own, which does not outlive the test."""
    program = "import sys; from uldp_transforms.jobs.uldp import main; sys.exit(main())"
    with log.open("wb") as errors:
        process = forked.start(program, ["estimate", *options], errors, errors)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def write_json(path: Path, collection: Collection) -> str:
    path.write_text(json.dumps(collection.to_json()), encoding="utf-8")
    return str(path)


def write_values(path: Path, times: list[int]) -> str:
    """A CSV file of values with these event times, in milliseconds."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["value", "event_time"])
        rows.writerows([cases.VALUES[i % len(cases.VALUES)], f"{ms / 1000:.3f}"] for i, ms in enumerate(times))
    return str(path)


def read_avro(output: Path, name: str, schema: Any) -> list[dict[str, Any]]:
    rows: list[Any] = []
    for path in output.glob(f"{name}-*.avro"):
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            assert reader.writer_schema["name"] == f"{schema['namespace']}.{schema['name']}"
            rows += reader
    return rows


def milliseconds(text: str) -> int:
    return round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def last_panes(rows: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    """Number of reports in the pane with the highest index of each window."""
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for row in rows:
        assert milliseconds(row["window_end"]) - milliseconds(row["window_start"]) == WINDOW
        key = (row["collection_id"], milliseconds(row["window_start"]))
        last[key] = max(last.get(key, (-1, 0)), (row["pane_index"], row["num_reports"]))
    return Counter({key: n for key, (_, n) in last.items()})


def sum_ledger(rows: list[dict[str, Any]]) -> Counter[str]:
    """Numbers of reports by what became of them."""
    total: Counter[str] = Counter()
    for row in rows:
        total += Counter(row["rejected"]) + Counter(accepted=row["accepted"], duplicates=row["duplicates"])
    return total


def sum_unread(rows: list[dict[str, Any]]) -> Counter[str]:
    """Numbers of messages that could not be read, by reason."""
    return sum((Counter(row["unread_messages"]) for row in rows), Counter())


def sum_rejected(records: Iterable[dict[str, Any]]) -> Counter[str]:
    """Numbers of refused reports, and of messages that could not be read, by reason."""
    total: Counter[str] = Counter()
    for record in records:
        total[record["reason"]] += record["num_reports"] + record["num_messages"]
    return total


def row_of(received: Any) -> dict[str, Any]:
    """What a message of the job says."""
    return json.loads(received.message.data)


def sum_refused(topics: Topics) -> Counter[str]:
    """The same of the rows on the topic."""
    return without_heartbeats(sum_rejected(map(row_of, topics.refused)))


def without_heartbeats(total: Counter[str]) -> Counter[str]:
    """The same, without the garbage that keeps servers awake."""
    return total - Counter(unknown_schema=total["unknown_schema"])


def balances(rows: list[dict[str, Any]]) -> bool:
    """Whether the sums over all rows are equal for each collection and period; single rows may hold one side only."""
    difference: Counter[tuple[Any, Any]] = Counter()
    for row in rows:
        difference[row["fingerprint"], row["window_start"]] += row["received"] - sum_ledger([row]).total()
    return not any(difference.values())


def wait_until(done: Callable[[], bool], process: Any, log: Path, pause: Callable[[], None]) -> None:
    """Look again until it is so, with a pause that waits for something; a dead process or a long time is a failure."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        pause()


def check_messages(topics: Topics, rows: list[dict[str, Any]]) -> None:
    """The topic says the same as the files, and the attributes which schema, window and pane it is about; a consumer
    that gives messages back gets the same ones again."""
    schema = {"schema": "uldp.WindowedEstimate", "schema_fingerprint": header(ESTIMATE_SCHEMA)[2:].hex()}
    assert sorted(json.dumps(row_of(item)) for item in topics.estimates) == sorted(map(json.dumps, rows))
    for item in topics.estimates:
        row = row_of(item)
        same = (
            "collection_id",
            "fingerprint",
            "window_start",
            "window_end",
            "pane_index",
            "pane_timing",
            "status",
            "run",
        )
        assert dict(item.message.attributes) == schema | {name: str(row[name]) for name in same}
    again = topics.nack_estimates()
    assert sorted(repr(item.message) for item in again) == sorted(repr(item.message) for item in topics.estimates)


def check_refused(received: list[Any]) -> None:
    """A row for each refused message, never a payload, and the attributes say which schema and why."""
    schema = {"schema": "uldp.RejectedReport", "schema_fingerprint": header(REJECTED_SCHEMA)[2:].hex()}
    times = {"window_start", "window_end", "received_at"}
    for item in received:
        row = row_of(item)
        assert list(row) == [field["name"] for field in REJECTED_SCHEMA["fields"]]
        assert b"garbage" not in item.message.data and b"heartbeat" not in item.message.data
        same = {"reason", "collection_id", "fingerprint", "run"} | times
        assert dict(item.message.attributes) == schema | {key: row[key] for key in same if row.get(key) is not None}


def check_avro(records: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """So do the Avro files."""
    keys = ("collection_id", "pane_index", "num_reports", "status", "estimates")
    in_avro = [({key: r[key] for key in keys}, round(r["window_start"].timestamp() * 1000)) for r in records]
    in_json = [({key: r[key] for key in keys}, milliseconds(r["window_start"])) for r in rows]
    assert sorted(in_avro, key=repr) == sorted(in_json, key=repr)


def check_counts(collections: list[str], output: Path, rows: list[dict[str, Any]]) -> None:
    """The counts of the job give the last rows again, to the digit."""
    again = output.parent / "again"
    assert reestimate.main([*collections, "--min_reports=1", f"{output}", f"--output={again}"]) == 0
    made_again = [json.loads(line) for line in (again / "estimates.jsonl").read_text("utf-8").splitlines()]
    assert last_panes(made_again) == last_panes(rows)
    of_stream = list(map(without_intervals, rows))  # theirs are for all looks
    assert all(without_intervals(row) in of_stream for row in made_again)


def test_stream_from_subscription_to_files_and_topic(topics: Topics, tmp_path: Path) -> None:
    output, log = tmp_path / "output", tmp_path / "log"
    candidates = tmp_path / "candidates.txt"
    candidates.write_text("\n".join(cases.VALUES), encoding="utf-8")
    animals, places = write_json(tmp_path / "animals.json", ANIMALS), write_json(tmp_path / "places.json", PLACES)
    options = [f"--collection={animals}", f"--collection={places}", f"--candidates={candidates}"]
    options += f"""--subscription={FROM_REPORTS} --output_topic={ESTIMATES} --rejected_topic={REFUSED} --output={output}
        --streaming --window=2s --allowed_lateness=1h --min_reports=1 --deduplicate --write_counts
        --late_every=1s --flush_every=1s""".split()

    now = time.time_ns() // 1_000_000
    rng = np.random.default_rng(3)
    single, packed, direct, old, early, strange = (
        (now + rng.integers(first, last, n)).tolist()
        for first, last, n in (
            (-9000, 0, 60),
            (-9000, 0, 300),
            (-3000, 0, 8),
            (-9_000_000, -8_000_000, 5),
            (4_000_000, 5_000_000, 4),
            (-9000, 0, 3),
        )
    )
    in_windows = Counter(("animals", ms // WINDOW * WINDOW) for ms in single + direct)
    in_windows += Counter(("places", ms // WINDOW * WINDOW) for ms in packed)
    verdicts = Counter(accepted=368, duplicates=16, too_old=5, too_early=4, unknown_collection=3)
    refused = Counter({name: number for name, number in verdicts.items() if name not in ("accepted", "duplicates")})
    refused["malformed"] = 25
    assert in_windows.total() == verdicts["accepted"]

    sent_again = ANIMALS.perturb(["ant"] * 8, rng, direct)

    with started(options, log) as process:
        simulated = write_values(tmp_path / "animals.csv", single), write_values(tmp_path / "places.csv", packed)
        for collection, values, how in zip((animals, places), simulated, ("--rate=100", "--form=packed --pack=50")):
            arguments = f"--topic={REPORTS} --seed=1 --collection={collection} --values={values} {how}"
            assert uldp.main(["simulate", *arguments.split()]) == 0
        topics.publish(wire.encode_reports(sent_again, single_object=True) * 3)
        topics.publish([wire.encode_batch(ANIMALS.perturb(["ant"] * 9, rng, old + early))])
        topics.publish(wire.encode_reports(STRANGERS.perturb(["ant"] * 3, rng, strange)))
        topics.publish([b"\x02garbage"] * 25)

        def all_is_written() -> bool:
            rows = rows_in(output, "ledger")
            written = balances(rows) and sum_ledger(rows).total() >= verdicts.total()
            is_complete = written and without_heartbeats(sum_unread(rows)).total() >= refused["malformed"]
            return is_complete and last_panes(rows_in(output, "estimates")) == in_windows

        def heartbeat() -> None:
            """Emulators hold an empty pull for half a minute, and the local engine waits for it."""
            topics.publish([b"\xffheartbeat"])
            topics.pull()

        wait_until(all_is_written, process, log, heartbeat)
        rows = rows_in(output, "estimates")
        wait_until(lambda: len(topics.estimates) >= len(rows), process, log, heartbeat)
        wait_until(lambda: sum_refused(topics) >= refused, process, log, heartbeat)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0, log.read_text()

    assert "Traceback" not in log.read_text()
    assert last_panes(rows) == in_windows

    check_messages(topics, rows)
    check_avro(read_avro(output, "estimates", ESTIMATE_SCHEMA), rows)
    assert {row["status"] for row in rows if row["collection_id"] == "animals"} == {"ok"}
    # panes of places may have too few reports to tell the candidates apart
    assert all(len(row["estimates"]) == (len(cases.VALUES) if row["status"] == "ok" else 0) for row in rows)

    # what is not in the estimates stands in the ledger and among the refused
    assert sum_ledger(rows_in(output, "ledger")) == verdicts
    assert without_heartbeats(sum_unread(rows_in(output, "ledger"))) == {"malformed": 25}
    rejected = without_heartbeats(sum_rejected(read_avro(output, "rejected", REJECTED_SCHEMA)))
    assert rejected == sum_refused(topics) == refused
    check_refused(topics.refused)
    check_counts(options[:3], output, rows)


def test_equal_rows_of_different_bundles_are_all_written(tmp_path: Path) -> None:
    """Files are named so that a repeated bundle does no harm, but two bundles may well have equal rows."""
    job = replay.streaming_job([ANIMALS], Windows(size=WINDOW), allowed_lateness=3_600_000, output=str(tmp_path))
    events = []
    for arrival in (1_000_000_000_000, 1_000_000_010_000):  # two rows of the ledger: one report each, in one period
        events += [replay.arrive(arrival, wire.encode_reports(ANIMALS.perturb(["ant"], None, [1_000_000_000_000])))]
        events += [replay.watermark(arrival + 5_000)]
    events += [replay.arrive(1_000_000_020_000, [b"\x02garbage"])] * 2  # two refused in one millisecond
    replay.run(job, events)
    ledger = rows_in(tmp_path, "ledger")
    assert sum_ledger(ledger) == Counter(accepted=2)
    assert sum_unread(ledger) == Counter(malformed=2)
    assert [row["reason"] for row in read_avro(tmp_path, "rejected", REJECTED_SCHEMA)] == ["malformed"] * 2
    assert [row["num_reports"] for row in rows_in(tmp_path, "estimates")] in ([1, 2], [2, 1])


def test_ledger_lines_have_the_fields_of_the_schema(tmp_path: Path) -> None:
    job = replay.streaming_job([ANIMALS], Windows(size=WINDOW), output=str(tmp_path))
    replay.run(job, [replay.arrive(0, [b"", b"\x02garbage"])])
    (row,) = rows_in(tmp_path, "ledger")
    assert list(row) == [field["name"] for field in LEDGER_SCHEMA["fields"]]
