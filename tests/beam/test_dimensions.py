"""Counts and estimates by group: exact, on files and streams, in every window and pane."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import replay
from tests.support.ldp.dimensions import GROUPED, SPEC
from tests.support.messages_cases import container
from tests.support.refusals.jobs.dimensions_in_jobs import COLLECTIONS, WIDE
from tests.support.tolerance import generator
from uldp_transforms import JobSpec
from uldp_transforms.collector.owners import Owners
from uldp_transforms.collector.period_counts import count_batches
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.alphabets.dimensions import OTHER, RollUp
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.group_keys import owner_of_group
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import Windows

MINUTE = 60_000
START = 1_000_000_020_000 // MINUTE * MINUTE
FIXED, SLIDING = Windows(size=2 * MINUTE), Windows(size=3 * MINUTE, slide=MINUTE)


def reports_of(collection: Collection, number: int = 600) -> ReportBatch:
    """Reports of six minutes, in random groups."""
    rng = generator("dimensions", collection.id, number)
    columns = {d.name: rng.choice(d.all_values, number).tolist() for d in collection.dimensions}
    times = START + rng.integers(0, 6 * MINUTE, number)
    return collection.perturb(rng.choice(list("abc"), number), rng, times, columns or None)


def rows_of(source: str, folder: Path, messages: list[bytes], windows: Windows | None, **fields: Any) -> Any:
    """The rows of a job over files, or over a stream in which half of the reports come late."""
    collections = fields.pop("collections", COLLECTIONS)
    if source == "files":
        path = folder / "reports.avro"
        path.write_bytes(container([(1, message) for message in messages], wire.BATCH_SCHEMA))
        return replay.replay(replay.file_job(collections, windows, str(path), **fields))
    job = replay.streaming_job(collections, windows, allowed_lateness=20 * MINUTE, **fields)
    now, half = START + 6 * MINUTE, len(messages) // 2
    events = [
        replay.arrive(now, messages[:half]),
        replay.watermark(now + 3 * MINUTE),
        replay.arrive(now + 3 * MINUTE, messages[half:]),
        replay.watermark(now + 60 * MINUTE),
    ]
    return replay.replay(job, events)


def messages_of(batch: ReportBatch) -> list[bytes]:
    return [wire.encode_batch(batch[at : at + 100]) for at in range(0, len(batch), 100)]


def last_panes(rows: list[Any]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Window -> group -> row of its last pane."""
    found: dict[tuple[Any, ...], dict[str, Any]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: row.pane_index):
        found[row.collection_id, row.window_start][row.group or ""] = row
    return found


CASES = [
    pytest.param("files", None, {}, id="files", marks=pytest.mark.slow),
    pytest.param("files", FIXED, {"bit_patterns": True}, id="files, fixed"),
    pytest.param("files", SLIDING, {"deduplicate": True}, id="files, sliding, once"),
    pytest.param("stream", FIXED, {}, id="stream, corrected", marks=pytest.mark.slow),
    pytest.param("stream", SLIDING, {"release": FINAL, "deduplicate": True}, id="stream, sliding, final, once"),
]


@pytest.mark.parametrize(("source", "windows", "fields"), CASES)
def test_groups_add_up_and_change_nothing_else(source, windows, fields, tmp_path):
    """In every window the counts of groups add up to the total, which is that of a job without groups, as is the
    ledger; and the reports of a group, in a job of their own, give the counts of the group."""
    batches = {of.id: reports_of(of) for of in COLLECTIONS}
    messages = [message for batch in batches.values() for message in messages_of(batch)]
    messages += messages[:1] if fields.get("deduplicate") else []
    rows = rows_of(source, tmp_path, messages, windows, by=("arm",), **fields)
    without = rows_of(source, tmp_path, messages, windows, **fields)
    counts, totals = last_panes(rows["counts"]), last_panes(without["counts"])
    assert counts.keys() == totals.keys()
    for window, groups in counts.items():
        total = groups.pop("")
        assert (total.num_reports, total.cells) == (totals[window][""].num_reports, totals[window][""].cells)
        assert not groups or window[0] in ("grouped", "wide"), "a collection without this dimension has its total only"
        for name in ("num_reports", "cells") if groups else ():
            parts = np.array([getattr(row, name) for row in groups.values()])
            assert (parts.sum(axis=0) == getattr(total, name)).all()
    assert max(len(groups) for groups in counts.values()) > 30
    assert replay.sum_ledger(rows["ledger"]) == replay.sum_ledger(without["ledger"])
    assert not replay.unbalanced(rows["ledger"])
    assert len(rows["health"]) == len(without["health"])

    of_arm = batches["grouped"]
    chosen = GROUPED.groups_of(of_arm.cohorts) % 3 == 1
    alone = rows_of(source, tmp_path, messages_of(of_arm[chosen]), windows, **fields | {"collections": [GROUPED]})
    estimates, expected = last_panes(rows["estimates"]), last_panes(alone["estimates"])
    assert expected
    for window, found in expected.items():
        row, own = estimates[window]["arm=new"], found[""]
        assert [tuple(pair) for pair in row.dimensions] == [("arm", "new")]
        assert own.group == ""
        assert (row.num_reports, row.status, row.fit_p_value) == (own.num_reports, own.status, own.fit_p_value)
        # intervals of a stream depend on which pane is the last, hence on how messages are cut
        width = 3 if source == "stream" else None
        assert [without_display(entry)[:width] for entry in row.estimates] == [
            without_display(entry)[:width] for entry in own.estimates
        ]
        if source == "files":  # the largest of all groups must be right too, so that display intervals are longer
            assert all(
                entry.display_low <= one.display_low <= one.display_high <= entry.display_high
                for entry, one in zip(row.estimates, own.estimates)
            )


