"""Links lead somewhere, and the site has every page."""

from __future__ import annotations

import functools
import itertools
import os
import re
from pathlib import Path
from typing import Any

import yaml

from tests.project.documents import DOCS, OUTSIDE, ROOT, anchors, pages, prose, sentences
from tests.support.together import together

LINK = re.compile(r"(?:\]\(|\b(?:src|srcset)=\")([^)\s\"]+)[)\"]")
of_each_page = together("page", list(pages()), ids=lambda page: str(page.relative_to(ROOT)))
SITE = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)  # BaseLoader runs nothing


@functools.cache
def anchors_of(page: Path) -> set[str]:
    return anchors(page.read_text(encoding="utf-8"))


def dead(page: Path, text: str) -> list[str]:
    """Links of a page that lead to no file, to a folder, or to a heading that does not exist."""
    found = []
    for link in LINK.findall(prose(text)):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = page.parent / target if target else page
        exists = path.is_file() and path.resolve().is_relative_to(ROOT)
        if not exists or (anchor and anchor not in (anchors_of(path) if target else anchors(text))):
            found.append(link)
    return found


@of_each_page
def test_links_lead_somewhere(page: Path) -> None:
    assert not dead(page, page.read_text(encoding="utf-8"))


def test_dead_links_are_found() -> None:
    good = "# A `--b` c\n[1](#a---b-c) [2](docs/wire.md#files) [3](https://example.com/none)\n```\n[4](none)\n```"
    good += '\n<img src="docs/logo.svg">'
    bad = ["#a", "docs/none.md", "docs", "docs/wire.md#none"]
    assert dead(ROOT / "README.md", good + "".join(f"\n[5]({link})" for link in bad)) == bad
    assert dead(ROOT / "README.md", '<source srcset="docs/images/none.png">') == ["docs/images/none.png"]


PATHS = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|json|avsc|yaml|toml))`")
"""Code spans that name one file: wildcards, stores such as gs:// and options do not match."""


def lost(text: str) -> list[str]:
    """Files of this repository that a page names and that do not exist; a folder in capitals is a placeholder."""
    named = [path for path in PATHS.findall(prose(text)) if not path.split("/")[0].isupper()]
    return [path for path in named if not (ROOT / path).is_file()]


@of_each_page
def test_files_that_are_named_exist(page: Path) -> None:
    assert not lost(page.read_text(encoding="utf-8"))


def test_lost_files_are_found() -> None:
    good = "`docs/site_links.py` `tests/*/test_*.py` `DIR/a.json` `gs://b/c.json` `a.py`\n```\n`x/y.py`\n```\n"
    assert lost(good + "`tests/test_none.py` and `schemas/none.avsc`") == ["tests/test_none.py", "schemas/none.avsc"]


def listed(nav: Any) -> list[str]:
    """Pages of a part of the navigation."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in listed(part)]


def test_the_navigation_lists_every_page_once() -> None:
    expected = list(OUTSIDE.values())
    expected += [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    expected += [path.relative_to(DOCS).with_suffix(".md").as_posix() for path in DOCS.rglob("*.ipynb")]
    assert sorted(listed(SITE["nav"])) == sorted(expected)


def test_nothing_is_fetched_to_view_the_site() -> None:
    assert SITE["theme"]["font"] == "false"
    assert "extra_javascript" not in SITE
    for name in SITE["extra_css"]:
        style = (DOCS / name).read_text(encoding="utf-8")
        assert "url(" not in style and "@import" not in style


def colours(style: str) -> list[dict[str, str]]:
    """The colours that rules of a style name, rule by rule: of light pages, then of dark ones."""
    rules = [dict(re.findall(r"--(\w+): (#\w{6});", rule)) for rule in re.findall(r"\{([^{}]*)\}", style)]
    return [rule for rule in rules if "ink" in rule]


def test_the_site_has_the_colours_of_the_page_of_reports() -> None:
    of_site = colours((DOCS / "site.css").read_text(encoding="utf-8"))
    of_page = colours((ROOT / "packages/report/uldp_transforms_report/page.css").read_text(encoding="utf-8"))
    assert len(of_site) == len(of_page) == 2
    for site, page in zip(of_site, of_page, strict=True):
        assert len(site) == 8 and {name: site[name] for name in site if name != "head"}.items() <= page.items()
    schemes = [(each["scheme"], each["primary"], each["accent"]) for each in SITE["theme"]["palette"]]
    assert schemes == [("default", "custom", "custom"), ("slate", "custom", "custom")]
    assert all((DOCS / SITE["theme"][name]).is_file() for name in ("logo", "favicon"))


def test_the_site_has_no_files_of_python_beside_its_pages() -> None:
    assert SITE["exclude_docs"].split() == ["site_links.py", "__pycache__/"]


def test_no_page_has_a_path_of_a_machine() -> None:
    homes = re.compile(rf"{re.escape(os.path.expanduser('~'))}/|/tmp/|/home/\w")
    assert not [page for page in pages() if homes.search(page.read_text(encoding="utf-8"))]


def repeated(text: str) -> list[str]:
    """Sentences that stand twice in one section, to the letter or nearly so, as careless merges leave them."""
    found = []
    for section in re.split(r"^#+ .*$", prose(text), flags=re.MULTILINE):
        seen: list[set[str]] = []
        for sentence in sentences(section):
            words = set(re.findall(r"\w+", sentence.lower()))
            if len(words) < 8:
                continue
            if any(len(words & other) > 0.8 * len(words | other) for other in seen):
                found.append(sentence)
            seen.append(words)
    return found


@of_each_page
def test_no_section_says_a_thing_twice(page: Path) -> None:
    assert not repeated(page.read_text(encoding="utf-8"))


def test_repeated_sentences_are_found() -> None:
    one = "Every row has `raw_frequency`, its `standard_error` and a 95 % interval, whatever the estimator."
    two = "Whatever the estimator, every row has `raw_frequency`,\nits `standard_error` and a 95 % interval."
    cut = "These commands create an environment in `.venv`, need Python 3.10 and a package index,"
    assert repeated(f"# A\n{one} Something else.\n\n{two}\n") == [" ".join(two.split())]
    assert repeated(f"# A\n{one}\n## B\n{two}\n```\n{one}\n```\n") == []
    assert repeated(f"# A\n{cut}\n{cut} and a compiler.\n") == []  # one sentence: the next test finds it
    assert doubled_starts(f"# A\n{cut}\n{cut[:60]} and a compiler.\n") == [cut[:60] + " and a compiler."]


def doubled_starts(text: str) -> list[str]:
    """Lines of prose that begin as the line before them does."""
    lines = [line.strip() for line in prose(text).splitlines() if not re.match(r"\s*[|\-*]", line)]
    return [line for before, line in itertools.pairwise(lines) if len(line) > 40 and line[:40] == before[:40]]


@of_each_page
def test_no_line_begins_as_the_line_before(page: Path) -> None:
    assert not doubled_starts(page.read_text(encoding="utf-8"))
