"""Files of this machine by their paths; ``tests/jobs/engines/test_dataflow.py`` has those of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.messages_cases import write_files
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.json", ["a.json", "b.json"]),
        ("?.json", ["a.json", "b.json"]),
        ("*/*.json", ["sub/c.json"]),
        ("**/*.json", ["a.json", "b.json", "sub/c.json", "sub/deep/d.json"]),
        ("none*", []),
        ("s*", []),
    ],
)
def test_patterns_match_files_in_order(pattern: str, expected: list[str], tmp_path: Path) -> None:
    """Neither folders nor hidden files."""
    names = ("b.json", "a.json", ".hidden.json", "sub/c.json", "sub/deep/d.json")
    write_files(tmp_path, dict.fromkeys(names, "{}"))
    assert stores.matching(str(tmp_path / pattern)) == [str(tmp_path / name) for name in expected]


def test_a_file_is_created_in_new_folders_and_replaces_another(tmp_path: Path) -> None:
    new, old = str(tmp_path / "a" / "b" / "new"), str(tmp_path / "old")
    with stores.created(new) as file:
        file.write(b"new")
    with stores.created(old) as file:
        file.write(b"old")
    stores.replace(new, old)
    with stores.opened(old) as file:
        assert file.read() == b"new"
    assert not stores.exists(new)


def test_a_file_that_is_not_completed_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), whole_file(str(path)) as file:
        file.write(b"half")
        raise RuntimeError
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [("file", b"old")]


def test_addresses_have_a_scheme() -> None:
    assert [stores.in_store(path) for path in ("gs://b/c", "/a/b", "a:b")] == [True, False, False]
    assert (stores.name_of("gs://b/c.json"), stores.joined("/a", "b")) == ("c.json", "/a/b")
    assert [stores.folder_of(path) for path in ("gs://b/c/d.json", "/a/b", "b")] == ["gs://b/c", "/a", ""]


def test_the_stamp_of_a_file_changes_with_its_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    stamp = stores.stamp_of(str(path))
    assert stores.stamp_of(str(path)) == stamp
    path.write_bytes(b"older")
    assert stores.stamp_of(str(path)) != stamp
