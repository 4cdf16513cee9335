"""What several reports promise together, against the ratios of enumerated pairs of reports."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from tests.support.cases import exact_channel
from tests.support.ldp.small_mechanisms import make
from uldp_transforms_planner.utility import Guarantee

some_values = Guarantee(epsilon=1, kind="uldp", non_sensitive=frozenset({"a"}))
every_value = Guarantee(epsilon=0.5)
one_sided = Guarantee(epsilon=2, kind="osldp", non_sensitive=frozenset({"b"}))


def test_budgets_add_up_and_only_what_both_protect_is_protected():
    other = Guarantee(epsilon=2, kind="uldp", non_sensitive=frozenset({"b"}))
    assert some_values + other == Guarantee(epsilon=3, kind="uldp", non_sensitive=frozenset({"a", "b"}))
    assert (
        some_values + every_value
        == every_value + some_values
        == Guarantee(epsilon=1.5, kind="uldp", non_sensitive=frozenset({"a"}))
    )
    assert every_value + every_value == Guarantee(epsilon=1)
    assert some_values + one_sided == Guarantee(epsilon=3, kind="osldp", non_sensitive=frozenset({"a", "b"}))


@pytest.mark.parametrize("guarantee", [some_values, every_value, one_sided])
def test_reports_cost_their_number(guarantee):
    total = guarantee
    for _ in range(4):
        total += guarantee
    assert guarantee.for_reports(5) == total


@pytest.mark.parametrize("number", [1, 3, 7, 10, 49, 1_000_003])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4 / 3, 16])
def test_shares_of_a_budget_never_exceed_it(number, epsilon):
    share = Guarantee(epsilon=epsilon).per_report(number).epsilon
    assert Fraction(share) * number <= Fraction(epsilon)
    assert share == pytest.approx(epsilon / number, rel=1e-15)


def test_two_collectors():
    assert some_values.joined_with(every_value) == some_values + every_value
    assert every_value.joined_with(every_value) == every_value + every_value


def test_processing_leaves_the_one_sided_promise():
    assert some_values.after_processing() == Guarantee(epsilon=1, kind="osldp", non_sensitive=frozenset({"a"}))
    assert every_value.after_processing() == every_value
    assert one_sided.after_processing() == one_sided


def test_pairs_of_reports_keep_the_promise():
    """urr over (s, t | a, b) with uss of the same symbols: protected pairs, and pairs with a report in clear."""
    first, second = make("urr", 4, 2, epsilon=1), make("uss", 4, 2, epsilon=0.5, subset_size=1)
    together = Guarantee(epsilon=1, kind="uldp", non_sensitive=frozenset("ab")) + Guarantee(
        epsilon=0.5, kind="uldp", non_sensitive=frozenset("ab")
    )
    protected = 0
    for one, other in itertools.product(exact_channel(first)[1], exact_channel(second)[1]):
        pair = [float(a * b) for a, b in zip(one, other)]
        if all(pair):
            protected += 1
            assert math.log(max(pair) / min(pair)) <= together.epsilon + 1e-12
        else:
            assert pair[:2] == [0, 0]  # a clear report never comes from a sensitive symbol
            assert sum(q > 0 for q in pair) <= 1
    assert protected == 4


def test_a_share_that_is_exact_is_not_rounded() -> None:
    assert [Guarantee(epsilon=1.0).per_report(number).epsilon for number in (1, 2, 4)] == [1.0, 0.5, 0.25]
