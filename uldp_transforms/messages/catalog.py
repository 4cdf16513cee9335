"""The collections that one job knows, found by what reports carry of their fingerprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from uldp_transforms.ldp.collection import PREFIX_BYTES, Collection
from uldp_transforms.ldp.errors import SpecError


class CollectionCatalog:
    """A fixed set of collections; old and new versions stand side by side.

    Raises:
        SpecError: if there are none, or two that reports cannot tell apart.
    """

    def __init__(self, collections: Iterable[Collection]):
        self._by_fingerprint: dict[bytes, Collection] = {}
        self._by_prefix: dict[bytes, Collection] = {}
        for collection in collections:
            prefix = collection.fingerprint[:PREFIX_BYTES]
            if prefix in self._by_prefix:
                other = self._by_prefix[prefix]
                raise SpecError(
                    f"collections of one job must have different fingerprints, got {collection.id!r} version "
                    f"{collection.version} and {other.id!r} version {other.version} with the same one"
                )
            self._by_prefix[prefix] = collection
            self._by_fingerprint[collection.fingerprint] = collection
        names = Counter((c.id, c.version) for c in self)
        for name, number in names.items():
            if number > 1:
                raise SpecError(
                    f"collections of one job must differ in id or version, got {name[0]!r} version {name[1]} twice"
                )
        if not names:
            raise SpecError("a job needs at least one collection, got none")

    def __iter__(self) -> Iterator[Collection]:
        return iter(self._by_fingerprint.values())

    def __len__(self) -> int:
        return len(self._by_fingerprint)

    def __getitem__(self, fingerprint: bytes) -> Collection:
        return self._by_fingerprint[fingerprint]

    def find(self, prefix: bytes) -> Collection | None:
        """The collection whose fingerprint begins with these 8 bytes."""
        return self._by_prefix.get(prefix)
