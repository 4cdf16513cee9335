"""The console script: which programs there are, and what it says where one cannot start."""

from __future__ import annotations

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
