"""Fuzzing that is guided by coverage: its corpus holds, and it finds what is hidden behind several conditions."""

from __future__ import annotations

import sys

import pytest

from tests.fuzz.guided import LONGEST, TARGETS, Target, explore, read_corpus, smallest, steps_of
from uldp_transforms.ldp import SpecError


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_of_the_corpus_escapes(name: str) -> None:
    """Each input is refused with SpecError or taken, and judged as by the slow reference."""
    corpus = read_corpus(name)
    assert len(corpus) >= 5
    assert len(set(corpus)) == len(corpus)
    for content in corpus:
        assert len(content) <= LONGEST
        assert steps_of(TARGETS[name], content)


def deep(content: bytes) -> None:
    if content[:1] != b"\x80":
        return
    if content[1:2] != b"\x7f":
        raise SpecError("refused")
    if content[2:3] == b"{":
        raise KeyError("found")


def test_what_is_behind_three_conditions_is_found() -> None:
    """Three bytes at once are right in one of 16,777,216 random inputs."""
    target = Target(deep, (sys.modules[__name__],), lambda: [b"abcd"])
    with pytest.raises(AssertionError, match=r"KeyError.*found.* for the input 807f7b"):
        explore(target, [], 1, tries=300_000)


def test_few_inputs_have_the_steps_of_all() -> None:
    one, two, three = (("f", 1, at) for at in range(3))
    found = {b"long": frozenset([one, two]), b"a": frozenset([one]), b"longer": frozenset([one, two, three])}
    assert smallest(found) == [b"a", b"long", b"longer"]
    assert smallest({b"b": frozenset([one]), b"a": frozenset([one])}) == [b"a"]
