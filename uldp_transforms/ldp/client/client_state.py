"""The text that a client stores, as an object: created, read, checked, and converted to the current version.

    client_state   2
    secret         32 bytes in hexadecimal digits, from which cohort, memos and turn are derived
    period_ms      length of a period; period: number of the current one, or null
    spent, ever    in this period, and in all periods: fingerprint -> [number of reports, their cost]
    answers        of this period, that of the last call: fingerprint -> window -> event time, cohort, payload, id of
                   the report; a window is named by its start, one of days of a place by a slash and its end

Version 1 had, in ``spent`` and ``ever``, an entry for each symbol that was ever reported, under a name (32 digits) that
anyone who has the secret can compute. ``adopt`` replaces the entries of a collection by their sum when its client
opens.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from uldp_transforms.ldp.checks import is_number, parse_json
from uldp_transforms.ldp.client.budget import MAX_MILLISECONDS
from uldp_transforms.ldp.errors import SpecError

State = dict[str, Any]

LEDGERS = ("spent", "ever")

_VERSION = 2
_KEYS = ("client_state", "secret", "period_ms", "period", *LEDGERS, "answers")
_WHERE = "the client's storage"
_MOST_REPORTS = 1 << 53
_SECRET = re.compile("[0-9a-f]{64}")
_FINGERPRINT = _SECRET
_NAME_OR_FINGERPRINT = re.compile("(?:[0-9a-f]{32}){1,2}")
_NAME_DIGITS = 32
_WINDOW = re.compile("/?(?:0|-?[1-9][0-9]{0,15})")
_BYTES = re.compile("(?:[0-9a-f]{2})+")
_ID = re.compile("[0-9a-f]{32}")


def new_state(secret: bytes, period_ms: int) -> State:
    """The state of a device that has not reported yet."""
    ledgers: State = {"period": None, "spent": {}, "ever": {}, "answers": {}}
    return {"client_state": _VERSION, "secret": secret.hex(), "period_ms": period_ms} | ledgers


def state_text(state: State) -> str:
    return json.dumps(state)


def read_state(text: str | None) -> State:
    """The stored state, converted to the current version.

    Raises:
        SpecError: if the text was not written by a client. The message does not quote it, because it contains the
        secret.
    """
    state = _parsed(text)
    if not isinstance(state, dict) or state.keys() != set(_KEYS):
        raise SpecError(f"{_WHERE} must be an object with the keys {', '.join(_KEYS)} (the value is not shown)")
    version = state["client_state"]
    _require("client_state", f"a version from 1 to {_VERSION}", _is_integer(version, 1, _VERSION))
    _require("secret", "64 hexadecimal digits", _matches(_SECRET, state["secret"]))
    _require("period_ms", "whole milliseconds", _is_integer(state["period_ms"], 1, MAX_MILLISECONDS))
    known = state["period"] is None or _is_integer(state["period"], -MAX_MILLISECONDS, MAX_MILLISECONDS)
    _require("period", "an integer or null", known)
    for ledger in LEDGERS:
        entries = state[ledger]
        _require(ledger, "an object", isinstance(entries, dict))
        ok = all(_matches(_NAME_OR_FINGERPRINT, key) and _is_entry(entry) for key, entry in entries.items())
        _require(ledger, "a number of reports and their cost for each collection", ok)
    _require("answers", "an object", isinstance(state["answers"], dict))
    ok = all(_matches(_FINGERPRINT, key) and _are_answers(of) for key, of in state["answers"].items())
    _require("answers", "a report for each collection and window", ok)
    return state | {"client_state": _VERSION}


def adopt(state: State, fingerprint: str, names: Callable[[], Iterable[str]], cost: Callable[[int], float]) -> None:
    """Replace, in place, the version 1 entries of a collection under these names by one sum.

    Its cost is at least that of version 1, so no budget is returned.
    """
    if all(len(key) != _NAME_DIGITS for ledger in LEDGERS for key in state[ledger]):
        return
    known = set(names())
    for entries in (state[ledger] for ledger in LEDGERS):
        own = [entries.pop(key) for key in list(entries) if key in known] + [entries.get(fingerprint, [0, 0.0])]
        number = sum(entry[0] for entry in own)
        if number:
            entries[fingerprint] = [number, max(cost(number), math.fsum(entry[1] for entry in own))]


def _parsed(text: str | None) -> Any:
    try:
        return parse_json(text or "", _WHERE)
    except SpecError:
        raise SpecError(f"{_WHERE} must be the JSON text of a client (the value is not shown)") from None


def _require(field: str, allowed: str, holds: bool) -> None:
    if not holds:
        raise SpecError(f"{_WHERE}: {field} must be {allowed} (the value is not shown)")


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_integer(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, list) or len(entry) != len(("number", "cost")):
        return False
    number, cost = entry
    return _is_integer(number, 1, _MOST_REPORTS) and is_number(cost) and 0 <= cost <= _MOST_REPORTS


def _are_answers(answers: object) -> bool:
    return isinstance(answers, dict) and all(
        _matches(_WINDOW, window) and _is_answer(answer) for window, answer in answers.items()
    )


def _is_answer(answer: object) -> bool:
    if not isinstance(answer, list) or len(answer) != len(("event_time", "cohort", "payload", "report_id")):
        return False
    event_time, cohort, payload, report_id = answer
    times = _is_integer(event_time, -MAX_MILLISECONDS, MAX_MILLISECONDS) and _is_integer(cohort, 0, (1 << 16) - 1)
    return times and _matches(_BYTES, payload) and _matches(_ID, report_id)
