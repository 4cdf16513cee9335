"""Pages stay as short as they are: who adds words takes others out, or raises the limit and says why."""

from __future__ import annotations

from tests.project import words
from tests.project.documents import ROOT

OF_README = 1_000
OF_ALL = 104_000
SLACK = 1_000
"""By how much the limit of all pages may exceed what they have: who takes more words out lowers the limit."""


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert words.words(ROOT / "README.md") <= OF_README


def test_all_pages_together_are_within_their_limit() -> None:
    number = sum(map(words.words, words.pages()))
    assert OF_ALL - SLACK <= number <= OF_ALL


def test_pages_are_those_of_every_folder() -> None:
    pages = [page.relative_to(ROOT).as_posix() for page in words.pages()]
    assert len(pages) == len(set(pages))
    assert {"README.md", "SECURITY.md", "docs/client.md", "labs/data/README.md"} <= set(pages)
    assert not [page for page in pages if "decisions" in page or page == "CHANGELOG.md"]
