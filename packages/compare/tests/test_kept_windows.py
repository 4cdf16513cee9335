"""Windows of a comparison in a temporary file: the same samples as of all counts, in the memory of few."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from packages.compare.tests.support.refused_comparisons import arms, row
from tests.support.jobs.reestimated import PERIOD
from tests.support.jobs.stored_periods import GROUPED, store
from uldp_transforms import JobSpec
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts, files_of_counts, stored_counts
from uldp_transforms.ldp import Collection
from uldp_transforms_compare.compare.kept_windows import KEPT, kept
from uldp_transforms_compare.compare.sides import CountsOfSides, windows_of
from uldp_transforms_compare.comparisons import homogeneity

LONG = Collection.from_json(
    GROUPED.to_json() | {"alphabet": {"id": "closed", "values": [f"v{at:03}" for at in range(200)]}}
)
MANY = 400


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def kept_counts(of: Collection, by: tuple[str, ...] | None = None) -> StoredCounts:
    return kept((files_of_counts("job/"), []), {of.fingerprint.hex(): of}, by)


@pytest.mark.parametrize("by", [None, ("arm",)])
def test_what_is_kept_are_the_stored_counts(by: tuple[str, ...] | None) -> None:
    """More windows than stay in memory; some later panes of earlier windows come last."""
    rows = [one for at in range(KEPT + 9) for one in arms([30 + at, 9, 5], [7, 8 + at, 9], start=at * PERIOD)]
    later = [one._replace(pane_index=1, complete=False) for one in arms([40, 90, 50], [70, 80, 90], start=PERIOD)]
    store([*rows, *later])
    found = kept_counts(GROUPED, by)
    expected = stored_counts([(files_of_counts("job/"), [])], {GROUPED.fingerprint.hex(): GROUPED}, None, by)
    assert dict(found.windows) == expected.windows
    assert len(found.windows) == (KEPT + 9) * (1 if by is None else 3)
    assert found.whole == expected.whole != found.windows.keys()


def test_memory_does_not_grow_with_windows() -> None:
    """Of each window less than 2.5 kB stay, its place and what names it; its rows have 5 times as much.

    Its estimate is made, and it is tested whether all windows are alike.
    """

    def most(number: int) -> int:
        cells = (np.arange(200) % 7 + 1).tolist()
        groups = [[("arm", arm)] for arm in ("control", "new")] * 2
        store([row(LONG, at * PERIOD, cells, one) for at in range(number) for one in ([], *groups)])
        spec = JobSpec.of(collections=[LONG])
        tracemalloc.start()
        [family] = windows_of(spec, kept_counts(LONG))
        assert len(family.sides) == number
        homogeneity(LONG, CountsOfSides(family.sides, LONG.fingerprint))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    few = most(2 * KEPT)
    assert most(2 * KEPT + MANY) - few < 2_500 * MANY
