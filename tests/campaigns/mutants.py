"""Plants small faults in the library, one at a time, and counts those that no test sees.

Run it as ``python -m tests.campaigns.mutants``.

First come the faults of ``tests.campaigns.planted``, each before the tests that must see it: one that survives, or
whose old text is gone, makes the exit code 1. ``--planted`` stops there.

A mutant is the tree with one comparison, operation, constant, condition or return changed. It is made in a temporary
copy; the tree itself is never written to. All tests run once on the copy, to learn which call which function;
then each mutant meets the tests that call its function, a few of them first. What survives them all is printed: each
such line needs a new test, or a reason why nobody could tell the difference.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
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

TARGETS = (
    "ldp",
    "messages",
    "rows",
    "windows.py",
    "beam/accounts",
    "beam/runtime",
    "beam/spec",
    "beam/transforms",
    "beam/estimate_reports.py",
)

PLACES = ("tests/ldp", "tests/messages", "tests/beam", "tests/jobs/commands/test_plan.py")
"""Tests that mutants meet, but for those that take too long for what they find here."""

LEFT_OUT = ("test_determinism", "test_failures_", "test_faults", "test_metrics", "test_same_counts", "test_secrets")

FIRST_FILES, FIRST_TESTS = 3, 14
"""A mutant meets so many tests of so many files before all others that call its function."""

ON_IMPORT = 1_000
"""Tests, drawn at random, that mutants of code that runs on import meet."""


# ---------------------------------------------------------------------- mutants


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A piece of a file to be replaced: lines and columns count from 1 and 0, columns in bytes.

    ``begin`` is the first line of the function around it, 0 for code that runs on import.
    """

    path: str
    line: int
    start: int
    end_line: int
    end: int
    text: str
    function: str
    begin: int
    kind: str

    def apply(self, source: bytes) -> bytes:
        lines = source.splitlines(keepends=True)
        before = b"".join(lines[: self.line - 1]) + lines[self.line - 1][: self.start]
        after = lines[self.end_line - 1][self.end :] + b"".join(lines[self.end_line :])
        return before + self.text.encode() + after

    def show(self, source: bytes) -> str:
        lines = source.splitlines()
        old = b" ".join(line.strip() for line in lines[self.line - 1 : self.end_line]).decode()
        mutated = self.apply(source).splitlines()[self.line - 1 : self.end_line]
        new = b" ".join(line.strip() for line in mutated).decode()
        return f"{self.path}:{self.line} {self.function} [{self.kind}]\n    - {old}\n    + {new}"


COMPARISONS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
OPERATIONS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}


