"""``POST /navigations``: what pages send is kept as lines that ``uldp navigations`` reads, and nothing else is."""

from __future__ import annotations

import asyncio
import csv
import datetime
import errno
import gzip
import json
import math
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest
from starlette.responses import JSONResponse

from packages.gateway.tests.support.gateways import Answer, Running, gateway
from packages.gateway.tests.support.navigation_lines_kept import LINE, kept
from tests.support.live import ROOT
from tests.support.messages_cases import single
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.navigation_line import LONGEST
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.navigations import navigation_log
from uldp_transforms_gateway.navigations.navigation_desk import NavigationDesk
from uldp_transforms_gateway.navigations.navigation_log import NavigationLog
from uldp_transforms_gateway.navigations.page_lines import checked
from uldp_transforms_gateway.openapi import document
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.refusals import Refused

ANSWERS = ROOT / "tests" / "data" / "browser_confidence.csv.gz"


def recorded() -> list[dict[str, Any]]:
    """What the pages of a real browser sent."""
    rows = csv.DictReader(gzip.decompress(ANSWERS.read_bytes()).decode().splitlines())
    numbers = {"rate": "randomized_trigger_rate", "duration": "duration_ms"}
    return [{"confidence": row["value"]} | {new: float(row[old]) for new, old in numbers.items()} for row in rows]


def sent(running: Running, body: bytes, **headers: str) -> Answer:
    """The answer, which is one of the document."""
    answer = running.ask("POST", "/navigations", body, **headers)
    described = document()["paths"]["/navigations"]["post"]["responses"][str(answer.status)]
    jsonschema.validate(answer.content, described["content"]["application/json"]["schema"])
    return answer


