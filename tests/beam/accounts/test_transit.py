"""What is lost between two steps shows, whoever loses it: files, messages and windows are counted on both sides."""

from __future__ import annotations

import functools
import io
import itertools
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apache_beam.testing.test_stream import Event
from apache_beam.transforms.window import IntervalWindow
from apache_beam.utils.windowed_value import PANE_INFO_UNKNOWN

from tests.support import replay
from tests.support.estimated import estimate_window
from tests.support.messages_cases import BATCH, KRR, container, packed, single, write_files
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime import panes
from uldp_transforms.beam.runtime.beam_windows import as_duration
from uldp_transforms.beam.transforms import decode_reports as decode
from uldp_transforms.beam.transforms import estimate_distribution, transit, window_samples
from uldp_transforms.beam.transforms import gather_messages as gather
from uldp_transforms.beam.transforms import read_report_files as read_files
from uldp_transforms.collector.ledger_entries import IN_TRANSIT, LedgerEntry
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp.estimators import Empirical
from uldp_transforms.messages import containers, manifest, wire
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.files import report_files
from uldp_transforms.rows import windowed_estimate
from uldp_transforms.rows.samples import rows_of_samples, sample
from uldp_transforms.spec.spec_fields import CORRECTED, FINAL
from uldp_transforms.windows import Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
FIXED = Windows(size=PERIOD)
SLIDING = Windows(size=2 * PERIOD, slide=PERIOD)


class Planted(Exception):
    """The fault."""


