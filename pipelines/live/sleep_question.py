"""What is asked, and what simulated people answer."""

from __future__ import annotations

from uldp_transforms.ldp import Collection

TEXT = "How did you sleep last night?"

SHARES = {"well": 0.4, "so-so": 0.3, "badly": 0.2, "hardly at all": 0.1}
"""Answers, and how many of the simulated people give them."""

COLLECTION = Collection.from_json(
    {
        "id": "sleep",
        "version": 1,
        "alphabet": {"id": "closed", "values": list(SHARES)},
        "mechanism": {"id": "krr", "epsilon": 1.5},
    }
)
