"""Progress of long work: a bar on terminals, or a line now and then for logs. Neither shows a value."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tqdm import tqdm

from uldp_transforms.collector import metric_names as metrics
from uldp_transforms.jobs import cli

_EVERY = 0.5  # seconds

PROGRESS: cli.Options = {
    "--progress": {
        "type": cli.duration("--progress"),
        "metavar": "DURATION",
        "help": "print a line to stderr in this interval, such as 1m: reports so far, reports per second, and for "
        "files the part that is read and the time left (default: a progress bar, on terminals only)",
    },
}


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far work is.

    Attributes:
        reports: number of reports so far.
        windows: number of rows of windows so far; None: the work has none.
        share: part of the input that was read, from 0 to 1; None if its length is unknown.
    """

    reports: int
    windows: int | None = None
    share: float | None = None


class CountedReports:
    """Counts reports; ``update`` adds some."""

    def __init__(self) -> None:
        self.reports = 0

    def update(self, number: int) -> None:
        self.reports += number


@contextlib.contextmanager
def reports_of(program: str, every: int | None, total: Callable[[], int]) -> Iterator[Any]:
    """A context that shows the number of reports, which is counted by ``update`` of what it yields.

    Args:
        program: name of the program.
        every: milliseconds between lines; None: a bar on terminals.
        total: about the final number of reports; called only for lines.
    """
    if every is None:
        with _bar(program) as bar:
            yield bar
        return
    counted, most = CountedReports(), max(total(), 1)
    with _lines(program, every, lambda: Progress(counted.reports, share=min(counted.reports / most, 1.0))):
        yield counted


@contextlib.contextmanager
def of_this_process(program: str, every: int | None = None, num_bytes: int | None = None) -> Iterator[None]:
    """A context that shows the metrics of this process: reports and windows.

    Args:
        program: name of the program.
        every: milliseconds between lines; None: a bar on terminals.
        num_bytes: total length of the input files; None if there are none.
    """
    metrics.SEEN.clear()
    if every is not None:
        with _lines(program, every, lambda: _seen(num_bytes)):
            yield
        return
    ended = threading.Event()

    def show() -> None:
        with _bar(program) as line:
            while not (line.disable or ended.wait(_EVERY)):
                seen = _seen(num_bytes)
                line.set_postfix(windows=seen.windows, refresh=False)
                line.update(seen.reports - line.n)

    with _thread(show, ended):
        yield


def _seen(num_bytes: int | None) -> Progress:
    seen = dict(metrics.SEEN)
    windows = sum(number for name, number in seen.items() if name.startswith(metrics.WINDOWS))
    share = None if not num_bytes else min(seen.get(metrics.READ_BYTES, 0) / num_bytes, 1.0)
    return Progress(seen.get(metrics.RECEIVED, 0), windows, share)


def _bar(program: str) -> tqdm[None]:
    line: tqdm[None] = tqdm(desc=program, unit=" reports", unit_scale=True, disable=None, leave=False)
    line.refresh()
    return line


@contextlib.contextmanager
def _lines(program: str, every: int, look: Callable[[], Progress]) -> Iterator[None]:
    """A context that prints a line every so many milliseconds."""
    ended, began = threading.Event(), time.monotonic()

    def show() -> None:
        before, at = Progress(0), began
        while not ended.wait(every / 1000):
            now, then = look(), time.monotonic()
            rate = max(now.reports - before.reports, 0) / (then - at)
            print(f"{program}: {line_of(now, rate, then - began)}", file=sys.stderr, flush=True)
            before, at = now, then

    with _thread(show, ended):
        yield


@contextlib.contextmanager
def _thread(show: Callable[[], None], ended: threading.Event) -> Iterator[None]:
    showing = threading.Thread(target=show, name="progress", daemon=True)
    showing.start()
    try:
        yield
    finally:
        ended.set()
        showing.join()


def line_of(progress: Progress, rate: float, seconds: float) -> str:
    """A line about work that has run for some seconds and last made ``rate`` reports per second."""
    parts = [f"{_clock(seconds)} elapsed", f"{progress.reports:,} reports"]
    if progress.windows is not None:
        parts.append(f"{progress.windows:,} window{'s' * (progress.windows != 1)}")
    parts.append(f"{rate:,.0f} reports/s")
    if progress.share is not None:
        parts.append(f"{100 * progress.share:.0f} % read")
        if 0 < progress.share < 1:
            parts.append(f"about {_clock(seconds * (1 / progress.share - 1))} left")
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
