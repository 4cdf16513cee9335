"""Simulates clients: values in, perturbed reports out."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with a command line; returns its exit code."""
    from uldp_transforms_tables.simulate.simulate_command import main as run  # noqa: PLC0415  # imported when it is used

    return run(argv)
