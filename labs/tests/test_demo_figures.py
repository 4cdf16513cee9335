"""The demo's tables, truth and sentences, on figures that are computed by hand."""

from __future__ import annotations

import bz2
import collections
import csv
import datetime
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from labs.demo import delays, demo_text, departures
from labs.demo import demo_command as demo
from labs.demo.demo_outcome import Outcome, compare, read_estimates, read_ledger
from tests.support.cases import COLLECTIONS
from uldp_transforms.ldp import Collection

HOUR = 3_600_000
DAYS = ["2001-02-14T00:00:00Z", "2001-02-15T00:00:00Z"]
DATES = [datetime.date(2001, 2, 14), datetime.date(2001, 2, 15)]


# ---------------------------------------------------------------------- what is read


def table(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(bz2.compress(text.encode("ascii")))
    return path


def test_departures_are_sorted_by_time_then_by_airport(tmp_path: Path) -> None:
    path = table(tmp_path, "v.bz2", "airport,2001-02-14T23,1970-01-01T01\nORD,2,0\nATL,1,3\n")
    airports, times = departures.read_departures(path)
    late = (11_367 * 24 + 23) * HOUR  # days from 1970 to 14 February 2001
    assert list(zip(airports.tolist(), times.tolist())) == [*[("ATL", HOUR)] * 3, *[("ORD", late)] * 2, ("ATL", late)]
    departures.write_departures(tmp_path / "v.parquet", airports, times)
    written = pyarrow.parquet.read_table(tmp_path / "v.parquet")
    assert written.column_names == ["value", "event_time"]
    assert written["value"].to_pylist() == airports.tolist()
    moments = [datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc) for ms in times.tolist()]
    assert written["event_time"].to_pylist() == moments


