"""Errors and coverage of numbers: populations, the published decoder, and what is counted as covered."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from labs.experiments import EXPERIMENTS
from labs.experiments.frame import DATA
from labs.experiments.numbers import smooth_intervals
from labs.experiments.numbers.others import METHODS, tree
from labs.experiments.numbers.populations import FINEST, coarse, populations
from labs.experiments.numbers.published import em, em_with_smoothing
from labs.experiments.numbers.summary import lines, of_methods
from tests.support.tolerance import generator
from uldp_transforms.ldp.mechanisms import SquareWave

[EXPERIMENT] = [experiment for experiment in EXPERIMENTS if experiment.id == "numbers"]


def test_populations_are_what_they_are_called() -> None:
    found = populations()
    assert len(found) == 7
    for shares in found.values():
        assert shares.shape == (FINEST,) and (shares >= 0).all() and shares.sum() == pytest.approx(1)
    assert coarse(found["uniform"], 32) == pytest.approx(np.full(32, 1 / 32))
    assert coarse(found["a third at zero"], 32)[0] > 1 / 3
    assert 0.25 < coarse(found["a quarter at one number"], 32)[8] < 0.35
    delays = coarse(found["arrival delays"], 32)
    assert delays.argmax() in (6, 7)  # -15 to 0 minutes
    with gzip.open(DATA / "flight_delays_2001_03.csv.gz", "rt") as file:
        late = np.mean([int(row["value"]) >= 15 for row in csv.DictReader(file)])
    assert delays[10:].sum() == pytest.approx(late)


def test_the_published_decoder_finds_a_smooth_distribution() -> None:
    """From expected counts of a hundred million people, up to its smoothing, a third of a bin; shares sum to 1."""
    shares = coarse(populations()["log-normal"], 64)
    channel = SquareWave(num_symbols=64, num_sensitive=64, epsilon=2.0).probabilities
    found = em_with_smoothing(channel, 1e8 * (channel @ shares)[np.newaxis])[0]
    assert found.sum() == pytest.approx(1)
    assert np.abs(np.cumsum(found - shares)).mean() < 1 / 3 / 64


def test_runs_end_each_at_its_own_step() -> None:
    """Runs decoded together are those decoded alone; EM of expected counts, which knows the truth, is near it."""
    shares, channel = coarse(populations()["two humps"], 32), tree(32, 2.0)
    assert channel.shape == (4 + 16 + 32, 32)
    assert channel.sum(axis=0) == pytest.approx(np.ones(32))
    cells = np.array([1e4, 1e8])[:, np.newaxis] * (channel @ shares)
    for decoded in (em_with_smoothing, lambda channel, cells: em(channel, cells, 2.0)):
        together = decoded(channel, cells)
        for one, alone in zip(together, cells):
            np.testing.assert_allclose(decoded(channel, alone[np.newaxis])[0], one, atol=1e-9)
    assert np.abs(np.cumsum(em(channel, cells, 2.0)[1] - shares)).mean() < 0.003


def test_a_setting_has_a_row_for_each_method() -> None:
    found = smooth_intervals.of_setting(2.0, 10_000, "arrival delays", 2, generator("reproduce", "numbers"))
    assert [row["method"] for row in found] == ["smooth", "unbiased", "published", *METHODS]
    smooth, unbiased = found[:2]
    assert smooth["w1"] < unbiased["w1"]
    assert smooth["half_shares"] < unbiased["half_shares"]
    printed = io.StringIO()
    writer = csv.DictWriter(printed, found[0].keys())
    writer.writeheader()
    writer.writerows(found)
    rows = list(csv.DictReader(io.StringIO(printed.getvalue())))
    [line] = lines(rows)
    of_published = of_methods(rows)[2]
    assert of_published == ["published", "1.00", "1.00"]
    assert line[:2] == ["2", "10,000"]
    assert line[3].startswith(f"{smooth['cover_shares']:.3f} (")
    EXPERIMENT.draw(found, Figure())


def test_coverage_is_counted() -> None:
    """Intervals of everything hold the truth, and those of a neighbouring point do not."""
    truth = smooth_intervals._Truth(np.full(32, 1 / 32))
    counts = smooth_intervals.collection(2.0).mechanism.response(np.full(32, 1 / 32)) * 1e6
    cells = np.rint(counts).astype(np.int64)[np.newaxis]
    found = smooth_intervals.estimate_numbers(
        smooth_intervals.collection(2.0),
        smooth_intervals.CohortCounts(cells.sum(axis=1), cells),
        limits=truth.limits,
        quantiles=smooth_intervals.QUANTILES,
    )
    judged = truth.judged([found], "display_value", "display_low", "display_high")
    assert [judged[f"cover_{name}"] for name in ("shares", "mean", "quantiles")] == [1, 1, 1]
    elsewhere = smooth_intervals._Truth(np.eye(32)[3])
    judged = elsewhere.judged([found], "display_value", "display_low", "display_high")
    assert [judged[f"cover_{name}"] for name in ("shares", "mean", "quantiles")] == [0, 0, 0]
    assert judged["w1"] == pytest.approx(np.abs(1 - np.arange(1, 32) / 32 - (np.arange(1, 32) <= 3)).mean(), abs=0.01)


def test_smooth_intervals_hold_in_all_settings() -> None:
    """The whole experiment with fewer runs than the documentation: what it claims."""
    found = EXPERIMENT.run(generator("reproduce", "numbers", "all"), reduced=False, runs=60)
    assert [verdict.holds for verdict in found.verdicts] == [True] * 4
