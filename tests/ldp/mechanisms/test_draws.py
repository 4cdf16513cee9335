"""The two draws of the family's client follow the noise law: all of it, and what of it supports a symbol."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.support.cases import (
    SET_REPORTS_TO_TEST,
    as_array,
    each_mechanism,
    label,
)
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.sampling import SeededSource

DRAWS = 4_000
FEW = 32  # outputs, so that each is drawn often

SMALL = [case for case in SET_REPORTS_TO_TEST if case.num_sensitive <= 6 and len(list(case.noise_law())) <= FEW]
small = each_mechanism(SMALL)


def drawn(mechanism: SetReportMechanism, payloads: np.ndarray, law: dict[bytes, Fraction]) -> None:
    """Each payload comes as often as the law says, and no other comes."""
    kinds, counts = np.unique(payloads, axis=0, return_counts=True)
    seen = dict(zip((kind.tobytes() for kind in kinds), counts.tolist()))
    assert set(seen) <= set(law)
    expected = np.array([float(share) for share in law.values()])
    observed = np.array([seen.get(payload, 0) for payload in law])
    assert within(observed, binomial_limits(len(payloads), expected)).all()
    assert mechanism.is_valid(as_array(list(law))).all()


@small
def test_noise_follows_its_law(mechanism: SetReportMechanism) -> None:
    law = {payload: share for payload, share, _ in mechanism.noise_law()}
    assert sum(law.values()) == 1
    drawn(mechanism, mechanism.draw_noise(DRAWS, SeededSource(generator("noise", label(mechanism)))), law)


@small
def test_what_supports_a_symbol_follows_the_law_given_that(mechanism: SetReportMechanism) -> None:
    source = SeededSource(generator("supporting", label(mechanism)))
    for symbol in range(mechanism.num_sensitive):
        law = {payload: share for payload, share, support in mechanism.noise_law() if symbol in support}
        total = sum(law.values())
        assert total == mechanism.noise_rate
        payloads = mechanism.draw_protected(np.full(DRAWS, symbol), np.ones(DRAWS, dtype=bool), source)
        drawn(mechanism, payloads, {payload: share / total for payload, share in law.items()})
