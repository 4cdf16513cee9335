"""The public list of an open alphabet belongs to every estimate; candidates add to it, in every program and form."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apache_beam.yaml.yaml_transform import YamlTransform

from tests.jobs.follow.spools import Followed
from tests.support import replay
from tests.support.beam.yaml_steps import PROVIDERS, steps
from tests.support.messages_cases import BATCH, container, write_files
from tests.support.named_outputs import collected, from_messages
from tests.support.replay import arrive, watermark
from tests.support.spool_writer import finished
from tests.support.tolerance import generator
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.collection import canonical_candidates
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.windows import Windows

PERIOD = 600_000
NOON = 1_700_000_400_000
PUBLIC = ("tea", "milk", "juice")
CANDIDATES = tuple(f"secret {i:02}" for i in range(20))
SHARES = {"tea": 0.4, "milk": 0.2, "juice": 0.1, "secret 00": 0.2, "secret 07": 0.1}
VALUES = (*CANDIDATES, *PUBLIC)


def of_alphabet(name: str, version: int = 1, **alphabet: Any) -> Collection:
    spec = {
        "id": name,
        "version": version,
        "alphabet": {"num_buckets": 12, "non_sensitive": list(PUBLIC)} | alphabet,
        "mechanism": {"id": "urr", "epsilon": 3.0},
        "num_cohorts": 32,
    }
    if alphabet["id"] == "hashed":
        spec["question"] = "drinks"
        spec["dimensions"] = [{"name": "arm", "values": ["a", "b"]}]
    return Collection.from_json(spec)


DRINKS = of_alphabet("drinks", id="hashed")
NEWER = of_alphabet("newer", 2, id="hashed", num_buckets=10)
WORDS = of_alphabet("words", id="prefixes", tokens=["secret", "tea"], lengths=[1, None])
COLLECTIONS = {"drinks": DRINKS, "newer": NEWER, "words": WORDS}
OPTIONS = " ".join(f"--collection {name}.json" for name in COLLECTIONS) + " --candidates candidates.txt"


def arms(of: Collection, number: int) -> dict[str, list[str]] | None:
    return {"arm": (["a", "b"] * number)[:number]} if of.dimensions else None


@functools.cache
def messages() -> list[bytes]:
    """Packs with the reports of two windows, 12,000 a collection."""
    rng, found = generator("public lists"), []
    for of in COLLECTIONS.values():
        values = rng.choice(list(SHARES), 12_000, p=list(SHARES.values())).tolist()
        times = (NOON + rng.integers(0, 2 * PERIOD, 12_000)).tolist()
        found.append(wire.encode_batch(of.perturb(values, rng, times, arms(of, 12_000))))
    return found


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


ROWS = 2 * (3 + 1) + 2 * 2 * (2 + 1)
"""Of two windows: of each collection and the question, and of two groups of two collections and the question."""


def check(rows: list[dict[str, Any]], number: int) -> None:
    """Every row has the candidates and the public list, and nobody is unexplained but by noise."""
    assert len(rows) == number
    for row in rows:
        assert (row["status"], row["num_values"]) == ("ok", len(VALUES))
        entries = {entry["value"]: entry for entry in row["estimates"]}
        assert set(entries) == set(VALUES)
        for value, entry in entries.items():  # 8 standard errors: 1 in 10**15
            assert abs(entry["raw_frequency"] - SHARES.get(value, 0)) < 8 * entry["standard_error"]
        if row["unexplained_mass"] is not None:
            assert row["unexplained_mass"] < 8 * row["unexplained_standard_error"]


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


def test_a_spool_that_is_followed(folder: Path) -> None:
    options = ["--candidates", "candidates.txt", "--window", "10m", "--by", "arm"]
    followed = Followed(folder / "followed", *options, of=[*COLLECTIONS.values()])
    finished(followed.spool, messages())
    followed.steps(2)
    last = {}
    for row in sorted(followed.rows("estimates"), key=lambda row: int(row["pane_index"])):
        last[row["fingerprint"], row["group"], row["window_start"], row["pooled"]] = row
    check([*last.values()], ROWS)
