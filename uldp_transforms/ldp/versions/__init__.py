"""Versions of one question: collections that ask the same people for the same values, and their pooled estimate."""

from uldp_transforms.ldp.versions.borrowed_versions import borrowed_of_versions as borrowed_of_versions
from uldp_transforms.ldp.versions.pooled_estimate import PooledWindow as PooledWindow
from uldp_transforms.ldp.versions.versioned_question import VersionedQuestion as VersionedQuestion
from uldp_transforms.ldp.versions.versioned_question import questions_of as questions_of
