"""Trials of mechanisms and estimators on given values: errors, coverage and speed.

Every repetition samples people from the file; each sends one report, and the collector estimates the shares. Errors are
relative to the shares in the file, which is the sampled population.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms_planner.evaluate.trial_ways import Way


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """Definition of a trial.

    Attributes:
        ways: configurations to try, all for the same values.
        values: the distinct texts in the file.
        held: (n,) position of each person's value.
        asked: texts whose shares are estimated and evaluated; some may be held by nobody.
        is_open: whether people may hold other texts too.
        estimators: ids of the estimators to evaluate.
        repetitions: number of repetitions.
        num_reports: number of people in each repetition.
        seed: seed of the random numbers; None: a new one each time.
        confidence: of the intervals.
    """

    ways: tuple[Way, ...]
    values: tuple[str, ...]
    held: np.ndarray
    asked: tuple[str, ...]
    is_open: bool
    estimators: tuple[str, ...]
    repetitions: int
    num_reports: int
    seed: int | None
    confidence: float = CONFIDENCE

    @property
    def shares(self) -> np.ndarray:
        """(len(asked),) shares among the people in the file."""
        counted = np.bincount(self.held, minlength=len(self.values)) / len(self.held)
        place = dict(zip(self.values, counted.tolist()))
        return np.array([place.get(value, 0.0) for value in self.asked])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """Means over values and repetitions; the fields are those of ``--json``. Numbers are None if there is a ``reason``.

    Attributes:
        mechanism, epsilon, estimator: the configuration; epsilon and estimator are None if none is applicable.
        reason: why the configuration cannot be tried; None if it was tried.
        payload_bytes: size of a report without its header.
        raw_error: root mean square error of raw estimates.
        error: root mean square error of ``frequency``.
        l1: sum over values of the absolute error of ``frequency``.
        covered: share of the intervals that contain the share in the file.
        half_width: mean half width of these intervals.
        client_us, collector_us: microseconds per report to perturb, and to count and estimate.
    """

    mechanism: str
    epsilon: float | None
    estimator: str | None = None
    reason: str | None = None
    payload_bytes: int | None = None
    raw_error: float | None = None
    error: float | None = None
    l1: float | None = None
    covered: float | None = None
    half_width: float | None = None
    client_us: float | None = None
    collector_us: float | None = None


def evaluate(trial: Trial) -> list[Outcome]:
    """Outcomes: one per configuration and estimator, or one for a configuration that cannot be tried."""
    seeds = np.random.SeedSequence(trial.seed).spawn(len(trial.ways))
    found: list[Outcome] = []
    for way, seed in zip(trial.ways, seeds):
        if way.reason is not None:
            found.append(Outcome(mechanism=way.mechanism, epsilon=way.epsilon, reason=way.reason))
        else:
            found += _tried(trial, way, np.random.default_rng(seed))
    return found


def _tried(trial: Trial, way: Way, rng: np.random.Generator) -> Iterator[Outcome]:
    """One outcome per estimator, all from the same reports."""
    people, rows = np.array(trial.values, dtype=object), []
    for _ in range(trial.repetitions):
        collection, texts = way.drawn(rng), people[rng.choice(trial.held, trial.num_reports)].tolist()
        began = time.perf_counter()
        batch = collection.perturb(texts, rng)
        client = time.perf_counter() - began
        rows.append([_judged(trial, collection, batch, name, client) for name in trial.estimators])
    for name, of_estimator in zip(trial.estimators, zip(*rows)):
        blank = Outcome(mechanism=way.mechanism, epsilon=way.epsilon, estimator=name)
        refusals = [row for row in of_estimator if isinstance(row, str)]
        if refusals:
            yield dataclasses.replace(blank, reason=refusals[0])
        else:
            yield _filled(blank, collection.mechanism.payload_size, np.array(of_estimator))


def _judged(
    trial: Trial, collection: Collection, batch: ReportBatch, estimator: str, client: float
) -> tuple[float, ...] | str:
    """Mean squared errors and the other numbers of one repetition; or the reason why there is no estimate."""
    began = time.perf_counter()
    counts: CohortCounts = collection.count(batch)
    refusal = ESTIMATORS[estimator]().refusal(collection)
    if refusal is not None:
        return refusal
    try:
        estimate = collection.estimate(counts, estimator, trial.asked if trial.is_open else None)
    except EstimationError as error:
        return str(error)
    low, high = estimate.intervals(trial.confidence)
    collector, shares = time.perf_counter() - began, trial.shares
    place = {value: at for at, value in enumerate(estimate.values)}
    chosen = [place[value] for value in trial.asked]
    errors = estimate.frequencies[chosen] - shares
    return (
        float(((estimate.raw_frequencies[chosen] - shares) ** 2).mean()),
        float((errors**2).mean()),
        float(np.abs(errors).sum()),
        float(((low[chosen] <= shares) & (shares <= high[chosen])).mean()),
        float(((high - low)[chosen] / 2).mean()),
        client / trial.num_reports * 1e6,
        collector / trial.num_reports * 1e6,
    )


def _filled(blank: Outcome, payload_bytes: int, rows: np.ndarray) -> Outcome:
    """The outcome with the means of the rows (R, 7) from ``_judged``."""
    raw, error, *others = (float(mean) for mean in rows.mean(axis=0))
    names = ("l1", "covered", "half_width", "client_us", "collector_us")
    numbers: dict[str, Any] = dict(zip(names, others)) | {"raw_error": raw**0.5, "error": error**0.5}
    return dataclasses.replace(blank, payload_bytes=payload_bytes, **numbers)


def tried(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Outcomes of configurations that could be tried."""
    return [of for of in outcomes if of.reason is None]
