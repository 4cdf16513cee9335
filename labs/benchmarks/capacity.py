"""What a job needs by its reports per day, from measured costs: the table of ``docs/operations.md``.

``data/costs.json`` has the costs: the value, the words of ``docs/scale.md`` that say it, and the command that measures
it. Bytes of messages are those of messages that are made here.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from labs.benchmarks.measure import collection, reports
from uldp_transforms.messages import wire

COSTS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("data").joinpath("costs.json").read_text("utf-8")
)

WINDOW = LATENESS = 3600
GRACE = 600
"""Seconds: of a window and of late reports, and for how much longer workers and engine keep ids."""

DAY = 86_400
PACK = 1_000
NUMBERS = (10**6, 10**8, 10**9, 10**10, 10**11)
"""Reports per day."""

UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
HEAD = ("reports per day", "cores; if reports come singly", "memory of workers", "state of the engine", "queue; singly")


def main() -> None:
    print("\n".join(table()))
    values, cost = 16, COSTS["entry_bytes"]["value"]
    print(f"rows of a collection of {values} values: {size(DAY // WINDOW * values * cost)} a day")


def table() -> list[str]:
    """Lines of the table, in Markdown."""
    packed, single = bytes_of_reports()
    rows = [HEAD, tuple("---" for _ in HEAD), *(row(number, packed, single) for number in NUMBERS)]
    return [f"| {' | '.join(cells)} |".replace("| --- ", "|---").replace("|--- ", "|---") for cells in rows]


def row(number: int, packed: float, single: float) -> tuple[str, ...]:
    """Cells for a number of reports per day, whose messages have so many bytes for each report."""
    cost = {name: it["value"] for name, it in COSTS.items()}
    rate = number / DAY
    cores = [math.ceil(rate * us / 1e6) for us in (cost["packed_report_us"], sum_of_single(cost))]
    memory = cost["worker_mib"] * 2**20 + cost["id_bytes_in_memory"] * rate * (WINDOW + GRACE)
    state = cost["id_bytes_in_state"] * rate * (WINDOW + LATENESS + GRACE)
    queue = [size(number * each) for each in (packed, single)]
    return (f"10^{round(math.log10(number))}", "; ".join(map(str, cores)), size(memory), size(state), "; ".join(queue))


def sum_of_single(cost: dict[str, float]) -> float:
    """Microseconds of a report that comes singly: what the engine takes for its message, and what its id takes."""
    return cost["packed_report_us"] + cost["single_message_us"]


def bytes_of_reports() -> tuple[float, float]:
    """Bytes of a report with its id, in a message of many and in one of its own."""
    batch = reports(collection("krr", 16, 64), PACK)
    return len(wire.encode_batch(batch)) / PACK, sum(map(len, wire.encode_reports(batch))) / PACK


def size(number: float) -> str:
    """Bytes with two digits, such as ``27 MB``."""
    unit = next(it for it in ("kB", "MB", "GB", "TB") if number < 300 * UNITS[it] or it == "TB")
    return f"{float(f'{number / UNITS[unit]:.2g}'):g} {unit}"
