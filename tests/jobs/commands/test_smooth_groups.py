"""``uldp reestimate --by arm --smooth``: a series for each group, and alarms that name it."""

from __future__ import annotations

import json
import operator
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.ldp.alphabets.test_dimensions import GROUPED
from tests.support.messages_cases import container, write_files
from tests.support.tolerance import generator
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.messages import wire
from uldp_transforms.rows import smoothed_rows

MINUTE, WINDOWS, EACH = 60_000, 14, 400


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
    write_files(path, {"grouped.json": GROUPED, "in.avro": container(messages, wire.BATCH_SCHEMA)})
    job = f"estimate --collection {path}/grouped.json --input {path}/in.avro --output {path}/job --window 1m --by arm"
    assert uldp.main(shlex.split(f"{job} --write_counts --min_reports 1")) == 0
    return path


def again(folder: Path, options: str) -> list[dict[str, Any]]:
    given = f"reestimate --collection {folder}/grouped.json --counts {folder}/job --output {folder}/again"
    assert uldp.main(shlex.split(f"{given} --min_reports 1 --smooth {options}")) == 0
    return [json.loads(line) for line in (folder / "again" / "estimates.jsonl").read_text().splitlines()]


def smoothed(rows: list[dict[str, Any]]) -> list[Any]:
    return [[(each["value"], each["smoothed_frequency"]) for each in row["estimates"]] for row in rows]


def test_each_group_is_a_series_and_the_total_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    total = again(folder, "")
    capsys.readouterr()
    rows = again(folder, "--by arm")
    said = [line for line in capsys.readouterr().err.splitlines() if "Shares moved" in line]
    of_group = {name: [row for row in rows if row["group"] == name] for name in ("", "arm=control", "arm=new")}
    assert smoothed(of_group[""]) == smoothed(total)
    assert {name: len(found) for name, found in of_group.items()} == dict.fromkeys(of_group, WINDOWS)
    for name in ("arm=control", "arm=new"):
        assert all(share is not None for row in smoothed(of_group[name]) for _, share in row)
    assert any(line.startswith("reestimate: collection 'grouped', arm=new, window 1970-01-01T00:09") for line in said)
    assert not any("arm=control" in line for line in said)


def test_groups_share_their_false_alarms(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def smooth(rows: Any, jump: Any, every: float, memos: Any) -> Any:
        asked.append((rows[0].group, every))
        return smoothed_rows.smooth_rows(rows, jump, every, memos)

    monkeypatch.setattr(reestimate, "smooth_rows", smooth)
    again(folder, "--by arm --alarm_every 500")
    assert sorted(asked, key=operator.itemgetter(0)) == [("", 500), ("arm=control", 1_000), ("arm=new", 1_000)]
