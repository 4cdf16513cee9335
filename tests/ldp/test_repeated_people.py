"""Intervals of repeated people, crossed with looks while reports arrive, the largest values, and versions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection, Estimate
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.ldp.versions import questions_of

MECHANISMS = {
    "krr": {"id": "krr", "epsilon": 1.0},
    "memos": {"id": "rappor", "epsilon": 1.0, "epsilon_inf": 3.0},
}


def of(mechanism: dict[str, object], version: int = 1) -> Collection:
    form = {"id": "c", "version": version, "question": "asked", "client_window": "1d", "mechanism": mechanism}
    return Collection.from_json(form | {"alphabet": {"id": "closed", "values": list("abcdef")}})


def estimate_of(collection: Collection) -> Estimate:
    rng = generator("repeated people", collection.mechanism.id)
    batch = collection.perturb(rng.choice(list("abcdef"), 4000).tolist(), rng)
    return collection.estimate(collection.count(batch), "eb")


def ends_of(estimate: Estimate) -> list[np.ndarray]:
    """Both ends of all intervals that rows and comparisons take."""
    intervals = [(estimate.ci_low, estimate.ci_high), estimate.display_intervals(3), estimate.unclipped(0.95)]
    rest = (np.array([estimate.unexplained_low]), np.array([estimate.unexplained_high]))
    return [*itertools.chain(*intervals), *rest]


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("anytime", [False, True])
def test_more_reports_of_a_person_make_every_interval_longer(name: str, *, anytime: bool) -> None:
    collection = of(MECHANISMS[name])
    once, often = (with_repeated_people(collection, estimate_of(collection), times) for times in (1, 7))
    if anytime:
        once, often = once.anytime(100), often.anytime(100)
    for place, (short, long) in enumerate(zip(ends_of(once), ends_of(often))):
        assert (long <= short).all() if place % 2 == 0 else (long >= short).all()
    assert (often.standard_errors > once.standard_errors).all()
    assert (often.unclipped(0.95)[0] < once.unclipped(0.95)[0]).all()


@pytest.mark.parametrize("anytime", [False, True])
def test_versions_have_the_longer_intervals_of_their_people(*, anytime: bool) -> None:
    versions = [of(mechanism, number) for number, mechanism in enumerate(MECHANISMS.values(), 1)]
    (question,) = questions_of(versions)
    rng = generator("versions of repeated people")
    counts = {one.fingerprint: one.count(one.perturb(list("abcdef") * 500, rng)) for one in versions}
    found = []
    for times in (1, 7):
        of_people = {one.fingerprint: times for one in versions}
        estimate = question.estimate(counts, ESTIMATORS["eb"](), None, of_people).estimate
        found.append(estimate.anytime(100) if anytime else estimate)
    for place, (short, long) in enumerate(zip(*map(ends_of, found))):
        assert (long <= short).all() if place % 2 == 0 else (long >= short).all()
    assert (found[1].standard_errors > found[0].standard_errors).all()
