"""Fuzzes the decoder and the reader of files: ``python -m tests.fuzz.fuzz --messages 1000000 --files 20000``.

Thousands of spoiled and good messages are decoded in one call, as in a bundle, and compared with the slow reference:

* nothing is raised; every message has the reference's verdict, reason by reason, and every report exactly one;
* the ledger of the call balances: received (as the pipeline counts it) = accepted + duplicates + refused;
* an accepted message, written again, is the same message: no two messages mean the same;
* a message alone stays below a limit of memory and of processor time.

The exit code is 1 if anything escapes; equal seeds give equal runs.
"""

from __future__ import annotations

import argparse
import io
import itertools
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.fuzz_inputs import COLLECTIONS, NUM_COHORTS, PAYLOADS, Fuzzer, chunks
from tests.fuzz.fuzz_reference import Gate, Reference, Verdict, read_file
from tests.support.messages_cases import BATCH_HEADER, NOON, REPORT_HEADER, data, decoder, long, packed, rows_of, single
from uldp_transforms.collector.known_reports import KnownReports, to_rows
from uldp_transforms.collector.ledger_entries import received_entries
from uldp_transforms.collector.period_counts import count_periods
from uldp_transforms.ldp import ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.messages.decoder import Decoded, MessageDecoder
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.windows import BasePeriods, TimeGate

HOUR = 3_600_000
PERIODS = BasePeriods(HOUR)
LATENESS = 60_000
CALL = 4_000
"""Messages decoded together."""

MEMORY_PER_MESSAGE, MEMORY_PER_BYTE = 1 << 20, 16
SECONDS_PER_MESSAGE, SECONDS_PER_BYTE = 0.050, 200e-9
"""Limits of one message alone."""

BY_PREFIX = {of.fingerprint[:8]: of for of in COLLECTIONS}
_KNOWN = {prefix: PAYLOADS[of.id] for prefix, of in BY_PREFIX.items()}

SIDES: dict[str, tuple[MessageDecoder, Reference]] = {
    "files": (decoder(COLLECTIONS), Reference(collections=_KNOWN, num_cohorts=NUM_COHORTS)),
    "stream": (
        decoder(COLLECTIONS, gate=TimeGate(periods=PERIODS, allowed_lateness=LATENESS), require_ids=True),
        Reference(
            collections=_KNOWN, num_cohorts=NUM_COHORTS, gate=Gate(base=HOUR, lateness=LATENESS), require_ids=True
        ),
    ),
}
"""The two ways in which the main job decodes, and the reference of each."""


