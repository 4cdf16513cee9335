"""Options of ``uldp report``, what it hands on, and what its page is made of; without drawing."""

from __future__ import annotations

import argparse
import base64
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from uldp_transforms.jobs.report import charts, follow, gathering, report_command, web_page
from uldp_transforms.jobs.report.facts import Limits
from uldp_transforms.jobs.report.gathering import Asked
from uldp_transforms.jobs.report.report_command import TITLE, Task, configure
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of

COLLECTION = {"id": "c", "version": 1, "alphabet": {"id": "closed", "values": ["a", "b"]}}
COLLECTION |= {"mechanism": {"id": "krr", "epsilon": 1.0}}


def test_options_have_their_defaults(tmp_path: Path) -> None:
    asked = Asked(directory=str(tmp_path), title=TITLE)
    plain = Task(asked=asked, output="p.html", png=None, svg=None, serve=None, host="127.0.0.1")
    assert configure([str(tmp_path), "--output", "p.html"]) == plain
    assert configure([str(tmp_path), "--png", "p.png"]) == dataclasses.replace(plain, output=None, png="p.png")
    assert configure(["s://none", "--svg", "p.svg"]).asked.directory == "s://none"
    followed = configure([str(tmp_path), "--follow", "--serve", "0", "--host", "::1"])
    assert followed == Task(asked=asked, output=None, png=None, svg=None, serve=0, host="::1")
    limits = Limits()
    assert (limits.trends, limits.windows, limits.rows, limits.numbers, limits.cells) == (24, 400, 200, 31, 100_000)


