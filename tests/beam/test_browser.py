"""What a browser really answered, through the job: its shares are those of the truth, and an alarm rings at the change.

A browser says about its own navigations whether they were disturbed (``PerformanceNavigationTiming.confidence``):
"low" or "high", replaced by either with the same probability in a published share of cases. A browser that has just
started says "low" for three minutes, and then "high".
"""

from __future__ import annotations

import csv
import gzip
import http.server
import json
import math
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import replay
from tests.support.browser import CHROMIUM, browser, needs_browser
from tests.support.messages_cases import container
from tests.support.tolerance import RATE, binomial_limits, within
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.rows.window_history import bounds_of
from uldp_transforms.windows import Windows

ANSWERS = Path(__file__).parents[1] / "data" / "browser_confidence.csv.gz"
AT_RANDOM = 0.4994798  # the rate that the browser publishes, at which it answers either value
WINDOW = 10_000
SWITCH = 180_000  # about when it begins to say "high"
VALUES = ("low", "high")


def as_krr() -> Collection:
    truth = 1 - AT_RANDOM / 2
    alphabet, mechanism = (
        {"id": "closed", "values": list(VALUES)},
        {"id": "krr", "epsilon": math.log(truth / (1 - truth))},
    )
    return Collection.from_json({"id": "browser", "version": 1, "alphabet": alphabet, "mechanism": mechanism})


def as_channel(rate: str) -> Collection:
    """The published definition: with the rate the answer is replaced by "low" or "high", each with one half."""
    other = Fraction(rate) / 2
    mechanism = {"id": "channel", "matrix": [[str(1 - other), str(other)], [str(other), str(1 - other)]]}
    alphabet = {"id": "closed", "values": list(VALUES)}
    fields = {"alphabet": alphabet, "mechanism": mechanism | {"clients": "foreign"}}
    return Collection.from_json({"id": "confidence", "version": 1} | fields)


def recording() -> list[dict[str, str]]:
    return list(csv.DictReader(gzip.decompress(ANSWERS.read_bytes()).decode().splitlines()))


def recorded(of: Collection) -> ReportBatch:
    """Its answers are reports already."""
    lines = recording()
    assert of.alphabet.known_values == VALUES
    return ReportBatch(
        fingerprint=of.fingerprint,
        cohorts=np.zeros(len(lines), np.uint16),
        payloads=np.array([[VALUES.index(line["value"])] for line in lines], np.uint8),
        event_times=np.array([round(1000 * float(line["seconds"])) for line in lines], np.int64),
        report_ids=np.arange(len(lines), dtype=np.uint64).repeat(2).view(np.uint8).reshape(-1, 16),
    )


@pytest.mark.parametrize("bounded", [True, False], ids=["files", "stream"])
def test_the_switch_of_a_browser_rings_within_two_windows(tmp_path: Path, bounded: bool) -> None:
    of = as_krr()
    batch = recorded(of)
    windows = Windows(size=WINDOW)
    if bounded:
        path = tmp_path / "in.avro"
        path.write_bytes(container([(1, message) for message in wire.encode_reports(batch)]))
        rows = replay.replay(replay.file_job([of], windows, str(path), smooth=True))
    else:
        events = []
        for end in range(WINDOW, int(batch.event_times.max()) + WINDOW, WINDOW):
            here = (batch.event_times >= end - WINDOW) & (batch.event_times < end)
            messages = [wire.encode_batch(batch[here])]
            events += [replay.arrive(end - 1, messages), replay.watermark(end + 1)]
        rows = replay.replay(replay.streaming_job([of], windows, smooth=True), events)
    health = sorted(rows["health"], key=bounds_of)
    rang = [row for row in health if row.findings[-1].fired]
    assert len(health) == 33
    assert [row.findings[-1].name for row in rang] == ["change"]
    assert SWITCH <= bounds_of(rang[0])[0] < SWITCH + 2 * WINDOW
    assert "'high' +" in rang[0].findings[-1].sentence


