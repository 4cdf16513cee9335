"""Other libraries at work: run by a Python of their own, which has them and numpy, and nothing of this project.

``python others.py TASK FOLDER`` reads ``FOLDER/task.json`` and writes ``FOLDER/TASK.json``. Their clients handle one
value at a time, so the loops are theirs.
"""

from __future__ import annotations

import copy
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU, GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
from pure_ldp.frequency_oracles import (
    DEClient,
    DEServer,
    FastLHClient,
    FastLHServer,
    HadamardResponseClient,
    HadamardResponseServer,
    LHClient,
    LHServer,
    UEClient,
    UEServer,
)
from pure_ldp.heavy_hitters import PEMClient, PEMServer

PURE, MULTI = "pure-ldp", "multi-freq-ldpy"
Perturb = Callable[[int], Any]
Estimate = Callable[[list[Any]], np.ndarray]


def pure(client: Any, empty: Any, k: int) -> tuple[Perturb, Estimate]:
    """Their values count from 1; their estimates are numbers of people; a reset server may keep its counts."""

    def estimate(reports: list[Any]) -> np.ndarray:
        server = copy.deepcopy(empty)
        server.aggregate_all(reports)
        shares: np.ndarray = np.asarray(server.estimate_all(range(1, k + 1), suppress_warnings=True)) / len(reports)
        return shares

    return lambda value: client.privatise(value + 1), estimate


def hadamard(k: int, epsilon: float) -> tuple[Perturb, Estimate]:
    server = HadamardResponseServer(epsilon, k)
    return pure(HadamardResponseClient(epsilon, k, server.get_hash_funcs()), server, k)


def methods(k: int, epsilon: float, hashes: int) -> dict[tuple[str, str], tuple[Perturb, Estimate]]:
    """By library and mechanism, in the names of this project."""
    return {
        (PURE, "krr"): pure(DEClient(epsilon, k), DEServer(epsilon, k), k),
        (MULTI, "krr"): (lambda v: GRR_Client(v, k, epsilon), lambda reports: GRR_Aggregator_MI(reports, k, epsilon)),
        (PURE, "oue"): pure(UEClient(epsilon, k, use_oue=True), UEServer(epsilon, k, use_oue=True), k),
        (MULTI, "oue"): (lambda v: UE_Client(v, k, epsilon, True), lambda reports: UE_Aggregator_MI(reports, epsilon)),
        (MULTI, "ss"): (lambda v: SS_Client(v, k, epsilon), lambda reports: SS_Aggregator_MI(reports, k, epsilon)),
        (PURE, "hr"): hadamard(k, epsilon),
        (PURE, "olh"): pure(LHClient(epsilon, k, use_olh=True), LHServer(epsilon, k, use_olh=True), k),
        (MULTI, "olh"): (lambda v: LH_Client(v, k, epsilon), lambda reports: LH_Aggregator_MI(reports, k, epsilon)),
        (PURE, "olh, few hashes"): pure(
            FastLHClient(epsilon, k, hashes, use_olh=True), FastLHServer(epsilon, k, hashes, use_olh=True), k
        ),
    }


def race(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """CPU seconds and estimates of each method, for each run's people."""
    k, epsilon = task["num_values"], task["epsilon"]
    for (library, mechanism), (perturb, estimate) in methods(k, epsilon, task["hashes"]).items():
        estimate([perturb(value) for value in range(k)])  # what is compiled on the way is compiled now
        for people in task["people"]:
            begin = time.process_time()
            reports = [perturb(value) for value in people]
            between = time.process_time()
            shares = estimate(reports)
            seconds = between - begin, time.process_time() - between
            yield {"library": library, "mechanism": mechanism, "seconds": seconds, "shares": list(map(float, shares))}


def decode(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Estimates from counts that this project has made, by the decoders that take such counts."""
    k, epsilon, n = task["num_values"], task["epsilon"], task["num_reports"]
    servers = {
        "krr": DEServer(epsilon, k),
        "oue": UEServer(epsilon, k, use_oue=True),
        "rappor": UEServer(epsilon, k),
    }
    for mechanism, server in servers.items():
        server.aggregated_data, server.n = np.array(task["counts"][mechanism], dtype=float), n
        shares = np.asarray(server.estimate_all(range(1, k + 1), suppress_warnings=True)) / n
        yield {"library": PURE, "mechanism": mechanism, "shares": shares.tolist()}
    fast = FastLHServer(epsilon, k, task["hashes"], use_olh=True, hash_matrix=np.array(task["table"], dtype=float))
    fast.hash_counts, fast.n = np.array(task["counts"]["olh"], dtype=float), n
    shares = np.asarray(fast.estimate_all(range(1, k + 1), suppress_warnings=True)) / n
    yield {"library": PURE, "mechanism": "olh", "shares": shares.tolist()}
    reports = np.repeat(np.arange(k), task["counts"]["krr"])
    subsets = [np.array(subset) for subset in task["subsets"]]
    for mechanism, shares in (
        ("krr", GRR_Aggregator_MI(reports, k, epsilon)),
        ("krr, most likely", GRR_Aggregator_IBU(reports, k, epsilon, nb_iter=100_000, tol=1e-13)),
        ("ss", SS_Aggregator_MI(subsets, k, epsilon)),
    ):
        yield {"library": MULTI, "mechanism": mechanism, "shares": list(map(float, shares))}


def search(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """CPU seconds and the most frequent bit strings that prefix extension finds, for each run's people."""
    epsilon, start, longest, step, number = (task[key] for key in ("epsilon", "start", "longest", "step", "number"))
    for people in task["people"]:
        oracle = FastLHServer(epsilon, 2, task["hashes"], use_olh=True)
        server = PEMServer(epsilon, start, longest, step, fo_server=oracle)
        client = PEMClient(
            epsilon, start, longest, step, fo_client=FastLHClient(epsilon, 2, task["hashes"], use_olh=True)
        )
        begin = time.process_time()
        reports = [client.privatise(text) for text in people]
        between = time.process_time()
        for report in reports:
            server.aggregate(report)
        found, _ = server.find_heavy_hitters(number)
        seconds = between - begin, time.process_time() - between
        yield {"library": PURE, "mechanism": "prefix extension", "seconds": seconds, "found": list(found)}


TASKS = {"race": race, "decode": decode, "search": search}


def main(name: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    (folder / f"{name}.json").write_text(json.dumps(list(TASKS[name](task))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
