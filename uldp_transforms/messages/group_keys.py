"""Keys of counts: the fingerprint of a collection, and for a group also its number."""

from __future__ import annotations

from uldp_transforms.ldp.alphabets.dimensions import RollUp
from uldp_transforms.ldp.collection import Collection

FINGERPRINT_BYTES = 32
_GROUP_BYTES = 4


def owner_of_group(fingerprint: bytes, number: int) -> bytes:
    """Key of the counts of a group, by its number in a ``RollUp``; that of the total is the fingerprint alone."""
    return fingerprint + number.to_bytes(_GROUP_BYTES, "big")


def fingerprint_of(owner: bytes) -> bytes:
    """The fingerprint of the collection in a key of counts."""
    return owner[:FINGERPRINT_BYTES]


def is_total(owner: bytes) -> bool:
    """Whether a key is that of all reports of a collection, not of a group."""
    return len(owner) == FINGERPRINT_BYTES


def split_key(key: bytes) -> tuple[bytes, bytes]:
    """Split a key with something after it, of a multiple of 8 bytes, into the key and the rest."""
    size = FINGERPRINT_BYTES + (_GROUP_BYTES if len(key) % 8 == _GROUP_BYTES else 0)
    return key[:size], key[size:]


def pairs_of(owner: bytes, collection: Collection, by: tuple[str, ...] | None) -> list[tuple[str, str]]:
    """(name, value) of each dimension of a group; none for the total."""
    if is_total(owner) or not by:
        return []
    number = int.from_bytes(owner[FINGERPRINT_BYTES:], "big")
    return list(RollUp(collection.dimensions, by).pairs(number))
