"""How many words the pages have, code and tables included: ``python -m tests.project.words`` prints each page.

Pages are README and its neighbours, the pages of docs/ without docs/decisions, and READMEs of folders. The changelog,
which grows with each release, does not count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_NO_PAGES = {ROOT / "CHANGELOG.md", DOCS / "decisions" / "README.md"}
_NO_FOLDERS = {"build", "dist", "site", "node_modules"}


def pages() -> Iterator[Path]:
    """Every page that counts."""
    folders = [path for path in sorted(ROOT.iterdir()) if path.is_dir() and path.name[0] != "."]
    readmes = (page for folder in folders for page in sorted(folder.rglob("README.md")))
    for page in (*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md")), *readmes):
        if page not in _NO_PAGES and not _NO_FOLDERS.intersection(page.relative_to(ROOT).parts):
            yield page


def words(page: Path) -> int:
    """All that white space divides, as ``wc -w`` counts it."""
    return len(page.read_text(encoding="utf-8").split())


def main() -> int:
    counted = {page.relative_to(ROOT).as_posix(): words(page) for page in pages()}
    for page, number in sorted(counted.items(), key=lambda one: -one[1]):
        print(f"{number:7,} {page}")
    print(f"{sum(counted.values()):7,} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
