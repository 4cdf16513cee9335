"""Files of a store, by their paths: Beam knows how to reach it."""

from __future__ import annotations

import pytest
from apache_beam.io.filesystem import BeamIOError

from tests.servers.google_server import GoogleServer
from tests.support import memory_store
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file


def test_a_file_of_a_store_is_written_and_read() -> None:
    path = "gs://bucket/folder/file"
    with GoogleServer() as server, server.environment():
        assert not stores.exists(path)
        with stores.created(path) as file:
            file.write(b"new")
        assert server.objects == {"bucket/folder/file": b"new"}
        with stores.opened(path) as file:
            assert file.read() == b"new"
        assert stores.stamp_of(path) == (path, 3, 0)
        assert stores.written_at(path) > 1_700_000_000


def test_files_of_a_store_are_replaced_renamed_listed_and_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a store that renames onto no other file."""
    files: dict[str, bytes] = {}
    monkeypatch.setattr(memory_store, "FILES", files)
    folder = "memory://bucket/folder"
    whole, a, b = (stores.joined(folder, name) for name in ("whole.gz", "a", "b"))
    assert whole == "memory://bucket/folder/whole.gz"
    for content in (b"first", b"second"):
        with whole_file(whole) as file:
            file.write(content)
        assert files == {whole: content}
    with stores.opened(whole) as file:
        assert file.read() == b"second"
    assert stores.stamp_of(whole) == (whole, len(b"second"), 0)
    assert stores.written_at(whole) == memory_store.WRITTEN_AT
    stores.rename(whole, b)
    files.update({a: b"", f"{folder}/sub/c": b"", "memory://bucket/other": b""})
    assert stores.matching(f"{folder}/?") == [a, b]
    assert [stores.exists(path) for path in (a, b, whole)] == [True, True, False]
    stores.delete(a)
    assert files.keys() == {b, f"{folder}/sub/c", "memory://bucket/other"}
    with pytest.raises(BeamIOError):
        stores.make_folder(b)


def test_a_file_of_a_store_that_is_not_completed_leaves_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"memory://bucket/file": b"old"}
    monkeypatch.setattr(memory_store, "FILES", files)
    with pytest.raises(RuntimeError), whole_file("memory://bucket/file") as file:
        file.write(b"half")
        raise RuntimeError
    assert files == {"memory://bucket/file": b"old"}


def test_a_store_that_knows_no_times_says_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_store, "FILES", {"memory://bucket/file": b""})
    monkeypatch.setattr(memory_store, "WRITTEN_AT", None)
    assert stores.written_at("memory://bucket/file") == 0
