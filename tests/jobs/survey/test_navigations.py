"""``uldp navigations``: what a browser really answered, files of all kinds, rows that cannot be used, and the page."""

from __future__ import annotations

import argparse
import csv
import gzip
import http.server
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.support.browser import CHROMIUM, browser, needs_browser
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.navigations.navigation_lines import table_of_paths
from uldp_transforms.jobs.navigations.navigations_command import _quantile
from uldp_transforms.jobs.navigations.navigations_table import Columns, Navigations, read_navigations
from uldp_transforms.ldp import SpecError

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "navigations.md").read_text(encoding="utf-8")
ANSWERS = ROOT / "tests" / "data" / "browser_confidence.csv.gz"
SWITCH = 180  # seconds after which this browser begins to say "high"


def recorded(wanted: Callable[[float], bool]) -> list[dict[str, str]]:
    lines = csv.DictReader(gzip.decompress(ANSWERS.read_bytes()).decode().splitlines())
    names = {"confidence": "value", "rate": "randomized_trigger_rate", "duration": "duration_ms"}
    return [{new: row[old] for new, old in names.items()} for row in lines if wanted(float(row["seconds"]))]


def as_lines(rows: list[dict[str, str]]) -> str:
    """As a page sends them: texts and numbers."""
    return "".join(
        f'{{"confidence": "{row["confidence"]}", "rate": {row["rate"]}, "duration": {row["duration"]}}}\n'
        for row in rows
    )


def estimated(folder: Path, text: str) -> dict[str, Any]:
    (folder / "navigations.jsonl").write_text(text, encoding="utf-8")
    assert uldp.main(["navigations", str(folder / "navigations.jsonl"), "--json", str(folder / "row.json")]) == 0
    found: dict[str, Any] = json.loads((folder / "row.json").read_text(encoding="utf-8"))
    return found


def test_nothing_is_undisturbed_before_the_switch_and_everything_after_it(tmp_path: Path) -> None:
    for truth, wanted in ((0, lambda second: second < SWITCH), (1, lambda second: second >= SWITCH)):
        row = estimated(tmp_path, as_lines(recorded(wanted)))
        assert row["ci_low"] <= truth <= row["ci_high"]
        assert row["ci_high"] - row["ci_low"] < 0.11
        high, low, everything = row["durations"]
        (holders, others) = (high, low) if truth else (low, high)
        assert holders["mean"]["low"] <= everything["mean"]["value"] <= holders["mean"]["high"]
        assert others["mean"]["low"] is None or others["mean"]["high"] - others["mean"]["low"] > 100


