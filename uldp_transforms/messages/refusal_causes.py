"""Likely causes if nearly all reports are rejected for one reason, and the share at which a job reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from uldp_transforms.ldp.reasons import Reason

REJECTED_SHARE_OF_STREAMS, REJECTED_SHARE_OF_FILES = 0.99, 0.5
"""Default shares of rejected reports above which the configuration of a job is considered wrong."""


class Cause(NamedTuple):
    """Likely cause if nearly all reports are rejected for one reason: the evidence, and a question to the operator."""

    evidence: str
    question: str


CAUSES: Mapping[Reason, Cause] = {
    Reason.UNKNOWN_COLLECTION: Cause(
        "they carry the fingerprint {fingerprint}, the job's collections have {known}",
        "is the --collection file wrong?",
    ),
    Reason.PAYLOAD_LENGTH: Cause(
        "their payloads do not have the collection's payload length", "do the clients use a different mechanism?"
    ),
    Reason.COHORT_RANGE: Cause(
        "their cohort numbers are not in the collection's range", "do the clients use a different number of cohorts?"
    ),
    Reason.NO_REPORT_ID: Cause("they have no ids", "does this job need --deduplicate?"),
    Reason.TOO_OLD: Cause(
        "they are older than --allowed_lateness {lateness} by up to {off_by}",
        "does a backlog need a longer --allowed_lateness?",
    ),
    Reason.TOO_EARLY: Cause(
        "their event times are ahead of their arrival by up to {off_by}",
        "do the clients use another unit or time zone?",
    ),
    Reason.TIME_RANGE: Cause(
        "their event times are not of the years 1900 to 9998, or are seconds in a table",
        "are they in another unit than milliseconds since 1970?",
    ),
    Reason.UNKNOWN_SCHEMA: Cause(
        "their first bytes are not those of a report",
        "does the input contain other data, or other columns or types than docs/wire.md lists?",
    ),
    Reason.BAD_MAGIC: Cause(
        "they do not begin like Avro or Parquet files",
        "are they empty, cut off, compressed as a whole, or raw values, which uldp simulate must perturb first?",
    ),
    Reason.NOT_AS_LISTED: Cause("files lack content that their manifest lists", "is the delivery complete?"),
    Reason.UNKNOWN_CODEC: Cause(
        "their compression is unknown, or pyarrow was built without it", "can their writer use deflate or zstandard?"
    ),
    Reason.CORRUPT_BLOCK: Cause("they are damaged", "can they be fetched or written again?"),
    Reason.BLOCK_TOO_LARGE: Cause("their blocks are too large", "can their writer use smaller blocks?"),
}
"""Likely causes by reason; other reasons have no single likely cause."""

_FILES_NAMED = 10
"""Maximum number of unread files that a sentence names."""

_ANY = Cause("see docs/reasons.md", "do the clients and this job use the same collections?")


class Received(NamedTuple):
    """What arrived: reports, and messages that could not be read, each of which counts like a report in shares."""

    reports: int
    unread: int = 0

    @property
    def total(self) -> int:
        return self.reports + self.unread

    @property
    def what(self) -> str:
        """Name of what is counted."""
        if not self.unread:
            return "reports"
        return "reports and messages" if self.reports else "messages"


def sentence(reason: Reason, number: int, received: Received, facts: Mapping[str, str] | None = None) -> str:
    """Describe a rejection: the event, its known facts, and its possible cause."""
    cause = CAUSES.get(reason, _ANY)
    try:
        seen = "" if facts is None else f"{cause.evidence.format_map(facts)}: "
    except KeyError:
        seen = ""
    return f"{number} of {received.total} {received.what} were rejected as {reason.code}: {seen}{cause.question}"


def sentence_of_files(unread: Mapping[str, int], names: Mapping[str, str] | None = None) -> str | None:
    """Describe files of which all or a part could not be read; None if there are none.

    Args:
        unread: number of files by code of the reason.
        names: the reason of each file by name, of which some are shown.
    """
    if not unread:
        return None
    number, code = sum(unread.values()), max(unread, key=lambda reason: unread[reason])
    cause = CAUSES.get(Reason[code.upper()], _ANY)
    reasons = ", ".join(f"{reason} {count}" for reason, count in unread.items())
    shown = [f"{name} ({reason})" for name, reason in list((names or {}).items())[:_FILES_NAMED]]
    more = [f"{number - len(shown)} more"] if 0 < len(shown) < number else []
    said = f": {', '.join([*shown, *more])}; " if shown else ": "
    return f"{number} {'file' if number == 1 else 'files'} could not be read in full ({reasons}){said}{cause.question}"


def sentence_of_sums(
    sums: Mapping[str, Any],
    share: float,
    facts: Callable[[], Mapping[str, str] | None] = lambda: None,
) -> str | None:
    """The sentence for a finished job, by its most frequent reason; None if at most ``share`` was rejected.

    Args:
        sums: ``received``, the number of all reports; ``rejected`` and ``unread_messages``, numbers by code of the
            reason. An unread message counts like a report.
        share: maximum acceptable share of rejected reports.
        facts: function that returns the known facts about the job and a message.
    """
    unread = sums.get("unread_messages") or {}
    refused = Counter(sums["rejected"]) + Counter(unread)
    received = Received(sums["received"], sum(unread.values()))
    if sum(refused.values()) <= share * received.total:
        return None
    code, number = max(refused.items(), key=lambda item: item[1])
    return sentence(Reason[code.upper()], number, received, facts())


def allowed_share(given: float | None, *, bounded: bool) -> float:
    """The acceptable share of rejected reports: the given one, or the default for files or a stream."""
    if given is not None:
        return given
    return REJECTED_SHARE_OF_FILES if bounded else REJECTED_SHARE_OF_STREAMS
