"""Check that a tag names the version of the checkout, and that its section of the changelog has a date.

``python3 requirements/tag.py v1.2.3``; the exit code is 1 if it does not. Needs nothing but Python.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def fault(tag: str, root: Path = ROOT) -> str | None:
    """What contradicts the tag; None if nothing does."""
    source = (root / "uldp_transforms/version.py").read_text(encoding="utf-8")
    [version] = re.findall(r'^__version__ = "([^"]+)"', source, re.MULTILINE)
    if tag != f"v{version}":
        return f"the tag must be v{version}, as uldp_transforms/version.py says, got {tag!r}"
    heading = re.compile(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", re.MULTILINE)
    if not heading.search((root / "CHANGELOG.md").read_text(encoding="utf-8")):
        return f"CHANGELOG.md must have a heading of {version} with its date, got none"
    return None


def main(tag: str) -> int:
    found = fault(tag)
    if found is not None:
        print(f"tag: {found}", file=sys.stderr)
    return int(found is not None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
