"""Mechanisms with memos, and the exact law of their two steps."""

from __future__ import annotations

import functools
from fractions import Fraction

from tests.support.cases import (
    SET_REPORTS_TO_TEST,
    exact_channel,
)
from uldp_transforms.ldp.mechanisms import (
    SetReportMechanism,
)
from uldp_transforms.ldp.sampling import WORD

MEMOS = [case for case in SET_REPORTS_TO_TEST if case.epsilon_inf is not None]
TINY = [case for case in MEMOS if case.num_outputs <= 12]


def second_step(mechanism: SetReportMechanism) -> list[list[Fraction]]:
    """(Y, Y): the probability of each report given each memo, written down from the two integers of the second coin."""
    payloads, _ = exact_channel(mechanism)
    noise = {payload: share for payload, share, _ in mechanism.noise_law()}
    repeat = Fraction(mechanism.repeat_weight, WORD)
    return [
        [(1 - repeat) * noise.get(report, Fraction(0)) + repeat * (report == memo) for memo in payloads]
        for report in payloads
    ]


@functools.cache
def memo_rows(mechanism: SetReportMechanism) -> list[list[Fraction]]:
    """(Y, K): the probability of each memo under each symbol."""
    return mechanism.memo.channel()[1]
