"""What is made from the code is up to date: pages, the JSON Schema, and golden files; and how one is told."""

from __future__ import annotations

import json

import pytest

from tests.support import cases, golden, golden_records
from tests.support.suite import pytest_assertrepr_compare
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.mechanisms.mechanism import About


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_every_mechanism_says_what_the_pages_need(name):
    cls = MECHANISMS[name]
    about = vars(cls).get("about")
    assert isinstance(about, About), f"{cls.__name__}.about must be of its own: what it sends, protects, its source"
    assert all(text and text == text.strip() and "|" not in text for text in about)
    without = [field.name for field in cls.json_fields() if "schema" not in field.metadata]
    assert not without, f"{cls.__name__}: these fields need a JSON Schema in their metadata: {without}"


PAGES = golden.pages()


@pytest.mark.parametrize("path", PAGES)
def test_pages_say_what_the_classes_say(path):
    made, now = PAGES[path], (golden.ROOT / path).read_text(encoding="utf-8")
    if made != now:
        pytest.fail("\n".join(golden_records.advice(path, now, made)), pytrace=False)


def test_json_text_is_the_value():
    value = json.loads((golden.ROOT / "schemas" / "collection.schema.json").read_text(encoding="utf-8"))
    assert json.loads(golden.json_text(value)) == value
    assert golden.json_text({"a": [1, None]}) == '{"a": [1, null]}'


def test_a_difference_of_golden_records_is_shown_line_by_line():
    old = golden_records.Records({"n": i} for i in range(40))
    old.name = "few.json"
    lines = pytest_assertrepr_compare("==", [*old[:-1], {"n": 7}], old)
    assert lines == [
        "tests/golden/few.json is not what the code makes now:",
        "--- tests/golden/few.json",
        "+++ tests/golden/few.json",
        "@@ -41 +41 @@",
        '-{"n": 39}',
        '+{"n": 7}',
        golden_records.ADVICE,
    ]
    assert pytest_assertrepr_compare("==", old, [])[-2:] == ["... 24 more lines", golden_records.ADVICE]
    assert pytest_assertrepr_compare("==", [1], [2]) is None


def test_golden_files_are_written_if_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "GOLDEN", tmp_path)
    (tmp_path / "old.json").write_text('[\n{"a": 1}\n]\n')
    assert cases.golden("old.json", lambda: [{"a": 2}]) == [{"a": 1}]
    monkeypatch.setenv(golden_records.WRITE, "1")
    assert cases.golden("old.json", lambda: [{"a": 2}]) == [{"a": 2}]
    assert (tmp_path / "old.json").read_text() == '[\n{"a": 2}\n]\n'


def test_the_program_finds_the_tests_of_golden_files():
    found = set(golden.tests_of_golden_files())
    assert "tests/ldp/test_collection.py::test_golden_fingerprints" in found
    assert not any("missing_golden_file" in name or "test_pages" in name for name in found)


def test_the_program_prints_what_changed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(golden, "ROOT", tmp_path)
    monkeypatch.setattr(golden, "pages", lambda: {"page.md": "| new |\n"})
    (tmp_path / "page.md").write_text("| old |\n")
    (tmp_path / "tests" / "golden").mkdir(parents=True)
    assert golden.main((golden.write_pages,)) == 0
    assert capsys.readouterr().out.splitlines() == ["--- page.md", "+++ page.md", "@@ -1 +1 @@", "-| old |", "+| new |"]
    assert golden.main((golden.write_pages,)) == 0
    assert capsys.readouterr().out == "Everything is up to date.\n"
