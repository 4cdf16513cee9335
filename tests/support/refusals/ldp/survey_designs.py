"""Refusals of designs of surveys: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable

from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.mechanisms.channels.survey_designs import SurveyDesign

WRONG = [
    ("kuk:0.2", "SurveyDesign.name must be one of direct, crosswise, forced, unrelated, got 'kuk'"),
    ("crosswise", "SurveyDesign.rates of crosswise must be 1 number(s), got 0"),
    ("direct:0.5", "SurveyDesign.rates of direct must be 0 number(s), got 1"),
    ("forced:0.5", "SurveyDesign.rates of forced must be 2 number(s), got 1"),
    ("crosswise:1.5", "SurveyDesign.rates must be numbers from 0 to 1 with at most 18 decimals, got '1.5'"),
    ("crosswise:1/2", "SurveyDesign.rates must tell yes from no, got crosswise:1/2"),
    ("forced:0,0.5", "SurveyDesign.rates must tell yes from no, got forced:0,0.5"),
]


def parsing(text: str) -> Callable[[], SurveyDesign]:
    return lambda: SurveyDesign.parse(text)


REFUSED = [(SpecError, parsing(text), sentence) for text, sentence in WRONG]
