"""Refusals of questions whose values have public blocks or levels: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uldp_transforms.ldp.alphabets import Blocks
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.nested.nested_channel import Level
from uldp_transforms_planner.planning import ClosedQuestion

CITIES = Blocks(blocks={"berlin": ["mitte", "tegel"], "paris": ["nord", "sud", "est"]}, sensitive=("mitte", "nord"))
NAMES = ("mitte", "nord", "tegel", "sud", "est")
LEVELS = (Level(1.0, ("mitte",)), Level(2.0, ("nord",)))


def asked(**fields: Any) -> Callable[[], ClosedQuestion]:
    return lambda: ClosedQuestion(**({"num_values": 5, "num_sensitive": 2, "names": NAMES} | fields))


_OF_BLOCKS = (
    "ClosedQuestion.names must be the values of the blocks in the order of their symbols, 2 of them sensitive, "
)
_OF_LEVELS = "ClosedQuestion.levels must have each sensitive value of names once, got others"

REFUSED = [
    (SpecError, call, sentence)
    for call, sentence in [
        (asked(blocks=CITIES, names=None), f"{_OF_BLOCKS}got others"),
        (asked(blocks=CITIES, names=("nord", "mitte", "tegel", "sud", "est")), f"{_OF_BLOCKS}got others"),
        (asked(blocks=CITIES, num_sensitive=3), f"{_OF_BLOCKS}got others"),
        (asked(levels=LEVELS, names=None), _OF_LEVELS),
        (asked(levels=LEVELS, num_sensitive=3), _OF_LEVELS),
        (asked(levels=(LEVELS[0], Level(2.0, ("sud",)))), _OF_LEVELS),
    ]
]
