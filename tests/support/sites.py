"""Pages of sites: hashed texts in public blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection

SITES = ("a.org", "b.org", "c.org", "d.org")
PAGES = tuple(f"{site}/{page}" for site, pages in zip(SITES, (6, 4, 5, 2)) for page in range(pages))


def sites(mechanism: str = "krr", **members: Any) -> Collection:
    alphabet = {
        "id": "blocks",
        "blocks": list(SITES),
        "members": {"id": "hashed", "num_buckets": 8, "seed": 5} | members,
    }
    spec = {"id": "sites", "version": 1, "num_cohorts": 32, "alphabet": alphabet}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": 2.0}})


def counted(item: Collection, people: int, without: str = "") -> tuple[CohortCounts, np.ndarray]:
    """Counts of people with frequencies 1/rank, some with unlisted texts; and the shares of ``PAGES``."""
    rng = generator("sites", item.mechanism.id, people, without)
    texts = [text for text in (*PAGES, "a.org/other", "b.org") if not (without and text.startswith(without))]
    law = 1 / np.arange(1.0, len(texts) + 1)
    law /= law.sum()
    shares = dict(zip(texts, law))
    return item.count(item.perturb(rng.choice(texts, people, p=law), rng)), np.array(
        [shares.get(p, 0.0) for p in PAGES]
    )
