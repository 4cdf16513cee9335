"""Likely causes if nearly all reports are rejected for one reason, and the share at which a job reports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

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
    Reason.UNKNOWN_SCHEMA: Cause("their first bytes are not those of a report", "does the input contain other data?"),
    Reason.BAD_MAGIC: Cause(
        "they do not begin like Avro files", "are these raw values, which uldp simulate must perturb first?"
    ),
    Reason.NOT_AS_LISTED: Cause("files lack content that their manifest lists", "is the delivery complete?"),
}
"""Likely causes by reason; other reasons have no single likely cause."""

_ANY = Cause("see docs/reasons.md", "do the clients and this job use the same collections?")


def sentence(reason: Reason, number: int, total: int, facts: Mapping[str, str] | None = None) -> str:
    """Describe a rejection: the event, its known facts, and its possible cause."""
    cause = CAUSES.get(reason, _ANY)
    try:
        seen = "" if facts is None else f"{cause.evidence.format_map(facts)}: "
    except KeyError:
        seen = ""
    return f"{number} of {total} reports were rejected as {reason.code}: {seen}{cause.question}"


def sentence_of_sums(
    rejected: Mapping[str, int],
    received: int,
    share: float,
    facts: Callable[[], Mapping[str, str] | None] = lambda: None,
) -> str | None:
    """The sentence for a finished job, by its most frequent reason; None if at most ``share`` was rejected.

    Args:
        rejected: number of reports by code of the reason.
        received: number of all reports.
        share: maximum acceptable share of rejected reports.
        facts: function that returns the known facts about the job and a message.
    """
    if sum(rejected.values()) <= share * received:
        return None
    code, number = max(rejected.items(), key=lambda item: item[1])
    return sentence(Reason[code.upper()], number, received, facts())


def allowed_share(given: float | None, *, bounded: bool) -> float:
    """The acceptable share of rejected reports: the given one, or the default for files or a stream."""
    if given is not None:
        return given
    return REJECTED_SHARE_OF_FILES if bounded else REJECTED_SHARE_OF_STREAMS
