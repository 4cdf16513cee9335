"""Simulated people who report again: the cohort and memo of each stay, and windows are estimated as of anybody."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import fastavro
import numpy as np
import pytest

from tests.support.tolerance import binomial_limits, generator, normal_limit
from uldp_transforms.ldp import Collection
from uldp_transforms_tables.simulate import simulate_command as simulate
from uldp_transforms_tables.simulate.simulated_people import SimulatedPeople

SHARES = {"ant": 0.5, "bee": 0.3, "cat": 0.2}
SPEC = {
    "id": "again",
    "version": 1,
    "alphabet": {"id": "closed", "values": list(SHARES)},
    "mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0},
    "num_cohorts": 8,
}
AGAIN = Collection.from_json(SPEC)
DAYS = 30
START = 1_000_000_000 // 86_400 * 86_400
"""Midnight, in seconds."""


def write_values(path: Path, people: int, days: int) -> None:
    """The same value of each person on all days."""
    held = generator("people").choice(list(SHARES), people, p=list(SHARES.values()))
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["who", "value", "event_time"])
        rows.writerows([f"p{i}", held[i], START + day * 86_400] for day in range(days) for i in range(people))


def reports(path: Path, *options: str) -> list[dict[str, object]]:
    (path.parent / "c.json").write_text(json.dumps(SPEC))
    argv = ["--collection", str(path.parent / "c.json"), "--values", str(path), "--output", str(path.parent / "r.avro")]
    assert simulate.main([*argv, "--person_column", "who", *options]) == 0
    with (path.parent / "r.avro").open("rb") as file:
        return [dict(record) for record in fastavro.reader(file)]  # type: ignore[arg-type]


def test_cohorts_stay_and_memos_are_repeated(tmp_path: Path) -> None:
    people = 400
    write_values(tmp_path / "v.csv", people, DAYS)
    found = reports(tmp_path / "v.csv")
    of_person = [found[i::people] for i in range(people)]
    assert all(len({record["cohort"] for record in own}) == 1 for own in of_person)
    assert len({own[0]["cohort"] for own in of_person}) == 8
    assert len({record["report_id"] for record in found}) == len(found)
    # noise is uniform: two reports of a person agree if both are the memo, or else by chance; fresh ones far less often
    mechanism = AGAIN.mechanism
    repeat = mechanism.repeat_weight / 2**64  # type: ignore[attr-defined]  # of all members with memos
    pairs = [(own[day]["payload"], own[day + 1]["payload"]) for own in of_person for day in range(0, DAYS, 2)]
    low, high = binomial_limits(np.array(len(pairs)), np.array(repeat**2 + (1 - repeat**2) / 3))
    assert low <= sum(one == other for one, other in pairs) <= high
    channel = np.array(mechanism.channel()[1], dtype=float)  # of fresh reports
    assert len(pairs) * (channel[:, 0] ** 2).sum() < low


def test_a_window_is_estimated_as_of_fresh_reports(tmp_path: Path) -> None:
    """Each person is asked once, so the reports are independent."""
    people = 4_000
    rng = generator("fresh people")
    values = rng.choice(list(SHARES), people, p=list(SHARES.values())).tolist()
    batch = SimulatedPeople(AGAIN, None).reports([str(i) for i in range(people)], values, None, np.zeros(people, int))
    estimate = AGAIN.estimate(AGAIN.count(batch))
    shares = Counter(values)
    z = (estimate.raw_frequencies - [shares[value] / people for value in estimate.values]) / estimate.standard_errors
    assert np.abs(z).max() < normal_limit(len(z))


@pytest.mark.parametrize("options", [("--seed", "1"), ()])
def test_a_seed_makes_the_same_people(options: tuple[str, ...], tmp_path: Path) -> None:
    write_values(tmp_path / "v.csv", 50, 2)
    once, again = (reports(tmp_path / "v.csv", *options) for _ in range(2))
    assert (once == again) == bool(options)