def test_options_are_handed_on(tmp_path: Path) -> None:
    (tmp_path / "C.json").write_text(json.dumps(COLLECTION), encoding="utf-8")
    (tmp_path / "V.csv").write_text("value\na\nb\n", encoding="utf-8")
    options = f"{tmp_path} --output p --title T --note N --value a --value b --trends 1 --latest_windows 2 --rows 3"
    asked = configure([*options.split(), "--collection", f"{tmp_path}/C.json", "--truth", f"{tmp_path}/V.csv"]).asked
    assert (asked.title, asked.note, asked.values, asked.limits) == (
        "T",
        "N",
        ("a", "b"),
        Limits(trends=1, windows=2, rows=3),
    )
    assert [of.id for of in asked.collections] == ["c"]
    assert asked.truth is not None and asked.truth.shares(None, None, ["a"]).tolist() == [0.5]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("{0}", "one of --output, --png, --svg and --follow must be given, got none"),
        ("{0}/none --png p", "DIR must be a directory, got '{0}/none'"),
        ("{0} --png p --serve 1", "--serve needs --follow, got DIR alone"),
        ("{0} --png p --host h", "--host needs --follow, got DIR alone"),
        ("{0} --follow --serve 1 --output p", "--output must not be given with --follow, got both"),
        ("{0} --follow --serve 1 --png p", "--png must not be given with --follow, got both"),
        ("{0} --follow --serve 1 --svg p", "--svg must not be given with --follow, got both"),
        ("{0} --follow", "--follow needs --serve, got none"),
        ("--output p", "the following arguments are required: DIR"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        configure(options.format(tmp_path).split())
    assert str(caught.value) == sentence.format(tmp_path)


def test_a_port_is_a_number() -> None:
    assert [report_command._port(text) for text in ("0", "65535", "007")] == [0, 65535, 7]
    for text in ("65536", "-1", "", "1.0", "\u0663", "x"):
        with pytest.raises(argparse.ArgumentTypeError, match=r"^must be a port from 0 to 65535, got "):
            report_command._port(text)


def test_each_file_is_written_if_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The picture is drawn once for both of its forms, and not for a page alone."""
    drawn: list[str] = []
    monkeypatch.setattr(report_command, "gather", lambda asked: "report")
    monkeypatch.setattr(web_page, "page", lambda report, limits: "page \ud800")
    monkeypatch.setattr(charts, "picture", lambda report, panel: drawn.append(report) or {})
    monkeypatch.setattr(charts, "png_of", lambda spec: b"png")
    monkeypatch.setattr(charts, "svg_of", lambda spec: b"svg")
    html, png, svg = (str(tmp_path / f"p.{form}") for form in ("html", "png", "svg"))
    base = [str(tmp_path)]
    for options, forms, said in (
        (["--output", html], {"html"}, html),
        (["--png", png], {"png"}, png),
        (["--svg", svg], {"svg"}, svg),
        (["--output", html, "--png", png, "--svg", svg], {"html", "png", "svg"}, f"{html} and {png} and {svg}"),
    ):
        assert report_command.main([*base, *options]) == 0
        assert {path.suffix[1:] for path in tmp_path.iterdir()} == forms
        assert capsys.readouterr().err == f"report: {said}\n"
        for path in tmp_path.iterdir():
            assert path.read_bytes() == {"html": b"page ?", "png": b"png", "svg": b"svg"}[path.suffix[1:]]
            path.unlink()
    assert len(drawn) == 3
    report_command.write_report_into(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.png"}


def test_a_page_that_follows_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[Any] = []

    def serve(asked: Any, host: str, port: int, ready: Any) -> None:
        served.append((asked.directory, host, port))
        ready("http://here/")

    monkeypatch.setattr(follow, "serve", serve)
    assert report_command.main([str(tmp_path), "--follow", "--serve", "0"]) == 0
    assert served == [(str(tmp_path), "127.0.0.1", 0)] and capsys.readouterr().err == "report: http://here/\n"


# ------------------------------------------------------------------------------------------------------------- the page


def test_a_page_runs_its_own_scripts_alone() -> None:
    here = Path(web_page.__file__).parent

    def sha(name: str) -> str:
        content = b"\n" + (here / name).read_bytes()
        return f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"

    own = f"{sha('page.js')} {sha('page_scales.js')}"
    rest = "; base-uri 'none'; form-action 'none'"
    assert web_page.only_itself() == f"default-src 'none'; style-src {sha('page.css')}; script-src {own}{rest}"
    assert f"script-src 'self' {own};" in web_page.only_itself(["'self'"])


def test_a_page_is_a_file_or_follows(tmp_path: Path) -> None:
    report = gathering.gather(Asked(directory=str(tmp_path), title="<b>T"))
    alone, followed = web_page.page(report, Limits()), web_page.page(report, Limits(), script="follow.js")
    assert 'http-equiv="Content-Security-Policy"' in alone and 'http-equiv="Content-Security-Policy"' not in followed
    assert '<script src="follow.js" defer></script>' in followed and "follow.js" not in alone
    assert "<h1>&lt;b&gt;T</h1>" in alone and "<b>T" not in alone and "Not enough data." in alone


def test_tables_of_a_page_have_enough_digits() -> None:
    def figure(low: float | None, high: float | None, is_share: bool = True) -> Figure:
        return Figure(name="x", is_share=is_share, value=None if is_share else 0.2, low=low, high=high)

    shares = [figure(0.1, 0.3), figure(0.2, 0.2044), figure(None, 0.1), figure(0.1, None)]
    assert format_of(*shares).digits == 2 and format_of(*shares).is_share
    assert format_of(figure(0.2, 0.2004)).digits == 3 and format_of() == NumberFormat(True, 1)
    assert format_of(figure(0.198, 0.202)).digits == 2
    assert format_of(figure(0.198, 0.202, False)) == NumberFormat(False, 4)
    assert format_of(figure(None, None, False)).digits == 3


def test_scripts_of_a_page_get_values_as_they_are() -> None:
    values = ["a<b", "c"]
    figures = [Figure(name=value, is_share=True, value=0.1, low=None, high=None) for value in values]
    text = web_page._values_of(figures)
    assert str(text) == '{"values":["a\\u003cb","c"]}' and json.loads(text) == {"values": values}
