"""``--follow --by --smooth``: each group is smoothed as in a stream, from its own windows."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from packages.follow.tests.support.spools import Followed
from tests.support import replay
from tests.support.display_of_groups import assert_counts_all_groups, rows_of
from tests.support.ldp.dimensions import GROUPED
from tests.support.messages_cases import KRR, NOON, UP
from tests.support.spool_writer import finished
from tests.support.spools import MINUTE
from tests.support.tolerance import generator
from uldp_transforms import JobSpec
from uldp_transforms.collector.owners import Owners
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.windows import Windows

START, WINDOWS, LATE, EACH = NOON // MINUTE * MINUTE, 12, 3, 600
OF = [
    dataclasses.replace(
        Collection.from_json(each.to_json() | {"dimensions": [{"name": "arm", "values": arms}]}), question="asked"
    )
    for each, arms in ((KRR, ["a", "b"]), (UP, ["b", "c"]))
]
"""Two versions of a question, which have one group in common, and the others."""


def batch(of: Collection, minute: int, name: str, moved: bool = False) -> bytes:
    """Reports of one minute, half of them of group b, in which everybody holds one value if it moved."""
    rng, values = generator("followed groups", of.id, minute, name), list(of.alphabet.known_values or ())
    arms = rng.permutation(["b", *of.dimensions[0].all_values[:2]] * (EACH // 3)).tolist()
    held = [values[0] if moved and arm == "b" else str(rng.choice(values[1:])) for arm in arms]
    return wire.encode_batch(of.perturb(held, rng, [START + minute * MINUTE] * EACH, {"arm": arms}))


def parts() -> list[tuple[int, list[bytes]]]:
    """What arrives together, and until when everything has arrived: a minute each; late reports before the last one."""
    found = [
        (minute + 1, [batch(of, minute, "on time", minute == WINDOWS - 1) for of in OF]) for minute in range(WINDOWS)
    ]
    late = (WINDOWS - 1, [batch(OF[0], LATE, "late")])
    return [*found[:-1], late, found[-1]]


def add(followed: Followed, messages: list[bytes]) -> None:
    finished(followed.spool, messages)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """A job that follows; it is started again for each part."""
    found = Followed(tmp_path_factory.mktemp("groups"), "--by", "arm", "--smooth", of=OF)
    for _, messages in parts():
        add(found, messages)
        found.steps(1)
    return found


def by_place(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    names = ("fingerprint", "group", "window_start", "pane_index")
    found = {tuple(row[name] for name in names): row for row in rows}
    assert len(found) == len(rows)
    return {key: {name: row[name] for name in row if name not in ("run", "simulated")} for key, row in found.items()}


def test_groups_are_smoothed_as_those_of_a_stream(followed: Followed) -> None:
    """All rows, number by number, with those of late panes; a change of one group is found in it."""
    job = replay.streaming_job(OF, Windows(size=MINUTE), by=("arm",), smooth=True, allowed_lateness=60 * MINUTE)
    events = []
    for minute, messages in parts():
        events += [replay.arrive(START + minute * MINUTE - 1, messages), replay.watermark(START + minute * MINUTE)]
    streamed = replay.replay(job, events)
    for kind in ("estimates", "health"):
        found, expected = by_place(followed.rows(kind)), by_place([json.loads(to_json(row)) for row in streamed[kind]])
        again = {key: found.pop(key) for key in set(found) - set(expected)}
        assert found == expected
        assert {(group, pane) for _, group, _, pane in expected} == {
            *((group, pane) for group in ("", "arm=a", "arm=b") for pane in (0, 1)),
            ("arm=c", 0),
        }
        # a window is estimated again with all its groups, also those without late reports
        [(place, row)] = again.items()
        first, names = found[(*place[:3], 0)], ("group", "num_reports", "status")
        assert [row[name] for name in names] == [first[name] for name in names] == ["arm=c", EACH // 3, "ok"]
    rows = followed.rows("estimates")
    assert all(each["smoothed_low"] is not None for row in rows for each in row["estimates"])
    moved = {
        (row["collection_id"], row["group"])
        for row in followed.rows("health")
        if row["group"] and row["findings"][-1]["fired"]
    }
    assert moved == {(name, "arm=b") for name in (KRR.id, UP.id, "asked")}


def test_what_is_held_has_the_keys_of_counts_and_everybody_that_of_earlier_directories(followed: Followed) -> None:
    with contextlib.closing(sqlite3.connect(followed.output / "follow.sqlite")) as database:
        keys = {key for (key,) in database.execute("SELECT fingerprint FROM smoothing")}
        counted = {key for (key,) in database.execute("SELECT fingerprint FROM counts")}
    owners = Owners(JobSpec(collections=tuple(OF), by=("arm",)))
    pooled = {owners.in_question(key) for key in counted}
    assert keys == counted | pooled
    assert {key for key in keys if len(key) == 32} == {
        bytes.fromhex(row["fingerprint"]) for row in followed.rows("estimates")
    }
    assert {key: owners.of(key).key for key in keys} == {key: key for key in keys}


def test_display_intervals_of_groups_count_the_values_of_all_groups(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "--by", "country", of=(GROUPED,))
    followed.add_file(reports=800, minutes=2)
    followed.steps(2)
    assert_counts_all_groups(rows_of(next(followed.output.glob("estimates-*.jsonl"))))
