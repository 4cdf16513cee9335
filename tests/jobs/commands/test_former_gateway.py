"""``uldp_transforms.jobs.gateway``: the former module, which names its deprecation in one line."""

from __future__ import annotations

import runpy
import sys

import pytest

from uldp_transforms.jobs import gateway, uldp

SAID = "gateway: uldp_transforms.jobs.gateway is deprecated; use uldp gateway\n"


def test_the_former_module_runs_the_companion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(uldp, "main_of", lambda name: lambda words: given.append([name, *words]) or 7)
    assert gateway.main(["--port", "0"]) == 7
    monkeypatch.setattr(sys, "argv", ["gateway", "--spool", "s"])
    assert gateway.main() == 7
    assert given == [["gateway", "--port", "0"], ["gateway", "--spool", "s"]]
    assert capsys.readouterr() == ("", SAID * 2)


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_it_is_a_program_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(uldp, "main_of", lambda name: lambda words: 3)
    monkeypatch.setattr(sys, "argv", ["gateway.py"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("uldp_transforms.jobs.gateway", run_name="__main__")
    assert ended.value.code == 3
    assert capsys.readouterr() == ("", SAID)
