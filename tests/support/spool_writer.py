"""Files of a spool as a gateway leaves them, for tests of what reads a spool: they need no gateway."""

from __future__ import annotations

import datetime
import io
import itertools
from collections.abc import Sequence
from pathlib import Path

import fastavro

from tests.support.messages_cases import data, long
from uldp_transforms.messages import wire
from uldp_transforms.messages.files.spool_names import PART, WHOLE, manifest_path, part_name
from uldp_transforms.messages.manifest import listed_file, manifest_text

_NUMBERS = itertools.count()


def begun(spool: Path, moment: datetime.datetime | None = None) -> Path:
    """A file that is still written to, begun at a time (default: now)."""
    own = f"{next(_NUMBERS):012x}"
    path = spool / part_name(moment or datetime.datetime.now(tz=datetime.timezone.utc), own)
    path.touch()
    return path


def finished(spool: Path, messages: Sequence[bytes], moment: datetime.datetime | None = None) -> Path:
    """A file of packed messages, a block each, with its manifest; the blocks of two files end differently."""
    part = begun(spool, moment)
    whole = part.with_name(part.name.removesuffix(PART) + WHOLE)
    sync = part.name.removesuffix(PART)[-12:].encode().rjust(16, b"\xff")
    head = io.BytesIO()
    fastavro.writer(head, wire.BATCH_SCHEMA, [], sync_marker=sync)
    part.write_bytes(head.getvalue() + b"".join(long(1) + data(message) + sync for message in messages))
    listed = listed_file(part, whole.name, len(messages), sum(map(wire.reports_in, messages)))
    manifest_path(whole).write_bytes(manifest_text([listed]))
    return part.rename(whole)
