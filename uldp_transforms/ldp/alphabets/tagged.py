"""A closed alphabet in which a person can protect further, personally sensitive values by semantic tags."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet, index_of
from uldp_transforms.ldp.alphabets.closed import closed_values
from uldp_transforms.ldp.checks import describe, is_number, require_texts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical

MAX_VALUES = 4096
"""Maximum number of values and tags together, because standard errors need dense matrices of that size."""

_SUM_SLACK = 1e-9


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tagged(Alphabet):
    """Values, and tags such as "home" that a client sends *in place of* a value that is sensitive to its own person.

    A tag is one more sensitive symbol. The assignment of a person's values to tags stays on the device
    (``PersonalTags``). The collector distributes the people behind a tag by background knowledge about such values or,
    without any, like the other non-sensitive values.

    Symbols: sensitive values, then tags, then the other values.

    Attributes:
        values: all values, in the order in which estimates list them.
        tags: names, none of which is a value. Values that fit no tag go to one such as "others".
        sensitive: the values that are sensitive to everybody; may be empty.
        background: for some tags the distribution of the non-sensitive values behind it, {tag: {value: share}}.

    Source: Murakami and Kawamoto 2019, section 5 (personalised ULDP mechanism), equation 22.
    """

    id: ClassVar[str] = "tagged"
    values: tuple[str, ...]
    tags: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    background: Mapping[str, Mapping[str, float]] | None = dataclasses.field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", closed_values("Tagged", self.values))
        for name, least in (("tags", 1), ("sensitive", 0)):
            require_texts(f"Tagged.{name}", getattr(self, name), at_least=least)
            texts = tuple(map(canonical, getattr(self, name)))
            require_texts(f"Tagged.{name}", texts, at_least=least)
            object.__setattr__(self, name, texts)
        if len(self.values) + len(self.tags) > MAX_VALUES:
            raise SpecError(
                f"Tagged.values and Tagged.tags must have at most {MAX_VALUES} entries together, got "
                f"{len(self.values) + len(self.tags)}"
            )
        known = set(self.values)
        for tag in self.tags:
            if tag in known:
                raise SpecError(f"Tagged.tags must differ from all values, got {describe(tag)} in both")
        for value in self.sensitive:
            if value not in known:
                raise SpecError(f"Tagged.sensitive must contain only entries of Tagged.values, got {describe(value)}")
        if len(self.sensitive) == len(self.values):
            raise SpecError("Tagged.sensitive must leave at least one value that a tag can hide, got all values")
        self._check_background()

    def _check_background(self) -> None:
        if self.background is None:
            return
        if not isinstance(self.background, Mapping):
            raise SpecError(f"Tagged.background must be an object with tags as keys, got {describe(self.background)}")
        hidden, tags = set(self.values) - set(self.sensitive), set(self.tags)
        checked: dict[str, dict[str, float]] = {}
        for tag, shares in self.background.items():
            name = canonical(tag) if isinstance(tag, str) else tag
            if name not in tags or name in checked:
                raise SpecError(f"Tagged.background must have each tag as a key exactly once, got {describe(tag)}")
            numbers = isinstance(shares, Mapping) and all(is_number(s) and 0 <= s <= 1 for s in shares.values())
            if not numbers or abs(sum(shares.values()) - 1) > _SUM_SLACK:
                raise SpecError(
                    "Tagged.background must give every tag shares in [0, 1] that sum to 1, got other "
                    f"numbers for {describe(tag)}"
                )
            require_texts("Tagged.background", [canonical(value) for value in shares], at_least=1)
            checked[name] = {canonical(value): float(share) for value, share in shares.items()}
            strangers = [value for value in checked[name] if value not in hidden]
            if strangers:
                raise SpecError(
                    "Tagged.background must name only values that are not sensitive to everybody, got "
                    f"{describe(strangers[0])}"
                )
        object.__setattr__(self, "background", checked or None)

    def to_json(self) -> dict[str, Any]:
        known = {tag: dict(shares) for tag, shares in (self.background or {}).items()}
        return super().to_json() | {"background": known or None}

    def meaning(self) -> dict[str, Any]:
        """Omits the background knowledge, which can improve without a change of clients."""
        return {key: value for key, value in self.to_json().items() if key != "background"}

    @property
    def known_values(self) -> tuple[str, ...]:
        return self.values

    @property
    def named_values(self) -> tuple[str, ...]:
        return (*self.values, *self.tags)

    @property
    def num_symbols(self) -> int:
        return len(self.values) + len(self.tags)

    @property
    def num_sensitive(self) -> int:
        return len(self.sensitive) + len(self.tags)

    def has_own_symbol(self, values: tuple[str, ...]) -> np.ndarray:
        return np.ones(len(values), dtype=bool)

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        return index_of("Tagged.values and tags", values, _symbols(self.values, self.sensitive, self.tags))[np.newaxis]

    @property
    def client_rule(self) -> dict[str, Any]:
        return {"rule": "list", "symbols": list(_symbols(self.values, self.sensitive, self.tags))}

    # ------------------------------------------------------------------ who is behind a tag

    @property
    def _tags(self) -> slice:
        return slice(len(self.sensitive), self.num_sensitive)

    @functools.cached_property
    def _background(self) -> np.ndarray:
        """(K, T): the distribution over symbols behind each tag; 0 where nothing is known."""
        table = np.zeros((self.num_symbols, len(self.tags)))
        symbols = _symbols(self.values, self.sensitive, self.tags)
        for column, tag in enumerate(self.tags):
            for value, share in (self.background or {}).get(tag, {}).items():
                table[symbols[value], column] = share
        return table

    @property
    def _unknown(self) -> np.ndarray:
        """(T,) bool: tags without background knowledge."""
        return np.asarray(~self._background.any(axis=0))

    def redistribute(self, frequencies: np.ndarray) -> np.ndarray:
        """p(x) = r(x) + sum over tags of r(tag) pi_tag(x), and 0 for the tags.

        Without knowledge pi_tag is r over the non-sensitive values, negative entries as 0, divided by its sum (uniform
        if that is 0).
        """
        tags = frequencies[self._tags]
        result: np.ndarray = frequencies + self._background @ tags
        result[self._tags] = 0
        result[self.num_sensitive :] += tags[self._unknown].sum() * self._like_the_others(frequencies)[0]
        return result

    def redistribution(self, frequencies: np.ndarray) -> np.ndarray:
        like, total = self._like_the_others(frequencies)
        matrix = np.eye(self.num_symbols)
        matrix[:, self._tags] = self._background
        clear = slice(self.num_sensitive, self.num_symbols)
        matrix[clear, self._tags.start + np.flatnonzero(self._unknown)] = like[:, np.newaxis]
        if total > 0:
            unknown = frequencies[self._tags][self._unknown].sum()
            positive = frequencies[clear] > 0
            matrix[clear, clear] += unknown / total * (np.eye(len(like)) - like[:, np.newaxis]) * positive
        return matrix

    def _like_the_others(self, frequencies: np.ndarray) -> tuple[np.ndarray, float]:
        """The distribution of the non-sensitive values, and its divisor."""
        clear = np.maximum(frequencies[self.num_sensitive :], 0)
        total = float(clear.sum())
        return (clear / total if total > 0 else np.full(len(clear), 1 / len(clear))), total

    def redistributed_mass(self, frequencies: np.ndarray) -> float:
        return float(np.abs(frequencies[self._tags]).sum())


class PersonalTags:
    """The values that one person hides behind each tag; created and kept on the device, never sent.

    Examples:
        >>> from uldp_transforms.ldp import PersonalTags
        >>> from uldp_transforms.ldp.alphabets import Tagged
        >>> alphabet = Tagged(values=("north", "south", "clinic"), tags=("home", "work"), sensitive=("clinic",))
        >>> PersonalTags(alphabet, {"home": ["south"]}).hide(["north", "south"])
        ['north', 'home']

    Args:
        alphabet: with these tags.
        hidden: for some tags the person's own values behind it.

    Raises:
        SpecError: for a tag or a value that does not exist, or a value behind two tags. Values are not repeated in the
            message.
    """

    def __init__(self, alphabet: Tagged, hidden: Mapping[str, Sequence[str]]):
        self._tag_of: dict[str, str] = {}
        known = set(alphabet.values)
        for tag, values in hidden.items():
            if tag not in alphabet.tags:  # whatever it is, it may be a value
                raise SpecError(f"PersonalTags must use the tags {', '.join(alphabet.tags)}, got another text")
            if isinstance(values, str):
                raise SpecError(f"PersonalTags must have a list of values for {tag!r}, got a single text")
            for value in map(canonical, values):
                if value not in known:
                    raise SpecError(f"PersonalTags must hide values of the alphabet, got another text for {tag!r}")
                if self._tag_of.setdefault(value, tag) != tag:
                    raise SpecError(
                        f"PersonalTags must hide every value with only one tag, got a value that {tag!r} "
                        "and another tag hide"
                    )
        self._everybody = set(alphabet.sensitive)

    def hide(self, values: Sequence[str]) -> list[str]:
        """Replace each value by its tag, if it has one; run by the client. Values that are sensitive for everybody are
        not replaced.

        Raises:
            SpecError: if ``values`` is one text instead of a list.
        """
        if isinstance(values, str):
            raise SpecError("PersonalTags.hide needs a list of texts, got a single text")
        texts = map(canonical, values)
        return [text if text in self._everybody else self._tag_of.get(text, text) for text in texts]


@functools.lru_cache(maxsize=64)
def _symbols(values: tuple[str, ...], sensitive: tuple[str, ...], tags: tuple[str, ...]) -> dict[str, int]:
    chosen = set(sensitive)
    order = (*sensitive, *tags, *(value for value in values if value not in chosen))
    return {text: symbol for symbol, text in enumerate(order)}
