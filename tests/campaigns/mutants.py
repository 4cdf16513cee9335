"""Plants small faults in the library, one at a time, and counts those that no test sees.

Run it as ``python -m tests.campaigns.mutants``.

First come the faults of ``tests.campaigns.planted``, each before the tests that must see it: one that survives, or
whose old text is gone, makes the exit code 1. ``--planted`` stops there, ``--drawn`` leaves them out; with ``--only
ldp/discovery --tests discovery`` it is one room.

A mutant is the tree with one comparison, operation, constant, condition or return changed. It is made in a temporary
copy; the tree itself is never written to. All tests run once on the copy, to learn which call which function;
then each mutant meets the tests that call its function, a few of them first. A mutant whose function no test calls in
its own process meets the tests of its room in processes of their own, such as those of the gateway; one of the
JavaScript client meets the client's tests. What survives them all is printed: each such line needs a new test, or a
reason why nobody could tell the difference. A test that hangs has not found a fault: whoever waits does not know why.

Each room has at least ``LEAST_OF_ROOM`` of the mutants, and its own share in the summary.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam  # noqa: F401  # these are loaded once here, for all the processes that are forked
import hypothesis  # noqa: F401
import numpy  # noqa: F401
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401

from tests.campaigns.javascript_mutations import javascript_mutants
from tests.campaigns.mutations import Finder, Mutant
from tests.campaigns.planted import PLANTED, Plant

ROOT = Path(__file__).parents[2]
LIBRARY = "uldp_transforms"
NOT_COPIED = (
    ".git",
    ".venv",
    "site",
    "docs/images",
    "demo-output",
    "build",
    "dist",
    "__pycache__",
    ".hypothesis",
    ".*_cache",
)

ROOMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("ldp", "messages", "rows", "beam", "files", "windows.py", "calendar_windows.py"),
        ("tests/ldp", "tests/messages", "tests/beam", "tests/files"),
    ),
    "jobs": ("tests/jobs",),
    "yaml": ("tests/jobs/engines",),
}
"""Files and folders of the library from which mutants are drawn, and where the tests are that meet them."""

JAVASCRIPT = Path("clients", "javascript")

IN_PROCESS = ("tests/jobs/commands", "tests/jobs/follow", "tests/jobs/report", "tests/jobs/survey")
"""Tests of jobs that run in the process of the tests, at least some of them; they are recorded with the others."""

JAVASCRIPT_TIMEOUT = "--test-timeout=200000"
"""Milliseconds for a file of its tests, after which it fails: a loop without an end then has a name."""

LEAST_OF_ROOM = 2

LEFT_OUT = ("test_determinism", "test_failures_", "test_faults", "test_metrics", "test_same_counts", "test_secrets")

FIRST_FILES, FIRST_TESTS = 3, 14
"""A mutant meets so many tests of so many files before all others that call its function."""

ON_IMPORT = 1_000
"""Tests, drawn at random, that mutants of code that runs on import meet."""

PATIENCE = 300.0
"""Seconds for the tests of a planted fault, and for those that meet mutants in processes of their own."""

RECORDING = 3600.0
"""Seconds for all tests on the copy as it is."""

KILLED, SURVIVED, HUNG, UNCALLED = "killed", "survived", "hung", "uncalled"


# ---------------------------------------------------------------------- rooms


def find_mutants() -> list[Mutant]:
    """All mutants, in the order of rooms and files."""
    mutants = []
    for target in ROOMS:
        place = ROOT / LIBRARY / target
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            finder = Finder(str(path.relative_to(ROOT)))
            finder.visit(ast.parse(path.read_bytes()))
            mutants += finder.found
    for path in sorted((ROOT / JAVASCRIPT / "src").glob("*.js")):
        mutants += javascript_mutants(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    return mutants


def room_of(path: str) -> str:
    """The room of a file: a folder of the library and one in it (``ldp/smoothing``), or the JavaScript client."""
    parts = Path(path).parts
    return str(JAVASCRIPT) if parts[0] == JAVASCRIPT.parts[0] else "/".join(parts[1:-1][:2]) or parts[-1]


def draw(mutants: Sequence[Mutant], number: int, rng: random.Random) -> list[Mutant]:
    """A few mutants of each room, and the rest of the number from all of them; in their order."""
    of_room: dict[str, list[int]] = defaultdict(list)
    for at, mutant in enumerate(mutants):
        of_room[room_of(mutant.path)].append(at)
    some = [at for room in of_room.values() for at in rng.sample(room, min(LEAST_OF_ROOM, len(room)))][:number]
    others = sorted(set(range(len(mutants))) - set(some))
    return [mutants[at] for at in sorted(some + rng.sample(others, min(number - len(some), len(others))))]


def files_of_tests(folder: Path) -> list[str]:
    """The files of tests that are recorded."""
    places = dict.fromkeys(place for room in ROOMS.values() for place in room if place != "tests/jobs")
    found = [path for place in (*places, *IN_PROCESS) for path in sorted((folder / place).glob("**/test_*.py"))]
    return [str(path.relative_to(folder)) for path in dict.fromkeys(found) if not path.stem.startswith(LEFT_OUT)]


def files_of_room(folder: Path, path: str) -> list[str]:
    """The files of tests that meet mutants of a file which no recorded test calls: those of its room, or that name
    it."""
    words = [room_of(path).rpartition("/")[2], Path(path).stem]
    places = [place for target, places in ROOMS.items() if Path(path).parts[1] == target for place in places]
    found = [test for place in places for test in sorted((folder / place).glob("**/test_*.py"))]
    near = [test for test in found if test.parent.name == words[0]]
    return [str(test.relative_to(folder)) for test in near or [test for test in found if words[1] in test.stem]]


# ---------------------------------------------------------------------- running tests in a child process


class _Recorder:
    """A pytest plugin: which functions of the target files each passing test calls, and how long it takes."""

    def __init__(self, folder: Path):
        self.tests: dict[str, tuple[float, list[str]]] = {}
        self._folder = str(folder / LIBRARY)
        self._called: set[str] = set()
        self._keys: dict[Any, str | None] = {}

    def _profile(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in self._keys:
                inside = code.co_filename.startswith(self._folder)
                path = os.path.relpath(code.co_filename, Path(self._folder).parent) if inside else ""
                self._keys[code] = f"{path}:{code.co_firstlineno}" if inside else None
            key = self._keys[code]
            if key is not None:
                self._called.add(key)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        self._called = set()
        threading.setprofile(self._profile)  # engines work in threads of their own
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.tests[report.nodeid] = (report.duration, sorted(self._called))


def run_tests(folder: Path, tests: Sequence[str], plugin: Any = None, stop: bool = True) -> int:
    """pytest in this process, quietly; returns its exit code."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", *(["-x"] if stop else [])]
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        return int(pytest.main([*options, *tests], plugins=[plugin] if plugin else []))


