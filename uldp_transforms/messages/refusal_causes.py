"""When nearly all reports are refused for one reason: how many that may be, and what is likely to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from uldp_transforms.ldp.reasons import Reason

REJECTED_SHARE_OF_STREAMS, REJECTED_SHARE_OF_FILES = 0.99, 0.5
"""Default shares of refused reports above which a job is taken for a wrong one."""


class Cause(NamedTuple):
    """Why nearly all reports may be refused for a reason: what can be seen of it, and a question to the operator."""

    evidence: str
    question: str


CAUSES: Mapping[Reason, Cause] = {
    Reason.UNKNOWN_COLLECTION: Cause(
        "they carry the fingerprint {fingerprint}, the job's collections have {known}", "wrong --collection file?"
    ),
    Reason.PAYLOAD_LENGTH: Cause(
        "their payloads have another length than the collection's", "do the clients use another mechanism?"
    ),
    Reason.COHORT_RANGE: Cause(
        "their cohorts are not among the collection's", "do the clients use another number of cohorts?"
    ),
    Reason.NO_REPORT_ID: Cause("they have no ids", "does this job need --deduplicate?"),
    Reason.TOO_OLD: Cause(
        "they are older than --allowed_lateness {lateness} by up to {off_by}", "a backlog that needs a longer one?"
    ),
    Reason.TOO_EARLY: Cause("they are ahead of their arrival by up to {off_by}", "clocks of another unit or zone?"),
    Reason.UNKNOWN_SCHEMA: Cause("their first bytes are those of no report", "another topic or files of others?"),
    Reason.BAD_MAGIC: Cause(
        "they do not begin as Avro files do", "are these values, which uldp simulate perturbs first?"
    ),
    Reason.NOT_AS_LISTED: Cause("files lack what their manifest lists", "is the delivery complete?"),
}
"""Likely causes; of other reasons there is none that stands out."""

_ANY = Cause("see docs/reasons.md", "do the clients and this job agree?")


def sentence(reason: Reason, number: int, total: int, facts: Mapping[str, str] | None = None) -> str:
    """A refusal in words: the event, its known facts, and its possible cause."""
    cause = CAUSES.get(reason, _ANY)
    try:
        seen = "" if facts is None else f"{cause.evidence.format_map(facts)}: "
    except KeyError:
        seen = ""
    return f"{number} of {total} reports were refused as {reason.code}: {seen}{cause.question}"


def sentence_of_sums(
    rejected: Mapping[str, int],
    received: int,
    share: float,
    facts: Callable[[], Mapping[str, str] | None] = lambda: None,
) -> str | None:
    """The sentence for a job that has ended, by its most frequent reason; None if no more than the share is refused.

    Args:
        rejected: number of reports by code of the reason.
        received: number of all reports.
        share: that may be refused.
        facts: asks what is known of the job and of a message.
    """
    if sum(rejected.values()) <= share * received:
        return None
    code, number = max(rejected.items(), key=lambda item: item[1])
    return sentence(Reason[code.upper()], number, received, facts())


def allowed_share(given: float | None, *, bounded: bool) -> float:
    """The share of refused reports that a job allows: the given one, or the default for files or a stream."""
    if given is not None:
        return given
    return REJECTED_SHARE_OF_FILES if bounded else REJECTED_SHARE_OF_STREAMS
