"""The examples of docs/collections.md, one for each kind of list, run as they stand in a checkout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.project.documents import DOCS, ROOT, blocks
from uldp_transforms.ldp import Estimate

KINDS = {"closed", "permuted", "hashed", "blocks", "ordered", "tagged"}
ERRORS = 7
"""Standard errors from the truth: a right example is refuted with probability below 3e-12."""


class Asked:
    """What ``ask`` of the page was called with, and what it returned."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.ids: list[str] = []
        self._ask, names["ask"] = names["ask"], self

    def __call__(self, alphabet: Mapping[str, Any], people: Mapping[str, Any], *args: Any, **options: Any) -> Estimate:
        estimate: Estimate = self._ask(alphabet, people, *args, **options)
        self.ids += [alphabet["id"], next(part["id"] for part in args if isinstance(part, Mapping))]
        if alphabet["id"] != "ordered":
            hidden = alphabet.get("tags", ())
            sizes = {value: float(number) for value, number in people.items() if value not in hidden}
            top = int(np.argmax(estimate.frequencies))
            error = estimate.raw_frequencies[top] - sizes[estimate.values[top]] / sum(sizes.values())
            assert abs(error) <= ERRORS * estimate.standard_errors[top]
        return estimate


def test_each_kind_of_list_has_an_example_that_finds_its_largest_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ids of the table are those that are asked; the median of the numbers, 13, is printed."""
    monkeypatch.chdir(ROOT)
    first, *examples = blocks(DOCS / "collections.md")
    names: dict[str, Any] = {}
    exec(first.code, names)
    asked = Asked(names)
    for block in examples:
        exec(block.code, names)
    assert set(asked.ids) == KINDS | {"krr", "ss", "levels", "sw", "uss"}
    assert 10 < float(capsys.readouterr().out) < 17
    table = (
        (DOCS / "collections.md").read_text("utf-8").partition("## Which list do I have?")[2].partition("\n\n`uldp")[0]
    )
    assert all(f"`{kind}`" in table for kind in KINDS | {"levels"})
