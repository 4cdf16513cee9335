"""The array layer alone: perturbing, counting, decoding."""

from __future__ import annotations

import numpy as np

from labs.benchmarks.measure import collection, cpu_seconds, line, reports
from uldp_transforms.ldp.sampling import SeededSource, SystemSource
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder


def main() -> None:
    print("counting packed reports (library)")
    for mechanism, symbols, cohorts, n in (
        ("krr", 16, 1, 4_000_000),
        ("krr", 16, 64, 4_000_000),
        ("krr", 1024, 16, 4_000_000),
        ("rappor", 128, 1, 1_000_000),
        ("rappor", 128, 64, 1_000_000),
        ("rappor", 1024, 64, 200_000),
    ):
        spec = collection(mechanism, symbols, max(cohorts, 2))
        part = reports(spec, 100_000)
        rng = np.random.default_rng(2)
        payloads = np.tile(part.payloads, (n // 100_000, 1))
        cohort = rng.integers(0, cohorts, n).astype(np.uint16)
        seconds = cpu_seconds(lambda spec=spec, p=payloads, c=cohort: spec.count_groups(p, c, 1))
        cells = rng.integers(0, 16 * 64, n)
        limit = cpu_seconds(lambda cells=cells: np.bincount(cells, minlength=1024))
        line(f"  {mechanism} K={symbols} C={cohorts}", n, seconds, limit)

    print("counting packed reports without and with their bit patterns (library; pairs of up to 256 bits)")
    for symbols, n in ((32, 1_000_000), (128, 1_000_000), (256, 400_000), (1024, 200_000)):
        spec = collection("rappor", symbols, 2)
        part = reports(spec, 100_000)
        payloads, cohort = np.tile(part.payloads, (n // 100_000, 1)), np.tile(part.cohorts, n // 100_000)
        for name, wanted in (("without", False), ("with", True)):
            seconds = cpu_seconds(lambda spec=spec, p=payloads, c=cohort, w=wanted: spec.count_groups(p, c, 1, w))
            line(f"  rappor K={symbols} C=2 {name}", n, seconds)

    perturbing()

    print("decoding messages (library; the limit is joining the bytes)")
    spec = collection("krr", 16, 64)
    batch = reports(spec, 200_000)
    single = wire.encode_reports(batch[:50_000])
    packed = [wire.encode_batch(batch[i : i + 1000]) for i in range(0, len(batch), 1000)] * 10
    decoder = MessageDecoder(CollectionCatalog([spec]))
    for name, messages, n in (("single", single, 50_000), ("packed 1000", packed, 2_000_000)):
        line(
            f"  {name}",
            n,
            cpu_seconds(lambda m=messages: decoder.decode(m)),
            cpu_seconds(lambda m=messages: b"".join(m)),
        )


def perturbing() -> None:
    """Batches of reports from both sources; epsilon 8 is where flipped bits are rare (1.8 %)."""
    sources = (("seeded generator", SeededSource(np.random.default_rng(4))), ("system's source", SystemSource()))
    for name, source in sources:
        print(f"perturbing (library, {name}; the limit is drawing one random word per report)")
        for mechanism, symbols, epsilon, n in (
            ("krr", 16, 1, 1_000_000),
            ("urr", 400, 1, 1_000_000),
            ("rappor", 128, 1, 200_000),
            ("rappor", 128, 8, 200_000),
            ("rappor", 1024, 1, 50_000),
            ("rappor", 1024, 8, 50_000),
            ("ss", 64, 1, 50_000),
        ):
            spec = collection(mechanism, symbols, 2, epsilon)
            symbol = np.random.default_rng(3).integers(0, symbols, n)
            seconds = cpu_seconds(lambda spec=spec, s=symbol, source=source: spec.mechanism.perturb(s, source))
            limit = cpu_seconds(lambda source=source, n=n: source.words(n))
            line(f"  {mechanism} K={symbols} epsilon={epsilon}", n, seconds, limit)
