"""Starts the parts in order, prints the addresses of the pages, and stops the parts in the order of the data flow."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from labs.live.ask_page import AskPage
from labs.live.crowd import Crowd
from labs.live.known import Known
from labs.live.live_options import Live
from labs.live.programs import NotReady, Program
from labs.live.sleep_question import COLLECTION, SHARES, TEXT, crowd_sentence
from tests.servers.pubsub.local_topics import create_topic
from tests.servers.pubsub.pubsub_server import PubsubServer
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.signals import Stop, stopped_by_signals
from uldp_transforms.jobs.records.run_records import read_records
from uldp_transforms.ldp.client.client_form import client_form
from uldp_transforms.ldp.errors import SpecError

TOPIC, SUBSCRIPTION = "projects/uldp-live/topics/reports", "projects/uldp-live/subscriptions/reports"
LATENESS = "20s"
FLUSH = "3s"
"""Rows are files that are complete, so a visitor waits for them this much longer."""

WARNING = "names no client_window"
"""Of the programs about short windows; this page rounds event times down to them."""

START_SECONDS = 120.0
DRAIN_SECONDS = 30.0


def job(live: Live) -> int:
    """Run until a signal; returns the exit code."""
    with stopped_by_signals("live: stopping\n") as stop, contextlib.ExitStack() as stack:
        try:
            return _run(live, stop, stack)
        except NotReady as error:
            print(f"live: {error}", file=sys.stderr)
            return 1


def _run(live: Live, stop: Stop, stack: contextlib.ExitStack) -> int:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    collection = Path(folder, "C.json")
    collection.write_text(json.dumps(COLLECTION.to_json()), encoding="utf-8")
    page = stack.enter_context(_serving(live.port))
    note = crowd_sentence(live.people)
    following = [live.output, "--follow", "--serve", str(live.results_port)]
    results = Program(
        "report", [*following, "--title", TEXT, "--note", f"{note} Answer it yourself: {page.address}/".strip()]
    )
    stack.callback(results.stop)
    server = stack.enter_context(PubsubServer())
    queue = {"PUBSUB_EMULATOR_HOST": server.address}
    create_topic(server.address, TOPIC)
    same = ["--collection", str(collection), "--window", live.window, "--allowed_lateness", LATENESS, "--deduplicate"]

    gateway = Program(
        "gateway", [*same, "--topic", TOPIC, "--port", "0", "--allow_origin", page.address], queue, WARNING
    )
    stack.callback(gateway.stop)
    to = gateway.says(r"POST (\S+)/reports", START_SECONDS)
    shown = results.says(r"report: (http\S+)", START_SECONDS)
    page.tell(to, shown, TEXT, note, client_form(COLLECTION))
    print(f"live: answer at {page.address}/\nlive: results at {shown}", flush=True)
    print(f"live: windows of {live.window}, so that results come soon; Ctrl-C ends it", flush=True)
    streaming = ["--subscription", SUBSCRIPTION, "--early_every", live.early_every, "--flush_every", FLUSH]
    streaming += ["--output", live.output]
    stream = Program("estimate", [*same, *streaming, "--min_reports", "1", "--smooth"], queue, WARNING)
    stack.callback(_stop_stream, stream, server)
    stack.callback(gateway.stop)  # before the stream, which then counts what the gateway sent
    stack.callback(results.ask_to_stop)
    with Crowd(to, COLLECTION, SHARES, live.people) as crowd:
        page.show(Known(live.output, crowd).now, crowd.set_share)
        programs = (results, stream, gateway)
        while not stop.wait(0.2):
            if not all(program.runs for program in programs):
                raise NotReady(f"{next(each.name for each in programs if not each.runs)} must go on, got its end")
    accepted = _accepted(to)
    stack.close()
    _say_the_end(live, crowd.acknowledged, accepted)
    return cli.DONE


@contextlib.contextmanager
def _serving(port: int) -> Iterator[AskPage]:
    try:
        server = AskPage(port)
    except OSError as error:
        raise SpecError(f"--port must be free, got {port}: {error.strerror}") from None
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _stop_stream(stream: Program, server: PubsubServer) -> None:
    """Stop the stream when it has read all published messages, or makes no progress."""
    end = time.monotonic() + DRAIN_SECONDS
    while stream.runs and server.backlog(SUBSCRIPTION) and time.monotonic() < end:
        time.sleep(0.1)
    stream.stop()


def _accepted(gateway: str) -> int:
    with urllib.request.urlopen(f"{gateway}/metrics", timeout=60) as response:
        text = response.read().decode()
    [number] = re.findall(r"^uldp_gateway_reports_accepted_total (\S+)$", text, re.MULTILINE)
    return int(float(number))


def _say_the_end(live: Live, simulated: int, accepted: int) -> None:
    record = read_records(live.output)[-1]
    counted = record.ledger["accepted"] if record.ledger else 0
    print(
        f"live: {simulated} answers of simulated people and {accepted - simulated} of the page; "
        f"the stream counted {counted}; its rows are in {live.output}",
        flush=True,
    )
