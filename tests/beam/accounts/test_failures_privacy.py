"""Randomness, logs and repeated reports: rows of ``docs/failures.md`` that no other file covers."""

from __future__ import annotations

import ast
import collections
import logging
import os
import shlex
from pathlib import Path

import numpy as np
import pytest

import uldp_transforms
from tests.support import cases
from tests.support.messages.secret_messages import FILES, messages, shown
from tests.support.messages_cases import KRR, decoder, write_files
from tests.support.project.sources import tree_of
from tests.support.together import together
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.jobs import cli, estimate
from uldp_transforms.ldp.sampling import SeededSource

FOLDER = Path(uldp_transforms.__file__).parent
SOURCES = {str(path.relative_to(FOLDER)): path for path in sorted(FOLDER.rglob("*.py"))}


# ---------------------------------------------------------------------- where randomness comes from


def other_randomness(node: ast.AST) -> bool:
    """Anything of ``random`` or ``numpy.random`` but the name of its Generator, which callers may pass."""
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == "random" or alias.name == "numpy.random" for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "random" or (node.module or "").startswith("numpy.random")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "random":
        return node.attr != "Generator"
    return False


@together("name", [name for name in SOURCES if not name.startswith("jobs/")])
def test_the_package_makes_no_generator(name):
    """A client that is given none takes the system's source; a reproducible one has to be passed in from outside."""
    assert not any(map(other_randomness, ast.walk(tree_of(SOURCES[name]))))


@pytest.mark.parametrize(
    "line", ["import random", "from random import random", "np.random.default_rng()", "from numpy.random import PCG64"]
)
def test_the_rule_would_find_one(line):
    assert any(map(other_randomness, ast.walk(ast.parse(line))))


@cases.all_collections
def test_without_the_systems_source_there_is_no_report(name, monkeypatch):
    def fail(size: int) -> bytes:
        raise NotImplementedError("no source of randomness")

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(NotImplementedError, match="no source of randomness"):
        cases.ALL_COLLECTIONS[name].perturb(["ant"])


class CountingSource(SeededSource):
    """Counts the words that are drawn, draw by draw."""

    def __init__(self, generator: np.random.Generator):
        super().__init__(generator)
        self.drawn: list[tuple[int, ...]] = []

    def words(self, *shape: int) -> np.ndarray:
        self.drawn.append(shape)
        return super().words(*shape)


@cases.all_collections
def test_every_value_draws_the_same_words(name):
    """In every alphabet, one by one: a client that draws more for some values tells them by its running time. Of values
    in public blocks, those of one block: a report states the block."""
    alphabet = cases.ALL_COLLECTIONS[name].alphabet
    texts = list(alphabet.known_values or cases.VALUES)
    if alphabet.known_values is None:
        texts += ["", "x" * 1000]
    if alphabet.block_members:
        texts = [f"{block}/{text}" for block in cases.VALUES for text in texts]
    drawn = collections.defaultdict(list)
    for value in (*texts, *alphabet.clear_values):
        source = CountingSource(generator("words", name, value))
        cases.ALL_COLLECTIONS[name].perturb([value] * 40, source)
        drawn[alphabet.block_of(value)].append(source.drawn)
    assert all(found == of_block[0] for of_block in drawn.values() for found in of_block)


# ---------------------------------------------------------------------- what is logged


def test_no_log_line_shows_what_somebody_sent(tmp_path, monkeypatch, caplog):
    """At every level, from decoding alone to the whole job."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    logging.getLogger("test").info("a line of its own")
    decoder().decode(messages())
    (tmp_path / "in").mkdir()
    write_files(tmp_path, {"krr.json": KRR})
    write_files(tmp_path / "in", FILES)
    argv = "--collection krr.json --input in/* --output out --min_reports 1 --max_rejected_share 1"
    assert estimate.main(shlex.split(argv)) == cli.UNREAD
    lines = [record.getMessage() for record in caplog.records]
    assert "a line of its own" in lines
    assert not list(filter(shown, lines))


# ---------------------------------------------------------------------- people who report often


@pytest.mark.parametrize(
    ("number", "share"), [(1, 0.053), (100, 0.40), (500, 0.96)], ids=["one report", "a hundred", "five hundred"]
)
def test_fresh_reports_of_one_value_add_up(number, share):
    """k-RR, 50 values, epsilon 1: how often the most frequent report is the value; the threat model says so."""
    people, e = 20_000, np.exp(1.0)
    rates = np.append(e, np.ones(49)) / (e + 49)
    reports = generator("often", number).multinomial(number, rates, people)
    best = reports == reports.max(axis=1, keepdims=True)
    named = int((generator("ties", number).random((people, 50)) * best).argmax(axis=1).__eq__(0).sum())
    low, _ = binomial_limits(people, share - 0.02)
    _, high = binomial_limits(people, share + 0.02)
    assert within(named, (low, high))