def test_all_kinds_of_files_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = recorded(lambda second: second < 60)
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "a.jsonl").write_text(as_lines(rows), encoding="utf-8")
    table = pa.table(
        {
            "confidence": [row["confidence"] for row in rows],
            **{name: [float(row[name]) for row in rows] for name in ("rate", "duration")},
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    said = []
    for kind in ("csv", "jsonl", "parquet"):
        assert uldp.main(["navigations", str(tmp_path / f"a.{kind}")]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] == said[2]


WRONG = """{"confidence": "high", "rate": 0.5, "duration": 10}
{"confidence": null, "rate": 0.5, "duration": 10}
{"confidence": "medium", "rate": 0.5, "duration": 10}
{"confidence": "high", "rate": 1, "duration": 10}
{"confidence": "high", "rate": -0.1, "duration": 10}
{"confidence": "high", "rate": NaN, "duration": 10}
{"confidence": "high", "rate": {"a": 1}, "duration": 10}
{"confidence": "low", "rate": 0.5, "duration": -1}
{"confidence": "low", "rate": 0.5, "duration": "soon"}
{"confidence": "\\ud800", "rate": 0.5, "duration": 1}
no JSON
[1]
"""


def test_what_cannot_be_used_is_counted_by_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text(f"{WRONG}{'[' * 100_000}\n", encoding="utf-8")
    assert uldp.main(["navigations", str(tmp_path / "a.jsonl")]) == 0
    assert capsys.readouterr().out.splitlines()[-7:] == [
        "1 of 13 rows are used.",
        "left out: 5 rows: no answer in confidence (line 2, line 10, line 11 and 2 more)",
        "left out: 1 row: an answer in confidence that is neither high nor low (line 3)",
        "left out: 2 rows: no number in rate (line 6, line 7)",
        "left out: 2 rows: a rate in rate that is not from 0 to below 1 (line 4, line 5)",
        "left out: 1 row: something else than a number in duration (line 9)",
        "left out: 1 row: a time below 0 in duration (line 8)",
    ]


def test_a_file_without_answers_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"confidence": null, "rate": null, "duration": 1}\n', encoding="utf-8")
    header = tmp_path / "b.csv"
    header.write_text("confidence,rate,duration\n,,1\n", encoding="utf-8")
    assert uldp.main(["navigations", str(header)]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "0 of 1 rows are used."


# ---------------------------------------------------------------------- the page


def blocks(kind: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == kind]


def test_the_page_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("navigations.jsonl").write_text(as_lines(recorded(lambda second: second >= 120)), encoding="utf-8")
    [command], [printed] = blocks("sh"), blocks("")
    assert uldp.main(command.split()[1:]) == 0
    assert capsys.readouterr().out == printed


def test_the_snippet_is_small() -> None:
    [snippet] = blocks("js")
    assert len(snippet.encode()) <= 1000


@contextmanager
def site(beacons: list[bytes]) -> Iterator[str]:
    """A page with the snippet, which loads itself again as soon as its beacon is sent, so that the start of the browser
    is not over before its limit of three minutes."""
    [snippet] = blocks("js")
    again = """
      const send = navigator.sendBeacon.bind(navigator);
      navigator.sendBeacon = (...sent) => { send(...sent); location.href = "/?" + Math.random(); };"""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def reply(self, body: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_GET(self) -> None:
            page = f"<!doctype html><title>a</title><script>{again}{snippet}</script>"
            self.reply(page if self.path.startswith("/?") else "")

        def do_POST(self) -> None:
            beacons.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply("")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/?"
        finally:
            server.shutdown()


@pytest.mark.slow
@needs_browser
def test_a_real_browser_sends_what_the_page_says(tmp_path: Path) -> None:
    """The snippet of the page in a Chromium, whose navigations are all disturbed in its first three minutes."""
    version = subprocess.run([str(CHROMIUM), "--version"], capture_output=True, text=True, check=True).stdout
    number = re.search(r"(\d+)\.\d+", version)
    if number is None or int(number[1]) < 145:
        pytest.skip(f"needs Chromium 145 or newer, got {version.strip()}")
    beacons: list[bytes] = []
    with site(beacons) as address, browser(tmp_path) as window:
        begin = time.monotonic()
        window.open(address)
        while len(beacons) < 200 and time.monotonic() < begin + SWITCH - 20:
            time.sleep(0.1)
    assert len(beacons) >= 100
    row = estimated(tmp_path, "".join(f"{beacon.decode()}\n" for beacon in beacons))
    assert row["num_reports"] == len(beacons)
    assert row["ci_low"] == 0 < row["durations"][1]["mean"]["value"]


# ---------------------------------------------------------------------- refusals


def read(**names: str) -> Navigations:
    given = {"value": "value", "rate": "randomized_trigger_rate", "duration": "duration_ms"}
    return read_navigations(table_of_paths([str(ANSWERS)]), str(ANSWERS), Columns(**{**given, **names}))


REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (
        SpecError,
        lambda: read(rate="r"),
        f"--rate_column must name one column of {ANSWERS}, got 'r', found 0 times",
    ),
    (argparse.ArgumentTypeError, lambda: _quantile("1"), "must be a number between 0 and 1, got '1'"),
]


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=["column", "quantile"])
def test_a_wrong_command_line_is_one_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
