"""The console script: which programs there are, and what it says where one cannot start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from uldp_transforms.jobs import uldp


def test_a_program_of_the_laboratory_needs_a_checkout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "labs", None)
    monkeypatch.delitem(sys.modules, "labs.reproduce", raising=False)
    assert uldp.main(["reproduce", "--list"]) == uldp.WRONG_CONFIGURATION
    said = "uldp: reproduce needs a checkout of the repository, where labs/ is, got an installed package alone\n"
    assert capsys.readouterr() == ("", said)


def test_an_unknown_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main(["estimat"]) == uldp.WRONG_CONFIGURATION
    said = f"uldp: PROGRAM must be one of {', '.join(uldp.PROGRAMS)}, got 'estimat'\n"
    assert capsys.readouterr() == ("", said)


def test_the_help_names_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main([]) == uldp.DONE
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(uldp.PROGRAMS)


@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"]])
def test_a_reader_that_ends_first_is_no_fault(words: list[str]) -> None:
    """As ``head -1`` does; the reader has ended before the program starts."""
    reader, writer = os.pipe()
    os.close(reader)
    program = "import sys; from uldp_transforms.jobs.uldp import main; sys.exit(main())"
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-c", program, *words], stdout=output, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (uldp.NO_READER, b"")


def test_another_broken_pipe_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(words: object) -> int:
        raise BrokenPipeError("of a socket")

    monkeypatch.setattr(uldp, "_run", broken)
    with pytest.raises(BrokenPipeError, match="of a socket"):
        uldp.main([])
