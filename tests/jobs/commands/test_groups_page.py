"""The page about groups, performed from the top to the bottom."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.project.documents import blocks
from tests.support.jobs.reestimated import rows_of
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import Mechanism

PAGE = Path(__file__).parents[3] / "docs" / "groups.md"


def perform(kind: str) -> None:
    """All blocks of a kind, one after the other."""
    for block in blocks(PAGE, kind):
        if kind == "python":
            exec(compile(block.code, PAGE.name, "exec"), {})  # the page of this project
        for line in block.code.splitlines() if kind == "sh" else ():
            assert uldp.main(shlex.split(line)[1:]) == 0


def number_of(rows: list[dict[str, Any]], group: str) -> int:
    return sum(row["num_reports"] for row in rows if row["group"] == group)


def test_the_page_is_performed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    [spec] = blocks(PAGE, "json")
    Path("C.json").write_text(spec.code, "utf-8")
    perform("python")
    perform("sh")
    said = capsys.readouterr().out
    rows = rows_of(Path("results"))
    groups = {row["group"]: row["dimensions"] for row in rows}
    assert len(groups) == 1 + 3 * 2
    assert groups[""] == []
    assert groups["country=DE,arm=new"] == [{"name": "country", "value": "DE"}, {"name": "arm", "value": "new"}]
    assert number_of(rows, "") == sum(number_of(rows, group) for group in groups if group) == 40_000

    totals = [json.loads(line) for line in Path("results/totals.jsonl").read_text("utf-8").splitlines()]
    assert [row["group"] for row in totals] == ["", "arm=control", "arm=new"]
    assert f"symptoms, arm=new, 1 Nov 2026 to 2 Nov 2026 (UTC): {number_of(totals, 'arm=new'):,} " in said
    for group in ("arm=control", "arm=new"):
        parts = [f"country={country},{group}" for country in ("DE", "FR", "other")]
        assert number_of(totals, group) == sum(number_of(rows, part) for part in parts)
    by_country = rows_of(Path("by_country"))
    assert {row["group"] for row in by_country} == {"", "country=DE", "country=FR", "country=other"}
    assert number_of(by_country, "") == 40_000
    drawn = r"shares are drawn towards those of all reports by \d+%; some or all reports are simulated"
    assert re.search(rf"country=FR, .* status ok; {drawn}\n", said)
    borrowed = [json.loads(line) for line in Path("borrowed.jsonl").read_text("utf-8").splitlines()]
    assert [row["group"] for row in borrowed] == ["", "country=DE", "country=FR", "country=other"]
    assert [row["borrowed"] is None for row in borrowed] == [True, False, False, False]
    assert all(entry["smoothed_frequency"] is not None for row in rows_of(Path("smooth")) for entry in row["estimates"])
    assert uldp.main(["check", "results"]) == 0
    shown = re.search(r"prints\n\n```\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    assert shown is not None and shown[1] in said

    told = [json.loads(line) for line in Path("honest.jsonl").read_text("utf-8").splitlines()]
    assert [row["liars"] for row in told] == [0.01] * 3 and [row["liars"] for row in totals] == [None] * 3
    collection = Collection.from_json("C.json")
    for honest, row in zip(told, totals):
        for wide, plain in zip(honest["estimates"], row["estimates"]):
            assert (wide["frequency"], wide["standard_error"]) == (plain["frequency"], plain["standard_error"])
            longer = lengths(wide) - lengths(plain) / 0.99
            assert longer == pytest.approx(room_of(collection.mechanism), abs=1e-9)


def lengths(entry: dict[str, Any]) -> float:
    return float(entry["ci_high"] - entry["ci_low"])


def room_of(mechanism: Mechanism) -> float:
    """By how much 1 % of liars lengthen an interval, beside its stretching by 1 / 0.99."""
    assert mechanism.smallest_effects is not None
    return float(0.01 * (mechanism.largest_effects - mechanism.smallest_effects)[0] / 0.99)


def test_the_numbers_about_lies_are_those_of_the_collection_of_the_page() -> None:
    [spec] = blocks(PAGE, "json")
    mechanism = Collection.from_json(json.loads(spec.code)).mechanism
    text = " ".join(PAGE.read_text("utf-8").split())
    assert mechanism.smallest_effects is not None
    most, least = mechanism.largest_effects[0], mechanism.smallest_effects[0]
    assert f"Here a_max is {most:.2f} and a_min {least:.2f}, so 1 % of liars" in text
    assert f"lengthen an interval by about {100 * room_of(mechanism):.1f} percentage points" in text
    noisier = dataclasses.replace(mechanism, epsilon=0.5)
    assert f"with epsilon 0.5 it would be {100 * room_of(noisier):.1f}." in text
