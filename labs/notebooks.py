"""Runs the notebooks of the documents and keeps in them what they show: ``python -m labs.notebooks``.

As Jupyter does it: one name space for a notebook, and the last expression of a cell is shown. Kept are what cells print
and show, with charts as pictures; not logs, numbers of executions, times or names of the machine.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
INCH = 80
"""Pixels of a figure."""

COLORS = 64
PICTURE = "image/png"

Cell = dict[str, Any]


def main() -> int:
    """Write all notebooks anew; returns the exit code."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        cells = code_cells(notebook)
        for cell, shown in zip(cells, run(path.name, cells)):
            cell["outputs"] = shown
        notebook["metadata"]["executed"] = fingerprint(cells)
        path.write_text(text_of(notebook), encoding="utf-8")
        print(path.name)
    return 0


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    """The cells with code, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def fingerprint(cells: list[Cell]) -> str:
    """Of the code that was run, so that a change without a run is seen."""
    return hashlib.sha256("\0".join("".join(cell["source"]) for cell in cells).encode()).hexdigest()


def text_of(notebook: dict[str, Any]) -> str:
    """A notebook as it is stored: a picture is one line, which a tool for differences can leave out."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def run(name: str, cells: list[Cell]) -> Iterator[list[Cell]]:
    """Outputs of each cell, which is run when they are asked for."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        printed, nowhere = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(nowhere):
            value = run_cell("".join(cell["source"]), f"{name}, code cell {number}", names)
        yield [*_stream(printed.getvalue()), *_shown(value)]


def run_cell(source: str, where: str, names: dict[str, Any]) -> Any:
    """Run a cell; returns the value of its last line if that is an expression, otherwise None."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)  # our own file
    return None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), names)


def _stream(text: str) -> list[Cell]:
    return [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}] if text else []


def _shown(value: Any) -> list[Cell]:
    if value is None:
        return []
    return [{"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": _forms(value)}]


def _forms(value: Any) -> dict[str, str | list[str]]:
    """A value as a picture, or as text and HTML."""
    if hasattr(value, "savefig"):
        file = io.BytesIO()
        value.savefig(file, dpi=INCH, format="png")
        return {PICTURE: _small(file.getvalue())}
    if hasattr(value, "to_dict") and hasattr(value, "encode"):  # a chart of Altair
        from vl_convert import vegalite_to_png  # noqa: PLC0415  # slow to import

        return {PICTURE: _small(vegalite_to_png(value.to_dict(), scale=1.5))}
    text = {"text/plain": repr(value).splitlines(keepends=True)}
    return text | (
        {"text/html": value._repr_html_().splitlines(keepends=True)} if hasattr(value, "_repr_html_") else {}
    )


def _small(content: bytes) -> str:
    """A picture with few colours, as text."""
    from PIL import Image  # noqa: PLC0415  # comes with matplotlib

    file = io.BytesIO()
    image = Image.open(io.BytesIO(content)).convert("RGB")
    image.quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


if __name__ == "__main__":
    sys.exit(main())
