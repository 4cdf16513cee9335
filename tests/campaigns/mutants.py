"""Plants small faults in the library, one at a time, and counts those that no test sees.

Run it as ``python -m tests.campaigns.mutants``.

First come the faults of ``tests.campaigns.planted``, each before the tests that must see it: one that survives makes
the exit code 1; one whose code is gone ends the program. ``--planted`` stops there, ``--drawn`` leaves them out;
``--only ldp/discovery --sample 12`` takes one room.

A mutant is the tree with one comparison, operation, constant, condition or return changed. It is made in a temporary
copy; the tree itself is never written to. The tests of a room (``tests.campaigns.mutant_rooms``) run once on the copy,
to learn which call which function; then each mutant meets the tests that call its function, a few of them first, and at
last all tests of its room in a process of their own: programs that tests start are not recorded, and of those that
share a cached result only the first. Mutants of the JavaScript client meet its tests, those of C are built first. What
survives needs a new test, or an entry in ``tests/campaigns/equivalents.yaml`` that says why nobody could tell the
difference. A test that hangs has not found a fault: whoever waits does not know why.

Both have a summary with the share of each room: killed, of those planted, or of those drawn that are not equivalent.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import io
import json
import os
import random
import resource
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
from types import CodeType, FrameType
from typing import Any

import apache_beam  # noqa: F401  # these are loaded once here, for all the processes that are forked
import hypothesis  # noqa: F401
import numpy  # noqa: F401
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401

from requirements.companions import search_path
from tests.campaigns.equivalents import reason_of
from tests.campaigns.mutant_rooms import (
    BESIDE,
    JAVASCRIPT,
    LIBRARY,
    ROOT,
    by_room,
    draw,
    find_mutants,
    judges_of,
    room_of,
)
from tests.campaigns.mutations import Mutant
from tests.campaigns.planted import PLANTED
from tests.campaigns.planted.plant import Plant, Planted, path_of_test, planted

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

JAVASCRIPT_TIMEOUT = "--test-timeout=200000"
"""Milliseconds for a file of its tests, after which it fails: a loop without an end then has a name."""

SANITIZED = [sys.executable, "-m", "tests.fuzz.native", "--messages", "20000", "--sanitize"]

LARGEST_FILE = 1 << 30
"""Bytes: a fault that writes without end must not fill the disk."""

FIRST_FILES, FIRST_TESTS = 3, 14
"""A mutant meets so many tests of so many files before all others that call its function."""

ON_IMPORT = 1_000
"""Tests, drawn at random, that mutants of code that runs on import meet."""

PATIENCE = 300.0
"""Seconds for the tests of a planted fault, and for those that meet mutants in processes of their own."""

RECORDING = 3600.0
"""Seconds for all tests on the copy as it is."""

KILLED, SURVIVED, HUNG, UNCALLED = "killed", "survived", "hung", "uncalled"
EQUIVALENT, UNBUILT = "equivalent", "unbuilt"
NOT_COUNTED = (EQUIVALENT, UNBUILT)
"""Mutants that no test could kill: the same program, or none that the compiler takes."""


# ---------------------------------------------------------------------- running tests in a child process


class _Recorder:
    """A pytest plugin: which functions of the target files each passing test calls, and how long it takes."""

    def __init__(self, folder: Path):
        self.tests: dict[str, tuple[float, list[str]]] = {}
        self._root = folder
        self._folders = tuple(str(folder / name) for name in (LIBRARY, *BESIDE))
        self._called: set[str] = set()
        self._keys: dict[CodeType, str | None] = {}

    def _add(self, code: CodeType) -> None:
        if code not in self._keys:
            inside = code.co_filename.startswith(self._folders)
            path = os.path.relpath(code.co_filename, self._root) if inside else ""
            self._keys[code] = f"{path}:{code.co_firstlineno}" if inside else None
        key = self._keys[code]
        if key is not None:
            self._called.add(key)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self._add(frame.f_code)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        self._called = set()
        threading.setprofile(self._profile)  # engines work in threads of their own
        profile = cProfile.Profile(builtins=False, subcalls=False)
        profile.enable()
        try:
            yield
        finally:
            profile.disable()
            threading.setprofile(None)
        for entry in profile.getstats():
            if isinstance(entry.code, CodeType):
                self._add(entry.code)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.tests[report.nodeid] = (report.duration, sorted(self._called))


def run_tests(folder: Path, tests: Sequence[str], plugin: Any = None, stop: bool = True) -> int:
    """pytest in this process, quietly; returns its exit code. Without a plugin, code that it compiles is not kept."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = plugin is None
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


