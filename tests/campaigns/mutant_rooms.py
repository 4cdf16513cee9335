"""Rooms of the package, mutants that are drawn in each, and the tests that judge them.

A room is a folder of the library, of a companion or of what else is judged beside them, the scripts in such a folder,
the client in JavaScript, or the compiled part.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import yaml

from requirements.companions import companions
from tests.campaigns.c_mutations import c_mutants
from tests.campaigns.javascript_mutations import javascript_mutants
from tests.campaigns.mutations import Finder, Mutant
from tests.support.project.sources import tree_of

ROOT = Path(__file__).parents[2]
LIBRARY = "uldp_transforms"
PACKAGES = "packages"
LABS = "labs"
BESIDE = (
    *("labs/demo", "labs/live", "tests/servers/pubsub"),
    *(str(each.sources.relative_to(ROOT)) for each in companions(ROOT)),
)
"""Folders of a checkout whose code is judged too."""

JAVASCRIPT = Path("clients", "javascript")
NATIVE = Path("native")

LEFT_OUT = ("test_determinism", "test_faults", "test_kafka_broker", "test_same_counts", "test_secrets")
"""Tests that judge no mutant: they compare whole jobs with each other, or start brokers."""

TESTS_OF_ROOM: dict[str, tuple[str, ...]] = {
    room: tuple(tests)
    for room, tests in yaml.load(
        Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    ).items()
}
"""The files and folders whose tests judge the mutants of a room."""

REFUSALS = {"ldp": "ldp/test_errors_ldp.py"} | dict.fromkeys(
    ("", "beam", "collector", "files", "jobs", "messages", "rows", "spec", "yaml"), "beam/accounts/test_errors_beam.py"
)
"""The tests that read the sentences of all refusals judge all rooms of a folder, and the library's own files."""


def room_of(path: str) -> str:
    """The room of a file: ``ldp/smoothing``, ``packages/report/*.js``, ``labs/demo``, ``packages/gateway/apps``,
    ``clients/javascript``, ``native``; "" is the library's own folder."""
    for whole in (JAVASCRIPT, NATIVE):
        if Path(path).is_relative_to(whole):
            return str(whole)
    parts = list(Path(path).parent.parts)
    if parts[0] == PACKAGES:
        del parts[2]  # the import package
    folder = "/".join(parts).removeprefix(LIBRARY).removeprefix("/")
    return f"{folder}/*.js" if path.endswith(".js") else folder


def find_mutants() -> list[Mutant]:
    """All mutants, in the order of files."""
    mutants: list[Mutant] = []
    folders = [ROOT / folder for folder in (LIBRARY, *BESIDE)]
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        finder = Finder(str(path.relative_to(ROOT)))
        finder.visit(tree_of(path))
        mutants += finder.found
    scripts = [path for folder in folders for path in folder.rglob("*.js")]
    for path in sorted([*scripts, *(ROOT / JAVASCRIPT / "src").glob("*.js")]):
        mutants += javascript_mutants(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / NATIVE).glob("*.[ch]")):
        mutants += c_mutants(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    return mutants


def by_room(mutants: Sequence[Mutant]) -> dict[str, list[Mutant]]:
    """Mutants of each room, in order."""
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        rooms[room_of(mutant.path)].append(mutant)
    return dict(sorted(rooms.items()))


def draw(mutants: Sequence[Mutant], room: str, number: int, seed: int) -> list[Mutant]:
    """Some mutants of one room, in order: the choice does not depend on other rooms."""
    places = random.Random(f"{seed} {room}").sample(range(len(mutants)), min(number, len(mutants)))
    return [mutants[at] for at in sorted(places)]


def judges_of(folder: Path, room: str) -> list[str]:
    """The files of tests that judge mutants of a room; none for the client in JavaScript."""
    names = [*TESTS_OF_ROOM.get(room, ()), *filter(None, [REFUSALS.get(room.partition("/")[0])])]
    roots = {name: folder if Path(name).parts[0] in (LABS, PACKAGES) else folder / "tests" for name in names}
    places = [place for name in names for place in sorted(roots[name].glob(name))]
    found = [test for place in places for test in (sorted(place.rglob("test_*.py")) if place.is_dir() else [place])]
    return [str(test.relative_to(folder)) for test in dict.fromkeys(found) if not test.stem.startswith(LEFT_OUT)]
