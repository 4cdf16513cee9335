"""Options that messages advise exist in some program, and those of a page's command in that program."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from requirements.companions import companions
from tests.support.commands import programs
from tests.support.project.sources import tree_of
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.engines.step_streams import FlinkSourceOptions
from uldp_transforms.jobs.old_names import OLD_OPTIONS

ROOT = Path(__file__).parents[2]
FOLDERS = ("uldp_transforms", "labs/demo", "labs/live", *(each.sources for each in companions()))
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9_]*")
FOREIGN = {
    "--name",  # of any option, in a docstring
    "--version",  # of uldp itself
    *("--savepoint_path", "--allow_non_restored_state"),  # of Flink's job server
    *("--headless", "--disable", "--hide", "--user", "--virtual", "--screenshot", "--blink", "--force"),  # of Chromium
}


@functools.cache
def options_of(program: str) -> frozenset[str]:
    """The options in the help of a program."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit):
        uldp.main([program, "--help", "all"])
    return frozenset(OPTION.findall(printed.getvalue()))


@functools.cache
def of_beam() -> frozenset[str]:
    """The options of Beam and of its job server for Flink, which one of our modules declares."""
    assert issubclass(FlinkSourceOptions, PipelineOptions)
    parser = PipelineOptions().get_all_options()
    return frozenset(f"--{name}" for name in parser)


def commands_of(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Program and options of the commands in the blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL):
        for line in re.sub(r"\\\n", " ", block).splitlines():
            command = re.match(r"(?:\$ )?uldp ([a-z-]+)([^|;&#]*)", line)
            if command is not None and command[1] in programs():
                yield command[1], OPTION.findall(command[2])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_pages_have_the_options_of_their_program(page: Path) -> None:
    unknown = [
        (program, option)
        for program, options in commands_of(page)
        for option in options
        if option not in options_of(program) | of_beam() | FOREIGN
    ]
    assert not unknown


def test_commands_are_found() -> None:
    assert sum(len(options) for page in PAGES for _, options in commands_of(page)) > 150


def test_options_in_messages_exist() -> None:
    known = (
        of_beam()
        | FOREIGN
        | {row.name for row in OLD_OPTIONS}  # in their table
        | {option for program in programs() if program != "reproduce" for option in options_of(program)}
    )
    unknown = sorted(
        {
            (str(path.relative_to(ROOT)), option)
            for path in SOURCES
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            for option in OPTION.findall(node.value)
            if option not in known
        }
    )
    assert not unknown
