"""Estimates the shares of yes in a table of answers to survey questions."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program of a command line; returns its exit code."""
    from uldp_transforms_survey.survey.survey_command import main as run  # noqa: PLC0415  # imported when it is used

    return run(argv)
