"""Files of this machine and of a store, by their paths."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.support.messages_cases import write_files
from uldp_transforms.files import stores
from uldp_transforms.files.text_files import read_lines
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.ldp import SpecError


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


def test_a_whole_file_does_not_write_through_a_link(tmp_path: Path) -> None:
    """Whoever may write to its folder could else name any file of its owner as the unfinished one."""
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    other.write_bytes(b"precious")
    (folder / "file.part").symlink_to(other)
    with whole_file(str(folder / "file")) as file:
        file.write(b"new")
    assert other.read_bytes() == b"precious"
    assert [(found.name, found.read_bytes(), found.is_symlink()) for found in folder.iterdir()] == [
        ("file", b"new", False)
    ]


def test_files_and_folders_are_renamed_made_and_deleted(tmp_path: Path) -> None:
    folder, later = str(tmp_path / "a" / "b"), str(tmp_path / "a" / "c")
    stores.make_folder(folder)
    with pytest.raises(FileExistsError):
        stores.make_folder(folder)
    stores.rename(folder, later)
    path = stores.joined(later, "file")
    stores.created(path).close()
    assert [stores.exists(each) for each in (folder, later, path)] == [False, True, True]
    stores.delete(path)
    assert not stores.exists(path)
    with pytest.raises(FileNotFoundError):
        stores.delete(path)


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
    later = stores.stamp_of(str(path))
    assert later != stamp
    os.utime(path, ns=(0, later[2] + 1))  # other bytes of the same number
    assert stores.stamp_of(str(path)) != later


def test_a_file_is_written_at_the_time_that_the_file_system_says(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.utime(path, ns=(0, 1_700_000_000_500_000_000))
    assert stores.written_at(str(path)) == 1_700_000_000.5


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz"])
def test_lines_of_a_text_file_are_read_without_what_editors_add(name: str, tmp_path: Path) -> None:
    """A byte order mark at the beginning, white space, empty lines."""
    path = tmp_path / name
    pack = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(pack("\ufeffant \r\n\r\n bee\n\ufeffcow".encode()))
    assert read_lines(path, most=3, longest=6) == ["ant", "bee", "\ufeffcow"]
    path.write_bytes(pack("\u00e4\nb\na\u0308".encode()))
    with pytest.raises(SpecError) as refused:
        read_lines(path, most=3, longest=6)
    assert str(refused.value) == (
        f"{path} must have different values (in Unicode NFC), got the same one in lines 1 and 3"
    )
