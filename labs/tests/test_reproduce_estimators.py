"""The comparison of all estimators: its references against their definitions, its settings, its sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labs import reproduce
from labs.experiments import estimators as module
from labs.experiments.frame import Result
from tests.support.tolerance import generator

RAW = np.array([0.5, 0.3, 0.2, 0.1, 0.01, -0.02, -0.09])
NULL, SLOPE = np.full(7, 0.002), np.full(7, 0.01)


def test_norm_cut_keeps_the_largest_that_sum_to_one():
    assert module.norm_cut(RAW, NULL, SLOPE) == pytest.approx([0.5, 0.3, 0.2, 0, 0, 0, 0])
    assert module.norm_cut(RAW / 2, NULL, SLOPE) == pytest.approx(np.maximum(RAW / 2, 0))


def test_base_cut_keeps_what_noise_does_not_reach():
    limit = 0.5659 * np.sqrt(0.002)  # the normal quantile of 1 - 2 / 7
    assert module.base_cut(RAW, NULL, SLOPE) == pytest.approx(np.where(limit <= RAW, RAW, 0))


def test_mle_apx_is_the_best_of_all_distributions():
    found = module.mle_apx(RAW, NULL, SLOPE)
    assert found.sum() == pytest.approx(1)

    def misfit(point: np.ndarray) -> float:
        return float(((RAW - point) ** 2 / (NULL + SLOPE * point)).sum())

    for step in generator("mle apx").normal(size=(200, 7)):
        other = np.maximum(found + 0.02 * (step - step.mean()), 0)
        assert misfit(other / other.sum()) >= misfit(found) - 1e-9


def test_power_shrinks_and_keeps_the_order():
    means = module.power(RAW, NULL, SLOPE)
    assert (np.diff(means) <= 0).all()
    assert (means > 0).all()
    assert module.power_ns(RAW, NULL, SLOPE).sum() == pytest.approx(1)


def test_there_are_as_many_settings_as_documented():
    rng = np.random.default_rng(0)
    tables = [setting.table for setting in module.settings((3_000, 30_000, 300_000), rng)]
    assert [tables.count(name) for name in (module.CLOSED, module.HASHED, module.MIXED)] == [72, 36, 324]
    assert all(shape.sum() == pytest.approx(1) for shape in module.shapes().values())


def test_losses_are_compared_with_the_best_fixed_one():
    losses = [{"eb": 2.0, "projected": 4.0, "ml": 1.0, "Power": 8.0}, {"eb": 1.0, "projected": 2.0, "Power": 1.0}]
    found = module.ratios(losses)
    assert found["eb"].tolist() == [2, 0.5]
    assert found["Power"].tolist() == [8, 0.5]
    row = module.summary("closed", losses)[0]
    assert (row["estimator"], row["settings"], row["geometric_mean"], row["largest"]) == ("eb", 2, pytest.approx(1), 2)
    assert not module.never_far(("closed", losses)).holds


def test_the_second_table_is_of_hashed_and_of_sensitive_and_clear_settings(monkeypatch: pytest.MonkeyPatch):
    """Beside its two parts: one setting of each table, whose losses are known."""
    rng, ratio = generator("second table"), {module.CLOSED: 1.0, module.HASHED: 4.0, module.MIXED: 0.25}
    one_each = {setting.table: setting for setting in module.settings((3_000,), rng)}
    monkeypatch.setattr(module, "settings", lambda people, rng: iter(one_each.values()))
    references = dict.fromkeys(module.REFERENCES, 9.0)
    monkeypatch.setattr(
        module, "mean_losses", lambda setting, runs, rng: {"eb": ratio[setting.table], "projected": 1.0} | references
    )
    found = module.Estimators().run(rng, reduced=True, runs=1)
    of_eb = {row["table"]: row for row in found.rows if row["estimator"] == "eb" and row["table"] != "time"}
    means = {table: row["geometric_mean"] for table, row in of_eb.items()}
    assert means == pytest.approx(ratio | {module.SECOND: 1.0})
    assert (of_eb[module.SECOND]["settings"], of_eb[module.SECOND]["largest"]) == (2, 4.0)
    assert of_eb[module.SECOND]["90 %"] == pytest.approx(0.25 + 0.9 * 3.75)
    assert [verdict.holds for verdict in found.verdicts] == [True, False, True, False, True]


def test_a_setting_is_simulated_and_drawn(tmp_path: Path):
    rng = generator("estimators")
    chosen = [s for s in module.settings((3_000,), rng) if "epsilon 3" in s.name and s.name.endswith("half")]
    rows = []
    for setting in chosen:
        losses = module.mean_losses(setting, 1, rng)
        assert losses["eb"] < losses["empirical"]
        if setting.table != module.HASHED or len(rows) == 0:
            rows += module.summary(setting.table, [losses])
    assert module.timing(64, rng)["cpu_seconds"] > 0
    reproduce.draw(module.Estimators(), Result(rows=rows, verdicts=[]), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 0
