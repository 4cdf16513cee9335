"""Runs a suite on two cores and prints what it costs in CPU seconds: in all, and the dearest files and tests.

``python -m tests.campaigns.cpu_seconds`` runs the tests of ``make test``, and with ``-m slow`` those of ``make slow``;
further arguments go to pytest too, such as a file. The total is the user and system time of all processes, as ``time``
prints it. A test costs the time of its own process, and of the processes that have ended by then, also of programs of
``tests.support.forked``. A failure is printed when it happens. ``--costs FILE`` writes the seconds of each case, as
JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
MOST = 40
"""Lines of each table."""

PROPERTY = "cpu_seconds"


def spent() -> float:
    """User and system time of this process and of programs that have ended, in seconds."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    forked = sys.modules.get("tests.support.forked")
    of_programs = sum(forked.cpu_seconds) if forked else 0.0
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime + of_programs


class Tables:
    """CPU seconds by file, by test function and by case."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()
        self.cases: Counter[str] = Counter()

    def add(self, case: str, seconds: float) -> None:
        """Add the seconds of a case, which is named by its id in pytest."""
        function = case.partition("[")[0]
        self.cases[case] += seconds  # type: ignore[assignment]  # a Counter adds up floats too
        self.functions[function] += seconds  # type: ignore[assignment]  # as above
        self.files[function.partition("::")[0]] += seconds  # type: ignore[assignment]  # as above

    def lines(self) -> Iterator[str]:
        """Both tables, the dearest first."""
        for name, table in (("file", self.files), ("function", self.functions)):
            yield f"CPU s  {name}"
            yield from (f"{seconds:5.1f}  {key}" for key, seconds in table.most_common(MOST))


class Plugin:
    """Measures in each process that runs tests; the first process has the reports of all, and says what fails at once:
    a suite of hours may be stopped.
    """

    def __init__(self, plugins: pytest.PytestPluginManager | None = None) -> None:
        self.tables = Tables()
        self._plugins = plugins
        self._last = spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = spent()
        report.user_properties = [*report.user_properties, (PROPERTY, now - self._last)]
        self._last = now
        return report

    def pytest_collection_finish(self) -> None:
        self._last = spent()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, seconds in report.user_properties:
            if name == PROPERTY:
                self.tables.add(report.nodeid, float(str(seconds)))
        if report.failed and self._plugins and (terminal := self._plugins.get_plugin("terminalreporter")):
            terminal.ensure_newline()
            terminal.write_line(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.tables.lines():
            terminalreporter.write_line(line)
        if path := terminalreporter.config.getoption("--costs"):
            path.write_text(json.dumps(self.tables.cases), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=Path, metavar="FILE", help="write the CPU seconds of each case")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Plugin(config.pluginmanager), "cpu_seconds")


def main(argv: Sequence[str]) -> int:
    before = spent()
    command = [sys.executable, "-m", "pytest", "-p", "tests.campaigns.cpu_seconds", *SUITE, *argv]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as in the Makefile
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    print(f"{spent() - before:.0f} CPU seconds in all", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
