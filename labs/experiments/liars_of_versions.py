"""The room for lies in the pooled share of a question, if liars choose the version whose reports they send.

    python -m labs.experiments.liars_of_versions

prints the table of docs/estimation.md: lengths of intervals of a share of .2 without errors of chance, if 1 % of the
reports of each version are lies, and if 1 % of all reports are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.false_reports import Lies
from uldp_transforms.ldp.versions.version_weights import version_weights

VALUES = tuple("abcde")
LIARS, SHARE = 0.01, 0.2


class Version(NamedTuple):
    """Number of reports, mechanism and epsilon."""

    number: int
    mechanism: str
    epsilon: float


QUESTIONS = (
    (Version(10_000, "krr", 1.0), Version(10_000, "krr", 1.0)),
    (Version(2_000, "krr", 1.0), Version(1_000, "krr", 2.0)),
    (Version(20_000, "krr", 1.0), Version(1_000, "krr", 2.0)),
    (Version(20_000, "krr", 1.0), Version(1_000, "krr", 4.0)),
    (Version(20_000, "rappor", 0.5), Version(500, "krr", 4.0)),
    (Version(1_000, "krr", 1.0), Version(20_000, "krr", 2.0)),
)


def collection(version: Version) -> Collection:
    form = {"id": "q", "version": 1, "alphabet": {"id": "closed", "values": list(VALUES)}}
    return Collection.from_json(form | {"mechanism": {"id": version.mechanism, "epsilon": version.epsilon}})


def lengths(versions: tuple[Version, ...]) -> tuple[float, float, float]:
    """Weight of the last version, and both lengths."""
    models, sizes = [collection(version) for version in versions], np.array([version.number for version in versions])
    weights, _ = version_weights(tuple(models), VALUES).of(sizes)
    told = Lies.of_versions(models, VALUES, LIARS, sizes, weights)
    each = LIARS * (weights * (told.most - told.least)).sum(axis=0) / (1 - LIARS)
    low, high = told.bounds(*[np.full(len(VALUES), SHARE)] * 2)
    return float(weights[-1, 0]), float(each[0]), float((high - low)[0])


def rows() -> Iterator[tuple[str, float, float, float]]:
    """The versions, and ``lengths``."""
    for versions in QUESTIONS:
        name = " + ".join(f"{one.number:,} {one.mechanism} at {one.epsilon:g}" for one in versions)
        yield (name, *lengths(versions))


def main() -> None:
    print("| versions | weight of the second | 1 % of each version | 1 % of all reports |")
    print("|---|---|---|---|")
    for name, weight, each, together in rows():
        print(f"| {name} | {weight:.2f} | {each:.3f} | {together:.3f} |")


if __name__ == "__main__":
    main()
