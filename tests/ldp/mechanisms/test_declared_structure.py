"""What a mechanism declares of its structure is what its noise law has: by enumeration, in exact numbers.

Letters: v sensitive symbols; S the set of symbols that a protected report supports.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import (
    SET_REPORTS_TO_TEST,
    each_mechanism,
    enumerated,
    mechanisms,
)
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism


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


@each_mechanism([m for m in SET_REPORTS_TO_TEST if not m.clear_rate])
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


@each_mechanism([m for m in SET_REPORTS_TO_TEST if m.clear_rate])
def test_noise_in_clear_reports_hides_the_floor(mechanism):
    assert mechanism.floor_rate is None


@each_mechanism(SET_REPORTS_TO_TEST)
@pytest.mark.parametrize("strict", [False, True])
def test_what_is_expected_if_everybody_has_a_symbol_is_found_at_once_as_symbol_by_symbol(mechanism, strict):
    """Any levels, and any numbers of reports, with rounded counts."""
    rng = np.random.default_rng(1)
    some = (2, 7, int(rng.integers(8, 100)))
    for num_reports in (1, *(some if mechanism.num_symbols <= 16 else ()), 12_345):
        levels = rng.uniform(0.5, 1 - 1e-6, mechanism.num_symbols)
        levels[rng.random(mechanism.num_symbols) < 0.2] = np.nan
        one_by_one = Mechanism.lower_ends_of_everybody(mechanism, num_reports, levels, strict)
        low = mechanism.lower_ends_of_everybody(num_reports, levels, strict)
        np.testing.assert_allclose(low, one_by_one, rtol=1e-12, atol=1e-12)
        assert (np.isnan(low) == np.isnan(levels)).all()
