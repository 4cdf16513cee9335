"""``uldp check``: what it says of a directory, and that each thing that is wrong is found."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.messages_cases import KRR
from uldp_transforms.files import whole_file as whole_files
from uldp_transforms.jobs import check, uldp
from uldp_transforms.jobs.records.run_directory import RunDirectory
from uldp_transforms.jobs.records.run_records import RunRecord, read_records
from uldp_transforms.rows.figures.window_names import clock as zone_named
from uldp_transforms.rows.figures.window_names import moment_in_zone
from uldp_transforms.rows.row_identity import name_of
from uldp_transforms.windows import rfc3339

HOUR = 3_600_000
NOW = 500_000 * HOUR + 60_000
PLACE = name_of(KRR)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "now", lambda: NOW)


def said(moment: int) -> str:
    """A moment as texts name it, without a time zone of the job."""
    return moment_in_zone(rfc3339(moment), zone_named(None))


def span(hours_ago: int) -> dict[str, str]:
    """A window of an hour that ended so many hours ago."""
    end = NOW // HOUR * HOUR - hours_ago * HOUR
    return {"window_start": rfc3339(end - HOUR), "window_end": rfc3339(end)}


def estimate(run: str, hours_ago: int = 0, status: str = "ok", pane_index: int = 0) -> dict[str, Any]:
    return {**PLACE, **span(hours_ago), "run": run, "status": status, "pane_index": pane_index}


def ledger(run: str, received: int = 10, accepted: int = 9, hours_ago: int = 0, **rejected: int) -> dict[str, Any]:
    numbers = {"received": received, "accepted": accepted, "duplicates": 0, "rejected": rejected or {"too_old": 1}}
    return {**PLACE, **span(hours_ago), **numbers, "run": run}


class Folder:
    """An output directory, made by hand."""

    def __init__(self, path: Path):
        self.path = path

    def run(self, name: str, end: str | None = "stopped", *, resumes: bool = True, launched: bool = False) -> None:
        RunRecord(
            run=name,
            started=rfc3339(NOW - 9 * HOUR),
            ended=None if end is None else rfc3339(NOW - HOUR),
            source={"option": "--x", "name": "x", "bounded": not resumes, "resumes": resumes},
            specification={"partial_before": None, "allowed_lateness": "60m"},
            end=end,
            launched=launched,
            sentence=None if end is None else f"{end}: that is all",
        ).write(str(self.path))

    def write(self, name: str, *rows: dict[str, Any]) -> None:
        (self.path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """That of two runs of a stream, where all is well."""
    found = Folder(tmp_path)
    found.run("a")
    found.run("b")
    found.write("ledger-a-1", ledger("a"), ledger("a"))
    found.write("ledger-b-1", ledger("b", 5, 4))
    found.write("estimates-a-1", estimate("a", 2), estimate("a", 1))
    found.write("estimates-b-1", estimate("b", 1, "partial"), estimate("b", 0), estimate("b", 0, "suppressed", 1))
    found.write("health-b-1", estimate("b"))
    return found


def findings(folder: Folder, capsys: pytest.CaptureFixture[str], options: str = "") -> list[str]:
    """What is wrong; the exit code says whether anything is."""
    code = uldp.main(["check", str(folder.path), *options.split()])
    found = [line for line in capsys.readouterr().out.splitlines() if line.startswith("check: ")]
    assert code == bool(found)
    return [line.removeprefix("check: ") for line in found]


def test_all_is_well(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """The sums of both runs; of each window the row that readers take, which is never a partial one beside another."""
    assert check.main([str(folder.path), "--max_age=2h"]) == 0
    assert capsys.readouterr().out == (
        f"run      b stopped, {said(NOW - 9 * HOUR).removesuffix(' (UTC)')} to {said(NOW - HOUR)}\n"
        "ledger   25 received = 22 accepted + 3 rejected (too_old 3), balanced\n"
        f"windows  ok 2, suppressed 1; numbers up to {said(NOW - 60_000 - HOUR)}, 1h01m ago\n"
        "alarms   0 of 0 window(s) that could be checked\n"
    )


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_latest_run_that_did_not_end_well(end: str, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.run("c", end)
    assert findings(folder, capsys) == [f"run c: {end}: that is all"]
    folder.run("d")
    assert findings(folder, capsys) == []


def test_a_run_without_an_end(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.run("c", None)
    [sentence] = findings(folder, capsys)
    assert sentence == killed("c", folder, 0)
    directory = RunDirectory(str(folder.path), "c", bounded=False, launched=False)
    directory.prepare()
    assert findings(folder, capsys) == []
    directory.close()
    folder.run("c", None, launched=True)
    assert findings(folder, capsys) == []


def killed(run: str, folder: Folder, held: int, missing: int = 0) -> str:
    books = f", of which {missing:,} are in no ledger row" if missing else ""
    rows = f"its estimates contain {held:,} reports{books}"
    lost = "reports that it had acknowledged but not written are lost, in a number that is unknown"
    accept = f"To accept this, run uldp check {folder.path} --acknowledge {run}"
    return f"run {run} was killed: {rows}; {lost}. {accept}"


def test_every_killed_run_is_reported_until_it_is_acknowledged(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those before the latest one; with what their rows hold, of each window once, and no ledger has."""
    folder.run("a", None)
    folder.run("b", None)
    folder.run("c")
    shown = [estimate("a", 2) | {"num_reports": 700}, estimate("a", 1) | {"num_reports": 300}]
    again = [estimate("a", 1, pane_index=1) | {"num_reports": 400}, estimate("a", 0, "suppressed")]
    folder.write("estimates-a-1", *shown, *again)
    folder.write("ledger-a-1", ledger("a", 10, 9, 2))
    folder.write("ledger-b-1", ledger("b", 5, 4))
    folder.write("estimates-b-1", estimate("b", 0) | {"num_reports": 4})
    assert findings(folder, capsys) == [killed("a", folder, 1100, 1091), killed("b", folder, 4)]
    assert findings(folder, capsys, "--acknowledge a") == [killed("b", folder, 4)]
    assert findings(folder, capsys) == [killed("b", folder, 4)]
    assert check.main([str(folder.path), "--acknowledge=b"]) == 0
    assert "killed   2 run(s), 2 acknowledged" in capsys.readouterr().out.splitlines()
    assert check.main([str(folder.path), "--acknowledge=c"]) == 2
    assert capsys.readouterr().err == "check: --acknowledge must name a killed run (a, b), got 'c'\n"


