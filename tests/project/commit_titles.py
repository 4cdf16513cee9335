"""Check titles of commits: ``component: imperative what changed``, at most 72 characters.

Run it as ``python tests/project/commit_titles.py FILE`` on a message that git has written to a file, or with
``--commits BASE..HEAD`` on the commits of a branch. It needs nothing but Python and git.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

MOST = 72
"""Characters of a title."""

FORM = re.compile(r"[a-z0-9][\w ./,-]*: (?P<first>[a-z][\w-]*)(,? .+)?")
"""Component, colon, and a first word in lower case."""

MADE_BY_GIT = ("Merge ", 'Revert "')
NOT_VERBS = re.compile(r"an?|the|th(is|at|ese|ose)|which|what|how|why|where|when|who|no|not|new")
"""First words of titles that name a thing instead of a change."""

OTHER_FORMS = re.compile(r"\w+(?<!e)ed|\w{3,}(?<!br)(?<!str)ing")
"""Past tenses and gerunds; "feed", "need", "seed", "bring" and "string" are none."""


def faults(message: str) -> Iterator[str]:
    """Yield one sentence for each rule that a commit message breaks."""
    lines = message.splitlines()
    title = lines[0] if lines else ""
    if "# Conflicts:" in lines:
        yield "the body must not list conflicts of a merge"
    if title.startswith(MADE_BY_GIT):
        return
    if len(title) > MOST:
        yield f"the title must have at most {MOST} characters, got {len(title)}"
    if title.endswith("."):
        yield "the title must not end with a full stop"
    if len(lines) > 1 and lines[1]:
        yield "the second line must be empty"
    found = FORM.fullmatch(title)
    if found is None:
        yield "the title must be 'component: imperative what changed', in lower case up to the verb"
    elif NOT_VERBS.fullmatch(found["first"]) or OTHER_FORMS.fullmatch(found["first"]):
        yield f"the title must begin with an imperative after the colon, got {found['first']!r}"


def written(file: str) -> str:
    """A message as git will store it: without comments, and without the diff of ``git commit --verbose``."""
    lines = file.partition("# ------------------------ >8")[0].splitlines()
    return "\n".join(line for line in lines if not line.startswith("#")).strip()


def messages(commits: str) -> Iterator[str]:
    """Yield the messages of a range of commits, without merges."""
    command = ["git", "log", "--no-merges", "-z", "--format=%B", commits]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    yield from (message.strip() for message in text.split("\0") if message.strip())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check titles of commits.")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("file", nargs="?", type=Path, help="file with one commit message")
    asked.add_argument("--commits", metavar="BASE..HEAD", help="range of commits")
    args = parser.parse_args(argv)
    read = messages(args.commits) if args.commits else [written(args.file.read_text(encoding="utf-8"))]
    found = [(message.partition("\n")[0], fault) for message in read for fault in faults(message)]
    for title, fault in found:
        print(f"{title!r}: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
