"""Colours can be told apart, on light and on dark pages, by people who see colours in different ways."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from uldp_transforms_report import colours

LEAST_CONTRAST = 3.0  # of graphics, Web Content Accessibility Guidelines 2.2, 1.4.11
LEAST_DISTANCE = 0.14  # of two groups in OKLab; the colours of Okabe and Ito that reach the contrast have .08

SEEN = {
    "by most people": np.eye(3),
    "without red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "without green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "without blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Linear colours as people see them: Machado, Oliveira and Fernandes (2009), severity 1."""

PAGES = [(colours.PAPER, [*colours.GROUPS]), (colours.DARK_PAPER, [*colours.GROUPS.values()])]


def linear(colour: str) -> np.ndarray:
    of = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(of <= 0.04045, of / 12.92, ((of + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(np.dot([0.2126, 0.7152, 0.0722], linear(colour)))


def oklab(of: np.ndarray) -> np.ndarray:
    """Ottosson (2020)."""
    cones = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ of
    )
    return (
        np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        )
        @ cones
    )


def distances(of: list[str]) -> Iterator[tuple[float, str, str, str]]:
    for (way, seen), (a, b) in itertools.product(SEEN.items(), itertools.combinations(of, 2)):
        places = [oklab(np.clip(np.asarray(seen) @ linear(one), 0, 1)) for one in (a, b)]
        yield float(np.linalg.norm(places[0] - places[1])), way, a, b


@pytest.mark.parametrize(("paper", "of"), PAGES)
def test_groups_are_told_apart_by_everybody(paper: str, of: list[str]) -> None:
    assert min(distances(of))[0] > LEAST_DISTANCE, min(distances(of))
    for colour in of:
        low, high = sorted((luminance(colour), luminance(paper)))
        assert (high + 0.05) / (low + 0.05) > LEAST_CONTRAST, colour


def test_a_group_has_one_colour_whatever_the_order() -> None:
    """Those beyond the colours that can be told apart are grey."""
    first = [*colours.GROUPS]
    assert colours.colours_of_groups(["b", "a", "b"]) == dict(zip("ab", first))
    many = colours.colours_of_groups("hgfedcba")
    assert many == colours.colours_of_groups("abcdefgh")
    assert [many[name] for name in "abcdefgh"] == [*first, colours.PLAIN, colours.PLAIN]


def test_dark_pages_have_all_dark_colours() -> None:
    """Shapes have light colours, which the style sheet replaces by those of its palette: light, or dark."""
    style = (Path(colours.__file__).parent / "page.css").read_text("utf-8")
    light, dark = (dict(re.findall(r"(--[a-z0-9-]+): (#[0-9a-f]{6})", part)) for part in style.split("@media", 2)[:2])
    assert (light["--paper"], dark["--paper"]) == (colours.PAPER, colours.DARK_PAPER)
    for shape, own in (colours.DARK | colours.GROUPS).items():
        for what in ("fill", "stroke") if shape != colours.LINE else ("stroke",):
            (name,) = re.findall(rf'\[{what}="{shape}"\] {{ {what}: var\((--[a-z0-9-]+)\)', style)
            assert (light[name], dark[name]) == (shape, own)
    for shape in (colours.PLAIN, *colours.GROUPS):  # groups are drawn in tables too, not only in charts
        assert f'\n[fill="{shape}"]' in style and f'; }} [stroke="{shape}"]' in style
