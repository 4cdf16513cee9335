"""Refusals of ``uldp live``: calls and their sentences."""

from __future__ import annotations

import argparse
import contextlib
import socket
import threading
from types import SimpleNamespace
from typing import Any
from unittest import mock

from labs.live import live_options, run_live
from labs.live.crowd import Crowd
from labs.live.programs import NotReady, Program
from labs.live.sleep_question import COLLECTION, SHARES
from tests.support.refusals.tables import Refusal


def taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, run_live._serving(first.getsockname()[1]):
        pass


def program_that_ends() -> None:
    program = Program("export", ["none.json"])
    try:
        program.says("(never)", 60.0)
    finally:
        program.stop()


def part_that_ends() -> None:
    """A run whose programs all have ended when it first looks."""
    ended: Any = SimpleNamespace(runs=False, says=lambda *_: "http://127.0.0.1:1", name="report")
    ended.stop = ended.ask_to_stop = lambda: 0
    with mock.patch.object(run_live, "Program", lambda *_: ended), contextlib.ExitStack() as stack:
        run_live._run(live_options.configure(["--port=0", "--people=0"]), threading.Event(), stack)


REFUSED: list[Refusal] = [
    (lambda: live_options.configure(["--port=70000"]), "--port must be a number from 0 to 65535, got 70000"),
    (lambda: live_options.configure(["--people=many"]), "--people must be a number from 0 to 1000, got 'many'"),
    (
        argparse.ArgumentTypeError,
        lambda: live_options._rate("1001"),
        "must be a number from 0 to 1000, got '1001'",
    ),
    (
        lambda: Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 0).set_share("fine", 0.5),
        "value must be one of well, so-so, badly, hardly at all, got 'fine'",
    ),
    (
        lambda: Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 0).set_share("badly", 1.5),
        "share must be a number from 0 to 1, got 1.5",
    ),
    (taken_port, "--port must be free, got "),
    (NotReady, program_that_ends, "export must print its address within 60 s, got 1 line(s) without it"),
    (NotReady, part_that_ends, "report must go on, got its end"),
]
