"""Rooms in the order of the flow: a module imports from rooms below its own, and every module has a name of its own."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from requirements.companions import companions
from tests.support.project.sources import tree_of
from tests.support.together import together

ROOT = Path(__file__).parents[2]
PACKAGE = "uldp_transforms"
MOST_MODULES, MOST_LINES = 16, 55

ROOMS = [  # from the top down
    {"jobs"},
    {"yaml"},
    {"beam/estimate_reports"},
    {"beam/transforms"},
    {"beam/runtime"},
    {"collector"},
    {"spec"},
    {"rows"},
    {"messages"},
    {"files"},
    {"calendar_windows"},
    {"windows"},
    {"ldp"},
    {"moved_modules"},
    {"lazy_names", "schemas", "version"},
]
LDP_ROOMS = [  # the same inside ldp
    {"client", "privacy"},
    {"share_sums"},
    {"versions"},
    {"borrowing", "collection", "discovery", "repeated_people", "sentinels", "smoothing"},
    {"estimators"},
    {"false_reports", "solvers"},
    {"model"},
    {"alphabets", "mechanisms"},
    {"client_window", "counts", "hashing", "registry", "reports", "sampling"},
    {"confidence"},
    {"checks"},
    {"errors", "reasons"},
]
WITHOUT_BEAM = {name for room in ROOMS[ROOMS.index({"collector"}) :] for name in room}

SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))
}


def levels(rooms: list[set[str]]) -> dict[str, int]:
    """Room -> height; rooms of ldp are named from there on."""
    return {name: -height for height, room in enumerate(rooms) for name in room}


EVERYWHERE = SOURCES | {
    ".".join(path.relative_to(companion.folder).with_suffix("").parts): path
    for companion in companions(ROOT)
    for path in sorted(companion.sources.rglob("*.py"))
}
"""Modules of the core and of its companions."""

FOLDERS = sorted({path.parent for path in EVERYWHERE.values()})

LEVEL, LDP_LEVEL = levels(ROOMS), levels(LDP_ROOMS)


def room_of(module: str) -> str:
    """The room of the package that a module stands in."""
    parts = module.split(".")[1:]
    return "/".join(parts[:2]) if parts[0] == "beam" else parts[0]


def room_of_ldp(module: str) -> str:
    """The room of ldp that a module stands in."""
    return module.split(".")[2]


@functools.cache
def imported(name: str) -> tuple[str, ...]:
    """Modules of the package that a module imports, wherever it does so."""
    return tuple(imports(tree_of(SOURCES[name]), name))


def imports(tree: ast.Module, name: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute"
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (module if module in SOURCES else str(node.module) for module in submodules)


FACES = (f"{PACKAGE}.__init__", f"{PACKAGE}.ldp.__init__", f"{PACKAGE}.beam.__init__")
"""What re-exports names of its own rooms."""


@together("name", [name for name in SOURCES if name not in FACES])
def test_imports_point_downwards(name: str) -> None:
    for module in imported(name):
        assert module.split(".")[0] not in ("labs", "pipelines", "tests"), f"{name} imports {module}"
        if not module.startswith(f"{PACKAGE}."):
            continue
        own, other = room_of(name), room_of(module)
        if own == other == "ldp" and module != f"{PACKAGE}.ldp":
            own, other = room_of_ldp(name), room_of_ldp(module)
            assert other == own or LDP_LEVEL[other] < LDP_LEVEL[own], f"{name} imports {module}"
        else:
            assert other == own or LEVEL[other] < LEVEL[own], f"{name} imports {module}"


def test_no_modules_import_each_other() -> None:
    """Not even over others. Where a package imports what a function needs only then, the description is all it has."""
    graph: dict[str, set[str]] = {}
    for name, path in EVERYWHERE.items():
        body = tree_of(path).body
        graph[name] = {
            module
            for node in body
            if isinstance(node, ast.ImportFrom)
            for module in [f"{node.module}.{alias.name}" for alias in node.names]
            + [str(node.module), f"{node.module}.__init__"]
            if module in EVERYWHERE and module != name
        }
    assert list(graphlib.TopologicalSorter(graph).static_order())


LATE = {f"{PACKAGE}.files.stores"}
"""Modules that import Beam inside a function, when it is needed."""


@together("name", [name for name in SOURCES if room_of(name) in WITHOUT_BEAM])
def test_rooms_without_beam_import_none(name: str) -> None:
    found = [module for module in imported(name) if module.split(".")[0] == "apache_beam"]
    assert bool(found) == (name in LATE)


EXACT = ("audit", "check", "export")
PROGRAMS = ("describe", "estimate", "reestimate.reestimate_command", "sql")
"""Programs that import no Beam; the first ones no ``scipy.stats`` either, which takes longer than all else together."""


def test_programs_that_need_no_beam_import_none() -> None:
    """Not even when they have read their command line; and ``uldp --help`` imports no numpy either."""
    program = (
        "import sys; from uldp_transforms.jobs.uldp import main; main(['--help']); bare = 'numpy' in sys.modules\n"
    )
    program += "".join(f"import uldp_transforms.jobs.{name}\n" for name in EXACT)
    program += "statistics = 'scipy.stats' in sys.modules\n"
    program += "".join(f"import uldp_transforms.jobs.{name}\n" for name in PROGRAMS)
    program += "print(bare, statistics, 'apache_beam' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False False"


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_are_seen_at_a_glance(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name not in ("__init__.py", "__main__.py")]
    assert len(modules) <= MOST_MODULES


def test_functions_fit_a_screen() -> None:
    longer = [
        f"{name}.{node.name} has {lines} lines"
        for name, path in EVERYWHERE.items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > MOST_LINES
    ]
    assert not longer


def test_every_module_has_a_name_of_its_own() -> None:
    names = Counter(path.stem for path in EVERYWHERE.values())
    twice = {name for name, number in names.items() if number > 1} - {"__init__", "__main__"}
    assert not twice


def test_every_room_is_in_the_list() -> None:
    rooms = {room_of(name) for name in SOURCES} - {"__init__", "beam/__init__"}
    assert rooms == set(LEVEL)
    assert {room_of_ldp(name) for name in SOURCES if room_of(name) == "ldp"} - {"__init__"} == set(LDP_LEVEL)


def test_contributors_read_the_same_order() -> None:
    """The table of CONTRIBUTING.md has a line for each room, from the bottom up, that names all its modules."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = text.partition("| room |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    paths = [re.findall(r"`(.+?)`", cell[0]) for cell in cells]
    assert all((ROOT / path).exists() for row in paths for path in row)
    rooms = [{path.removeprefix(f"{PACKAGE}/").rstrip("/").removesuffix(".py") for path in row} for row in paths]
    assert rooms == ROOMS[::-1]
    assert set().union(*(row for row, cell in zip(rooms, cells, strict=True) if cell[2] == "no")) == WITHOUT_BEAM
    inside = re.findall(r"^Inside `uldp_transforms/ldp/`: (.*?)\.$", text, flags=re.DOTALL | re.MULTILINE)
    order = [set(part.split(", ")) for part in " ".join(inside[0].split()).split(" -> ")]
    assert order == LDP_ROOMS
