"""Warnings about collections at the start of a job: an unknown number of reports per person, versions not pooled,
windows to which event times do not fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.model import keeps_memos
from uldp_transforms.ldp.versions import questions_of

if TYPE_CHECKING:  # checks of directories do not need it
    from uldp_transforms.spec.job_spec import JobSpec
import unicodedata
from collections.abc import Iterator


def has_unknown_repeats(collection: Collection) -> bool:
    """Whether a person's reports have noise in common, and the collection declares no client window."""
    return keeps_memos(collection) and collection.asked is None


def warnings_at_start(spec: JobSpec) -> list[str]:
    """All sentences that a program prints before it counts."""
    return [
        *warnings_of(spec.collections),
        *spec.rounding_warnings(),
        *sentences_about_lookalikes(spec.collections),
    ]


def warnings_of(collections: Iterable[Collection]) -> list[str]:
    """One sentence for each collection with unknown repeats, and for each version that its question leaves out."""
    given = list(collections)
    left_out = [
        f"question {question.id!r} does not pool {one.id!r} version {one.version}, which has other values than the "
        "newest version; it keeps its own rows"
        for question in questions_of(given)
        for one in question.collections
        if one not in question.pooled
    ]
    return left_out + [
        f"collection {collection.id!r} keeps memos (epsilon_inf) and names no client_window, so intervals "
        "are valid only if nobody reports twice in a window, and the sentinels are off; add client_window "
        "to its next version"
        for collection in given
        if has_unknown_repeats(collection)
    ]


_SHAPES = str.maketrans(
    "АВЕКМНОРСТУХЅІЈаеорсухѕіјһԁԛԝ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονϲϳ",  # noqa: RUF001  # Cyrillic, Greek
    "ABEKMHOPCTYXSIJaeopcyxsijhdqw" + "ABEZHIKMNOPTYXovcj",
)
"""Letters that most fonts draw like a Latin one, of the table of confusables of Unicode's report 39."""


def lookalikes(values: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of values that look alike: an earlier one, and one that is drawn like it."""
    seen: dict[str, str] = {}
    for value in values:
        shape = value if value.isascii() else unicodedata.normalize("NFKC", value).translate(_SHAPES)
        before = seen.setdefault(shape, value)
        if before != value:
            yield before, value


def sentences_about_lookalikes(collections: Iterable[Collection]) -> Iterator[str]:
    """One sentence for each collection with values or texts of a dimension that look alike."""
    for collection in collections:
        lists = [collection.alphabet.known_values or (), *(one.values for one in collection.dimensions)]
        found = [pair for values in lists for pair in lookalikes(values)]
        if found:
            before, value = map(ascii, found[0])
            more = f" (and {len(found) - 1} more pairs)" if len(found) > 1 else ""
            yield (
                f"collection {collection.id!r} counts values that look alike apart: {before} and {value}{more}; if one "
                "of them is a slip, remove it in the next version"
            )
