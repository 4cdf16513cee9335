"""Questions that are planned: limits of their fields, what is compared, and at which frequencies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.ldp.small_mechanisms import SIX_DIGITS
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.mechanisms.binomial_law import normal_quantile
from uldp_transforms_planner.planning import ClosedQuestion, OpenQuestion, plan, reports_for_half_width
from uldp_transforms_planner.planning.planned_question import comparable, whole_list

# ---------------------------------------------------------------------- fields

OPEN: dict[str, Any] = {"num_candidates": 3, "num_non_sensitive": 2}


# ---------------------------------------------------------------------- closed questions


def test_what_is_compared_depends_on_the_numbers_of_values() -> None:
    """Subsets need two sizes to choose from: of three values, or of two sensitive ones among others."""

    def names(values: int, sensitive: int) -> set[str]:
        return set(ClosedQuestion(num_values=values, num_sensitive=sensitive).setups(9))

    everybody = {"krr", "rappor", "rappor, theta 0.5", "rappor, best theta", "hr"}
    some = {"urr", "urap", "urap, best theta", "uhr"}
    assert names(2, 2) == everybody
    assert names(3, 3) == everybody | {"ss"}
    assert names(2, 1) == everybody | some
    assert names(3, 1) == everybody | some | {"ss"}
    assert names(3, 2) == everybody | some | {"ss", "uss"}


def test_mechanisms_that_protect_all_come_first() -> None:
    found = list(comparable().values())
    assert [cls.protects_all for cls in found] == sorted((cls.protects_all for cls in found), reverse=True)
    assert {"tsp", "up", "agrr", "channel", "sw"}.isdisjoint(comparable())


def test_named_alphabets_have_the_sensitive_values_first() -> None:
    setup: Any = SimpleNamespace(alphabet={"id": "closed"}, lists=whole_list)
    some = ClosedQuestion(num_values=3, num_sensitive=2, names=("x", "y", "z"))
    assert some.named_alphabet(setup) == {"id": "closed", "values": ["x", "y", "z"], "sensitive": ["x", "y"]}
    everything = ClosedQuestion(num_values=2, num_sensitive=2)
    assert everything.named_alphabet(setup) == {"id": "closed", "values": ["value-001", "value-002"]}


# ---------------------------------------------------------------------- open questions


@pytest.mark.parametrize(("heaviest", "total"), [(0.1, 0.1), (0.02, 0.02 * 3 + 0.08 * 2 / 11), (0.0, 0.0)])
def test_no_unlisted_text_is_heavier_than_the_heaviest(heaviest: float, total: float) -> None:
    """Of 0.1, the rest has the shares 6, 3 and 2 of 11, cut at the heaviest one."""
    question = OpenQuestion(num_candidates=3, heaviest_unlisted=heaviest)
    assert question.heaviest_share == pytest.approx(heaviest)
    unlisted = question._unlisted
    assert float(unlisted.numbers @ unlisted.frequencies) == pytest.approx(total)
    assert unlisted.total == 4


def test_named_alphabets_list_what_is_not_sensitive() -> None:
    setups = OpenQuestion(**OPEN).setups(1000)
    some, every = setups["urr"](1), setups["krr"](1)
    assert some is not None and every is not None
    assert some.alphabet == {"id": "hashed", "num_buckets": some.mechanism.num_sensitive}
    named = {"non_sensitive": ["a", "b"]}
    assert OpenQuestion(**OPEN, names=("a", "b")).named_alphabet(some) == some.alphabet | named
    assert OpenQuestion(**OPEN).named_alphabet(some)["non_sensitive"] == ["value-001", "value-002"]
    assert OpenQuestion(**OPEN).named_alphabet(every) == every.alphabet


# ---------------------------------------------------------------------- plans


GOLDEN_CLOSED = [
    ("no privacy", 0.0325735, 0.000277778, 0.0133512, 0.0296664, 221, None),
    ("krr", 0.0887075, 0.0020601, 0.0363594, 0.0807906, 1590, 1.159),
    ("rappor", 0.118419, 0.00367125, 0.0485148, 0.107851, 2825, 1.455),
    ("rappor, theta 0.5", 0.116755, 0.00356879, 0.0478431, 0.106335, 2748, 1.435),
    ("rappor, best theta", 0.115478, 0.00349114, 0.0473145, 0.105172, 2687, 1.42),
    ("ss", 0.0887075, 0.0020601, 0.0363594, 0.0807906, 1590, 1.159),
    ("hr", 0.136838, 0.00490213, 0.0560591, 0.124626, 3771, 1.779),
    ("urr", 0.0512443, 0.000687952, 0.0217813, 0.0484019, 575, 0.702),
    ("urap", 0.0640768, 0.00129904, 0.049136, 0.109234, 2898, 1.478),
    ("urap, best theta", 0.0640768, 0.00129904, 0.049136, 0.109234, 2898, 1.478),
    ("uss", 0.051068, 0.000684312, 0.0227974, 0.0506567, 629, 0.702),
    ("uhr", 0.062741, 0.00148589, 0.0534609, 0.118842, 3430, 1.638),
]
GOLDEN_OPEN = [
    ("no privacy", 0.0596495, 0.000275802, 0.00623776, 0.0173038, None, None),
    ("krr", 0.436462, 0.0124745, 0.0445914, 0.124279, None, None),
    ("rappor", 0.465648, 0.0141933, 0.0476386, 0.13276, None, None),
    ("rappor, theta 0.5", 0.442869, 0.0128441, 0.0452582, 0.126089, None, None),
    ("ss", 0.435128, 0.0123993, 0.0444638, 0.123878, None, None),
    ("hr", 0.554569, 0.0201297, 0.0568026, 0.158309, None, None),
    ("urr", 0.369532, 0.0104633, 0.0448571, 0.12502, None, None),
    ("urap", 0.392063, 0.0118631, 0.0477679, 0.13312, None, None),
    ("uss", 0.370193, 0.0104163, 0.0447723, 0.124739, None, None),
    ("uhr", 0.463989, 0.0167605, 0.0567742, 0.15823, None, None),
]
"""Name, l1, l2, half width, change, and the reports and the epsilon that the target needs."""


def test_golden_plans() -> None:
    """Each row of a closed and of an open question: errors, and what a target needs."""
    for question, target, rows in (
        (ClosedQuestion(num_values=6, num_sensitive=2), {"target_half_width": 0.05}, GOLDEN_CLOSED),
        (OpenQuestion(num_candidates=20, num_non_sensitive=4), {}, GOLDEN_OPEN),
    ):
        found = plan(question, 1.5, 3000, **target).rows
        told = [
            (row.name, row.l1, row.l2, row.half_width, row.change, row.reports_needed, row.epsilon_needed)
            for row in found
        ]
        expected = [
            (name, *(pytest.approx(x, rel=SIX_DIGITS) for x in (l1, l2, half, change)), reports, epsilon)
            for name, l1, l2, half, change, reports, epsilon in rows
        ]
        assert told == expected


def test_reports_for_a_half_width_are_the_fewest() -> None:
    setup = ClosedQuestion(num_values=6, num_sensitive=2).setups(1)["urr"](1.5)
    assert setup is not None
    number = reports_for_half_width(setup, 0.05)
    assert number is not None
    assert setup.forecast(number).half_width <= 0.05 < setup.forecast(number - 1).half_width
    assert reports_for_half_width(setup, 1e-12) is None
    assert reports_for_half_width(setup, 1e9) == 1


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_a_plan_is_for_intervals_of_the_level(confidence: float) -> None:
    """With many reports half widths are in proportion to normal quantiles; so many reports as it says suffice."""
    question = ClosedQuestion(num_values=4, num_sensitive=4)
    usual, found = (plan(question, 2.0, 10**7, confidence=level) for level in (0.95, confidence))
    ratio = normal_quantile(confidence) / normal_quantile(CONFIDENCE)
    for one, other in zip(usual.rows, found.rows):
        assert other.half_width == pytest.approx(ratio * one.half_width, rel=1e-3)
        assert (other.l1, other.l2, other.change) == (one.l1, one.l2, one.change)
    setup = found.best.setup
    assert setup is not None
    number = reports_for_half_width(setup, 0.01, confidence)
    assert number is not None
    halves = [setup.forecast(each).half_width_at(confidence) for each in (number, number - 1)]
    assert halves[0] <= 0.01 < halves[1]
