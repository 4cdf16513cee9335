"""What a mechanism declares of its structure is what its noise law has: by enumeration, in exact numbers.

Letters: v sensitive symbols; S the set of symbols that a protected report supports.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from tests.support.cases import MECHANISM_CASES, SET_REPORTS_TO_TEST, enumerated, label, mechanisms, set_reports
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism, SetReportMechanism


@functools.cache
def law_of_supports(mechanism: SetReportMechanism) -> dict[frozenset[int], Fraction]:
    """The probability of each S, if the report is noise."""
    law: Counter[frozenset[int]] = Counter()
    for _, probability, support in mechanism.noise_law():
        law[support] += probability
    return dict(law)


@set_reports
def test_noise_supports_symbols_pairs_and_triples_at_the_declared_rates(mechanism):
    """Each of them, not only on average: variances and covariances take the rates for constant."""
    phi, eta, eta3 = mechanism.noise_rate, mechanism.pair_rate, mechanism.triple_rate
    for size, rate in ((1, phi), (2, phi * eta), (3, phi * eta3)):
        found: Counter[tuple[int, ...]] = Counter()
        for support, probability in law_of_supports(mechanism).items():
            for chosen in itertools.combinations(sorted(support), size):
                found[chosen] += probability
        together = math.comb(mechanism.num_sensitive, size)
        assert set(found.values()) <= {rate}
        assert len(found) == (together if rate else 0) or not together


def has_independent_bits(mechanism: SetReportMechanism) -> bool:
    """Every set of symbols has the probability of coins of their own."""
    phi, law, v = mechanism.noise_rate, law_of_supports(mechanism), mechanism.num_sensitive
    return all(
        probability == phi ** len(support) * (1 - phi) ** (v - len(support)) for support, probability in law.items()
    )


@pytest.mark.parametrize("name", sorted({case.id for case in SET_REPORTS_TO_TEST}))
def test_bits_are_independent_where_that_is_declared_and_nowhere_else(name):
    """One symbol alone is independent of nothing: a class declares what all its instances have."""
    assert MECHANISMS[name].independent_bits == all(map(has_independent_bits, MECHANISM_CASES[name]))


@set_reports
def test_supports_have_the_declared_size(mechanism):
    sizes = set(map(len, law_of_supports(mechanism)))
    assert mechanism.support_size == (sizes.pop() if len(sizes) == 1 else None)


@mechanisms
def test_the_promise_is_about_states_where_priors_are_declared(mechanism):
    declared = any(mechanism.takes(name) for name in ("priors", "missing_rates"))
    assert declared == (mechanism.protected_inputs is not None)
    assert mechanism.names_values or not declared


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_a_closed_form_exists_where_it_is_declared(name):
    assert MECHANISMS[name].has_closed_form == (MECHANISMS[name].most_likely is not Mechanism.most_likely)


@mechanisms
def test_patterns_are_counted_where_bits_are_independent(mechanism):
    """Sentinels that look inside reports know the law of independent bits only."""
    assert (mechanism.num_patterns > 0) == mechanism.independent_bits


@pytest.mark.parametrize("mechanism", [m for m in SET_REPORTS_TO_TEST if not m.clear_rate], ids=label)
def test_the_floor_is_the_smallest_rate_of_any_population(mechanism):
    """Of the first symbol among protected reports, whoever holds another one; with one sensitive symbol from below."""
    codes, probabilities, _, _ = enumerated(mechanism)
    supported = mechanism.supports(codes)
    protected = ~supported[:, mechanism.num_sensitive :].any(axis=1)
    rates = (probabilities * (protected & supported[:, 0])[:, np.newaxis]).sum(axis=0) / probabilities[protected].sum(0)
    smallest = rates[1:].min()
    assert mechanism.floor_rate <= smallest * (1 + 1e-12)
    if mechanism.num_sensitive > 1:
        assert mechanism.floor_rate == pytest.approx(smallest, rel=1e-12)


@pytest.mark.parametrize("mechanism", [m for m in SET_REPORTS_TO_TEST if m.clear_rate], ids=label)
def test_noise_in_clear_reports_hides_the_floor(mechanism):
    assert mechanism.floor_rate is None
