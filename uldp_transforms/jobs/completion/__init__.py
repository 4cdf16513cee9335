"""Prints a script that completes the command line of ``uldp`` in bash, zsh or fish."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program of a command line; returns its exit code."""
    from uldp_transforms.jobs.completion.completion_command import main as run  # noqa: PLC0415  # imported when used

    return run(argv)
