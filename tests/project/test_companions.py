"""Companions: packages in packages/ that the core never names, and that reach it through its faces alone."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from requirements.companions import ROOT, Companion, companions
from tests.support.option_meanings import MOST_WITHOUT_SHORT_HELP, of_two_meanings, places_of, sometimes_switches
from tests.support.programs_of_core import parsers
from tests.support.project.sources import tree_of
from tests.support.setups import said_by
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.version import __version__

CORE = "uldp_transforms"
FACES = (
    *(f"{CORE}.{room}" for room in ("calendar_windows", "collector", "files", "lazy_names", "ldp", "messages")),
    *(f"{CORE}.{room}" for room in ("rows", "schemas", "spec", "version", "windows")),
    *(f"{CORE}.jobs.{room}" for room in ("check", "cli", "files", "kafka", "message_attributes", "pictures")),
    *(f"{CORE}.jobs.{room}" for room in ("pubsub", "records", "reestimate", "spec_options", "uldp")),
    *(f"{CORE}.jobs.engines.{module}" for module in ("companion_engines", "google_clients", "signals")),
)
"""Rooms and modules of the core from which companions import, besides the names of the package itself."""

SHARED = (
    *(f"{CORE}_report.{module}" for module in ("charts", "colours", "figures_page")),
    *(f"{CORE}_tables.{path.stem}" for path in sorted((ROOT / f"packages/tables/{CORE}_tables").glob("[a-z]*.py"))),
)
"""Modules of companions from which those import that require them: of the last one all but its program."""

FILES = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py", "tests"}
LONGEST_README = 400
"""Words: what it is for, how to install it, one command, where to go."""

COMPANIONS = companions()

pytestmark = pytest.mark.parametrize("companion", COMPANIONS, ids=lambda one: one.package)


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of each import; the name is empty if the module is imported itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from ((str(node.module), alias.name) for alias in node.names)


@functools.cache
def imports_of(path: Path) -> tuple[tuple[str, str], ...]:
    """Those of a source, looked for once."""
    return tuple(imported(tree_of(path)))


def is_allowed(module: str, name: str, own: str) -> bool:
    """Whether a module of a companion may have this import."""
    top = module.partition(".")[0]
    if top in ("apache_beam", "labs", "pipelines", "tests"):
        return False
    if not top.startswith(CORE) or top == own or module in SHARED:
        return True
    is_face = module == CORE or any(
        f"{full}.".startswith(f"{face}.") for face in FACES for full in (module, f"{module}.{name}")
    )
    return (top == CORE and is_face and not name.startswith("_")) or name == "__version__"


def test_it_has_what_a_package_has(companion: Companion) -> None:
    there = {path.name for path in companion.folder.iterdir() if not path.name.endswith((".egg-info", "__pycache__"))}
    assert there - {"build", "dist"} == FILES | {companion.package}
    assert (companion.sources / "py.typed").is_file() and list(companion.tests.glob("test_*.py"))
    assert (companion.folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    words = (companion.folder / "README.md").read_text(encoding="utf-8").split()
    assert 50 < len(words) < LONGEST_README


def test_its_programs_are_those_that_the_core_expects(companion: Companion) -> None:
    """And each is found where it is installed, as in this environment."""
    fields = said_by(companion.folder / "setup.py")
    assert fields["name"] == companion.distribution
    lines = fields.get("entry_points", {}).get(uldp.ENTRY_POINTS, ())
    points = dict(re.split(r"\s*=\s*", line) for line in lines)
    programs = {name for name, folder in uldp.COMPANIONS.items() if folder == companion.folder.name}
    assert points.keys() == programs
    for name, target in points.items():
        assert re.match(rf"{companion.package}[.:]", target)
        assert uldp.main_of(name).__module__.partition(".")[0] == companion.package


def test_its_options_mean_what_they_mean_in_the_core(companion: Companion) -> None:
    own = [name for name, folder in uldp.COMPANIONS.items() if folder == companion.folder.name]
    places = places_of(parsers() | {name: cli.parser_of(uldp.main_of(name)) for name in own})
    assert not of_two_meanings(places)
    assert not sometimes_switches(places)
    for parser in (cli.parser_of(uldp.main_of(name)) for name in own):
        options = [one for one in parser.actions() if one.option_strings and one.dest != "help"]
        assert parser.has_short_help == (len(options) > MOST_WITHOUT_SHORT_HELP)


def test_its_wheel_has_what_it_reads(companion: Companion) -> None:
    """Templates, styles and scripts, each in the folder of the package that names its kind."""
    kinds = said_by(companion.folder / "setup.py")["package_data"]
    folders = {name: companion.folder.joinpath(*name.split(".")) for name in kinds}
    shipped = {path for name, patterns in kinds.items() for kind in patterns for path in folders[name].glob(kind)}
    code = (".py", ".pyc")
    assert shipped == {path for path in companion.sources.rglob("*.*") if path.is_file() and path.suffix not in code}


def test_it_has_the_version_of_the_core_and_requires_it(companion: Companion) -> None:
    """Exactly: a companion uses modules that are no public interface."""
    fields = said_by(companion.folder / "setup.py")
    assert fields["version"] == __version__
    assert f"uldp-transforms=={__version__}" in fields["install_requires"]


def test_it_requires_the_companions_from_which_it_imports(companion: Companion) -> None:
    """Exactly too: always, or by an extra; and who is told how to get it is told of those that it always requires."""
    fields = said_by(companion.folder / "setup.py")
    always = {line.partition("==")[0]: line for line in fields["install_requires"]}
    extras = {line for lines in fields.get("extras_require", {}).values() for line in lines}
    others = {each.distribution: each for each in COMPANIONS if each != companion}
    used = {module.partition(".")[0] for path in companion.sources.rglob("*.py") for module, _ in imports_of(path)}
    needed = {name for name, each in others.items() if each.package in used}
    assert {f"{name}=={__version__}" for name in needed} <= extras | set(always.values())
    required = [each.folder.name for name, each in others.items() if name in always]
    assert uldp.folders_of(companion.folder.name).split() == [
        f"./packages/{name}" for name in (*required, companion.folder.name)
    ]


def test_tools_know_it(companion: Companion) -> None:
    """Tests and type checkers find it in a checkout, and the locks have what it requires."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    folder = companion.folder.relative_to(ROOT)
    for setting, value in (("pythonpath", folder), ("mypy_path", folder), ("packages", companion.package)):
        [listed] = re.findall(rf"^{setting} = (\[.*\])$", project, re.M)
        assert f'"{value}"' in listed, setting
    assert f"-e ./{folder}\n" in (ROOT / "requirements" / "test.in").read_text(encoding="utf-8")