Recording = dict[str, tuple[float, list[str]]]
"""Duration and called functions of tests, by name."""


class Recordings:
    """What tests call on the copy as it is; each file of tests runs once for all rooms."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._by_file: dict[str, Recording] = {}

    def of(self, files: Sequence[str]) -> Recording:
        """The tests of some files that pass."""
        if new := [file for file in files if file not in self._by_file]:
            found = record(self._folder, new)
            self._by_file |= {file: {} for file in new}
            for name, test in found.items():
                self._by_file[name.partition("::")[0]][name] = test
        return {name: test for file in files for name, test in self._by_file[file].items()}


def record(folder: Path, files: Sequence[str]) -> Recording:
    """Every test of these files that passes on the copy as it is."""

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


def covering(mutant: Mutant, tests: Recording, callers: dict[str, list[str]]) -> list[str]:
    """The tests that can see a mutant: the callers of its function; of code that runs on import, some of all."""
    if mutant.begin:
        return callers.get(f"{mutant.path}:{mutant.begin}", [])
    return random.Random(mutant.line).sample(sorted(tests), min(ON_IMPORT, len(tests)))


def some_of(names: list[str], rng: random.Random) -> list[str]:
    """A few tests of the files that have most of them, in their order: simple tests come first, and do not hang."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_file[name.partition("::")[0]].append(name)
    most = sorted(by_file.values(), key=len, reverse=True)[:FIRST_FILES]
    places = [sorted(rng.sample(range(len(part)), min(FIRST_TESTS, len(part)))) for part in most]
    return [part[place] for part, chosen in zip(most, places) for place in chosen]


@contextlib.contextmanager
def changed(path: Path, content: bytes) -> Iterator[None]:
    """A file with other content while the block lasts."""
    original, times = path.read_bytes(), path.stat()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # its compiled code, of the recording, is right again


def fate(mutant: Mutant, folder: Path, names: list[str], tests: Recording) -> str:
    """What became of a mutant: ``killed``, ``survived``, ``hung`` if its tests do not end, ``uncalled`` without tests,
    ``unbuilt`` if the compiler refuses it."""
    path = folder / mutant.path
    with changed(path, mutant.apply(path.read_bytes())):
        if mutant.path.startswith(str(JAVASCRIPT)):
            return fate_of_javascript(folder)
        if path.suffix in (".c", ".h"):
            return fate_of_c(path, folder)
        first = some_of(names, random.Random(mutant.line))
        for part in (first, sorted(set(names) - set(first))):
            limit = 60 + 10 * sum(tests[name][0] for name in part)
            code = in_child(lambda part=part: run_tests(folder, part), limit) if part else 0
            if code != 0:
                return HUNG if code == "timeout" else KILLED
        near = judges_of(folder, room_of(mutant.path))
        limit = PATIENCE + 10 * sum(seconds for seconds, _ in tests.values())
        return fate_of_code(pytest_in_process(folder, near, limit)) if near else UNCALLED


def fate_of_c(path: Path, folder: Path) -> str:
    """What became of a mutant of the compiled part; with sanitizers, which see what leaves its memory."""
    if not in_child(lambda: builds(path), PATIENCE):
        return UNBUILT
    result = fate_of_code(pytest_in_process(folder, judges_of(folder, room_of(str(path.relative_to(folder))))))
    return (
        result
        if result != SURVIVED
        else fate_of_code(in_process(SANITIZED, folder, {"PYTHONPATH": search_path(folder)}))
    )


def builds(path: Path) -> bool:
    """Whether the compiler takes the compiled part with this file, without a warning. For a process of its own."""
    from tests.support import compiled_part  # noqa: PLC0415  # imports the library, of which copies are tested here

    with tempfile.TemporaryDirectory() as place:
        try:
            compiled_part.build(Path(place), sources=sorted(path.parent.glob("*.c")))
        except subprocess.CalledProcessError:
            return False
    return True


def fate_of_code(code: int | None) -> str:
    """What an exit code of pytest says about a mutant; None: the tests did not end."""
    return HUNG if code is None else SURVIVED if code in (0, pytest.ExitCode.NO_TESTS_COLLECTED) else KILLED


def fate_of_javascript(folder: Path) -> str:
    """What became of a mutant of the client in JavaScript, by the client's own tests."""
    client = folder / JAVASCRIPT
    tests = [str(path.relative_to(client)) for path in sorted((client / "test").glob("*.test.js"))]
    return fate_of_code(in_process(["node", "--test", JAVASCRIPT_TIMEOUT, *tests], client, {}))


