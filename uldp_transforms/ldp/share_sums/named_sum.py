"""Named sums of shares: which values they are over, and their weights."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.alphabets import Alphabet
from uldp_transforms.ldp.checks import describe, is_number, require_keys, require_mapping, require_texts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical

MAX_SUMS = 64
"""Maximum number of sums of a job."""

_FORMS = '["a", "b"], {"match": "a*"} or {"weights": {"a": 3}}'
_LARGEST = 1e100
"""Weights beyond it, or below 1 / 1e100, are refused, because the squares in variances would not be finite, or 0."""


@dataclasses.dataclass(frozen=True)
class NamedSum:
    """A weighted sum of the shares of values.

    Attributes:
        name: of the sum, in Unicode NFC.
        values: the values of the sum, in Unicode NFC; empty if ``match`` chooses them.
        weights: one for each of the values; empty: each has the weight 1, so that the sum is the share of a set.
        match: pattern of the values of a set: ``*`` is any text, ``?`` any character, ``[ab]`` one of some characters;
            upper and lower case differ. Empty: ``values`` are listed.

    Raises:
        SpecError: if it is none of these three forms.
    """

    name: str
    values: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    match: str = ""

    def __post_init__(self) -> None:
        where = f"sums[{describe(self.name)}]"
        if not isinstance(self.name, str) or not self.name.strip() or self.name != self.name.strip():
            raise SpecError(
                "sums must have names that are texts without white space at the ends, at least one character long, got "
                f"{describe(self.name)}"
            )
        if bool(self.match) == bool(self.values):
            got = "both" if self.match else "neither"
            raise SpecError(f"{where} must have either at least one value or a pattern of values, got {got}")
        if self.weights and len(self.weights) != len(self.values):
            raise SpecError(
                f"{where} must have a weight for each of its {len(self.values)} values, got {len(self.weights)}"
            )
        if self.match:
            return
        require_texts(where, self.values, at_least=1)
        object.__setattr__(self, "values", tuple(map(canonical, self.values)))
        require_texts(where, self.values, at_least=1)
        for value, weight in zip(self.values, self.weights):
            if not is_number(weight) or not (weight == 0 or 1 / _LARGEST <= abs(weight) <= _LARGEST):
                raise SpecError(
                    f"{where} must have weights that are 0 or from {1 / _LARGEST:g} to {_LARGEST:g} in size, got "
                    f"{describe(weight)} for {describe(value)}"
                )

    @property
    def is_share(self) -> bool:
        """Whether the sum is the share of a set of values."""
        return not self.weights

    @classmethod
    def of(cls, name: str, plain: Any) -> NamedSum:
        """A sum from JSON: a list of values, ``{"match": pattern}`` or ``{"weights": {value: weight}}``.

        Raises:
            SpecError: for other JSON.
        """
        where = f"sums[{describe(name)}]"
        name = canonical(name) if isinstance(name, str) else name
        if isinstance(plain, (list, tuple)):
            require_texts(where, plain, at_least=1)
            return cls(name, tuple(plain))
        if not isinstance(plain, Mapping) or len(plain) != 1:
            raise SpecError(f"{where} must be {_FORMS}, got {describe(plain)}")
        require_keys(where, plain, (), ("match", "weights"))
        if "match" in plain:
            if not isinstance(plain["match"], str) or not plain["match"]:
                raise SpecError(f'{where}.match must be a pattern such as "a*", got {describe(plain["match"])}')
            return cls(name, match=canonical(plain["match"]))
        weights = require_mapping(f"{where}.weights", plain["weights"])
        return cls(name, tuple(weights), tuple(weights.values()))

    def to_json(self) -> Any:
        """JSON from which ``of`` builds an equal sum."""
        if self.match:
            return {"match": self.match}
        return {"weights": dict(zip(self.values, self.weights))} if self.weights else list(self.values)

    def weights_of(self, values: Sequence[str]) -> np.ndarray | None:
        """(S,) the weight of each of these values, 0 for all others; None if not all values of the sum are among them,
        or if its pattern matches none."""
        if self.match:
            found = np.array([fnmatch.fnmatchcase(value, self.match) for value in values], dtype=np.float64)
            return found if found.any() else None
        places = {value: place for place, value in enumerate(values)}
        if self.missing(places) is not None:
            return None
        weights = np.zeros(len(values))
        weights[[places[value] for value in self.values]] = self.weights or 1.0
        return weights

    def missing(self, values: Iterable[str]) -> str | None:
        """The first value of the sum, or its pattern, that is not among these; None if all are."""
        known = values if isinstance(values, Mapping) else dict.fromkeys(values)
        if self.match:
            return None if any(fnmatch.fnmatchcase(value, self.match) for value in known) else self.match
        return next((value for value in self.values if value not in known), None)


def read_sums(plain: Any) -> tuple[NamedSum, ...]:
    """The sums of a JSON object, by their names; raises SpecError."""
    return tuple(itertools.starmap(NamedSum.of, require_mapping("sums", plain).items()))


def check_sums(sums: Sequence[NamedSum], alphabets: Sequence[Alphabet], candidates: tuple[str, ...] | None) -> None:
    """Refuse sums that no collection of a job can have; raises SpecError.

    Args:
        sums: of the job.
        alphabets: of its collections.
        candidates: as for ``Alphabet.estimated_values``.
    """
    if not isinstance(sums, tuple) or not sums or not all(isinstance(one, NamedSum) for one in sums):
        raise SpecError(f"sums must be a JSON object with a sum for each name, such as {_FORMS}, got {describe(sums)}")
    if len(sums) > MAX_SUMS:
        raise SpecError(f"sums must be at most {MAX_SUMS}, got {len(sums)}")
    names = [one.name for one in sums]
    require_texts("sums", names, at_least=1)
    lists = [dict.fromkeys(alphabet.known_values or alphabet.estimated_values(candidates)) for alphabet in alphabets]
    for one in sums:
        if any(one.name in values for values in lists):
            raise SpecError(f"sums must have names that are no values, got {describe(one.name)}, which is one")
        missing = [one.missing(values) for values in lists]
        if None not in missing:
            what = "a pattern of" if one.match else "all its"
            raise SpecError(
                f"sums[{describe(one.name)}] must have {what} values in one collection, or among the candidates of an "
                f"open one, got {describe(missing[0])}, which is not there"
            )


@functools.lru_cache(maxsize=64)
def weights_of(sums: tuple[NamedSum, ...], values: tuple[str, ...]) -> tuple[tuple[NamedSum, ...], np.ndarray]:
    """The sums that these S values allow, and their (M, S) weights; cached between windows."""
    found = dict(_allowed(sums, values))
    weights = np.array(list(found.values())).reshape(len(found), len(values))
    weights.flags.writeable = False
    return tuple(found), weights


def _allowed(sums: Iterable[NamedSum], values: Sequence[str]) -> Iterator[tuple[NamedSum, np.ndarray]]:
    for one in sums:
        weights = one.weights_of(values)
        if weights is not None:
            yield one, weights
