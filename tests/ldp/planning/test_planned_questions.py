"""Questions that are planned: limits of their fields, what is compared, and at which frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.ldp.small_mechanisms import SIX_DIGITS, make, zipf
from uldp_transforms.ldp.planning import ClosedQuestion, OpenQuestion, plan, reports_for_half_width
from uldp_transforms.ldp.planning.planned_question import best_subsets, comparable

# ---------------------------------------------------------------------- fields

CLOSED: dict[str, Any] = {"num_values": 3, "num_sensitive": 2}
OPEN: dict[str, Any] = {"num_candidates": 3, "num_non_sensitive": 2}


@pytest.mark.parametrize(
    ("make_question", "fields"),
    [
        *(
            (ClosedQuestion, CLOSED | fields)
            for fields in (
                {"num_values": 2, "num_sensitive": 1},
                {"num_values": 1 << 20},
                {"num_sensitive": 3},
                {"sensitive_share": 0.0},
                {"sensitive_share": 1.0},
                {"frequencies": (0.5, 0.25, 0.25)},
                {"names": ("a", "b", "c")},
            )
        ),
        *(
            (OpenQuestion, OPEN | fields)
            for fields in (
                {"num_candidates": 1},
                {"num_non_sensitive": 0},
                {"num_non_sensitive": (1 << 20) - 3},
                {"max_cohorts": 2},
                {"max_cohorts": 1 << 16},
                {"unlisted_share": 0.0},
                {"unlisted_share": 1.0},
                {"heaviest_unlisted": 0.0},
                {"heaviest_unlisted": 0.1},
                {"law": "flat"},
                {"frequencies": (0.5, 0.2, 0.1, 0.1, 0.1)},
                {"names": ("a", "b")},
                {"sensitive_share": 0.1},
                {"sensitive_share": 1.0},
            )
        ),
    ],
)
def test_the_last_good_fields_are_accepted(make_question: Callable[..., Any], fields: dict[str, Any]) -> None:
    question = make_question(**fields)
    values = fields.get("num_values", fields.get("num_candidates", 0) + fields.get("num_non_sensitive", 0))
    sensitive = fields.get("num_sensitive", fields.get("num_candidates"))
    assert (question.num_frequencies, question.num_tests) == (values, sensitive)


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


def test_given_frequencies_are_where_all_errors_are_forecast() -> None:
    """The sensitive values are the first two, of which one is rare; 200 people."""
    p = np.array([0.1, 0.4, 0.3, 0.2])
    question = ClosedQuestion(num_values=4, num_sensitive=2, frequencies=tuple(p.tolist()))
    setup = question.setups(200)["urr"](1.0)
    assert setup is not None
    mechanism = make("urr", 4, 2, epsilon=1.0)
    variances = mechanism.variances(p) / 200
    forecast = setup.forecast(200)
    assert forecast.l2 == pytest.approx(variances.sum())
    assert forecast.sensitive.l2 == pytest.approx(variances[:2].sum())
    assert forecast.null_variance == pytest.approx(float(mechanism.null_variances(p)[0]) / 200)
    assert (setup.l2(200), setup.noise) == (pytest.approx(variances.sum()), pytest.approx(200 * variances.sum()))
    assert (setup.num_cohorts, setup.alphabet) == (1, {"id": "closed"})
    assert question.setups(9)["urap, best theta"](1.0).mechanism.theta == make_theta(2, 1.0, 0.5)
    told = question.without_privacy(200)
    assert told.l2 == pytest.approx((p * (1 - p)).sum() / 200)
    assert told.sensitive.l2 == pytest.approx((p[:2] * (1 - p[:2])).sum() / 200)
    assert told.null_variance == 0


def make_theta(sensitive: int, epsilon: float, share: float) -> float:
    """sqrt(a) / (sqrt(a) + sqrt(c)) of ``optimal_theta``."""
    gain = math.expm1(epsilon)
    own, other = (gain + 1) * (sensitive + gain), sensitive + share * (sensitive - 1) * gain
    return pytest.approx(math.sqrt(own) / (math.sqrt(own) + math.sqrt(other)))


def test_without_privacy_a_share_says_where_people_are() -> None:
    """At worst all values are equally frequent; with a given share, they are inside each kind."""
    p = np.array([0.35, 0.35, 0.1, 0.1, 0.1])
    guessed = ClosedQuestion(num_values=5, num_sensitive=2, sensitive_share=0.7).without_privacy(50)
    assert guessed.l2 == pytest.approx((p * (1 - p)).sum() / 50)
    assert guessed.sensitive.l2 == pytest.approx(2 * 0.35 * 0.65 / 50)
    for sensitive in (2, 5):
        worst = ClosedQuestion(num_values=5, num_sensitive=sensitive).without_privacy(50)
        assert worst.l2 == pytest.approx(0.8 / 50)
        assert worst.sensitive.l2 == pytest.approx(sensitive * 0.16 / 50)


def test_named_alphabets_have_the_sensitive_values_first() -> None:
    setup: Any = SimpleNamespace(alphabet={"id": "closed"})
    some = ClosedQuestion(num_values=3, num_sensitive=2, names=("x", "y", "z"))
    assert some.named_alphabet(setup) == {"id": "closed", "values": ["x", "y", "z"], "sensitive": ["x", "y"]}
    everything = ClosedQuestion(num_values=2, num_sensitive=2)
    assert everything.named_alphabet(setup) == {"id": "closed", "values": ["value-001", "value-002"]}


def test_two_sizes_of_subsets_must_be_worth_it() -> None:
    """The losses are made up: of one size, that of the size; of two sizes, that of the share of the larger one."""

    def chosen(loss: Callable[[int, float | None], float], symbols: int, sensitive: int) -> tuple[int, float | None]:
        def made(subset_size: int, larger_share: float | None) -> Any:
            return SimpleNamespace(noise=loss(subset_size, larger_share), found=(subset_size, larger_share))

        found: Any = best_subsets(made, symbols, sensitive)
        return found.found

    def mixed(best: float) -> Callable[[int, float | None], float]:
        """Size 3 alone has 1; with size 4 in 30 % of the reports, ``best``."""
        return lambda size, share: (
            1 + abs(size - 3) if share is None else best + (share - 0.3) ** 2 + (0 if size == 3 else 1)
        )

    assert chosen(mixed(0.9), 9, 6) == (3, 0.3)
    assert chosen(mixed(0.9999), 9, 6) == (3, None)
    assert chosen(mixed(0.9997), 9, 6) == (3, 0.3)
    assert chosen(lambda size, share: 2 if share is None else 1 + (share - 0.25) ** 2 + size, 3, 2) == (1, None)
    assert chosen(lambda size, share: size if share is None else 9, 9, 6) == (1, None)
    assert chosen(lambda size, share: -size if share is None else 9, 9, 6) == (5, None)


# ---------------------------------------------------------------------- open questions


def test_frequencies_of_an_open_question_by_hand() -> None:
    """Of 3 candidates and 2 listed texts; 10 % hold other texts, whose inequality is that of the candidates."""
    question = OpenQuestion(**OPEN)
    shape, listed = zipf(3), zipf(2)
    assert question.heaviest_share == pytest.approx(0.1 * shape[0])
    held, others = question._held(0.7)
    np.testing.assert_allclose(np.sort(held.frequencies)[::-1], 0.6 * shape)
    np.testing.assert_allclose(np.sort(others.frequencies)[::-1], 0.3 * listed)
    assert question._held(0.05)[0].frequencies.tolist() == [0, 0, 0]
    flat = OpenQuestion(**OPEN, law="flat")
    np.testing.assert_allclose(flat._held(1.0)[0].frequencies, [0.3])
    given = OpenQuestion(**OPEN, frequencies=(0.4, 0.1, 0.1, 0.3, 0.1))
    np.testing.assert_allclose(given._held(0.7)[0].frequencies, [0.1, 0.4])
    np.testing.assert_allclose(given._held(0.7)[1].frequencies, [0.075, 0.225])
    assert given._given_share == pytest.approx(0.1 + 0.9 * 0.6)
    shares = [OpenQuestion(**OPEN, **fields)._given_share for fields in ({}, {"sensitive_share": 0.5})]
    assert [*shares, OpenQuestion(num_candidates=3)._given_share] == [None, 0.5, 1.0]


@pytest.mark.parametrize(("heaviest", "total"), [(0.1, 0.1), (0.02, 0.02 * 3 + 0.08 * 2 / 11), (0.0, 0.0)])
def test_no_unlisted_text_is_heavier_than_the_heaviest(heaviest: float, total: float) -> None:
    """Of 0.1, the rest has the shares 6, 3 and 2 of 11, cut at the heaviest one."""
    question = OpenQuestion(num_candidates=3, heaviest_unlisted=heaviest)
    assert question.heaviest_share == pytest.approx(heaviest)
    unlisted = question._unlisted
    assert float(unlisted.numbers @ unlisted.frequencies) == pytest.approx(total)
    assert unlisted.total == 4


@pytest.mark.parametrize(
    ("bend", "vertex", "share"),
    [(-1, 0.6, 0.6), (-3, 0.1, 0.2), (-2, 2.0, 1.0), (0, 1, 1.0), (0, -1, 0.2), (2, 0.5, 1.0), (2, 0.9, 0.2)],
)
def test_the_worst_share_of_squared_errors_is_the_vertex_of_a_parabola(
    bend: float, vertex: float, share: float
) -> None:
    """Within [0.2, 1]; the worse end of a line with the slope ``vertex``, and of a parabola that opens upwards."""
    question = OpenQuestion(**OPEN, unlisted_share=0.2)

    def loss(at: float) -> Any:
        return SimpleNamespace(l2=5 + (bend * (at - vertex) ** 2 if bend else vertex * at))

    assert question._share_for_l2(loss) == pytest.approx(share)


def test_the_worst_share_of_l1_is_found_between_the_ends() -> None:
    question = OpenQuestion(**OPEN, unlisted_share=0.2)
    for vertex, share in ((0.6, 0.6), (0.1, 0.2), (2.0, 1.0)):
        found = question._share_for_l1(lambda s, vertex=vertex: SimpleNamespace(normal_l1=-((s - vertex) ** 2)))  # type: ignore[arg-type,misc]  # what is read of it is enough
        assert found == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(
    ("fields", "mechanism", "n", "cohorts"),
    [
        ({"num_candidates": 30}, ("krr", 4, 4), 5000, (1024, 1024)),
        ({"num_candidates": 30}, ("krr", 4, 4), 32 * 4 * 3000, (1024, 3000)),
        ({"num_candidates": 30}, ("krr", 4, 4), 10**12, (1024, 65_536)),
        ({"num_candidates": 1 << 12}, ("krr", 64, 64), 10**12, (1024, 4096)),
        ({"num_candidates": 30, "max_cohorts": 11}, ("krr", 4, 4), 10**12, (11, 11)),
        ({"num_candidates": 30, "max_cohorts": 10}, ("krr", 4, 4), 10**12, None),
        ({"num_candidates": 29, "max_cohorts": 10}, ("krr", 4, 4), 10**12, (10, 10)),
        ({"num_candidates": 30, "num_non_sensitive": 5, "max_cohorts": 11}, ("urr", 9, 4), 99, (11, 11)),
    ],
)
def test_cohorts_to_consider_by_hand(
    fields: dict[str, int], mechanism: tuple[str, int, int], n: int, cohorts: tuple[int, int] | None
) -> None:
    """Enough equations for all hashed candidates; 32 reports a counter for more; at most 2**24 hashes."""
    name, symbols, sensitive = mechanism
    made: Any = make(name, symbols, sensitive, epsilon=1.0)
    assert OpenQuestion(**fields)._cohorts(made, n) == cohorts


def test_named_alphabets_list_what_is_not_sensitive() -> None:
    setup: Any = SimpleNamespace(alphabet={"id": "hashed", "num_buckets": 4}, mechanism=make("urr", 6, 4, epsilon=1))
    named = {"non_sensitive": ["a", "b"]}
    assert OpenQuestion(**OPEN, names=("a", "b")).named_alphabet(setup) == setup.alphabet | named
    assert OpenQuestion(**OPEN).named_alphabet(setup)["non_sensitive"] == ["value-001", "value-002"]
    setup.mechanism = make("krr", 4, 4, epsilon=1)
    assert OpenQuestion(**OPEN).named_alphabet(setup) == setup.alphabet


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
