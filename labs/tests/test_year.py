"""The benchmark of the whole way, with few windows; and what it says of a program's memory and of a stream's rows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labs.benchmarks import __main__ as benchmarks
from labs.benchmarks.arrivals import Arrivals
from labs.benchmarks.watched import Watched

LINE = re.compile(
    r"^  (.*): \d+ s of CPU, \d+ s \(cores: [\d. ]+\), "
    r"at most (\d+) MB \([\d ]+; [+-][\d.]+ kB a (\w+) in the second half\)"
)


def test_memory_is_looked_at_while_a_program_runs() -> None:
    """A hundred megabytes, which come after a second and are gone at the end."""
    program = "import time; time.sleep(1.2); held = bytes(10**8); held = bytearray(held); time.sleep(2)"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        begin = time.monotonic()
        watched = Watched(process)
        assert watched.ended() == 0
    assert watched.wall <= time.monotonic() - begin
    assert 3 <= len(watched.memory) <= watched.wall + 2
    assert max(watched.memory) - watched.memory[0] > 90
    assert watched.cpu > 0
    assert LINE.match(f"  it: {watched.line()}")


def test_cpu_time_is_looked_at_while_a_program_runs() -> None:
    """Of the program and of a child that it has waited for, and none while both sleep."""
    busy = "import time\nwhile time.process_time() < 0.6: pass"
    program = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {busy!r}]); time.sleep(2.5)"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        watched = Watched(process)
        assert watched.ended() == 0
    assert watched.used == sorted(watched.used)
    assert 0.5 < watched.used[-1] <= watched.cpu + 0.1
    assert watched.used[-1] - watched.used[-2] < 0.1


def _row(start: str, end: str, pane: int, reports: int, group: str) -> str:
    """A row of estimates as far as it is read."""
    dimensions = f'[{{"name": "g", "value": "{group}"}}]' if group else "[]"
    begin = f'{{"window_start": "{start}", "window_end": "{end}", "pane_index": {pane}, "num_reports": {reports}'
    return f'{begin}, "estimates": [not parsed], "pooled": null, "dimensions": {dimensions}, "group": null}}\n'


def test_the_lag_of_a_window_is_that_of_its_last_row(tmp_path: Path) -> None:
    first, second = ("1970-01-01T00:00:10Z", "1970-01-01T00:00:20Z"), ("1970-01-01T00:00:20Z", "1970-01-01T00:00:30Z")
    arrivals = Arrivals(tmp_path)
    files = {
        "b": (24, _row(*first, 0, 5, "") + _row(*first, 0, 3, "x")),
        "a": (31, _row(*second, 0, 7, "") + _row(*first, 1, 6, "")),
    }
    for name, (written, rows) in files.items():
        path = tmp_path / f"estimates-{name}.jsonl"
        path.write_text(rows, "utf-8")
        os.utime(path, (written, written))
        arrivals.look()
    assert arrivals.windows == {first[0]: (1, 6, 11.0), second[0]: (0, 7, 1.0)}
    assert (arrivals.reports, arrivals.lags()) == (13, [11.0, 1.0])


@pytest.mark.slow
def test_every_program_of_the_way_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks.main(["year", "--hours=4", "--groups=2", "--values=5"]) == 0
    found = [LINE.match(line) for line in capsys.readouterr().out.splitlines()]
    programs = [
        "estimate --by=g",
        "check",
        "reestimate --window=all --by=g",
        "compare --by=g",
        "compare --windows",
        "report",
    ]
    assert [(line[1], line[3]) for line in found if line] == [(name, "window") for name in programs]


@pytest.mark.slow
def test_a_stream_counts_what_it_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks.main(["year", "--stream=5", "--groups=2", "--values=5"]) == 0
    said = capsys.readouterr().out
    assert [line[1] for line in map(LINE.match, said.splitlines()) if line] == ["--follow", "local engine"]
    assert re.findall(r"([\d,]+) reports sent, ([\d,]+) counted", said) == [("2,000", "2,000")] * 2