def test_what_a_killed_run_had_accepted_and_lost_is_a_number(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of its accounts: 15,960 received, 13,300 in rows, 2,780 in ledger rows, which do balance; acknowledged or not."""
    folder.run("c", None)
    folder.write("estimates-c-1", estimate("c", 0) | {"num_reports": 13_300})
    folder.write("ledger-c-1", ledger("c", 2_780, 2_779))
    sums = {"received": 15_960, "accepted": 15_900, "duplicates": 0, "rejected": {"too_old": 60}}
    accounts = {"run": "c", "time": rfc3339(NOW - 1000)} | sums
    (folder.path / "accounts-c.json").write_text(json.dumps(accounts), encoding="utf-8")
    assert check.main([str(folder.path), "--print_json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["numbers"]["reports_lost_by_killed_runs"] == 2_600
    assert told["lines"]["ledger"].endswith("balanced; 13,121 accepted reports of killed runs are in no ledger row")
    assert told["findings"] == [
        "run c was killed: its estimates contain 13,300 reports, of which 10,521 are in no ledger row; until "
        f"{said(NOW - 1000)} it had counted 15960 received = 15900 accepted + 60 rejected (too_old 60), of which at "
        "most 2,600 accepted reports are in no estimate and are lost, as is what it acknowledged after that. To accept "
        f"this, run uldp check {folder.path} --acknowledge c"
    ]
    assert check.main([str(folder.path), "--acknowledge=c"]) == 0
    assert "accepted reports of killed runs are in no ledger row" in capsys.readouterr().out


def test_reports_of_overlapping_windows_are_counted_once(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.run("c", None)
    half = {"window_start": rfc3339(NOW // HOUR * HOUR - 3 * HOUR // 2), "window_end": rfc3339(NOW - HOUR // 2)}
    rows = [estimate("c", 1), estimate("c", 1) | half, estimate("c", 0)]
    folder.write("estimates-c-1", *(row | {"num_reports": 5} for row in rows))
    assert findings(folder, capsys) == [killed("c", folder, 10, 10)]


def test_a_killed_job_over_files_lost_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its input is still there, and the next run reads all of it."""
    folder = Folder(tmp_path)
    folder.run("a", None, resumes=False)
    assert findings(folder, capsys) == ["run a: it was killed"]
    folder.run("b", "complete", resumes=False)
    assert findings(folder, capsys) == []


def test_json_says_the_same(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.run("c", "failed")
    assert check.main([str(folder.path), "--print_json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["well"] is False and told["findings"] == ["run c: failed: that is all"]
    assert told["numbers"] == {
        **{"received": 25, "accepted": 22, "duplicates": 0, "rejected": 3, "balanced": 1},
        **{"windows_with_numbers": 2, "latest_window_end_seconds": (NOW - 60_000 - HOUR) / 1000},
        **{"windows_with_alarms": 0, "killed_runs": 0, "reports_lost_by_killed_runs": 0},
        **{"unread_messages": 0, "unread_files": 0},
    }
    assert check.main([str(folder.path / "nothing"), "--print_json"]) == 2


def test_a_file_for_prometheus(folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its parser is Prometheus' own; the file is there as a whole or not at all."""
    path = tmp_path / "uldp.prom"
    assert check.main([str(folder.path), f"--prometheus={path}"]) == 0
    families = {family.name: family for family in text_string_to_metric_families(path.read_text(encoding="utf-8"))}
    found = {name: family.samples[0].value for name, family in families.items()}
    assert found["uldp_check_problems"] == 0 and found["uldp_check_received"] == 25
    assert found["uldp_check_time_seconds"] == NOW / 1000
    assert {family.type for family in families.values()} == {"gauge"}
    folder.run("c", "failed")
    assert check.main([str(folder.path), f"--prometheus={path}"]) == 1
    assert "uldp_check_problems 1\n" in path.read_text(encoding="utf-8")


def test_numbers_that_are_none_are_refused(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("estimates-b-1", estimate("b") | {"num_reports": "many"})
    assert check.main([str(folder.path)]) == 2
    assert "must contain rows of uldp estimate (the content is not shown)" in capsys.readouterr().err


def test_a_run_that_refused_nearly_everything(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.run("c", "complete", resumes=False)
    folder.write("ledger", ledger("c", 10, 5, unknown_collection=5))
    assert findings(folder, capsys) == []
    folder.write("ledger", ledger("c", 10, 4, unknown_collection=5, too_old=1))
    assert findings(folder, capsys) == [
        "5 of 10 reports were rejected as unknown_collection: is the --collection file wrong?"
    ]


def test_numbers_that_are_too_old(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    end = said(NOW - 60_000 - HOUR)
    sentence = f"the latest window with numbers ended at {end}, 1h01m ago, more than {{}}"
    assert findings(folder, capsys, "--max_age=30m") == [sentence.format("30m")]
    assert findings(folder, capsys, "--max_age=1h") == [sentence.format("1h00m")]
    assert findings(folder, capsys, "--max_age=61m") == []
    for name in "ab":
        folder.write(f"estimates-{name}-1")
    assert findings(folder, capsys) == []
    assert findings(folder, capsys, "--max_age=1h") == ["no window has numbers"]


def test_two_lengths_never_look_the_same() -> None:
    """A sentence says that one is longer, by a second or less too."""
    assert check._apart(61 * 60_000, 60 * 60_000) == ("1h01m", "1h00m")
    assert check._apart(61 * 60_000 + 30_000, 61 * 60_000) == ("1h01m30s", "1h01m00s")
    assert check._apart(30_001, 30_000) == ("0m31s", "0m30s") and check._apart(59_999, 59_998) == ("1m00s", "0m59s")


def test_a_ledger_out_of_balance(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Of each run by itself: two that are wrong in opposite ways are both wrong."""
    folder.write("ledger-a-1", ledger("a", 11))
    folder.write("ledger-b-1", ledger("b", 9), ledger("b", 9, hours_ago=1))
    sentence = "the ledger of run {} does not balance in {} period(s)"
    assert findings(folder, capsys) == [sentence.format("a", 1), sentence.format("b", 2)]


def test_the_newest_periods_of_a_live_run_may_be_out_of_balance(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.run("c", None, launched=True)
    folder.write("ledger-c-1", ledger("c", 11, hours_ago=0), ledger("c", 11, hours_ago=1))
    assert findings(folder, capsys) == []
    folder.write("ledger-c-1", ledger("c", 11, hours_ago=2))
    assert findings(folder, capsys) == ["the ledger of run c does not balance in 1 period(s)"]


def test_alarms(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    alarms = [estimate("b", hours, "alarm") for hours in (1, 5)]
    folder.write("health-b-1", *alarms)
    sentence = (
        f"sentinels fired for collection 'krr' in {{}} window(s), the last from {said(NOW // HOUR * HOUR - 2 * HOUR)}"
    )
    assert findings(folder, capsys) == [sentence.format(2)]
    assert findings(folder, capsys, "--max_age=3h") == [sentence.format(1)]
    assert findings(folder, capsys, "--max_age=61m") == [sentence.format(1)]
    folder.write("health-b-2", *(row | {"status": "ok", "pane_index": 1} for row in alarms))
    assert findings(folder, capsys) == []


def test_windows_that_no_sentinel_could_check_are_no_quiet_ones(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those without findings, with one about changes alone, and with one that says that nothing was tested."""
    names = [[], ["change"], ["repeats"], ["floor"], ["change", "agreement"]]
    rows = [
        estimate("b", hours) | {"findings": [{"name": name} for name in found]} for hours, found in enumerate(names)
    ]
    folder.write("health-b-1", *rows)
    assert check.main([str(folder.path)]) == 0
    assert "alarms   0 of 2 window(s) that could be checked\n" in capsys.readouterr().out


def test_times_are_in_the_zone_of_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of text; numbers are seconds since 1970."""
    record = RunRecord(
        run="b",
        started="2026-11-22T08:15:03.042Z",
        ended="2026-11-22T23:00:00.999Z",
        source={"option": "--x", "name": "x", "bounded": False, "resumes": False},
        specification={"partial_before": None, "allowed_lateness": "60m", "timezone": "Europe/Berlin"},
        end="stopped",
    )
    record.write(str(tmp_path))
    folder, times = Folder(tmp_path), {"window_start": "2026-11-21T23:00:00Z", "window_end": "2026-11-22T23:00:00Z"}
    folder.write("estimates", estimate("b") | times)
    folder.write("health", estimate("b", status="alarm") | times)
    assert check.main([str(tmp_path), "--max_age=1h"]) == 1
    said = capsys.readouterr().out
    assert "b stopped, 22 Nov 2026, 09:15:03 to 23 Nov 2026, 00:00:00 (Europe/Berlin)\n" in said
    assert "numbers up to 23 Nov 2026, 00:00:00 (Europe/Berlin), " in said
    assert "ended at 23 Nov 2026, 00:00:00 (Europe/Berlin), " in said
    assert check.main([str(tmp_path)]) == 1
    assert "the last from 22 Nov 2026, 00:00:00 (Europe/Berlin)\n" in capsys.readouterr().out


def test_reports_of_seconds_are_no_quiet_ones(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """They are counted, and said to be of 1970."""
    times = {"window_start": "1970-01-12T00:00:00Z", "window_end": "1970-01-13T00:00:00Z"}
    folder.write("ledger-b-1", ledger("b", 5, 4), ledger("b", 7, 6) | times)
    assert check.main([str(folder.path)]) == 0
    assert "times    6 accepted reports are of January or February 1970, as if" in capsys.readouterr().out


RANKED = [  # the rows of a window, from the one that counts least
    {"run": "b", "status": "partial", "num_reports": 900, "pane_index": 9},
    {"run": "a", "status": "suppressed", "num_reports": None, "pane_index": 8},
    {"run": "a", "status": "ok", "num_reports": 0, "pane_index": 7},
    {"run": "a", "status": "ok", "num_reports": 5, "pane_index": 0},
    {"run": "a", "status": "ok", "num_reports": 5, "pane_index": 1},
    {"run": "b", "status": "suppressed", "num_reports": None, "pane_index": 0},
]


def test_of_the_rows_of_a_window_one_counts() -> None:
    """A complete one, of the latest run, with the most reports, the last; each group has its own."""
    place = {"fingerprint": "f", **span(1)}
    rows = [place | row for row in RANKED]
    for less, more in itertools.combinations(rows, 2):
        assert check.latest_rows([less, more]) == check.latest_rows([more, less]) == [more]
    assert check.latest_rows([rows[0], rows[0] | {"again": True}]) == [rows[0] | {"again": True}]
    apart = [rows[0], rows[0] | span(2), rows[0] | {"fingerprint": "g"}]
    assert check.latest_rows(apart) == apart
    groups = [rows[0] | {"group": group} for group in (None, "", "arm=new")]
    assert check.latest_of_groups(groups) == groups[1:]
    assert check.latest_rows(groups) == groups[1:2]


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0, "0m"),
        (59, "59m"),
        (60, "1h00m"),
        (61, "1h01m"),
        (1500, "25h00m"),
        (2879, "47h59m"),
        (2880, "2d00h00m"),
        (1_576_661, "1094d21h41m"),
    ],
)
def test_ages_are_in_hours_and_minutes(minutes: int, words: str) -> None:
    assert check._words(minutes * 60_000) == check._words(minutes * 60_000 + 59_999) == words


def test_nothing_is_said_of_other_runs_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job over files that was cancelled has no numbers, though those of the run before are still there."""
    folder = Folder(tmp_path)
    folder.run("a", "complete", resumes=False)
    folder.write("ledger", ledger("a", 99))
    folder.write("estimates", estimate("a"))
    folder.write("health", estimate("a", status="alarm"))
    assert len(findings(folder, capsys)) == 2
    folder.run("b", "cancelled", resumes=False)
    assert check.main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "ledger   no rows",
        "windows  none; no numbers",
        "alarms   0 of 0 window(s) that could be checked",
        "check: run b: cancelled: that is all",
    ]


def test_one_window_for_everything_is_as_old_as_its_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Folder(tmp_path)
    folder.run("a", "complete", resumes=False)
    folder.write("estimates", estimate("a") | {"window_start": None, "window_end": None})
    assert findings(folder, capsys, "--max_age=1h") == []
    [stale] = findings(folder, capsys, "--max_age=30m")
    assert stale.startswith(f"the latest window with numbers ended at {said(NOW - HOUR)}, 1h00m ago")


def test_a_directory_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(Folder(tmp_path), capsys) == [f"{tmp_path} contains no run record"]


def test_a_run_that_left_no_record(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.path / "unfinished-c").mkdir()
    (folder.path / "unfinished-b").mkdir()  # the folder of a run that has a record
    sentence = "run c began and could not write its record: is the disk full?"
    assert findings(folder, capsys) == [sentence]
    running = RunDirectory(str(folder.path), "c", bounded=True, launched=False)
    running._take_lock()
    assert findings(folder, capsys) == [], "it may just be writing it"
    running.close()
    for record in folder.path.glob("run-*.json"):
        record.unlink()
    (folder.path / "unfinished-b").rmdir()
    assert findings(folder, capsys)[-1] == sentence


def test_a_record_that_cannot_be_replaced_keeps_what_it_said(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is written beside the old one, so that a full disk or a kill leaves one of both, whole."""
    [before] = [record for record in read_records(str(folder.path)) if record.run == "b"]

    def fails(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_files.stores, "replace", fails)
    with pytest.raises(OSError, match="No space left"):
        before.with_end("failed", "no room", None).write(str(folder.path))
    assert [record for record in read_records(str(folder.path)) if record.run == "b"] == [before]
