"""The console script ``uldp``: its first argument names a program. Only that program is imported."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from uldp_transforms.messages.native_module import decoder_name
from uldp_transforms.version import __version__

DONE, WRONG_CONFIGURATION, DISK_FULL, NO_READER = 0, 2, 6, 141
"""Exit codes of all programs; the last one is that of a shell for a program that SIGPIPE ended."""

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
"""Numbers of the errors of a full disk, and of a quota that is used up."""

PROGRAMS = {
    "simulate": "perturb the values of a CSV or Parquet file, as clients would",
    "estimate": "the main job: reports in, windowed estimates out, from files or a stream",
    "reestimate": "estimate stored counts again, with other candidates or another estimator",
    "total": "estimate the whole period of a directory: one number with an interval for each value",
    "compare": "compare groups, or consecutive windows, of a directory: which differences are real",
    "compact": "merge the many small files of a stream into few, with the same rows",
    "check": "check the runs in an output directory, for cron jobs and alerts",
    "report": "write a page and a picture of a directory of estimates, or serve a page that follows a stream",
    "tokens": "learn the tokens of a prefix alphabet from public text",
    "evaluate": "try mechanisms on your own data: error, coverage and time",
    "plan": "compare mechanisms before data are collected, and write a collection",
    "gateway": "accept reports over HTTP, pack them, and publish them to Pub/Sub or Kafka",
    "survey": "estimate shares of yes from survey answers: crosswise, forced response and other designs",
    "regress": "regress the truthful answers of a survey on columns that are known in the clear",
    "navigations": "estimate undisturbed navigations and loading times from a browser's randomized answers",
    "export": "write the client form of a collection: all symbols in order, weights, sizes, fingerprint",
    "sql": "print a query that counts reports in a database or a data lake",
    "describe": "describe a collection in plain words, for a privacy review or a consent dialog",
    "audit": "prove the epsilon of a collection in exact arithmetic",
    "demo": "run a month of flights, from simulated clients to a page in the browser",
    "dev-queue": "run a Pub/Sub server in memory on this machine, for tests of the gateway and of streams",
    "workers": "run a pool of Python workers beside a machine of Flink or Spark",
    "live": "run a survey page, a gateway, a stream and its results page, all on this machine",
    "completion": "print a script that completes the command line in bash, zsh or fish",
    "reproduce": "run the experiments of the papers (needs a checkout)",
}
"""Programs and their descriptions; each is a module or package of ``uldp_transforms.jobs`` with ``main(argv)``
(with ``_`` for ``-``)."""

LABORATORY = {"reproduce": "labs.reproduce"}
"""Programs that are not installed, and their modules in a checkout."""


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


def _run(words: Sequence[str]) -> int:
    """Run a program, or say which there are."""
    if not words or words[0] in ("-h", "--help"):
        width = max(map(len, PROGRAMS))
        print("usage: uldp PROGRAM [options]\n\nEstimates distributions of values that people do not disclose.")
        print("\nprograms:")
        print(*(f"  {name:{width}}  {what}" for name, what in PROGRAMS.items()), sep="\n")
        print("\nuldp PROGRAM --help explains one of them.")
        return DONE
    if words[0] == "--version":
        print(f"uldp_transforms {__version__}, decoder: {decoder_name()}")
        return DONE
    if words[0] not in PROGRAMS:
        from uldp_transforms.ldp.checks import describe  # noqa: PLC0415  # imports numpy and scipy

        return _wrong(f"PROGRAM must be one of {', '.join(PROGRAMS)}, got {describe(words[0])}")
    try:
        module = f"uldp_transforms.jobs.{words[0].replace('-', '_')}"
        program: Any = importlib.import_module(LABORATORY.get(words[0], module))
    except ModuleNotFoundError as error:
        if error.name not in ("labs", LABORATORY.get(words[0])):  # or another package with this name
            raise
        return _wrong(f"{words[0]} needs a checkout of the repository, where labs/ is, got an installed package alone")
    return int(program.main(words[1:]))


def _wrong(message: str) -> int:
    print(f"uldp: {message}", file=sys.stderr)
    return WRONG_CONFIGURATION


if __name__ == "__main__":
    sys.exit(main())
