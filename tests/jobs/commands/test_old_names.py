"""Former names of programs and options: they do the same, and say once on stderr what to write instead."""

from __future__ import annotations

import pytest

from tests.project.documents import ROOT
from uldp_transforms.jobs import cli, old_names, uldp
from uldp_transforms.jobs.old_names import OLD_OPTIONS, OLD_PROGRAMS, OldOption, in_new_words
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.version import __version__

ROWS = [*OLD_OPTIONS, *(row for program in OLD_PROGRAMS.values() for row in program.options)]


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def parser_of(program: str) -> cli.Parser:
    """The parser of a program of this package or of a companion."""
    return cli.parser_of(uldp.main_of(program))


@pytest.mark.parametrize("row", [*OLD_PROGRAMS.values(), *ROWS], ids=lambda row: f"{row.__class__.__name__} {row}"[:40])
def test_no_former_name_outlives_its_release(row: OldOption) -> None:
    assert numbers(row.since) < numbers(row.until)
    assert numbers(__version__) < numbers(row.until), "remove the row, and list it under Removed"


@pytest.mark.parametrize("row", OLD_OPTIONS, ids=lambda row: f"{row.program} {row.old}")
def test_the_new_form_exists_and_the_former_one_does_not(row: OldOption) -> None:
    known = {name: one for one in parser_of(row.program).actions() for name in one.option_strings or [one.metavar]}
    new = row.new.split()
    options = [word for word in new if word.startswith("--")]
    assert all(option in known for option in options)
    if new[0] == row.value:
        assert new[0] in known
    assert row.name not in known or row.name in options


@pytest.mark.parametrize(
    ("program", "words", "new"),
    [
        ("reestimate", "--counts a --output o --counts=b --smooth", "a b --output o --smooth"),
        ("reestimate", "a --counts", "a --counts"),
        ("audit", "--collection a.json --collection b.json", "a.json b.json"),
        ("simulate", "--values v.csv --collection=c.json --output o", "c.json --values v.csv --output o"),
        ("check", "d --json", "d --print_json"),
        ("check", "d --json --max_age 1h", "d --print_json --max_age 1h"),
        ("evaluate", "--epsilon 1,2 --estimator=eb", "--epsilons 1,2 --estimators eb"),
        ("plan", "--json=c.json --column v", "--output c.json --value_column v"),
        ("report", "--follow d --serve 0", "d --follow --serve 0"),
        ("report", "--follow=d", "d --follow"),
        ("report", "d --follow --serve 0", "d --follow --serve 0"),
        ("report", "d --serve 0 --follow", "d --serve 0 --follow"),
        ("report", "d --follow true", "d --follow true"),
        ("report", "d --follow=false", "d --follow=false"),
        ("estimate", "--json x --counts y", "--json x --counts y"),
    ],
)
def test_former_forms_become_new_ones(program: str, words: str, new: str) -> None:
    assert in_new_words(program, f"uldp {program}", words.split()) == new.split()


def test_each_former_form_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    in_new_words("reestimate", "uldp reestimate", ["--counts", "a", "--counts", "b", "--output", "o"])
    assert capsys.readouterr() == ("", "uldp reestimate: --counts DIR is deprecated; use DIR\n")
    in_new_words("report", "uldp report", ["--follow", "a", "--windows", "3"])
    assert capsys.readouterr().err == (
        "uldp report: --follow DIR is deprecated; use DIR --follow\n"
        "uldp report: --windows NUMBER is deprecated; use --latest_windows NUMBER\n"
    )
    in_new_words("report", "uldp report", ["a", "--follow", "--latest_windows", "3"])
    assert capsys.readouterr() == ("", "")


def test_a_former_program_is_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = old_names.todays(["total", "d", "--output", "t.jsonl", "--by", "arm"])
    assert words == ["reestimate", "d", "--totals", "t.jsonl", "--by", "arm", "--window", "all"]
    assert capsys.readouterr() == ("", "uldp: total is deprecated; use uldp reestimate --window all\n")
    assert old_names.todays(["reestimate", "--output", "o"]) == ["reestimate", "--output", "o"]
    assert uldp.main(["total", "nothing", "--slide", "1d"]) == 2
    assert capsys.readouterr().err == (
        "uldp: total is deprecated; use uldp reestimate --window all\n"
        "reestimate: --slide needs windows, got --window all\n"
    )


def test_the_page_lists_them() -> None:
    rows = [(f"uldp {one.name}", f"uldp {one.new}") for one in OLD_PROGRAMS.values()]
    rows += [
        (f"uldp {row.program} {row.old}", f"uldp {one.new.split()[0]} {row.new}")
        for one in OLD_PROGRAMS.values()
        for row in one.options
    ]
    rows += [(f"uldp {row.program} {row.old}", f"uldp {row.program} {row.new}") for row in OLD_OPTIONS]
    page = (ROOT / "docs/versions.md").read_text("utf-8")
    table = page.partition("<!-- generated: former names -->\n")[2].partition("<!-- end -->")[0]
    assert table == "| former | new |\n|---|---|\n" + "".join(f"| `{old}` | `{new}` |\n" for old, new in rows)


def test_no_program_has_a_former_name() -> None:
    assert not OLD_PROGRAMS.keys() & uldp.PROGRAMS.keys()
    assert {row.new.split()[0] for row in OLD_PROGRAMS.values()} <= uldp.PROGRAMS.keys()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("c.json --valuse v.csv", "unrecognized arguments: --valuse; did you mean --values?"),
        ("c.json --value v.csv", "unrecognized arguments: --value; did you mean --values?"),
        ("c.json --output o", "the following arguments are required: --values"),
    ],
)
def test_a_misspelt_option_is_named_although_another_one_is_missing(words: str, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        parser_of("simulate").parse_args(words.split())
    assert str(caught.value) == sentence
