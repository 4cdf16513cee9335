"""The rows of one sample, for tests that ask for the row of a collection or question alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import Estimator
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.rows.row_types import WindowedEstimate, WindowHealth
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import SampleRows, rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample

_MANY = 1 << 60


def estimate_window(
    collection: Collection, counts: CohortCounts, *given: Any, group: Sequence[tuple[str, str]] = (), **asked: Any
) -> WindowedEstimate:
    """The row of a collection or group; the other arguments are those of ``_rows``."""
    owner = Owner(named=collection, group=group)
    return _rows(owner, {collection.fingerprint: counts}, *given, **asked).estimate


def estimate_question(
    question: VersionedQuestion, counts: Mapping[bytes, CohortCounts], *given: Any, **asked: Any
) -> tuple[WindowedEstimate, WindowHealth]:
    """The rows of a question; the other arguments are those of ``_rows``."""
    rows = _rows(Owner(named=question), counts, *given, **asked)
    return rows.estimate, rows.health


def _rows(
    owner: Owner,
    counts: Mapping[bytes, CohortCounts],
    place: dict[str, Any],
    estimator: Estimator,
    candidates: tuple[str, ...] | None,
    withheld: str | None,
    **asked: Any,
) -> SampleRows:
    """The rows of one sample; ``withheld`` is the status of one without numbers, ``asked`` has fields of ``Asked``."""
    sample = Sample(owner=owner, place=place, counts=counts, partial=withheld == "partial")
    least = _MANY if withheld == "suppressed" else 0
    [rows] = rows_of([sample], Asked(estimator=estimator, candidates=candidates, min_reports=least, **asked))
    return rows
