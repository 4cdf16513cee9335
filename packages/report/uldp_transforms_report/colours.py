"""The colours of pages and pictures: of what is drawn, and of groups.

Colours are those of light pages; the style sheet of the page maps each of them to its colour on dark pages (``DARK``).
"""

from __future__ import annotations

from collections.abc import Iterable

PLAIN, SMOOTHED, TRUTH, INK, LINE, PAPER = "#6b7f92", "#0a63b0", "#b3430e", "#2b3640", "#dfe5ea", "#ffffff"
"""Colours of a single window, of smoothed values, of the truth, of text, of the grid, and of the page."""

DARK = {PLAIN: "#93a5b6", SMOOTHED: "#6cb0f2", TRUTH: "#f0935f", INK: "#e8edf2", LINE: "#3a4652"}
"""Colour of light pages -> colour of dark pages, whose paper is ``DARK_PAPER``."""

DARK_PAPER = "#12181e"

GROUPS = {
    "#6a37bf": "#dbc5fd",
    "#139948": "#56f487",
    "#863709": "#fe6a00",
    "#e45cbe": "#c18bae",
    "#0a2163": "#4068ca",
    "#491511": "#975b60",
}
"""Colours of groups, light -> dark: a contrast of at least 3 with the paper, and apart for every kind of dichromacy."""


def colours_of_groups(groups: Iterable[str]) -> dict[str, str]:
    """Group -> its colour wherever the page draws it.

    Args:
        groups: names of all groups of the page, in any order. The first ones by name get a colour of their own, all
            others ``PLAIN``: more colours could not be told apart.
    """
    names = sorted(set(groups))
    return dict.fromkeys(names, PLAIN) | dict(zip(names, GROUPS))
