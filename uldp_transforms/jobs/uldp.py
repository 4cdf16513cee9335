"""The console script ``uldp``: its first argument names a program. Only that program is imported.

Programs of this package are found without reading entry points, which takes time; those of companions, which are
packages of their own, by entry points.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from uldp_transforms.jobs.old_names import todays
from uldp_transforms.messages.native_module import decoder_name
from uldp_transforms.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DONE, WRONG_CONFIGURATION, DISK_FULL, NO_READER = 0, 2, 6, 141
"""Exit codes of all programs; the last one is that of a shell for a program that SIGPIPE ended."""

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
"""Numbers of the errors of a full disk, and of a quota that is used up."""

GROUPS = {
    "ask": {
        "describe": "describe a collection in plain words, for a privacy review or a consent dialog",
        "audit": "prove the epsilon of a collection in exact arithmetic",
        "plan": "compare mechanisms before data are collected, and write a collection",
        "evaluate": "try mechanisms on your own data: error, coverage and time",
        "tokens": "learn the tokens of a prefix alphabet from public text",
        "export": "write the client form of a collection: all symbols in order, weights, sizes, fingerprint",
    },
    "collect": {
        "gateway": "accept reports over HTTP, pack them, and publish them to Pub/Sub or Kafka",
        "sql": "print a query that counts reports in a database or a data lake",
    },
    "estimate": {
        "estimate": "the main job: reports in, windowed estimates out, from files or a stream",
        "reestimate": "estimate stored counts again: otherwise, in longer windows, or the whole period as one",
        "compare": "compare groups, or consecutive windows, of a directory: which differences are real",
        "compact": "merge the many small files of a stream into few, with the same rows",
        "workers": "run a pool of Python workers beside a machine of Flink or Spark",
        "survey": "estimate shares of yes from survey answers: crosswise, forced response and other designs",
        "regress": "regress the truthful answers of a survey on columns that are known in the clear",
        "navigations": "estimate undisturbed navigations and loading times from a browser's randomized answers",
    },
    "read": {
        "report": "write a page and a picture of a directory of estimates, or serve a page that follows a stream",
        "check": "check the runs in an output directory, for cron jobs and alerts",
    },
    "try": {
        "simulate": "perturb the values of a CSV or Parquet file, as clients would",
        "completion": "print a script that completes the command line in bash, zsh or fish",
    },
}
"""Programs of this package and of its companions with their descriptions, by what one wants to do."""

PROGRAMS = {name: what for programs in GROUPS.values() for name, what in programs.items()}
"""Programs and their descriptions; each one of this package is a module or package of ``uldp_transforms.jobs`` with
``main(argv)``."""

LABORATORY = {
    "demo": "run a month of flights, from simulated clients to a page in the browser",
    "live": "run a survey page, a gateway, a stream and its results page, all on this machine",
    "dev-queue": "run a Pub/Sub server in memory on this machine, for tests of the gateway and of streams",
    "reproduce": "run the experiments of the papers",
}
"""Programs of a checkout, which are not installed, and their descriptions; each is a module or package of ``labs`` with
``main(argv)``."""

COMPANIONS = {
    "plan": "planner",
    "evaluate": "planner",
    "tokens": "planner",
    "gateway": "gateway",
    "compare": "compare",
    "compact": "follow",
    "report": "report",
    "survey": "survey",
    "regress": "survey",
    "navigations": "survey",
    "simulate": "tables",
}
"""Programs of companions, and the folder in packages/ of each, which is installed as ``uldp-transforms-FOLDER``."""

REQUIRED = dict.fromkeys(("planner", "report", "survey"), ("tables",))
"""Folder of a companion -> the folders of those that it requires."""

ENTRY_POINTS = "uldp_transforms.programs"
"""The group of entry points in which companions and other packages register programs: ``name = module:main``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program named by the first argument, with the other arguments.

    Returns:
        The exit code of the program; 2 if there is no such program; 6 if the standard output is on a full disk; 141 if
        what reads it ended first, as in ``uldp describe C.json | head -1``.
    """
    if sys.stdout is None:  # it was closed, as by >&-
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the process ends
    try:
        try:
            return _run(sys.argv[1:] if argv is None else list(argv))
        finally:  # also where a program exits
            sys.stdout.flush()
    except OSError as error:
        code = code_of_output(error)
        if code is None:
            raise
        return code


def run_program(name: str) -> NoReturn:
    """Run a program with the arguments of this process, and exit with its code; for ``python -m``."""
    sys.exit(main([name, *sys.argv[1:]]))


def code_of_output(error: OSError) -> int | None:
    """The exit code if an error is one of the standard output; what is left of the output then goes nowhere.

    Returns:
        141 if nobody reads it any more, 6 if its disk is full (which is printed), None for errors of anything else.
    """
    try:
        if isinstance(error, BrokenPipeError):
            print(flush=True)
        elif error.errno in FULL:
            sys.stdout.flush()  # what could not be written is still there
    except BrokenPipeError:
        code = NO_READER
    except OSError as full:
        print(f"uldp: a disk is full: {full}", file=sys.stderr)
        code = DISK_FULL
    else:
        return None
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


class Unavailable(Exception):
    """A program that is not there or cannot be imported; the message says why, and what to do."""


def main_of(name: str) -> Callable[[Sequence[str]], int]:
    """The function that runs a program of this package, a companion or another package; raises Unavailable."""
    if name in LABORATORY or (name in PROGRAMS and name not in COMPANIONS):
        return _own_main(name)
    entry = programs_of_others().get(name)
    if entry is None:
        raise Unavailable(_how_to_get(name))
    try:
        program: Callable[[Sequence[str]], int] = entry.load()
    except Exception as error:
        where = f"program {name!r} of the package {_package_of(entry)}"
        raise Unavailable(" ".join(f"{where} cannot be started: {error}".split())) from error
    return program


def programs_of_others() -> dict[str, EntryPoint]:
    """The programs of installed companions and other packages. No other package replaces a name of this one."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # programs of this package do not need it

    own = (*PROGRAMS, *LABORATORY)
    return {
        entry.name: entry
        for entry in entry_points(group=ENTRY_POINTS)
        if entry.name not in own or (entry.name in COMPANIONS and _package_of(entry) == companion_of(entry.name))
    }


