"""AGRR and AOUE: what they promise about states, enumerated in exact numbers.

What follows from the channel (inverse, variances, likelihood, sampling) is tested with all mechanisms; here: the
promise Pr(report | s) <= e**epsilon Pr(report | s') for all states, that no less noise keeps it, and limits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from tests.support.cases import e_below, exact_channel
from tests.support.together import together
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.mechanisms import AttributeGRR, AttributeOUE
from uldp_transforms.ldp.sampling import BIT_PLANES, WORD, exp_bounds

MECHANISMS = (AttributeGRR, AttributeOUE)
EPSILONS = (2.0**-10, 0.5, 1.0, 3.0, 16.0)
UNIT = 1 << 20  # priors are multiples of 1 / UNIT, exact as floats, and sum to exactly 1

Table = tuple[tuple[float, ...], ...]


def made(cls: type[AttributeGRR | AttributeOUE], priors: Sequence[Sequence[float]], epsilon: float = 0.5):
    K = len(priors[0])
    return cls(num_symbols=K, num_sensitive=K, epsilon=epsilon, priors=priors)


def random_priors(index: int) -> Table:
    """2 to 4 states over 2 to 4 values; peaked and flat rows, rows with zeros, and nearly equal rows."""
    rng = generator("priors", index)
    num_states, num_values = rng.integers(2, 5, 2)
    if index % 4 == 0:  # every row is the first one with a little moved: almost nothing to hide
        counts = np.tile(rng.multinomial(UNIT, np.full(num_values, 1 / num_values)), (num_states, 1))
        for row in counts[1:]:
            row[[0, 1]] += np.array([1, -1]) * rng.integers(0, 3)
    else:
        counts = rng.multinomial(UNIT, rng.dirichlet(np.full(num_values, (0.1, 0.5, 3.0)[index % 3])), num_states)
    return tuple(tuple(number / UNIT for number in row) for row in counts.tolist())


EXTREME: list[Table] = [
    ((1.0, 0.0), (0.0, 1.0)),  # the value tells the state: nothing is gained
    ((0.5, 0.5), (0.5, 0.5)),  # the value tells nothing: no noise
    ((0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.25, 0.5, 0.25)),
    ((1.0, 0.0, 0.0), (1 - 1 / UNIT, 1 / UNIT, 0.0)),
    ((1 - 1 / UNIT, 1 / UNIT), (1.0, 0.0), (0.5, 0.5)),
    ((0.25, 0.25, 0.25, 0.25), (0.25, 0.25, 0.5, 0.0), (0.0, 0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 0.0)),
]
TABLES = EXTREME + [random_priors(index) for index in range(24)]

tables = pytest.mark.parametrize("priors", TABLES, ids=range(len(TABLES)))
mechanisms = pytest.mark.parametrize("cls", MECHANISMS)
epsilons = together("epsilon", EPSILONS)


def of_states(mechanism: AttributeGRR | AttributeOUE) -> list[list[Fraction]]:
    """Exact Pr(report | state), one row a report."""
    _, rows = exact_channel(mechanism)
    priors = [list(map(Fraction, row)) for row in mechanism.priors]
    assert all(sum(row) == 1 for row in priors)
    return [[sum(p * q for p, q in zip(prior, row)) for prior in priors] for row in rows]


def excess(mechanism: AttributeGRR | AttributeOUE, e: Fraction) -> Fraction:
    """The worst [Pr(value | s) - E Pr(value | s')]+ over states: of one value, or summed over values."""
    added = max if isinstance(mechanism, AttributeGRR) else sum
    return max(
        added(max(Fraction(a) - e * Fraction(b), Fraction(0)) for a, b in zip(one, other))
        for one, other in itertools.permutations(mechanism.priors, 2)
    )


@tables
@mechanisms
@epsilons
def test_no_report_tells_two_states_apart_by_more_than_epsilon(cls, priors, epsilon):
    mechanism = made(cls, priors, epsilon)
    rows = of_states(mechanism)
    assert all(sum(column) == 1 for column in zip(*rows))
    largest = max(max(row) / min(row) for row in rows)
    assert largest <= e_below(epsilon)
    assert mechanism.exact_ratio == largest
    assert mechanism.effective_epsilon == pytest.approx(math.log(largest), rel=1e-7, abs=1e-12)


@mechanisms
@pytest.mark.parametrize("slack", [1e-16, 3e-10, -3e-10])
def test_rows_that_nearly_sum_to_one_are_taken_as_shares(cls, slack):
    """Sums of decimal fractions are hardly ever 1; the promise holds for the rows divided by their sums."""
    mechanism = made(cls, ((0.6, 0.3, 0.1 + slack), (0.2, 0.3, 0.5)))
    priors = [[Fraction(share) / sum(map(Fraction, row)) for share in row] for row in mechanism.priors]
    _, rows = exact_channel(mechanism)
    reports = [[sum(p * q for p, q in zip(prior, row)) for prior in priors] for row in rows]
    assert mechanism.exact_ratio == max(max(row) / min(row) for row in reports) <= e_below(0.5)


@tables
@epsilons
def test_agrr_with_one_word_of_noise_less_would_not_be_private(priors, epsilon):
    mechanism = made(AttributeGRR, priors, epsilon)
    e = exp_bounds(epsilon)[1]
    worst = excess(mechanism, e)
    if worst:
        noise = mechanism.noise_weight - 1
        kept = WORD - mechanism.num_symbols * noise
        assert kept * worst > (e - 1) * noise
        assert mechanism.effective_epsilon == pytest.approx(epsilon, rel=1e-6)
    else:
        assert mechanism.noise_weight == 1


@tables
@epsilons
def test_aoue_with_less_noise_in_a_bit_would_not_be_private(priors, epsilon):
    """The noise rate is the next multiple of 2**-32 above the limit; the own bit is 1 with probability 1/2."""
    mechanism = made(AttributeOUE, priors, epsilon)
    e = exp_bounds(epsilon)[1]
    worst = excess(mechanism, e)
    if worst:
        psi = mechanism.noise_rate - Fraction(1, 1 << BIT_PLANES)
        assert (1 - 2 * psi) * worst > (e - 1) * psi
        assert mechanism.miss + mechanism.delta == pytest.approx(0.5, abs=1e-9)
    else:
        assert mechanism.noise_numerator == 1
        assert mechanism.miss + mechanism.delta == pytest.approx(1)


@pytest.mark.parametrize("mechanism", ["agrr", "aoue"])
def test_rows_are_in_the_order_of_the_values(mechanism):
    """Column i of the priors is the value i of the alphabet, which is symbol i of the reports."""
    alphabet = {"id": "closed", "values": ["b", "a", "c"]}
    priors = [[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]]
    item = Collection.from_json(
        {"id": "q", "version": 1, "alphabet": alphabet, "mechanism": {"id": mechanism, "epsilon": 1, "priors": priors}}
    )
    assert item.alphabet.symbol_table(("b", "a", "c"), 1).tolist() == [[0, 1, 2]]
    assert item.mechanism.priors == ((0.5, 0.5, 0.0), (0.5, 0.25, 0.25))
    assert item.to_json()["mechanism"]["priors"] == priors


@pytest.mark.parametrize(
    "mechanism",
    [{"id": "agrr", "priors": [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]}, {"id": "tsp", "missing_rates": [0.4, 0.2]}],
)
def test_a_list_of_sensitive_values_in_another_order_is_refused(mechanism):
    """It would give symbols in its own order, and priors to the wrong values."""
    alphabet = {"id": "closed", "values": ["a", "b", "c"], "sensitive": ["c", "a", "b"]}
    with pytest.raises(SpecError, match="in the order of the values"):
        Collection.from_json({"id": "x", "version": 1, "alphabet": alphabet, "mechanism": {"epsilon": 0.5} | mechanism})