def in_child(work: Callable[[], Any], limit: float) -> Any:
    """What ``work`` returns (a JSON value) in a forked process, "crash", or "timeout" after ``limit`` seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with contextlib.suppress(BaseException):
            result = json.dumps(work()).encode()
            with os.fdopen(writer, "wb") as out:
                out.write(result)
        os._exit(0)
    os.close(writer)
    content, end = b"", time.monotonic() + limit
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while True:
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "timeout"
            part = pipe.read(1 << 20)
            if not part:
                break
            content += part
    os.waitpid(child, 0)
    return json.loads(content) if content else "crash"


def record(folder: Path, files: Sequence[str]) -> dict[str, tuple[float, list[str]]]:
    """Duration and called functions of every test that passes on the copy as it is."""

    def work() -> Any:
        recorder = _Recorder(folder)
        run_tests(folder, files, recorder, stop=False)
        return recorder.tests

    found = in_child(work, RECORDING)
    if not isinstance(found, dict) or not found:
        raise SystemExit(f"mutants: the tests could not be run, got {found!r}")
    if in_child(lambda: run_tests(folder, ["--collect-only", *found]), RECORDING) != 0:
        raise SystemExit("mutants: pytest does not find its own tests by their names")
    return found


def covering(mutant: Mutant, tests: dict[str, tuple[float, list[str]]], callers: dict[str, list[str]]) -> list[str]:
    """The tests that can see a mutant: the callers of its function; of code that runs on import, some of all."""
    if mutant.begin:
        return callers.get(f"{mutant.path}:{mutant.begin}", [])
    return random.Random(mutant.line).sample(sorted(tests), min(ON_IMPORT, len(tests)))


def some_of(names: list[str], rng: random.Random) -> list[str]:
    """A few tests of the files that have most of them."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_file[name.partition("::")[0]].append(name)
    most = sorted(by_file.values(), key=len, reverse=True)[:FIRST_FILES]
    return [name for part in most for name in rng.sample(part, min(FIRST_TESTS, len(part)))]


@contextlib.contextmanager
def changed(path: Path, content: bytes) -> Iterator[None]:
    """A file with other content while the block lasts."""
    original = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(original)


def fate(mutant: Mutant, folder: Path, names: list[str], tests: dict[str, tuple[float, list[str]]]) -> str:
    """``killed``; or ``survived``, ``hung`` if its tests do not end, ``uncalled`` if there are none."""
    path = folder / mutant.path
    with changed(path, mutant.apply(path.read_bytes())):
        if path.suffix == ".js":
            return fate_of_javascript(folder)
        if not names:
            near = files_of_room(folder, mutant.path)
            return fate_of_code(pytest_in_process(folder, near)) if near else UNCALLED
        first = some_of(names, random.Random(mutant.line))
        for part in (first, sorted(set(names) - set(first))):
            limit = 60 + 10 * sum(tests[name][0] for name in part)
            code = in_child(lambda part=part: run_tests(folder, part), limit) if part else 0
            if code != 0:
                return HUNG if code == "timeout" else KILLED
    return SURVIVED