def fail(*arguments: Any, **named: Any) -> Any:
    raise Planted("planted")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with two files of reports: 40 in four blocks, and a batch of 10."""
    batch = KRR.perturb(["0", "1"] * 25, generator("transit"), np.arange(50))
    messages = wire.encode_reports(batch[:40])
    blocks = [(10, b"".join(messages[at : at + 10])) for at in range(0, 40, 10)]
    files = {"a.avro": container(blocks), "b.avro": container([(1, wire.encode_batch(batch[40:]))], BATCH)}
    write_files(tmp_path, {"krr.json": KRR, **files})
    monkeypatch.chdir(tmp_path)
    return tmp_path


JOB = "--collection krr.json --input *.avro --output out --min_reports 1 --window 1h"


# ---------------------------------------------------------------------- errors are never swallowed

deeper = functools.partial(pytest.param, marks=pytest.mark.slow)
"""Functions that those of the other cases call, or that the same step calls."""

INNER = [
    pytest.param(MessageDecoder, "decode", id="decoding: as a whole"),
    pytest.param(gather, "handed_on", id="gathering"),
    pytest.param(containers, "_read_block", id="reading: block"),
    pytest.param(read_files, "_open", id="reading: to open"),
    pytest.param(rows_of_samples, "solve", id="estimate: together"),
    pytest.param(rows_of_samples, "health_of_window", id="estimate: health"),
    deeper(MessageDecoder, "_split_singles", id="decoding: reports"),
    deeper(MessageDecoder, "_split_packed", id="decoding: batches"),
    deeper(MessageDecoder, "_judge", id="decoding: verdicts"),
    deeper(decode, "received_entries", id="decoding: the ledger"),
    deeper(containers, "_read_header", id="reading: header"),
    deeper(containers, "_split_block", id="reading: messages of a block"),
    deeper(containers, "_end_of_datum", id="reading: one message"),
    deeper(report_files, "read_blocks", id="reading: as a whole"),
    deeper(window_samples, "rows_of", id="estimate: as a whole"),
    deeper(sample, "reason_to_withhold", id="estimate: whether to"),
    deeper(windowed_estimate, "value_estimates", id="estimate: values"),
]


@pytest.mark.parametrize(("owner", "name"), INNER)
@pytest.mark.usefixtures("folder")
def test_an_error_of_the_library_fails_the_job(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(owner, name, fail)
    assert estimate.main(shlex.split(JOB)) == 1
    assert capfd.readouterr().err.splitlines()[-1] == "estimate: the run failed: planted"


@pytest.mark.parametrize("name", ["_split_singles", "_judge"])
def test_an_error_of_the_library_fails_a_stream(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageDecoder, name, fail)
    with pytest.raises(Planted):
        replay.replay(replay.streaming_job([KRR], FIXED), [replay.arrive(PERIOD, [single()])])


# ---------------------------------------------------------------------- and if somebody swallowed them, it shows


def swallowed(method: Callable[..., Any], nothing: Any) -> Callable[..., Any]:
    """The method with ``try: ... except Exception: pass`` around it, of which the work always fails."""

    @functools.wraps(method)
    def lossy(*arguments: Any, **named: Any) -> Any:
        try:
            fail()
            return method(*arguments, **named)
        except Planted:
            return nothing

    return lossy


def a_file_read_in_part(file: Any, source: str, account: Any = None) -> Iterator[Any]:
    """Stops behind the first blocks as if there were no more."""
    yield from itertools.islice(READ(file, source, account), 2)


def a_block_left_out(count: int, body: bytes, form: int) -> Any:
    """All but the first of four."""
    return SPLIT(count, body, form) if body in FIRST or form == wire.BATCH_FORM else []


def some_of_the_messages(decode_fn: Any, gathered: Any) -> Any:
    return PROCESS(decode_fn, (gathered[0][3:], gathered[1][3:]))


def a_verdict_on_nothing(decoder: MessageDecoder, messages: Any, arrival_times: Any = None) -> Any:
    return DECODE(decoder, [], arrival_times)


READ, SPLIT, PROCESS, DECODE = (
    report_files.read_blocks,
    containers._split_block,
    decode._DecodeFn.process,
    MessageDecoder.decode,
)
FIRST: set[bytes] = set()

FILES, OF = "files or messages lost", "for collection None, window None to None"
WINDOW = "for collection 'krr', window 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z"
LOST = [
    pytest.param(decode._DecodeFn, "process", [], f"{OF}: {FILES}: 41", id="decoding: a bundle"),
    pytest.param(MessageDecoder, "decode", a_verdict_on_nothing, f"{OF}: {FILES}: 41", id="decoding: verdicts"),
    pytest.param(decode._DecodeFn, "process", some_of_the_messages, f"{OF}: {FILES}: ", id="decoding: some messages"),
    pytest.param(read_files._ReadFn, "process", (), f"{OF}: {FILES}: 2", id="reading: files"),
    pytest.param(report_files, "read_blocks", (), f"{OF}: {FILES}: 2", id="reading: all of a file"),
    pytest.param(report_files, "read_blocks", a_file_read_in_part, f"{OF}: {FILES}: 1", id="reading: part of a file"),
    pytest.param(containers, "_split_block", a_block_left_out, f"{OF}: {FILES}: 1", id="reading: blocks"),
    pytest.param(estimate_distribution._EstimateFn, "process", (), f"{WINDOW}: windows lost: 1", id="estimate"),
]


@pytest.mark.parametrize(("owner", "name", "lossy", "said"), LOST)
def test_what_is_swallowed_ends_the_job_with_another_code(
    owner: Any,
    name: str,
    lossy: Any,
    said: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    FIRST.clear()
    FIRST.add(b"".join(next(iter_blocks(folder / "a.avro"))))
    monkeypatch.setattr(owner, name, lossy if callable(lossy) else swallowed(getattr(owner, name), lossy))
    assert estimate.main(shlex.split(JOB)) == 3
    *_, last = capfd.readouterr().err.splitlines()
    assert last.startswith(f"estimate: the ledger does not balance {said}")
    assert last.endswith("; do not use this output")


def iter_blocks(path: Path) -> Iterator[list[bytes]]:
    with path.open("rb") as file:
        yield from list(READ(file, path.name))


@pytest.mark.usefixtures("folder")
def test_without_a_loss_nothing_is_in_transit(capfd: pytest.CaptureFixture[str]) -> None:
    assert estimate.main(shlex.split(JOB)) == 0
    assert capfd.readouterr().err == "estimate: 50 received = 50 accepted + 0 rejected\n"
    assert Path("out/ledger.jsonl").read_text().count('"in_transit": 0') == 1
    assert Path("out/ledger.jsonl").read_text().count("\n") == 1


def grown(file: Any) -> Any:
    """A file that has more bytes than it had when its name was matched."""
    with file:
        return io.BytesIO(file.read() + container([(1, single())])[len(container([])) :])


@pytest.mark.usefixtures("folder")
def test_a_file_that_changes_while_it_is_read_shows(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(read_files, "_open", lambda metadata: grown(read_files.stores.opened(metadata.path)))
    assert estimate.main(shlex.split(JOB)) == 3
    assert f"{FILES}: 2" in capfd.readouterr().err


# ---------------------------------------------------------------------- streams


def events() -> list[Event]:
    """Messages of three periods; the last ones come behind the watermark, which splits both sides over two panes."""
    rng = generator("transit", "stream")

    def some(number: int, first: int) -> list[bytes]:
        return wire.encode_reports(KRR.perturb(["0"] * number, rng, first + rng.integers(0, PERIOD, number)))

    return [
        replay.arrive(PERIOD, [*some(7, 0), packed(KRR, [(0, 5, bytes(16), b"\1")] * 3), b"garbage"]),
        replay.watermark(PERIOD + 1),
        replay.arrive(2 * PERIOD - 1, some(5, PERIOD)),
        replay.watermark(2 * PERIOD + MINUTE),
        replay.arrive(2 * PERIOD - 1, some(4, PERIOD)),
        replay.arrive(2 * PERIOD, some(6, 2 * PERIOD)),
        *(replay.watermark(time * PERIOD) for time in range(3, 9)),
    ]


@pytest.mark.parametrize("windows", [FIXED, SLIDING], ids=["fixed", "sliding"])
@pytest.mark.parametrize("release", [CORRECTED, FINAL])
def test_in_a_stream_both_sides_add_up_to_nothing(windows: Windows, release: str) -> None:
    rows = replay.replay(replay.streaming_job([KRR], windows, allowed_lateness=PERIOD, release=release), events())
    assert not replay.unbalanced(rows["ledger"])
    assert rows["estimates"]
    for row in rows["ledger"]:
        assert row.in_transit or row.received or row.accepted or row.rejected or row.unread_messages


@pytest.mark.parametrize(
    ("owner", "name", "nothing", "lost"),
    [
        (decode._DecodeFn, "process", [], 24),
        (estimate_distribution._EstimateFn, "process", (), None),
    ],
)
@pytest.mark.parametrize("release", [CORRECTED, FINAL])
def test_a_loss_shows_in_a_stream(
    owner: Any, name: str, nothing: Any, lost: int | None, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = replay.streaming_job([KRR], FIXED, allowed_lateness=PERIOD, release=release)
    panes = len(replay.replay(job, events())["estimates"])
    monkeypatch.setattr(owner, name, swallowed(getattr(owner, name), nothing))
    rows = replay.replay(job, events())
    sums: Counter[bool] = Counter()
    for row in rows["ledger"]:
        sums[row.collection_id is None] += row.in_transit or 0
    assert +sums == {lost is not None: lost or panes}


def test_a_message_counts_once_however_many_reports_it_holds() -> None:
    assert manifest.ListedFile("a", 1, "0" * 64, 1, 10).reports == 10
    assert [wire.reports_in(message) for message in (single(), packed(), b"", packed()[:-1])] == [1, 2, 1, 1]


def test_counts_and_row_of_a_window_have_one_place_in_the_ledger() -> None:
    """So that they add up to 0: the start of the window in milliseconds."""
    window, delay = IntervalWindow(7 * PERIOD // 1000, 8 * PERIOD // 1000), as_duration(MINUTE)
    counts = KRR.count(KRR.perturb(["0"] * 9))
    place = panes.place_of(window, PANE_INFO_UNKNOWN, None)
    row = estimate_window(KRR, counts, place, Empirical(), None, None)
    handed = transit._counts_entry((KRR.fingerprint, counts), delay, window, window.start)
    taken = transit._row_entry(row, delay, window, window.start)
    entries = [LedgerEntry(IN_TRANSIT, KRR.fingerprint, 7 * PERIOD, number) for number in (1, -1)]
    assert [handed.value, taken.value] == entries
    assert {handed.timestamp, taken.timestamp} == {window.max_timestamp() + delay}
