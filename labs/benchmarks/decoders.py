"""Decoding and counting single reports with numpy, and with the compiled part if it is installed."""

from __future__ import annotations

import os
from collections import deque
from typing import Any
from unittest import mock

import numpy as np

from labs.benchmarks.measure import DAY, collection, cpu_seconds
from uldp_transforms.collector.period_counts import count_batches
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import native_module, wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder

_WORK = 1 << 16
"""Messages of one measurement."""


def main() -> None:
    module = native_module.native()
    print(f"single reports, K = 16, C = 64 (library; load average {os.getloadavg()[0]:.1f})")
    if module is None:
        print("  numpy alone: the compiled part is not installed (pip install ./native)")
    for number in (1, 1000):
        collections = [_numbered(i) for i in range(number)]
        messages = _messages(collections)
        for together in (16_384, 2_000, 200):
            print(f"  {number:>5,} collections, {together:>6,} together: ", end="")
            found = {"numpy": None} | ({} if module is None else {"compiled": module})
            print("; ".join(_told(name, part, collections, messages, together) for name, part in found.items()))


def _told(name: str, part: Any, collections: list[Collection], messages: list[bytes], together: int) -> str:
    catalog = CollectionCatalog(collections)
    decoder = MessageDecoder(catalog)
    groups = [messages[at : at + together] for at in range(0, len(messages), together)]
    with mock.patch.object(native_module, "native", lambda: part):
        decoded = [decoder.decode(group).parts for group in groups]
        decoding = cpu_seconds(lambda: [decoder.decode(group) for group in groups], 5)
        counting = cpu_seconds(lambda: [deque(count_batches(catalog, parts, None), 0) for parts in decoded], 5)
    rate = len(messages) / (decoding + counting) / 1e6
    return f"{name} {1e9 * decoding / len(messages):6.0f} ns, with counting {rate:5.2f} M/s"


def _numbered(number: int) -> Collection:
    spec = collection("krr", 16, 64).to_json()
    return Collection.from_json(spec | {"id": f"benchmark{number}"})


def _messages(collections: list[Collection]) -> list[bytes]:
    each = _WORK // len(collections)
    rng = np.random.default_rng(1)
    messages: list[bytes] = []
    for one in collections:
        times = rng.integers(0, DAY, each)
        batch = one.perturb([str(value) for value in rng.integers(0, 100, each)], rng=rng, event_times=times)
        messages += wire.encode_reports(batch)
    return [messages[place] for place in rng.permutation(len(messages)).tolist()]
