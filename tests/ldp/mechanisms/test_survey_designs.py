"""Survey designs: what they ask of people, drawn by hand, and what is no design."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tests.support.refusals.ldp.survey_designs import WRONG
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.mechanisms.channels.survey_designs import RATES, SurveyDesign, rate_of
from uldp_transforms.ldp.sampling import WORD


def ones_by_enumeration(design: SurveyDesign, truth: bool) -> Fraction:
    """Pr(answer 1), from what the design tells a person to do."""
    rates = [Fraction(rate) for rate in design.rates]
    if design.name == "direct":
        return Fraction(int(truth))
    if design.name == "crosswise":  # the other question is answered yes with this rate
        return sum(
            (chance for other, chance in ((True, rates[0]), (False, 1 - rates[0])) if other == truth), Fraction(0)
        )
    answers = [(rates[0], truth), ((1 - rates[0]) * rates[1], True), ((1 - rates[0]) * (1 - rates[1]), False)]
    return sum((chance for chance, answer in answers if answer), Fraction(0))


@pytest.mark.parametrize(
    "text",
    ["direct", "crosswise:0.1594625", "crosswise:1/3", "forced:0.75,2/3", "forced:1,0.5", "unrelated:0.778,.49"],
)
def test_answers_have_the_probabilities_of_the_instructions(text: str) -> None:
    design = SurveyDesign.parse(text)
    assert str(design) == text
    no, yes = (ones_by_enumeration(design, truth) for truth in (False, True))
    assert design.ones == (no, yes)
    for row, exact in zip(design.channel.weights, ((1 - no, 1 - yes), (no, yes))):
        assert [abs(Fraction(weight, WORD) - share) < Fraction(2, WORD) for weight, share in zip(row, exact)] == [
            True
        ] * 2


def test_what_an_answer_reveals() -> None:
    assert SurveyDesign.parse("forced:2/3,1/2").channel.epsilon == pytest.approx(math.log(5))
    assert math.isinf(SurveyDesign.parse("direct").channel.epsilon)
    assert math.isinf(SurveyDesign.parse("forced:0.75,1").channel.epsilon)


@pytest.mark.parametrize(("text", "sentence"), WRONG)
def test_refused(text: str, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        SurveyDesign.parse(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("text", ["", ".", "-0.1", "1e-3", "1/0", "2/1", "0,5", "nan", "½", "0." + "1" * 19])
def test_no_rates(text: str) -> None:
    assert rate_of(text) is None


@pytest.mark.parametrize(
    ("text", "rate"), [("0", 0), ("1", 1), ("1.0", 1), (".5", Fraction(1, 2)), ("5/6", Fraction(5, 6))]
)
def test_rates(text: str, rate: Fraction) -> None:
    assert rate_of(text) == rate


def test_every_design_has_its_rates() -> None:
    assert {name: len(rates) for name, rates in RATES.items()} == {
        "direct": 0,
        "crosswise": 1,
        "forced": 2,
        "unrelated": 2,
    }
