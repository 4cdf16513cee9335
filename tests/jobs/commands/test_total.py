"""``uldp reestimate --window all``: the sum of all windows, estimated once."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.estimated import estimate_window
from tests.support.jobs.reestimated import ALL, COLLECTIONS, FILES, PERIOD, estimated, rows_of
from tests.support.jobs.stored_periods import ONE, store, stored
from tests.support.messages_cases import collection, write_files
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.records.run_records import collections_of, read_records
from uldp_transforms.jobs.records.whole_period import totals_of
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets.noun import Noun
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.spec.spec_fields import SHOW

KRR = COLLECTIONS[0]
PLACE = ("window_start", "window_end", "pane_index", "pane_timing", "run")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, FILES | {"one.json": ONE})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def totals(options: str) -> list[dict[str, Any]]:
    assert uldp.main(["reestimate", *shlex.split(options), "--window", "all"]) == 0
    return [json.loads(line) for line in Path("job/totals.jsonl").read_text("utf-8").splitlines()]


def without_place(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in PLACE}


@pytest.mark.usefixtures("folder")
def test_the_total_of_windows_is_the_estimate_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """Of all collections, an open one too: the same numbers as without windows."""
    estimated(f"{ALL} --window 1m")
    capsys.readouterr()
    rows = totals("job --candidates candidates.txt")
    printed = capsys.readouterr().out
    assert {(row["window_start"], row["window_end"]) for row in rows} == {
        ("1970-01-01T00:00:00Z", "1970-01-01T00:10:00Z")
    }
    estimated(ALL)
    everything = sorted(rows_of(Path("job")), key=lambda row: row["collection_id"])
    assert [without_place(row) for row in rows] == [without_place(row) for row in everything]
    head, title, *lines = printed.split("\n\n")[0].splitlines()
    assert head == "krr, 1 Jan 1970, 00:00 to 00:10 (UTC): 300 reports in 10 windows, status ok"
    assert title.split() == ["value", "share", "95", "%", "interval"]
    entry = max(rows[0]["estimates"], key=lambda each: each["frequency"])
    assert lines[0].split() == [
        entry["value"],
        f"{entry['frequency']:.4f}",
        f"{entry['display_low']:.4f}",
        "to",
        f"{entry['display_high']:.4f}",
    ]


@pytest.mark.usefixtures("folder")
def test_the_period_is_named_in_the_time_zone_of_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    estimated("--collection krr.json --window 1d --timezone Europe/Berlin", [KRR])
    capsys.readouterr()
    totals("job")
    head = "krr, Thu 1 Jan 1970 (Europe/Berlin): 300 reports in 1 window, status ok\n"
    assert capsys.readouterr().out.startswith(head)


@pytest.mark.usefixtures("folder")
def test_the_total_says_what_was_counted(capsys: pytest.CaptureFixture[str]) -> None:
    of = dataclasses.replace(KRR, noun=Noun(one="flight", many="flights"))
    Path("krr.json").write_text(json.dumps(of.to_json()), encoding="utf-8")
    estimated("--collection krr.json", [of])
    capsys.readouterr()
    totals("job")
    assert capsys.readouterr().out.startswith("krr, everything: 300 flights in 1 window, status ok\n")


@pytest.mark.usefixtures("folder")
def test_one_window_for_everything_is_its_own_total(capsys: pytest.CaptureFixture[str]) -> None:
    estimated("--collection krr.json", [KRR])
    capsys.readouterr()
    [row] = totals("job")
    assert (row["window_start"], row["num_reports"]) == (None, 300)
    assert capsys.readouterr().out.startswith("krr, everything: 300 reports in 1 window, status ok\n")


@pytest.mark.usefixtures("folder")
def test_partial_windows_are_left_out_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    first = stored(ONE, 0, [7, 2, 1], complete=False)
    store([first, stored(ONE, PERIOD, [60, 30, 10]), stored(ONE, 3 * PERIOD, [30, 50, 20])])
    [row] = totals("job --collection one.json --min_reports 1")
    assert (row["num_reports"], row["window_start"]) == (200, "1970-01-01T00:10:00Z")
    assert row["window_end"] == "1970-01-01T00:40:00Z"
    assert (
        capsys.readouterr().out.splitlines()[0].endswith("200 reports in 2 windows, status ok; partial and left out: 1")
    )
    store([first])
    [row] = totals("job --collection one.json --min_reports 1")
    assert (row["status"], row["estimates"]) == ("partial", [])
    assert (
        capsys.readouterr()
        .out.splitlines()[0]
        .endswith("no number of reports in 0 windows, status partial; partial and left out: 1")
    )


@pytest.mark.usefixtures("folder")
def test_partial_windows_of_a_question_are_left_out_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A window in which one version is partial is counted; the whole windows of the other version are added."""
    first, second = (Collection.from_json(ONE.to_json() | {"question": "asked", "version": v}) for v in (1, 2))
    write_files(Path(), {"first.json": first, "second.json": second})
    store(
        [stored(first, 0, [7, 2, 1], complete=False), *(stored(one, PERIOD, [60, 30, 10]) for one in (first, second))]
    )
    rows = totals("job --collection first.json --collection second.json --min_reports 1")
    assert [(row["collection_id"], row["num_reports"]) for row in rows] == [("one", 100), ("one", 100), ("asked", 200)]
    heads = [line for line in capsys.readouterr().out.splitlines() if " reports in " in line]
    assert [head.partition("status ")[2] for head in heads] == [
        "ok; partial and left out: 1",
        "ok",
        "ok; partial and left out: 1",
    ]


