"""People who wait at a terminal see how far it is; programs that read what others print do not."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from pathlib import Path

import pytest

from tests.support import forked

COLLECTION = """{"version": 1, "id": "survey", "mechanism": {"id": "krr", "epsilon": 1.0},
  "alphabet": {"id": "closed", "values": ["0", "1"]}}"""
NUMBER = 150_000
ULDP = "import sys; from uldp_transforms.jobs.uldp import main; sys.exit(main(sys.argv[1:]))"


def on_a_terminal(argv: list[str], folder: Path) -> str:
    """What a program prints where its standard error is a terminal."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(there, "wb", buffering=0) as terminal, (folder / "printed").open("wb") as output:
        program = forked.start(ULDP, argv, output, terminal, folder=folder)
    try:
        printed = b""
        while True:
            try:
                part = os.read(here, 1 << 16)
            except OSError:  # Linux says so at the end
                break
            if not part:
                break
            printed += part
        code = program.wait(600)
    finally:
        program.kill()
    os.close(here)
    assert code == 0, printed.decode()
    return printed.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "C.json").write_text(COLLECTION)
    (tmp_path / "v.csv").write_text("value,event_time\n" + "0,1\n" * NUMBER)
    return tmp_path


SIMULATE = "simulate --collection C.json --values v.csv --output r.avro --form packed --pack 10000"
ESTIMATE = "estimate --collection C.json --input r.avro --output out --window 1h"


def test_a_terminal_shows_how_far_it_is(folder):
    for program, command in (("simulate", SIMULATE), ("estimate", ESTIMATE)):
        printed = on_a_terminal(command.split(), folder)
        assert re.search(rf"\r{program}: [0-9.]+k? reports", printed), printed
        assert printed.rstrip().splitlines()[-1].rpartition("\r")[2].startswith(f"{program}: 150000 re"), printed


def test_elsewhere_only_the_last_line_is_printed(folder):
    for command in (SIMULATE, ESTIMATE):
        done = forked.run(ULDP, command.split(), folder=folder)
        assert done.returncode == 0
        assert done.stderr.count("\n") == 1
        assert "\r" not in done.stderr
