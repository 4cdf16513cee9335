"""Report page and picture from the rows in an output directory of ``uldp estimate``.

The page is self-contained: it needs no network, and can be read without scripts. It shows the latest window, the course
of each share, changes, unlisted values, the question and its privacy cost, and the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Write or serve the page for a command line; returns the exit code."""
    from uldp_transforms_report.report_command import main as run  # noqa: PLC0415  # slow to import

    return run(argv)
