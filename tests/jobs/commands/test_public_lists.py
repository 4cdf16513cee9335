"""The public list of an open alphabet belongs to every estimate; candidates add to it, in every program and form."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apache_beam.yaml.yaml_transform import YamlTransform

from tests.support import replay
from tests.support.beam.yaml_steps import PROVIDERS, steps
from tests.support.messages_cases import BATCH, container, write_files
from tests.support.named_outputs import collected, from_messages
from tests.support.public_lists import (
    CANDIDATES,
    COLLECTIONS,
    DRINKS,
    NOON,
    OPTIONS,
    PERIOD,
    ROWS,
    SHARES,
    VALUES,
    WORDS,
    arms,
    check,
    messages,
)
from tests.support.replay import arrive, watermark
from tests.support.tolerance import generator
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp.collection import canonical_candidates
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.windows import Windows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    packed = container([(1, message) for message in messages()], BATCH)
    files = {f"{name}.json": of for name, of in COLLECTIONS.items()}
    write_files(tmp_path, files | {"in.avro": packed, "candidates.txt": "\n".join(CANDIDATES)})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> None:
    assert uldp.main(shlex.split(command)) == 0


def rows_in(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(Path().glob(path)) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.usefixtures("folder")
def test_files_stored_counts_and_totals() -> None:
    run(f"estimate {OPTIONS} --input in.avro --output job --window 10m --write_counts --by arm --min_reports 1")
    check(rows_in("job/estimates*.jsonl"), ROWS)
    run(f"reestimate job {OPTIONS} --output again --by arm --min_reports 1")
    check(rows_in("again/estimates*.jsonl"), ROWS)
    run("total job --candidates candidates.txt --by arm --min_reports 1")
    check(rows_in("job/totals.jsonl"), ROWS // 2)
    run("compare job --by arm --candidates candidates.txt --min_reports 1")
    compared = rows_in("job/comparisons.jsonl")
    assert {row["value"] for row in compared} == set(VALUES)
    assert len(compared) == len(VALUES)  # of the question, whose versions are pooled
    run("compare job --windows --candidates candidates.txt --min_reports 1")
    assert {row["collection_id"] for row in rows_in("job/comparisons.jsonl")} == {"drinks", "words"}
    assert {row["value"] for row in rows_in("job/comparisons.jsonl")} == set(VALUES)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_every_estimator_in_python(estimator: str) -> None:
    rng = generator("public lists", estimator)
    for of in (DRINKS, WORDS):
        batch = of.perturb(
            rng.choice(list(SHARES), 4_000, p=list(SHARES.values())).tolist(), rng, None, arms(of, 4_000)
        )
        if not ESTIMATORS[estimator]().supports(of):
            continue
        estimate = of.estimate(of.count(batch), estimator, CANDIDATES)
        assert estimate.values == VALUES
        assert sum(estimate.frequencies[len(CANDIDATES) :]) > 0.5


def test_every_order_has_each_value_once() -> None:
    """A candidate that is on the public list stays where it is named."""
    asked = canonical_candidates(("milk", "secret 00"))
    assert DRINKS.alphabet.estimated_values(asked) == ("milk", "secret 00", "tea", "juice")


def in_a_stream() -> list[dict[str, Any]]:
    fields = {"candidates": CANDIDATES, "allowed_lateness": 4 * PERIOD}
    job = replay.streaming_job([*COLLECTIONS.values()], Windows(size=PERIOD), **fields)
    rows = replay.replay(job, [arrive(NOON + 2 * PERIOD, messages()), watermark(NOON + 4 * PERIOD)])["estimates"]
    return [as_dict(row) for row in rows]


def in_a_pipeline() -> list[dict[str, Any]]:
    fields = {"candidates": list(CANDIDATES), "window": "10m", "min_reports": 1}
    return from_messages(messages(), collections=[of.to_json() for of in COLLECTIONS.values()], **fields)["estimates"]


def in_yaml() -> list[dict[str, Any]]:
    config = {"collections": [f"{name}.json" for name in COLLECTIONS], "candidates": "candidates.txt", "window": "10m"}
    text = steps(files="in.avro", min_reports=1, **config)
    return collected(lambda p: p | YamlTransform(text, providers=PROVIDERS))["estimates"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", [in_a_stream, in_a_pipeline, in_yaml], ids=lambda form: form.__name__)
def test_streams_pipelines_and_yaml(form: Callable[[], list[dict[str, Any]]]) -> None:
    check(form(), 2 * (3 + 1))
