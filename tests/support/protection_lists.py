"""Lists of mechanisms by what their reports reveal, which are written into sentences of pages.

A list stands on a page between ``<!-- mechanisms: NAME -->`` and ``<!-- end -->``, where NAME is one of LISTS.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism

_PLACE = re.compile(r"(<!-- mechanisms: (.+?) -->).*?(<!-- end -->)", re.DOTALL)


def _derives_epsilon(of: Mechanism) -> bool:
    return of.takes("matrix")


def _declares_inputs(of: Mechanism) -> bool:
    return of.protected_inputs is not None


LISTS: dict[str, Callable[[Mechanism], bool]] = {
    "epsilon is derived": _derives_epsilon,
    "states are protected": _declares_inputs,
    "some reports are in clear": lambda of: of.sends_clear and not (_derives_epsilon(of) or _declares_inputs(of)),
    "every report is protected": lambda of: not (of.sends_clear or _derives_epsilon(of) or _declares_inputs(of)),
}
"""Name of a list -> whether an instance puts its mechanism there."""


def members(name: str) -> list[str]:
    """Ids of a list: of mechanisms that have an instance in it, or, for ``every report is protected``, no other."""
    from tests.support.cases import MECHANISM_CASES  # noqa: PLC0415  # cases reads golden files by ``golden``

    decided = all if name == "every report is protected" else any
    return [id_ for id_ in MECHANISMS if decided(map(LISTS[name], MECHANISM_CASES[id_]))]


def filled(page: str) -> str:
    """The page with the current lists in their places."""

    def listed(place: re.Match[str]) -> str:
        *first, last = [f"`{id_}`" for id_ in members(place[2])]
        return f"{place[1]}{', '.join(first)}{' and ' if first else ''}{last}{place[3]}"

    return _PLACE.sub(listed, page)
