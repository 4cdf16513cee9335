"""Maximum likelihood: the closed form, and EM against a direct transcription of EM as it is published."""

from __future__ import annotations

import resource
import time

import numpy as np

from labs.benchmarks.measure import cpu_seconds
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.estimators.expectation_maximization import TOLERANCE
from uldp_transforms.ldp.sampling import SeededSource

_MOST_STEPS = 2000


def main() -> None:
    print("maximum likelihood (library; CPU seconds)")
    _closed_form()
    for mechanism, num_sensitive in (("rappor", 800), ("urap", 240)):
        _compare(mechanism, 800, num_sensitive, 15_000, epsilon=6.0)
    for mechanism, num_sensitive in (("rappor", 12_800), ("urap", 3_400)):  # the size of the published experiment
        spec, batch = _reports(mechanism, 12_800, num_sensitive, 240_000, epsilon=6.0)
        begin = time.process_time()
        estimate = spec.estimate_reports(batch, "em")
        seconds = time.process_time() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"  em {mechanism} 12,800 values, 240,000 reports: {seconds:6.1f} s, proved to be within "
            f"{estimate.likelihood_gap:.4f} of the maximum, peak memory so far {peak:.1f} GiB",
            flush=True,
        )


def _closed_form() -> None:
    spec, batch = _reports("urr", 12_800, 3_400, 240_000, epsilon=6.0)
    counts = spec.count(batch)
    seconds = cpu_seconds(lambda: spec.mechanism.most_likely(counts.cells[0]))
    print(f"  ml urr 12,800 values: {1000 * seconds:.2f} ms", flush=True)


def _compare(mechanism: str, num_values: int, num_sensitive: int, num_reports: int, epsilon: float) -> None:
    """The same likelihood, once by the library and once as the paper writes it down."""
    spec, batch = _reports(mechanism, num_values, num_sensitive, num_reports, epsilon)
    begin = time.process_time()
    estimate = spec.estimate_reports(batch, "em")
    ours = time.process_time() - begin
    best = np.zeros(num_values)
    best[spec.alphabet.symbol_table(estimate.values, 1)[0]] = estimate.frequencies
    channel = np.exp(spec.mechanism.log_prob(batch.payloads))
    begin = time.process_time()
    steps = _direct(channel, target=float(np.log(channel @ best).sum()) - TOLERANCE)
    direct = time.process_time() - begin
    print(
        f"  em {mechanism} {num_values} values, {num_reports:,} reports, to within {TOLERANCE} of the maximum: "
        f"{ours:.2f} s, direct {direct:.1f} s in {steps} steps: {direct / ours:.0f} x",
        flush=True,
    )


def _direct(channel: np.ndarray, target: float) -> int:
    """p(x) <- mean over reports y of p(x) Q(y|x) / sum_x' p(x') Q(y|x'), from the uniform distribution.

    Stops at a given log-likelihood, which it could not know by itself; returns the number of steps.
    """
    point = np.full(channel.shape[1], 1 / channel.shape[1])
    for step in range(_MOST_STEPS):
        joint = channel * point
        outcomes = joint.sum(axis=1, keepdims=True)
        if np.log(outcomes).sum() >= target:
            return step
        point = (joint / outcomes).mean(axis=0)
    return _MOST_STEPS


def _reports(
    mechanism: str, num_values: int, num_sensitive: int, num_reports: int, epsilon: float
) -> tuple[Collection, ReportBatch]:
    """Reports of people whose values follow a Zipf distribution, in an order unrelated to that of the symbols."""
    values = [f"value {i}" for i in range(num_values)]
    spec = Collection.from_json(
        {
            "id": "benchmark",
            "version": 1,
            "alphabet": {"id": "closed", "values": values, "sensitive": values[:num_sensitive]},
            "mechanism": {"id": mechanism, "epsilon": epsilon},
        }
    )
    rng = np.random.default_rng(5)
    shares = rng.permutation(1 / np.arange(1, num_values + 1))
    symbols = rng.choice(num_values, num_reports, p=shares / shares.sum())
    batch = ReportBatch(
        fingerprint=spec.fingerprint,
        cohorts=np.zeros(num_reports, dtype=np.uint16),
        payloads=spec.mechanism.perturb(symbols, SeededSource(rng)),
        event_times=np.zeros(num_reports, dtype=np.int64),
        report_ids=np.zeros((0, 16), dtype=np.uint8),
        seeded=True,
    )
    return spec, batch
