"""The form of a line of navigations, which the gateway stores and ``uldp navigations`` reads: a JSON object."""

from __future__ import annotations

FIELDS = frozenset({"confidence", "rate", "duration"})
"""What a page sends; the gateway adds ``time``."""

LOW, HIGH = "low", "high"
"""The two randomized answers, in ``confidence``."""

LONGEST = 1e9
"""Maximum loading time in milliseconds, eleven days."""
