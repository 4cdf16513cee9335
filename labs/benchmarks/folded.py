"""Known lists folded into buckets: CPU time of client and collector, beside what ``uldp plan`` computes."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from labs.benchmarks.javascript import CLIENT
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.client.client_form import client_form
from uldp_transforms_planner.planning.cpu_time import client_seconds, window_seconds

N = 100_000
SIZES = (500, 2_000, 8_000)
REPORTS = {"permuted": 30}


def collections(size: int) -> dict[str, Collection]:
    """A list as it is, with a bit for each value; and folded."""
    values = [f"value-{i}" for i in range(size)]
    alphabets: dict[str, tuple[dict[str, Any], str, int]] = {
        "closed": ({"values": values}, "ss", 1),
        "permuted": ({"values": values, "num_buckets": 9, "seed": 1}, "krr", 1024),
        "hashed": ({"num_buckets": 9, "seed": 1}, "krr", 1024),
    }
    return {
        name: Collection.from_json(
            {"id": "folded", "version": 1, "num_cohorts": cohorts}
            | {"alphabet": {"id": name} | fields, "mechanism": {"id": mechanism, "epsilon": 2.0}}
        )
        for name, (fields, mechanism, cohorts) in alphabets.items()
    }


def window(item: Collection, values: list[str]) -> float:
    """CPU seconds to count and estimate N reports, when the table of buckets is there."""
    rng = np.random.default_rng(1)
    batch = item.perturb(rng.choice(values, N).tolist(), rng)
    candidates = None if item.alphabet.known_values else values
    item.estimate(item.count(batch), "eb", candidates)
    begin = time.process_time()
    item.estimate(item.count(batch), "eb", candidates)
    return time.process_time() - begin


def reports(items: dict[str, Collection], values: list[str]) -> dict[str, float]:
    """CPU seconds of a report of the JavaScript client, by name."""
    orders = [
        {"name": name, "form": client_form(item), "values": values, "reports": REPORTS.get(name, 2_000)}
        for name, item in items.items()
    ]
    command = [shutil.which("node") or "node", str(Path(__file__).with_name("folded_client.mjs")), str(CLIENT)]
    done = subprocess.run(command, input=json.dumps(orders), capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    print(f"folded known lists (CPU time; JavaScript client, window of {N:,} reports; measured / by steps)")
    for size in SIZES:
        values = [f"value-{i}" for i in range(size)]
        items = collections(size)
        found = reports(items, values)
        for name, item in items.items():
            hashed = {"closed": 0, "permuted": size, "hashed": 1}[name]
            client = client_seconds(item.mechanism, item.num_cohorts, hashed)
            collector = window_seconds(item.mechanism, N, size, item.num_cohorts)
            print(
                f"  S={size} {name:<9} client {1e3 * found[name]:8.3f} / {1e3 * client:8.3f} ms, "
                f"window {window(item, values):6.3f} / {collector:6.3f} s",
                flush=True,
            )
