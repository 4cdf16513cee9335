"""Rows at several levels of confidence: all intervals depend on the level, and nothing else does.

Intervals are found by walking through the fields of rows, so that those of a new field are examined too.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Set
from typing import Any

import numpy as np

from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.rows.row_types import WindowedEstimate

LEVELS = (0.8, 0.9, 0.95, 0.99)
CLOSED: dict[str, Any] = {
    "id": "closed",
    "version": 1,
    "alphabet": {"id": "closed", "values": ["a", "b", "c", "d"]},
    "mechanism": {"id": "krr", "epsilon": 2.0},
}
ORDERED: dict[str, Any] = CLOSED | {
    "id": "numbers",
    "alphabet": {"id": "ordered", "low": 0, "high": 10, "num_bins": 10},
}
Job = Callable[[float], list[Any]]
"""Makes rows at a level."""


def drawn(spec: dict[str, Any], values: list[Any], *names: object, number: int = 4_000) -> tuple[Collection, Any]:
    """A collection and the counts of reports of people whose values become less frequent along the list."""
    item, rng = Collection.from_json(spec), generator("confidence", *names)
    weights = 1 / np.arange(1, len(values) + 1)
    chosen = [values[at] for at in rng.choice(len(values), number, p=weights / weights.sum())]
    return item, item.count(item.perturb(chosen, rng))


BINS = "numbers curve"
"""Edges of bins, which have the names of ends but are no interval."""


def leaves(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """All numbers and texts of a row, with the names and positions that lead to them."""
    if hasattr(found, "_asdict"):
        found = as_dict(found) if isinstance(found, WindowedEstimate) else found._asdict()
    if dataclasses.is_dataclass(found):
        found = vars(found)
    if isinstance(found, np.ndarray):
        found = found.tolist()
    if isinstance(found, dict):
        for name, inner in found.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(found, (list, tuple)):
        for at, inner in enumerate(found):
            yield from leaves(inner, (*path, at))
    else:
        yield path, found


def kind_of(path: tuple[Any, ...]) -> str | None:
    """The kind of the interval whose end this is, such as ``numbers mean display``; None for no end."""
    names = [name for name in path if isinstance(name, str) and name != "estimates"]
    last = names[-1] if names else ""
    if last.rpartition("_")[2] not in ("low", "high"):
        return None
    kind = " ".join(filter(None, (*names[:-1], last.rpartition("_")[0])))
    return None if kind == BINS else kind


def ends(rows: list[Any]) -> dict[tuple[Any, ...], tuple[str, Any]]:
    """Path of each end -> its kind and its number."""
    return {path: (kind, number) for path, number in leaves(rows) if (kind := kind_of(path)) is not None}


def is_open(end: float | None) -> bool:
    return end is None or bool(np.isnan(end))


def check_longer_intervals(job: Job, expected: Set[str]) -> None:
    """Each contains that of a lower level, and each kind has some that are really longer; the kinds that must be there
    are."""
    told = {level: ends(job(level)) for level in LEVELS}
    for lower, higher in itertools.pairwise(LEVELS):
        kinds: dict[str, list[bool]] = {}
        assert told[lower].keys() == told[higher].keys()
        for path, (kind, number) in told[lower].items():
            sign = -1 if str(path[-1] if isinstance(path[-1], str) else path[-2]).endswith("low") else 1
            wider = told[higher][path][1]
            if is_open(number):  # or not selected
                continue
            if kind == "selected" and is_open(wider):  # not found at the higher level
                continue
            assert wider is None or sign * (wider - number) >= -1e-12, (path, lower, number, wider)
            kinds.setdefault(kind, []).append(wider is None or sign * (wider - number) > 1e-9)
        assert all(map(any, kinds.values())), {kind: sum(marks) for kind, marks in kinds.items()}
        assert expected <= kinds.keys()


DEPEND = {"confidence", "selected_low", "selected_high", "noticeable"}
"""Fields that depend on the level and are no ends of an interval, or belong to what is found at it."""


def check_what_does_not_depend(job: Job) -> None:
    """All numbers and texts that are no ends are the same at all levels."""
    rows = {level: job(level) for level in LEVELS}
    others = {
        level: {
            path: number
            for path, number in leaves(found)
            if kind_of(path) is None and not DEPEND & {name for name in path if isinstance(name, str)}
        }
        for level, found in rows.items()
    }
    assert others[CONFIDENCE]
    for level in LEVELS:
        assert repr(others[level]) == repr(others[CONFIDENCE])
        for row in rows[level]:
            assert getattr(row, "confidence", level) == level
