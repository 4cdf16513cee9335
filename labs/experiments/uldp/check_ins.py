"""Places of people's check-ins, and their reasons: at home, at work, or elsewhere. For the personalised mechanism with
semantic tags."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from labs.experiments.frame import draw_people, read_table, shares
from labs.experiments.uldp.people_and_mechanisms import MECHANISMS
from uldp_transforms.ldp import Collection

TAGS = ("home", "work")
SIDE = 25
"""Of the grid of the simulated city."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class CheckIns:
    """The joint distribution of cell and reason.

    Attributes:
        name: of the data.
        values: K cells.
        sensitive: cells that are sensitive to everybody; nobody lives or works there.
        joint: (3, K) shares that sum to 1: of check-ins elsewhere, at home, at work.
    """

    name: str
    values: tuple[str, ...]
    sensitive: tuple[str, ...]
    joint: np.ndarray

    @property
    def frequencies(self) -> np.ndarray:
        """(K,): shares of cells, over all reasons."""
        return self.joint.sum(axis=0)

    @property
    def hideable(self) -> np.ndarray:
        """(K,) bool: cells that are not sensitive for everybody."""
        return ~np.isin(self.values, self.sensitive)

    @property
    def behind_tags(self) -> np.ndarray:
        """(2, K): the distribution of cells behind each tag."""
        return self.joint[1:] / self.joint[1:].sum(axis=1, keepdims=True)

    @property
    def intermediate(self) -> np.ndarray:
        """(K + 2,): what the perturbation sees, cells where people neither live nor work, then tags."""
        return np.append(self.joint[0], self.joint[1:].sum(axis=1))

    def draw(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """(3, K) int64: one check-in each of ``number`` independent people."""
        return draw_people(self.joint.ravel(), number, rng).reshape(self.joint.shape)

    def collection(self, mechanism: str, epsilon: float, background: np.ndarray | None = None) -> Collection:
        """Cells, where people hide their own home and workplace behind tags; (2, K) background knowledge or none."""
        alphabet: dict[str, Any] = {
            "id": "tagged",
            "values": list(self.values),
            "sensitive": list(self.sensitive),
            "tags": list(TAGS),
        }
        if background is not None:
            alphabet["background"] = {tag: self._positive(known) for tag, known in zip(TAGS, background)}
        return self._collection(alphabet, mechanism, epsilon)

    def plain_collection(self, mechanism: str, epsilon: float) -> Collection:
        """The same cells without tags: only what is sensitive to everybody is protected, or everything (RR)."""
        alphabet = {"id": "closed", "values": list(self.values), "sensitive": list(self.sensitive)}
        return self._collection(alphabet, mechanism, epsilon)

    def _positive(self, known: np.ndarray) -> Mapping[str, float]:
        return {value: float(share) for value, share in zip(self.values, known) if share > 0}

    def _collection(self, alphabet: dict[str, Any], mechanism: str, epsilon: float) -> Collection:
        spec = {"id": "check-ins", "version": 1, "alphabet": alphabet}
        return Collection.from_json(spec | {"mechanism": MECHANISMS[mechanism] | {"epsilon": epsilon}})


def city() -> CheckIns:
    """A simulated city on a grid of 25 x 25 cells, 15 of them sensitive.

    On the unit square, with cells taken at their centres: half of the people live round (0.25, 0.35), half round
    (0.7, 0.75); they work round (0.55, 0.5); elsewhere is 70 % round the centre and 30 % round (0.35, 0.65). 10 % of
    each are spread evenly. Of all check-ins 20 % are at home and 25 % at work. Every 41st cell is sensitive.
    """
    values = tuple(f"{row}-{column}" for row in range(SIDE) for column in range(SIDE))
    sensitive = np.arange(20, SIDE**2, 41)
    elsewhere = 0.7 * _round(0.5, 0.5, 0.16) + 0.3 * _round(0.35, 0.65, 0.1)
    home = 0.5 * _round(0.25, 0.35, 0.12) + 0.5 * _round(0.7, 0.75, 0.12)
    joint = np.stack([0.9 * density + 0.1 / SIDE**2 for density in (elsewhere, home, _round(0.55, 0.5, 0.09))])
    joint[1:, sensitive] = 0  # nobody lives or works there
    joint *= (np.array([0.55, 0.2, 0.25]) / joint.sum(axis=1))[:, np.newaxis]
    return CheckIns(name="city", values=values, sensitive=tuple(values[cell] for cell in sensitive), joint=joint)


def _round(x: float, y: float, width: float) -> np.ndarray:
    """A normal density round a point, as shares of cells."""
    centres = (np.arange(SIDE) + 0.5) / SIDE
    density = np.exp(-((centres[:, np.newaxis] - x) ** 2 + (centres - y) ** 2) / (2 * width**2))
    return shares(density.ravel())


def homelocator() -> CheckIns:
    """Messages of 100 people in 662 cells; sensitive are 15 cells, spread evenly, where none of them lives or works."""
    table = read_table("homelocator_cells.csv")
    people = np.array([table[reason] for reason in ("elsewhere", *TAGS)], dtype=np.float64)
    quiet = np.flatnonzero(people[1:].sum(axis=0) == 0)
    sensitive = quiet[np.linspace(0, len(quiet) - 1, 15).astype(int)]
    values = tuple(table["cell"])
    return CheckIns(
        name="homelocator", values=values, sensitive=tuple(values[cell] for cell in sensitive), joint=shares(people)
    )
