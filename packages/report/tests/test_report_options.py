"""Options of ``uldp report``, what it hands on, and what its page is made of; without drawing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms_report import follow, report_command
from uldp_transforms_report.facts import Limits
from uldp_transforms_report.gathering import Asked
from uldp_transforms_report.report_command import TITLE, Task, configure

COLLECTION = {"id": "c", "version": 1, "alphabet": {"id": "closed", "values": ["a", "b"]}}
COLLECTION |= {"mechanism": {"id": "krr", "epsilon": 1.0}}


def test_options_have_their_defaults(tmp_path: Path) -> None:
    asked = Asked(directory=str(tmp_path), title=TITLE)
    plain = Task(
        asked=asked, output="p.html", png=None, svg=None, charts=None, style=None, serve=None, host="127.0.0.1"
    )
    assert configure([str(tmp_path), "--output", "p.html"]) == plain
    assert configure([str(tmp_path), "--png", "p.png"]) == dataclasses.replace(plain, output=None, png="p.png")
    assert configure(["s://none", "--svg", "p.svg"]).asked.directory == "s://none"
    drawn = configure([str(tmp_path), "--charts", "c", "--style", "paper"])
    assert drawn == dataclasses.replace(plain, output=None, charts="c", style="paper")
    followed = configure([str(tmp_path), "--follow", "--serve", "0", "--host", "::1"])
    assert followed == Task(asked=asked, output=None, png=None, svg=None, charts=None, style=None, serve=0, host="::1")
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


def test_tables_of_a_page_have_enough_digits() -> None:
    def figure(low: float | None, high: float | None, is_share: bool = True) -> Figure:
        return Figure(name="x", is_share=is_share, value=None if is_share else 0.2, low=low, high=high)

    shares = [figure(0.1, 0.3), figure(0.2, 0.2044), figure(None, 0.1), figure(0.1, None)]
    assert format_of(*shares).digits == 2 and format_of(*shares).is_share
    assert format_of(figure(0.2, 0.2004)).digits == 3 and format_of() == NumberFormat(True, 1)
    assert format_of(figure(0.198, 0.202)).digits == 2
    assert format_of(figure(0.198, 0.202, False)) == NumberFormat(False, 4)
    assert format_of(figure(None, None, False)).digits == 3