def test_the_share_of_high_is_0_before_the_switch_and_1_after_it(tmp_path: Path) -> None:
    lines = recording()
    [rate] = {line["randomized_trigger_rate"] for line in lines}
    of = as_channel(rate)
    path = tmp_path / "in.avro"
    path.write_bytes(container([(1, message) for message in wire.encode_reports(recorded(of))]))
    rows = replay.replay(replay.file_job([of], Windows(size=WINDOW), str(path)))["estimates"]
    assert len(rows) == 33
    held, high, people = [], {0: 0.0, 1: 0.0}, {0: 0, 1: 0}
    for row in rows:
        truth = int(bounds_of(row)[0] >= SWITCH)
        [entry] = [entry for entry in row.estimates if entry.value == "high"]
        held.append(entry.ci_low <= truth <= entry.ci_high)
        people[truth] += row.num_reports
        high[truth] += row.num_reports * (float(rate) / 2 + (1 - float(rate)) * entry.raw_frequency)
    assert sum(people.values()) == len(lines)
    assert within(np.array(sum(held)), binomial_limits(np.array(33), np.array(0.95)))
    for truth, said in high.items():
        chance = float(rate) / 2 if truth == 0 else 1 - float(rate) / 2
        assert within(np.array(round(said)), binomial_limits(np.array(people[truth]), np.array(chance))), truth


NEWEST_WITHOUT = 144
"""The newest Chromium that does not publish its rate."""

PAGE = b"""<!doctype html><title>navigations</title><body>x<script>
addEventListener("load", () => setTimeout(async () => {
  let confidence;
  for (let tries = 0; tries < 200 && !confidence; tries++) {
    await new Promise((done) => setTimeout(done, 10));
    confidence = performance.getEntriesByType("navigation")[0].confidence;
  }
  const {value, randomizedTriggerRate} = confidence ?? {};
  await fetch("/answer", {method: "POST", body: JSON.stringify({value, rate: String(randomizedTriggerRate)})});
  location.href = "/?" + Math.random();
}));
</script>"""


@contextmanager
def asking(answers: list[dict[str, Any]]) -> Iterator[str]:
    """The address of a page that reads the confidence of its own navigation, posts it, and loads itself again."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def reply(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.reply(PAGE if self.path.startswith("/?") else b"")

        def do_POST(self) -> None:
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.reply(b"")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/?"
        finally:
            server.shutdown()


@pytest.mark.slow
@needs_browser
def test_a_young_browser_calls_its_navigations_low(tmp_path: Path) -> None:
    version = subprocess.run([str(CHROMIUM), "--version"], capture_output=True, text=True, check=True).stdout
    number = re.search(r"(\d+)\.\d+", version)
    if number is None or int(number[1]) <= NEWEST_WITHOUT:
        pytest.skip(f"needs Chromium {NEWEST_WITHOUT + 1} or newer, got {version.strip()}")
    answers: list[dict[str, Any]] = []
    with asking(answers) as address, browser(tmp_path) as window:
        begin = time.monotonic()
        window.open(address)
        while len(answers) < 200 and time.monotonic() < begin + SWITCH / 1000 - 10:
            time.sleep(0.1)
    [rate] = {answer["rate"] for answer in answers}
    assert len(answers) >= 200
    of = as_channel(rate)
    payloads = np.array([[VALUES.index(answer["value"])] for answer in answers], np.uint8)
    groups = np.zeros(len(payloads), dtype=np.int64)
    estimate = of.estimate(of.count_groups(payloads, groups, 1)[0])
    low, high = estimate.intervals(1 - RATE)
    share = f"high {estimate.raw_frequencies[1]:.3f}, {low[1]:.3f} to {high[1]:.3f}"
    print(f"{len(answers)} navigations, rate {rate}: {share}")
    assert low[1] <= 0 <= high[1] < 1
