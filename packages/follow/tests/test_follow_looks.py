"""What a look at a spool costs, and that it misses nothing that changes meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.support.messages_cases import KRR
from uldp_transforms.messages.files.spool_names import manifest_path
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms_follow.follow_reading import Reading
from uldp_transforms_follow.spool_reading import SpoolSource, list_spool
from uldp_transforms_follow.state import CountedFile


def _changed(spool: Path, ago: float, fraction: int = 1) -> None:
    """Set the time of the last change of a directory, with or without a fraction of a second."""
    seconds = int(time.time() - ago)
    os.utime(spool, ns=(seconds * 10**9 + fraction,) * 2)


@pytest.mark.parametrize(("ago", "fraction", "listings"), [(5, 1, 1), (0.4, 1, 1), (0.4, 0, 2), (5, 0, 1), (-60, 1, 2)])
def test_a_look_lists_once_if_nothing_can_have_changed_meanwhile(
    ago: float, fraction: int, listings: int, tmp_path: Path
) -> None:
    """A file system that writes whole seconds may give two changes within two seconds the same time."""
    (tmp_path / "a.avro").touch()
    manifest_path(tmp_path / "a.avro").touch()
    _changed(tmp_path, ago, fraction)
    with mock.patch.object(os, "listdir", wraps=os.listdir) as listed:
        assert list_spool(str(tmp_path)).finished == ["a.avro"]
    assert listed.call_count == listings


def test_a_file_that_is_finished_during_a_listing_is_not_missed(tmp_path: Path) -> None:
    """A listing has neither name if it reads the new place before the renaming and the old place after it."""
    part = tmp_path / "reports-20261126T120000-x.avro.part"
    part.touch()
    manifest_path(part.with_suffix("")).touch()
    _changed(tmp_path, 5)
    listdir, looks = os.listdir, list[int]()

    def racing(folder: str) -> list[str]:
        looks.append(1)
        if len(looks) > 1:
            return listdir(folder)
        part.rename(part.with_suffix(""))
        return [manifest_path(part.with_suffix("")).name]

    with mock.patch.object(os, "listdir", racing):
        assert list_spool(str(tmp_path)).finished == [part.with_suffix("").name]


def test_a_look_asks_the_state_for_new_files_only(tmp_path: Path) -> None:
    """So it costs a bare listing and what is new, however many files were counted."""
    asked = list[list[str]]()

    def counted_of(names: list[str]) -> set[str]:
        asked.append(names)
        return set()

    state: Any = SimpleNamespace(counted_of=counted_of, forgotten_until=int)
    source = SpoolSource(str(tmp_path), JobSpec.of(collections=[KRR], window="1m", bounded=True), state)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.avro").touch()
        manifest_path(tmp_path / f"{name}.avro").touch()
        with mock.patch.object(
            source, "_read", side_effect=lambda part: Reading(files=[CountedFile(of, "", False) for of in part])
        ):
            list(source.news(5))
    assert asked == [["a.avro"], ["b.avro"], ["c.avro"]]
    for path in tmp_path.glob("*.avro"):
        path.unlink()
    list(source.news(5))
    (tmp_path / "a.avro").touch()
    list(source.news(5))
    assert asked[-1] == ["a.avro"]  # a file that is gone is forgotten
