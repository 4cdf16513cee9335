"""What a job asks of every window: the estimates section of a specification, as one object."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.estimators import Estimator
from uldp_transforms.ldp.share_sums import NamedSum


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """What is estimated of each sample, and how it is shown.

    Attributes:
        estimator: estimator of the frequencies; of a question, a ``Decoder``.
        candidates: canonical values to estimate in an open alphabet, besides its public values; None: these alone.
        min_reports: minimum number of reports of a sample whose numbers are shown.
        show: maximum number of values in a row: those with the largest frequencies. None: all.
        limits: numbers above which shares are estimated.
        quantiles: those of numbers; None: the usual ones.
        sums: sums over chosen values.
        liars: largest share of false reports that intervals allow for; None: they take all reports as honest.
        confidence: of all intervals.
        discover: whether frequent unlisted values are searched.
        borrow: whether groups show shares drawn towards those of all reports of their window.
        anytime_scale: scale of intervals that hold jointly in all rows of a window, of which the one on time is the
            planned look; None: it has only one row.
    """

    estimator: Estimator
    candidates: tuple[str, ...] | None = None
    min_reports: int = 0
    show: int | None = None
    limits: Sequence[float] | None = None
    quantiles: Sequence[float] | None = None
    sums: tuple[NamedSum, ...] = ()
    liars: float | None = None
    confidence: float = CONFIDENCE
    discover: bool = False
    borrow: bool = False
    anytime_scale: int | None = None
