"""Pooling 100 versions of a question, as a ratio to estimating each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labs.benchmarks.measure import cpu_seconds
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimate
from uldp_transforms.ldp.estimators.estimator import Decoder
from uldp_transforms.ldp.versions import VersionedQuestion, questions_of

VERSIONS, REPORTS, REPEATS = 100, 2000, 25


def main() -> None:
    print(f"pooling {VERSIONS} versions of k-RR, with 95 % intervals and the test of agreement (CPU milliseconds)")
    for size in (2, 16, 64):
        question = _question(size)
        counts = _counts(question.collections, size)
        by_fingerprint = {one.fingerprint: each for one, each in zip(question.collections, counts)}
        for name in ("eb", "projected"):
            decoder = ESTIMATORS[name]()
            assert isinstance(decoder, Decoder)
            question.estimate(by_fingerprint, decoder)  # what depends on the versions only is kept
            alone, together = 1e3 * np.array(_times(question, decoder, counts, by_fingerprint))
            print(f"  {size:>3} values, {name:<10} each {alone:6.1f}, pooled {together:6.1f}: {together / alone:5.2f}")


def _times(
    question: VersionedQuestion,
    decoder: Decoder,
    counts: Sequence[CohortCounts],
    by_fingerprint: dict[bytes, CohortCounts],
) -> tuple[float, float]:
    def each() -> None:
        for one, of_version in zip(question.collections, counts):
            _shown(decoder.estimate(one, of_version))

    def together() -> None:
        _shown(question.estimate(by_fingerprint, decoder).estimate)

    # In turns, so that other processes slow both down.
    times = [(cpu_seconds(each, repeats=1), cpu_seconds(together, repeats=1)) for _ in range(REPEATS)]
    alone, pooled = np.min(times, axis=0)
    return float(alone), float(pooled)


def _shown(estimate: Estimate) -> None:
    assert (estimate.ci_low <= estimate.ci_high).all()


def _question(size: int) -> VersionedQuestion:
    alphabet = {"id": "closed", "values": [f"value {place}" for place in range(size)]}
    form = {"id": "benchmark", "question": "benchmark", "alphabet": alphabet}
    (question,) = questions_of(
        Collection.from_json(form | {"version": 1 + place, "mechanism": {"id": "krr", "epsilon": 0.5 + place / 32}})
        for place in range(VERSIONS)
    )
    return question


def _counts(versions: Sequence[Collection], size: int) -> list[CohortCounts]:
    rng, shares = np.random.default_rng(1), 1 / np.arange(1, size + 1)
    laws = [one.mechanism.response(shares / shares.sum()) for one in versions]
    cells = [rng.multinomial(REPORTS, law / law.sum()) for law in laws]
    return [CohortCounts(np.array([REPORTS], np.int64), row[np.newaxis].astype(np.int64)) for row in cells]
