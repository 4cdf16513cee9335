"""Files of rows of a stream are named by what is in them: no bundle overwrites another, and a repeated one itself."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import pytest
from apache_beam.transforms.window import GlobalWindow, IntervalWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming

from uldp_transforms.jobs.sinks.row_files import _WriteBundlesFn
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.row_identity import name_of, span_of
from uldp_transforms.rows.row_types import LEDGER_SCHEMA, LedgerRow

HOUR = 3600


def row(number: int) -> LedgerRow:
    return LedgerRow(**name_of(None), **span_of(None, None), received=number, accepted=0, duplicates=0, rejected={})


def window(start: int) -> IntervalWindow:
    return IntervalWindow(Timestamp(start), Timestamp(start + HOUR))


def pane(index: int) -> PaneInfo:
    return PaneInfo(index == 0, False, PaneInfoTiming.LATE, index, index)


Bundle = list[tuple[LedgerRow, Any, PaneInfo]]

BUNDLES: list[Bundle] = [  # the first one, and others that differ from it in one thing
    [(row(1), window(0), pane(0)), (row(2), window(0), pane(0))],
    [(row(1), window(0), pane(0)), (row(3), window(0), pane(0))],
    [(row(3), window(0), pane(0)), (row(2), window(0), pane(0))],
    [(row(1), window(0), pane(0))],
    [(row(2), window(0), pane(0)), (row(1), window(0), pane(0))],
    [(row(1), window(0), pane(0)), (row(2), window(0), pane(1))],
    [(row(1), window(HOUR), pane(0)), (row(2), window(0), pane(0))],
    [(row(1), GlobalWindow(), pane(0)), (row(2), GlobalWindow(), pane(0))],
]


def write(folder: Path, bundle: Bundle, *, form: str = "jsonl", keyed: bool = True) -> list[str]:
    """The names of the files that are new after a bundle."""
    before = {path.name for path in folder.iterdir()}
    fn = _WriteBundlesFn(str(folder / "ledger"), form, LEDGER_SCHEMA, keyed)
    fn.start_bundle()
    for element in bundle:
        fn.process(*element)
    fn.finish_bundle()
    return [path.name for path in folder.iterdir() if path.name not in before]


@pytest.mark.parametrize("form", ["jsonl", "avro"])
def test_every_bundle_has_a_file_of_its_own(form: str, tmp_path: Path) -> None:
    names = [write(tmp_path, bundle, form=form) for bundle in BUNDLES]
    assert all(len(new) == 1 for new in names)
    assert len(list(tmp_path.iterdir())) == len(BUNDLES)


@pytest.mark.parametrize("form", ["jsonl", "avro"])
def test_a_repeated_bundle_writes_the_same_file_again(form: str, tmp_path: Path) -> None:
    (name,) = write(tmp_path, BUNDLES[0], form=form)
    content = (tmp_path / name).read_bytes()
    assert write(tmp_path, BUNDLES[0], form=form) == []
    assert (tmp_path / name).read_bytes() == content


def test_a_bundle_that_another_release_repeats_has_the_same_name(tmp_path: Path) -> None:
    """Else its rows would be there twice."""
    content = "".join(
        f"[{start}.0, {start + HOUR}.0) 7 {to_json(row(number))}\n" for start, number in ((0, 1), (HOUR, 2))
    )
    bundle: Bundle = [(row(1), window(0), pane(7)), (row(2), window(HOUR), pane(7))]
    assert write(tmp_path, bundle) == [f"ledger-{hashlib.sha256(content.encode()).hexdigest()[:32]}.jsonl"]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(range(3), 2)))
def test_no_row_is_overwritten(one: int, other: int, tmp_path: Path) -> None:
    for bundle in (BUNDLES[one], BUNDLES[other], BUNDLES[one]):
        write(tmp_path, bundle)
    lines = [line for path in tmp_path.iterdir() for line in path.read_text("utf-8").splitlines()]
    assert len(lines) == 4


def test_rows_without_a_key_are_all_written(tmp_path: Path) -> None:
    assert all(write(tmp_path, BUNDLES[0], keyed=False) for _ in range(3))


def test_a_bundle_without_rows_writes_nothing(tmp_path: Path) -> None:
    assert write(tmp_path, []) == []