def test_answers_of_a_real_browser_arrive_and_are_estimated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gateway for navigations alone; each line is one request, as a page sends it, but for a packed rest."""
    rows, folder = recorded(), tmp_path / "navigations"
    bodies = [json.dumps(row).encode() for row in rows]
    begin = time.time()
    with gateway(["--navigations", str(folder)], tmp_path, collection=None) as running:
        answers = [sent(running, body, Content_Type="text/plain;charset=UTF-8") for body in bodies[:50]]
        answers += [sent(running, b"\n".join(bodies[at : at + 400])) for at in range(50, len(bodies), 400)]
        assert {answer.status for answer in answers} == {202}
        assert sum(answer.content["spooled"] for answer in answers) == len(rows)
        assert running.counted("navigations_accepted_total") == len(rows)
        assert running.counted("navigation_requests_total") == len(answers)
        assert running.ask("POST", "/reports", single()).status == 404
        assert running.ask("GET", "/healthz").status == 200
        found = kept(folder)  # while the gateway runs
    assert [{name: line[name] for name in row} for line, row in zip(found, rows, strict=True)] == rows
    assert all(begin - 1 <= line["time"] <= time.time() + 1 for line in found)
    assert uldp.main(["navigations", str(folder), "--window", "365d", "--json", str(tmp_path / "rows.jsonl")]) == 0
    assert f"{len(rows):,} of {len(rows):,} rows are used." in capsys.readouterr().out
    whole = json.loads((tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert whole["num_reports"] == len(rows)


def test_what_is_not_a_navigation_is_refused_with_a_reason(tmp_path: Path) -> None:
    folder = tmp_path / "navigations"
    with gateway(["--navigations", str(folder)], tmp_path, collection=None) as running:
        mixed = sent(running, b"\n".join([LINE, b"[]", LINE.replace(b"0.5", b"1.5"), b""]))
        assert (mixed.status, mixed.content) == (202, {"spooled": 1, "refused": {"malformed": 1, "out_of_range": 1}})
        for body, status, reason in (
            (b"", 400, "malformed"),
            (b"\xff\x00", 400, "malformed"),
            (LINE[:-1] + b', "page": "/salary"}', 400, "malformed"),
            (LINE.replace(b"high", b"medium"), 400, "out_of_range"),
            (b" " * (1 << 16) + LINE, 413, "too_large"),
        ):
            answer = sent(running, body)
            assert (answer.status, answer.content["reason"]) == (status, reason)
        other = sent(running, LINE, Origin="https://other.example")
        assert (other.status, other.content) == (403, {"reason": "origin"})
        assert running.counted("navigations_refused_total") == 7
        assert "/salary" not in running.said()
    assert len(kept(folder)) == 1
    assert set(kept(folder)[0]) == {"time", "confidence", "rate", "duration"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rate", value) for value in (-0.1, 1, 1.5, True, None, "0.5", math.nan, math.inf, [0.5], 10**400)),
        *(("duration", value) for value in (-1, LONGEST * 2, False, "soon", math.nan, {})),
        *(("confidence", value) for value in ("medium", None, 1, ["high"], {"high": 1}, "HIGH")),
    ],
    ids=lambda value: str(value)[:20],
)
def test_impossible_values_are_out_of_range(name: str, value: object) -> None:
    line = json.dumps(json.loads(LINE) | {name: value}).encode()
    assert checked(line, 0.0) == ([], Counter({Reason.OUT_OF_RANGE: 1}))


@pytest.mark.parametrize(
    "line",
    [
        *(b"{", b"null", b"[" * 100_000, b'{"confidence": "high"}', b"\xff\xfe", b'"high"', b"1" * 60_000),
        *(LINE[:-1] + b', "page": "/salary"}', LINE.replace(b"rate", b"page"), b"[%s]" % LINE, b" " * 99 + b"null"),
    ],
    ids=lambda line: repr(line[:20]),
)
def test_other_texts_are_malformed(line: bytes) -> None:
    assert checked(line, 0.0) == ([], Counter({Reason.MALFORMED: 1}))


def test_lines_that_are_too_short_are_not_parsed() -> None:
    """A body of line ends would cost as much as a thousand requests; the shortest line is one."""
    shortest = b'{"confidence":"low","rate":0,"duration":0}'
    with mock.patch("json.loads", wraps=json.loads) as parsed:
        assert checked(b"\n" * (1 << 16), 0.0) == ([], Counter({Reason.MALFORMED: 1 << 16}))
        assert not parsed.called
        assert len(checked(shortest + b"\n" + shortest[1:], 0.0)[0]) == parsed.call_count == 1


def test_a_line_cannot_smuggle_in_another_one() -> None:
    """Also not by characters that some readers take for line ends."""
    body = '{"confidence": "high", "rate": 0.5, "duration": 1}\u2028{"confidence": "low", "rate": 0, "duration": 1}'
    assert checked(body.encode(), 0.0)[0] == []
    [line], _ = checked(LINE, 1.25)
    assert line == b'{"time": 1.25, "confidence": "high", "rate": 0.5, "duration": 12.5}\n'


def test_a_killed_gateway_has_what_it_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "navigations"
    for expected in (1, 2):
        with gateway(["--navigations", str(folder)], tmp_path, collection=None) as running:
            assert sent(running, LINE).status == 202
            running.process.kill()
            running.process.wait()
        assert len(kept(folder)) == expected
    assert len(list(folder.glob("*.jsonl"))) == 2  # one for each process


def test_a_full_disk_refuses_and_the_next_line_begins_another_file(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")

    async def run() -> None:
        log = NavigationLog(str(tmp_path))
        await log.start()
        await log.write(LINE + b"\n")
        with mock.patch("os.fsync", side_effect=full), pytest.raises(Undelivered, match="No space left on device"):
            await log.write(LINE + b"\n")
        await log.write(LINE + b"\n")
        await log.close()

    asyncio.run(asyncio.wait_for(run(), 30))  # a fault of the writer would let all wait for ever
    paths = [path.name for path in tmp_path.iterdir()]
    assert len(paths) == 2 and all(re.fullmatch(r"navigations-\d{8}-[0-9a-f]{12}\.jsonl", name) for name in paths)


def test_a_file_that_cannot_be_closed_stops_nobody(tmp_path: Path) -> None:
    """Otherwise all later requests would wait for ever."""
    full = OSError(errno.EIO, "Input/output error")

    async def run() -> None:
        log = NavigationLog(str(tmp_path))
        await log.start()
        await log.write(LINE + b"\n")
        assert log._file is not None
        log._file.close()
        log._file = mock.Mock(**{"write.side_effect": full, "close.side_effect": full})
        with pytest.raises(Undelivered, match="Input/output error"):
            await log.write(LINE + b"\n")
        await log.write(LINE + b"\n")
        await log.close()

    asyncio.run(asyncio.wait_for(run(), 30))  # a fault of the writer would let all wait for ever
    assert len(kept(tmp_path)) == 2


@pytest.mark.parametrize("fault", [ValueError("a text with data"), OSError("without a number")])
def test_a_fault_of_the_program_while_writing_leaves_nobody_waiting(tmp_path: Path, fault: Exception) -> None:
    """Nor does a file that cannot be closed; the next line is written, and the text of the fault is not repeated."""

    async def run() -> None:
        log = NavigationLog(str(tmp_path))
        await log.start()
        await log.write(LINE + b"\n")
        assert log._file is not None
        log._file.close()
        log._file = mock.Mock(**{"write.side_effect": fault, "close.side_effect": ValueError})
        with pytest.raises(
            Undelivered, match=rf"^navigations cannot be written to {tmp_path}: {type(fault).__name__}$"
        ):
            await log.write(LINE + b"\n")
        await log.write(LINE + b"\n")
        await log.close()

    asyncio.run(asyncio.wait_for(run(), 30))
    assert len(kept(tmp_path)) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("rate", 0), ("rate", 0.999), ("duration", 0), ("duration", 1e9), ("confidence", "low"), ("confidence", "high")],
)
def test_the_ends_of_what_is_possible_are_possible(name: str, value: object) -> None:
    """And a millisecond more than the longest time is not."""
    line = json.dumps(json.loads(LINE) | {name: value}).encode()
    [kept_line], refused = checked(line, 1.23456)
    assert json.loads(kept_line)[name] == value
    assert json.loads(kept_line)["time"] == 1.235
    assert not refused
    if value == 1e9:
        assert checked(line.replace(b"1000000000.0", b"1000000001"), 0.0)[1] == Counter({Reason.OUT_OF_RANGE: 1})


def test_each_line_is_kept_or_counted_with_its_reason() -> None:
    lines = [LINE, LINE[:-1], LINE.replace(b"high", b"never"), LINE, b'{"rate": 2}', LINE.replace(b"0.5", b"2")]
    found, refused = checked(b"\n".join(lines), 7.0)
    assert found == [b'{"time": 7.0, "confidence": "high", "rate": 0.5, "duration": 12.5}\n'] * 2
    assert refused == Counter({Reason.MALFORMED: 2, Reason.OUT_OF_RANGE: 2})


class Disk:
    """Notes what is synced, and lets a file take a few bytes at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.synced: list[str] = []
        self._sync = os.fsync
        monkeypatch.setattr(os, "fsync", self._note)

    def _note(self, number: int) -> None:
        self.synced.append(Path(os.readlink(f"/proc/self/fd/{number}")).suffix or "folder")
        self._sync(number)


