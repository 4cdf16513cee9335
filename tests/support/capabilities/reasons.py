"""Why a program does not have a capability: the sentence with which it refuses, and the words of the table for it."""

from __future__ import annotations

import re
from typing import NamedTuple

SILENT = "rows do not show it"
"""Where a program runs a job, but its rows do not show the capability."""


class Reason(NamedTuple):
    """The reason of cells.

    Attributes:
        sentence: regular expression of what the program says, or of the capability's title and ``SILENT``.
        words: of the table.
    """

    sentence: str
    words: str


REASONS = (
    Reason(r"^estimate: --(late|early)_every needs --subscription", "a file has one row per window"),
    Reason(r"^(reestimate|compare): unrecognized arguments: --(late|early)_every", "stored counts are final"),
    Reason(r"^(reestimate|compare): unrecognized arguments: --deduplicate", "counts have no ids"),
    Reason(r"^(reestimate|compare): unrecognized arguments: --bit_patterns", "counts have no reports"),
    Reason(
        rf"^`(reestimate|reestimate --window all|compare)`: ledger of all reports: {SILENT}",
        "in the ledger of the run that counted",
    ),
    Reason(r"^reestimate: --smooth needs windows, got --window all", "one number has no neighbours"),
    Reason(r"^compare: unrecognized arguments: --smooth", "smoothed windows are not independent"),
    Reason(r"^compare: unrecognized arguments: --estimator", "differences are of unbiased shares"),
    Reason(r"^compare: unrecognized arguments: --show", "q-values are about all values"),
    Reason(r"^compare: unrecognized arguments: --discover", "what is tested is named before"),
    Reason(rf"^`compare`: name of the run in each row: {SILENT}", "each side may have many runs"),
    Reason(rf"^stream: mark of simulated reports in each row: {SILENT}", "messages do not say it"),
    Reason(r"^compare: unrecognized arguments: --borrow", "differences of borrowed shares are drawn towards 0"),
)
"""The first one whose expression is found counts."""


def words_of(sentence: str) -> str | None:
    """The words of the table for a sentence; None if it has none."""
    return next((reason.words for reason in REASONS if re.search(reason.sentence, sentence)), None)
