"""A run with stored counts, and what they say when they are estimated again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.messages_cases import KRR, URAP, collection, container
from tests.support.tolerance import generator
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

MINUTE = 60_000
PERIOD = 10 * MINUTE
OPEN = collection("open", {"id": "hashed", "num_buckets": 4}, "krr", num_cohorts=16)
TAGGED = collection("tagged", {"id": "tagged", "values": ["0", "1", "2"], "tags": ["t"], "sensitive": ["0"]}, "urr")
COLLECTIONS = [KRR, URAP, OPEN]
FILES = {f"{of.id}.json": of for of in (*COLLECTIONS, TAGGED)} | {
    "candidates.txt": "0\n1\n2\n",
    "more.txt": "2\n7\n8\n",
}
ALL = "--collection krr.json --collection urap.json --collection open.json --candidates candidates.txt"


def messages_of(collections: Sequence[Collection], n: int = 300) -> list[bytes]:
    rng = generator("reestimate", n)
    messages = []
    for of in collections:
        batch = of.perturb(rng.choice(["0", "1", "2"], n, p=[0.6, 0.3, 0.1]).tolist(), rng, rng.integers(0, PERIOD, n))
        messages += wire.encode_reports(batch)
    return messages


def estimated(options: str, collections: Sequence[Collection] = COLLECTIONS, number: int = 300) -> Path:
    """The output of the main job on files; counts are in the folder ``job``."""
    container_of = container([(1, message) for message in messages_of(collections, number)])
    Path("in.avro").write_bytes(container_of)
    assert estimate.main(shlex.split(f"{options} --input in.avro --output job --write_counts")) == 0
    return Path("job")


def again(options: str, output: str = "again") -> Path:
    assert reestimate.main(shlex.split(f"{options} --output {output}")) == 0
    return Path(output)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "estimates.jsonl").read_bytes().splitlines()]
