"""Base class of the papers' experiments, and their common parts: simulated clients, losses, data."""

from __future__ import annotations

import abc
import csv
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.ldp.sampling import SeededSource, uniform_integers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

DATA = Path(__file__).parents[1] / "data"

_REPORTS_AT_ONCE = 1 << 15
_BYTES_AT_ONCE = 1 << 24  # of payloads, where they are long


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """One claim of a paper, and its verdict.

    Attributes:
        claim: one sentence.
        holds: whether the rows of this run show it.
        evidence: the numbers, one line.
    """

    claim: str
    holds: bool
    evidence: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """Results of one run of an experiment.

    Attributes:
        rows: the table; flat, written as CSV. Rows may have different columns.
        verdicts: one for each claim.
    """

    rows: list[dict[str, Any]]
    verdicts: list[Verdict]


class Experiment(abc.ABC):
    """One figure or table of a paper.

    Attributes:
        id: name on the command line and of the files.
        title: one line.
        source: paper and figure.
        abstract: what is simulated and in which way it differs from the paper, in a few sentences.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    abstract: ClassVar[str]

    @abc.abstractmethod
    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        """Simulate, and judge the claims.

        Args:
            rng: all randomness.
            reduced: a smaller experiment of some seconds, which still shows what the paper claims.
            runs: repetitions over which losses are averaged; None: as many as the experiment thinks right.
        """

    @abc.abstractmethod
    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        """Draw the rows into an empty figure of matplotlib."""


def progress(items: Iterable[T], what: str) -> Iterator[T]:
    """The items, each named on standard error when it starts, if that is a terminal."""
    for item in items:
        if sys.stderr.isatty():
            print(f"\r\033[K{what} {item}", end="", file=sys.stderr, flush=True)
        yield item
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


# ----------------------------------------------------------------------------------------------- simulated clients


def simulate_counts(
    collection: Collection, values: Sequence[str], people: np.ndarray, rng: np.random.Generator
) -> CohortCounts:
    """What the collector counts when these people report, each once.

    Args:
        collection: what they are asked.
        values: S canonical texts.
        people: (S,) integers, how many hold each value.
        rng: of the clients.
    """
    total = CohortCounts.empty(collection.num_cohorts, collection.num_cells)
    for cohorts, payloads in _reports(collection, values, people, rng):
        total += collection.count_groups(payloads, cohorts, 1)[0]
    return total


def simulate_reports(
    collection: Collection, values: Sequence[str], people: np.ndarray, rng: np.random.Generator
) -> ReportBatch:
    """The reports themselves, in the order of the values, for estimators that need more than counts."""
    parts = list(_reports(collection, values, people, rng))
    cohorts = np.concatenate([part for part, _ in parts])
    return ReportBatch(
        fingerprint=collection.fingerprint,
        cohorts=cohorts.astype(np.uint16),
        payloads=np.concatenate([part for _, part in parts]),
        event_times=np.zeros(len(cohorts), np.int64),
        report_ids=np.zeros((0, ID_BYTES), np.uint8),
        seeded=True,
    )


def _reports(
    collection: Collection, values: Sequence[str], people: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cohorts and payloads, some reports at a time; the clients of ``Collection.perturb`` without texts and ids."""
    source, mechanism = SeededSource(rng), collection.mechanism
    table = collection.alphabet.symbol_table(tuple(values), collection.num_cohorts)
    held = np.repeat(np.arange(len(values)), people)
    step = max(1, min(_REPORTS_AT_ONCE, _BYTES_AT_ONCE // mechanism.payload_size))
    for start in range(0, len(held), step):
        here = held[start : start + step]
        cohorts = uniform_integers(source.words(len(here)), collection.num_cohorts)
        symbols = table[cohorts if len(table) > 1 else 0, here]
        yield cohorts, mechanism.perturb(symbols, source)


def draw_people(frequencies: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """(S,) int64: how many of ``number`` independent people hold each value; ``frequencies`` sum to 1."""
    return rng.multinomial(number, frequencies / frequencies.sum())


def sample_people(people: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """(S,) int64: ``number`` of these people drawn without replacement."""
    return rng.multivariate_hypergeometric(people, number, method="marginals")


# ---------------------------------------------------------------------------------------------------------- losses


def shares(people: np.ndarray) -> np.ndarray:
    """Frequencies of values with these counts."""
    return people / people.sum()


def total_variation(estimated: np.ndarray, true: np.ndarray) -> float:
    """Half of the l1 distance."""
    return float(np.abs(estimated - true).sum() / 2)


def squared_error(estimated: np.ndarray, true: np.ndarray) -> float:
    """The square of the l2 distance."""
    return float(((estimated - true) ** 2).sum())


# ------------------------------------------------------------------------------------------------------------ data


def read_table(name: str) -> dict[str, list[str]]:
    """The columns of a CSV file among the data of this package."""
    with open(DATA / name, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {column: [row[column] for row in rows] for column in rows[0]}
