"""Rows of public blocks and of levels: when they are compared, their worst cases, and what is recommended."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.ldp.small_mechanisms import make
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Blocks
from uldp_transforms.ldp.mechanisms.nested.nested_channel import Level
from uldp_transforms_planner.planning import ClosedQuestion, least_epsilon, plan
from uldp_transforms_planner.planning.planned_question import placeholders
from uldp_transforms_planner.planning.structured_rows import values_by_symbol
from uldp_transforms_planner.utility.alike_symbols import AlikeSymbols
from uldp_transforms_planner.utility.worst_case import L1, L2, worst_case_distribution

N = 100_000


def in_blocks(*sizes: tuple[int, int], **fields: object) -> ClosedQuestion:
    """Blocks of these numbers of values, the last of which are sensitive."""
    lists = {f"b{at:02}": [f"b{at:02}-{i}" for i in range(size)] for at, (size, _) in enumerate(sizes)}
    sensitive = [value for own, (_, number) in zip(lists.values(), sizes) for value in own[len(own) - number :]]
    blocks = Blocks(blocks=lists, sensitive=tuple(sensitive))
    names = values_by_symbol(blocks)
    return ClosedQuestion(num_values=len(names), num_sensitive=len(sensitive), names=names, blocks=blocks, **fields)  # type: ignore[arg-type]


def in_levels(*sizes: tuple[int, float], clear: int = 0) -> ClosedQuestion:
    v = sum(number for number, _ in sizes)
    names = tuple(placeholders(v + clear))
    rest = iter(names)
    levels = tuple(Level(epsilon, tuple(next(rest) for _ in range(number))) for number, epsilon in sizes)
    return ClosedQuestion(num_values=v + clear, num_sensitive=v, names=names, levels=levels)


# ---------------------------------------------------------------------- what is compared


def test_rows_need_what_the_question_says() -> None:
    """Blocks without sensitive values exclude mechanisms that protect every value."""
    flat = set(ClosedQuestion(num_values=12, num_sensitive=12).setups(N))
    assert set(in_blocks((6, 6), (6, 6)).setups(N)) == flat | {f"{name}, blocks" for name in flat}
    some = {f"{name}, blocks" for name in ("urr", "urap", "urap, best theta", "uss", "uhr")}
    found = {name for name in in_blocks((6, 6), (3, 0), (4, 2)).setups(N) if name.endswith("blocks")}
    assert found == some
    levels = {f"levels, of {of}" for of in ("urr", "uss", "urap")}
    assert set(in_levels((2, 0.5), (10, 2.0)).setups(N)) == flat | levels
    both = dataclasses.replace(in_blocks((6, 2), (6, 2)))
    with_levels = dataclasses.replace(both, levels=(Level(1.0, both.names[2:4]), Level(2.0, both.names[:2])))  # type: ignore[index]
    assert levels | some < set(with_levels.setups(N))


# ---------------------------------------------------------------------- worst cases


@pytest.mark.parametrize(("name", "k", "v"), [("krr", 9, 9), ("urr", 9, 4), ("uss", 12, 5), ("urap", 7, 3)])
def test_two_kinds_have_the_worst_cases_of_the_closed_forms(name: str, k: int, v: int) -> None:
    mechanism, kinds = make(name, k, v, epsilon=1.3), (np.arange(k) >= v).astype(np.int64)
    worst = AlikeSymbols.of(mechanism, kinds, v)
    for loss, shares in ((L1, worst.worst_of_l1), (L2, worst.worst_of_l2)):
        np.testing.assert_allclose(worst.spread(shares, kinds), worst_case_distribution(mechanism, loss), atol=1e-5)


@pytest.mark.parametrize("share", [None, 0.0, 0.4, 1.0])
def test_worst_shares_are_shares(share: float | None) -> None:
    """Made-up kinds, some of which nobody should hold; sums as given, and no other shares are worse."""
    rng = generator("kinds")
    squares = 2 + rng.uniform(0, 0.1, (5, 5)) + 0.1 * np.eye(5)
    sensitive = np.array([True, True, True, False, False])
    worst = AlikeSymbols(np.array([1.0, 2, 4, 8, 3]), squares, sensitive, share)
    for found, loss in ((worst.worst_of_l1, worst.l1), (worst.worst_of_l2, worst.l2)):
        assert found.min() >= 0 and found.sum() == pytest.approx(1)
        assert share is None or found[sensitive].sum() == pytest.approx(share)
        for _ in range(2000):
            other = rng.dirichlet(np.full(5, 0.5))
            if share is not None:
                other[sensitive] *= share / other[sensitive].sum()
                other[~sensitive] *= (1 - share) / other[~sensitive].sum()
            assert loss(other) <= loss(found) * (1 + 1e-6)
    assert share is not None or 2 <= np.count_nonzero(worst.worst_of_l2) <= 4


QUESTIONS = [
    in_blocks((5, 5), (20, 20), (9, 9)),
    in_blocks((5, 2), (20, 7), (20, 7), (4, 0)),
    in_blocks((5, 2), (20, 7), (6, 3), sensitive_share=0.3),
    in_levels((2, 0.5), (9, 1.0), (20, 3.0), clear=6),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=["all", "some", "share", "levels"])
def test_no_distribution_is_worse_than_the_worst(question: ClosedQuestion) -> None:
    """Of rows within blocks and of levels, over 400 distributions of any concentration, with the assumed share."""
    rng, w, v = generator("worst"), question.num_values, question.num_sensitive
    rows = {name: make for name, make in question.setups(N).items() if "blocks" in name or "levels" in name}
    assert len(rows) >= 3
    for name, setup_of in rows.items():
        setup = setup_of(0.5)
        assert setup is not None
        largest = {"l1": 0.0, "l2": 0.0}
        for _ in range(400):
            p = rng.dirichlet(np.full(w, 10.0 ** rng.uniform(-2, 2)))
            if question.sensitive_share is not None:
                p[:v] *= question.sensitive_share / p[:v].sum()
                p[v:] *= (1 - question.sensitive_share) / p[v:].sum()
            given = dataclasses.replace(question, frequencies=tuple((p / p.sum()).tolist()), sensitive_share=None)
            variances = setup.mechanism.variances(np.array(given.frequencies))
            largest["l1"] = max(largest["l1"], np.sqrt(2 / np.pi / N * variances).sum())
            largest["l2"] = max(largest["l2"], variances.sum() / N)
        worst = setup.forecast(N)
        assert largest["l2"] <= worst.l2 * (1 + 1e-9), name
        assert largest["l1"] <= worst.l1 * 1.002, name  # the forecast is not the normal form


# ---------------------------------------------------------------------- errors, and what is recommended


def test_blocks_divide_the_error_by_about_their_number() -> None:
    """20 x 20 values at epsilon 1: the noise of 400 values against that of 20, from a twentieth of the people."""
    rows = {row.name: row for row in plan(in_blocks(*[(20, 20)] * 20), 1.0, N).rows}
    within, alone = rows["ss, blocks"], plan(ClosedQuestion(num_values=20, num_sensitive=20), 1.0, N // 20)
    (of_one,) = [row for row in alone.rows if row.name == "ss"]
    noise = (of_one.l2 + 1 / 20 / (N // 20)) / 20  # without the sampling of a share, which is that of all people
    assert within.l2 == pytest.approx(noise - 1 / 400 / N, rel=1e-6)
    assert 20 < rows["ss"].l2 / within.l2 < 24


TABLE = [  # of levels: v and epsilon of each; n l2 of one epsilon and of levels, in the sums of ``test_nested_levels``
    (((5, 0.5), (45, 2.0)), 756, 175),
    (((5, 1.0), (45, 3.0)), 178, 36),
    (((10, 1.0), (90, 4.0)), 362, 48),
    (((3, 1.0), (20, 2.0)), 79, 36),
]


@pytest.mark.parametrize(("sizes", "one", "nested"), TABLE)
def test_levels_have_the_errors_of_the_table(sizes: Sequence[tuple[int, float]], one: int, nested: int) -> None:
    """The table adds up levels that each hold everybody, so it bounds each distribution from above, and by at most the
    share of the first level."""
    question = in_levels(*sizes)
    rows = {row.name: row for row in plan(question, sizes[0][1], N).rows}
    assert rows["ss"].l2 * N == pytest.approx(one, rel=0.02)
    found = rows["levels, of uss"]
    assert 0.8 * nested < found.l2 * N < nested
    assert found.setup is not None
    per_value = found.setup.forecast(N).levels
    assert [part.numbers.sum() for part in per_value] == [number for number, _ in sizes]
    assert sum(part.l2 for part in per_value) == pytest.approx(found.l2)
    assert plan(question, sizes[0][1], N).best.name == "levels, of uss"


@pytest.mark.parametrize("question", QUESTIONS[:2], ids=["all", "some"])
def test_recommended_blocks_can_be_read(question: ClosedQuestion) -> None:
    """The symbols of the collection are those of the plan, and what the alphabet does not protect is said."""
    found = plan(question, 1.0, N)
    assert found.best.name.endswith(", blocks") and found.best.setup is not None
    item = Collection.from_json(json.loads(json.dumps(found.collection)))
    assert item.mechanism == found.best.setup.mechanism
    assert item.alphabet.symbol_table(question.names or (), 1)[0].tolist() == list(range(question.num_values))
    assert item.alphabet.caveats == found.best.setup.caveats


def test_recommended_levels_can_be_read_whatever_the_order_of_their_values() -> None:
    question = in_levels((2, 0.5), (9, 2.0), clear=3)
    first, second = question.levels or ()
    turned = tuple(reversed(question.names[:11])) + question.names[11:]  # type: ignore[index]
    for names in (question.names, turned):
        asked = dataclasses.replace(
            question, names=names, levels=(first, Level(2.0, tuple(reversed(second.values or ()))))
        )
        found = plan(asked, 0.5, N)
        item = Collection.from_json(json.loads(json.dumps(found.collection)))
        assert found.best.setup is not None and item.mechanism == found.best.setup.mechanism
        assert item.mechanism.guarantees == found.best.setup.mechanism.guarantees
    assert {row.name: row.l2 for row in plan(asked, 0.5, N).rows}["levels, of uss"] == pytest.approx(
        {row.name: row.l2 for row in plan(question, 0.5, N).rows}["levels, of uss"]
    )


def test_needed_epsilons_of_levels_are_in_proportion() -> None:
    """Up to 16 in the last level, so up to 4 in the first."""
    question = in_levels((5, 0.5), (45, 2.0))
    assert question.max_epsilon == 4
    row = {row.name: row for row in plan(question, 0.5, N, target_l2=0.001).rows}["levels, of uss"]
    assert row.epsilon_needed is not None and row.setup is not None
    setups = question.setups(N)["levels, of uss"]
    for epsilon, is_met in ((row.epsilon_needed, True), (row.epsilon_needed - 0.001, False)):
        setup = setups(epsilon)
        assert setup is not None and (setup.forecast(N).l2 <= 0.001) == is_met
        assert [one.epsilon for one in setup.mechanism.guarantees] == pytest.approx([epsilon, 4 * epsilon])
    assert least_epsilon(question, 10, target_l2=1e-9) is None
