"""One row of each kind that the schemas define."""

from __future__ import annotations

from typing import Any

from tests.support.messages_cases import KRR, NOON
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.rejected_report import rejected_row
from uldp_transforms.rows.row_identity import name_of, span_of
from uldp_transforms.rows.row_types import (
    COUNTS_SCHEMA,
    ESTIMATE_SCHEMA,
    HEALTH_SCHEMA,
    LEDGER_SCHEMA,
    REJECTED_SCHEMA,
    VALUE_SCHEMA,
    HealthFinding,
    LedgerRow,
    WindowCounts,
    WindowedEstimate,
    WindowHealth,
)
from uldp_transforms.rows.windowed_estimate import flat, value_estimates
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, BasePeriods

ESTIMATE = KRR.estimate(KRR.count(KRR.perturb(["0", "1", "2"] * 100)), "projected")
UNKNOWN = dict.fromkeys(("unexplained_mass", "unexplained_standard_error", "redistributed_mass", "fit_p_value"))
MOMENTS = [None, NOON, 0, -1, NOON + 7, MIN_EVENT_TIME, MIN_EVENT_TIME + 1, MAX_EVENT_TIME - 1, 9_000_000_000_123]


def estimate_row(start: int | None, **fields: Any) -> WindowedEstimate:
    good = {
        **span_of(start, 1),
        "pane_index": 0,
        "pane_timing": "ON_TIME",
        "num_reports": 300,
        "simulated": True,
        "estimator": "projected",
        "unexplained_mass": ESTIMATE.unexplained_mass,
        "unexplained_standard_error": ESTIMATE.unexplained_standard_error,
        "redistributed_mass": ESTIMATE.redistributed_mass,
        "fit_p_value": 0.25,
        "status": "ok",
        "software": "uldp_transforms 1.2.3",
        "estimates": value_estimates(ESTIMATE),
    }
    return WindowedEstimate(**name_of(KRR) | good | fields)


def counts_row(start: int | None, **fields: Any) -> WindowCounts:
    good = {
        **span_of(start, 1),
        "pane_index": 3,
        "pane_timing": "LATE",
        "complete": True,
        "num_reports": [7, 0, 1 << 40],
        "cells": [1, 2, 3, 0, 0, 0, 1 << 40, 0, 0],
    }
    return WindowCounts(**name_of(KRR) | good | fields)


def health_row(start: int | None, **fields: Any) -> WindowHealth:
    finding = HealthFinding(name="floor", statistic=-9.5, p_value=1e-20, fired=True, sentence="Too few.")
    good = {
        **span_of(start, 1),
        "pane_index": 0,
        "pane_timing": "ON_TIME",
        "num_reports": 300,
        "status": "alarm",
        "findings": [finding, finding._replace(fired=False)],
    }
    return WindowHealth(**name_of(KRR) | good | fields)


def ledger_row(start: int | None, **fields: Any) -> LedgerRow:
    good = {
        **span_of(start, 1),
        "received": 3,
        "accepted": 1,
        "duplicates": 0,
        "rejected": {"malformed": 1, "too_old": 1},
    }
    return LedgerRow(**name_of(KRR) | good | fields)


ROWS: list[tuple[Any, Any]] = [
    *((estimate_row(moment), ESTIMATE_SCHEMA) for moment in MOMENTS),
    *((estimate_row(0, pane_timing=timing, pane_index=1 << 40), ESTIMATE_SCHEMA) for timing in ("EARLY", "LATE")),
    (estimate_row(0, num_reports=None, **UNKNOWN, estimates=[], status="suppressed"), ESTIMATE_SCHEMA),
    *((value, VALUE_SCHEMA) for moment in MOMENTS for value in flat(estimate_row(moment))),
    *((counts_row(moment), COUNTS_SCHEMA) for moment in MOMENTS),
    *((health_row(moment), HEALTH_SCHEMA) for moment in MOMENTS),
    (health_row(0, num_reports=None, status="suppressed", findings=[]), HEALTH_SCHEMA),
    *((ledger_row(moment), LEDGER_SCHEMA) for moment in MOMENTS),
    (ledger_row(0, rejected={}, received=1 << 40, accepted=1 << 40), LEDGER_SCHEMA),
    (ledger_row(None, **name_of(None)), LEDGER_SCHEMA),
    (rejected_row(Rejection(Reason.CORRUPT_BLOCK, 1, 99, source="ä.avro"), None), REJECTED_SCHEMA),
    *(
        (
            rejected_row(Rejection(Reason.TOO_OLD, 5, 1 << 33, KRR, moment, arrival_time=moment), BasePeriods(1)),
            REJECTED_SCHEMA,
        )
        for moment in MOMENTS
    ),
]
