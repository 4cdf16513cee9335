"""What the server takes for reports that are read, counted and estimated, step by step, beside the fastest peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from labs.benchmarks.measure import cpu_seconds
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch

_REPEATS = 200
_TIMES = 20
"""Ratio to the fastest peer that is aimed at."""


def _add_symbols(batch: ReportBatch, size: int) -> Any:
    return np.bincount(batch.payloads[:, 0], minlength=size)


def _add_bits(batch: ReportBatch, size: int) -> Any:
    return np.unpackbits(batch.payloads, axis=1, count=size, bitorder="little").sum(axis=0)


PLAIN: dict[str, Callable[[ReportBatch, int], Any]] = {"krr": _add_symbols, "oue": _add_bits}
"""The plain way to read reports of a mechanism in numpy."""


def print_steps(
    specs: Mapping[str, Collection], peers: Mapping[str, float], values: Sequence[str], people: Sequence[int]
) -> None:
    """Print the CPU time of each step in microseconds, and the ratio to the fastest peer up to it.

    Steps are repeated, so that all they need is in the caches. The race measures everything once, after its clients.

    Args:
        specs: the collections of all mechanisms.
        peers: seconds of the fastest peer by mechanism.
        values: what people may hold.
        people: (n,) place of each person's value.
    """
    for name, plain in PLAIN.items():
        spec, peer = specs[name], 1e6 * peers[name]
        batch = spec.perturb([values[value] for value in people], np.random.default_rng(1))
        counts = spec.count(batch)
        print(f"  {name}: fastest other {peer:.0f} us; {_TIMES} times as fast would be {peer / _TIMES:.0f} us")
        reading, counting = _microseconds(plain, batch, len(values)), _microseconds(spec.count, batch)
        _line("plain numpy reads the reports", reading, reading, peer)
        _line("ours: count", counting, counting, peer)
        for step, work in _estimates(spec, counts).items():
            own = _microseconds(work)
            _line(f"ours: {step}", own, counting + own, peer)


def _estimates(spec: Collection, counts: CohortCounts) -> dict[str, Callable[[], Any]]:
    return {
        "unbiased estimate": lambda: spec.estimate(counts, "empirical"),
        "eb": lambda: spec.estimate(counts, "eb"),
        "eb with intervals": lambda: spec.estimate(counts, "eb").ci_low,
    }


def _microseconds(work: Callable[..., Any], *args: Any) -> float:
    return 1e6 * cpu_seconds(lambda: work(*args), _REPEATS)


def _line(step: str, own: float, until_here: float, peer: float) -> None:
    print(f"    {step:<32} {own:7.0f} us   {peer / until_here:6.1f} times as fast as the other", flush=True)
