"""``uldp plan`` with public blocks and levels: what it prints, and collections that other commands accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from packages.planner.tests.support.planned_structure import CITIES, REFUSED
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection

TWENTY = {f"block-{at:02}": 20 for at in range(20)}
SIZES = [{"epsilon": 0.5, "values": 5}, {"epsilon": 2, "values": 45}]
ILLNESS = [
    {"epsilon": 0.5, "values": ["hiv"]},
    {"epsilon": 1, "values": ["gout", "flu"]},
    {"epsilon": 3, "values": ["cold", "cough"]},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the files of all commands below."""
    files: dict[str, Any] = {"twenty.json": TWENTY, "cities.json": CITIES, "sizes.json": SIZES, "illness.json": ILLNESS}
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    people = ["none"] * 50 + ["flu"] * 20 + ["cold"] * 20 + ["gout"] * 9 + ["hiv"]
    (tmp_path / "people.csv").write_text("\n".join(["value", *people]), encoding="utf-8")
    places = ["mitte"] * 5 + ["nord"] * 3 + ["sud"] * 2
    (tmp_path / "places.csv").write_text("\n".join(["value", *places]), encoding="utf-8")
    (tmp_path / "secret.txt").write_text("nord\nmitte\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(arguments: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Lines that are printed."""
    assert uldp.main(["plan", *arguments.split()]) == 0
    return capsys.readouterr().out.splitlines()


def row(lines: list[str], mechanism: str, alphabet: str) -> list[str]:
    """The cells of a line of the table, which are two or more spaces apart."""
    [found] = [line for line in lines if line.startswith(f"{mechanism}  ") and f"  {alphabet}  " in line]
    return [cell.strip() for cell in found.split("  ") if cell.strip()]


def test_blocks_stand_beside_the_flat_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """20 x 20 values: the block costs a byte and leaves a 22nd of the error."""
    lines = planned("--blocks twenty.json --epsilon 1 --reports 100000 --output C.json", capsys)
    assert lines[0] == "400 values in 20 blocks, 400 of them sensitive; 100,000 reports at epsilon 1"
    flat, within = row(lines, "ss", "closed"), row(lines, "ss", "blocks")
    assert (flat[2:5], within[2:5]) == (["all values", "84", "76"], ["all values, within blocks", "38", "30"])
    assert 21 < float(flat[6]) / float(within[6]) < 23
    assert (
        "within blocks: a value is protected from the other values of its block; the block is sent in clear." in lines
    )
    assert any(line.startswith("Recommended: ss within public blocks. The root mean square error") for line in lines)
    [caveat] = [line for line in lines if line.startswith("The block of a value is public: each report states it")]
    assert caveat.endswith("The block with the fewest sensitive values, 'block-00', has 20.")
    assert lines[-1] == "The recommended collection, with placeholders for values: C.json"
    written = json.loads(Path("C.json").read_text(encoding="utf-8"))
    assert written["alphabet"]["blocks"]["block-19"][-1] == "value-400"


def test_levels_stand_beside_one_epsilon(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = planned("--levels sizes.json --num_values 60 --reports 100000 --target_l1 0.2", capsys)
    assert lines[0] == (
        "60 values, 50 of them sensitive; 100,000 reports at epsilon 0.5, in levels at 0.5 (5 values) and 2 (45 values)"
    )
    one, levels = row(lines, "uss, subset_size 19", "closed"), row(lines, "levels, of uss", "closed")
    assert (one[2], levels[2]) == ("sensitive values", "sensitive values, by level")
    assert 4 < float(one[6]) / float(levels[6]) < 6
    text = "\n".join(lines)
    assert "it needs epsilon 0.530 of level 1 (others in proportion), or 120,956 reports." in text
    assert "\nHalf width of the 95 % interval of a value: level 1 0.018, level 2 0.0098.\n" in text
    assert "\nEpsilon: 0.5 for level 1: its reports are at most 1.65 times as likely from one value as" in text
    assert (
        "by level: a value is protected by the epsilon of its level; in other rows, by that of the first one." in text
    )
    assert '"values": ["value-001", "value-002", "value-003", "value-004", "value-005"]}' in text
    nothing = planned("--levels sizes.json --num_values 60 --reports 100 --target_l1 0.0001", capsys)
    *_, reports, epsilon = row(nothing, "levels, of uss", "closed")
    assert int(reports.replace(",", "")) == pytest.approx(120_956 * 2000**2, rel=1e-4)  # 1 / target squared
    assert epsilon == "above 4"  # 16 in the last level


def test_without_blocks_or_levels_nothing_is_said_of_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(planned("--num_values 9 --num_sensitive 4 --epsilon 1 --reports 1000", capsys))
    assert "block" not in text and "level" not in text


@pytest.mark.parametrize(
    ("options", "people"),
    [
        ("--blocks cities.json --sensitive secret.txt --epsilon 1", "places.csv"),
        ("--blocks cities.json --values places.csv --epsilon 1", None),
        ("--levels illness.json --num_values 7", None),
        ("--levels illness.json --values people.csv", "people.csv"),
    ],
)
def test_other_commands_accept_the_collection(
    options: str, people: str | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan, a description, an audit, simulated people, their estimates, and the check of these."""
    lines = planned(f"{options} --reports 2000 --output C.json", capsys)
    assert lines[-1] == "The recommended collection: C.json"
    for command in ("describe", "audit"):
        assert uldp.main([command, "C.json"]) == 0
    if people is None:
        return
    assert uldp.main(["simulate", "C.json", "--values", people, "--output", "reports.avro"]) == 0
    job = ["--collection", "C.json", "--input", "reports.avro", "--output", "out", "--window", "1d"]
    assert uldp.main(["estimate", *job]) == 0
    assert uldp.main(["check", "out"]) == 0


def test_a_file_of_people_gives_the_frequencies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of the symbols of blocks, with values that nobody holds; levels may have such values too."""
    lines = planned(
        "--blocks cities.json --values places.csv --sensitive secret.txt --epsilon 1 --reports 5000", capsys
    )
    assert "Expected errors of raw estimates (`empirical`) for the frequencies in places.csv:" in lines
    spec = "\n".join(lines[lines.index("{") :])
    item = Collection.from_json(json.loads(spec))
    held = {"mitte": 0.5, "nord": 0.3, "sud": 0.2}
    symbols = item.alphabet.symbol_table(item.alphabet.known_values or (), 1)[0]
    p = np.zeros(5)
    p[symbols] = [held.get(value, 0) for value in item.alphabet.known_values or ()]
    errors = float(item.mechanism.variances(p).sum()) / 5000
    assert row(lines, "urr", "blocks")[6] == f"{errors:.3g}"
    of_levels = planned("--levels illness.json --values people.csv --reports 5000", capsys)
    assert of_levels[0].startswith(
        "6 values, 5 of them sensitive; 5,000 reports at epsilon 0.5, in levels at 0.5 (1 val"
    )


def test_repeated_reports_cost_what_their_level_costs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--levels illness.json --num_values 7 --reports 2000 --reports_per_person 30"
    lines = planned(asked, capsys)
    cells = {line[:25].strip(): line[25:].split()[:4] for line in lines if line.startswith(("fresh", "one window"))}
    assert cells["fresh reports, level 1"] == ["0.5", "3.5", "15", "182.5"]
    assert cells["fresh reports, level 3"] == ["3", "21", "90", "1095"]
    assert cells["one window of 30, level 2"] == ["1", "1", "1", "13"]
    assert lines.count("This mechanism has no memos.") == 1
    of_blocks = planned("--blocks twenty.json --epsilon 1 --reports 2000 --reports_per_person 30", capsys)
    [fresh] = [line.split() for line in of_blocks if line.startswith("fresh reports")]
    assert fresh[2:6] == ["1", "7", "30", "365"]


def test_lies_count_most_in_the_smallest_level(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The room that lies have is that of the value for which it is largest."""
    lines = planned("--levels illness.json --num_values 7 --reports 2000 --liars 0.01", capsys)
    [said] = [line for line in lines if line.startswith("If at most 1 % of the reports are lies, ")]
    text = "\n".join(lines[lines.index("{") :])
    mechanism = Collection.from_json(json.loads(text)).mechanism
    assert mechanism.smallest_effects is not None
    room = float((mechanism.largest_effects - mechanism.smallest_effects)[:5].max())
    assert said.endswith(f"and {0.01 * room / 0.99:.2g} with any number of reports.")


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2][:60] for row in REFUSED])
def test_refusals(kind: type[Exception], call: Any, sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
