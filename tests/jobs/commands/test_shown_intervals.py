"""No program shows a number outside its interval, or an interval that is short by chance: rows of rare values."""

from __future__ import annotations

import json
import shlex
from typing import Any

import numpy as np
import pytest

from tests.support.estimated import estimate_window
from tests.support.messages_cases import collection, container, numbered, write_files
from tests.support.shown_intervals import faults, shown
from tests.support.tolerance import generator
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.windowed_estimate import ON_TIME

MINUTE, WINDOWS, EACH = 60_000, 5, 300
RARE = [0.7, 0.3, *[0.0] * 8]  # half of eight values' estimates are below 0 by chance

VERSIONS = [
    Collection.from_json(collection("asked", numbered(10), "krr").to_json() | {"version": version, "question": "asked"})
    for version in (1, 2)
]
NUMBERS = {"id": "ordered", "low": 0, "high": 10, "num_bins": 10}
ITEMS = {
    "krr": collection("krr", numbered(10), "krr"),
    "urap": collection("urap", numbered(10, 5), "urap"),
    "channel": collection("channel", numbered(10), "up"),
    "hashed": collection("hashed", {"id": "hashed", "num_buckets": 8}, "rappor", num_cohorts=16),
    "times": collection("times", NUMBERS | {"others": ["none"]}, "krr"),
    "waves": collection("waves", NUMBERS, "sw"),
    "grouped": Collection.from_json(
        collection("grouped", numbered(10), "ss", subset_size=3).to_json()
        | {"dimensions": [{"name": "arm", "values": ["new", "control"]}]}
    ),
    "old": VERSIONS[0],
    "new": VERSIONS[1],
}
RUNS = (
    "estimate {all} --input in.avro --output job --window 1m --smooth --write_counts",
    "estimate --collection grouped.json --input arms.avro --output arms --window 1m --write_counts --by arm",
    "reestimate {all} job --output projected --estimator projected --min_reports 1",
    "reestimate {all} job --output longer --window 2m --smooth --min_reports 1",
    "reestimate --collection grouped.json arms --output borrowed --by arm --borrow --min_reports 1",
    "reestimate --collection krr.json job --output lied --liars 0.02 --min_reports 1",
    "total job {known} --min_reports 1",
    "total arms --by arm --liars 0.05 --min_reports 1",
    "compare job --windows --collection times.json --limits 1,2.5",
    "compare arms --by arm --anytime --output anytime.jsonl",
    "compare arms --by arm --liars 0.02 --output lied.jsonl",
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """All rows of all programs."""
    folder, rng, messages = tmp_path_factory.mktemp("shown"), generator("rows of rare values"), {}
    for name, item in ITEMS.items():
        texts = [str(place) for place in range(10)] if name not in ("times", "waves") else range(10)
        people = rng.choice(texts, WINDOWS * EACH, p=RARE).tolist()
        moments = np.repeat(np.arange(WINDOWS) * MINUTE, EACH)
        groups = {"arm": rng.choice(["new", "control"], len(people)).tolist()} if name == "grouped" else {}
        batch = item.perturb(people, rng, moments, *[groups] * bool(groups))
        messages[name] = [(1, wire.encode_batch(batch))]
    write_files(folder, {f"{name}.json": item for name, item in ITEMS.items()})
    together = [message for of_item in messages.values() for message in of_item]
    write_files(
        folder,
        {"in.avro": container(together, wire.BATCH_SCHEMA)}
        | {"arms.avro": container(messages["grouped"], wire.BATCH_SCHEMA)},
    )
    write_files(folder, {"c.txt": "".join(f"{place}\n" for place in range(12))})
    known = "--candidates c.txt --limits 1,2.5,5"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in RUNS:
            every = " ".join(f"--collection {name}.json" for name in ITEMS) + f" {known}"
            assert uldp.main(shlex.split(line.format(all=every, known=known))) == 0, line
    files = [
        path for path in folder.rglob("*.jsonl") if path.name not in ("runs.jsonl", "ledger.jsonl", "health.jsonl")
    ]
    return [json.loads(text) for path in sorted(files) for text in path.read_text("utf-8").splitlines()]


def test_every_row_of_every_program_is_right(rows: list[dict[str, Any]]) -> None:
    assert faults(rows) == []
    kinds = {each.kind for row in rows for each in shown(row) if each.number is not None}
    assert kinds >= {"", "ci_", "display_", "smoothed_", "unexplained_", "lift_"}
    zeros = [entry for row in rows for entry in row.get("estimates", ()) if entry["raw_frequency"] < 0]
    assert sum(entry["raw_frequency"] < -2 * entry["standard_error"] for entry in zeros) > 10
    assert min(entry["ci_high"] / entry["standard_error"] for entry in zeros) > 1


def test_no_smoothed_interval_is_short(rows: list[dict[str, Any]]) -> None:
    """Half the interval of the mean of all windows, 1.96 of its standard errors, is what is left of it above 0."""
    entries = [entry for row in rows for entry in row.get("estimates", ()) if entry["smoothed_frequency"] is not None]
    lengths = [(each["smoothed_high"] - each["smoothed_low"]) / each["standard_error"] for each in entries]
    assert len(lengths) > 500 and min(lengths) > 1 / np.sqrt(WINDOWS)


@pytest.mark.parametrize("name", ITEMS)
def test_rows_for_all_looks_are_right(name: str) -> None:
    """From five reports on, as streams write them."""
    item, rng = ITEMS[name], generator("rows of all looks", name)
    place = span_of(0, MINUTE) | {"pane_index": 0, "pane_timing": ON_TIME, "run": "a"}
    values = [str(value) for value in range(10)] if name not in ("times", "waves") else range(10)
    for number in (5, 50, 500, 5_000):
        people = rng.choice(values, number, p=RARE).tolist()
        counts = item.count(item.perturb(people, rng, None, *[{"arm": ["new"] * number}] * bool(item.dimensions)))
        for scale in (None, 50):
            row = estimate_window(
                item,
                counts,
                place,
                ESTIMATORS["eb"](),
                tuple("0123456789x"),
                None,
                anytime_scale=scale,
                limits=[1, 2.5],
            )
            told = json.loads(to_json(row))
            assert faults([told]) == [] and told["interval"] == ("fixed" if scale is None else "anytime")
