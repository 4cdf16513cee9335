"""Values that nobody listed: how many of the most frequent are found, and how many are nobody's."""

from __future__ import annotations

import csv
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.tokens import merge_tokens
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.discovery import discover

NAMES = Path(__file__).parents[1] / "pipelines" / "data" / "surnames.csv"
COHORTS, BUCKETS, TOP = 1024, 40, 50
SETTINGS = [  # data, epsilon, reports of a window, windows that are added up, lengths
    ("names", 4.0, 10**6, 1, [2, 3, None]),
    ("names", 2.0, 10**6, 1, [2, 3, None]),
    ("names", 4.0, 10**5, 1, [2, 3, None]),
    ("hosts", 4.0, 10**6, 1, [2, 3, None]),
    ("hosts", 4.0, 10**6, 10, [2, 3, 4, None]),
]


def main() -> None:
    print(f"values that nobody listed (library; C {COHORTS}, 2,000 tokens of other texts; the {TOP} most frequent)")
    data = {"names": _names(), "hosts": _hosts()}
    for name, epsilon, reports, windows, lengths in SETTINGS:
        public, values, shares = data[name]
        item = _collection(merge_tokens(public, 2000), epsilon, lengths)
        rng = np.random.default_rng(1)
        numbers = rng.multinomial(reports * windows, shares)
        counts = _counts(item, values, numbers, rng)
        begin = time.process_time()
        found = discover(item, counts)
        seconds = time.process_time() - begin
        best = {values[i] for i in np.argsort(-numbers, kind="stable")[:TOP]}
        held = {value for value, number in zip(values, numbers) if number}
        truth = dict(zip(values, numbers / numbers.sum()))
        missed = sum(
            not low <= truth.get(v, 0.0) <= high for v, low, high in zip(found.values, found.ci_low, found.ci_high)
        )
        print(
            f"  {name} ({len(values)}), epsilon {epsilon:g}, {reports:.0e} reports x {windows}, lengths {lengths}: "
            f"{len(found.values)} found, recall {len(best & set(found.values)) / TOP:.2f}, first {TOP} right "
            f"{len(best & set(found.values[:TOP])) / max(1, min(TOP, len(found.values))):.2f}, nobody's "
            f"{len(set(found.values) - held)}, intervals missed {missed}, {seconds:.0f} CPU s, "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB",
            flush=True,
        )


def _collection(tokens: Sequence[str], epsilon: float, lengths: Sequence[int | None]) -> Collection:
    alphabet = {"id": "prefixes", "num_buckets": BUCKETS, "seed": 7, "tokens": list(tokens), "lengths": list(lengths)}
    mechanism = {"id": "krr", "epsilon": epsilon}
    spec = {"id": "texts", "version": 1, "alphabet": alphabet, "mechanism": mechanism, "num_cohorts": COHORTS}
    return Collection.from_json(spec)


def _counts(item: Collection, values: Sequence[str], numbers: np.ndarray, rng: np.random.Generator) -> CohortCounts:
    """Of so many people with each value, each in a random cohort."""
    table = item.alphabet.symbol_rows(tuple(values), COHORTS)
    cells = np.zeros((COHORTS, BUCKETS), dtype=np.int64)
    for row, number in zip(table, numbers):
        np.add.at(cells, (np.arange(COHORTS), row), rng.multinomial(number, np.full(COHORTS, 1 / COHORTS)))
    law = item.mechanism.response(np.eye(BUCKETS))
    reported = sum(rng.multinomial(cells[:, bucket], law[bucket] / law[bucket].sum()) for bucket in range(BUCKETS))
    return CohortCounts(cells.sum(axis=1), np.asarray(reported))


def _names() -> tuple[list[str], list[str], np.ndarray]:
    """Surnames of the census of 1990 with their shares; every other one is public text, the others are people's."""
    with NAMES.open(encoding="utf-8", newline="") as file:
        rows = [(row["name"], float(row["percent"])) for row in csv.DictReader(file)]
    people = rows[1::2]
    shares = np.array([share for _, share in people])
    return [name for name, _ in rows[::2]], [name for name, _ in people], shares / shares.sum()


def _hosts() -> tuple[list[str], list[str], np.ndarray]:
    """Made-up host names of two draws from one grammar; people's have shares like 1 / rank."""
    public, people = (_drawn_hosts(np.random.default_rng(seed), 50_000) for seed in (2, 3))
    known = set(public)
    people = [host for host in people if host not in known]
    shares = 1 / np.arange(1, len(people) + 1)
    return public, people, shares / shares.sum()


def _drawn_hosts(rng: np.random.Generator, number: int) -> list[str]:
    """Different names, such as ``mail.taromi-labs.com``, in random order; few words are in many of them."""
    onsets = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "tr", "ch", "sh"]
    syllables = [f"{onset}{vowel}" for onset in onsets for vowel in ("a", "e", "i", "o", "u", "an", "er", "on")]
    words = np.random.default_rng(0).choice(syllables, (3000, 2))
    often = 1 / np.arange(1, len(words) + 1)
    ends = ["", "", "", "net", "labs", "-shop", "online", "24", "tech", "media"]
    hosts: dict[str, None] = {}
    while len(hosts) < number:
        word = "".join(words[rng.choice(len(words), rng.integers(1, 3), p=often / often.sum())].ravel())
        first = rng.choice(["", "www.", "mail.", "api.", "blog."], p=[0.6, 0.2, 0.08, 0.07, 0.05])
        domain = rng.choice([".com", ".org", ".net", ".de", ".io"], p=[0.6, 0.12, 0.12, 0.1, 0.06])
        hosts[f"{first}{word}{rng.choice(ends)}{domain}"] = None
    return list(hosts)


if __name__ == "__main__":
    main()
