"""The same counts, decoded by other people's libraries. They are fetched into an environment of their own."""

from __future__ import annotations

import math
import subprocess
from typing import Any

import numpy as np
import pytest

from labs.benchmarks import peers
from labs.benchmarks.peers import environment
from tests.support.tolerance import generator, normal_limit
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch

pytestmark = pytest.mark.slow
NUM_REPORTS = 20_000


Counted = dict[str, tuple[Collection, ReportBatch, CohortCounts]]
Shares = dict[tuple[str, str], np.ndarray]


@pytest.fixture(scope="module")
def ours() -> Counted:
    rng = generator(__name__)
    texts = [peers.VALUES[value] for value in rng.geometric(0.1, NUM_REPORTS) % peers.NUM_VALUES]
    batches = {name: (spec, spec.perturb(texts, rng)) for name, spec in peers.collections().items()}
    return {name: (spec, batch, spec.count(batch)) for name, (spec, batch) in batches.items()}


@pytest.fixture(scope="module")
def theirs(ours: Counted) -> Shares:
    try:
        environment.install()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the other libraries could not be fetched: {error}")
    _, batch, _ = ours["ss"]
    bits = np.unpackbits(batch.payloads, axis=1, bitorder="little")[:, : peers.NUM_VALUES]
    task: dict[str, Any] = {
        "num_values": peers.NUM_VALUES,
        "epsilon": peers.EPSILON,
        "num_reports": NUM_REPORTS,
        "hashes": peers.HASHES,
        "table": ours["olh"][0].alphabet.symbol_table(peers.VALUES, peers.HASHES).tolist(),
        "counts": {name: counts.cells.squeeze().tolist() for name, (_, _, counts) in ours.items()},
        "subsets": [np.flatnonzero(row).tolist() for row in bits],
    }
    return {(a["library"], a["mechanism"]): np.array(a["shares"]) for a in environment.ask("decode", task)}


def shares(ours: Counted, mechanism: str, estimator: str = "empirical") -> np.ndarray:
    spec, _, counts = ours[mechanism]
    return spec.estimate(counts, estimator).frequencies


@pytest.mark.parametrize("mechanism", ["krr", "oue", "rappor"])
def test_unbiased_frequencies_are_those_of_pure_ldp(mechanism: str, ours: Counted, theirs: Shares) -> None:
    """Which uses real probabilities; here they are multiples of 2**-32 or 2**-64."""
    np.testing.assert_allclose(shares(ours, mechanism), theirs["pure-ldp", mechanism], rtol=0, atol=1e-8)


@pytest.mark.parametrize("mechanism", ["krr", "ss"])
def test_clipped_frequencies_are_those_of_multi_freq_ldpy(mechanism: str, ours: Counted, theirs: Shares) -> None:
    found = shares(ours, mechanism, "normalized")
    np.testing.assert_allclose(found, theirs["multi-freq-ldpy", mechanism], rtol=0, atol=1e-8)


def test_most_likely_frequencies_are_those_of_multi_freq_ldpy(ours: Counted, theirs: Shares) -> None:
    """Which steps until no frequency changes by 1e-13; a closed form here."""
    counts = ours["krr"][2]
    keep = math.exp(peers.EPSILON) / (math.exp(peers.EPSILON) + peers.NUM_VALUES - 1)
    other = (1 - keep) / (peers.NUM_VALUES - 1)

    def likelihood(frequencies: np.ndarray) -> float:
        return float(counts.cells[0] @ np.log(other + (keep - other) * frequencies))

    found, steps = shares(ours, "krr", "ml"), theirs["multi-freq-ldpy", "krr, most likely"]
    assert -1e-9 <= likelihood(found) - likelihood(steps) <= 1e-3
    np.testing.assert_allclose(found, steps, rtol=0, atol=1e-3)


def test_hashed_frequencies_agree_with_local_hashing(ours: Counted, theirs: Shares) -> None:
    """Its estimates are means over the cohorts' inverses, rid of what other values add to a bucket on average.

    Least squares of the same counts also takes out whom a value really shares its buckets with: the two differ by
    noise of the hash functions, whose standard error is below that of the estimates themselves.
    """
    spec, _, counts = ours["olh"]
    k = spec.mechanism.num_symbols
    reporting = counts.num_reports > 0
    cells = np.zeros(counts.shape)
    cells[reporting] = spec.mechanism.invert(counts)[reporting]
    table = spec.alphabet.symbol_table(peers.VALUES, spec.num_cohorts)
    means = counts.num_reports @ np.take_along_axis(cells, table, axis=1) / counts.total
    local_hashing = theirs["pure-ldp", "olh"]
    np.testing.assert_allclose((means - 1 / k) * k / (k - 1), local_hashing, rtol=0, atol=1e-8)
    estimate = spec.estimate(counts, "empirical", peers.VALUES)
    apart = np.abs(estimate.raw_frequencies - local_hashing) / estimate.standard_errors
    assert (apart < normal_limit(peers.NUM_VALUES)).all()
