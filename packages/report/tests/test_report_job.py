"""``uldp estimate --report``, and that a report says of runs and ledgers what ``uldp check`` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import report_rows as rows
from tests.support.html_tree import table, tree_of
from tests.support.messages_cases import KRR, container, single, write_files
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.estimate import run as estimate_run
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.windows import rfc3339


@pytest.fixture
def job(tmp_path: Path) -> list[str]:
    """The command line of a job over one file."""
    write_files(tmp_path, {"c.json": KRR, "in.avro": container([(1, single())])})
    arguments = ["--collection", str(tmp_path / "c.json"), "--input", str(tmp_path / "in.avro"), "--min_reports=1"]
    return ["estimate", *arguments, "--output", str(tmp_path / "out")]


def test_a_job_writes_its_page_when_it_is_complete(
    job: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert uldp.main([*job, "--report"]) == 0
    assert capsys.readouterr().err == "estimate: 1 received = 1 accepted + 0 rejected\n"
    tree = tree_of((tmp_path / "out" / "report.html").read_text("utf-8"))
    ((run, *_, end, sentence),) = table(tree, "Starts of the job in this directory; times in UTC")[1:]
    assert (tmp_path / "out" / f"run-{run}.json").is_file()
    assert (end, sentence) == ("complete", "1 received = 1 accepted + 0 rejected")
    assert "The latest window with numbers: all reports" in tree.text
    assert (tmp_path / "out" / "report.png").read_bytes().startswith(b"\x89PNG")


def test_results_stand_without_a_page(
    job: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(directory: str) -> None:
        raise OSError(28, "No space left on device", f"{directory}/report.html")

    monkeypatch.setattr(estimate_run, "drawing", {"report": full}.__getitem__)
    assert uldp.main([*job, "--report"]) == 0
    assert capsys.readouterr().err == (
        f"estimate: no report was written: {tmp_path}/out/report.html: No space left on device\n"
        "estimate: 1 received = 1 accepted + 0 rejected\n"
    )
    assert (tmp_path / "out" / "estimates.jsonl").is_file()


def test_a_job_that_is_only_launched_has_no_report(job: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main([*job, "--report", "--no_wait_until_finish"]) == 2
    sentence = "--report needs a job that this program waits for, got one that it only launches"
    assert capsys.readouterr().err == f"estimate: {sentence}\n"


def test_runs_and_ledger_are_those_of_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stream that was stopped and goes on: sums of both runs; a window of both has the row of the later one."""
    of = rows.collection(["a", "b"])
    for name, end in (("a", "stopped"), ("b", None)):
        RunRecord(
            run=name,
            started=rfc3339(rows.BEGAN),
            ended=None if end is None else rfc3339(rows.BEGAN + 1000),
            source={"option": "--subscription", "name": "s", "bounded": False, "resumes": True},
            specification={"collections": [of.to_json()], "partial_before": None, "allowed_lateness": "60m"},
            end=end,
            sentence=None if end is None else "stopped",
        ).write(str(tmp_path))
        numbers = {"received": 10, "accepted": 9, "duplicates": 0, "rejected": {"too_old": 1}, "in_transit": 0}
        place = {"collection_id": of.id, "collection_version": 1, "fingerprint": of.fingerprint.hex(), "run": name}
        nobody = dict.fromkeys(("collection_id", "collection_version", "fingerprint", "window_start", "window_end"))
        lost = {"received": 3, "accepted": 0, "duplicates": 0, "rejected": {"malformed": 3}, "in_transit": 0}
        lost["unread_messages"] = {"malformed": 1}
        rows.write(
            tmp_path, f"ledger-{name}-1.jsonl", [{**place, **rows.span(0), **numbers}, {**nobody, **lost, "run": name}]
        )
        share = {"a": 0.9, "b": 0.6}[name]
        entries = [rows.entry("a", share), rows.entry("b", 1 - share)]
        rows.write(tmp_path, f"estimates-{name}-1.jsonl", [rows.estimate(of, 0, entries, run=name)])
    rows.write(tmp_path, "health-b-1.jsonl", [])
    assert uldp.main(["report", str(tmp_path), "--output", str(tmp_path / "p.html")]) == 0
    tree = tree_of((tmp_path / "p.html").read_text("utf-8"))
    assert table(tree, "Reports by collection")[1:] == [
        ["named no known collection", "6", "0", "0", "6", "malformed 6"],
        ["survey", "20", "18", "0", "2", "too_old 2"],
    ]
    assert "unread messages: 2 (malformed 2). None of it counts as a report" in tree.text
    assert [row[:2] for row in table(tree, "Shares of answers, Mon 6 Nov 2000")[1:]] == [
        ["a", "60.0 %"],
        ["b", "40.0 %"],
    ]
    runs = table(tree, "Starts of the job in this directory; times in UTC")[1:]
    assert [(row[0], row[3]) for row in runs] == [("a", "stopped"), ("b", "killed")]
    capsys.readouterr()
    uldp.main(["check", str(tmp_path)])
    said = capsys.readouterr().out
    assert (
        "26 received = 18 accepted + 8 rejected (malformed 6, too_old 2); unread messages: 2 (malformed 2), balanced"
        in said
    )
    assert "run      b killed" in said


def test_a_ledger_out_of_balance_is_said(tmp_path: Path) -> None:
    rows.survey(tmp_path, ["a", "b"], 1)
    row: dict[str, Any] = json.loads((tmp_path / "ledger.jsonl").read_text("utf-8"))
    rows.write(tmp_path, "ledger.jsonl", [row | {"received": 1001}])
    assert uldp.main(["report", str(tmp_path), "--output", str(tmp_path / "p.html")]) == 0
    assert "Not balanced." in tree_of((tmp_path / "p.html").read_text("utf-8")).text
