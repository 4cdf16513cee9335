"""A job that refuses nearly everything is a wrong job: a stream stops before it loses more, files say so at the end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support import replay
from tests.support.messages_cases import (
    KRR,
    RAPPOR,
    STRANGER,
    URAP,
    container,
    data,
    decoder,
    long,
    packed,
    single,
    write_files,
)
from uldp_transforms.collector.rejected_share import RejectedShareError, Watch, facts_of
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.refusal_causes import CAUSES, Received, sentence, sentence_of_sums
from uldp_transforms.windows import Windows

HOUR, DAY = 3_600_000, 86_400_000
HOURLY = Windows(size=HOUR)
NOW = 1000 * DAY


def good(number: int, time: int = NOW) -> list[bytes]:
    return wire.encode_reports(KRR.perturb(["0"] * number, event_times=[time] * number))


def bad(number: int) -> list[bytes]:
    return [single(STRANGER, event_time=long(NOW))] * number


def watch_of(messages: list[bytes], at_once: int = 10, **fields: Any) -> int:
    """How many messages pass before the watch says no; all of them if it does not."""
    spec = replay.spec([KRR], HOURLY, bounded=False, **fields)
    watch, decode = Watch(spec), decoder([KRR])
    for at in range(0, len(messages), at_once):
        try:
            watch.look(decode.decode(messages[at : at + at_once]))
        except RejectedShareError:
            return at
    return len(messages)


# ---------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("messages", "passed"),
    [
        (bad(990), 990),
        (bad(1500), 990),  # the bundle that makes it a thousand fails
        (good(10) + bad(990), 1000),  # not more than the share
        (good(9) + bad(991), 990),
        (good(500) + bad(990), 1490),
        (good(500) + bad(1000), 1490),
        ([b"hello"] * 500 + bad(500) * 3, 1490),  # one reason, not all together
        ((good(1) + bad(50)) * 40, 2040),
    ],
)
def test_a_thousand_reports_in_a_row_are_looked_at(messages: list[bytes], passed: int) -> None:
    assert watch_of(messages) == passed


@pytest.mark.parametrize(("share", "passed"), [(0.5, 990), (0.0, 990), (1.0, 3000)])
def test_the_share_is_that_of_the_job(share: float, passed: int) -> None:
    messages = (good(1) + bad(1)) * 200 + bad(2600)
    assert watch_of(messages, max_rejected_share=share) >= passed
    assert (watch_of(messages, max_rejected_share=share) == 3000) == (share == 1)


def test_reports_count_and_not_messages() -> None:
    rows = [(1, NOW, bytes(16), b"\1")] * 400
    assert watch_of([packed(STRANGER, rows)] * 4, at_once=1) == 2


def test_the_same_bundle_fails_again_and_good_ones_pass_after_it() -> None:
    """So nothing of it is acknowledged, and the work goes on when clients or the job are mended."""
    spec = replay.spec([KRR], HOURLY, bounded=False)
    watch, decode = Watch(spec), decoder([KRR])
    watch.look(decode.decode(bad(995)))
    for _ in range(3):
        with pytest.raises(RejectedShareError):
            watch.look(decode.decode(bad(10)))
    watch.look(decode.decode(good(20)))


# ---------------------------------------------------------------------- the sentences


def raised(messages: list[bytes], *, arrived: int = NOW, **fields: Any) -> str:
    """What a stream says when it stops."""
    job = replay.streaming_job([KRR, URAP], HOURLY, **fields)
    with pytest.raises(RejectedShareError) as error:
        replay.replay(job, [replay.arrive(arrived, messages)])
    return str(error.value).partition(" [")[0]


KNOWN = f"{KRR.fingerprint.hex()[:16]}, {URAP.fingerprint.hex()[:16]}"
NAMELESS = packed(KRR, [(1, NOW, b"", b"\1")] * 1200)


@pytest.mark.parametrize(
    ("messages", "fields", "expected"),
    [
        (
            good(2) + bad(998),
            {},
            f"998 of 1000 reports were rejected as unknown_collection: they carry the fingerprint "
            f"{STRANGER.fingerprint.hex()[:16]}, the job's collections have {KNOWN}: is the --collection file wrong?",
        ),
        (
            [packed(STRANGER, [(1, NOW, bytes(16), b"\1")] * 1000)],
            {},
            f"1000 of 1000 reports were rejected as unknown_collection: they carry the fingerprint "
            f"{STRANGER.fingerprint.hex()[:16]}, the job's collections have {KNOWN}: is the --collection file wrong?",
        ),
        (
            good(1000, NOW - 3 * DAY),
            {"allowed_lateness": HOUR},
            "1000 of 1000 reports were rejected as too_old: they are older than --allowed_lateness 1h by "
            "up to 3d: does a backlog need a longer --allowed_lateness?",
        ),
        (
            good(1000, NOW + DAY),
            {},
            "1000 of 1000 reports were rejected as too_early: their event times are ahead of their arrival "
            "by up to 24h: do the clients use another unit or time zone?",
        ),
        (
            [single(payload=data(b"\0\0"), event_time=long(NOW))] * 1000,
            {},
            "1000 of 1000 reports were rejected as payload_length: their payloads do not have the "
            "collection's payload length: do the clients use a different mechanism?",
        ),
        (
            [single(cohort=long(9), event_time=long(NOW))] * 1000,
            {},
            "1000 of 1000 reports were rejected as cohort_range: their cohort numbers are not in the "
            "collection's range: do the clients use a different number of cohorts?",
        ),
        (
            [NAMELESS],
            {"deduplicate": True},
            "1200 of 1200 reports were rejected as no_report_id: they have no ids: does this job need --deduplicate?",
        ),
        (
            [b"\2"] * 1000,
            {},
            "1000 of 1000 messages were rejected as malformed: see docs/reasons.md: do the clients and this "
            "job use the same collections?",
        ),
    ],
    ids=lambda value: value.split()[7] if isinstance(value, str) else "",
)
def test_a_stream_that_refuses_nearly_everything_stops(
    messages: list[bytes], fields: dict[str, Any], expected: str
) -> None:
    assert raised(messages, **fields) == expected


def test_it_is_the_worker_that_counts_not_the_bundle() -> None:
    """Bundles of local streams hold ten messages, and every bundle has a DoFn of its own."""
    job = replay.streaming_job([KRR], HOURLY)
    with pytest.raises(RejectedShareError):
        replay.replay(job, [replay.arrive(NOW + at, bad(10)) for at in range(101)])


def test_a_share_of_one_never_stops_a_stream() -> None:
    job = replay.streaming_job([KRR], HOURLY, max_rejected_share=1)
    rows = replay.replay(job, [replay.arrive(NOW, bad(2000))])
    assert [row.rejected for row in rows["ledger"]] == [{"unknown_collection": 2000}]


def test_many_collections_are_not_all_named() -> None:
    spec = replay.spec([KRR, URAP, RAPPOR, STRANGER], HOURLY, bounded=False)
    named = RAPPOR.fingerprint.hex()[:16]
    with pytest.raises(RejectedShareError, match=f"{named} and 1 more: is the --collection file wrong"):
        Watch(spec).look(MessageDecoder(spec.catalog).decode([b"\2" + bytes(27)] * 1000))


def test_every_cause_is_a_reason_and_has_its_words() -> None:
    facts = dict.fromkeys(("fingerprint", "known", "lateness", "off_by"), "x")
    for reason in Reason:
        assert sentence(reason, 9, Received(10), facts).startswith(f"9 of 10 reports were rejected as {reason.code}: ")
        assert sentence(reason, 9, Received(10)).endswith("?")
    assert set(CAUSES) >= {
        Reason.UNKNOWN_COLLECTION,
        Reason.TOO_OLD,
        Reason.PAYLOAD_LENGTH,
        Reason.COHORT_RANGE,
        Reason.NO_REPORT_ID,
    }


# ---------------------------------------------------------------------- files

JOB = "--collection krr.json --input in.avro --output out --min_reports 1"


@pytest.mark.parametrize(
    ("good_ones", "options", "code"),
    [(50, "", 0), (49, "", 4), (49, "--max_rejected_share 1", 0), (49, "--max_rejected_share 0.51", 0), (0, "", 4)],
)
def test_files_of_which_most_is_refused_end_with_another_code(
    good_ones: int,
    options: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """And with results."""
    strangers = 97 - good_ones
    messages = bad(strangers) + good(good_ones) + [single(cohort=long(9))] * 3
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, message) for message in messages])})
    monkeypatch.chdir(tmp_path)
    assert estimate.main(shlex.split(f"{JOB} {options}")) == code
    last = capfd.readouterr().err.splitlines()[-1]
    prefixes = STRANGER.fingerprint[:PREFIX_BYTES].hex(), KRR.fingerprint[:PREFIX_BYTES].hex()
    seen = "they carry the fingerprint {}, the job's collections have {}".format(*prefixes)
    said = f"{strangers} of 100 reports were rejected as unknown_collection: {seen}: is the --collection file wrong?"
    assert (last == f"estimate: {said}") == (code == 4)
    assert Path("out/estimates.jsonl").exists()


def test_a_table_of_values_is_no_file_of_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path, {"krr.json": KRR, "in.avro": "value\n0\n1\n"})
    monkeypatch.chdir(tmp_path)
    assert estimate.main(shlex.split(JOB)) == 7
    last = capfd.readouterr().err.splitlines()[-1]
    assert last == (
        "estimate: 1 file could not be read in full (bad_magic 1): are they empty, cut off, compressed as a "
        "whole, or raw values, which uldp simulate must perturb first?; uldp check out names them"
    )


@pytest.mark.parametrize(
    ("lateness", "text"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (59_999, "60s"),
        (60_000, "1m"),
        (60_001, "2m"),
        (HOUR, "1h"),
        (DAY - 1, "24h"),
        (DAY, "1d"),
    ],
)
def test_durations_have_their_largest_unit_and_are_rounded_up(lateness: int, text: str) -> None:
    assert facts_of(replay.spec([KRR], HOURLY, bounded=False, allowed_lateness=lateness))["lateness"] == text


def test_of_what_is_not_known_nothing_is_said() -> None:
    """The first message need not be one of those that were refused."""
    known = facts_of(replay.spec([KRR], HOURLY), good(1)[0])
    assert sentence(Reason.UNKNOWN_COLLECTION, 9, Received(10), known) == (
        "9 of 10 reports were rejected as unknown_collection: is the --collection file wrong?"
    )


def test_nothing_received_is_nothing_refused() -> None:
    assert sentence_of_sums({"received": 0, "rejected": {}}, 0.0) is None
    assert sentence_of_sums({"received": 2, "rejected": {"too_old": 1}}, 0.5) is None
    assert sentence_of_sums({"received": 4, "rejected": {"too_old": 1, "malformed": 2}}, 0.5) == (
        "2 of 4 reports were rejected as malformed: do the clients and this job use the same collections?"
    )
