"""Names of the files of a spool, which a gateway writes and ``uldp estimate --follow`` reads.

A file of packed messages ends in ``.avro.part`` while it is written to. Its manifest is there before it gets the name
that ends in ``.avro``.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path

PART, WHOLE, MANIFEST = ".avro.part", ".avro", ".manifest.json"

_BEGUN = re.compile(r"reports-(\d{8}T\d{6})-")


def part_name(begun: datetime.datetime, own: str) -> str:
    """Name of a file that is begun now (UTC); ``own`` is in no other name."""
    return f"reports-{begun:%Y%m%dT%H%M%S}-{own}{PART}"


def begun_at(name: str) -> int | None:
    """Time at which a file was begun, by its name, in milliseconds since 1970; None for other names."""
    match = _BEGUN.match(name)
    if match is None:
        return None
    try:
        moment = datetime.datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=datetime.timezone.utc)
    except ValueError:  # digits that are no time
        return None
    return int(moment.timestamp()) * 1000


def manifest_path(whole: Path) -> Path:
    """Path of the manifest of a finished file."""
    return whole.with_name(manifest_name(whole.name))


def manifest_name(whole: str) -> str:
    """Name of the manifest of a file with this name."""
    return whole.removesuffix(WHOLE) + MANIFEST
