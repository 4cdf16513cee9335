"""Rooms in the order of the flow: a module imports from rooms below its own, and every module has a name of its own."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "uldp_transforms"

ROOMS = [  # from the top down
    {"pipelines"},
    {"yaml"},
    {"estimate_reports"},
    {"count"},
    {"decode", "deduplicate", "discover_values", "estimate_distribution", "read_files", "release"},
    {"smooth_estimates"},
    {"gather"},
    {"rejected_share", "transit"},
    {"ledger"},
    {"inputs"},
    {"spec"},
    {"spec_values"},
    {"runtime"},
    {"rows"},
    {"counting"},
    {"messages"},
    {"calendar_windows"},
    {"windows"},
    {"known_reports"},
    {"ldp"},
    {"schemas", "version"},
]
LEVEL = {name: -height for height, room in enumerate(ROOMS) for name in room}
WITHOUT_BEAM = ("ldp", "known_reports", "windows", "calendar_windows", "messages", "counting", "schemas", "version")

FOLDERS = (PACKAGE, "pipelines", "schemas")
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
}


def room_of(module: str) -> str:
    """The room that a module of the package, by its installed name, stands in."""
    return module.removeprefix(f"{PACKAGE}.").split(".")[0]


def imported(name: str) -> Iterator[str]:
    """Modules that a module imports, by their installed names; relative ones only where ``pipelines`` may have them."""
    package = name.split(".") if SOURCES[name].name == "__init__.py" else name.split(".")[:-1]
    package = package[:-1] if package[-1:] == ["__init__"] else package
    for node in ast.walk(ast.parse(SOURCES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""
        if isinstance(node, ast.ImportFrom) and node.level:
            assert name.startswith("pipelines"), f"{name}: imports are absolute, but in pipelines"
            above = package[: len(package) - node.level + 1]
            yield ".".join([PACKAGE, *above, *filter(None, [node.module])])


@pytest.mark.parametrize("name", [name for name in SOURCES if name != f"{PACKAGE}.__init__"])
def test_imports_point_downwards(name: str) -> None:
    own = room_of(f"{PACKAGE}.{name}" if not name.startswith(PACKAGE) else name)
    for module in imported(name):
        assert module.split(".")[0] not in ("pipelines", "schemas"), (
            f"{name} imports {module} by its name in a checkout"
        )
        if module.startswith(f"{PACKAGE}."):
            other = room_of(module)
            assert other == own or LEVEL[other] < LEVEL[own], f"{name} imports {module}"


@pytest.mark.parametrize(
    "name", [name for name in SOURCES if room_of(name) in WITHOUT_BEAM and name.startswith(PACKAGE)]
)
def test_rooms_without_beam_import_none(name: str) -> None:
    assert not [module for module in imported(name) if module.split(".")[0] == "apache_beam"]


def test_every_module_has_a_name_of_its_own() -> None:
    names = Counter(path.stem for path in SOURCES.values())
    twice = {name for name, number in names.items() if number > 1} - {"__init__", "__main__"}
    assert not twice


def test_every_room_is_in_the_list() -> None:
    assert {room_of(name) for name in SOURCES if name.startswith(PACKAGE)} - {"__init__", PACKAGE} <= set(LEVEL)


def test_contributors_read_the_same_order() -> None:
    """The table of CONTRIBUTING.md has a line for each room, from the bottom up, that names all its modules."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = text.partition("| room |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    paths = [[ROOT / path for path in re.findall(r"`(.+?)`", cell[0])] for cell in cells]
    assert [{path.stem for path in row} for row in paths] == ROOMS[::-1]
    assert all(path.exists() for row in paths for path in row)
    without = {room for row, cell in zip(paths, cells, strict=True) if cell[2] == "no" for room in row}
    assert {path.stem for path in without} == set(WITHOUT_BEAM)
