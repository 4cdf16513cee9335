"""The collections of a job, looked up by the fingerprint prefix in each report."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator

import numpy as np

from uldp_transforms.ldp.collection import PREFIX_BYTES, Collection
from uldp_transforms.ldp.errors import SpecError


class CollectionCatalog:
    """A fixed set of collections, including several versions of one collection.

    Each collection has a number from 0 on. Collections with payloads of one size have consecutive numbers, among them
    those of one *pass*, and among these those of one *layout*: their reports are checked and counted in the same way.

    Attributes:
        numbered: the collections by number.
        fingerprints: fingerprints by number, followed by an empty one for "no collection".
        table: (N, 32) uint8, fingerprints by number.
        layouts: (N,) int64, the layout of each, from 0 on.
        payload_sizes: (N,) int64, size of each collection's payloads in bytes.
        shapes: (N, 2) int64, numbers of cohorts and of counted cells of each.
        strata: (N,) int64, number of groups times cohorts of each, which bounds the cohort numbers in its reports.
        grouped: fingerprints of the collections with dimensions.
        tails: (N, 2) int64, ``Mechanism.tail`` of each.
        prefixes: (N,) uint64, the first bytes of the fingerprints as little-endian numbers, increasing.
        by_prefix: (N,) int64, numbers of the collections in the order of ``prefixes``.
        passes: (N,) int64, equal for collections whose reports can be counted in one pass: those of one layout; or
            those with payloads of one size, if a payload is the number of the cell to count.

    Raises:
        SpecError: if there are no collections, or two whose reports cannot be distinguished.
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
        self._number()

    def _number(self) -> None:
        """Number the collections by payload size, layout and prefix."""
        known: dict[Hashable, int] = {}
        layouts = np.array([known.setdefault(_layout(c), len(known)) for c in self])
        sizes = np.array([c.mechanism.payload_size for c in self], dtype=np.int64)
        passes = np.where([c.mechanism.one_place for c in self], -1, layouts)
        prefixes = np.array([_as_integer(c.fingerprint) for c in self], dtype="<u8")
        order = np.lexsort((prefixes, layouts, passes, sizes))
        collections = list(self)
        self.numbered: list[Collection] = [collections[place] for place in order.tolist()]
        self.layouts = _ranks(layouts[order])
        self.passes = _ranks(np.where(passes < 0, -sizes, passes)[order])
        self.payload_sizes = sizes[order]
        self.shapes = np.array([(c.num_cohorts, c.num_cells) for c in self.numbered], dtype=np.int64)
        self.strata = np.array([c.num_strata for c in self.numbered], dtype=np.int64)
        self.tails = np.array([c.mechanism.tail for c in self.numbered], dtype=np.int64)
        self.grouped = frozenset(c.fingerprint for c in self.numbered if c.dimensions)
        self.fingerprints = [*(c.fingerprint for c in self.numbered), b""]
        self.table = np.frombuffer(b"".join(self.fingerprints), dtype=np.uint8).reshape(len(self), -1)
        self._numbers = {c.fingerprint[:PREFIX_BYTES]: number for number, c in enumerate(self.numbered)}
        self.by_prefix = np.argsort(prefixes[order])
        self.prefixes = prefixes[order][self.by_prefix]

    def __reduce__(self) -> tuple[Callable[[str], CollectionCatalog], tuple[str]]:
        return _catalog_in, (self._json,)

    @functools.cached_property
    def _json(self) -> str:
        return json.dumps([collection.to_json() for collection in self])

    def __iter__(self) -> Iterator[Collection]:
        return iter(self._by_fingerprint.values())

    def __len__(self) -> int:
        return len(self._by_fingerprint)

    def __getitem__(self, fingerprint: bytes) -> Collection:
        return self._by_fingerprint[fingerprint]

    def find(self, prefix: bytes) -> Collection | None:
        """The collection whose fingerprint begins with these 8 bytes."""
        return self._by_prefix.get(prefix)

    def number(self, prefix: bytes) -> int:
        """The number of the collection whose fingerprint begins with these 8 bytes; -1 if there is none."""
        return self._numbers.get(prefix, -1)

    def numbers(self, prefixes: np.ndarray) -> np.ndarray:
        """``number`` of (n,) prefixes, as little-endian uint64; (n,) int64."""
        if (prefixes == prefixes[:1]).all():
            return np.full(len(prefixes), self.number(prefixes[:1].tobytes()))
        places = np.minimum(np.searchsorted(self.prefixes, prefixes), len(self) - 1)
        return np.where(self.prefixes[places] == prefixes, self.by_prefix[places], -1)


@functools.lru_cache(maxsize=4)
def catalog_of(collections: tuple[Collection, ...]) -> CollectionCatalog:
    """The catalog of these collections, cached: the steps of a job share it."""
    return CollectionCatalog(collections)


@functools.lru_cache(maxsize=4)
def _catalog_in(text: str) -> CollectionCatalog:
    """The catalog of collections in JSON, cached per process, so that several steps of a job share it."""
    return CollectionCatalog(map(Collection.from_json, json.loads(text)))


def _as_integer(fingerprint: bytes) -> int:
    return int.from_bytes(fingerprint[:PREFIX_BYTES], "little")


def _ranks(labels: np.ndarray) -> np.ndarray:
    """(N,) int64, labels whose equal ones are together, replaced by 0, 1 and so on."""
    ranks: np.ndarray = np.cumsum(np.diff(labels, prepend=labels[:1]) != 0)
    return ranks


def _layout(collection: Collection) -> Hashable:
    return collection.num_cohorts, collection.mechanism.layout
