"""Single cases that no other test told apart from a planted fault; see ``tests/mutants.py``."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from messages_cases import container, data, single

from uldp_transforms.containers import read_messages
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Tagged
from uldp_transforms.ldp.reasons import Reason


def test_a_share_of_a_background_may_be_zero() -> None:
    alphabet = Tagged(values=("a", "b", "c"), tags=("t",), background={"t": {"a": 0.0, "b": 1.0}})
    assert alphabet.background == {"t": {"a": 0.0, "b": 1.0}}


def test_a_report_inside_the_payload_of_another_is_not_a_second_one() -> None:
    """As many places that look like a beginning as the block claims reports, and the last one ends with the block."""
    block = single(payload=data(single()))
    (lost,) = read_messages(io.BytesIO(container([(2, block)])), "a.avro")
    assert not isinstance(lost, bytes)
    assert lost.reason is Reason.CORRUPT_BLOCK


def test_the_error_of_what_nobody_asked_for_is_that_of_a_share_of_people() -> None:
    """Almost without noise, and with so few people that the hash adds little: p (1 - p) / n.

    Listed and hashed candidates take people from each other, so the variances of their sums do not just add up.
    """
    n = 1_000
    hashed = {"id": "hashed", "num_buckets": 64, "seed": 7, "non_sensitive": ["dog", "cat"]}
    spec = {"id": "x", "version": 1, "alphabet": hashed, "mechanism": {"id": "urr", "epsilon": 16.0}, "num_cohorts": 64}
    collection = Collection.from_json(spec)
    values = ["dog"] * (n * 4 // 10) + ["ant"] * (n * 3 // 10) + [f"own {i}" for i in range(n * 3 // 10)]
    counts = collection.count(collection.perturb(values, np.random.default_rng(1)))
    estimate = collection.estimate(counts, candidates=["ant", "dog", "cat"])
    assert estimate.unexplained_standard_error == pytest.approx(math.sqrt(0.3 * 0.7 / n), rel=0.1)
