"""Scripts of pages in Node, with as much of a document as they use: no browser has to be there."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.html_tree import Node, tree_of

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node (Node.js 20 or newer) on the path")

_DOM = Path(__file__).with_name("dom.mjs")
_PATIENCE = 120.0
_NAMES = "all, blobs, downloads, emit, markup, one, press, save, texts, tick, timers, type, until"
_PROGRAM = """
import vm from "node:vm";
import {{ open, {names} }} from {dom};
const trees = {trees};
open(trees[0]);
for (const script of {scripts}) vm.runInThisContext(script);
const found = await (async () => {{ {program} }})();
console.log(JSON.stringify(found));
"""


def json_tree(page: str) -> Any:
    """The tree of a page as ``dom.mjs`` reads it."""
    return _as_json(tree_of(page))


def _as_json(node: Node | str) -> Any:
    return node if isinstance(node, str) else [node.name, node.attributes, [_as_json(child) for child in node.children]]


def run(program: str, *pages: str, scripts: Sequence[Path] = ()) -> Any:
    """What a program returns (a JSON value) in a document that is the first of these pages, with its scripts.

    It has ``trees`` of all pages, and by name what ``dom.mjs`` exports.
    """
    source = _PROGRAM.format(
        names=_NAMES,
        dom=json.dumps(_DOM.as_uri()),
        trees=json.dumps([json_tree(page) for page in pages]),
        scripts=json.dumps([script.read_text(encoding="utf-8") for script in scripts]),
        program=program,
    )
    command = [str(NODE), "--input-type=module", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)
