"""Report page and picture from the rows in an output directory of ``uldp estimate``.

The page needs nothing but itself: no network, and no script to be read. It says what the latest window shows, how each
value's share went, what moved, what is unexplained, what was asked and what it cost, and what became of all reports.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Write or serve the page for a command line; returns the exit code."""
    from uldp_transforms.jobs.report.report_command import main as run  # noqa: PLC0415  # charts are an optional extra, slow to import

    return run(argv)
