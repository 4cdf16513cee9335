"""A client that remembers its answers, and the wire as it sees it."""

from __future__ import annotations

from typing import Any

from uldp_transforms.ldp import Budget, BudgetSpentError, Client, Collection, ReportBatch
from uldp_transforms.ldp.client_window import DAY
from uldp_transforms.messages import wire

SECRET = bytes(range(32))
NOON = 20_000 * DAY + DAY // 2


def illness(epsilon_inf: float | None = 2.0, mechanism: str = "krr", **fields: Any) -> Collection:
    chosen = {"id": mechanism, "epsilon": 1.0, "epsilon_inf": epsilon_inf}
    alphabet = {"id": "closed", "values": ["flu", "cold", "gout", "none"]}
    return Collection.from_json(
        {"id": "illness", "version": 1, "alphabet": alphabet, "mechanism": chosen, "num_cohorts": 1} | fields
    )


def client(storage: Any, collection: Collection | None = None, epsilon: float = 100.0, **fields: Any) -> Client:
    own = {name: fields.pop(name) for name in ("period_ms", "lifetime") if name in fields}
    return Client(collection or illness(), storage, Budget(epsilon=epsilon, **own), **fields)


def message(report: ReportBatch | None) -> bytes:
    assert report is not None
    [made] = wire.encode_reports(report)
    return made


def answers(asked: Client, value: str, event_time: int) -> bool:
    """Whether there is an answer; False if the budget is spent."""
    try:
        return asked.report(value, event_time) is not None
    except BudgetSpentError:
        return False
