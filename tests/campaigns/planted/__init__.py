"""Faults that were once made, or might be, and that the tests of the default suite must find each time.

They are listed in the YAML files of this folder. ``tests.campaigns.mutants`` plants them before the ones it draws;
``tests/project/test_planted.py`` proves that each is still to be had, its old text standing in its file exactly once,
and that every room has some.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.campaigns.planted.plant import Plant

LISTS = sorted(Path(__file__).parent.glob("*.yaml"))

PLANTED = tuple(
    Plant(**entry | {"tests": tuple(entry["tests"])})
    for path in LISTS
    for entry in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
)
