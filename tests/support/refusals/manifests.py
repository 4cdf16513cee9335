"""Refusals of manifests: calls and their sentences."""

from __future__ import annotations

from typing import Any

GOOD = {"name": "a.avro", "bytes": 1, "sha256": "0" * 64, "messages": 1, "reports": 1}
WRONG: list[tuple[Any, str]] = [
    ([], "Manifest must be a JSON object, got []"),
    ({"version": 1}, "Manifest needs the key 'files', got 'version'"),
    ({"version": 1, "files": [], "more": 1}, "Manifest takes the keys version, files, got 'more'"),
    ({"version": 2, "files": []}, "Manifest.version must be an integer in [1, 1], got 2"),
    ({"version": 1, "files": {}}, "Manifest.files must be a list, got {}"),
    ({"version": 1, "files": [1]}, "Manifest.files[0] must be a JSON object, got 1"),
    (
        {"version": 1, "files": [{}]},
        "Manifest.files[0] needs the key 'name', got no keys",
    ),
    *(
        (
            {"version": 1, "files": [GOOD | {"name": name}]},
            f"Manifest.files[0].name must be the name of a file without a folder, got {name!r}",
        )
        for name in ("", "..", ".", "a/b", "a\\b", "a\0", 3)
    ),
    *(
        (
            {"version": 1, "files": [GOOD | {"sha256": digest}]},
            f"Manifest.files[0].sha256 must be 64 hexadecimal digits (0-9, a-f), got {digest!r}",
        )
        for digest in ("", "00", "A" * 50, 5)
    ),
    *(
        (
            {"version": 1, "files": [GOOD | {name: number}]},
            f"Manifest.files[0].{name} must be an integer in [0, {1 << 40}], got {number!r}",
        )
        for name in ("bytes", "messages", "reports")
        for number in (-1, 1.5, "1", 1 << 62)
    ),
]
