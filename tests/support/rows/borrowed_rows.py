"""Rows in which the groups have borrowed from each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

OWN = ("raw_frequency", "standard_error")


def entries(row: dict[str, Any], name: str) -> list[float]:
    return [entry[name] for entry in row["estimates"]]


def assert_borrows(plain: dict[Any, dict[str, Any]], shown: dict[Any, dict[str, Any]]) -> None:
    """Totals are the same; of groups the shown shares differ, and their intervals only reach them."""
    assert plain.keys() == shown.keys()
    for key, row in shown.items():
        own = plain[key]
        assert own["borrowed"] is None
        if not key[1]:
            assert row == own | {"run": row["run"]}
            continue
        assert 0 <= row["borrowed"] <= 1
        assert all(entries(row, name) == entries(own, name) for name in OWN)
        total = plain[key[0], ""]
        weight = row["borrowed"]
        expected = [
            (1 - weight) * a + weight * t for a, t in zip(entries(own, "frequency"), entries(total, "frequency"))
        ]
        np.testing.assert_allclose(entries(row, "frequency"), expected, atol=1e-12)
        for entry, before in zip(row["estimates"], own["estimates"]):
            assert entry["ci_low"] == pytest.approx(min(before["ci_low"], entry["frequency"])) or (
                before["ci_low"] == before["frequency"]  # it was extended to the group's own share
            )
            assert entry["ci_low"] <= entry["frequency"] <= entry["ci_high"]
    assert max(row["borrowed"] or 0 for row in shown.values()) > 0.2
