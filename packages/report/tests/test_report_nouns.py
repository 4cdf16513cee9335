"""What a page counts, in the collection's own words."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.support import report_rows as rows
from tests.support.html_tree import tree_of
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets.noun import Noun
from uldp_transforms.ldp.versions import questions_of

FLIGHTS = Noun(one="flight", many="flights")


def page_of(folder: Path, *more: str) -> str:
    """The text of the page of a directory."""
    assert uldp.main(["report", str(folder), "--output", str(folder / "page.html"), *more]) == 0
    return " ".join(tree_of((folder / "page.html").read_text("utf-8")).text.split())


def survey(folder: Path, noun: Noun, simulated: bool = False) -> Collection:
    """Three days of a collection whose runs say its noun."""
    of = dataclasses.replace(rows.survey(folder, ["ant", "bee"], 3), noun=noun)
    if simulated:
        file = folder / "estimates.jsonl"
        lines = [json.loads(line) | {"simulated": True} for line in file.read_text("utf-8").splitlines()]
        rows.write(folder, "estimates.jsonl", lines)
    rows.record(folder, of)
    return of


def test_a_page_speaks_of_what_was_counted(tmp_path: Path) -> None:
    of = survey(tmp_path, FLIGHTS)
    unlisted = {"unexplained_mass": 0.25, "unexplained_low": 0.2, "unexplained_high": 0.3}
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, 2, [rows.entry("ant", 0.4)], **unlisted)])
    text = page_of(tmp_path)
    assert "Estimates from private reports of 2,970 flights, with intervals that contain" in text
    assert "Wed 8 Nov 2000, 1,000 flights: ant 40.0 % of flights (" in text
    assert "Shares of flights, Wed 8 Nov 2000" in text
    assert "25.0 % of flights (20.0 to 30.0 %) have a value that is on no list" in text
    for word in (" of people", "the people", " answers,", " hold"):
        assert word not in text, word


def test_the_line_below_a_picture_says_what_was_counted(tmp_path: Path) -> None:
    survey(tmp_path, FLIGHTS)
    assert page_of(tmp_path) and "1,000 flights; " in (tmp_path / "page.html").read_text("utf-8")
    assert "reports; " not in (tmp_path / "page.html").read_text("utf-8")


def test_a_simulation_is_called_one(tmp_path: Path) -> None:
    survey(tmp_path, FLIGHTS, simulated=True)
    said = "Simulation of 2,970 flights, with intervals that contain the true figure in 95 % of cases."
    assert said in page_of(tmp_path)


def test_a_truth_is_named_in_the_first_sentence(tmp_path: Path) -> None:
    survey(tmp_path, FLIGHTS)
    truth = tmp_path / "truth.csv"
    truth.write_text("value,event_time\nant,2000-11-08T01:00:00Z\n", encoding="utf-8")
    said = "Simulation of 2,970 flights; orange ticks are the truth, and intervals contain it in 95 % of cases."
    assert said in page_of(tmp_path, "--truth", str(truth))


def test_questions_about_as_many_are_not_added_up(tmp_path: Path) -> None:
    """Three questions of one crowd are no crowd three times as large; of others the numbers are added up."""
    noun, nights = FLIGHTS, Noun(one="night", many="nights")
    of = survey(tmp_path, noun)
    others = [dataclasses.replace(of, id=name, noun=nights if name == "sleep" else noun) for name in ("air", "sleep")]
    rows.record(tmp_path, of, *others)
    ledger = tmp_path / "ledger.jsonl"
    own = json.loads(ledger.read_text("utf-8").splitlines()[0])
    copies = [own | {"collection_id": one.id, "fingerprint": one.fingerprint.hex()} for one in others]
    rows.write(tmp_path, "ledger.jsonl", [own, copies[0]])
    assert f"private reports of {own['accepted']:,} flights for each of 2 questions, with" in page_of(tmp_path)
    few = copies[0] | {"received": own["received"] - 1, "accepted": own["accepted"] - 1}
    rows.write(tmp_path, "ledger.jsonl", [own, few, copies[1]])
    said = f"private reports of {2 * own['accepted'] - 1:,} flights and {own['accepted']:,} nights, with"
    assert said in page_of(tmp_path)


def test_a_noun_can_be_added_later_and_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file says what the collection of a run is called; a noun that no file could have is escaped all the same."""
    monkeypatch.setattr(Noun, "__post_init__", lambda self: None)
    named = dataclasses.replace(survey(tmp_path, Noun()), noun=Noun(one="<i>", many="<b>&"))
    file = tmp_path / "c.json"
    file.write_text(json.dumps(named.to_json()), encoding="utf-8")
    assert "private reports of 2,970 answers, with" in page_of(tmp_path)
    assert "private reports of 2,970 <b>&, with" in page_of(tmp_path, "--collection", str(file))
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page


def test_a_question_is_called_as_in_its_latest_version(tmp_path: Path) -> None:
    old = dataclasses.replace(survey(tmp_path, Noun()), question="asked")
    new = dataclasses.replace(old, version=2, noun=FLIGHTS)
    rows.record(tmp_path, new, old)
    [question] = questions_of([old, new])
    pooled = json.loads((tmp_path / "estimates.jsonl").read_text("utf-8").splitlines()[0])
    pooled |= {"collection_id": "asked", "collection_version": 0, "fingerprint": question.fingerprint.hex()}
    rows.write(tmp_path, "estimates.jsonl", [pooled | {"pooled": True}])
    assert "1,000 flights: " in page_of(tmp_path)


def test_a_noun_written_from_right_to_left_does_not_move_its_neighbours(tmp_path: Path) -> None:
    survey(tmp_path, Noun(one="\u05d8\u05d9\u05e1\u05d4", many="\u05d8\u05d9\u05e1\u05d5\u05ea"))
    text = page_of(tmp_path)
    assert "1,000 \u2068\u05d8\u05d9\u05e1\u05d5\u05ea\u2069: " in text
    assert text.count("\u05d8\u05d9\u05e1\u05d5\u05ea") == text.count("\u2068\u05d8\u05d9\u05e1\u05d5\u05ea\u2069") > 3
