"""The notebooks run from their first cell to their last, and hold no output that could be out of date."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from altair import LayerChart
from matplotlib.figure import Figure

from tests.project.documents import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

SHOWN = {
    "three_figures": (3, ["holds: ", "simulated / forecast"]),
    "choose_a_mechanism": (1, ["recommended: ", "of the 95 % intervals contain the share"]),
    "week_of_a_stream": (1, ["28000 received, 28000 accepted", "true difference 0.070, interval 0.0"]),
    "first_estimate": (1, ["of 4 intervals contain the share of the people asked", "10000 reports received"]),
}
"""Pictures of each notebook, and sentences that it prints."""


def code_cells(path: Path) -> list[str]:
    """The sources of the code cells, in order."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As Jupyter does: one name space, cell after cell; the last expression of a cell is what it shows."""
    names: dict[str, object] = {}
    pictures = 0
    for number, source in enumerate(code_cells(path)):
        exec(compile(source, f"{path.name}, code cell {number}", "exec"), names)  # our own file
        pictures += isinstance(names.get(source.splitlines()[-1]), (Figure, LayerChart))
    wanted, sentences = SHOWN[path.stem]
    assert pictures == wanted
    printed = capsys.readouterr().out
    assert all(sentence in printed for sentence in sentences)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_output(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
