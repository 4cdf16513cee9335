"""Real host names, as the pages quote them: how many are found, and how many are nobody's."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from labs.benchmarks import texts
from labs.benchmarks.discovery import LONG, TOP, collection, counted
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.jobs.tokens import merge_tokens
from uldp_transforms.ldp.discovery import discover

RUNS = 6


def test_hosts_are_those_of_the_list_and_public_text_has_none_of_them():
    table = (texts.DATA / "README.md").read_text(encoding="utf-8")
    for name in ("top_hosts.txt.gz", "sampled_hosts.txt.gz"):
        digest = hashlib.sha256((texts.DATA / name).read_bytes()).hexdigest()
        assert f"| `{name}` |" in table
        assert digest in table
    popular, sampled = texts.hosts()
    assert (len(popular), len(set(popular)), popular[0]) == (10_000, 10_000, "google.com")
    assert len(sampled) == len(set(sampled)) > 9_000
    assert not set(popular) & set(sampled)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["popular", "sampled"])
def test_half_of_the_most_frequent_hosts_are_found_and_one_in_twenty_is_nobodys_at_most(kind):
    """A million people, epsilon 4, tokens of other hosts; false alarms of the second limit: 1 in 10,000."""
    people, public = texts.hosts() if kind == "popular" else texts.hosts()[::-1]
    tokens, shares = merge_tokens(public, 2000), 1 / np.arange(1, len(people) + 1)
    hits = shown = false = 0
    for seed in range(RUNS):
        rng = generator("hosts", kind, seed)
        numbers = rng.multinomial(10**6, shares / shares.sum())
        item = collection(tokens, 4.0, LONG, seed=seed)
        found = set(discover(item, counted(item, people, numbers, rng)).values)
        held = {value for value, number in zip(people, numbers) if number}
        hits += len(found & {people[i] for i in np.argsort(-numbers, kind="stable")[:TOP]})
        shown += len(found)
        false += len(found - held)
    assert hits >= 0.5 * TOP * RUNS, hits
    assert false <= binomial_limits(np.array(shown), np.array(0.05), rate=2e-4)[1], (false, shown)
