"""Answers by the crosswise design, with people who may not follow it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uldp_transforms_survey.answers.inattention import InattentiveAnswers
from uldp_transforms_survey.answers.shares import DesignedAnswers

QUESTION = np.nan
"""The known share of a line that is no anchor."""


def crosswise(rates: list[float], ones: Any, people: Any, known: list[float] | None, habit: str) -> InattentiveAnswers:
    """Answers at several rates; ``known`` has the share of yes where a rate is that of an anchor."""
    rate = np.array(rates)
    counted = DesignedAnswers(no=1 - rate, yes=rate, ones=np.array(ones, float), people=np.array(people, float))
    return InattentiveAnswers(
        answers=counted, known=np.array([QUESTION] * len(rates) if known is None else known), habit=habit
    )
