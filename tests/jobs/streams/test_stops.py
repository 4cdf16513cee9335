"""A stream that is stopped, killed and started again, as supervisors do: the books of all its runs add up exactly."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import fastavro
import jsonschema
import numpy as np
import pytest

from tests.support import cases, live
from tests.support.messages_cases import write_files
from uldp_transforms.jobs import check
from uldp_transforms.jobs.records.ledger_sums import summary
from uldp_transforms.jobs.records.run_accounts import read_accounts
from uldp_transforms.jobs.records.run_records import read_records
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.messages import wire
from uldp_transforms.rows.figures.window_names import clock, moment_in_zone
from uldp_transforms.schemas import load
from uldp_transforms.windows import moment_of

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]
DAY = 86_400_000


def reports(number: int, seed: int, begin: int) -> list[bytes]:
    """Some of the day of this test, and one in ten that is too old."""
    rng = np.random.default_rng(seed)
    times = np.where(np.arange(number) % 10 == 0, begin - 2 * DAY, begin)
    return wire.encode_reports(ANIMALS.perturb(rng.choice(cases.VALUES, number).tolist(), rng, times))


def options(folder: Path, window: str) -> list[str]:
    write_files(folder, {"animals.json": ANIMALS})
    return [
        *f"--collection={folder}/animals.json --subscription={live.SUBSCRIPTION} --output={folder}/output".split(),
        *f"--window={window} --allowed_lateness=6h --min_reports=1 --write_counts".split(),
        *live.SOON,
    ]


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_stopped_and_started_again_the_books_are_exact(times: int, tmp_path: Path) -> None:
    """At random moments of a busy stream, with the same command; what the runs counted makes the whole window."""
    rng, begin = random.Random(times), time.time_ns() // 1_000_000
    output, log = tmp_path / "output", tmp_path / "log"
    published, seconds = 0, []
    done = threading.Event()
    with live.broker() as broker:

        def publish() -> None:
            nonlocal published
            while not done.wait(0.05):
                broker.publish(reports(30, published, begin))
                published += 30

        publisher = threading.Thread(target=publish)
        publisher.start()
        try:
            for _ in range(times):
                log.unlink(missing_ok=True)
                with live.job(options(tmp_path, "1d"), log) as process:
                    live.wait_until(lambda: is_started(output), process, log)
                    time.sleep(rng.uniform(0, 4))
                    process.send_signal(signal.SIGTERM)
                    told = time.monotonic()
                    assert process.wait(live.PATIENCE) == 0, log.read_text()
                    seconds.append(time.monotonic() - told)
                assert log.read_text().splitlines()[-1].startswith("estimate: stopped: ")
        finally:
            done.set()
            publisher.join()
        with live.job(options(tmp_path, "1d"), log) as process:
            live.wait_until(lambda: is_started(output), process, log)
            live.wait_until(lambda: broker.backlog() == 0, process, log)
            process.send_signal(signal.SIGTERM)
            assert process.wait(live.PATIENCE) == 0, log.read_text()
    print(f"stops took {min(seconds):.1f} to {max(seconds):.1f} s, {published} reports")
    records = read_records(str(output))
    assert len(records) == times + 1
    assert all(record.end == "stopped" and record.ledger and record.ledger["balanced"] for record in records)
    assert sum(record.ledger["received"] for record in records if record.ledger) == published
    assert live.books(output) == Counter(received=published, accepted=published * 9 // 10, too_old=published // 10)
    argv = ["--collection", f"{tmp_path}/animals.json", str(output), "--min_reports=1"]
    assert reestimate.main([*argv, "--output", str(tmp_path / "again")]) == 0
    [row] = [json.loads(line) for line in (tmp_path / "again/estimates.jsonl").read_text("utf-8").splitlines()]
    assert row["run"] == max(number_of(output))
    assert sum(number_of(output).values()) == published * 9 // 10
    assert row["status"] == "partial"  # the day is not over


def is_started(output: Path) -> bool:
    records = read_records(str(output))
    return bool(records) and records[-1].end is None


def number_of(output: Path) -> dict[str, int]:
    """Reports in the counts of each run."""
    found: dict[str, int] = {}
    for path in output.glob("counts-*.avro"):
        with path.open("rb") as file:
            for row in fastavro.reader(file):
                found[row["run"]] = max(found.get(row["run"], 0), sum(row["num_reports"]))
    return found


def test_a_killed_stream_says_so_when_it_is_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it had acknowledged for open windows is lost, the books of what was written stand, nothing counts twice."""
    output, log = tmp_path / "output", tmp_path / "log"
    begin = time.time_ns() // 1_000_000
    with live.broker() as broker:
        with live.job(options(tmp_path, "4s"), log) as process:
            broker.publish(reports(50, 1, begin))
            live.wait_until(lambda: live.books(output)["received"] == 50, process, log)
            broker.publish(reports(30, 2, time.time_ns() // 1_000_000))
            time.sleep(0.5)
            process.send_signal(signal.SIGKILL)
            assert process.wait(live.PATIENCE) == -signal.SIGKILL
        [killed] = read_records(str(output))
        assert killed.end is None
        accounts = read_accounts(str(output), killed.run)
        assert accounts is not None and accounts["received"] in (50, 80)
        held = {(row["window_start"]): row["num_reports"] or 0 for row in live.rows(output, "estimates")}
        assert sum(held.values()) <= accounts["accepted"]
        assert check.main([str(output)]) == 1
        said = capsys.readouterr().out
        assert f"check: run {killed.run} was killed: its estimates contain " in said
        assert f" it had counted {accounts['received']} received = " in said
        log.unlink()
        with live.job(options(tmp_path, "4s"), log) as process:
            broker.publish(reports(40, 3, time.time_ns() // 1_000_000))
            live.wait_until(lambda: live.books(output)["received"] >= 90, process, log)
            assert check.main([str(output)]) == 1
            assert f"check: run {killed.run} was killed: " in capsys.readouterr().out
            assert check.main([str(output), f"--acknowledge={killed.run}"]) == 0
            assert " running, " in capsys.readouterr().out
            process.send_signal(signal.SIGTERM)
            assert process.wait(live.PATIENCE) == 0, log.read_text()
    first, last = read_records(str(output))
    cut, was_killed, *_ = log.read_text().splitlines()
    before = last.specification["partial_before"]
    assert cut.startswith(
        f"estimate: windows that begin before {moment_in_zone(before, clock(None))} are partial, because run "
        f"{first.run} counted some"
    )
    assert was_killed.startswith(f"estimate: run {first.run} was killed: the reports that it had acknowledged")
    assert moment_of(before) == pytest.approx(moment_of(last.started) + 300_000, abs=5_000)
    mine = [row for row in live.rows(output, "estimates") if row["run"] == last.run]
    assert {row["status"] for row in mine if moment_of(row["window_start"]) < moment_of(before)} == {"partial"}
    books = live.books(output)
    assert 90 <= books["received"] <= 120
    assert live.balance(books) == 0
    assert check.main([str(output)]) == 0
    lost = accounts["accepted"] - sum(
        row["accepted"] for row in live.rows(output, "ledger") if row["run"] == killed.run
    )
    words = f"; {lost} accepted reports of killed runs are in no ledger row" * bool(lost)
    assert f"ledger   {summary(sums(books))}, balanced{words}\n" in capsys.readouterr().out
    assert [path.name for path in output.glob("accounts-*")] == [f"accounts-{killed.run}.json"]
    for path in output.glob("run-*.json"):
        jsonschema.validate(json.loads(path.read_text("utf-8")), load("run.schema.json"))


def sums(books: Counter[str]) -> dict[str, object]:
    numbers = {name: books[name] for name in ("received", "accepted", "duplicates")}
    return numbers | {"rejected": {name: n for name, n in sorted(books.items()) if name not in numbers}}


@pytest.mark.slow
@pytest.mark.parametrize("pause", [3.0, 60.0])
def test_clocks_that_are_set_and_pauses_cost_no_report(
    pause: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six times two hours ahead and back, and a pause of the process: exact counts, and a drain of the usual time."""
    output, log, shift, published = tmp_path / "output", tmp_path / "log", tmp_path / "shift", 0
    shift.write_text("0", encoding="ascii")
    monkeypatch.setenv("ULDP_TEST_CLOCK", str(shift))
    path = f"{live.ROOT}{os.pathsep}{live.ROOT / 'tests/support/shifted_clock'}"
    with live.broker() as broker, live.job(options(tmp_path, "4s"), log, fork=False, PYTHONPATH=path) as process:

        def publish(seconds: float) -> None:
            nonlocal published
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                broker.publish(reports(30, published, time.time_ns() // 1_000_000))
                published += 30
                time.sleep(0.2)

        live.wait_until(lambda: is_started(output), process, log)
        for ahead in (7200, 0) * 6:
            partial = shift.with_suffix(".new")
            partial.write_text(str(ahead), encoding="ascii")
            partial.replace(shift)
            publish(3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(pause)
        process.send_signal(signal.SIGCONT)
        publish(3)
        live.wait_until(lambda: broker.backlog() == 0, process, log)
        process.send_signal(signal.SIGTERM)
        told = time.monotonic()
        assert process.wait(live.PATIENCE) == 0, log.read_text()
    seconds = time.monotonic() - told
    print(f"{published} reports; the stop took {seconds:.1f} s")
    assert seconds < 60
    assert live.books(output) == Counter(received=published, accepted=published * 9 // 10, too_old=published // 10)
    assert sum(held_in_windows(output).values()) == published * 9 // 10


def held_in_windows(output: Path) -> dict[str, int]:
    """Reports in the last row of the counts of each window."""
    found: dict[str, int] = {}
    for path in output.glob("counts-*.avro"):
        with path.open("rb") as file:
            for row in fastavro.reader(file):
                start = str(row["window_start"])
                found[start] = max(found.get(start, 0), sum(row["num_reports"]))
    return found


def test_a_second_signal_cuts_off(tmp_path: Path) -> None:
    output, log = tmp_path / "output", tmp_path / "log"
    with live.broker(), live.job(options(tmp_path, "1d"), log) as process:
        live.wait_until(lambda: is_started(output), process, log)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        code = process.wait(live.PATIENCE)
    [record] = read_records(str(output))
    if record.end == "stopped":  # it was done already, or about to leave
        assert code in (0, -signal.SIGINT), log.read_text()
    else:
        assert (record.end, code) == ("cancelled", 130), log.read_text()
        assert "Traceback" not in log.read_text()


def test_an_output_that_becomes_unwritable_is_the_last_word(tmp_path: Path) -> None:
    output, log = tmp_path / "output", tmp_path / "log"
    with live.broker() as broker, live.job(options(tmp_path, "1d"), log) as process:
        live.wait_until(lambda: is_started(output), process, log)
        output.rename(tmp_path / "moved")
        output.write_text("")
        broker.publish([b"\x02garbage"])
        assert process.wait(live.PATIENCE) == 1, log.read_text()
    last = log.read_text().splitlines()[-1]
    assert last == f"estimate: the run failed: {output}: File exists"