def test_the_core_never_names_it(companion: Companion) -> None:
    names = re.compile(rf"{companion.package}\b|{companion.distribution}\b")
    sources = sorted((ROOT / CORE).rglob("*.py"))
    found = {str(path.relative_to(ROOT)) for path in sources if names.search(path.read_text(encoding="utf-8"))}
    assert found - {f"{CORE}/moved_modules.py", f"{CORE}/ldp/__init__.py"} == set(), "but for former names of modules"


def test_it_imports_from_faces_of_the_core_alone(companion: Companion) -> None:
    """Neither Beam, nor another companion but for what is shared, nor what begins with an underscore."""
    sources = sorted(companion.sources.rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)} imports {name} from {module}"
        for path in sources
        for module, name in imports_of(path)
        if not is_allowed(module, name, companion.package)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import uldp_transforms", True),
        ("from uldp_transforms import JobSpec", True),
        ("from uldp_transforms.jobs import cli", True),
        ("from uldp_transforms.messages.wire import pack", True),
        ("from uldp_transforms.messages.wire import _pack", False),
        ("from uldp_transforms.jobs import estimate", False),
        ("from uldp_transforms.jobs.engines.runners import reachable_output", False),
        ("from uldp_transforms.beam import windows", False),
        ("from uldp_transforms_other import x", False),
        ("from uldp_transforms_report.charts import band", True),
        ("from uldp_transforms_tables.values_file import ValuesFile", True),
        ("from uldp_transforms_tables.simulate import main", False),
        ("import apache_beam as beam", False),
    ],
)
def test_what_it_must_not_import_is_found(statement: str, expected: bool, companion: Companion) -> None:
    [(module, name)] = imported(ast.parse(statement))
    is_own = module.partition(".")[0] == companion.package
    assert is_allowed(module, name, companion.package) is (expected or is_own)


def test_tests_of_the_core_do_without_it(companion: Companion) -> None:
    """But for campaigns over the whole way, and folders of the repository: this one and that of the demo."""
    tests = [path for path in (ROOT / "tests").rglob("*.py") if not {"campaigns", "labs", "project"} & {*path.parts}]
    found = [
        str(path.relative_to(ROOT))
        for path in sorted(tests)
        for module, _ in imports_of(path)
        if module.partition(".")[0] == companion.package
    ]
    assert found == []


def test_rigs_of_companions_in_tests_of_the_core_are_few(companion: Companion) -> None:
    """Where all programs are compared, and beside gateway and page."""
    tests = [path for path in (ROOT / "tests").rglob("*.py") if not {"campaigns", "labs", "project"} & {*path.parts}]
    found = {
        str(path.relative_to(ROOT / "tests"))
        for path in tests
        for module, _ in imports_of(path)
        if module.startswith(f"packages.{companion.folder.name}.")
    }
    assert found <= {
        "jobs/kafka/test_kafka_topics.py",
        "jobs/records/test_row_frame.py",
        "support/capabilities/programs.py",
    }


def test_every_folder_is_a_companion(companion: Companion) -> None:
    folders = {path.name for path in (ROOT / "packages").iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders == {each.folder.name for each in COMPANIONS} > set(uldp.COMPANIONS.values())
    assert len(list(Path(companion.folder).glob("*/__init__.py"))) == 1
