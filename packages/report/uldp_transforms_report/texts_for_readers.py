"""Formats untrusted texts for a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from uldp_transforms.ldp.alphabets.noun import Noun

if TYPE_CHECKING:
    from markupsafe import Markup

_JOINERS = "\u200c\u200d"  # used in Persian, Hindi and other scripts, and in some emoji
_TAIL = 10  # letters at the end of a cut value, which values of one beginning often do not share
_ADDRESS = re.compile(r"(https?://[^\s<>\"']+[^\s<>\"'.,;)])")
_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


def isolated(text: str) -> str:
    """A text that is written from right to left, so that it cannot move the words and numbers beside it."""
    is_backward = any(unicodedata.bidirectional(c) in ("R", "AL") for c in text)
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}" if is_backward else text


class _IsolatedNoun(Noun):
    """A noun whose texts need no check, because those that they are made of were checked."""

    def __post_init__(self) -> None: ...


def noun_for_readers(noun: Noun) -> Noun:
    """The noun, isolated where it is written from right to left."""
    one, many = isolated(noun.one), isolated(noun.many)
    return noun if (one, many) == (noun.one, noun.many) else _IsolatedNoun(one=one, many=many)


def shown(text: str, longest: int = 120) -> str:
    """Convert an untrusted value to harmless text of one line; the template escapes it."""
    clean = "".join(c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
    if not clean.strip():
        return "(empty)" if not clean else "(white space)"
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def named(value: str, longest: int = 120) -> str:
    """A value as ``shown`` writes it, cut in the middle: many long values, such as addresses, differ in their ends."""
    text = shown(value, len(value))
    if len(text) <= longest:
        return text
    tail = min(_TAIL, longest // 3)
    return f"{text[: longest - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{text[-tail:]}"


def ends_of(text: str) -> tuple[str, str]:
    """A long text as its beginning, which a page may cut, and its end; no letter is divided from its accents."""
    at = max(len(text) - _TAIL, 0)
    while 0 < at < len(text) and (unicodedata.combining(text[at]) or text[at] in _JOINERS or text[at - 1] in _JOINERS):
        at += 1
    return text[:at], text[at:]


def head_words(title: str) -> tuple[str, str]:
    """A head of a column as its beginning, which may be broken into lines, and its last word or dimension."""
    at = max(title.rfind(" "), title.rfind(",")) + 1
    return title[:at], title[at:]


def with_values(sentence: str) -> Markup:
    """A sentence whose quoted values cannot change the direction of what stands around them."""
    from markupsafe import Markup, escape  # noqa: PLC0415  # of the extra plot

    parts = (
        f"<bdi>{escape(part)}</bdi>" if at % 2 else escape(part) for at, part in enumerate(_QUOTED.split(sentence))
    )
    return Markup("".join(parts))


def with_links(sentence: str) -> Markup:
    """A sentence of the operator, whose addresses are links."""
    from markupsafe import Markup, escape  # noqa: PLC0415  # of the extra plot

    parts = (
        Markup('<a href="{0}">{0}</a>').format(part) if at % 2 else escape(part)
        for at, part in enumerate(_ADDRESS.split(sentence))
    )
    return Markup("".join(parts))


def group_words(group: str) -> Markup:
    """A group such as ``country=DE,arm=new`` that may be broken into lines between its dimensions."""
    from markupsafe import Markup  # noqa: PLC0415  # of the extra plot

    return Markup(",<wbr>").join(group.split(","))


def in_words(names: Sequence[str], most: int = 5) -> str:
    """Format as ``a, b and 3 more``."""
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"
