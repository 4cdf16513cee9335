"""Collections with an unknown number of reports per person and window: the warning, and its remedy."""

from __future__ import annotations

from collections.abc import Iterable

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.repeated_people import keeps_memos


def has_unknown_repeats(collection: Collection) -> bool:
    """Whether a person's reports have noise in common, and the collection declares no client window."""
    return keeps_memos(collection) and collection.asked is None


def warnings_of(collections: Iterable[Collection]) -> list[str]:
    """One sentence for each of these collections, in their order."""
    return [
        f"collection {collection.id!r} keeps memos (epsilon_inf) and names no client_window, so intervals "
        "are valid only if nobody reports twice in a window, and the sentinels are off; add client_window "
        "to its next version"
        for collection in collections
        if has_unknown_repeats(collection)
    ]