class _Finder(ast.NodeVisitor):
    """Collects the mutants of one file; texts of errors, annotations and docstrings are left alone."""

    def __init__(self, path: str):
        self.found: list[Mutant] = []
        self._path = path
        self._function: list[str] = []
        self._begin = 0

    def _add(self, kind: str, node: Any, new: ast.AST | str) -> None:
        text = new if isinstance(new, str) else f"({ast.unparse(new)})"
        place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        function = ".".join(self._function) or "on import"
        self.found.append(Mutant(self._path, *place, text, function, self._begin, kind))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        around = self._begin
        self._begin = around or min(part.lineno for part in (node, *node.decorator_list))
        self._function.append(node.name)
        for line in node.body:
            self.visit(line)
        self._function.pop()
        self._begin = around

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._function.append(node.name)
        for line in node.body:
            self.visit(line)
        self._function.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("raise removed", node, "pass")

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                self._add("comparison", node, ast.Compare(node.left, ops, node.comparators))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = isinstance(node.left, (ast.JoinedStr, ast.Constant)) and isinstance(
            getattr(node.left, "value", ""), str
        )
        if type(node.op) in OPERATIONS and not texts:
            self._add("arithmetic", node, ast.BinOp(node.left, OPERATIONS[type(node.op)](), node.right))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATIONS:
            mutated = ast.AugAssign(node.target, OPERATIONS[type(node.op)](), node.value)
            self._add("arithmetic", node, ast.unparse(mutated))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._add("and/or", node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._add("sign", node, node.operand)
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("constant", node, str(not value))
        elif isinstance(value, int):
            self._add("constant", node, str(value + 1))
        elif isinstance(value, float):
            self._add("constant", node, repr(value * 1.5 if value else 1.0))

    def visit_If(self, node: ast.If) -> None:
        self._add("condition", node.test, ast.UnaryOp(ast.Not(), node.test))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add("return", node, "return None")
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass


def find_mutants() -> list[Mutant]:
    """All mutants of the target files, in their order."""
    mutants = []
    for target in TARGETS:
        place = ROOT / LIBRARY / target
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            finder = _Finder(str(path.relative_to(ROOT)))
            finder.visit(ast.parse(path.read_bytes()))
            mutants += finder.found
    return mutants


def files_of_tests(folder: Path) -> list[str]:
    """The files of tests that mutants meet."""
    patterns = [part if part.endswith(".py") else f"{part}/test_*.py" for part in PLACES]
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return [str(path.relative_to(folder)) for path in found if not path.stem.startswith(LEFT_OUT)]


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

    found = in_child(work, 3600)
    if not isinstance(found, dict) or not found:
        raise SystemExit(f"mutants: the tests could not be run, got {found!r}")
    if in_child(lambda: run_tests(folder, ["--collect-only", *found]), 3600) != 0:
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


def fate(mutant: Mutant, folder: Path, names: list[str], tests: dict[str, tuple[float, list[str]]]) -> str:
    """``killed``, ``timeout`` (counts as killed), ``survived``, or ``uncalled`` if no test calls the function."""
    if not names:
        return "uncalled"
    first = some_of(names, random.Random(mutant.line))
    path = folder / mutant.path
    original = path.read_bytes()
    path.write_bytes(mutant.apply(original))
    try:
        for part in (first, sorted(set(names) - set(first))):
            limit = 60 + 10 * sum(tests[name][0] for name in part)
            code = in_child(lambda part=part: run_tests(folder, part), limit) if part else 0
            if code != 0:
                return "timeout" if code == "timeout" else "killed"
    finally:
        path.write_bytes(original)
    return "survived"


def plant_all(folder: Path) -> int:
    """Plants the faults of the list one after the other, prints their fates, and returns how many were not killed."""
    files = sorted({test for plant in PLANTED for test in plant.tests})
    if pytest_in_process(folder, files) != pytest.ExitCode.OK:
        raise SystemExit(f"mutants: these must pass before a fault is planted: {' '.join(files)}")
    fates: Counter[str] = Counter()
    for plant in PLANTED:
        result = fate_of_plant(plant, folder)
        fates[result] += 1
        print(f"{result:9} {plant.name:32} {plant.path}: {plant.why}", flush=True)
    print(f"{fates['killed']} of {len(PLANTED)} planted faults killed", flush=True)
    return len(PLANTED) - fates["killed"]


def fate_of_plant(plant: Plant, folder: Path) -> str:
    """``killed``, ``survived``, ``lost`` if its old text is not there once, or ``broken`` if no test could run."""
    path = folder / plant.path
    original = path.read_text(encoding="utf-8")
    try:
        path.write_text(plant.apply(original), encoding="utf-8")
        code = pytest_in_process(folder, plant.tests)
        return {pytest.ExitCode.OK: "survived", pytest.ExitCode.TESTS_FAILED: "killed"}.get(code, "broken")
    except ValueError:
        return "lost"
    finally:
        path.write_text(original, encoding="utf-8")


def pytest_in_process(folder: Path, tests: Sequence[str]) -> int:
    """The exit code of pytest in a new process, until the first failure; the tests of streams start servers there."""
    options = ("-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0")
    command = (sys.executable, "-m", "pytest", *options, *tests)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, check=False, **quiet).returncode


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--planted", action="store_true", help="only the faults of the list")
    parser.add_argument("--sample", type=int, default=200, help="mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="mutants of files whose path has this text")
    parser.add_argument("--tests", default="", help="tests of files whose name has this text")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folder = Path(place) / "tree"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
        alive = plant_all(folder)
        if args.planted:
            return 1 if alive else 0
        mutants = [mutant for mutant in find_mutants() if args.only in mutant.path]
        chosen = random.Random(args.seed).sample(mutants, min(args.sample, len(mutants)))
        files = [name for name in files_of_tests(folder) if args.tests in name]
        tests = record(folder, files)
        callers: dict[str, list[str]] = defaultdict(list)
        for name, (_, called) in tests.items():
            for key in called:
                callers[key].append(name)
        print(f"{len(mutants):,} mutants, {len(chosen)} drawn with seed {args.seed}; {len(tests):,} tests", flush=True)
        fates: Counter[str] = Counter()
        for number, mutant in enumerate(chosen, 1):
            source = (folder / mutant.path).read_bytes()
            result = fate(mutant, folder, covering(mutant, tests, callers), tests)
            fates[result] += 1
            if result in ("survived", "uncalled"):
                print(f"{result}: {mutant.show(source)}", flush=True)
            if number % 20 == 0:
                print(f"... {number}: {dict(fates)}", file=sys.stderr, flush=True)
    seen = fates["killed"] + fates["timeout"]
    print(f"{seen} of {len(chosen)} killed ({seen / max(1, len(chosen)):.0%}): {dict(fates)}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