class Escape(AssertionError):
    """Something that the fuzzer looks for."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Escape(what)


def check_messages(side: str, messages: Sequence[bytes], first: int = NOON) -> Counter[str]:
    """Decode messages together and compare with the reference; returns how many reports met which end.

    Each message has an arrival time of its own, by which its rejections are found.

    Raises:
        Escape: if a verdict is not the reference's, the books do not balance, or a message has two encodings.
    """
    decode, reference = SIDES[side]
    arrivals = first + np.arange(len(messages))
    decoded = decode.decode(messages, arrivals)
    batches, rejections, *_ = decoded
    expected = [reference.judge(message, arrival) for message, arrival in zip(messages, arrivals.tolist())]
    _check_refused(messages, expected, rejections, first)
    accepted = Counter((v.collection, row) for v in expected for row in v.accepted)
    require(rows_of(batches) == accepted, "other reports were accepted")
    _check_received(expected, decoded.num_received)
    _check_books(decoded)
    _check_encoding(messages, expected, batches)
    tally = Counter[str](accepted=accepted.total(), messages=len(messages))
    for rejection in rejections:
        tally[rejection.reason.code] += rejection.number
    return tally


def _check_refused(messages: Sequence[bytes], expected: list[Verdict], found: list[Rejection], first: int) -> None:
    refused: list[Counter[Any]] = [Counter() for _ in messages]
    for rejection in found:
        at = (rejection.arrival_time or 0) - first
        prefix = rejection.collection.fingerprint[:8] if rejection.collection else None
        refused[at][rejection.reason.code, prefix, rejection.period_start] += rejection.number
        require((rejection.num_messages > 0) == expected[at].is_unread, f"message {at} counts as another thing")
        require(rejection.message_bytes == len(messages[at]), f"message {at} has another size")
    for at, (verdict, counter) in enumerate(zip(expected, refused)):
        require(counter == verdict.refused, f"message {at} should have {dict(verdict.refused)}, has {dict(counter)}")


def _check_received(expected: list[Verdict], found: Counter[bytes]) -> None:
    received: Counter[bytes] = Counter()
    for verdict in expected:
        if verdict.is_unread:
            continue
        received[verdict.collection or b""] += len(verdict.accepted)
        for (_, prefix, _), number in verdict.refused.items():
            received[prefix or b""] += number
    by_prefix = Counter({fingerprint[:8]: number for fingerprint, number in found.items()})
    require(by_prefix == received, f"{dict(received)} reports came, not {dict(by_prefix)}")


def _check_books(decoded: Decoded) -> None:
    """What is received, as the pipeline counts it, is accepted, a duplicate or refused, by collection and period."""
    books = Counter[tuple[bytes, int | None]]()
    for entry in received_entries(decoded, PERIODS):
        books[entry.fingerprint, entry.period_start] += entry.num_reports
    for rejection in decoded.rejections:
        fingerprint = rejection.collection.fingerprint if rejection.collection else b""
        books[fingerprint, rejection.period_start] -= rejection.num_reports
    for batch in decoded.batches:
        collection = BY_PREFIX[batch.fingerprint[:8]]
        for start, counts in count_periods(collection, batch, PERIODS):
            books[batch.fingerprint, start] -= counts.total
        if len(batch.report_ids):
            rows = to_rows(batch)
            known = KnownReports(rows.shape[1])
            removed, added, duplicates = known.add(rows)
            whole = len(known) == len(added) == len(set(map(bytes, batch.report_ids))) and not len(removed)
            require(whole and len(added) + duplicates == len(batch), "an id is counted twice, or never")
    require(not any(books.values()), f"the ledger does not balance: {dict(+books)}, {dict(-books)}")


def _check_encoding(messages: Sequence[bytes], expected: list[Verdict], batches: list[ReportBatch]) -> None:
    whole: Counter[bytes] = Counter()
    for message, verdict in zip(messages, expected):
        datum = message.removeprefix(REPORT_HEADER).removeprefix(BATCH_HEADER)
        if verdict.accepted and datum[0] == wire.REPORT_FORM:
            whole[datum] += 1
        elif verdict.accepted:
            of = BY_PREFIX[verdict.collection or b""]
            require(verdict.refused or packed(of, verdict.accepted) == datum, "a batch has two encodings")
            for cohort, moment, report_id, payload in verdict.accepted:
                fields = {"cohort": long(cohort), "event_time": long(moment), "payload": data(payload)}
                if report_id:
                    whole[single(of, report_id=report_id, **fields)] += 1
    again = Counter(datum for batch in batches if len(batch.report_ids) for datum in wire.encode_reports(batch))
    require(again == whole, "a report has two encodings")


def check_file(content: bytes) -> Counter[str]:
    """Read a file and compare with the reference; returns how many messages and lost parts there are.

    Raises:
        Escape: if other messages are read, in another order, or other parts are lost.
    """
    found = list(read_messages(io.BytesIO(content), "fuzz.avro"))
    shown = [item if isinstance(item, bytes) else item.reason.code for item in found]
    require(shown == list(read_file(content)), "a file is read differently")
    lost = [item for item in found if isinstance(item, Rejection)]
    require(
        all(item.num_reports == 0 and item.source == "fuzz.avro" for item in lost)
        and [item.num_files for item in lost] == [1] * bool(lost) + [0] * (len(lost) - 1),
        "lost parts count as one file",
    )
    return Counter(item.reason.code for item in lost) + Counter(files=1, messages_of_files=len(found) - len(lost))


def peak_memory(side: str, message: bytes) -> int:
    """Bytes that decoding a message alone takes at most; Escape above the limit."""
    tracemalloc.start()
    try:
        SIDES[side][0].decode([message], np.array([NOON]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    limit = MEMORY_PER_MESSAGE + MEMORY_PER_BYTE * len(message)
    require(peak <= limit, f"a message of {len(message)} bytes takes {peak} bytes")
    return peak


def _seconds(side: str, message: bytes) -> float:
    begin = time.process_time()
    SIDES[side][0].decode([message], np.array([NOON]))
    seconds = time.process_time() - begin
    limit = SECONDS_PER_MESSAGE + SECONDS_PER_BYTE * len(message)
    require(seconds <= limit, f"a message of {len(message)} bytes takes {seconds} s")
    return seconds


class _Run:
    """Adds up what the checks return, and what escapes."""

    def __init__(self) -> None:
        self.tally: Counter[str] = Counter()
        self.escapes: list[str] = []
        self.slowest, self.largest = 0.0, 0

    def attempt(self, where: str, check: Any, *arguments: Any) -> None:
        try:
            self.tally += check(*arguments)
        except Exception as error:  # whatever it is, it is what we look for
            self.escapes.append(f"{where}: {type(error).__name__}: {error}")
            print(self.escapes[-1], file=sys.stderr)

    def probe(self, side: str, message: bytes) -> Counter[str]:
        """Time and memory of a message alone."""
        self.slowest = max(self.slowest, _seconds(side, message))
        self.largest = max(self.largest, peak_memory(side, message))
        return Counter(probed=1)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    fuzzer, run, begin = Fuzzer(args.seed), _Run(), time.monotonic()
    for call, size in enumerate(chunks(args.messages, CALL)):
        side = ("files", "stream")[call % 2]
        messages = fuzzer.messages(size)
        run.attempt(f"call {call}", check_messages, side, messages, NOON + call % 3 * HOUR)
        alone = [m for number, m in enumerate(messages) if number % 100 == 0 or len(m) > 50_000]
        for message in alone:
            run.attempt(f"call {call}, {message[:40].hex()}", run.probe, side, message)
    seconds = time.monotonic() - begin
    for number in range(args.files):
        run.attempt(f"file {number}", check_file, fuzzer.file())
    _show(run, args.seed, seconds, time.monotonic() - begin - seconds)
    return 1 if run.escapes else 0


def _show(run: _Run, seed: int, seconds: float, seconds_of_files: float) -> None:
    tally = dict(run.tally)
    messages, files, probed = (tally.pop(name, 0) for name in ("messages", "files", "probed"))
    of_files = tally.pop("messages_of_files", 0)
    print(f"{messages:,} messages in {seconds:.0f} s ({messages / max(seconds, 1e-9):,.0f}/s, reference included)")
    print(f"{files:,} files in {seconds_of_files:.0f} s, {of_files:,} messages in them; seed {seed}")
    for reason, number in sorted(tally.items(), key=lambda item: -item[1]):
        print(f"  {reason:<20}{number:>12,}")
    print(f"{probed:,} messages alone: at most {1000 * run.slowest:.1f} ms, {run.largest / (1 << 20):.1f} MiB")
    print(f"{len(run.escapes)} escapes")
    for line in itertools.islice(run.escapes, 10):
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
