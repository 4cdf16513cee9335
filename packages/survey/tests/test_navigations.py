"""``uldp navigations``: what a browser really answered, files of all kinds, rows that cannot be used, and the page."""

from __future__ import annotations

import csv
import datetime
import functools
import gzip
import html
import http.server
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.stats import norm

from packages.gateway.tests.support.gateways import gateway, needs_gateway
from tests.support.browser import CHROMIUM, browser, needs_browser
from tests.support.kafka_cluster import Cluster
from tests.support.tolerance import RATE, generator, normal_limit
from uldp_transforms.jobs import uldp
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, rfc3339
from uldp_transforms_report.charts import FEW
from uldp_transforms_report.colours import SMOOTHED, TRUTH
from uldp_transforms_survey.clear_numbers import share_of
from uldp_transforms_survey.navigations.navigation_lines import table_of_paths
from uldp_transforms_survey.navigations.navigation_words import shown
from uldp_transforms_survey.navigations.navigations_page import page_of
from uldp_transforms_survey.navigations.navigations_table import Columns, read_navigations

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "navigations.md").read_text(encoding="utf-8")
ANSWERS = ROOT / "tests" / "data" / "browser_confidence.csv.gz"
SWITCH = 180  # seconds after which this browser begins to say "high"


def recorded(wanted: Callable[[float], bool]) -> list[dict[str, str]]:
    lines = csv.DictReader(gzip.decompress(ANSWERS.read_bytes()).decode().splitlines())
    names = {"confidence": "value", "rate": "randomized_trigger_rate", "duration": "duration_ms", "time": "seconds"}
    return [{new: row[old] for new, old in names.items()} for row in lines if wanted(float(row["seconds"]))]


def is_within(begin: float, second: float) -> bool:
    return begin <= second < begin + 30


