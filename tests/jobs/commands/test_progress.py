"""People who wait at a terminal see how far it is; logs get a line now and then, if they ask for it."""

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
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.transforms.read_report_files import _noted
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.messages.files.file_account import Account

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
    (tmp_path / "v.csv").write_text("value,event_time\n" + "0,1000000001\n" * NUMBER)
    return tmp_path


SIMULATE = "simulate C.json --values v.csv --output r.avro --form packed --pack 10000"
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


# A line now and then, for cron and its mail


LINE = re.compile(
    r"(simulate|estimate): (\d+):([0-5]\d):([0-5]\d) elapsed, ([\d,]+) reports(?:, ([\d,]+) windows?)?, ([\d,]+) "
    r"reports/s(?:, (\d+) % read(?:, about \d+:[0-5]\d:[0-5]\d left)?)?"
)


@pytest.mark.parametrize("command", [SIMULATE, ESTIMATE])
def test_a_log_gets_a_line_in_every_interval(command, folder):
    if command is ESTIMATE:
        assert forked.run(ULDP, SIMULATE.split(), folder=folder).returncode == 0
    done = forked.run(ULDP, [*command.split(), "--progress", "5ms"], folder=folder)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stderr.splitlines()
    read = [LINE.fullmatch(line) for line in lines if "elapsed" in line]
    assert read and all(read), lines
    seen = [(int(line[5].replace(",", "")), int(line[8] or 0)) for line in read if line is not None]
    assert seen == sorted(seen), "reports and the part that is read only grow"
    assert seen[-1][0] <= NUMBER and seen[-1][1] <= 100
    assert "elapsed" not in last


def test_the_part_of_the_files_that_is_read_reaches_the_whole(folder):
    metrics.SEEN.clear()
    assert forked.run(ULDP, SIMULATE.split(), folder=folder).returncode == 0
    read, size = 0, (folder / "r.avro").stat().st_size
    with (folder / "r.avro").open("rb") as file:
        for _ in _noted(read_messages(file, "r.avro", Account()), file, size):
            assert read <= metrics.SEEN[metrics.READ_BYTES] <= size
            read = metrics.SEEN[metrics.READ_BYTES]
    assert read > 0
    assert metrics.SEEN[metrics.READ_BYTES] == size
