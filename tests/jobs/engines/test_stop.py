"""A stop may be requested by a signal at any moment of waiting for it."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from unittest import mock

from uldp_transforms.jobs.engines.signals import Stop

# Raises a signal at each line of Python that waiting runs, one after the other, and before and after it.
AT_ANY_LINE = """
import signal, sys
from uldp_transforms.jobs.engines.signals import Stop

def waits(line):
    stop = Stop()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        lines += 1
        if lines == line:
            sys.settrace(None)
            signal.raise_signal(signal.SIGTERM)
        return trace

    sys.settrace(trace)
    while not stop.wait(0.01):
        pass
    sys.settrace(None)
    return lines

print(sum(waits(line) >= line for line in range(1, 60)))
"""


def test_a_signal_may_come_at_any_line() -> None:
    """With ``threading.Event`` this never ends: the handler wants the lock that the interrupted line holds."""
    command = [sys.executable, "-c", AT_ANY_LINE]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (found.returncode, found.stderr, found.stdout) == (0, "", "59\n")


def test_all_that_wait_are_woken_and_it_stays_set() -> None:
    stop, woken = Stop(), queue.SimpleQueue[bool]()
    for _ in range(5):
        threading.Thread(target=lambda: woken.put(stop.wait()), daemon=True).start()
    assert not stop.is_set()
    stop.set()
    assert [woken.get(timeout=30) for _ in range(5)] == [True] * 5
    assert stop.wait(0) and stop.wait() and stop.is_set()
    stop.set()
    assert stop.wait()


def test_waiting_has_an_end() -> None:
    begin = time.monotonic()
    assert not Stop().wait(0.05)
    assert time.monotonic() - begin >= 0.04
    for timeout, expected in ((0.05, 0.05), (-1.0, 0.0), (None, None)):  # a deadline that has passed is no fault
        stop = Stop()
        with mock.patch.object(stop, "_wakes") as wakes:
            wakes.get.side_effect = queue.Empty
            assert not stop.wait(timeout)
        wakes.get.assert_called_once_with(timeout=expected)
