"""The lines that pages send about their navigations, and which of them are kept."""

from __future__ import annotations

import json
from collections import Counter

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.navigation_line import FIELDS, HIGH, LONGEST, LOW

SHORTEST = len('{"confidence":"low","rate":0,"duration":0}')
"""Minimum number of bytes of a line. Shorter ones are not parsed, so that a body of line ends costs nothing."""


def checked(body: bytes, now: float) -> tuple[list[bytes], Counter[Reason]]:
    """The lines of a body as they are kept, and the numbers of refused ones by reason.

    Args:
        body: one or more JSON objects, a line each; an empty body is one malformed line.
        now: time of arrival, in seconds since 1970.
    """
    kept, refused = [], Counter[Reason]()
    for line in body.splitlines() or [b""]:
        found = _object(line)
        if found is None:
            refused[Reason.MALFORMED] += 1
        elif not _is_possible(found):
            refused[Reason.OUT_OF_RANGE] += 1
        else:
            kept.append(f"{json.dumps({'time': round(now, 3)} | found)}\n".encode())
    return kept, refused


def _object(line: bytes) -> dict[str, object] | None:
    """The members of a line; with another one it is refused, so that nothing else about a person is kept."""
    if len(line) < SHORTEST:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.keys() == FIELDS else None


def _is_possible(found: dict[str, object]) -> bool:
    rate, duration = found["rate"], found["duration"]
    return found["confidence"] in (LOW, HIGH) and _is_number(rate, 1) and rate != 1 and _is_number(duration, LONGEST)


def _is_number(value: object, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most
