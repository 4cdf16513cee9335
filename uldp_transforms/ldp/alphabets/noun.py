"""The noun of a collection: what pages and texts call the things whose values are asked, such as flights."""

from __future__ import annotations

import dataclasses

from uldp_transforms.ldp.checks import describe, require_keys, require_mapping
from uldp_transforms.ldp.errors import SpecError

MAX_LETTERS = 40

_OF_MARKUP = frozenset("<>&\"'`")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noun:
    """What one report is about, in the singular and the plural.

    Attributes:
        one: such as ``flight``.
        many: such as ``flights``.
    """

    one: str = "answer"
    many: str = "answers"

    def __post_init__(self) -> None:
        for name, text in dataclasses.asdict(self).items():
            is_short = isinstance(text, str) and 0 < len(text) <= MAX_LETTERS
            if not is_short or not text.isprintable() or text != text.strip() or _OF_MARKUP.intersection(text):
                raise SpecError(
                    f"Collection.noun.{name} must be a text of 1 to {MAX_LETTERS} printable characters without "
                    f"{' '.join(sorted(_OF_MARKUP))} and outer white space, got {describe(text)}"
                )

    def or_else(self, other: Noun) -> Noun:
        """This noun if the collection declares one, otherwise another."""
        return other if self == ANSWER else self

    def counted(self, number: int) -> str:
        """``1 flight`` or ``1,234 flights``."""
        return f"{number:,} {self.one if number == 1 else self.many}"


ANSWER = Noun()
"""The default."""

REPORT, PERSON = Noun(one="report", many="reports"), Noun(one="person", many="people")
"""What texts count, and of what they say shares, if a collection declares no noun."""


def noun_of(spec: object) -> Noun:
    """The noun of a collection's JSON form; the default for null.

    Raises:
        SpecError: if it is no object with the texts ``one`` and ``many``, or one of them is not allowed.
    """
    if spec is None:
        return ANSWER
    names = [field.name for field in dataclasses.fields(Noun)]
    require_mapping("Collection.noun", spec)
    require_keys("Collection.noun", spec, names, names)  # type: ignore[arg-type]
    return Noun(**spec)  # type: ignore[arg-type]
