"""Builds the C files of ``native/`` into a scratch folder, where a C compiler is, and gives the decoder this module."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from uldp_transforms.messages import native_module

SOURCES = sorted((Path(__file__).parents[2] / "native").glob("*.c"))
NUMPY, COMPILED = "numpy", "compiled"
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror")


def missing() -> str | None:
    """Why the module cannot be built here; None if it can."""
    if compiler() is None:
        return "there is no C compiler (cc, gcc or clang)"
    header = Path(sysconfig.get_path("include"), "Python.h")
    return None if header.is_file() else f"there is no {header}"


def compiler() -> str | None:
    return next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path), None)


def build(folder: Path, flags: Sequence[str] = ("-O3",), sources: Sequence[Path] = SOURCES) -> Path:
    """The module, built with strict warnings."""
    made = folder / f"{native_module.MODULE}.abi3.so"
    include = sysconfig.get_path("include")
    command = [compiler() or "cc", *STRICT, *flags, "-shared", "-fPIC", f"-I{include}", *map(str, sources)]
    subprocess.run([*command, "-o", str(made)], check=True, capture_output=True, text=True)
    return made


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(native_module.MODULE, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def built() -> Any:
    """The module for this process; its folder is gone once it is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        return load(build(Path(folder)))


@contextlib.contextmanager
def decoding_with(part: str) -> Iterator[None]:
    """Decoders split messages with numpy or with the compiled part."""
    reason = missing() if part == COMPILED else None
    if reason is not None:
        pytest.skip(f"the compiled part cannot be built: {reason}")
    module = built() if part == COMPILED else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_module, "native", lambda: module)
        yield
