"""Memos: what one report and all reports of one symbol give away, by enumeration, in exact numbers.

Letters: K symbols of which v sensitive, Y payloads, t reports of one person.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.support.cases import (
    MECHANISMS_TO_TEST,
    e_below,
    each_mechanism,
    exact_channel,
    label,
)
from tests.support.ldp.memo_channels import MEMOS, TINY, memo_rows, second_step
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.ldp.mechanisms import (
    KaryRR,
    Mechanism,
    Rappor,
    SetReportMechanism,
    SubsetSelection,
    UtilityOptimizedHadamardResponse,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
)
from uldp_transforms.ldp.sampling import WORD, SeededSource

memos = each_mechanism(MEMOS)


def joint(mechanism: SetReportMechanism, reports: Sequence[int], step: list[list[Fraction]]) -> list[Fraction]:
    """(K,): the probability of these reports, in this order, under each symbol: over all memos that may be behind."""
    of_memo = [math.prod((step[report][memo] for report in reports), start=Fraction(1)) for memo in range(len(step))]
    return [sum(map(Fraction.__mul__, of_memo, column), Fraction(0)) for column in zip(*memo_rows(mechanism))]


@memos
def test_a_memo_obeys_epsilon_inf_and_nearly_reaches_it(mechanism: Any) -> None:
    payloads, rows = mechanism.memo.channel()
    assert payloads == exact_channel(mechanism)[0]
    assert [sum(column) for column in zip(*rows)] == [1] * mechanism.num_symbols
    largest = max(max(row) / min(row) for row in rows if all(row))
    assert largest == mechanism.memo.exact_ratio <= e_below(mechanism.epsilon_inf)
    assert math.log(largest) == pytest.approx(mechanism.epsilon_inf, abs=1e-8)


@each_mechanism([case for case in MEMOS if case.num_outputs <= 80])
def test_one_report_is_a_memo_that_passed_the_second_coin(mechanism: Any) -> None:
    """So the channel of both coins is that of one coin with the product of their probabilities."""
    step = second_step(mechanism)
    assert [joint(mechanism, [report], step) for report in range(len(step))] == exact_channel(mechanism)[1]


@pytest.mark.parametrize("number", [1, 2, 3])
@each_mechanism(TINY)
def test_the_loss_of_several_reports_is_that_of_their_enumeration(mechanism: Any, number: int) -> None:
    step = second_step(mechanism)
    worst = Fraction(1)
    for reports in itertools.combinations_with_replacement(range(len(step)), number):
        shares = joint(mechanism, reports, step)
        assert all(shares) or not any(shares[: mechanism.num_sensitive])  # or a report in clear is among them
        worst = max(worst, max(shares) / min(shares)) if all(shares) else worst
    assert worst == mechanism.ratio_after(number)


@memos
def test_the_loss_grows_to_that_of_the_memo(mechanism: Any) -> None:
    losses = [mechanism.ratio_after(number) for number in (1, 2, 7, 365)]
    assert losses[0] == mechanism.exact_ratio
    assert losses == sorted(losses)
    assert losses[-1] <= mechanism.memo.exact_ratio
    computed = [mechanism.epsilon_after(number) for number in (1, 2, 7, 365)]
    assert computed == pytest.approx([math.log(loss) for loss in losses], rel=1e-9)
    assert mechanism.epsilon_after(10**9) == pytest.approx(mechanism.memo.effective_epsilon, rel=1e-9)


def test_the_loss_of_long_reports_is_a_number() -> None:
    """Though their least probability is 0 in floating point."""
    mechanism = Rappor(num_symbols=5000, num_sensitive=5000, epsilon=1, epsilon_inf=3, theta=0.5)
    assert mechanism.epsilon_after(1) == pytest.approx(1, rel=1e-6)
    assert mechanism.epsilon_after(2) == pytest.approx(3, rel=1e-6)


@pytest.mark.parametrize(
    ("num_symbols", "epsilon_inf", "losses"),
    [
        (4, 2.0, {1: 1.000, 2: 1.678, 3: 1.923, 5: 1.997}),
        (2, 4.0, {1: 1.0, 2: 1.953, 3: 2.783, 5: 3.742, 7: 3.964}),
    ],
)
def test_losses_computed_elsewhere(num_symbols: int, epsilon_inf: float, losses: dict[int, float]) -> None:
    mechanism = KaryRR(num_symbols=num_symbols, num_sensitive=num_symbols, epsilon=1, epsilon_inf=epsilon_inf)
    for number, loss in losses.items():
        assert mechanism.epsilon_after(number) == pytest.approx(loss, abs=6e-4)


@each_mechanism([case for case in MECHANISMS_TO_TEST if case not in MEMOS])
def test_fresh_reports_add_up(mechanism: Mechanism) -> None:
    assert mechanism.epsilon_after(3) == 3 * mechanism.epsilon
    assert "repeat_weight" not in mechanism.exact_weights
    if isinstance(mechanism, SetReportMechanism):
        assert mechanism.ratio_after(3) == mechanism.exact_ratio**3
        assert mechanism.informative == Fraction(mechanism.keep_weight, WORD)


def history(mechanism: SetReportMechanism, symbols: Sequence[int], reports: Sequence[int]) -> Fraction:
    """The probability of these reports of a person who held these symbols, one after the other."""
    step, found = second_step(mechanism), Fraction(1)
    for symbol in set(symbols):
        own = [report for held, report in zip(symbols, reports) if held == symbol]
        found *= joint(mechanism, own, step)[symbol]
    return found


def test_every_symbol_ever_held_costs_epsilon_inf() -> None:
    """Where it is known when the symbol changed, and which ones were the same: over all reports of four windows."""
    mechanism = KaryRR(num_symbols=3, num_sensitive=3, epsilon=1, epsilon_inf=2)
    ratios = [
        history(mechanism, (0, 1, 0, 1), reports) / history(mechanism, (1, 2, 1, 2), reports)
        for reports in itertools.product(range(3), repeat=4)
    ]
    assert mechanism.ratio_after(2) < max(ratios) <= mechanism.ratio_after(2) ** 2 <= e_below(2.0) ** 2


def test_that_a_symbol_changes_is_not_protected() -> None:
    """Between a value that alternates and one that stays, the loss grows with every window and has no bound."""
    mechanism = KaryRR(num_symbols=4, num_sensitive=4, epsilon=1, epsilon_inf=2)
    losses = []
    for windows in (4, 40, 100):
        reports = [0, 1] * (windows // 2)
        changing = history(mechanism, reports, reports)
        staying = history(mechanism, [0] * windows, reports)
        losses.append(math.log(changing / staying))
    assert losses == sorted(losses)
    assert losses[1] > 4 * 2.0  # the whole alphabet times epsilon_inf


# ---------------------------------------------------------------------- reports that are really drawn


class Given:
    """Words that were written down."""

    def __init__(self, *words: int):
        self._words = list(words)

    def words(self, *shape: int) -> np.ndarray:
        size = math.prod(shape)
        taken, self._words = self._words[:size], self._words[size:]
        return np.array(taken, dtype=np.uint64).reshape(shape)


def test_one_word_each_decides_memo_and_report_of_randomized_response() -> None:
    """At every threshold: the words that keep, and the equal slices of noise, use up 2**64 words."""
    mechanism = UtilityOptimizedRR(num_symbols=5, num_sensitive=3, epsilon=1, epsilon_inf=2)
    for draw, keep, noise, kept in (
        (mechanism.draw_memos, mechanism.keep_weight, mechanism.noise_weight, np.array([4])),
        (
            mechanism.draw_reports,
            mechanism.repeat_weight,
            mechanism.report_noise_weight,
            mechanism.as_payloads(np.array([4])),
        ),
    ):
        assert keep + 3 * noise == WORD
        starts = [0, keep, keep + noise, keep + 2 * noise]
        for start, end, expected in zip(starts, [*starts[1:], WORD], (4, 0, 1, 2)):
            for word in (start, end - 1):
                assert mechanism.integers(draw(kept, Given(word)))[0] == expected


@pytest.mark.parametrize(
    "mechanism",
    [
        Rappor(num_symbols=3, num_sensitive=3, epsilon=1, epsilon_inf=2),
        SubsetSelection(num_symbols=4, num_sensitive=4, epsilon=1, epsilon_inf=2, subset_size=2),
        UtilityOptimizedHadamardResponse(num_symbols=4, num_sensitive=3, epsilon=1, epsilon_inf=2),
        UtilityOptimizedRappor(num_symbols=4, num_sensitive=2, epsilon=1, epsilon_inf=2, inversion="marginal"),
    ],
    ids=label,
)
def test_the_second_coin_repeats_the_memo_or_sends_noise(mechanism: Any) -> None:
    """At its threshold; and pairs of reports of one memo are as frequent as the exact law says."""
    rng = generator("two reports of a memo", label(mechanism))
    payloads, _ = exact_channel(mechanism)
    index = {payload: i for i, payload in enumerate(payloads)}
    n, symbol = 60_000, mechanism.num_symbols - 1
    kept = mechanism.draw_memos(np.full(n, symbol), SeededSource(rng))
    pairs = np.zeros((len(payloads), len(payloads)))
    one, other = (mechanism.draw_reports(kept, SeededSource(rng)) for _ in range(2))
    np.add.at(pairs, tuple([index[row.tobytes()] for row in part] for part in (one, other)), 1)
    step = second_step(mechanism)
    law = np.array([[float(joint(mechanism, (i, j), step)[symbol]) for j in index.values()] for i in index.values()])
    assert within(pairs, binomial_limits(n, law)).all()
