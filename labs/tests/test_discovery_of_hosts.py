"""Real host names, as the pages quote them: how many are found, and how many are nobody's."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from labs.benchmarks import discovery, texts
from labs.benchmarks.discovery import LONG, TOP, collection, counted
from tests.support.tolerance import generator
from uldp_transforms.ldp.discovery import discover
from uldp_transforms.ldp.discovery.discover import FALSE_DISCOVERIES
from uldp_transforms_planner.plan.tokens import merge_tokens

RUNS = 8
"""Windows of each list."""

LEVEL = 0.99
"""Confidence of the upper bounds on the rates of false discoveries and missed intervals."""


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


def test_words_of_another_release_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "FETCHED", tmp_path)
    with zipfile.ZipFile(tmp_path / "wordfreq-3.1.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr(texts.GERMAN[0], b"others")
    sentence = f"^{texts.GERMAN[0]} must have the SHA-256 {texts.GERMAN[1]}, got a different one$"
    with pytest.raises(ValueError, match=sentence):
        texts.german()


def test_without_a_network_other_rows_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable() -> tuple[list[str], np.ndarray]:
        raise subprocess.CalledProcessError(1, ["pip"])

    monkeypatch.setattr(texts, "german", unreachable)
    monkeypatch.setattr(discovery, "SETTINGS", [("German words", 4.0, 1000, 1, [2, None])] * 2)
    discovery.main()
    assert "  German words: left out, they could not be fetched (exit code 1)\n" in capsys.readouterr().out


@pytest.mark.slow
def test_half_of_the_most_frequent_hosts_are_found_and_few_are_nobodys() -> None:
    """A million people, epsilon 4, tokens of other hosts. Rates are shown to be at most 5 %, with windows as units.

    Each window has other people, hash functions and coins, so shares of windows are independent; those of values in one
    window are not.
    """
    hits, shown, false, missed = np.array([window for kind in ("popular", "sampled") for window in windows_of(kind)]).T
    print(f"recall {hits.reshape(2, -1).mean(axis=1) / TOP}, {shown.sum()} found in {len(shown)} windows")
    assert (hits.reshape(2, -1).mean(axis=1) >= 0.5 * TOP).all()
    for name, wrong in (("nobody's", false), ("intervals that miss", missed)):
        bound = upper_bound(wrong / np.maximum(shown, 1))
        print(f"{name}: {wrong.sum()}, in the mean window {(wrong / shown).mean():.4f}, below {bound:.4f}")
        assert bound <= FALSE_DISCOVERIES


def windows_of(kind: str) -> Iterator[tuple[int, int, int, int]]:
    """Of each window: how many of the most frequent are found, and are shown, nobody's, and with wrong intervals."""
    people, public = texts.hosts() if kind == "popular" else texts.hosts()[::-1]
    tokens, shares = merge_tokens(public, 2000), 1 / np.arange(1, len(people) + 1)
    for seed in range(RUNS):
        rng = generator("hosts", kind, seed)
        numbers = rng.multinomial(10**6, shares / shares.sum())
        item = collection(tokens, 4.0, LONG, seed=seed)
        found = discover(item, counted(item, people, numbers, rng))
        top = {people[i] for i in np.argsort(-numbers, kind="stable")[:TOP]}
        truth = dict(zip(people, (numbers / numbers.sum()).tolist()))
        held = np.array([truth.get(value, 0.0) for value in found.values])
        missed = np.count_nonzero((held < found.ci_low) | (held > found.ci_high))
        yield len(top & set(found.values)), len(held), np.count_nonzero(held == 0), missed


def upper_bound(shares: np.ndarray) -> float:
    """That the expected share is not above, by Student's law of the mean of windows."""
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    return float(shares.mean() + stats.t.ppf(LEVEL, len(shares) - 1) * error)
