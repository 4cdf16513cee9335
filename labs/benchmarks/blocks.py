"""Values in public blocks against the flat list of all values: squared error of the unbiased estimate, and L1 of eb."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uldp_transforms.ldp import Collection

ADULT = Path(__file__).parents[1] / "data" / "adult_480.csv"
_SIZE = 20
_PEOPLE, _TIMES = 100_000, 8
_CODES_OF_AN_AGE = 80  # income x marital status x sex x weekly hours


def main() -> None:
    print(f"{_SIZE} blocks of {_SIZE} values with frequencies 1/rank x 1/rank, {_PEOPLE:,} people, ss; squared error")
    blocks = {f"b{block:02}": [f"b{block:02}-m{member}" for member in range(_SIZE)] for block in range(_SIZE)}
    ranks = 1 / np.arange(1.0, _SIZE + 1)
    for epsilon in (1.0, 2.0):
        _line(blocks, np.outer(ranks, ranks).ravel(), None, {"id": "ss", "epsilon": epsilon})
    print(f"the 480 categories of Adult in 6 public age bands, 128 of them sensitive, {_PEOPLE:,} people, uss")
    with ADULT.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    codes = [f"{int(row['code']):03}" for row in rows]
    ages = {f"age {age}": codes[age * _CODES_OF_AN_AGE :][:_CODES_OF_AN_AGE] for age in range(6)}
    sensitive = [code for code, row in zip(codes, rows) if row["sensitive"] == "1"]
    for epsilon in (1.0, 2.0):
        law = np.array([float(row["count"]) for row in rows])
        _line(ages, law, sensitive, {"id": "uss", "epsilon": epsilon})


def _line(
    blocks: Mapping[str, Sequence[str]], law: np.ndarray, sensitive: Sequence[str] | None, mechanism: Mapping[str, Any]
) -> None:
    values, shares = [value for own in blocks.values() for value in own], law / law.sum()
    spec = {"id": "blocks", "version": 1, "mechanism": dict(mechanism)}
    alphabets = {
        "flat": {"id": "closed", "values": values, "sensitive": sensitive},
        "blocks": {"id": "blocks", "blocks": blocks, "sensitive": sensitive},
    }
    found = {}
    for name, alphabet in alphabets.items():
        collection, rng = Collection.from_json(spec | {"alphabet": alphabet}), np.random.default_rng(4)
        errors = []
        for _ in range(_TIMES):
            people = rng.choice(values, _PEOPLE, p=shares)
            estimate = collection.estimate(collection.count(collection.perturb(people, rng)), "eb")
            raw = np.sum((estimate.raw_frequencies - shares) ** 2)
            errors.append([raw, np.abs(estimate.frequencies - shares).sum()])
        found[name] = np.mean(errors, axis=0)
    (raw, l1), (raw_blocks, l1_blocks) = found["flat"], found["blocks"]
    print(
        f"  epsilon {mechanism['epsilon']:g}: error {raw:.5f} -> {raw_blocks:.5f}, {raw / raw_blocks:.1f} times "
        f"less; L1 of eb {l1:.3f} -> {l1_blocks:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