@pytest.mark.parametrize(("days", "kept"), [(None, 7), (3, 7), (2, 6), (1, 3)])
def test_the_truth_is_that_of_the_first_days(
    days: int | None, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of hours 1 and 24 of 14 February, the first of the 15th and the first of the 16th."""
    monkeypatch.setattr(demo, "DATA", tmp_path)
    hours = "2001-02-14T01,2001-02-14T23,2001-02-15T00,2001-02-16T00"
    table(tmp_path, demo.VALUES, f"airport,{hours}\nORD,1,0,3,0\nATL,1,1,0,1\n")
    path, truth = demo.read_truth(days, tmp_path)
    held = [{"ORD": 1, "ATL": 2}, {"ORD": 3}, {"ATL": 1}]
    assert truth == dict(zip([*DAYS, "2001-02-16T00:00:00Z"][: days or 3], held))
    assert path == tmp_path / "values.parquet"
    values = pyarrow.parquet.read_table(path)["value"].to_pylist()
    assert collections.Counter(values) == sum((held for held in truth.values()), collections.Counter())
    assert len(values) == kept


@pytest.fixture
def found(tmp_path: Path) -> delays.Delays:
    """Two days of flights in bins from 0, 5, 10, 15 and 60 minutes."""
    path = table(
        tmp_path, "d.bz2", "minutes,2001-02-14,2001-02-15\n-5,1,0\n0,1,2\n5,0,2\n10,0,0\n15,1,0\n20,0,0\n60,1,0\n"
    )
    return delays.Delays.read(path, None)


def test_delays_are_read_by_bins_and_days(found: delays.Delays, tmp_path: Path) -> None:
    assert found.minutes.tolist() == [-5, 0, 5, 10, 15, 20, 60]
    assert found.days.tolist() == [11_367 * demo.DAY, 11_368 * demo.DAY]
    assert found.counts.tolist() == [[1, 1, 0, 0, 1, 0, 1], [0, 2, 2, 0, 0, 0, 0]]
    one = delays.Delays.read(tmp_path / "d.bz2", 1)
    assert (one.days.tolist(), one.counts.tolist()) == (found.days.tolist()[:1], found.counts.tolist()[:1])
    found.write(tmp_path / "d.parquet")
    written = pyarrow.parquet.read_table(tmp_path / "d.parquet")
    moments = [datetime.datetime(2001, 2, day, tzinfo=datetime.timezone.utc) for day in (14, 15)]
    assert list(zip(written["value"].to_pylist(), written["event_time"].to_pylist())) == [
        *((minutes, moments[0]) for minutes in (-5, 0, 15, 60)),
        *((minutes, moments[1]) for minutes in (0, 0, 5, 5)),
    ]


def test_true_figures_of_delays(found: delays.Delays) -> None:
    """Flights are spread evenly within bins of five minutes."""
    truth = found.truth([0.25, 0.375, 0.9])
    assert list(truth) == DAYS
    assert truth[DAYS[0]] == {
        "mean": (-2.5 + 2.5 + 17.5 + 62.5) / 4,
        "p25": 0,
        "p37.5": 2.5,
        "p90": pytest.approx(63),
        "share from 15 min": 0.5,
        "share from 60 min": 0.25,
    }
    assert truth[DAYS[1]] == {
        "mean": 5,
        "p25": 2.5,
        "p37.5": 3.75,
        "p90": 9,
        "share from 15 min": 0,
        "share from 60 min": 0,
    }


def figure(low: float | None, high: float | None, *smooth: float | None) -> dict[str, float | None]:
    display_low, display_high = smooth or (low, high)
    return {"low": low, "high": high, "display_low": display_low, "display_high": display_high}


def test_intervals_that_contain_the_truth_are_counted(found: delays.Delays) -> None:
    """Ends belong to intervals; an open end contains everything beyond; of the mean 20 and 5, p25 0 and 2.5."""
    rows = [
        {
            "window_start": start,
            "numbers": {
                "mean": mean,
                "quantiles": [{"q": 0.25, **quantile}],
                "shares_above": [{"limit": 15, **share}, {"limit": 60, **share}],
            },
        }
        for start, mean, quantile, share in (
            (DAYS[0], figure(20, 20, 20.1, 30), figure(None, 0, None, -0.1), figure(0.6, None, 0.4, None)),
            (DAYS[1], figure(4, 4.9, 4, 6), figure(2.6, 3, None, None), figure(0, 0.1, -1, -0.5)),
        )
    ]
    assert list(delays.delay_lines("delays", rows, found)) == [
        "delays, mean: 1 of 2 intervals contain the truth, 1 smooth ones",
        "delays, p25: 1 of 2 intervals contain the truth, 1 smooth ones",
        "delays, share from 15 min: 1 of 2 intervals contain the truth, 1 smooth ones",
        "delays, share from 60 min: 1 of 2 intervals contain the truth, 0 smooth ones",
    ]


# ---------------------------------------------------------------------- the command


def test_command_lines_of_the_programs_that_the_demo_runs(tmp_path: Path) -> None:
    data, out = demo.DATA, Path("out")
    simulated = [f"{data}/c.json", "--values", "v.parquet", "--output", "r.avro"]
    simulated += ["--form", "packed", "--pack", "1000"]
    assert demo.simulate_arguments("c.json", Path("v.parquet"), Path("r.avro"), None) == simulated
    assert demo.simulate_arguments("c.json", Path("v.parquet"), Path("r.avro"), 0) == [*simulated, "--seed", "0"]
    assert " ".join(demo.estimate_arguments(Path("in"), out)) == (
        "--collection=in/flights_open.json --collection=in/flights_sensitive.json --collection=in/flights_delays.json "
        "--limits 15,60 --candidates in/airports.txt --window 1d --smooth --write_counts "
        "--input out/reports/*.avro --output out"
    )


def test_no_two_collections_of_any_seeds_share_one() -> None:
    assert [[demo.seed_of(seed, place) for place in range(3)] for seed in (0, 1, 5)] == [
        [0, 1, 4_611_686_018_427_387_904],
        [2, 3, 4_611_686_018_427_387_905],
        [10, 11, 4_611_686_018_427_387_909],
    ]


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo.configure([]) == demo.Demo(output="demo-output", days=None, seed=None)
    assert (tmp_path / "demo-output" / "reports").is_dir()
    largest = demo.configure(["--output", "a/b", "--days", "1", "--seed", str(2**63 - 1)])
    assert largest == demo.Demo(output="a/b", days=1, seed=2**63 - 1)
    assert demo.configure(["--output", "a/b", "--seed", "0"]).seed == 0  # a directory that is there already
    assert demo.main(["--seed", str(2**63)]) == 2
    assert capsys.readouterr().err == (
        "demo: --seed must be a whole number from 0 to 2**63 - 1, got 9223372036854775808\n"
    )
    assert demo.Demo(output="", days=None, seed=None).randomness == "the operating system's"
    assert demo.Demo(output="", days=None, seed=0).randomness == "seeded (0), for simulation only"


@pytest.mark.parametrize("failing", ["simulate", "estimate"])
def test_a_program_that_fails_ends_the_demo_with_its_exit_code(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the last one that is started."""
    started: list[tuple[str, list[str]]] = []

    def program(name: str) -> Any:
        return lambda argv: started.append((name, argv)) or (7 if name == failing else 0)

    for name, module in (("simulate", demo.simulate), ("estimate", demo.estimate)):
        monkeypatch.setattr(module, "main", program(name))
    for days in (1, None):
        started.clear()
        assert demo.job(demo.Demo(output=str(tmp_path), days=days, seed=3 if days else None)) == 7
        assert [name for name, _ in started] == ["simulate"] * (1 if failing == "simulate" else 3) + ["estimate"] * (
            failing == "estimate"
        )
        assert started[0][1][-2:] == (["--seed", "6"] if days else ["--pack", "1000"])
    said = [line[line.index("] ") + 2 :] for line in capsys.readouterr().out.splitlines()]
    with bz2.open(demo.DATA / demo.VALUES, "rt") as file:
        (_, *hours), *rows = csv.reader(file)
    people = sum(int(n) for row in rows for hour, n in zip(hours, row[1:]) if hour.startswith("2001-02-14"))
    assert said[:2] == ["reading flights_2001_03.csv.bz2", f"simulating {people:,} clients of us-flights"]
    assert failing != "estimate" or said[4] == f"estimating from {3 * people:,} reports (the main job)"


# ---------------------------------------------------------------------- results


def test_rows_of_estimates_and_of_the_ledger(tmp_path: Path) -> None:
    def row(start: str, collection: str = "c", pane: int = 0, **more: Any) -> str:
        own = {"collection_id": collection, "window_start": start, "pane_index": pane}
        shared = {"run": None, "status": "ok", "window_end": start, "fingerprint": collection}
        return json.dumps(shared | own | more)

    lines = [row(DAYS[1], at=1), row(DAYS[0], at=2), row(DAYS[0], pane=1, at=3), row(DAYS[0], "other", at=4)]
    (tmp_path / "estimates.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert [row["at"] for row in read_estimates(tmp_path, "c")] == [3, 1]
    counted = [("c", 10, 6, 1, {"x": 2, "y": 1}), ("c", 5, 5, 0, {}), (None, 2, 0, 0, {"z": 2}), ("d", 1, 1, 0, {})]
    (tmp_path / "ledger.jsonl").write_text(
        "\n".join(
            json.dumps({"collection_id": name, "received": n, "accepted": kept, "duplicates": d, "rejected": rejected})
            for name, n, kept, d, rejected in counted
        ),
        encoding="utf-8",
    )
    assert read_ledger(tmp_path, {"c": 15, "d": 2}) == {
        "c": {"sent": 15, "received": 15, "accepted": 11, "rejected": 4},
        "d": {"sent": 2, "received": 1, "accepted": 1, "rejected": 0},
        "unknown": {"received": 2, "accepted": 0, "rejected": 2},
    }


CLOSED = COLLECTIONS["closed-sensitive-urr"]


def outcome(**fields: Any) -> Outcome:
    """Three values on two days, of which the last is sensitive."""
    estimate = np.array([[0.5, 0.3, 0.1], [0.6, 0.2, 0.0]])
    shared: dict[str, Any] = {
        "collection": CLOSED,
        "days": DATES,
        "values": ["ORD", "ATL", "ADQ"],
        "sensitive": np.array([False, False, True]),
        "num_reports": np.array([1200, 900]),
        "estimate": estimate,
        "low": estimate - 0.05,
        "high": estimate + 0.05,
        "distribution": estimate,
        "smoothed": np.add(estimate, [0.05, 0, 0]),
        "smoothed_low": estimate,
        "smoothed_high": estimate + 0.125,
        "changes": {},
        "unexplained": np.array([0.1, 0.2]),
        "truth": np.array([[0.55, 0.25, 0.125], [0.7, 0.1, 0.0]]),
    }
    return Outcome(**shared | fields)


def test_what_an_outcome_has() -> None:
    """Ends of intervals belong to them."""
    exact = outcome(
        low=np.array([[0.25, 0.5, 0.0], [0.0, 0.0, 0.0]]),
        high=np.array([[0.5, 0.75, 0.0], [1.0, 1.0, 1.0]]),
        truth=np.array([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]]),
        smoothed_low=np.array([[0.25, 0.875, 0.0], [0.625, 0.0, 0.0]]),
        smoothed_high=np.array([[0.25, 1.0, 0.0], [1.0, 0.5, 0.0]]),
    )
    assert exact.covered.all()
    assert exact.covered_smoothed.tolist() == [[True, False, True], [False, True, True]]
    assert not outcome(low=np.full((2, 3), 0.9), high=np.ones((2, 3))).covered.any()
    assert not outcome(low=np.full((2, 3), -1.0), high=np.full((2, 3), -0.1)).covered.any()
    one = outcome()
    assert one.epsilon == CLOSED.mechanism.epsilon
    assert one.unlisted == pytest.approx([0.075, 0.2])
    assert one.total_variation == pytest.approx([(0.05 + 0.05 + 0.025 + 0.025) / 2, (0.1 + 0.1 + 0 + 0) / 2])
    squares = [0.05**2 + 0.05**2 + 0.025**2 + 0.1**2 + 0.1**2, 0.05**2 + 0.025**2 + 0.05**2 + 0.1**2]
    assert one.gain == pytest.approx(squares[0] / squares[1])
    assert {name: of.tolist() for name, of in one.groups.items()} == {
        "clear values": [True, True, False],
        "sensitive values": [False, False, True],
    }
    everything = outcome(sensitive=np.ones(3, bool)).groups
    assert {name: of.tolist() for name, of in everything.items()} == {"all values": [True] * 3}


NAMES = ("raw_frequency", "ci_low", "ci_high", "frequency", "smoothed_frequency", "smoothed_low", "smoothed_high")


def rows_of(*values: str) -> list[dict[str, Any]]:
    """Each number is of its own: day, value and field can be read from it."""
    return [
        {
            "window_start": start,
            "num_reports": 10 + day,
            "unexplained_mass": None if day else 0.25,
            "estimates": [
                {"value": value} | {name: day + at / 10 + place / 100 for place, name in enumerate(NAMES)}
                for at, value in enumerate(values)
            ],
        }
        for day, start in enumerate(DAYS)
    ]


def test_estimates_are_joined_with_the_truth() -> None:
    truth = {DAYS[0]: collections.Counter(ant=1, cat=2, yak=1), DAYS[1]: collections.Counter(cat=4)}
    changes = {DATES[1]: "Shares moved."}
    one = compare(CLOSED, rows_of("ant", "cat"), truth, changes)
    assert (one.collection, one.days, one.values, one.changes) == (CLOSED, DATES, ["ant", "cat"], changes)
    assert one.truth.tolist() == [[0.25, 0.5], [0.0, 1.0]]
    assert one.num_reports.tolist() == [10, 11]
    assert one.unexplained[0] == 0.25
    assert math.isnan(one.unexplained[1])
    fields = ("estimate", "low", "high", "distribution", "smoothed", "smoothed_low", "smoothed_high")
    for place, field in enumerate(fields):
        expected = [[day + at / 10 + place / 100 for at in range(2)] for day in range(2)]
        if field == "estimate":  # is clipped to what a share can be
            expected = [[min(number, 1.0) for number in numbers] for numbers in expected]
        assert getattr(one, field).tolist() == expected, field
    below = rows_of("ant", "cat")
    below[0]["estimates"][0]["raw_frequency"] = -0.5
    assert compare(CLOSED, below, truth, {}).estimate[0, 0] == 0


def test_values_are_sensitive_if_the_collection_says_so_or_names_none() -> None:
    sensitive = CLOSED.alphabet.to_json()["sensitive"]
    held = {start: collections.Counter(dict.fromkeys(["ant", sensitive[0]], 1)) for start in DAYS}
    assert compare(CLOSED, rows_of("ant", sensitive[0]), held, {}).sensitive.tolist() == ["ant" in sensitive, True]
    everything = Collection.from_json(CLOSED.to_json() | {"alphabet": {"id": "hashed", "num_buckets": 4}, **KRR})
    assert compare(everything, rows_of("ant", sensitive[0]), held, {}).sensitive.tolist() == [True, True]


KRR = {"mechanism": {"id": "krr", "epsilon": 1.0}}


# ---------------------------------------------------------------------- text


def test_the_table_of_a_day() -> None:
    listed = outcome(
        values=["ATL", "ORD"],
        sensitive=np.ones(2, bool),
        estimate=np.array([[0.3, 0.5], [0.25, 0.65]]),
        low=np.array([[0, 0.0], [0.125, 0.75]]),
        high=np.array([[1.0, 1.0], [0.5, 0.875]]),
        truth=np.array([[0.25, 0.55], [0.1, 0.7]]),
    )
    name = CLOSED.id
    assert list(demo_text.day_table([listed, outcome()], 1)) == [
        "Thursday, 15 February 2001: share of departures in percent, 95 % intervals",
        f"{'':15}  {name:^27}  {name:^27}",
        "airport   truth    estimate        interval     estimate        interval ",
        "ORD       70.00       65.00  75.00 to 87.50!       60.00  55.00 to 65.00!",
        "ATL       10.00       25.00  12.50 to 50.00!       20.00  15.00 to 25.00!",
        "ADQ *      0.00    not a candidate                  0.00  -5.00 to  5.00",
        "ADQ *      0.00    not a candidate                  0.00  -5.00 to  5.00",
        "others    20.00       20.00",
        "* sensitive   ! truth outside the interval   others: all but the 2 candidates",
    ]


def test_the_table_has_the_12_most_frequent_and_5_sensitive_values() -> None:
    """Equally frequent ones in the order of the collection; the others of the day do not count."""
    names = [f"A{at:02}" for at in range(30)]
    shares = np.zeros((2, 30))
    shares[0] = 1 / 30
    shares[1] = np.where(np.arange(30) < 10, 0.09, 0.005)
    full: dict[str, Any] = dict.fromkeys(("estimate", "low", "high", "distribution", "truth"), shares)
    closed = outcome(values=names, sensitive=np.arange(30) >= 20, **full)
    common, sensitive = demo_text.shown_values(closed, 1, 12)
    assert (common, sensitive) == (names[:12], names[20:])
    lines = list(demo_text.day_table([closed, closed], 1))[3:-2]
    assert [line[:3] for line in lines] == [*names[:12], *names[20:25]]


def test_sentences_about_all_days() -> None:
    """Numbers of intervals are over all days and values of a group."""
    told = outcome(
        changes={DATES[1]: "Shares moved."},
        smoothed_high=np.array([[0.0, 0.3, 0.0], [0.0, 0.2, 0.0]]),
        truth=np.array([[0.55, 0.25, 0.1], [0.625, 0.1, 0.0]]),
    )
    ledger = {"c": collections.Counter(sent=2100, received=2100, accepted=2098, rejected=2)}
    epsilon = f"{CLOSED.mechanism.epsilon:g}"
    loss = (0.05 + 0.05 + 0.0 + 0.0) / 2 * 100, (0.025 + 0.1 + 0.0 + 0.075) / 2 * 100
    gain = (0.05**2 + 0.05**2 + 0.025**2 + 0.1**2) / (0.05**2 + 0.025**2 + 0.1**2)
    assert list(demo_text.summary([told], ledger, "seeded")) == [
        f"{CLOSED.id}: epsilon {epsilon}, 900 to 1,200 reports a day, total variation distance "
        f"{sum(loss) / 2:.1f} % (mean of 2 days)",
        f"{CLOSED.id}, clear values: 3 of 4 intervals contain the truth (75.0 %)",
        f"{CLOSED.id}, sensitive values: 2 of 2 intervals contain the truth (100.0 %)",
        f"{CLOSED.id}, smoothed over days: 1 of 6 intervals (16.7 %), squared l2 distance {gain:.1f} times smaller",
        f"{CLOSED.id}, Thursday, 15 February 2001: Shares moved.",
        "c, ledger: 2,100 received = 2,098 accepted + 2 rejected: balanced",
        "randomness of the reports: seeded",
    ]


@pytest.mark.parametrize(
    ("sent", "received", "accepted", "rejected", "word"),
    [
        (5, 5, 4, 1, "balanced"),
        (5, 5, 5, 0, "balanced"),
        (6, 5, 4, 1, "NOT BALANCED"),
        (5, 5, 4, 0, "NOT BALANCED"),
        (5, 5, 5, 1, "NOT BALANCED"),
        (5, 6, 5, 1, "NOT BALANCED"),
    ],
)
def test_a_ledger_balances_if_no_report_was_lost_or_added(
    sent: int, received: int, accepted: int, rejected: int, word: str
) -> None:
    account = collections.Counter(sent=sent, received=received, accepted=accepted, rejected=rejected)
    assert demo_text.balance(account) == word
