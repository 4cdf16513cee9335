"""Collections of which nobody knows how often a person reports in a window: what is said of them, and the way out."""

from __future__ import annotations

from collections.abc import Iterable

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.repeated_people import keeps_memos


def has_unknown_repeats(collection: Collection) -> bool:
    """Whether reports of a person have noise in common, and the collection names no window with one report at most."""
    return keeps_memos(collection) and collection.asked is None


def warnings_of(collections: Iterable[Collection]) -> list[str]:
    """One sentence for each of these collections, in their order."""
    return [
        f"collection {collection.id!r} keeps memos (epsilon_inf) and names no client_window, so intervals are right "
        "only if nobody reports twice in a window, and sentinels are not asked: add client_window to its next version"
        for collection in collections
        if has_unknown_repeats(collection)
    ]
