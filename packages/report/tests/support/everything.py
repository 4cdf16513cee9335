"""A directory with every kind of row that the page shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packages.report.tests.support.report_page import page_of
from tests.support import report_rows as rows
from tests.support.pages import compared_rows, number_rows
from uldp_transforms.ldp import Collection

SHOP = "https://shop.example.org/category/shoes/running/men/size-44?color=blue&page="
NAMES = (f"{SHOP}1", f"{SHOP}2", "שלום עולם ארוך", "\u202eevil", "<script>alert(1)</script>", "=1+1", "x" * 200, "no")
DAYS = 4
KILLED = "20261122T071503.042Z-000000"


def hostile(folder: Path) -> tuple[Collection, list[Any], list[Any]]:
    """Rows of windows, one with a change, and one of the whole period."""
    of = Collection.from_json({**rows.collection(NAMES, sensitive=NAMES[:3]).to_json(), "id": "hostile"})
    shares = [0.3, 0.25, 0.2, 0.1, 0.08, 0.05, 0.02, 0.0005]
    entries = [rows.entry(name, share) for name, share in zip(NAMES, shares)]
    whole = rows.estimate(of, None, entries) | rows.span(0) | {"window_end": rows.span(DAYS - 1)["window_end"]}
    moved = f"Shares moved, in percentage points: {NAMES[2]!r} +10.00 (+8.00 to +12.00)."
    rows.write(folder, "health.jsonl", [rows.finding(of, 2, moved)])
    return of, [rows.estimate(of, at, entries) for at in range(DAYS)], [whole]


def numbers() -> tuple[Collection, list[Any], list[Any]]:
    """Rows of everybody and of two arms, by window and in the whole period."""
    of = number_rows.collection()
    own = {at: [number_rows.row(of, at + later) | {"group": group} for group, later in GROUPS.items()] for at in (0, 1)}
    for told in own[0] + own[1]:
        told.update(rows.span(DAYS - 1 if told in own[1] else 0))
    return of, [*own[0], *own[1]], own[1]


GROUPS = {"": 0, "country=other,arm=control": 0, "country=other,arm=new": 4}


def everything(folder: Path) -> Path:
    first, shares, whole = hostile(folder)
    second, figures, totals = numbers()
    open_ended = Collection.from_json(
        {
            "id": "names",
            "version": 1,
            "num_cohorts": 8,
            "alphabet": {"id": "hashed", "num_buckets": 16},
            "mechanism": {"id": "krr", "epsilon": 3.0},
        }
    )
    mass = {"unexplained_mass": 0.5, "unexplained_low": 0.4, "unexplained_high": 0.6}
    listed = [rows.estimate(open_ended, at, [rows.entry("ant", 0.001)], **mass) for at in range(DAYS)]
    place = {name: listed[-1][name] for name in ("collection_id", "collection_version", "fingerprint", "run")}
    found = {"value": f"{SHOP}3", "frequency": 0.2, "ci_low": 0.1, "ci_high": 0.3, "q_value": 1e-5}
    discovered = {**place, **rows.span(DAYS - 1), "pane_index": 0, "num_reports": 1000} | found
    question = [rows.estimate(first, DAYS - 1, [rows.entry("yes", 0.6), rows.entry("no", 0.4)], pooled=True)]
    for row in question:
        row |= {"collection_id": "how-do-you-sleep", "collection_version": 0, "fingerprint": "ab" * 32}
    rows.write(folder, "estimates.jsonl", [*shares, *figures, *listed, *question])
    rows.write(folder, "totals.jsonl", [*whole, *totals])
    rows.write(folder, "discovered.jsonl", [discovered])
    rows.write(folder, "comparisons.jsonl", compared_rows.COMPARED)
    counts = {"received": 1000, "accepted": 990, "duplicates": 0, "rejected": {"malformed": 10}, "in_transit": 0}
    rows.write(folder, "ledger.jsonl", [{**place, **rows.span(0), **counts}])
    rows.record(folder, first, second, open_ended, run=KILLED, end=None)
    rows.record(folder, first, second, open_ended)
    page_of(folder)
    return folder / "page.html"
