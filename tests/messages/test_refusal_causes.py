"""What is told of jobs that reject nearly everything, and when."""

from __future__ import annotations

import pytest

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.refusal_causes import (
    CAUSES,
    Received,
    allowed_share,
    sentence,
    sentence_of_files,
    sentence_of_sums,
)


def test_the_cause_of_the_most_frequent_reason_is_told_with_its_facts() -> None:
    sums = {"received": 10, "rejected": {"malformed": 3, "too_old": 5, "no_report_id": 1}}
    facts = {"lateness": "1h", "off_by": "3d"}
    begin = "5 of 10 reports were rejected as too_old: "
    question = "does a backlog need a longer --allowed_lateness?"
    assert sentence_of_sums(sums, 0.5, lambda: facts) == (
        f"{begin}they are older than --allowed_lateness 1h by up to 3d: {question}"
    )
    for known in (None, {"lateness": "1h"}):  # what is not known is not said
        assert sentence_of_sums(sums, 0.5, lambda known=known: known) == begin + question  # type: ignore[misc]  # mypy cannot infer the type of its default


@pytest.mark.parametrize(("rejected", "is_told"), [(0, False), (4, False), (5, False), (6, True), (10, True)])
def test_a_share_may_be_rejected_but_no_more(rejected: int, is_told: bool) -> None:
    told = sentence_of_sums({"received": 10, "rejected": {"cohort_range": rejected}}, 0.5)
    assert (told is not None) is is_told


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_a_question(reason: Reason) -> None:
    question = CAUSES[reason].question if reason in CAUSES else "do the clients and this job use the same collections?"
    assert sentence(reason, 2, Received(3)) == f"2 of 3 reports were rejected as {reason.code}: {question}"
    if reason not in CAUSES:
        assert sentence(reason, 2, Received(3), {}) == (
            f"2 of 3 reports were rejected as {reason.code}: see docs/reasons.md: {question}"
        )


@pytest.mark.parametrize(
    ("received", "rejected", "unread", "begin"),
    [
        (0, {}, {"malformed": 2}, "2 of 2 messages were rejected as malformed"),
        (10, {"cohort_range": 1}, {"malformed": 12}, "12 of 22 reports and messages were rejected as malformed"),
        (10, {"cohort_range": 8}, {"malformed": 2}, "8 of 12 reports and messages were rejected as cohort_range"),
    ],
)
def test_a_message_that_was_not_read_counts_like_a_report(
    received: int, rejected: dict[str, int], unread: dict[str, int], begin: str
) -> None:
    sums = {"received": received, "rejected": rejected, "unread_messages": unread}
    assert (sentence_of_sums(sums, 0.5) or "").startswith(begin)


def test_files_that_were_not_read_are_named() -> None:
    assert sentence_of_files({}) is None
    assert sentence_of_files({"corrupt_block": 1}) == (
        "1 file could not be read in full (corrupt_block 1): can they be fetched or written again?"
    )
    names = {f"{number:02}.avro": "bad_magic" for number in range(12)}
    assert sentence_of_files({"bad_magic": 11, "unknown_codec": 1}, names) == (
        f"12 files could not be read in full (bad_magic 11, unknown_codec 1): "
        f"{', '.join(f'{number:02}.avro (bad_magic)' for number in range(10))}, 2 more; "
        "are they empty, cut off, compressed as a whole, or raw values, which uldp simulate must perturb first?"
    )


def test_files_are_expected_to_be_cleaner_than_streams() -> None:
    assert (allowed_share(None, bounded=True), allowed_share(None, bounded=False)) == (0.5, 0.99)
    assert (allowed_share(0.0, bounded=True), allowed_share(0.25, bounded=False)) == (0.0, 0.25)
