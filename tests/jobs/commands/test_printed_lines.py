"""What programs print, limit by limit: tables of text, and lines of progress."""

from __future__ import annotations

import contextlib
import io
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.jobs.files import progress
from uldp_transforms.jobs.files.progress import Progress, line_of, of_this_process, reports_of
from uldp_transforms.jobs.files.text_table import aligned, printable

# ---------------------------------------------------------------------- tables of text


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    lines = [("a", "number", "b"), ("longer", "1", "x"), ("", "22", "")]
    assert aligned(lines) == ["a       number  b", "longer       1  x", "            22"]
    assert aligned(lines, left=(1, 2)) == ["     a  number  b", "longer  1       x", "        22"]
    assert aligned(lines, left=()) == ["     a  number  b", "longer       1  x", "            22"]


def test_terminals_get_no_control_characters() -> None:
    assert printable("a\x1b[2J\u00e9\r\n\u202e ok") == "a\ufffd[2J\u00e9\ufffd\ufffd\ufffd ok"


# ---------------------------------------------------------------------- progress


@pytest.mark.parametrize(
    ("told", "seconds", "line"),
    [
        (Progress(1, 2), 59.4, "0:00:59 elapsed, 1 reports, 2 windows, 1,234 reports/s"),
        (Progress(1000, 1, 0.0), 59.6, "0:01:00 elapsed, 1,000 reports, 1 window, 1,234 reports/s, 0 % read"),
        (
            Progress(1, share=0.2),
            3600,
            "1:00:00 elapsed, 1 reports, 1,234 reports/s, 20 % read, about 4:00:00 left",
        ),
        (
            Progress(1, 0, share=0.999),
            86_399,
            "23:59:59 elapsed, 1 reports, 0 windows, 1,234 reports/s, 100 % read, about 0:01:26 left",
        ),
        (Progress(1, share=1.0), 86_400, "24:00:00 elapsed, 1 reports, 1,234 reports/s, 100 % read"),
    ],
)
def test_lines_of_progress(told: Progress, seconds: float, line: str) -> None:
    assert line_of(told, 1233.7, seconds) == line


class Intervals:
    """An event that ends after some waits, and time that passes by them alone; work may be done in each."""

    def __init__(self, *work: Any):
        self.now, self.work, self.waits = 100.0, list(work), list[float]()

    def monotonic(self) -> float:
        return self.now

    def is_over(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        if not self.work:
            return True
        self.work.pop(0)()
        return False


@contextlib.contextmanager
def intervals(monkeypatch: pytest.MonkeyPatch, *work: Any) -> Iterator[Intervals]:
    """Lines are printed at once, in this thread, before the block."""
    clock = Intervals(*work)
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=clock.monotonic))
    event = types.SimpleNamespace(wait=clock.is_over, set=lambda: None)
    started = types.SimpleNamespace(start=lambda: None, join=lambda: None)

    def thread(target: Any, name: str, daemon: bool) -> Any:
        assert (name, daemon) == ("progress", True)
        target()
        return started

    monkeypatch.setattr(progress, "threading", types.SimpleNamespace(Event=lambda: event, Thread=thread))
    yield clock


def test_a_line_has_the_rate_of_its_interval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the time from the start; windows and bytes of this process; a rate is never below 0."""

    def seen(**numbers: int) -> Any:
        names = {"reports": metrics.RECEIVED, "bytes": metrics.READ_BYTES, "some": f"{metrics.WINDOWS}a"}
        names["more"] = f"{metrics.WINDOWS}b"
        return lambda: [metrics.SEEN.__setitem__(names[name], number) for name, number in numbers.items()]

    metrics.SEEN[metrics.RECEIVED] = 77  # of another run in this process
    work = seen(reports=100, some=1), seen(reports=400, bytes=250, more=2), seen(reports=300, bytes=1200)
    with intervals(monkeypatch, *work) as clock, of_this_process("estimate", 2000, 1000):
        pass
    assert capsys.readouterr().err.splitlines() == [
        "estimate: 0:00:02 elapsed, 100 reports, 1 window, 50 reports/s, 0 % read",
        "estimate: 0:00:04 elapsed, 400 reports, 3 windows, 150 reports/s, 25 % read, about 0:00:12 left",
        "estimate: 0:00:06 elapsed, 300 reports, 3 windows, 0 reports/s, 100 % read",
    ]
    assert clock.waits == [2.0] * 4
    with intervals(monkeypatch, seen(reports=5)), of_this_process("estimate", 500):
        pass
    assert capsys.readouterr().err == "estimate: 0:00:00 elapsed, 5 reports, 0 windows, 10 reports/s\n"
    metrics.SEEN.clear()


@pytest.mark.parametrize(
    ("total", "line"), [(4, "25 % read, about 0:00:03 left"), (1, "100 % read"), (0, "100 % read")]
)
def test_reports_are_counted_while_they_are_made(
    total: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted: list[Any] = []
    created = progress.CountedReports
    monkeypatch.setattr(progress, "CountedReports", lambda: counted.append(created()) or counted[-1])
    with (
        intervals(monkeypatch, lambda: counted[0].update(1)),
        reports_of("simulate", 1000, lambda: total) as line_of_reports,
    ):
        assert line_of_reports is counted[0]
        line_of_reports.update(2)
        assert line_of_reports.reports == 3
    assert capsys.readouterr().err == f"simulate: 0:00:01 elapsed, 1 reports, 1 reports/s, {line}\n"


def test_a_thread_ends_with_its_work() -> None:
    """After a failure, too."""
    for error in (None, KeyError):
        with contextlib.suppress(KeyError), of_this_process("estimate", 60_000):
            assert "progress" in [thread.name for thread in threading.enumerate()]
            if error is not None:
                raise error
        assert "progress" not in [thread.name for thread in threading.enumerate()]


def test_a_bar_without_a_terminal_shows_nothing() -> None:
    """The number of rows is not asked for, which takes time."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told), reports_of("simulate", None, lambda: 1 // 0) as bar:
        bar.update(5)
    assert told.getvalue() == ""
    assert bar.disable
