"""Engines of companions: found by the option, asked once, and named if they are not installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest

from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.engines import companion_engines
from uldp_transforms.jobs.engines.companion_engines import ENGINES, Engine, engine_of
from uldp_transforms.jobs.estimate.options import command_line

NAME, FOLDER = next(iter(ENGINES.items()))


def installed(*names: str, run: Any = None) -> Any:
    """Only these engines, which run so."""

    def configured(argv: Sequence[str], parser: Any, signals: Any) -> Any:
        assert parser().prog
        return run

    engine = Engine(option={"help": "an engine"}, last_words=lambda parser: "no others", configured=configured)
    points = [mock.Mock(**{"load.return_value": engine}) for _ in names]
    for point, name in zip(points, names, strict=True):
        point.name = name
    return mock.patch.object(companion_engines, "entry_points", return_value=points)


def test_an_engine_is_found_by_its_option() -> None:
    with installed(NAME, "another"):
        assert [engine_of([word]) is None for word in (f"--{NAME}", f"--{NAME}=true", NAME, "--another")] == [
            *(False, False, True, True)
        ]


def test_what_an_engine_runs_is_the_job() -> None:
    with installed(NAME, run=lambda: 7):
        assert estimate.main([f"--{NAME}"]) == 7


def test_an_engine_that_is_not_asked_leaves_the_command_line_to_beam(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(NAME):
        assert estimate.main([f"--{NAME}=false"]) == 2
    assert "--collection" in capsys.readouterr().err


def test_an_engine_that_is_not_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with installed():
        assert estimate.main([f"--{NAME}", "--window=1h"]) == 2
        assert NAME not in {action.dest for action in command_line().actions()}
    assert capsys.readouterr().err == (
        f"estimate: --{NAME} needs the package uldp-transforms-{FOLDER}, which is not installed (in a checkout: "
        f"pip install ./packages/{FOLDER})\n"
    )


def test_the_help_names_the_engine_and_its_words() -> None:
    with installed(NAME):
        parser = command_line()
    assert NAME in {action.dest for action in parser.actions()} and parser.last_words == "no others"