def without_display(entry: Any) -> Any:
    return entry._replace(display_low=None, display_high=None)


def test_rows_of_values_name_their_group(tmp_path):
    rows = rows_of("files", tmp_path, messages_of(reports_of(GROUPED)), None, by=("arm", "country"))
    groups = Counter(row.group for row in rows["values"])
    assert groups[""] == groups["arm=new,country=DE"] == 3
    assert len(groups) == 10
    without = rows_of("files", tmp_path, messages_of(reports_of(COLLECTIONS[3])), None)
    assert {row.group for row in without["estimates"]} == {None}


def test_a_sender_cannot_open_groups(tmp_path):
    """Cohort numbers beyond the declared groups are refused with a reason, and the others are counted."""
    batch = reports_of(GROUPED)
    cohorts = np.where(np.arange(600) % 4 == 0, 9 + batch.cohorts, batch.cohorts)
    beyond = dataclasses.replace(batch, cohorts=cohorts.astype(np.uint16))
    rows = rows_of("files", tmp_path, messages_of(beyond), None, by=("country", "arm"))
    [sums] = replay.sum_ledger(rows["ledger"]).values()
    assert sums == {"received": 600, "accepted": 450, "cohort_range": 150}
    assert len(last_panes(rows["counts"])["grouped", None]) == 10


def test_all_65536_groups_are_counted():
    """Each under a key of its own, with sparse counts, whatever the alphabet."""
    values = list(map(str, range(255)))
    dimensions = [{"name": name, "values": values} for name in ("a", "b")]
    alphabet = {"id": "closed", "values": list(map(str, range(50)))}
    widest = Collection.from_json(SPEC | {"alphabet": alphabet, "dimensions": dimensions})
    numbers = np.arange(1 << 16)
    texts = [*values, OTHER]
    columns = {"a": [texts[i >> 8] for i in numbers], "b": [texts[i & 255] for i in numbers]}
    batch = widest.perturb(["1"] * len(numbers), generator("widest"), np.full(len(numbers), START), columns)
    counts = dict(count_batches(CollectionCatalog([widest]), [batch], None, by=("a", "b")))
    total = counts.pop((widest.fingerprint, None))
    assert len(counts) == total.total == 1 << 16
    assert {key: one.total for key, one in counts.items()} == {
        (owner_of_group(widest.fingerprint, number), None): 1 for number in range(1 << 16)
    }
    assert sum(one.num_held for one in counts.values()) <= 4 << 16


# ---------------------------------------------------------------------- the specification


@pytest.mark.parametrize("by", [("arm",), ("country", "arm")])
@pytest.mark.parametrize("number", [40, 6000])
def test_counting_by_stated_number_is_counting_each_group(number, by, monkeypatch):
    """One pass over all groups gives what the library counts group by group, in few and in many reports, also if
    tables may not be large."""
    for collection in (GROUPED, dataclasses.replace(WIDE, dimensions=GROUPED.dimensions), WIDE):
        if not {d.name for d in collection.dimensions}.issuperset(by):
            continue
        batch = reports_of(collection, number)
        catalog = CollectionCatalog([collection])
        expected = {"": collection.count(batch)}
        expected |= {"/".join(values): counts for values, counts in collection.count_by(batch, by).items()}
        roll_up = RollUp(collection.dimensions, by)
        for most in (1 << 22, 1):
            monkeypatch.setattr("uldp_transforms.collector.period_counts._MAX_CELLS", most)
            for patterns in (False, True):
                found = dict(count_batches(catalog, [batch[:7], batch[7:]], None, patterns, by))
                assert {_name(roll_up, key): counts for (key, _), counts in found.items()} == {
                    name: counts for name, counts in expected.items() if counts.total
                }


def _name(roll_up: RollUp, owner: bytes) -> str:
    return "/".join(roll_up.values(int.from_bytes(owner[32:], "big"))) if len(owner) > 32 else ""


@pytest.mark.parametrize("by", [("arm",), ("country", "arm"), ("arm", "country")], ids=",".join)
def test_the_key_of_an_owner_is_that_of_its_counts(by: tuple[str, ...]) -> None:
    owners = Owners(JobSpec(collections=(GROUPED,), by=by))
    numbers = range(GROUPED.num_groups_by(by))
    keys = [GROUPED.fingerprint, *(owner_of_group(GROUPED.fingerprint, number) for number in numbers)]
    assert [owners.of(key).key for key in keys] == keys
    assert len({tuple(owners.of(key).group) for key in keys}) == len(keys) == 3 ** len(by) + 1
