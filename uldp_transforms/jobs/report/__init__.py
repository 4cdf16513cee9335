"""What people see: from the rows of a directory of ``uldp estimate`` to a page and a picture.

The page needs nothing but itself: no network, no script. It says what was asked and what it cost, how each value's
share went, what is certain in the latest window, what moved, what is unexplained, and what became of all reports.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Write or serve the page of a command line; returns the exit code."""
    from uldp_transforms.jobs.report.report_command import main as run  # noqa: PLC0415  # charts are an optional extra, slow to import

    return run(argv)
