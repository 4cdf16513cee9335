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


def crowd_sentence(people: float) -> str:
    """Sentence of both pages about simulated answers per second; empty if there are none."""
    if not people:
        return ""
    held = ", ".join(f"“{answer}” {share:.0%}" for answer, share in SHARES.items())
    return (
        f"This is a demonstration: besides the answers given on its page, {people:g} made-up people a second answer at "
        f"random ({held}). The results are mostly theirs."
    )
