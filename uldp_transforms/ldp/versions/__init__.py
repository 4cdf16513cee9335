"""Versions of one question: collections that ask the same people for the same values, and their pooled estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uldp_transforms.lazy_names import lazy_names

if TYPE_CHECKING:
    from uldp_transforms.ldp.versions.borrowed_versions import borrowed_of_versions as borrowed_of_versions
    from uldp_transforms.ldp.versions.pooled_estimate import PooledWindow as PooledWindow
    from uldp_transforms.ldp.versions.versioned_question import VersionedQuestion as VersionedQuestion
    from uldp_transforms.ldp.versions.versioned_question import questions_of as questions_of
else:
    _HOMES = {
        "PooledWindow": "pooled_estimate",
        "VersionedQuestion": "versioned_question",
        "borrowed_of_versions": "borrowed_versions",
        "questions_of": "versioned_question",
    }
    __getattr__ = lazy_names(__name__, _HOMES)

__all__ = ["PooledWindow", "VersionedQuestion", "borrowed_of_versions", "questions_of"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
