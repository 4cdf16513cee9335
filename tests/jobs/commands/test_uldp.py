"""The console script: which programs there are, and what it says where one cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from uldp_transforms.jobs import uldp
from uldp_transforms.messages.native_module import decoder_name
from uldp_transforms.version import __version__


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


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_the_help_is_printed_and_is_no_fault(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: uldp PROGRAM [options]\n") and err == ""
    assert out.endswith("\nuldp PROGRAM --help explains one of them.\n")
    width = max(map(len, uldp.PROGRAMS))
    assert all(f"\n  {name:{width}}  {what}\n" in out for name, what in uldp.PROGRAMS.items())


def test_the_version_names_the_decoder_that_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main(["--version"]) == 0
    assert capsys.readouterr().out == f"uldp_transforms {__version__}, decoder: {decoder_name()}\n"


def test_a_program_has_the_words_after_its_name_and_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    program = types.SimpleNamespace(main=lambda words: given.append(words) or 7)
    monkeypatch.setitem(sys.modules, "uldp_transforms.jobs.dev_queue", program)
    assert uldp.main(["dev-queue", "--port", "0"]) == 7
    monkeypatch.setattr(sys, "argv", ["uldp", "dev-queue"])
    assert uldp.main() == 7
    assert given == [["--port", "0"], []]


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
