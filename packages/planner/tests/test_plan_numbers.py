"""Plans for numbers: intervals that simulations have, the recommended mechanism, what is printed, refusals."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators.number_estimates import estimate_numbers
from uldp_transforms_planner.plan import plan_command as program
from uldp_transforms_planner.planning.number_forecast import (
    NeededForMean,
    forecast_numbers,
    least_epsilon_of_mean,
    mechanisms,
    needed_for_mean,
    plan_numbers,
    with_mechanism,
)

PAGE = (Path(__file__).parents[3] / "docs" / "numbers.md").read_text(encoding="utf-8")
SHARES = np.exp(-0.5 * ((np.arange(16) - 5) / 3) ** 2)
SHARES = SHARES / SHARES.sum()


def collection(mechanism: str = "sw", epsilon: float = 1.0, **alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": 0, "high": 160, "num_bins": 16, "unit": "ms"} | alphabet
    return Collection.from_json(
        {"id": "times", "version": 3, "alphabet": spec, "mechanism": {"id": mechanism, "epsilon": epsilon}}
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "C.json").write_text(json.dumps(collection("krr", others=["none"]).to_json()), encoding="utf-8")
    closed = {"alphabet": {"id": "closed", "values": ["a", "b"]}, "mechanism": {"id": "krr", "epsilon": 1}}
    (tmp_path / "closed.json").write_text(json.dumps({"id": "c", "version": 1} | closed), encoding="utf-8")
    (tmp_path / "V.csv").write_text("value,other\n" + "15,x\n" * 30 + "none,x\n" * 10, encoding="utf-8")
    (tmp_path / "empty.csv").write_text("value\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, options: str) -> int:
    return program.main(shlex.split(f"--epsilon 1 --reports 5000 {options.replace('IN/', f'{folder}/')}"))


# ---------------------------------------------------------------------- forecasts


def test_the_mean_has_the_exact_variance():
    item, centres = collection(), np.arange(5, 160, 10)
    found = forecast_numbers(item, 10**8, SHARES)
    exact = 1.959964 * math.sqrt(float(item.mechanism.variance_of(centres, SHARES)) / 10**8)
    assert found.mean == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("mechanism", ["sw", "krr"])
def test_intervals_are_as_long_as_in_simulations(mechanism: str):
    """Half widths of a median, on average over 20 windows of 20,000 people, within a quarter of the forecast."""
    item = collection(mechanism, epsilon=2.0)
    forecast, rng, halves = forecast_numbers(item, 20_000, SHARES), generator("plan-numbers", mechanism), []
    for cells in rng.multinomial(20_000, item.mechanism.response(SHARES), size=20):
        found = estimate_numbers(item, CohortCounts(np.array([20_000]), cells[np.newaxis]), quantiles=[0.5])
        halves.append((found.quantiles[0].display_high - found.quantiles[0].display_low) / 2)
    assert 0.75 < np.mean(halves) / forecast.quantiles[0] < 1.25


def test_more_reports_and_smoothness_make_intervals_shorter():
    few, many = (forecast_numbers(collection(), number, SHARES) for number in (1_000, 100_000))
    assert few.mean > many.mean
    assert all(one > other for one, other in zip(few.quantiles, many.quantiles))
    assert all(one < other for one, other in zip(many.quantiles, many.sure_quantiles))


def test_the_square_wave_is_recommended_until_noise_is_small():
    best = {epsilon: plan_numbers(collection(), epsilon, 10_000)[1] for epsilon in (0.5, 1, 2, 12)}
    assert [one.collection.mechanism.id for one in best.values()] == ["sw", "sw", "sw", "krr"]
    found, one = plan_numbers(collection(), 1, 10_000)
    assert [row.collection.mechanism.id for row in found] == ["sw", "krr", "rappor", "ss", "hr"]
    assert (one.collection.id, one.collection.version, one.collection.alphabet.unit) == ("times", 3, "ms")


@pytest.mark.parametrize("others", [[], ["none"]], ids=["all", "others"])
def test_what_a_half_width_needs_is_the_least(others: list[str]):
    """The forecast meets it with so many reports, or this epsilon, and not with one report in 1,000 or a step less."""
    item = collection(others=others)
    shares = np.append(SHARES * 0.8, 0.2) if others else SHARES
    needed = needed_for_mean(item, 2.0, 10**6, shares)
    assert needed.num_reports is not None
    assert needed.epsilon is not None
    enough, fewer = (forecast_numbers(item, round(needed.num_reports * times), shares).mean for times in (1.001, 0.999))
    assert enough < 2 < fewer
    enough, fewer = (
        forecast_numbers(collection(epsilon=epsilon, others=others), 10**6, shares).mean
        for epsilon in (needed.epsilon + 1e-3, needed.epsilon - 2e-3)
    )
    assert enough < 2 < fewer
    half_width = needed_for_mean(item, 2.0, 10, shares).half_width
    assert needed_for_mean(item, 1e-9, 10, shares) == NeededForMean(
        num_reports=None, epsilon=None, half_width=half_width
    )


def test_means_of_simulations_are_as_far_away_as_planned():
    """With the needed number of reports, 95 % of 400 means are within the half width, of what chance allows."""
    item = collection()
    number = needed_for_mean(item, 5.0, 1000, SHARES).num_reports
    assert number is not None
    truth, rng = float(SHARES @ np.arange(5, 160, 10)), generator("needed reports")
    means = [
        estimate_numbers(item, CohortCounts(np.array([number]), cells[np.newaxis]), smooth=False).mean
        for cells in rng.multinomial(number, item.mechanism.response(SHARES), size=400)
    ]
    low, high = binomial_limits(np.array([400]), np.array([0.95]))
    assert low[0] <= sum(abs(mean.value - truth) <= 5 for mean in means if mean is not None) <= high[0]


def test_a_target_of_the_mean_is_printed(files: Path, capsys: pytest.CaptureFixture[str]):
    assert run(files, "--collection IN/C.json --target_half_width 5") == 0
    printed = capsys.readouterr().out
    assert "For a half width of 5 ms of the mean, with the epsilon or the number of reports above:" in printed
    needed = needed_for_mean(collection(others=["none"]), 5.0, 5000)
    line = next(line for line in printed.splitlines() if line.startswith("sw") and f"{needed.num_reports:,}" in line)
    assert line.split() == ["sw", f"{needed.num_reports:,}", f"{needed.epsilon:.3f}"]


def test_the_verdict_on_a_target_of_the_mean(files: Path, capsys: pytest.CaptureFixture[str]):
    needed = needed_for_mean(collection(others=["none"]), 3.0, 5000)
    assert run(files, "--collection IN/C.json --target_half_width 3") == 0
    missed = f"Target half width 3 ms of the mean missed: {needed.half_width:.3g}; it needs "
    missed += f"epsilon {needed.epsilon:.3f}, or {needed.num_reports:,} reports. With other"
    assert missed in capsys.readouterr().out
    assert run(files, "--collection IN/C.json --target_half_width 500") == 0
    assert f"Target half width 500 ms of the mean met: {needed.half_width:.3g}. With" in capsys.readouterr().out


def test_the_smallest_epsilon_that_meets_the_target_of_a_mean(files: Path, capsys: pytest.CaptureFixture[str]):
    """That of the mechanism that needs least, which is recommended even if others have better quantiles."""
    command = f"--collection {files}/C.json --reports 5000 --target_half_width 5 --output {files}/new.json"
    assert program.main(command.split()) == 0
    printed = capsys.readouterr().out
    item = collection(others=["none"])
    needed = [needed_for_mean(with_mechanism(item, make, 1.0), 5.0, 5000).epsilon for make in mechanisms(item.alphabet)]
    least = min(epsilon for epsilon in needed if epsilon is not None)
    assert f"5,000 reports at epsilon {least:g}\n" in printed
    assert f" Epsilon {least:g} is the smallest that meets it. With other" in printed
    made = Collection.from_json(str(files / "new.json"))
    assert made.mechanism.epsilon == least
    assert needed_for_mean(made, 5.0, 5000).half_width <= 5
    assert least_epsilon_of_mean(item, 1e-9, 10) is None


def test_a_log_scale_has_quantiles_alone():
    found = forecast_numbers(collection(low=1, scale="log"), 10_000)
    assert found.mean is None
    assert found.size == pytest.approx(math.sqrt(math.prod(found.quantiles)))


# ---------------------------------------------------------------------- the command


def test_the_page_shows_what_is_printed(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    delays = json.loads(PAGE.partition("```json\n")[2].partition("```")[0])
    (tmp_path / "delays.json").write_text(json.dumps(delays), encoding="utf-8")
    command = next(line for line in PAGE.splitlines() if line.startswith("uldp plan "))
    assert program.main(shlex.split(command.replace("delays.json", f"{tmp_path}/delays.json"))[2:]) == 0
    printed = capsys.readouterr().out
    assert f"```\n{printed.partition('{')[0].rstrip()}\n```" in PAGE
    assert (
        program.main(
            shlex.split(f"{command} --target_half_width 3".replace("delays.json", f"{tmp_path}/delays.json"))[2:]
        )
        == 0
    )
    needed = capsys.readouterr().out.partition("For a half")[2].partition("Recommended")[0]
    assert f"```\nFor a half{needed.rstrip()}\n```" in PAGE


def test_a_file_of_values_and_one_for_the_collection(files: Path, capsys: pytest.CaptureFixture[str]):
    assert run(files, "--collection IN/C.json --values IN/V.csv --output IN/new.json") == 0
    printed = capsys.readouterr().out
    assert f"in ms, for the shares in {files}/V.csv:" in printed
    assert printed.endswith(f"The recommended collection: {files}/new.json\n")
    made = Collection.from_json(str(files / "new.json"))
    assert made.alphabet == collection(others=["none"]).alphabet
    assert made.mechanism.id == "sw"


def test_a_range_of_sensitive_numbers_is_planned_with_its_own_square_wave():
    """And with the other mechanisms that leave the rest without protection; what all are compared for is the same."""
    found, best = plan_numbers(collection("krr", sensitive=[[120, None]]), 1.0, 10_000)
    assert [one.collection.mechanism.id for one in found][:5] == ["usw", "urr", "urap", "uss", "uhr"]
    assert {one.collection.alphabet.num_sensitive for one in found} == {4}
    assert best is found[0]
    [whole] = [one for one in plan_numbers(collection("krr"), 1.0, 10_000)[0] if one.collection.mechanism.id == "sw"]
    assert best.mean < whole.mean
