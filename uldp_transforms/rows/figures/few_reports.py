"""What to know about smooth intervals of the numbers of few reports."""

from __future__ import annotations

ENOUGH_REPORTS = 10_000
"""Minimum number of reports for which the coverage of smooth intervals has been measured; see docs/numbers.md."""

FEW_REPORTS = (
    f"Fewer than {ENOUGH_REPORTS:,} reports cannot show whether neighbouring bins are alike, which smooth intervals "
    "take for granted: rely on the intervals without smoothness, and declare numbers that many people have as atoms."
)


def advice_on_few_reports(num_reports: int | None, is_smooth: bool) -> str:
    """The advice for a number of reports; empty for enough of them, an unknown number, or without smooth intervals."""
    few = num_reports is not None and num_reports < ENOUGH_REPORTS
    return FEW_REPORTS if is_smooth and few else ""
