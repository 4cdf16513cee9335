"""What a running stream may have pickled is found after an upgrade."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from uldp_transforms.moved_modules import MOVED

PICKLED = json.loads((Path(__file__).parents[2] / "data" / "pickled_names.json").read_text(encoding="utf-8"))
"""Module -> names, as they were in release 0.4: what pipelines of 28 command lines
(each source, sink, kind of alphabet, and way of counting and estimating) pickled by name, and the classes of the rooms
that run on workers, but for those of comparisons and the sides of borrowing, which live within one call, those of
groups that borrow, which no stream had, and those of survey answers and of the planner, which no pipeline uses.
"""


@pytest.mark.parametrize("former", MOVED)
def test_a_former_name_is_the_module_of_today(former: str) -> None:
    today = importlib.import_module(MOVED[former])
    assert importlib.import_module(former) is today
    assert today.__spec__ is not None and today.__spec__.name == today.__name__ == MOVED[former]


def test_pickled_names_are_found_by_a_new_process() -> None:
    """In a process that knows only these."""
    pickled = [f"c{former}\n{name}\n.".encode() for former in MOVED for name in PICKLED.get(former, ())[:1]]
    assert pickled
    expected = [pickle.loads(each).__module__ for each in pickled]
    program = f"import pickle; print(*(pickle.loads(each).__module__ for each in {pickled!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


@pytest.mark.parametrize("module", PICKLED)
def test_a_name_that_pipelines_pickled_is_found(module: str) -> None:
    for name in PICKLED[module]:
        assert pickle.loads(f"c{module}\n{name}\n.".encode()).__name__


def test_no_other_name_is_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("uldp_transforms.ldp.utility.nothing")
