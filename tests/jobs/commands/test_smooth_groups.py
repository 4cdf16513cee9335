"""``--by arm --smooth`` of ``uldp estimate`` and ``uldp reestimate``: a series for each group, and its alarms."""

from __future__ import annotations

import datetime
import functools
import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.html_tree import tree_of
from tests.support.ldp.dimensions import GROUPED
from tests.support.messages_cases import container, write_files
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms import read_rows
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.rows.figures.window_names import WindowNames

MINUTE, WINDOWS, EACH = 60_000, 14, 400
ARM = {"dimensions": [{"name": "arm", "values": ["control", "new"]}]}
CLOSED = {"alphabet": {"id": "closed", "values": ["a", "b", "c"]}, "question": "asked"} | ARM
MINUTES = {"id": "ordered", "low": 0, "high": 60, "num_bins": 6, "unit": "min"}
OTHERS = [
    Collection.from_json({"id": "first", "version": 1, "mechanism": {"id": "krr", "epsilon": 2.0}} | CLOSED),
    Collection.from_json({"id": "second", "version": 1, "mechanism": {"id": "rappor", "epsilon": 2.0}} | CLOSED),
    Collection.from_json(
        {"id": "trip", "version": 1, "alphabet": MINUTES, "mechanism": {"id": "sw", "epsilon": 2.0}} | ARM
    ),
]
"""A question with two versions, and numbers."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stored counts by arm: from the tenth minute on, everybody in the new arm holds another value."""
    rng, path, messages = generator("smooth groups"), tmp_path_factory.mktemp("smooth"), []
    for minute in range(WINDOWS):
        arms = rng.choice(["control", "new"], EACH).tolist()
        shares = {"control": [0.6, 0.3, 0.1], "new": [0.6, 0.3, 0.1] if minute < 9 else [0.1, 0.1, 0.8]}
        values = [str(rng.choice(["a", "b", "c"], p=shares[arm])) for arm in arms]
        texts = {"arm": arms, "country": ["DE"] * EACH}
        messages.append((1, wire.encode_batch(GROUPED.perturb(values, rng, [minute * MINUTE] * EACH, texts))))
        for of in OTHERS:
            held = ["10", "20", "45"] if of.id == "trip" else ["a", "b", "c"]
            values = rng.choice(held, EACH, p=[0.5, 0.3, 0.2]).tolist()
            batch = of.perturb(values, rng, [minute * MINUTE] * EACH, {"arm": arms})
            messages.append((1, wire.encode_batch(batch)))
    named = {f"{of.id}.json": of for of in (GROUPED, *OTHERS)}
    write_files(path, named | {"in.avro": container(messages, wire.BATCH_SCHEMA)})
    estimated(path, "--by arm --write_counts")
    return path


@functools.cache
def estimated(folder: Path, options: str, of: str = "*") -> dict[str, Any]:
    """The rows of a job over the files, by kind, in the order of what they are about."""
    output = output_of(folder, options, of)
    head = f"estimate --collection '{folder}/{of}.json' --input {folder}/in.avro --output {output}"
    # reports of other collections than those of the job are rejected
    assert uldp.main(shlex.split(f"{head} --window 1m --min_reports 1 --max_rejected_share 1 {options}")) == 0
    return {kind: sorted(rows(output, kind), key=place) for kind in ("estimates", "health")}


def output_of(folder: Path, options: str, of: str = "*") -> Path:
    """The directory of a job of ``estimated``."""
    return folder / f"of {of} {options}".replace(" ", "_").replace("*", "all")


def again(folder: Path, options: str, *, of: str = "grouped") -> list[dict[str, Any]]:
    """The rows of stored counts."""
    named = " ".join(f"--collection {path}" for path in sorted(folder.glob(f"{of}.json")))
    counts = output_of(folder, "--by arm --write_counts")
    given = f"reestimate {named} {counts} --output {folder}/again --min_reports 1"
    assert uldp.main(shlex.split(f"{given} {options}")) == 0
    return sorted(rows(folder / "again", "estimates"), key=place)


def rows(output: Path, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / f"{kind}.jsonl").read_text().splitlines()]


def place(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["fingerprint"], row["group"], row["window_start"]


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: cell for name, cell in row.items() if name not in names}


def smoothed(rows: list[dict[str, Any]]) -> list[Any]:
    return [[(each["value"], each["smoothed_frequency"]) for each in row["estimates"]] for row in rows]


def test_each_group_is_a_series_and_the_total_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    total = again(folder, "--smooth")
    capsys.readouterr()
    found = again(folder, "--smooth --by arm")
    said = [line for line in capsys.readouterr().err.splitlines() if "Shares moved" in line]
    of_group = {name: [row for row in found if row["group"] == name] for name in ("", "arm=control", "arm=new")}
    assert smoothed(of_group[""]) == smoothed(total)
    assert {name: len(own) for name, own in of_group.items()} == dict.fromkeys(of_group, WINDOWS)
    for name in ("arm=control", "arm=new"):
        assert all(share is not None for row in smoothed(of_group[name]) for _, share in row)
    assert any(line.startswith("reestimate: collection 'grouped', arm=new, 1 Jan 1970, 00:09") for line in said)
    assert not any("arm=control" in line for line in said)


