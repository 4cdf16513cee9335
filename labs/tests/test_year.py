"""The benchmark of the whole way, with few windows; and what it says of a program's memory."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from labs.benchmarks import __main__ as benchmarks
from labs.benchmarks.watched import Watched

LINE = re.compile(
    r"^  (.*): \d+ s of CPU, \d+ s, at most (\d+) MB \([\d ]+; [+-][\d.]+ kB a (\w+) in the second half\)"
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


@pytest.mark.slow
def test_every_program_of_the_way_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks.main(["year", "--hours=4", "--groups=2", "--values=5"]) == 0
    found = [LINE.match(line) for line in capsys.readouterr().out.splitlines()]
    programs = ["estimate --by=g", "reestimate --window=all --by=g", "compare --by=g", "compare --windows", "report"]
    assert [(line[1], line[2]) for line in found if line] == [(name, "window") for name in programs]


@pytest.mark.slow
def test_a_stream_counts_what_it_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks.main(["year", "--stream=5", "--groups=2", "--values=5"]) == 0
    said = capsys.readouterr().out
    assert [line[1] for line in map(LINE.match, said.splitlines()) if line] == ["--follow", "local engine"]
    assert re.findall(r"([\d,]+) reports sent, ([\d,]+) counted", said) == [("2,000", "2,000")] * 2