def as_lines(rows: list[dict[str, str]]) -> str:
    """As a page sends them: texts and numbers."""
    return "".join(
        f'{{"time": {float(row["time"]):.3f}, "confidence": "{row["confidence"]}", "rate": {row["rate"]}, '
        f'"duration": {row["duration"]}}}\n'
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


# ---------------------------------------------------------------------- several rates, and answers that do not fit


def drawn(*browsers: tuple[float, float, float], number: int = 20_000) -> list[dict[str, Any]]:
    """Navigations of browsers with a rate, a share of undisturbed ones and a mean time of all of them."""
    rng = generator("navigations", browsers)
    rows = []
    for rate, share, mean in browsers:
        high = rng.random(number) < share
        said = np.where(rng.random(number) < rate, rng.random(number) < 0.5, high)
        times = np.maximum(rng.normal(mean, 30, number), 1)
        rows += [
            {"confidence": "high" if answer else "low", "rate": rate, "duration": duration}
            for answer, duration in zip(said, times.tolist())
        ]
    return rows


def printed_of(
    rows: list[dict[str, Any]], folder: Path, capsys: pytest.CaptureFixture[str], code: int = 0
) -> tuple[dict[str, Any], str]:
    (folder / "n.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    files = ["--json", str(folder / "row.json"), "--html", str(folder / "page.html")]
    assert uldp.main(["navigations", str(folder / "n.jsonl"), *files]) == code
    return json.loads((folder / "row.json").read_text(encoding="utf-8")), capsys.readouterr().out


def test_each_navigation_counts_once_whatever_its_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Browsers of two rates with times of 300 and 500 ms and the same share: the mean of both classes is 400 ms."""
    row, said = printed_of(drawn((0.5, 0.8, 300), (0.25, 0.8, 500)), tmp_path, capsys)
    limit = normal_limit() / norm.ppf(0.975)
    high, low, _ = row["durations"]
    for each in (high, low):
        half = (each["mean"]["high"] - each["mean"]["low"]) / 2
        assert abs(each["mean"]["value"] - 400) <= limit * half and half < 10
    assert abs(row["raw_frequency"] - 0.8) <= normal_limit() * row["standard_error"]
    of_rates = {each["rate"]: each["durations"][0]["mean"]["value"] for each in row["rates"]}
    assert of_rates == {0.5: pytest.approx(300, abs=5), 0.25: pytest.approx(500, abs=5)}
    assert row["agreement"] > RATE and "The shares of the rates" in said


def test_the_share_is_that_of_all_navigations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """.2 and .9 at two rates, 20,000 navigations of each: .55, a line for each rate, and a word that they differ."""
    row, said = printed_of(drawn((0.5, 0.2, 400), (0.25, 0.9, 400)), tmp_path, capsys)
    assert abs(row["raw_frequency"] - 0.55) <= normal_limit() * row["standard_error"]
    assert row["standard_error"] == pytest.approx(np.sqrt((0.55 * 0.45 + (0.75 + 7 / 36) / 2) / 40_000), rel=0.02)
    for rate, truth in ((0.5, 0.2), (0.25, 0.9)):
        [alone] = [each for each in row["rates"] if each["rate"] == rate]
        assert abs(alone["raw_frequency"] - truth) <= normal_limit() * alone["standard_error"]
        assert alone["num_reports"] == 20_000
        [line] = [line for line in said.splitlines() if line.startswith(f"{rate} ")]
        assert f"{alone['raw_frequency']:.4f} ({alone['ci_low']:.4f} to {alone['ci_high']:.4f})" in line
    assert row["agreement"] < 1e-100
    assert "The shares of the rates differ (p < 1e-15)" in said
    assert "The shares of the rates differ" in html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))


def test_many_rates_have_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = [0.3 + number / 100 for number in range(30)]
    row, said = printed_of([one for rate in rates for one in drawn((rate, 0.5, 300), number=20)], tmp_path, capsys)
    assert [each["rate"] for each in row["rates"]] == [*rates[:9], None]
    assert [each["num_reports"] for each in row["rates"]] == [20] * 9 + [420]
    assert sum(line.startswith(("0.", "others ")) for line in said.splitlines()) == 10
    assert row["num_reports"] == 600


def test_answers_that_do_not_fit_their_rates_have_no_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """60 of 60 "high" at the rate .5: 1.5, which is 4.5 standard errors above 1."""
    for answer, end in (("high", "above 1"), ("low", "below 0")):
        rows = [{"confidence": answer, "rate": 0.5, "duration": 10 + number} for number in range(60)]
        row, said = printed_of(rows, tmp_path, capsys, code=1)
        assert row["misfit"] == f"4.5 standard errors {end}"
        names = ("frequency", "raw_frequency", "standard_error", "ci_low", "ci_high")
        assert [row[name] for name in names] == [None] * 5
        assert said.startswith(f"60 navigations, undisturbed: does not fit: 4.5 standard errors {end}\n")
        for each in row["durations"][:2]:
            assert {each[kind][end] for kind in ("mean", "quantile") for end in ("value", "low", "high")} == {None}
        page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
        assert "No estimate: the answers of 60 navigations do not fit their rates." in page
        assert "150.0 %" not in page and "100.0 %" not in page


def test_one_rate_that_does_not_fit_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = drawn((0.5, 0.5, 300), number=5000)
    rows += [{"confidence": "high", "rate": 0.4, "duration": 10}] * 200
    row, said = printed_of(rows, tmp_path, capsys)
    assert row["misfit"] is None and row["rates"][1]["misfit"] is not None
    assert "The answers of rate 0.4 do not fit it" in said


@pytest.mark.parametrize("number", [1, 5, 20, 59, 1_000])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_no_share_has_an_interval_without_length(tmp_path: Path, number: int, share: float) -> None:
    """Also where the unbiased share lies outside of [0, 1] by chance."""
    held = round(number * share)
    answers = ["high"] * held + ["low"] * (number - held)
    for rate in (0.0, 0.1, 0.5, 0.9):
        rows = [{"confidence": answer, "rate": rate, "duration": 10} for answer in answers]
        (tmp_path / "n.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        code = uldp.main(["navigations", str(tmp_path / "n.jsonl"), "--json", str(tmp_path / "row")])
        row = json.loads((tmp_path / "row").read_text(encoding="utf-8"))
        assert code == (row["misfit"] is not None)
        assert row["misfit"] is not None or row["ci_low"] < row["ci_high"]


NO_OBJECT = "no JSON object whose members have different names"
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
    assert capsys.readouterr().out.splitlines()[-9:] == [
        "1 of 13 rows are used.",
        f"left out: 3 rows: {NO_OBJECT} (line 11, line 12, line 13)",
        "left out: 1 row: an array or an object in rate (line 7)",
        "left out: 2 rows: no answer in confidence (line 2, line 10)",
        "left out: 1 row: an answer in confidence that is neither high nor low (line 3)",
        "left out: 1 row: no number in rate (line 6)",
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


def performed(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the page says that it prints, and what its command prints, for what a gateway would have written."""
    monkeypatch.chdir(folder)
    Path("navigations").mkdir()
    rows = recorded(lambda second: second >= 120)
    for name, part in (("a", rows[:900]), ("b", rows[900:])):
        Path(f"navigations/navigations-20260202-{name}.jsonl").write_text(as_lines(part), encoding="utf-8")
    [_, command, _], [printed] = blocks("sh"), blocks("")
    assert uldp.main(command.split()[1:]) == 0
    return printed, capsys.readouterr().out


def test_the_page_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said, printed = performed(tmp_path, monkeypatch, capsys)
    assert printed == said


def test_rows_of_windows_are_those_of_their_navigations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    performed(tmp_path, monkeypatch, capsys)
    *windows, whole = [json.loads(line) for line in Path("rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert "window_start" not in whole
    assert sum(row["num_reports"] for row in windows) == whole["num_reports"]
    for row in windows:
        begin = datetime.datetime.fromisoformat(row["window_start"]).timestamp()
        assert (datetime.datetime.fromisoformat(row["window_end"]).timestamp(), begin % 30) == (begin + 30, 0)
        alone = estimated(tmp_path, as_lines(recorded(functools.partial(is_within, begin))))
        assert {name: row[name] for name in alone} == alone
        assert row["ci_low"] <= (begin >= SWITCH) <= row["ci_high"]


def test_the_page_of_charts_has_all_numbers_and_loads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, printed = performed(tmp_path, monkeypatch, capsys)
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "default-src 'none'" in html.unescape(page)
    assert not re.search(r"<script|\ssrc=|\shref=\"http|url\(", page)
    text = html.unescape(re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))
    *_, accounts = printed.splitlines()
    assert accounts in text
    for line in Path("rows.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        low, high = (f"{100 * row[name]:.1f}" for name in ("ci_low", "ci_high"))
        of_edge = {0.0: f"below {high} %", 1.0: f"above {low} %"}
        assert of_edge.get(row["frequency"], f"{low} to {high} %") in text
        assert row.get("window_start", "") in text
    assert uldp.main(["navigations", "navigations", "--html", "whole.html"]) == 0
    assert "<svg" not in Path("whole.html").read_text(encoding="utf-8")


def page_of_windows(number: int) -> str:
    """A page with this many windows, each with a known share and known times."""
    known = {"value": 200.0, "low": 190.0, "high": 210.0}
    durations = [{"class": name, "mean": known, "quantile": {"q": 0.5, **known}} for name in ("high", "low", "all")]
    share = {"frequency": 0.5, "raw_frequency": 0.5, "ci_low": 0.4, "ci_high": 0.6, "misfit": None, "num_reports": 10}
    row = {**share, "durations": durations, "rates": [], "agreement": None}
    return page_of(row, [{**row, "window_start": rfc3339(60_000 * at)} for at in range(number)], [])


@pytest.mark.parametrize("number", [1, FEW, FEW + 1])
def test_each_window_is_visible_in_the_charts(number: int) -> None:
    """A line through one window has no length: all times have points, and shares as long as the windows are few."""
    shares, times = re.findall(r"<svg.*?</svg>", page_of_windows(number), flags=re.DOTALL)
    titles = [html.unescape(title) for title in re.findall("<title>(.*?)</title>", shares)]
    said = [f"{rfc3339(60_000 * at)}: 50.0 % (40.0 to 60.0 %)" for at in range(number)]
    assert titles == (said if number <= FEW else [])
    assert ("mark-line" in shares) == (number > FEW)
    for colour in (SMOOTHED, TRUTH):
        assert len(re.findall(rf'<path transform="translate\([^>]*fill="{colour}"', times)) == number, colour


@pytest.mark.parametrize(
    ("length", "texts"),
    [
        (20, ("100", "90 to 110")),
        (2, ("100", "99 to 101")),
        (1.9, ("100.0", "99.0 to 101.0")),
        (0.19, ("100.00", "99.91 to 100.09")),
        (0, ("100", "exactly 100")),
    ],
)
def test_an_interval_has_the_digits_that_tell_its_ends_apart(length: float, texts: tuple[str, str]) -> None:
    assert shown({"value": 100.0, "low": 100 - length / 2, "high": 100 + length / 2}) == texts


def test_lines_in_files_and_in_kafka_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = as_lines(recorded(lambda second: second >= 120)).encode().splitlines()
    (tmp_path / "all.jsonl").write_bytes(b"\n".join([*lines, b"no JSON"]))
    cluster = Cluster()
    topic = cluster.topic()
    for number in range(2):
        cluster.send(topic, lines[number:500:2], 1000, partition=number)
    cluster.send(topic, [b"\n".join([*lines[500:], b"no JSON"])], 1000, partition=1)
    kafka = ["--kafka_topic", topic, "--bootstrap_servers", cluster.servers]
    said = []
    for source in ([str(tmp_path / "all.jsonl")], kafka):
        assert uldp.main(["navigations", *source, "--window", "1m"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0].split("left out")[0] == said[1].split("left out")[0]
    assert f"left out: 1 row: {NO_OBJECT} (line {len(lines) + 1})" in said[0]
    assert f"left out: 1 row: {NO_OBJECT} (partition 1 line {len(lines) - 249})" in said[1]


def test_times_that_no_window_has_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"confidence": "high", "rate": 0.5, "duration": 10}
    times: list[object] = [0, 29.9995, 30, None, "soon", 1e20, -1e11]
    text = "".join(f"{json.dumps(line | {'time': moment})}\n" for moment in times)
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    command = ["navigations", str(tmp_path / "a.jsonl"), "--window", "30s", "--json", str(tmp_path / "rows")]
    assert uldp.main(command) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text(encoding="utf-8").splitlines()]
    assert [(row.get("window_start"), row["num_reports"]) for row in rows] == [
        ("1970-01-01T00:00:00Z", 2),
        ("1970-01-01T00:00:30Z", 1),
        (None, 3),
    ]
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "3 of 7 rows are used.",
        "left out: 1 row: no valid time: time must be RFC 3339 or seconds since 1970, got none (line 4)",
        "left out: 1 row: no valid time: time must be RFC 3339 or seconds since 1970, got neither; "
        "--time_format names another form (line 5)",
        "left out: 2 rows: no valid time: time must lie in the years 1900 to 9998, got another year (line 6, line 7)",
    ]


def test_the_snippet_is_small() -> None:
    [snippet] = blocks("js")
    assert len(snippet.encode()) <= 1000


@contextmanager
def site(beacons: list[bytes], receiver: Sequence[str] = ()) -> Iterator[str]:
    """A page with the snippet, which loads itself again as soon as its beacon is sent, so that the start of the browser
    is not over before its limit of three minutes.

    Args:
        beacons: gets what the site itself receives.
        receiver: the address to which the page sends; the site's own if there is none.
    """
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
            script = snippet.replace('"/navigations"', f'"{"".join(receiver)}/navigations"')
            page = f"<!doctype html><title>a</title><script>{again}{script}</script>"
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
    assert row["durations"][1]["mean"]["value"] > 0
    columns = Columns(value="confidence", rate="rate", duration="duration")
    found = read_navigations(table_of_paths([str(tmp_path / "navigations.jsonl")]), "beacons", columns)
    share, _ = share_of(found.high, found.rates, 1 - RATE)
    print(f"{len(beacons)} navigations, undisturbed: {share}")
    assert share.low == 0 < share.high < 1


@pytest.mark.slow
@needs_browser
@needs_gateway
def test_a_real_browser_sends_to_a_gateway(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a page of another origin, which the gateway allows; the lines become an estimate."""
    address: list[str] = []
    lines: list[str] = []
    with site([], address) as page, browser(tmp_path) as window:
        options = ["--navigations", str(tmp_path / "lines"), "--allow_origin", page.removesuffix("/?")]
        with gateway(options, tmp_path, collection=None) as running:
            address.append(running.address)
            begin = time.monotonic()
            window.open(page)
            while len(lines) < 50 and time.monotonic() < begin + SWITCH - 20:
                time.sleep(0.5)
                lines = [
                    line for path in (tmp_path / "lines").glob("*.jsonl") for line in path.read_text().splitlines()
                ]
            assert running.counted("navigations_refused_total") == 0
    assert len(lines) >= 10
    assert uldp.main(["navigations", str(tmp_path / "lines"), "--window", "1m"]) == 0
    print(capsys.readouterr().out)


def test_times_are_those_of_a_range_and_no_others(tmp_path: Path) -> None:
    """To the millisecond; outside of it nothing that is written has a date."""
    moments = [MIN_EVENT_TIME, MIN_EVENT_TIME - 1, MAX_EVENT_TIME - 1, MAX_EVENT_TIME]
    lines = [
        {"confidence": "high", "rate": 0.5, "duration": 1, "time": f"{moment // 1000}.{moment % 1000:03}"}
        for moment in moments
    ]
    (tmp_path / "n.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    columns = Columns(value="confidence", rate="rate", duration="duration", time="time")
    found = read_navigations(table_of_paths([str(tmp_path / "n.jsonl")]), "n", columns)
    assert found.times.tolist() == moments[::2]
    assert len(moments) - len(found.times) == found.num_rows - len(found.high) == 2


HOSTILE = {
    "time": ["1e999", "-1e999", "NaN", "1e308", "9" * 400, '"<b>"', "null", "true", '"0x10"'],
    "rate": ["1", "1e999", "NaN", "-1e-9", "9" * 5000],
    "duration": ["1e308", "1e999", "NaN", "-1e-9", "9" * 5000, "1000000001"],
    "confidence": ['"HIGH"', '["high"]', '"high\\u0000"', '"<script>"', "1", '"\\ud800"'],
}


def test_hostile_lines_are_left_out_and_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each in its own line of a log, to which anybody can write."""
    good = {"time": "1000", "confidence": '"high"', "rate": "0.5", "duration": "1000000000"}
    lines = [good] * 30 + [good | {"confidence": '"low"', "duration": "0"}] * 20
    lines += [good | {name: value} for name, values in HOSTILE.items() for value in values]
    texts = ["{" + ", ".join(f'"{name}": {value}' for name, value in line.items()) + "}" for line in lines]
    texts += ["[" * 100_000, '{"a":' * 50_000, "\0", "x" * 1_000_000]
    path = tmp_path / "n&<b>.jsonl"
    path.write_text("\n".join(texts), encoding="utf-8")
    options = ["--window", "30s", "--json", str(tmp_path / "rows"), "--html", str(tmp_path / "page.html")]
    assert uldp.main(["navigations", str(path), *options]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert f"50 of {len(texts)} rows are used." in said.out
    assert "a time above 1,000,000,000 in duration" in said.out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page and "&<b>" not in page
    whole = json.loads((tmp_path / "rows").read_text(encoding="utf-8").splitlines()[-1])
    assert whole["num_reports"] == 50


def test_a_long_text_costs_its_own_length_only(tmp_path: Path) -> None:
    """Beside 20,000 different texts; a table as wide as the longest would have 80 GB."""
    line = '{{"confidence": "high", "rate": 0.5, "duration": 1, "time": {}}}'
    lines = [line.format(number) for number in (*range(20_000), "9" * 1_000_000)]
    (tmp_path / "n.jsonl").write_text("\n".join(lines), encoding="utf-8")
    columns = Columns(value="confidence", rate="rate", duration="duration", time="time")
    assert len(read_navigations(table_of_paths([str(tmp_path / "n.jsonl")]), "n", columns).high) == 20_000
