"""Metrics of a running job: Beam counters and distributions in the namespace ``uldp``.

They are for dashboards. Exact numbers are in the ledger, because engines may count a repeated bundle twice.
"""

from __future__ import annotations

from apache_beam.metrics.metric import Metrics
from apache_beam.runners.worker import statesampler

from uldp_transforms.collector.metric_names import (
    ACCEPTED,
    AFTER_RELEASE,
    ALARMS,
    DUPLICATES,
    ESTIMATE_MS,
    NAMESPACE,
    OFF_BY,
    READ_BYTES,
    RECEIVED,
    REJECTED,
    SEEN,
    UNREAD_FILES,
    UNREAD_MESSAGES,
    WINDOWS,
)
from uldp_transforms.messages.rejection import Rejection

__all__ = [
    "ACCEPTED",
    "AFTER_RELEASE",
    "ALARMS",
    "DUPLICATES",
    "ESTIMATE_MS",
    "NAMESPACE",
    "OFF_BY",
    "READ_BYTES",
    "RECEIVED",
    "REJECTED",
    "SEEN",
    "UNREAD_FILES",
    "UNREAD_MESSAGES",
    "WINDOWS",
    "count",
    "count_rejected",
    "observe",
    "start_bundle",
]


def count(number: int, name: str, kind: str = "") -> None:
    """Add to a counter, ``name`` or ``name_kind``."""
    if number:
        full_name = f"{name}_{kind}" if kind else name
        Metrics.counter(NAMESPACE, full_name).inc(number)
        SEEN[full_name] += number


def count_rejected(rejection: Rejection) -> None:
    """Add a rejection to the counters."""
    code = rejection.reason.code
    count(rejection.num_reports, REJECTED, code)
    count(rejection.num_messages, UNREAD_MESSAGES, code)
    count(rejection.num_files, UNREAD_FILES, code)


def observe(value: int, name: str, kind: str = "") -> None:
    """Add a value to a distribution, ``name`` or ``kind_name``."""
    Metrics.distribution(NAMESPACE, f"{kind}_{name}" if kind else name).update(value)


def start_bundle() -> None:
    """Prepare the metrics of a bundle; call it in ``start_bundle`` of each DoFn that counts.

    Beam's local engine for streams creates a container of metrics for each bundle, but its sampler (with the name "",
    unlike those of other engines), which finds the state of a step by name, always returns the container of the first
    bundle. Without the old state the next bundle gets its own container. The sampler keeps the old
    containers, which take a few KB per bundle; the engine itself keeps as much.
    """
    sampler = statesampler.get_current_tracker()
    if sampler is not None and getattr(sampler, "stage_name", None) == "":
        states, step = getattr(sampler, "_states_by_name", {}), sampler.current_state().name.step_name
        for name in [name for name in states if name.step_name == step]:
            del states[name]