def test_lines_and_the_names_of_their_files_are_on_disk_before_they_are_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is synced for each new file; each day has one, and a file that takes a part is written on."""
    disk, log, days = Disk(monkeypatch), NavigationLog(str(tmp_path / "a" / "b")), mock.Mock()
    monkeypatch.setattr(navigation_log, "datetime", mock.Mock(timezone=datetime.timezone, datetime=days))
    days.now.return_value = datetime.datetime(2026, 11, 26, 23, 59)
    assert log._append([(b"a\n", None), (b"b\n", None)]) is None
    assert disk.synced == ["folder", ".jsonl"]
    first = log._file
    assert first is not None
    written, slow = first, mock.Mock(fileno=first.fileno)
    slow.write.side_effect = lambda data: written.write(data[:1])
    log._file = slow
    assert log._append([(b"cde\n", None)]) is None
    assert (slow.write.call_count, disk.synced) == (4, ["folder", ".jsonl", ".jsonl"])
    log._file = first
    days.now.return_value = datetime.datetime(2026, 11, 27)
    assert log._append([(b"f\n", None)]) is None
    assert disk.synced[3:] == ["folder", ".jsonl"]
    assert first.closed
    days.now.assert_called_with(tz=datetime.timezone.utc)
    paths = sorted((tmp_path / "a" / "b").iterdir())
    assert [path.read_bytes() for path in paths] == [b"a\nb\ncde\n", b"f\n"]
    names = [path.name.rpartition("-") for path in paths]
    assert [day for day, *_ in names] == ["navigations-20261126", "navigations-20261127"]
    assert len({name for *_, name in names}) == 1 and len(names[0][2]) == len("0123456789ab.jsonl")
    last = log._file
    asyncio.run(closed(log))
    assert log._file is None and last is not None and last.closed


async def closed(log: NavigationLog) -> None:
    await log.start()
    await log.close()


class Open:
    """A door that everybody passes."""

    async def answer(self, request: Any, taker: Any, too_large: Any) -> Any:
        try:
            return await taker.deliver(request, None)
        except Refused as refused:
            too_large()
            return JSONResponse({"reason": refused.reason}, refused.status)
        except Undelivered:
            return JSONResponse({}, 503)


def test_numbers_of_lines_and_answers_are_shown(tmp_path: Path) -> None:
    """64 KiB are not too large; a line that cannot be kept is a failure of the gateway."""
    said = list[str]()
    meters, log, door = Meters(said.append), mock.Mock(), Open()
    log.write = mock.AsyncMock(side_effect=[None, None, Undelivered("of this test")])
    desk = NavigationDesk(log, door, meters)  # type: ignore[arg-type]  # a stand-in
    mixed = b"\n".join([LINE, LINE, LINE[1:], LINE.replace(b"0.5", b"2"), LINE[1:]])
    largest = LINE + b" " * ((1 << 16) - len(LINE))
    bodies = [(mixed, 202), (largest, 202), (largest + b" ", 413), (LINE, 503), (LINE[1:] + b"\n" + LINE[1:], 400)]
    for body, status in bodies:
        request: Any = body
        assert asyncio.run(desk.navigations(request)).status_code == status
    assert [call.args[0].count(b"\n") for call in log.write.call_args_list] == [2, 1, 1]
    text = meters.text().decode()
    for name, number in {
        'requests_total{status="202"}': 2,
        'requests_total{status="413"}': 1,
        'requests_total{status="503"}': 1,
        'requests_total{status="400"}': 1,
        'refused_total{reason="too_large"}': 1,
        'refused_total{reason="out_of_range"}': 1,
        'refused_total{reason="malformed"}': 4,
    }.items():
        kind = "navigation_" if name.startswith("requests") else "navigations_"
        assert f"uldp_gateway_{kind}{name} {float(number)}\n" in text
    assert "uldp_gateway_navigations_accepted_total 4.0\n" in text
    assert said == ["reports cannot be delivered, and their senders are told: of this test"]
    assert not meters.is_well


def test_the_most_frequent_reason_is_that_of_the_answer() -> None:
    desk = NavigationDesk(mock.Mock(), mock.Mock(), Meters(print))
    wrong = LINE.replace(b"0.5", b"2")
    for lines, reason, status in (([wrong, wrong, b"x"], "out_of_range", 400), ([b"x", b"x", wrong], "malformed", 400)):
        answer = asyncio.run(desk.deliver(b"\n".join(lines)))
        numbers = Counter(line == wrong for line in lines)
        refused = {"out_of_range": numbers[True], "malformed": numbers[False]}
        assert (json.loads(bytes(answer.body)), answer.status_code) == ({"reason": reason, "refused": refused}, status)


def test_reports_and_navigations_together(tmp_path: Path) -> None:
    folder = tmp_path / "navigations"
    options = ["--navigations", str(folder), f"--spool={tmp_path / 'spool'}", "--pack_every=20ms"]
    with gateway(options, tmp_path) as running:
        assert running.send(single()).status == 202
        assert sent(running, LINE).status == 202
        assert "POST http" in running.said()
    assert len(kept(folder)) == 1
