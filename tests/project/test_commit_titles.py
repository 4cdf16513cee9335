"""The rule of commit titles accepts what it should and names what is wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.project import commit_titles
from tests.project.commit_titles import faults, main

IMPERATIVE = "the title must begin with an imperative after the colon, got {!r}"
FORM = "the title must be 'component: imperative what changed', in lower case up to the verb"


@pytest.mark.parametrize(
    "title",
    [
        "decode: reject batches with two kinds of ids",
        "docs/scale.md: quote what state costs",
        "sources, sinks: name the option in each refusal",
        "repeated people: keep strict intervals strict",
        "tests: seed vectors by name",
        "make: build, check and try packages",
        "plan: bring forecasts and sizes together",
        "Merge branch 'alarm' into main",
        'Revert "decode: reject batches with two kinds of ids"',
        "x: " + "a" * 69,
    ],
)
def test_good_titles_have_no_faults(title: str) -> None:
    assert not list(faults(title))
    assert not list(faults(f"{title}\n\nWhy it was needed."))


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("A line that fits, at last", FORM),
        ("docs: Say what an interval covers", FORM),
        ("Docs: say what an interval covers", FORM),
        ("docs:say what an interval covers", FORM),
        ("", FORM),
        ("docs: the table of few values", IMPERATIVE.format("the")),
        ("docs: what the alarm costs", IMPERATIVE.format("what")),
        ("decode: rejected batches with two kinds of ids", IMPERATIVE.format("rejected")),
        ("decode: rejecting batches with two kinds of ids", IMPERATIVE.format("rejecting")),
        ("decode: reject batches.", "the title must not end with a full stop"),
        ("x: " + "a" * 70, "the title must have at most 72 characters, got 73"),
        ("decode: reject batches\nof two kinds", "the second line must be empty"),
        ("Merge branch 'alarm'\n\n# Conflicts:\n#\tcount.py", "the body must not list conflicts of a merge"),
    ],
)
def test_bad_messages_have_one_fault(message: str, fault: str) -> None:
    assert list(faults(message)) == [fault]


def test_comments_of_git_are_not_part_of_a_message(tmp_path: Path) -> None:
    """A hook reads the file before git removes them."""
    path = tmp_path / "COMMIT_EDITMSG"
    diff = "# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n"
    path.write_text(f"\ndecode: reject batches\n# Please enter the message\n# Conflicts:\n{diff}", encoding="utf-8")
    assert main([str(path)]) == 0


def test_a_bad_title_fails_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text("A line that fits\n", encoding="utf-8")
    assert main([str(path)]) == 1
    assert capsys.readouterr().err == f"'A line that fits': {FORM}\n"


def test_the_commits_of_a_branch_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*command: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.chdir(tmp_path)
    git("init", "--initial-branch=main")
    for title in ("Everything", "decode: reject batches", "docs: name the reasons"):
        git("commit", "--allow-empty", "--message", f"{title}\n\nWhy.")
    assert list(commit_titles.messages("HEAD~2..HEAD")) == [
        "docs: name the reasons\n\nWhy.",
        "decode: reject batches\n\nWhy.",
    ]
    assert main(["--commits", "HEAD~2..HEAD"]) == 0
    git("commit", "--allow-empty", "--message", "More")
    assert main(["--commits", "HEAD~3..HEAD"]) == 1
