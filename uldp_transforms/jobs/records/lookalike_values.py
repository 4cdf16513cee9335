"""Values of a collection that look alike, because letters of different scripts have one shape."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from uldp_transforms.ldp import Collection

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
