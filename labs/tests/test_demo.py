"""The demo on two days of its month: what it writes, what it prints, what its page says."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from labs.demo import delays, demo_outcome, departures, shots
from labs.demo import demo_command as demo
from tests.support.tolerance import binomial_limits
from uldp_transforms.ldp import Collection
from uldp_transforms_report.gathering import Asked, gather
from uldp_transforms_report.numbers import number_charts
from uldp_transforms_report.trends import picture

DAYS = ["2001-02-14T00:00:00Z", "2001-02-15T00:00:00Z"]
AIRPORTS = ["us-flights", "us-flights-sensitive"]
DELAYS = "us-flights-delays"
COLLECTIONS = sorted([*AIRPORTS, DELAYS])


class Run(NamedTuple):
    code: int
    output: Path
    printed: str
    said: str

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.output / name).read_text("utf-8").splitlines()]

    @property
    def page(self) -> str:
        return (self.output / "index.html").read_text("utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    output = tmp_path_factory.mktemp("demo")
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = demo.main(["--output", str(output), "--days", str(len(DAYS)), "--seed", "1"])
    return Run(code, output, printed.getvalue(), said.getvalue())


def test_succeeds_and_writes_all_files(run: Run) -> None:
    assert run.code == 0
    assert "deprecated" not in run.said
    written = {path.name for path in run.output.iterdir() if not re.fullmatch(r"run-.*\.json|\.lock", path.name)}
    rows = {"estimates.jsonl", "estimates.avro", "ledger.jsonl", "health.jsonl", "rejected.avro"}
    assert written == {*rows, "counts.avro", "totals.jsonl", "reports", "index.html", "estimates.png"}
    assert {path.name for path in (run.output / "reports").iterdir()} == {f"{name}.avro" for name in COLLECTIONS}
    assert all((run.output / name).stat().st_size > 0 for name in rows)


def test_every_window_has_an_estimate(run: Run) -> None:
    rows = run.rows("estimates.jsonl")
    assert sorted((row["collection_id"], row["window_start"]) for row in rows) == [
        (name, day) for name in COLLECTIONS for day in DAYS
    ]
    assert {row["status"] for row in rows} == {"ok"}


def test_ledger_balances(run: Run) -> None:
    rows = run.rows("ledger.jsonl")
    assert len(rows) == len(COLLECTIONS) * len(DAYS)
    assert all(r["received"] == r["accepted"] + r["duplicates"] + sum(r["rejected"].values()) for r in rows)
    assert run.printed.count(": balanced\n") == len(COLLECTIONS)
    assert "NOT BALANCED" not in run.printed + run.page


def test_printed_coverage_is_what_95_percent_intervals_have(run: Run) -> None:
    lines = re.findall(r"^(\S+), (\w+ values): ([\d,]+) of ([\d,]+) intervals contain the truth", run.printed, re.M)
    assert [line[:2] for line in lines] == [
        ("us-flights", "all values"),
        ("us-flights-sensitive", "clear values"),
        ("us-flights-sensitive", "sensitive values"),
    ]
    for *_, covered, number in lines:  # only too few are wrong: intervals are cut to [0, 1] and exact for clear values
        low, _ = binomial_limits(int(number.replace(",", "")), 0.95, rate=2e-10)
        assert int(covered.replace(",", "")) >= low


def test_delays_are_numbers_beside_the_truth(run: Run) -> None:
    lines = re.findall(
        r"^us-flights-delays, (.*): (\d) of 2 intervals contain the truth, (\d) smooth ones$", run.printed, re.M
    )
    names = ["mean", "p10", "median", "p90", "share from 15 min", "share from 60 min"]
    assert [name for name, *_ in lines] == names
    held = sum(int(number) for _, *both in lines for number in both)
    assert held >= binomial_limits(24, 0.5)[0]  # intervals of a day depend on each other
    rows = [row for row in run.rows("estimates.jsonl") if row["collection_id"] == DELAYS]
    found = delays.Delays.read(demo.DATA / demo.DELAY_VALUES, 2)
    truth = found.truth([0.1, 0.5, 0.9])
    for row in rows:
        mean = row["numbers"]["mean"]
        assert abs(mean["value"] - truth[row["window_start"]]["mean"]) < 4 * (mean["high"] - mean["low"]) / 2
        assert row["num_reports"] == found.counts[DAYS.index(row["window_start"])].sum()
    drawn = picture.picture(gather(Asked(directory=str(run.output), title="T")), number_charts.panel)
    titles = [chart["title"]["text"] for chart in drawn["vconcat"][2]["hconcat"][1]["vconcat"][0]["hconcat"]]
    assert titles == ["mean, min ", "p10, min "]
    part = run.page.split('id="part-2-title"')[1].split('id="part-3-title"')[0]
    assert "p90" in part
    assert "share from 15 min" in part


def test_delays_are_those_of_the_departures() -> None:
    """The same flights, day by day, in bins of the collection; the file is the one described."""
    found = delays.Delays.read(demo.DATA / demo.DELAY_VALUES, None)
    _, times = departures.read_departures(demo.DATA / demo.VALUES)
    assert found.counts.sum(axis=1).tolist() == np.unique(times // demo.DAY, return_counts=True)[1].tolist()
    edges = Collection.from_json(demo.DATA / demo.DELAYS).alphabet.bin_edges
    assert edges is not None
    assert edges[:-1].tolist() == found.minutes.tolist()
    described = (demo.DATA / "README.md").read_text("utf-8")
    assert hashlib.sha256((demo.DATA / demo.DELAY_VALUES).read_bytes()).hexdigest() in described


def test_days_are_smoothed_over(run: Run) -> None:
    for entry in (entry for row in run.rows("estimates.jsonl") for entry in row["estimates"]):
        assert 0 <= entry["smoothed_low"] <= entry["smoothed_high"] <= 1
    lines = re.findall(r"^(\S+), smoothed over days: ([\d,]+) of ([\d,]+) intervals", run.printed, re.M)
    assert [name for name, *_ in lines] == AIRPORTS
    assert {finding["name"] for row in run.rows("health.jsonl") for finding in row["findings"]} >= {"change"}


def test_changes_are_read_from_health_rows(tmp_path: Path) -> None:
    sentence = "Shares moved, in percentage points: 'ORD' +1.00 (+0.50 to +1.50)."
    change = {"name": "change", "fired": True, "sentence": sentence}
    row = {"collection_id": "c", "window_start": DAYS[1], "findings": [{"name": "floor", "fired": True}, change]}
    quiet = {"collection_id": "c", "window_start": DAYS[0], "findings": [change | {"fired": False}]}
    lines = [json.dumps(line) for line in (row, quiet, row | {"collection_id": "other", "window_start": DAYS[0]})]
    (tmp_path / "health.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert demo_outcome.read_changes(tmp_path, "c") == {datetime.date(2001, 2, 15): change["sentence"]}


def test_table_lists_the_busiest_and_the_sensitive_airports(run: Run) -> None:
    assert re.search(r"^ORD   .* to .* to ", run.printed, re.M)
    assert re.search(r"^ADQ \* .* not a candidate .* to ", run.printed, re.M)
    assert re.search(r"^\[ *\d+ s\] simulating [\d,]+ clients of us-flights$", run.printed, re.M)
    reports = {row["window_start"][8:10]: row["num_reports"] for row in run.rows("estimates.jsonl")}
    assert f", {max(reports, key=reports.__getitem__)} February 2001: share of departures in percent" in run.printed


def test_page_is_a_report_beside_the_truth(run: Run) -> None:
    """What such a page has, the tests of ``packages/report`` say."""
    assert f"<h1>{demo.TITLE}</h1>" in run.page
    pictured = shots.HEADS.read_text("utf-8").splitlines()
    assert shots.heads(run.output / "index.html") == pictured, "make demo && make shots takes the pictures anew"
    assert pictured[1:3] == [demo.TITLE, "us-flights, version 1"] and pictured[-1] == "truth"
    assert [f"{name}</bdi>, version {version}</h2>" in run.page for name, version in zip(COLLECTIONS, (1, 1, 2))] == [
        True
    ] * 3
    for lines in re.findall(r"intervals: ([\d,]+) of ([\d,]+)|, all values: ([\d,]+) of ([\d,]+)", run.printed):
        held, number = filter(None, lines)
        cells = (f'<td class="number" data-n="{text.replace(",", "")}">{text}</td>' for text in (held, number))
        assert "".join(cells) in run.page
    assert len(re.findall(r'<details id="part-1-numbers-[0-9]+">', run.page)) == 24


def test_seeded_reports_are_marked(run: Run) -> None:
    assert run.page.count("This is a simulation: the reports were made with reproducible randomness") == len(
        COLLECTIONS
    )
    assert "seeded (1), for simulation only" in run.printed


def test_picture_is_not_empty(run: Run) -> None:
    content = (run.output / "estimates.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n") and len(content) > 100_000


def test_without_a_charting_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uldp_transforms_report.written_report", None)
    assert demo.main(["--output", str(tmp_path / "new")]) == 2
    assert (
        capsys.readouterr().err == "demo: a report needs uldp_transforms_report.written_report; in a checkout: pip "
        "install . ./packages/tables ./packages/report\n"
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("arguments", (["--days", "0"], ["--seed", "-1"], ["--seed", "x"], ["--what"]))
def test_wrong_command_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(arguments) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and arguments[0] in printed


def test_extract_is_the_one_described() -> None:
    described = (demo.DATA / "README.md").read_text("utf-8")
    packed = (demo.DATA / demo.VALUES).read_bytes()
    values, times = departures.read_departures(demo.DATA / demo.VALUES)
    texts = times.astype("datetime64[ms]").astype("datetime64[s]").astype(str)
    lines = [f"{value},{time}Z\n" for value, time in zip(values.tolist(), texts)]
    content = "".join(["value,event_time\n", *lines]).encode("ascii")
    assert hashlib.sha256(packed).hexdigest() in described
    assert hashlib.sha256(content).hexdigest() in described
    assert f"{len(lines):,} departures" in described
    assert list(zip(times, values)) == sorted(zip(times, values))
