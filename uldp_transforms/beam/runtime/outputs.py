"""Sentences for the outputs of a transform that are used in another way than by their names."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar

from uldp_transforms.ldp.errors import SpecError

_OF_PCOLLECTION = frozenset({"element_type", "is_bounded", "pipeline", "producer", "tag", "windowing"})
"""Attributes that Beam's steps ask of their input."""


class NoOutputError(SpecError, AttributeError):
    """A transform has no output of this name."""


class NamedOutputs(tuple[Any, ...]):
    """Base of the named tuples of outputs: refuses a step for all of them, and names that are none of theirs.

    Attributes:
        owner: name of the transform.
        example: an expression for the output that most steps need, such as ``files.messages``.
    """

    __slots__ = ()

    owner: ClassVar[str]
    example: ClassVar[str]

    def __or__(self, step: object) -> Any:
        raise SpecError(self._in_words("several outputs", "a step for all", f"{self.example} | step"))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, str):
            raise SpecError(self._in_words("its outputs as attributes", f"[{at!r}]", f".{self._nearest(at)}"))
        return super().__getitem__(at)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Python and Beam ask for such names
            raise AttributeError(name)
        if name in _OF_PCOLLECTION:
            raise NoOutputError(self._in_words("several outputs", "a step for all", f"{self.example} | step"))
        raise NoOutputError(self._in_words("its outputs as attributes", f".{name}", f".{self._nearest(name)}"))

    def _in_words(self, has: str, came: str, use: str) -> str:
        return f"{self.owner} has {has} ({', '.join(self._fields)}), got {came}; use: {use}"

    def _nearest(self, name: str) -> str:
        nearest = difflib.get_close_matches(name, self._fields, n=1)
        return nearest[0] if nearest else self.example.rpartition(".")[2]
