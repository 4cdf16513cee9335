"""The JavaScript client: reports per second of CPU time in Node, beside k-RR that is written by hand.

``python -m labs.benchmarks.javascript DIR`` measures the client of another checkout too, in turn with this one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.client.client_form import client_form

CLIENT = Path(__file__).parents[2] / "clients" / "javascript"
RATES = Path(__file__).with_name("javascript_rates.mjs")
BY_HAND = "k-RR of 1,024, written by hand"
TEXTS = [f"value {i}" for i in range(1_024)]


def closed(mechanism: str, number: int) -> dict[str, Any]:
    return {"alphabet": {"id": "closed", "values": TEXTS[:number]}, "mechanism": {"id": mechanism, "epsilon": 1.0}}


def open_alphabet(num_cohorts: int) -> dict[str, Any]:
    alphabet = {"id": "hashed", "num_buckets": 64, "seed": 1}
    return {"alphabet": alphabet, "mechanism": {"id": "krr", "epsilon": 1.0}, "num_cohorts": num_cohorts}


KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "k-RR of 1,024": (closed("krr", 1_024), {}),
    "RAPPOR of 64": (closed("rappor", 64), {}),
    "hashed, 64 cohorts": (open_alphabet(64), {}),
    "hashed, 1,024 cohorts": (open_alphabet(1_024), {}),
    "hashed, 1,024 cohorts, cachedValues: 100": (open_alphabet(1_024), {"cachedValues": 100}),
}


def rates(client: Path) -> dict[str, float]:
    """Reports per second of CPU time, by kind; values of hashed alphabets repeat after 100."""
    orders = []
    for name, (spec, options) in KINDS.items():
        form = client_form(Collection.from_json({"id": "benchmark", "version": 1, **spec}))
        values = spec["alphabet"].get("values", TEXTS[:100])
        orders.append({"name": name, "form": form, "values": values, "options": options})
    node = shutil.which("node") or "node"
    done = subprocess.run(
        [node, str(RATES), str(client)], input=json.dumps(orders), capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def main(others: Sequence[str] = ()) -> None:
    print("the JavaScript client in Node (reports per second of CPU time; times slower than k-RR written by hand)")
    for client in (CLIENT, *map(Path, others)):
        found = rates(client)
        print(f"  {client}")
        for name, number in found.items():
            print(f"    {name:<42} {number:11,.0f}/s {found[BY_HAND] / number:6.2f} x", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
