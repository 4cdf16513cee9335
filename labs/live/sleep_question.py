"""The example question, and the answers of simulated people."""

from __future__ import annotations

from uldp_transforms.ldp import Collection

TEXT = "How did you sleep last night?"

SHARES = {"well": 0.4, "so-so": 0.3, "badly": 0.2, "hardly at all": 0.1}
"""Answers, and the shares of the simulated people who give them at first."""

SHOWN = "badly"
"""The answer whose share the page shows and can change."""

COLLECTION = Collection.from_json(
    {
        "id": "sleep",
        "version": 1,
        "noun": {"one": "person", "many": "people"},
        "alphabet": {"id": "closed", "values": list(SHARES)},
        "mechanism": {"id": "krr", "epsilon": 1.5},
    }
)


def crowd_sentence(people: float) -> str:
    """Sentence for both pages about simulated answers per second; empty if there are none."""
    if not people:
        return ""
    held = ", ".join(f"“{answer}” {100 * share:.0f} %" for answer, share in SHARES.items())
    return (
        f"This is a demonstration: in addition to the answers given on its page, {people:g} simulated "
        f"people per second answer at random (at first {held}; a slider there changes this). Most of the "
        "results come from them."
    )
