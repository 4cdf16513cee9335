"""Names of the metrics of a job, and what this process has counted so far."""

from __future__ import annotations

from collections import Counter

NAMESPACE = "uldp"

RECEIVED, ACCEPTED, DUPLICATES, REJECTED = "received", "accepted", "duplicates", "rejected"
"""Numbers of reports; ``rejected_REASON`` for each reason."""

UNREAD_MESSAGES, UNREAD_FILES = "unread_messages", "unread_files"
"""Numbers of messages and files that could not be read: ``unread_messages_REASON``, ``unread_files_REASON``."""

WINDOWS, ALARMS = "windows", "alarms"
"""Numbers of rows by status (``windows_STATUS``) and of alarms by sentinel (``alarms_NAME``)."""

OFF_BY = "off_by_ms"
"""``too_early_off_by_ms`` and ``too_old_off_by_ms``: maximum over the reports that were decoded together."""

ESTIMATE_MS = "estimate_ms"
"""Milliseconds spent on the estimate of one window."""

AFTER_RELEASE = "after_release"
"""Number of rows that were dropped because the only row of their window had already been released."""

READ_BYTES = "read_bytes"
"""Bytes of input files that were read: only in ``SEEN``, not a metric of engines."""

SEEN: Counter[str] = Counter()
"""Counts of this process so far, including repeated bundles, for progress messages."""
