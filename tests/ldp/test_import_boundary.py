"""The numeric layer stands alone: it loads no Beam, and inside it imports point downwards."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from uldp_transforms import ldp

PACKAGE = "uldp_transforms.ldp"
FOLDER = Path(ldp.__file__).parent
FORBIDDEN = ("apache_beam", "fastavro", "google")

LAYERS = [  # a module imports from layers below its own, and from its own package
    {"__init__"},
    {"client", "client_form", "privacy", "utility"},
    {"client_state", "collection", "discovery", "repeated_people", "sentinels", "smoothing"},
    {"estimators"},
    {"joint_counts", "model"},
    {"budget"},
    {"alphabets", "mechanisms", "sparse_counts"},
    {"bitcounts", "client_window", "counts", "hashing", "keyed_words", "reports", "sampling", "registry"},
    {"checks", "client_storage"},
    {"errors", "reasons"},
]
LEVEL = {name: -i for i, layer in enumerate(LAYERS) for name in layer}

SOURCES = {".".join(path.relative_to(FOLDER).with_suffix("").parts): path for path in sorted(FOLDER.rglob("*.py"))}


def test_the_numeric_layer_loads_no_beam():
    modules = [f"{PACKAGE}.{name}".removesuffix(".__init__") for name in SOURCES]
    program = f"""
import importlib, sys
before = set(sys.modules)  # installed packages may load namespaces when Python starts
for name in {modules!r}:
    importlib.import_module(name)
print(*set(sys.modules) - before)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=FOLDER.parents[1], capture_output=True, text=True, check=True
    )
    loaded = run.stdout.split()
    assert set(modules) <= set(loaded)
    assert not [name for name in loaded if name.split(".")[0] in FORBIDDEN]


def imported(node: ast.AST) -> Iterator[str]:
    """Modules that are imported, for type checkers only or not."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        yield node.module or ""
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


@pytest.mark.parametrize("name", SOURCES)
def test_imports_point_downwards(name):
    package = name.split(".")[0]
    for module in imported(ast.parse(SOURCES[name].read_text(encoding="utf-8"))):
        assert module.split(".")[0] not in FORBIDDEN
        if module.split(".")[0] == "uldp_transforms":
            assert module.startswith(f"{PACKAGE}."), f"{name} imports {module}"
            other = module.removeprefix(f"{PACKAGE}.").split(".")[0]
            assert other == package or LEVEL[other] < LEVEL[package], f"{name} imports {module}"
