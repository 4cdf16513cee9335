"""Strict JSON parsing and checks of configuration fields."""

from __future__ import annotations

import difflib
import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeGuard

from uldp_transforms.ldp.errors import SpecError

_FEW = 5  # maximum number of names in an error message
_SHORTEST, _ALIKE = 4, 0.75  # minimum length of a name to compare, and minimum ratio of difflib


def parse_json(text: str, what: str) -> Any:
    """Parse strict JSON: unlike Python's parser, refuse repeated keys, NaN and Infinity.

    Raises:
        SpecError: if the text is not strict JSON; the message names ``what`` and the fault.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            repeated = (key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
            raise SpecError(f"{what} must not repeat a key, got {_few(repeated)} more than once")
        return result

    def refuse(constant: str) -> Any:
        raise SpecError(f"{what} must hold finite numbers, got {constant}")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise SpecError(f"{what} must be JSON, got an error in line {error.lineno}: {error.msg}") from None
    except SpecError:
        raise
    except (ValueError, RecursionError):
        raise SpecError(
            f"{what} must be JSON with numbers and nesting of moderate size, got too many digits or levels"
        ) from None


def require_mapping(owner: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SpecError(f"{owner} must be a JSON object, got {describe(value)}")
    return value


def require_keys(owner: str, spec: Mapping[str, Any], needed: Iterable[str], allowed: Collection[str]) -> None:
    """Check that a JSON object has all needed keys and only allowed ones."""
    missing, known = [name for name in needed if name not in spec], set(allowed)
    unknown = [name for name in spec if name not in known]
    if missing:
        given = next((name for name in unknown if nearest(name, missing[:1])), None)
        near = "" if given is None else f"; did you mean {missing[0]!r} by {given!r}?"
        raise SpecError(f"{owner} needs the key {missing[0]!r}, got {_few(map(repr, spec)) or 'no keys'}{near}")
    if unknown:
        meant = nearest(unknown[0], allowed)
        near = "" if meant is None else f"; did you mean {meant!r}?"
        raise SpecError(f"{owner} takes the keys {', '.join(allowed)}, got {describe(unknown[0])}{near}")


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name that most resembles an unknown one: it contains it, or differs by a few letters; else None."""
    names = list(known)
    if not isinstance(name, str) or len(name) < _SHORTEST:
        return None
    found = [known for known in names if name in known] or difflib.get_close_matches(name, names, cutoff=_ALIKE)
    return found[0] if found else None


def require_id(where: str, value: object) -> None:
    """Refuse what is no name in rows and files; raises SpecError."""
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9._-]{1,64}", value):
        raise SpecError(f"{where} must be 1 to 64 of the characters a-z, 0-9, '.', '_' and '-', got {describe(value)}")


def require_int(where: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SpecError(f"{where} must be an integer in [{low}, {high}], got {describe(value)}")


def require_number(where: str, value: object, allowed: str, ok: bool) -> None:
    """Require a number for which ``ok`` is true; the caller writes ``ok`` so that NaN fails."""
    if not is_number(value) or not ok:
        raise SpecError(f"{where} must be {allowed}, got {describe(value)}")


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def require_texts(where: str, values: object, at_least: int) -> None:
    """Require a list of at least ``at_least`` different texts without surrogates (which have no UTF-8 form)."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise SpecError(f"{where} must be a list of texts, got {describe(values)}")
    if len(values) < at_least:
        noun = "entry" if at_least == 1 else "entries"
        raise SpecError(f"{where} must have at least {at_least} {noun}, got {len(values)}")
    for value in values:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise SpecError(f"{where} must be Unicode text, got {describe(value)}") from None
    if len(set(values)) != len(values):
        seen: set[str] = set()
        repeated = next(v for v in values if v in seen or seen.add(v))  # type: ignore[func-returns-value]
        raise SpecError(f"{where} must not repeat an entry (in Unicode NFC), got {describe(repeated)} twice")


def require_visible_differences(where: str, values: Iterable[str]) -> None:
    """Require texts that readers can tell apart: of two that differ in blanks or invisible characters, one is a slip.

    Texts without any visible character are not compared.
    """
    seen: dict[str, str] = {}
    for value in values:
        visible = _visible(value)
        before = seen.setdefault(visible, value)
        if visible and before != value:
            raise SpecError(
                f"{where} must differ in more than white space and invisible characters, got {describe(value)} beside "
                f"{describe(before)}"
            )


def _visible(text: str) -> str:
    if not text.isascii():
        text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return " ".join(text.split())


def describe(value: object) -> str:
    """Describe a value briefly for an error message."""
    return _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _few(texts: Iterable[str]) -> str:
    """The first few texts, shortened for an error message."""
    first = list(itertools.islice(texts, _FEW + 1))
    return ", ".join([*map(_short, first[:_FEW]), *["..."] * (len(first) > _FEW)])