def fate_of_code(code: int | None) -> str:
    """What an exit code of pytest says about a mutant; None: the tests did not end."""
    return HUNG if code is None else SURVIVED if code in (0, pytest.ExitCode.NO_TESTS_COLLECTED) else KILLED


def fate_of_javascript(folder: Path) -> str:
    """That of a mutant of the client in JavaScript, by the client's own tests."""
    client = folder / JAVASCRIPT
    tests = [str(path.relative_to(client)) for path in sorted((client / "test").glob("*.test.js"))]
    return fate_of_code(in_process(["node", "--test", JAVASCRIPT_TIMEOUT, *tests], client, {}))


def plant_all(folder: Path) -> int:
    """Plants the faults of the list one after the other, prints their fates, and returns how many were not killed."""
    files = sorted({test for plant in PLANTED for test in plant.tests})
    if pytest_in_process(folder, files, RECORDING) != pytest.ExitCode.OK:
        raise SystemExit(f"mutants: these must pass before a fault is planted: {' '.join(files)}")
    fates: Counter[str] = Counter()
    for plant in PLANTED:
        result = fate_of_plant(plant, folder)
        fates[result] += 1
        print(f"{result:9} {plant.name:32} {plant.path}: {plant.why}", flush=True)
    print(f"{fates['killed']} of {len(PLANTED)} planted faults killed", flush=True)
    return len(PLANTED) - fates["killed"]


def fate_of_plant(plant: Plant, folder: Path) -> str:
    """``killed``, ``survived``, ``hung``, ``lost`` if its old text is not there once, or ``broken`` if no test ran."""
    path = folder / plant.path
    try:
        faulty = plant.apply(path.read_text(encoding="utf-8"))
    except ValueError:
        return "lost"
    with changed(path, faulty.encode()):
        code = pytest_in_process(folder, plant.tests)
    fates = {pytest.ExitCode.OK: SURVIVED, pytest.ExitCode.TESTS_FAILED: KILLED, None: HUNG}
    return fates.get(code, "broken")


def pytest_in_process(folder: Path, tests: Sequence[str], seconds: float = PATIENCE) -> int | None:
    """The exit code of pytest in a new process, until the first failure; None if it takes longer. The tests of streams
    start servers there."""
    options = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--hypothesis-seed=0")
    environment = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)}
    return in_process([sys.executable, "-m", "pytest", *options, *tests], folder, environment, seconds)


def in_process(
    command: Sequence[str], folder: Path, environment: dict[str, str], seconds: float = PATIENCE
) -> int | None:
    """The exit code of a program; None if it did not end, and was killed with the programs that it had started."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=folder, env=os.environ | environment, start_new_session=True, **quiet) as child:
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--planted", action="store_true", help="only the faults of the list")
    which.add_argument("--drawn", action="store_true", help="only mutants that are drawn")
    parser.add_argument("--sample", type=int, default=200, help="mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="mutants of files whose path has this text")
    parser.add_argument("--tests", default="", help="tests of files whose name has this text")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folder = Path(place) / "tree"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
        alive = 0 if args.drawn else plant_all(folder)
        if args.planted:
            return 1 if alive else 0
        mutants = [mutant for mutant in find_mutants() if args.only in mutant.path]
        chosen = draw(mutants, args.sample, random.Random(args.seed))
        files = [name for name in files_of_tests(folder) if args.tests in name]
        tests = record(folder, files)
        callers: dict[str, list[str]] = defaultdict(list)
        for name, (_, called) in tests.items():
            for key in called:
                callers[key].append(name)
        print(f"{len(mutants):,} mutants, {len(chosen)} drawn with seed {args.seed}; {len(tests):,} tests", flush=True)
        fates: dict[str, Counter[str]] = defaultdict(Counter)
        for number, mutant in enumerate(chosen, 1):
            source = (folder / mutant.path).read_bytes()
            result = fate(mutant, folder, covering(mutant, tests, callers), tests)
            fates[room_of(mutant.path)][result] += 1
            if result != KILLED:
                print(f"{result}: {mutant.show(source)}", flush=True)
            if number % 20 == 0:
                print(f"... {number} of {len(chosen)}", file=sys.stderr, flush=True)
    print("\n".join(shares(fates)))
    return 1 if alive else 0


def shares(fates: dict[str, Counter[str]]) -> Iterator[str]:
    """A line for each room and one for all: how many of its mutants were killed, and what became of the others."""
    for room, own in (*sorted(fates.items()), ("all", sum(fates.values(), Counter()))):
        others = ", ".join(f"{what} {number}" for what, number in sorted(own.items()) if what != KILLED)
        share = own[KILLED] / max(1, own.total())
        yield f"{room:24} {own[KILLED]:4} of {own.total():4} killed ({share:4.0%})  {others}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
