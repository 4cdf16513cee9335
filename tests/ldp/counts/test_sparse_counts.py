"""Counts of few reports are held sparsely, and are equal to the same counts in full, whatever is done with them."""

from __future__ import annotations

import functools
import operator
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings

from tests.support.cases import COLLECTIONS, VALUES, collections
from tests.support.estimated import estimate_window
from tests.support.ldp.few_counts import few, in_full
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.collector.count_bytes import decode_counts, encode_counts
from uldp_transforms.collector.period_counts import count_periods
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.ldp.counts.sparse_table import PAYS, SparseCounts
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.samples.sample import reason_to_withhold
from uldp_transforms.rows.window_health import health_of_window
from uldp_transforms.windows import BasePeriods

PLACE = {"window_start": None, "window_end": None, "pane_index": 0, "pane_timing": "ON_TIME"}


def large(mechanism: str) -> Collection:
    """4,194,304 counters, the most that there can be: 32 MiB in full."""
    return made({"id": "hashed", "num_buckets": 4096}, {"id": mechanism, "epsilon": 1.0}, num_cohorts=1024, id="large")


KRR, RAPPOR = large("krr"), large("rappor")


# ---------------------------------------------------------------------- the laws


@settings(max_examples=80)
@given(few(), few(), few())
def test_the_laws_of_counts_hold_in_both_forms(a, b, c):
    full_a, full_b, full_c = map(in_full, (a, b, c))
    neutral = CohortCounts.empty(8, 60, 3)
    assert a + b == b + a == full_a + b == a + full_b == full_a + full_b
    assert (a + b) + c == a + (b + c) == full_a + full_b + full_c
    assert a + neutral == neutral + a == a == full_a
    assert full_a == a
    assert a + -a == neutral == -a + full_a
    assert (a == b) is (full_a == full_b)
    assert (a, b, c) == (full_a, full_b, full_c), "a sum changes none of its parts"


@settings(max_examples=80)
@given(few(), few())
def test_both_forms_say_the_same(a, b):
    for counts in (a, a + b, -a):
        full = in_full(counts)
        assert (counts.shape, counts.total) == (full.shape, full.total)
        assert counts.pooled() == full.pooled()
        assert encode_counts(counts) == encode_counts(full)
        assert decode_counts(encode_counts(full)) == counts


@settings(max_examples=50)
@given(few())
def test_what_does_not_pay_is_held_in_full(a):
    used = int(np.count_nonzero(a.num_reports) + np.count_nonzero(a.cells))
    assert isinstance(a, SparseCounts) is (used * PAYS <= 8 * 61)
    again = decode_counts(encode_counts(a))
    assert type(again) is (type(a) if encode_counts(a)[1] & 0x10 else CohortCounts)
    assert (a + CohortCounts.empty(8, 60, 3)).num_held == 8 * 61 + 3
    if isinstance(a, SparseCounts):
        assert a.num_held == 2 * used + 3
        assert a.numbers.all()
        assert (np.diff(a.places) > 0).all()


# ---------------------------------------------------------------------- counting


@functools.cache
def batch_of(name: str) -> ReportBatch:
    rng = generator("sparse", name)
    return COLLECTIONS[name].perturb(rng.choice(VALUES, 60).tolist(), rng, event_times=np.arange(60))


@collections
def test_few_reports_are_counted_as_many_are(name):
    of, batch = COLLECTIONS[name], batch_of(name)
    periods = np.arange(60) * 7 % 5
    periods[periods == 3] = 4
    rows = periods * of.num_cohorts + batch.cohorts
    for patterns in (False, True):
        assert of.count_few(batch.payloads, rows, 6, patterns) == of.count_groups(batch.payloads, rows, 6, patterns)


@pytest.mark.parametrize("of", [KRR, RAPPOR], ids=["krr", "rappor"])
@pytest.mark.parametrize("num_reports", [1, 40, 70, 300])
def test_large_tables_have_the_same_counts_in_every_part(of, num_reports):
    """Of one period and of several, few reports and many: as ``Collection.count`` says of each period alone."""
    rng = generator("large", of.mechanism.id, num_reports)
    times = np.sort(rng.integers(0, 3, num_reports))
    batch = of.perturb(["a"] * num_reports, rng, times)
    for periods, split in ((None, np.zeros(num_reports)), (BasePeriods(1), times)):
        counted = [counts for _, counts in count_periods(of, batch, periods)]
        for counts, moment in zip(counted, np.unique(split), strict=True):
            assert counts == of.count(batch[split == moment])


# ---------------------------------------------------------------------- what it costs


def cells_asked_for(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The shapes of sparse counts whose cells somebody asks for, from now on."""
    asked: list[tuple[int, int]] = []
    fill = SparseCounts.cells.func
    noted = functools.cached_property(lambda counts: asked.append(counts.shape) or fill(counts))
    noted.__set_name__(SparseCounts, "cells")
    monkeypatch.setattr(SparseCounts, "cells", noted)
    return asked


@pytest.mark.parametrize("of", [KRR, RAPPOR], ids=["krr", "rappor"])
def test_a_suppressed_window_is_never_filled(of, monkeypatch):
    asked = cells_asked_for(monkeypatch)
    batch = of.perturb(["a"] * 6, generator("suppressed", of.mechanism.id), range(6))
    total = functools.reduce(operator.add, [counts for _, counts in count_periods(of, batch, BasePeriods(1))])
    total = decode_counts(encode_counts(total))
    assert total.total == 6
    withheld = reason_to_withhold(total.total, 7, partial=False)
    row = estimate_window(of, total, PLACE, ESTIMATORS["projected"](), ("a",), withheld)
    assert (row.status, health_of_window(of, total, PLACE, withheld, None).status) == ("suppressed", "suppressed")
    assert asked == []
    assert total.cells.sum() >= 6 * (of is KRR)
    assert asked == [of.num_cells and (1024, 4096)], "the test sees it when somebody asks"


@pytest.mark.parametrize(("of", "limit"), [(KRR, 2 << 20), (RAPPOR, 160 << 20)], ids=["krr", "rappor"])
def test_a_thousand_periods_of_one_report_take_memory_for_their_reports(of, limit):
    """In full they are 32 GiB. A report of ``rappor`` supports half of 4,096 symbols, which are 32 KiB sparsely."""
    batch = of.perturb(["a"] * 1000, generator("periods", of.mechanism.id), range(1000))
    tracemalloc.start()
    counted = list(count_periods(of, batch, BasePeriods(1)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(counts.total for _, counts in counted) == len(counted) == 1000
    assert all(isinstance(counts, SparseCounts) for _, counts in counted)
    assert peak < limit