def plant_all(folder: Path, rooms: Sequence[str]) -> int:
    """Plants the faults of the list one after the other, prints their fates, and returns how many were not killed.

    Of all rooms, or of some.
    """
    plants = [(plant, planted(plant)) for plant in PLANTED]
    plants = [(plant, place) for plant, place in plants if not rooms or room_of(place.path) in rooms]
    files = sorted({path_of_test(test) for plant, _ in plants for test in plant.tests})
    if plants and pytest_in_process(folder, files, RECORDING) != pytest.ExitCode.OK:
        raise SystemExit(f"mutants: these must pass before a fault is planted: {' '.join(files)}")
    fates: dict[str, Counter[str]] = defaultdict(Counter)
    for plant, place in plants:
        result = fate_of_plant(plant, place, folder)
        fates[room_of(place.path)][result] += 1
        print(f"{result:9} {plant.name:32} {place.path}: {plant.why}", flush=True)
    print("\n".join(shares(fates)), flush=True)
    return sum(number for own in fates.values() for what, number in own.items() if what != KILLED)


def fate_of_plant(plant: Plant, place: Planted, folder: Path) -> str:
    """``killed``, ``survived``, ``hung``, or ``broken`` if no test ran."""
    with changed(folder / place.path, place.faulty.encode()):
        code = pytest_in_process(folder, [path_of_test(test) for test in plant.tests])
    fates = {pytest.ExitCode.OK: SURVIVED, pytest.ExitCode.TESTS_FAILED: KILLED, None: HUNG}
    return fates.get(code, "broken")


def pytest_in_process(folder: Path, tests: Sequence[str], seconds: float = PATIENCE) -> int | None:
    """The exit code of pytest in a new process, until the first failure; None if it takes longer. The tests of streams
    start servers there."""
    options = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--hypothesis-seed=0")
    environment = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": search_path(folder)}
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


def meet(room: str, chosen: Sequence[Mutant], folder: Path, recordings: Recordings) -> Counter[str]:
    """The fates of some mutants of a room; those that were not killed are printed."""
    recorded = bool(chosen) and chosen[0].path.endswith(".py")
    tests = recordings.of(judges_of(folder, room)) if recorded else {}
    callers: dict[str, list[str]] = defaultdict(list)
    for name, (_, called) in tests.items():
        for key in called:
            callers[key].append(name)
    fates: Counter[str] = Counter()
    for mutant in chosen:
        source = (folder / mutant.path).read_bytes()
        reason = reason_of(mutant, source)
        names = covering(mutant, tests, callers) if recorded and not reason else []
        result = EQUIVALENT if reason else fate(mutant, folder, names, tests)
        fates[result] += 1
        if result != KILLED:
            print(f"{result}: {mutant.show(source)}" + f"\n    {reason}" * bool(reason), flush=True)
    return fates


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--planted", action="store_true", help="only the faults of the list")
    which.add_argument("--drawn", action="store_true", help="only mutants that are drawn")
    parser.add_argument("--sample", type=int, default=3, help="mutants of each room, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], metavar="ROOM", help="rooms: ldp/solvers clients/javascript")
    args = parser.parse_args(argv)
    rooms = by_room(find_mutants())
    if not rooms.keys() >= set(args.only):
        parser.error(f"--only must name rooms of {', '.join(filter(None, rooms))}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folder = Path(place) / "tree"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
        alive = 0 if args.drawn else plant_all(folder, args.only)
        if args.planted:
            return 1 if alive else 0
        fates: dict[str, Counter[str]] = {}
        recordings = Recordings(folder)
        for room in args.only or rooms:
            chosen = draw(rooms[room], room, args.sample, args.seed)
            fates[room] = meet(room, chosen, folder, recordings)
            print(share(room or LIBRARY, fates[room]), file=sys.stderr, flush=True)
    print("\n".join(shares(fates)))
    return 1 if alive else 0


def share(name: str, own: Counter[str]) -> str:
    """How many mutants were killed of those that could be, and what became of the others."""
    others = ", ".join(f"{what} {number}" for what, number in sorted(own.items()) if what != KILLED)
    counted = own.total() - sum(own[what] for what in NOT_COUNTED)
    return f"{name:26} {own[KILLED]:4} of {counted:4} killed ({own[KILLED] / max(1, counted):4.0%})  {others}".rstrip()


def shares(fates: dict[str, Counter[str]]) -> Iterator[str]:
    """A line for each room and one for all."""
    for room, own in sorted(fates.items()):
        yield share(room or LIBRARY, own)
    yield share("all", sum(fates.values(), Counter()))


if __name__ == "__main__":
    sys.exit(main())
