"""Locally private distribution estimation on arrays, without Beam or a network, for instance in a notebook.

Examples:
    >>> from uldp_transforms.ldp import Collection
    >>> collection = Collection.from_json("C.json")
    >>> batch = collection.perturb(["flu", "cold"] * 500)  # client
    >>> counts = collection.count(batch)  # collector; counts can be added
    >>> estimate = collection.estimate(counts, "eb")  # analyst
    >>> estimate.values
    ('flu', 'cold', 'asthma', 'hiv')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uldp_transforms.lazy_names import lazy_names

if TYPE_CHECKING:
    from uldp_transforms.ldp.alphabets import PersonalTags as PersonalTags
    from uldp_transforms.ldp.client.budget import Budget as Budget
    from uldp_transforms.ldp.client.client import Client as Client
    from uldp_transforms.ldp.client.client_storage import FileStorage as FileStorage
    from uldp_transforms.ldp.client.client_storage import Storage as Storage
    from uldp_transforms.ldp.collection import Collection as Collection
    from uldp_transforms.ldp.counts.cohort_counts import CohortCounts as CohortCounts
    from uldp_transforms.ldp.errors import BudgetSpentError as BudgetSpentError
    from uldp_transforms.ldp.errors import EstimationError as EstimationError
    from uldp_transforms.ldp.errors import SpecError as SpecError
    from uldp_transforms.ldp.errors import UldpError as UldpError
    from uldp_transforms.ldp.estimators import Estimate as Estimate
    from uldp_transforms.ldp.reports import ReportBatch as ReportBatch
else:
    _HOMES = {
        "Budget": "client.budget",
        "BudgetSpentError": "errors",
        "Client": "client.client",
        "CohortCounts": "counts.cohort_counts",
        "Collection": "collection",
        "Estimate": "estimators",
        "EstimationError": "errors",
        "FileStorage": "client.client_storage",
        "PersonalTags": "alphabets",
        "ReportBatch": "reports",
        "SpecError": "errors",
        "Storage": "client.client_storage",
        "UldpError": "errors",
    }
    _MOVED = dict.fromkeys(("Comparison", "compare", "homogeneity"), "uldp_transforms_compare.comparisons")
    __getattr__ = lazy_names(__name__, _HOMES, _MOVED)

__all__ = [
    "Budget",
    "BudgetSpentError",
    "Client",
    "CohortCounts",
    "Collection",
    "Estimate",
    "EstimationError",
    "FileStorage",
    "PersonalTags",
    "ReportBatch",
    "SpecError",
    "Storage",
    "UldpError",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
