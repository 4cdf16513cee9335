"""Rows that share what they have in common: the same content as dictionaries, in little memory."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from uldp_transforms.jobs.records.lean_rows import LeanRow, LeanRows

ROW: dict[str, Any] = {
    "name": "a collection", "is": True, "zero": 0, "one": 1, "share": 0.0, "none": None, "list": [],
    "object": {"a": [1, 1.0, True]},
}  # fmt: skip


def test_a_lean_row_is_a_mapping_with_the_same_content() -> None:
    rows = LeanRows()
    for row in (ROW, ROW | {"is": 1, "zero": False, "one": 1.0, "share": 0}, dict(reversed(ROW.items())), {}):
        lean = rows.lean(row)
        assert lean == row and dict(lean) == row and [*lean] == [*row] and len(lean) == len(row)
        assert [repr(value) for value in lean.values()] == [repr(value) for value in row.values()]
        assert lean.get("other", "x") == "x" and "other" not in lean and {**lean, "name": "d"} == {**row, "name": "d"}
    with pytest.raises(KeyError):
        rows.lean(ROW)["other"]


def test_equal_texts_and_short_nested_values_are_stored_once() -> None:
    rows = LeanRows()
    one, two = (rows.lean(json.loads(json.dumps(ROW | {"long": ["x" * 1_000]}))) for _ in range(2))
    assert all(one[name] is two[name] for name in ("name", "list", "object"))
    assert one["long"] == two["long"] and one["long"] is not two["long"]


def test_rows_take_little_memory() -> None:
    """A tuple of 30 places and the numbers of its own; a dictionary takes seven times as much."""
    text = json.dumps({f"field {at}": f"text {at}" for at in range(30)} | {"dimensions": [{"name": "g", "value": "a"}]})

    def bytes_of(make: Any) -> float:
        tracemalloc.start()
        kept = [make(json.loads(text)) for _ in range(1_000)]
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return taken / len(kept)

    lean, whole = bytes_of(LeanRows().lean), bytes_of(dict)
    assert isinstance(LeanRows().lean({}), LeanRow)
    assert lean < 450 and whole > 7 * lean