def test_people_who_come_back_widen_the_intervals(folder: Path) -> None:
    """Clients of ten minutes, a period of twenty: a person reports at most twice, and keeps a memo.

    The share is one that no end of [0, 1] cuts, so that its interval grows like its standard error.
    """
    asked = {"client_window": "10m"}
    fields = ONE.to_json()
    memo = Collection.from_json({**fields, **asked, "mechanism": {**fields["mechanism"], "epsilon_inf": 3.0}})
    write_files(folder, {"m.json": memo})
    widths = []
    for starts in ([0], [0, PERIOD]):
        store([stored(memo, start, [480 // len(starts), *[360 // len(starts)] * 2]) for start in starts])
        [row] = totals("job --collection m.json --min_reports 1")
        entry = row["estimates"][0]
        assert row["num_reports"] == 1200 and 0 < entry["ci_low"] < entry["raw_frequency"] < entry["ci_high"] < 1
        widths.append((entry["standard_error"], entry["ci_high"] - entry["ci_low"]))
    (error, width), (longer_error, longer) = widths
    assert longer / width == pytest.approx(longer_error / error, rel=1e-3) and longer_error > 1.05 * error


@pytest.mark.usefixtures("folder")
def test_a_share_of_0_or_1_is_printed_with_one_end(capsys: pytest.CaptureFixture[str]) -> None:
    store([stored(ONE, 0, [900, 50, 50])])
    [row] = totals("job --min_reports 1 --estimator projected --collection one.json")
    first, *others = sorted(row["estimates"], key=lambda entry: -entry["frequency"])
    assert first["frequency"] == 1 and 0.8 < first["display_low"] < 1 and 0.05 < others[0]["display_high"] < 0.2
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert lines[0] == [first["value"], "1.0000", "above", f"{first['display_low']:.4f}"]
    assert lines[1:] == [[one["value"], "0.0000", "below", f"{one['display_high']:.4f}"] for one in others]


@pytest.mark.usefixtures("folder")
def test_a_long_list_is_cut_in_the_print_alone(capsys: pytest.CaptureFixture[str]) -> None:
    many = collection("many", {"id": "closed", "values": [str(number) for number in range(30)]}, "krr", num_cohorts=1)
    write_files(Path(), {"many.json": many})
    store([stored(many, 0, [100 + number for number in range(30)])])
    [row] = totals("job --collection many.json --min_reports 1")
    assert len(row["estimates"]) == 30
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[-1]) == (23, "and 10 more")


BLOCKS = {"id": "blocks", "blocks": {"berlin": ["mitte", "tegel"], "paris": ["nord", "sud"], "rome": ["est", "ovest"]}}


SHARE = ["share", "95", "%", "interval"]


@pytest.mark.usefixtures("folder")
def test_values_in_public_blocks_have_their_shares_within_them(capsys: pytest.CaptureFixture[str]) -> None:
    places = collection("places", BLOCKS, "krr", num_cohorts=1)
    write_files(Path(), {"places.json": places})
    cells = [60, 40, 110, 90, 0, 0, 100, 200, 0]
    store([stored(places, 0, cells)._replace(num_reports=[300])])
    [row] = totals("job --collection places.json --min_reports 1")
    _, title, *lines = capsys.readouterr().out.splitlines()
    assert title.split() == ["value", *SHARE, "block", *SHARE[:1], "in", "block", *SHARE[1:]]
    for line in lines[:4]:
        one = next(one for one in row["in_blocks"] if one["value"] == line.split()[0])
        low, high = (f"{one[name]:.4f}" for name in ("display_low", "display_high"))
        assert line.split()[-5:] == [one["block"], f"{one['share']:.4f}", low, "to", high]
    assert [line.split()[-3:] for line in lines[4:]] == [["rome", *["\N{EN DASH}"] * 2]] * 2, "nobody reported from it"
    assert [one["value"] for one in row["in_blocks"]] == [one["value"] for one in row["estimates"]]
    assert {one["block"]: one["num_reports"] for one in row["in_blocks"]} == {"berlin": 100, "paris": 200, "rome": 0}


NUMBERS = collection("numbers", {"id": "ordered", "low": 0, "high": 60, "num_bins": 3}, "krr", num_cohorts=1)


@pytest.mark.parametrize(
    ("of", "options", "settings"),
    [
        (ONE, "--show 1", {"show": 1}),
        (ONE, "--liars 0.01", {"liars": 0.01}),
        (ONE, "--estimator projected", {"estimator": "projected"}),
        (ONE, "--min_reports 201", {"withheld": "suppressed"}),
        (NUMBERS, "--limits 20,30 --quantiles 0.25", {"limits": [20.0, 30.0], "quantiles": [0.25]}),
    ],
)
@pytest.mark.usefixtures("folder")
def test_every_setting_reaches_the_estimate(of: Collection, options: str, settings: dict[str, Any]) -> None:
    """The row is what the library makes of the sum with these arguments, and another one without them."""
    write_files(Path(), {"of.json": of})
    store([stored(of, 0, [60, 30, 10]), stored(of, PERIOD, [30, 50, 20])])
    [row] = totals(f"job --collection of.json {'' if 'min_reports' in options else '--min_reports 1'} {options}")

    def made(withheld: str | None = None, estimator: str = "eb", **more: Any) -> dict[str, Any]:
        counts, place = CohortCounts(np.array([200]), np.array([[90, 80, 30]])), {name: row[name] for name in PLACE}
        found = estimate_window(of, counts, place, ESTIMATORS[estimator](), None, withheld, **{"show": SHOW} | more)
        return dict(json.loads(to_json(found)))

    assert row == made(**settings) | {"simulated": row["simulated"]}
    assert made(**settings) != made()


@pytest.mark.usefixtures("folder")
def test_numbers_have_a_table_of_their_figures(capsys: pytest.CaptureFixture[str]) -> None:
    write_files(Path(), {"of.json": NUMBERS})
    store([stored(NUMBERS, 0, [4000, 3500, 2500])])
    totals("job --collection of.json --limits 20 --quantiles 0.5")
    head, titles, *figures = capsys.readouterr().out.splitlines()
    assert head == ("numbers, 1 Jan 1970, 00:00 to 00:10 (UTC): 10,000 reports in 1 window, status ok")
    # of three bins with the middles 10, 30 and 50, shares of 51.64, 37.91 and 10.45 %
    assert [re.split("  +", line)[:3] for line in (titles, *figures)] == [
        ["figure", "value", "95 % interval"],
        ["mean", "21.76", "20.91 to 22.61"],
        ["median", "19.4", "below 20.5"],
        ["share from 20", "0.4836", "0.4572 to 0.5100"],
        ["sum", "217,622", "209,512 to 225,732"],
    ]


# ---------------------------------------------------------------------- refusals


@pytest.mark.usefixtures("folder")
def test_a_page_adds_up_what_the_job_stored() -> None:
    """Without the file, the page has the same rows, but of open collections, which need candidates."""
    estimated(f"{ALL} --window 1m")
    records = read_records("job")
    known = {of.fingerprint.hex(): of for of in collections_of(records, ()).values()}
    added = totals_of("job", records, known)
    assert {row["collection_id"] for row in added.values()} == {
        of.id for of in known.values() if of.alphabet.known_values is not None
    }
    rows = {row["fingerprint"]: row for row in totals("job --candidates candidates.txt")}
    assert len(rows) > len(added) > 0
    assert all(rows[fingerprint] == dict(row) for fingerprint, row in added.items())
    assert totals_of("job", records, known) == rows


@pytest.mark.usefixtures("folder")
def test_a_page_has_no_total_of_windows_that_overlap() -> None:
    estimated("--collection krr.json --window 2m --slide 1m", [KRR])
    records = read_records("job")
    assert totals_of("job", records, {KRR.fingerprint.hex(): KRR}) == {}
