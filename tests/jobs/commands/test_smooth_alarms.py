"""A lasting change of a question of two values, through ``uldp estimate --smooth`` and ``uldp report``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from tests.support.messages_cases import container, write_files
from tests.support.tolerance import generator
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

MINUTE, QUIET, LATER, EACH = 60_000, 12, 3, 5_000
ANSWERS = Collection.from_json(
    {
        "id": "answers",
        "version": 1,
        "alphabet": {"id": "closed", "values": ["no", "yes"]},
        "mechanism": {"id": "krr", "epsilon": 2.0},
    }
)


def test_a_lasting_change_of_a_half_is_a_finding_of_its_window_and_on_the_page(tmp_path: Path) -> None:
    """From .5 to .58, that is, 8.6 standard errors of a window, after twelve quiet windows; no other window rings."""
    rng, messages = generator("a half that moves"), []
    for minute in range(QUIET + LATER):
        share = 0.5 if minute < QUIET else 0.58
        values = rng.permutation(["yes"] * round(share * EACH) + ["no"] * round((1 - share) * EACH)).tolist()
        messages.append((1, wire.encode_batch(ANSWERS.perturb(values, rng, [minute * MINUTE] * EACH))))
    write_files(tmp_path, {"answers.json": ANSWERS, "in.avro": container(messages, wire.BATCH_SCHEMA)})
    job = f"estimate --collection {tmp_path}/answers.json --input {tmp_path}/in.avro --output {tmp_path}/job"
    assert uldp.main(shlex.split(f"{job} --window 1m --smooth --min_reports 1")) == 0
    lines = (tmp_path / "job" / "health.jsonl").read_text().splitlines()
    health = sorted(map(json.loads, lines), key=lambda row: row["window_start"])
    found = [row["window_start"][14:16] for row in health if row["status"] == "change"]
    assert (len(health), found) == (QUIET + LATER, [str(QUIET)])
    [sentence] = [each["sentence"] for each in health[QUIET]["findings"] if each["fired"]]
    assert sentence.startswith("Shares moved, in percentage points: ")
    assert "'yes' +" in sentence and "'no' -" in sentence
    page = tmp_path / "page.html"
    assert uldp.main(shlex.split(f"report --input {tmp_path}/job --output {page}")) == 0
    assert "Shares moved, in percentage points" in page.read_text()
