"""Forked programs end, print and hear signals as programs do that Python starts."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked

SAYS = "import os, sys; print(os.getcwd(), sys.argv[1:], sys.path[0]); "


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "sys.exit('why')", "raise ValueError('no')"])
def test_it_prints_and_ends_as_from_the_start(end: str, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    found = forked.run(SAYS + end, ["a", "b c"], folder=tmp_path, path=str(tmp_path / "else"))
    assert found.stdout == f"{tmp_path} ['a', 'b c'] {tmp_path / 'else'}\n"
    plain = subprocess.run([sys.executable, "-c", SAYS + end], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr.splitlines()[-1:]) == (plain.returncode, plain.stderr.splitlines()[-1:])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_reach_it(number: signal.Signals, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = forked.start("import time; print('here', flush=True); time.sleep(600)", [], log, log)
    try:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait(600) == -number
        process.kill()
        assert process.poll() == process.returncode == -number
    finally:
        process.kill()


def test_its_variables_are_those_that_were_given(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+") as log:
        program = "import os; print(sorted(os.environ))"
        assert forked.start(program, [], log, log, environment={"ONE": "1", "TWO": "2"}).wait(600) == 0
        log.seek(0)
        assert log.read() == "['ONE', 'TWO']\n"


def test_limits_of_other_sockets_are_not_its_own(tmp_path: Path) -> None:
    """Beam sets one for all sockets of a process once it looks for credentials of Google."""
    before = socket.getdefaulttimeout()
    forked.stop()
    socket.setdefaulttimeout(60)
    try:
        ends = [forked.run("print(1)", [], folder=tmp_path) for _ in range(3)]
        assert [end.stdout for end in ends] == ["1\n"] * 3
        assert not forked._server().has_ended()
    finally:
        socket.setdefaulttimeout(before)