@pytest.mark.parametrize(("of", "options"), [("*", ""), ("grouped", "--borrow")], ids=["all", "borrowed"])
def test_a_job_over_files_has_the_rows_of_stored_counts(of: str, options: str, folder: Path) -> None:
    """Number by number: of collections, of a question, of numbers; and what groups borrow is not smoothed."""
    found = estimated(folder, f"--smooth --by arm {options}", of)["estimates"]
    expected = again(folder, f"--smooth --by arm {options}", of=of)
    assert [without(row, "run") for row in found] == [without(row, "run") for row in expected]
    owners = {(row["collection_id"], row["group"]) for row in found}
    ids = {"grouped"} if options else {"grouped", "first", "second", "asked", "trip"}
    assert owners == {(name, group) for name in ids for group in ("", "arm=control", "arm=new")}
    assert all(each["smoothed_low"] is not None for row in found for each in row["estimates"])
    means = [row["numbers"]["mean"]["smoothed_value"] for row in found if row["collection_id"] == "trip"]
    assert len(means) == (0 if options else 3 * WINDOWS) and None not in means
    plain = estimated(folder, f"--by arm {options or '--write_counts'}", of)["estimates"]
    names = ("frequency", "raw_frequency", "ci_low")
    assert [[[each[name] for name in names] for each in row["estimates"]] for row in found] == [
        [[each[name] for name in names] for each in row["estimates"]] for row in plain
    ]


def test_the_alarm_of_a_group_is_in_a_row_of_its_own(folder: Path) -> None:
    """Those of everybody have the same rows of health as without groups."""
    found = estimated(folder, "--smooth --by arm", "grouped")
    assert list(map(place, found["health"])) == list(map(place, found["estimates"]))
    of_group = [row for row in found["health"] if row["group"]]
    assert {tuple(one["name"] for one in row["findings"]) for row in of_group} == {("change",)}
    assert {(row["group"], row["window_start"][14:16]) for row in of_group if row["status"] == "change"} == {
        ("arm=new", "09")
    }
    assert {row["dimensions"][0]["value"] for row in of_group} == {"control", "new"}
    totals = [without(row, "run") for row in found["health"] if not row["group"]]
    assert totals == [without(row, "run") for row in estimated(folder, "--smooth", "grouped")["health"]]
    plain = estimated(folder, "--by arm --write_counts")["health"]
    assert [row["group"] for row in plain] == [""] * WINDOWS * (len(OTHERS) + 2)


def test_the_page_names_the_group_of_an_alarm(folder: Path) -> None:
    """A change of a group is no mark in the chart of everybody; notebooks get the row too."""
    options = "--smooth --by arm --alarm_every 1000000"  # everybody is quiet
    health = estimated(folder, options, "grouped")["health"]
    assert [row["group"] for row in health if row["status"] == "change"] == ["arm=new"]
    directory, page = output_of(folder, options, "grouped"), folder / "page.html"
    assert uldp.main(shlex.split(f"report {directory} --output {page}")) == 0
    text = page.read_text()
    rows = [[cell.text for cell in row.all("th", "td")] for row in tree_of(text).all("tr")]
    assert [row[0].rpartition(", ")[2] for row in rows if "change" in row] == ["arm=new"]
    quiet = (
        f"No change was found in {WINDOWS - 8} of the {WINDOWS} windows shown, except in 1 group; the others were not"
    )
    assert text.count(quiet) == 1
    assert f"{WINDOWS - 8} windows were also judged against earlier ones; 8 could not be, because" in text
    frame = read_rows(str(directory), "health")
    assert list(frame[frame["status"] == "change"]["group"]) == ["arm=new"]
    assert Counter(frame["group"]) == dict.fromkeys(("", "arm=control", "arm=new"), WINDOWS)


@pytest.mark.parametrize(("group", "groups"), [("", 1), ("arm=new", 3)])
def test_a_group_rings_as_rarely_as_its_part_of_the_false_alarms(
    group: str, groups: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The p-value is that of a rule that would just ring; control, new and other together ring as often as all."""
    rings = []
    found = estimated(folder, "--smooth --by arm", "grouped")["health"]
    told = [(row["findings"][-1]["p_value"], row) for row in found if row["group"] == group]
    p_value, row = next((p_value, row) for p_value, row in told if p_value < 0.01)
    window = WindowNames.among(ends := (row["window_start"], row["window_end"]), datetime.timezone.utc).window(*ends)
    for looser in (1.2, 1 / 1.2):
        again(folder, f"--smooth --by arm --alarm_every {int(1 / (looser * groups * p_value))}")
        lines = capsys.readouterr().err.splitlines()
        whose = f"reestimate: collection 'grouped', {group + ', ' if group else ''}{window} (UTC)"
        rings.append(sum(line.startswith(whose) for line in lines))
    assert rings == [1, 0]


def test_many_groups_raise_no_more_false_alarms_than_promised(tmp_path: Path) -> None:
    """An alarm of a group in n windows has a probability of at most n / (alarm_every * groups), by a martingale."""
    groups, windows, every, each = 120, 20, 2, 150
    texts = [f"g{number}" for number in range(groups - 1)]
    of = Collection.from_json(
        {"id": "many", "version": 1, "alphabet": {"id": "closed", "values": ["a", "b"]}}
        | {"mechanism": {"id": "krr", "epsilon": 2.0}, "dimensions": [{"name": "place", "values": texts}]}
    )
    rng, messages = generator("groups that are honest"), []
    for minute in range(windows):
        values = rng.choice(["a", "b"], groups * each).tolist()
        own = {"place": [*texts, "other"] * each}
        messages.append((1, wire.encode_batch(of.perturb(values, rng, [minute * MINUTE] * len(values), own))))
    write_files(tmp_path, {"many.json": of, "in.avro": container(messages, wire.BATCH_SCHEMA)})
    found = estimated(tmp_path, f"--smooth --by place --alarm_every {every}")["health"]
    rang = {row["group"] for row in found if row["group"] and row["findings"][-1]["fired"]}
    assert len({row["group"] for row in found}) == groups + 1
    assert len(rang) <= binomial_limits(groups, windows / (every * groups))[1]
