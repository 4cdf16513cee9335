"""Sums over values in public blocks: hashed texts by simulation, blocks without reports, single reports."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from tests.support.lists_to_sum import VALUES, collection
from tests.support.sites import PAGES, counted, sites
from tests.support.tolerance import chi_square_limits, generator, normal_limit
from uldp_transforms.ldp.estimators.number_sums import NumberReports
from uldp_transforms.ldp.share_sums import NamedSum, ShareSums

SUMS = (
    NamedSum("two", ("a.org/0", "c.org/1")),
    NamedSum("first", match="a.org/*"),
    NamedSum("all", PAGES),
    NamedSum("cost", PAGES, tuple(float(at % 5) - 1.5 for at in range(len(PAGES)))),
)


@pytest.mark.parametrize("mechanism", ["krr", "rappor"])
def test_sums_of_hashed_texts_have_their_variances(mechanism: str) -> None:
    """Within a block and across blocks, in 150 windows, with unlisted texts."""
    item, rng, number = sites(mechanism), generator("sums of blocks", mechanism), 150
    texts = (*PAGES, "a.org/other", "b.org")
    law = 1 / np.arange(1.0, len(texts) + 1)
    law /= law.sum()
    scores = []
    for _ in range(number):
        counts = item.count(item.perturb(rng.choice(texts, 4_000, p=law), rng))
        sums = ShareSums([NumberReports(item, counts)], SUMS, PAGES)
        scores.append((sums.totals - sums.weights @ law[: len(PAGES)]) / np.sqrt(sums.variances))
    found = np.array(scores)
    assert (abs(found.sum(axis=0)) <= normal_limit(len(SUMS)) * np.sqrt(number)).all()
    low, high = chi_square_limits(number, len(SUMS))
    squares = (found**2).sum(axis=0)
    assert (squares >= low).all() and (squares <= high).all()


def test_a_sum_over_a_block_without_reports_is_as_uncertain_as_its_values() -> None:
    item = sites()
    counts, _ = counted(item, 2_000, without="d.org")
    sums = ShareSums([NumberReports(item, counts)], (NamedSum("last", match="d.org/*"), SUMS[2]), PAGES)
    errors = item.estimate(counts, "empirical", PAGES).standard_errors[-2:]
    assert sums.totals[0] == 0
    assert sums.variances[0] == pytest.approx((errors**2).sum()) and sums.variances[1] > sums.variances[0]


@pytest.mark.parametrize(("mechanism", "of"), [("krr", "blocks"), ("rappor", "blocks"), ("uss", "partly")])
def test_a_report_moves_the_sums_of_one_block(mechanism: str, of: str) -> None:
    item, rng = collection(mechanism, of=of), generator("effects in blocks", mechanism, of)
    batch = item.perturb(list(itertools.islice(itertools.cycle(VALUES), 20_000)), rng)
    places = np.unique(batch.payloads, axis=0, return_index=True)[1]
    arrays = {name: value for name, value in vars_of(batch).items() if isinstance(value, np.ndarray)}
    single = np.array(
        [
            item.mechanism.invert(
                item.count(dataclasses.replace(batch, **{name: each[at : at + 1] for name, each in arrays.items()}))
            )[0]
            for at in places.tolist()
        ]
    )
    weights = np.concatenate([np.eye(len(VALUES)), rng.normal(size=(20, len(VALUES)))])
    reached, (least, most) = weights @ single.T, item.mechanism.effects_of_sums(weights)
    np.testing.assert_allclose(reached.max(axis=1), most, atol=1e-9)
    np.testing.assert_allclose(reached.min(axis=1), least, atol=1e-9)


def vars_of(batch: object) -> dict[str, object]:
    return {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}  # type: ignore[arg-type]
