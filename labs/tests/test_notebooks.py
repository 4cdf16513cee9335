"""The notebooks run from their first cell to their last, and hold what that shows."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from labs import notebooks

NOTEBOOKS = sorted(notebooks.FOLDER.glob("*.ipynb"))
AGAIN = "python -m labs.notebooks runs it anew"

SHOWN = {
    "three_figures": (3, ["holds: ", "simulated / forecast"]),
    "choose_a_mechanism": (1, ["recommended: ", "of the 95 % intervals contain the share"]),
    "week_of_a_stream": (1, ["28000 received, 28000 accepted", "true difference 0.070, interval 0.0"]),
    "first_estimate": (1, ["of 4 intervals contain the share of the people asked", "10000 reports received"]),
}
"""Pictures of each notebook, and sentences that it prints."""


def cells_of(path: Path) -> list[dict[str, Any]]:
    return notebooks.code_cells(json.loads(path.read_text("utf-8")))


def texts(outputs: list[dict[str, Any]]) -> list[dict[str, str]]:
    """What a cell shows, without the pixels of pictures, which depend on the fonts of a machine."""
    shown = [output.get("data") or {"stdout": output["text"]} for output in outputs]
    return [{kind: "" if kind == notebooks.PICTURE else "".join(it) for kind, it in each.items()} for each in shown]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path: Path) -> None:
    """And shows, to the letter, what the file has."""
    cells = cells_of(path)
    assert len(cells) >= 5
    for cell, shown in zip(cells, notebooks.run(path.name, cells), strict=True):
        assert texts(shown) == texts(cell["outputs"]), AGAIN


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_have_the_outputs_of_their_code(path: Path) -> None:
    cells = cells_of(path)
    assert json.loads(path.read_text("utf-8"))["metadata"]["executed"] == notebooks.fingerprint(cells), AGAIN
    shown = [output for cell in cells for output in texts(cell["outputs"])]
    pictures, sentences = SHOWN[path.stem]
    assert sum(notebooks.PICTURE in output for output in shown) == pictures
    text = "\n".join(text for output in shown for text in output.values())
    assert all(sentence in text for sentence in sentences)
    assert all(cell["execution_count"] is None for cell in cells)
    assert path.stat().st_size < 60_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_name_no_machine(path: Path) -> None:
    text = "".join(it for cell in cells_of(path) for output in texts(cell["outputs"]) for it in output.values())
    assert not re.search(rf"/tmp|/home|{re.escape(os.path.expanduser('~'))}/| at 0x|Traceback", text)


def test_a_changed_cell_is_seen() -> None:
    cells = cells_of(NOTEBOOKS[0])
    before = notebooks.fingerprint(cells)
    cells[1]["source"] = [*cells[1]["source"], "\n1"]
    assert notebooks.fingerprint(cells) != before


def test_the_last_expression_of_a_cell_is_shown() -> None:
    cells = [{"source": ["x = 2\n", "print(x)\n", "x + 1"]}, {"source": ["y = x"]}]
    assert [texts(shown) for shown in notebooks.run("cells", cells)] == [[{"stdout": "2\n"}, {"text/plain": "3"}], []]
