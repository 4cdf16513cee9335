"""Randomized designs of surveys with a yes-no question, as channels.

Sources: crosswise model: Yu, Tian and Tang 2008 (Warner 1965 asks for the same probabilities); forced response: Boruch
1971; unrelated question: Greenberg et al. 1969.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from fractions import Fraction

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.channels.declared_channel import DeclaredChannel

RATES = {"direct": (), "crosswise": ("RATE",), "forced": ("TRUTH", "YES"), "unrelated": ("TRUTH", "YES")}
"""Designs, and the names of their rates."""

FORMS = ", ".join(":".join(filter(None, (name, ",".join(rates)))) for name, rates in RATES.items())

_NUMBER = re.compile(r"[0-9]{1,18}/[0-9]{1,18}|[0-9]{0,2}\.?[0-9]{1,18}|[0-9]\.", re.ASCII)


def rate_of(text: str) -> Fraction | None:
    """A rate such as ``0.75`` or ``5/6``; None if the text is not a number from 0 to 1 with at most 18 decimals."""
    if not _NUMBER.fullmatch(text) or re.fullmatch(r"\d+/0+", text):
        return None
    rate = Fraction(text)
    return rate if rate <= 1 else None


@dataclasses.dataclass(frozen=True)
class SurveyDesign:
    """The meaning of the answers 0 and 1 in a survey design.

    - ``direct``: answer 1 means yes.
    - ``crosswise:RATE``: answer 1 means that two answers are equal, that to the sensitive question and that to another
      one, to which a share RATE of people says yes.
    - ``forced:TRUTH,YES``: people answer truthfully with probability TRUTH; the others must say yes with probability
      YES, else no.
    - ``unrelated:TRUTH,YES``: people answer the sensitive question with probability TRUTH; the others another one, to
      which a share YES says yes.

    Attributes:
        name: one of ``RATES``.
        rates: texts such as ``"0.75"`` or ``"5/6"``, from 0 to 1.

    Raises:
        SpecError: if there is no such design, or if yes and no have the same answers.
    """

    name: str
    rates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in RATES:
            raise SpecError(f"SurveyDesign.name must be one of {', '.join(RATES)}, got {describe(self.name)}")
        needed = RATES[self.name]
        if len(self.rates) != len(needed):
            raise SpecError(f"SurveyDesign.rates of {self.name} must be {len(needed)} number(s), got {len(self.rates)}")
        for rate in self.rates:
            if rate_of(rate) is None:
                raise SpecError(
                    f"SurveyDesign.rates must be numbers from 0 to 1 with at most 18 decimals, got {describe(rate)}"
                )
        try:
            _ = self.channel
        except SpecError:
            raise SpecError(f"SurveyDesign.rates must tell yes from no, got {self}") from None

    @classmethod
    def parse(cls, text: str) -> SurveyDesign:
        """The design of a text such as ``crosswise:0.1595``; raises SpecError."""
        name, _, rates = text.strip().partition(":")
        return cls(name.strip(), tuple(rate.strip() for rate in rates.split(",")) if rates else ())

    def __str__(self) -> str:
        return f"{self.name}:{','.join(self.rates)}" if self.rates else self.name

    @property
    def ones(self) -> tuple[Fraction, Fraction]:
        """Pr(answer 1) for people whose true answer is no, and for those whose true answer is yes."""
        rates = [rate_of(rate) or Fraction(0) for rate in self.rates]
        if self.name == "direct":
            return Fraction(0), Fraction(1)
        if self.name == "crosswise":
            return 1 - rates[0], rates[0]
        truth, yes = rates
        return (1 - truth) * yes, truth + (1 - truth) * yes

    @functools.cached_property
    def channel(self) -> DeclaredChannel:
        """Symbols 0 no and 1 yes; outputs 0 and 1; its reports are only decoded."""
        no, yes = self.ones
        matrix = ((str(1 - no), str(1 - yes)), (str(no), str(yes)))
        return DeclaredChannel(num_symbols=2, num_sensitive=2, matrix=matrix, clients="foreign")
