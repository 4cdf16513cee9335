"""Rows that are read without their entries, against rows that are parsed whole."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from uldp_transforms.jobs.records import row_reading
from uldp_transforms.jobs.records.row_directory import RowDirectory

PLACE: dict[str, Any] = {
    "collection_id": "c", "collection_version": 1, "fingerprint": "00", "window_start": None, "window_end": None,
    "status": "ok", "run": "a", "pane_index": 0, "num_reports": 10,
}  # fmt: skip
TEXTS = ["a", "x}], ", '"}], "', '{"value": ', 'a "estimates": [{"', "\\", '\\"}], ', "\u2028", "}]", ""]


def row(texts: list[str], **after: Any) -> dict[str, Any]:
    return PLACE | {"estimates": [{"value": text, "frequency": 0.5} for text in texts]} | after


@pytest.mark.parametrize("texts", [[], *([text] for text in TEXTS), TEXTS, TEXTS[::-1]])
@pytest.mark.parametrize("after", [{}, {"group": None}, {"dimensions": [{"name": "}], ", "value": "x"}], "group": ""}])
def test_all_other_fields_and_the_number_of_entries_are_read(texts: list[str], after: dict[str, Any]) -> None:
    given = row(texts, **after)
    for line in (json.dumps(given), json.dumps(given, ensure_ascii=False), json.dumps(given, separators=(",", ":"))):
        found = row_reading._without_entries(line.encode())
        assert found | {"estimates": None} == given | {"estimates": None}
        assert len(found["estimates"]) == len(texts)


def test_windows_and_groups_are_read_once_and_without_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two windows and two groups, four lines are parsed, none with its entries."""
    rows = [row(["a", "b"], group=group) | {"run": run} for run in "ab" for group in (None, "arm=new")]
    (tmp_path / "estimates.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    parsed = list[int]()
    loads = row_reading.orjson.loads

    def counted(text: bytes) -> Any:
        parsed.append(text.count(b"0.5"))
        return loads(text)

    monkeypatch.setattr(row_reading.orjson, "loads", counted)
    directory = RowDirectory(str(tmp_path))
    windows, groups = directory.windows(), directory.groups()
    assert [(one["run"], one["num_shown"]) for one in windows + groups] == [("b", 2), ("b", 2)]
    assert parsed == [0, 0, 0, 0]
    assert [len(entries) for _, entries in directory.entries(windows)] == [2]


def test_entries_are_read_from_their_places(tmp_path: Path) -> None:
    """Of any selection of rows, also of texts of several bytes, in the order of the file; nothing else is parsed."""
    rows = [row([text, "\u00e4"], group=f"arm={number}") for number, text in enumerate(TEXTS)]
    lines = [json.dumps(each, ensure_ascii=False) for each in rows]
    (tmp_path / "estimates.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    directory = RowDirectory(str(tmp_path))
    groups = sorted(directory.groups(), key=lambda one: -one["line"])
    begins = [len("".join(f"{line}\n" for line in lines[:at]).encode()) for at in range(len(rows))]
    assert [one["begin"] for one in groups] == begins[::-1]
    for chosen in (groups, groups[::2], groups[3:5], groups[-1:]):
        found = [(of["group"], entries) for of, entries in directory.entries(chosen)]
        assert found == [(rows[of["line"]]["group"], rows[of["line"]]["estimates"]) for of in reversed(chosen)]


@pytest.mark.parametrize("number", ["NaN", "Infinity", '"\\ud800"'])
def test_what_only_json_of_python_reads_is_read(number: str, tmp_path: Path) -> None:
    """Numbers that are none, and texts that are no Unicode: rows of other programs may have them."""
    line = json.dumps(row(["a"], unexplained_mass="here")).replace('"here"', number)
    (tmp_path / "estimates.jsonl").write_text(f"{line}\n")
    [window] = RowDirectory(str(tmp_path)).windows()
    assert repr(window["unexplained_mass"]) == repr(json.loads(number)) and window["num_shown"] == 1


def test_memory_grows_little_with_the_rows_of_groups(tmp_path: Path) -> None:
    """By a place for each field, whatever their texts, and not by their entries: a month of hours has 36,000 rows."""
    numbers = {"mean": dict.fromkeys(("value", "low", "high")), "quantiles": [], "curve": []}
    more = {f"field_{at}": f"a text of job {at}" for at in range(25)} | {"numbers": numbers}

    def bytes_of(rows: int) -> int:
        folder = tmp_path / str(rows)
        folder.mkdir()
        lines = (row(TEXTS * 5, group=f"g={at % 50}", window_start=str(at // 50), **more) for at in range(rows))
        (folder / "estimates.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        directory = RowDirectory(str(folder))
        tracemalloc.start()
        assert len(directory.groups()) == rows
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return taken

    bytes_of(50)
    assert bytes_of(1_051) - bytes_of(51) < 1_000 * 1_000
