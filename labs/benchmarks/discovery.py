"""Discovery of unlisted values: how many of the most frequent are found, and how many false discoveries occur."""

from __future__ import annotations

import csv
import resource
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import special

from labs.benchmarks import texts
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.discovery import discover
from uldp_transforms.ldp.discovery.discover import FALSE_DISCOVERIES, false_discovery_rates
from uldp_transforms_planner.plan.tokens import merge_tokens

NAMES = Path(__file__).parents[1] / "data" / "surnames.csv"
COHORTS, BUCKETS, TOP = 1024, 40, 50
SHORT, LONG = [2, 3, None], [2, 3, 4, 5, None]
SETTINGS = [  # data, epsilon, reports of a window, windows that are added up, lengths
    ("popular hosts", 4.0, 10**6, 1, SHORT),
    ("popular hosts", 4.0, 10**6, 1, LONG),
    ("sampled hosts", 4.0, 10**6, 1, LONG),
    ("popular hosts", 4.0, 10**6, 10, LONG),
    ("popular hosts", 2.0, 10**6, 1, LONG),
    ("German words", 4.0, 10**6, 1, SHORT),
    ("names", 4.0, 10**6, 1, SHORT),
    ("names", 2.0, 10**6, 1, SHORT),
    ("names", 4.0, 10**5, 1, SHORT),
    ("made-up hosts", 4.0, 10**6, 1, LONG),
]
Data = tuple[list[str], list[str], np.ndarray]
"""Public text, people's values, and their shares."""


def main() -> None:
    print(f"values that nobody listed (library; C {COHORTS}, 2,000 tokens of other texts; the {TOP} most frequent)")
    made = {
        "names": _names,
        "German words": _german,
        "popular hosts": lambda: _hosts(*texts.hosts()[::-1]),
        "sampled hosts": lambda: _hosts(*texts.hosts()),
        "made-up hosts": _made_up,
    }
    data: dict[str, Data] = {}
    tokens: dict[str, list[str]] = {}
    for name, epsilon, reports, windows, lengths in SETTINGS:
        if name not in data:
            try:
                data[name] = made[name]()
            except subprocess.CalledProcessError as error:
                print(f"  {name}: left out, they could not be fetched (exit code {error.returncode})")
                continue
            tokens[name] = merge_tokens(data[name][0], 2000)
        _, values, shares = data[name]
        rng = np.random.default_rng(1)
        numbers = rng.multinomial(reports * windows, shares)
        item = collection(tokens[name], epsilon, lengths)
        counts = counted(item, values, numbers, rng)
        print(f"  {name} ({len(values)}), epsilon {epsilon:g}, {reports:.0e} reports x {windows}, lengths {lengths}:")
        print(f"    {_line(item, counts, values, numbers)}", flush=True)


def _line(item: Collection, counts: CohortCounts, values: list[str], numbers: np.ndarray) -> str:
    begin = time.process_time()
    found = discover(item, counts)
    seconds = time.process_time() - begin
    best = {values[i] for i in np.argsort(-numbers, kind="stable")[:TOP]}
    truth = dict(zip(values, numbers / numbers.sum()))
    missed = sum(
        not low <= truth.get(v, 0.0) <= high for v, low, high in zip(found.values, found.ci_low, found.ci_high)
    )
    reached = sum(len(item.alphabet.sequence(value)) <= (item.alphabet.lengths[-2] or 0) + 2 for value in best)
    return (
        f"{len(found.values)} found, recall {len(best & set(found.values)) / TOP:.2f}, of a known list "
        f"{len(best & _significant(item, counts, values)) / TOP:.2f}, short enough {reached / TOP:.2f}, nobody's "
        f"{sum(not truth.get(value) for value in found.values)}, intervals missed {missed}, {seconds:.0f} CPU s, "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB"
    )


def _significant(item: Collection, counts: CohortCounts, values: list[str]) -> set[str]:
    """The values of a complete list that the same reports show at the same false-discovery rate."""
    estimate = item.estimate(counts, "empirical", tuple(values))
    probabilities = special.ndtr(-estimate.raw_frequencies / estimate.standard_errors)
    rates = false_discovery_rates(probabilities, len(values))
    return {value for value, rate in zip(values, rates) if rate <= FALSE_DISCOVERIES}


def collection(tokens: Sequence[str], epsilon: float, lengths: Sequence[int | None], seed: int = 7) -> Collection:
    """k-RR with buckets of prefixes."""
    alphabet = {
        "id": "prefixes",
        "num_buckets": BUCKETS,
        "seed": seed,
        "tokens": list(tokens),
        "lengths": list(lengths),
    }
    mechanism = {"id": "krr", "epsilon": epsilon}
    spec = {"id": "texts", "version": 1, "alphabet": alphabet, "mechanism": mechanism, "num_cohorts": COHORTS}
    return Collection.from_json(spec)


def counted(item: Collection, values: Sequence[str], numbers: np.ndarray, rng: np.random.Generator) -> CohortCounts:
    """Reports of a given number of people with each value, each person in a random cohort."""
    table = item.alphabet.symbol_table(tuple(values), COHORTS)
    people = np.stack([rng.multinomial(number, np.full(COHORTS, 1 / COHORTS)) for number in numbers], axis=1)
    cells = np.stack([np.bincount(row, held, BUCKETS) for row, held in zip(table, people)]).astype(np.int64)
    law = item.mechanism.response(np.eye(BUCKETS))
    reported = sum(rng.multinomial(cells[:, bucket], law[bucket] / law[bucket].sum()) for bucket in range(BUCKETS))
    return CohortCounts(cells.sum(axis=1), np.asarray(reported))


def _names() -> Data:
    """Surnames of the 1990 census, with shares; every second one is public text, the others are people's values."""
    with NAMES.open(encoding="utf-8", newline="") as file:
        rows = [(row["name"], float(row["percent"])) for row in csv.DictReader(file)]
    people = rows[1::2]
    shares = np.array([share for _, share in people])
    return [name for name, _ in rows[::2]], [name for name, _ in people], shares / shares.sum()


def _german() -> Data:
    """German words and frequencies; every second one is public text, the others are people's values."""
    words, frequencies = texts.german()
    return words[::2], words[1::2], frequencies[1::2] / frequencies[1::2].sum()


def _hosts(public: list[str], people: list[str]) -> Data:
    """Shares proportional to 1 / rank, in the order of people's hosts."""
    shares = 1 / np.arange(1, len(people) + 1)
    return public, people, shares / shares.sum()


def _made_up() -> Data:
    """Host names of two draws from one grammar."""
    public, people = (_drawn_hosts(np.random.default_rng(seed), 50_000) for seed in (2, 3))
    known = set(public)
    return _hosts(public, [host for host in people if host not in known])


def _drawn_hosts(rng: np.random.Generator, number: int) -> list[str]:
    """Different names, such as ``mail.taromi-labs.com``, in random order; a few words occur in many of them."""
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
