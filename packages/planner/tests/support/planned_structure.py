"""Refusals of ``uldp plan`` with public blocks and levels: calls and their sentences."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_planner.plan import plan_command as program

CITIES = {"berlin": ["mitte", "tegel"], "paris": ["nord", "sud", "est"]}
ONE, TWO = {"epsilon": 0.5, "values": ["nord"]}, {"epsilon": 2, "values": ["mitte", "sud"]}
FILES: dict[str, Any] = {
    "cities.json": CITIES,
    "numbers.json": {"berlin": 3, "paris": 4},
    "both.json": CITIES | {"rome": 4},
    "zero.json": {"berlin": 0, "paris": 4},
    "integers.json": {"a": [1, 2], "b": ["c", "d"]},
    "list.json": [1, 2],
    "single.json": {"berlin": ["mitte"], "paris": ["nord", "sud"]},
    "twice.json": {"berlin": ["mitte", "sud"], "paris": ["nord", "sud"]},
    "levels.json": [ONE, TWO],
    "sizes.json": [{"epsilon": 0.5, "values": 2}, {"epsilon": 2, "values": 3}],
    "tiny.json": [{"epsilon": 1e-300, "values": 2}, {"epsilon": 2, "values": 3}],
    "mixed.json": [ONE, {"epsilon": 2, "values": 3}],
    "down.json": [TWO, ONE],
    "unlisted.json": [{"epsilon": 0.5}, TWO],
    "strange.json": [ONE, {"epsilon": 2, "values": ["rom"]}],
    "object.json": {"levels": 3},
    "one.json": [ONE],
    "broken.json": None,
}
PEOPLE = {"people.csv": ["mitte", "nord", "sud", "sud"], "strangers.csv": ["mitte", "nord", "rom"]}


def planned(arguments: str) -> None:
    """Reads a command line in a folder with all files, and plans."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILES.items():
            Path(folder, name).write_text("{" if content is None else json.dumps(content), encoding="utf-8")
        for name, values in PEOPLE.items():
            Path(folder, name).write_text("\n".join(["value", *values, ""]), encoding="utf-8")
        Path(folder, "none.txt").write_text("\n", encoding="utf-8")
        Path(folder, "unknown.txt").write_text("rom\n", encoding="utf-8")
        os.chdir(folder)
        try:
            program.job(program.configure(f"{arguments} --reports 1000".split()))
        finally:
            os.chdir(here)


_CITIES, _LEVELS = "--blocks cities.json --epsilon 1", "--levels levels.json"
_ONE_KIND = "must have a list of values, or their number, throughout, got 4"
_MEMOS = "--reports_per_person 9 --epsilon_inf 4"

SAID = [
    (f"{_CITIES} --num_values 9", "--num_values can be given only without --blocks, got 9"),
    (f"{_CITIES} --num_sensitive 2", "--num_sensitive can be given only without --blocks, got 2"),
    (f"{_LEVELS} --num_values 9 --num_sensitive 2", "--num_sensitive can be given only without --levels, got 2"),
    (f"{_LEVELS} --blocks cities.json --sensitive x", "--sensitive can be given only without --levels, got x"),
    (f"{_LEVELS} --epsilon 1", "--epsilon can be given only without --levels, got 1.0"),
    (f"{_LEVELS} --num_values 2", "--num_values must be at least 3, those of --levels, got 2"),
    (f"--open --num_candidates 9 {_CITIES}", "--blocks can be given only without --open, got cities.json"),
    (f"--open --num_candidates 9 {_LEVELS}", "--levels can be given only without --open, got levels.json"),
    (
        f"{_CITIES} --sensitive unknown.txt",
        "cities.json: Blocks.sensitive must contain only values of Blocks.blocks, got 'rom'",
    ),
    (
        f"{_CITIES} --sensitive_share 0.5",
        "--sensitive_share needs values that are not sensitive, got 0.5 without any",
    ),
    (
        f"{_LEVELS} --sensitive_share 0.5",
        "--sensitive_share needs values that are not sensitive, got 0.5 without any",
    ),
    (
        "--blocks broken.json",
        "broken.json must be JSON, got an error in line 1: Expecting property name enclosed in double quotes",
    ),
    ("--blocks list.json", "list.json must be a JSON object, got [1, 2]"),
    ("--blocks both.json", f"both.json {_ONE_KIND}"),
    ("--blocks integers.json", "integers.json: values of 'a' must be a list of texts, got [1, 2]"),
    ("--blocks zero.json", "zero.json: a number of values must be an integer in [1, 1048576], got 0"),
    (
        "--blocks single.json --epsilon 1",
        "single.json: Blocks.blocks must have at least two values in every block, because a block of one value says "
        "the value in clear; or leave that value out of Blocks.sensitive; got one in 'berlin'",
    ),
    (
        "--blocks twice.json --epsilon 1",
        "twice.json: Blocks.blocks: values of all blocks must not repeat an entry (in Unicode NFC), got 'sud' twice",
    ),
    (f"{_CITIES} --sensitive none.txt", "none.txt must name a sensitive value, got none"),
    (f"{_CITIES} --values strangers.csv", "strangers.csv must have only values of cities.json, got 1 others"),
    (
        "--blocks cities.json --levels strange.json",
        "strange.json must have only values of cities.json, got 'rom'",
    ),
    (
        "--blocks cities.json --levels sizes.json",
        "--levels must name the values if --blocks does, and only then, got one of the two",
    ),
    ("--levels mixed.json", "mixed.json must have a list of values, or their number, throughout, got 3"),
    ("--levels tiny.json", "tiny.json: levels[0].epsilon must be at least 0.000001, got 1e-300"),
    ("--levels down.json", "down.json: levels must have epsilons that increase, got 0.5 after 2"),
    ("--levels unlisted.json", "unlisted.json: levels[0] must have values, got none"),
    ("--levels object.json", "object.json: levels must be a list of levels, got {'levels': 3}"),
    (
        "--levels one.json",
        "one.json: levels must be at least 2 levels (one is the mechanism urr, uss or urap itself), got 1",
    ),
    (
        f"{_CITIES} {_MEMOS}",
        "--epsilon_inf cannot be used with the recommended krr over blocks: mechanism.epsilon_inf must be absent for "
        "the alphabet blocks, because memos do not hide that a block changes, got 4.0",
    ),
    (
        f"--levels sizes.json --num_values 40 {_MEMOS}",
        "--epsilon_inf cannot be used with the recommended levels, of urr over closed: mechanism takes the keys "
        "levels, of, got 'epsilon_inf'",
    ),
]
REFUSED: list[tuple[type[Exception], Callable[[], object], str]] = [
    (SpecError, functools.partial(planned, arguments), said) for arguments, said in SAID
]
