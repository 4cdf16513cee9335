"""Reads collections from JSON objects, texts and files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from uldp_transforms.files.text_files import read_text
from uldp_transforms.ldp.checks import describe, parse_json, require_mapping
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.errors import SpecError


def read_collection(source: Mapping[str, Any] | NamedTuple | str | os.PathLike[str]) -> Collection:
    """Read a collection from a JSON object or a file, local or in a store such as gs://; errors name the file.

    Args:
        source: a JSON object, a Beam row (from other languages), a JSON text, which begins with ``{``, or the path of a
            file.

    Raises:
        SpecError: if it is not a collection.
        OSError: if the file cannot be read.
    """
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return Collection.from_json(require_mapping("Collection", parse_json(source, "Collection")))
    if not isinstance(source, (str, os.PathLike)):
        given = _without_rows(source)
        if not isinstance(given, Mapping):
            raise SpecError(f"JobSpec.collections must hold collections, JSON objects or paths, got {describe(given)}")
        return Collection.from_json(given)
    path = os.fspath(source)
    try:
        return Collection.from_json(require_mapping("Collection", parse_json(read_text(path), path)))
    except SpecError as error:
        raise SpecError(str(error) if str(error).startswith(path) else f"{path}: {error}") from None


def read_collections(paths: Sequence[str]) -> list[Collection]:
    """Read collections from JSON files, local or in a store such as gs://; errors name the file."""
    return [read_collection(path) for path in paths]


def _without_rows(value: Any) -> Any:
    """Convert Beam rows in a JSON value to objects, without null fields, which rows cannot omit."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = {name: inner for name, inner in value._asdict().items() if inner is not None}
    if isinstance(value, Mapping):
        return {name: _without_rows(inner) for name, inner in value.items()}
    return [_without_rows(inner) for inner in value] if isinstance(value, (list, tuple)) else value