def described() -> dict[str, str]:
    """All programs of this package, its companions and a checkout, and of other packages, with what they do."""
    foreign = {name: entry for name, entry in sorted(programs_of_others().items()) if name not in COMPANIONS}
    return PROGRAMS | LABORATORY | {name: f"of {_package_of(entry)}" for name, entry in foreign.items()}


def _own_main(name: str) -> Callable[[Sequence[str]], int]:
    folder = "labs" if name in LABORATORY else "uldp_transforms.jobs"
    module = f"{folder}.{name.replace('-', '_')}"
    try:
        program: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if name not in LABORATORY or error.name not in (folder, module):  # or another package has the folder's name
            raise
        called = f"python -m pipelines.{name.replace('-', '_')}"
        raise Unavailable(
            f"{name} runs in a checkout of the repository, not from an installed package: {called} in its folder"
        ) from error
    main: Callable[[Sequence[str]], int] = program.main
    return main


def _run(words: Sequence[str]) -> int:
    """Run a program, or list all programs."""
    if not words or words[0] in ("-h", "--help") or words == ["help"]:
        _print_help()
        return DONE
    if words[0] == "--version":
        print(f"uldp_transforms {__version__}, decoder: {decoder_name()}")
        return DONE
    if words[0] == "help":
        words = [words[1], "--help", *words[2:]]
    words = todays(words)
    try:
        program = main_of(words[0])
    except Unavailable as reason:
        print(f"uldp: {reason}", file=sys.stderr)
        return WRONG_CONFIGURATION
    return int(program(words[1:]))


def _print_help() -> None:
    """Print all programs: of this package and its companions by purpose, of a checkout, and of other packages."""
    absent = COMPANIONS.keys() - programs_of_others().keys()
    every = {name: what for name, what in described().items() if name not in absent}
    foreign = every.keys() - PROGRAMS.keys() - LABORATORY.keys()
    others = {name: every[name] for name in sorted(foreign)}
    groups = GROUPS | {"in a checkout": LABORATORY, "of other packages": others}
    width = max(map(len, every))
    print("usage: uldp PROGRAM [options]\n\nEstimates distributions of values that people do not disclose.")
    for group, programs in groups.items():
        lines = [f"  {name:{width}}  {what}" for name, what in programs.items() if name in every]
        if lines:
            print(f"\n{group}:", *lines, sep="\n")
    if absent:
        print("\nnot installed:", ", ".join(f"{name} (package {companion_of(name)})" for name in sorted(absent)))
    print("\nuldp PROGRAM --help explains one of them.")


def _how_to_get(name: str) -> str:
    """How to install the companion of a program, or which programs there are."""
    if name in COMPANIONS:
        return needs_companion(name, COMPANIONS[name])
    from difflib import get_close_matches  # noqa: PLC0415  # for faults only

    from uldp_transforms.ldp.checks import describe  # noqa: PLC0415  # imports numpy and scipy

    known = list(described())
    close = get_close_matches(name, known, n=1)
    if close:
        return f"no program {describe(name)}; did you mean {close[0]}? uldp --help lists all programs"
    return f"PROGRAM must be one of {', '.join(known)}, got {describe(name)}"


def needs_companion(what: str, folder: str) -> str:
    """The sentence of what needs a companion that is not installed, with the way to get it."""
    where = f"in a checkout: pip install {folders_of(folder)}"
    return f"{what} needs the package uldp-transforms-{folder}, which is not installed ({where})"


def folders_of(folder: str) -> str:
    """The folders of a checkout that pip installs for a companion: those of what it requires, and its own."""
    return " ".join(f"./packages/{each}" for each in (*REQUIRED.get(folder, ()), folder))


def companion_of(name: str) -> str:
    """The name of the package that has a program of a companion."""
    return f"uldp-transforms-{COMPANIONS[name]}"


def _package_of(entry: EntryPoint) -> str:
    """The name of the package that registers a program."""
    return entry.dist.name if entry.dist else "unknown"


if __name__ == "__main__":
    sys.exit(main())
