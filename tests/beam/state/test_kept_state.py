"""Bytes of state that the code before the collector was taken out of the engine wrote are read by that of today."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from tests.support import kept_state
from tests.support.kept_state import CODERS, SECRET
from uldp_transforms.collector.known_ids import KnownIds
from uldp_transforms.collector.known_reports import KnownReports, to_rows
from uldp_transforms.rows.smoothed_rows import filter_row
from uldp_transforms.rows.window_history import Neighbours

KEPT = json.loads((Path(__file__).parents[2] / "data" / "kept_state.json").read_text(encoding="utf-8"))
STATE = {name: base64.b64decode(text) for name, text in KEPT["state"].items()}
WITH_CODERS = [name for name in STATE if name.partition(" ")[0] in CODERS]


@pytest.mark.parametrize("name", WITH_CODERS)
def test_a_coder_reads_what_an_earlier_one_wrote(name: str) -> None:
    """And writes the same bytes of it, so that an earlier program reads them after a way back."""
    coder = CODERS[name.partition(" ")[0]]
    assert coder.encode(coder.decode(STATE[name])) == STATE[name]
    assert kept_state.state()[name] == KEPT["state"][name]


@pytest.mark.parametrize("name", list(kept_state.counts()))
def test_counts_are_those_that_were_written(name: str) -> None:
    read, written = CODERS["counts"].decode(STATE[f"counts {name}"]), kept_state.counts()[name]
    for part in ("num_reports", "cells", "patterns"):
        np.testing.assert_array_equal(getattr(read, part), getattr(written, part))


@pytest.mark.parametrize(("name", "known"), [("known reports", None), ("known ids", SECRET)])
def test_known_ids_are_known_after_an_upgrade(name: str, known: bytes | None) -> None:
    rows = to_rows(kept_state.batch())
    found = KnownReports(rows.shape[1]) if known is None else KnownIds(known)
    found.read(STATE[name])
    assert len(found) == 50
    changes = found.add(rows)
    assert len(changes.added) == len(changes.removed) == 0
    assert changes.duplicates == len(rows)


def test_smoothing_goes_on_with_the_windows_of_an_earlier_program() -> None:
    """Only its alarm starts anew: the bytes of an alarm have another version."""
    read, written = Neighbours.from_bytes(STATE["windows"]), kept_state.windows(12)
    assert (read.values, read.gone, read.jump, read.memos) == (written.values, written.gone, 2.0, True)
    for part in ("spans", "num_reports", "raw", "variances", "common"):
        np.testing.assert_array_equal(getattr(read, part), getattr(written, part))
    np.testing.assert_allclose(read.past, written.past, rtol=1e-9)
    shown = [filter_row(kept, kept_state.row(12), 1000.0, horizon=6)[1].estimates for kept in (read, written)]
    for one, other in zip(*shown, strict=True):
        assert one.smoothed_frequency == pytest.approx(other.smoothed_frequency, rel=1e-9)
        assert one.smoothed_high == pytest.approx(other.smoothed_high, rel=1e-9)
