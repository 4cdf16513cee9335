"""The examples of the README run as they stand; the tables that it points to name everything that exists."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import documents
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
TABLES = (ROOT / "docs" / "collections.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return [block.code for block in documents.blocks(ROOT / "README.md", language)]


def test_the_stream_example_publishes_a_row_for_each_value(tmp_path, monkeypatch, capsys):
    documents.require("EstimateReports")
    collection = {
        "id": "animals",
        "version": 1,
        "alphabet": {"id": "closed", "values": ["ant", "bee"]},
        "mechanism": {"id": "krr", "epsilon": 1.0},
    }
    (tmp_path / "C.json").write_text(json.dumps(collection), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    wire = importlib.import_module("uldp_transforms.messages.wire")
    batch = Collection.from_json(collection).perturb(["ant", "bee"] * 100, event_times=[0] * 200)
    documents.stream([wire.encode_batch(batch)], arrival=60, monkeypatch=monkeypatch)
    documents.run(documents.blocks(ROOT / "README.md")[0], monkeypatch)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["value"] for row in rows] == ["ant", "bee"]
    assert {(row["num_reports"], row["status"], row["window_end"]) for row in rows} == {
        (200, "ok", "1970-01-01T01:00:00Z")
    }


def test_the_array_example_prints_four_intervals(capsys):
    exec(blocks("python")[1], {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["flu", "cold", "asthma", "hiv"]
    assert all("95 % interval" in line for line in lines)


def test_the_commands_run_in_their_order(tmp_path):
    """As a visitor pastes them; each program is found beside this Python."""
    [commands] = [code for code in blocks("sh") if "uldp plan" in code]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "estimate: 6000 received = 6000 accepted + 0 rejected" in ran.stderr
    assert "deprecated" not in ran.stderr
    assert "hiv" in (tmp_path / "PAGE.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", documents.blocks(ROOT / "docs" / "collections.md", "json"))
def test_printed_collections_are_valid(block):
    Collection.from_json(json.loads(block.code))


@pytest.mark.parametrize("registry", [ALPHABETS, MECHANISMS, ESTIMATORS])
def test_tables_list_every_id(registry):
    for name in registry:
        assert re.search(rf"^\| `{name}`", TABLES, flags=re.MULTILINE), f"no table row for {name}"


def test_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("sh")), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


NAMES_OF_PAPERS = {
    "krr": ("k-RR", "O-RR"),
    "rappor": ("O-RAPPOR",),
    "urr": ("uRR",),
    "urap": ("uRAP",),
    "tagged": ("PUM",),
    "agrr": ("AGRR",),
    "aoue": ("AOUE",),
    "tsp": ("TSP",),
}


@pytest.mark.parametrize("page", ["docs/collections.md", "docs/glossary.md"])
def test_the_names_of_the_papers_stand_beside_our_ids(page):
    """In the row of a table that has the id."""
    rows = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    for name, words in NAMES_OF_PAPERS.items():
        [row, *_] = [row for row in rows if f"`{name}`" in row.split("|")[1]]
        assert all(re.search(rf"(?<![\w-]){word}(?![\w-])", row) for word in words), (name, row)


@pytest.mark.parametrize("word", ["OSLDP", "ULDP", "combiner", "cohort"])
def test_terms_of_the_papers_and_of_beam_are_found(word):
    """In a table of the glossary."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert any(re.search(rf"\b{word}s?\b", row) for row in rows)
