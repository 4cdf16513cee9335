"""``uldp evaluate``: what it says of mechanisms on one's own data is what theory says of them."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.cases import ANY_VALUES
from tests.support.tolerance import binomial_limits, chi_square_limits
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms_planner.evaluate.evaluate_command import configure
from uldp_transforms_planner.planning import OpenQuestion


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """2,000 people and three values, in a column of its own name."""
    path = tmp_path / "people.csv"
    path.write_text("id,answer\n" + "".join(f"{at},{'aaabbbbbcc'[at % 10]}\n" for at in range(2000)), encoding="utf-8")
    (tmp_path / "sensitive.txt").write_text("c\nnobody holds this\n", encoding="utf-8")
    return path


def evaluate(path: Path, *options: str) -> list[dict[str, Any]]:
    output = path.with_name("table.json")
    arguments = ["--values", str(path), "--value_column", "answer", "--json", str(output), *options]
    assert uldp.main(["evaluate", *arguments]) == 0
    found: list[dict[str, Any]] = json.loads(output.read_text("utf-8"))
    return found


def test_errors_are_those_of_theory(people: Path) -> None:
    """The mean square of R errors of one value is chi-square of R degrees over R; the mean over values, which are
    correlated, varies no more."""
    repetitions = 100
    sensitive = ["--sensitive", str(people.with_name("sensitive.txt"))]
    options = [*sensitive, "--epsilons=1,2", f"--repetitions={repetitions}", "--seed=5"]
    outcomes = [of for of in evaluate(people, *options) if of["reason"] is None]
    assert [(of["mechanism"], of["epsilon"]) for of in outcomes] == [
        (name, epsilon) for name in ANY_VALUES for epsilon in (1.0, 2.0)
    ]
    trial = configure(["--values", str(people), "--value_column", "answer", *options]).trial
    low, high = chi_square_limits(repetitions, comparisons=len(outcomes))
    collections = [way.collection for way in trial.ways if way.collection is not None]
    for of, collection in zip(outcomes, collections, strict=True):
        symbols = collection.alphabet.encode(list(trial.values), np.zeros(3, dtype=np.int64), 1).ravel()
        shares = np.zeros(collection.mechanism.num_symbols)
        shares[symbols] = [0.3, 0.5, 0.2]
        expected = collection.mechanism.variances(shares)[symbols].mean() / 2000
        assert low <= repetitions * of["raw_error"] ** 2 / expected <= high, of["mechanism"]
        assert of["payload_bytes"] == collection.mechanism.payload_size
        assert of["client_us"] > 0 and of["collector_us"] > 0


def test_intervals_hold_the_truth_as_promised(tmp_path: Path) -> None:
    """Of two values both intervals hold it, or none. Counts are discrete, so that they do so in 94 to 96 % of cases."""
    path = tmp_path / "people.csv"
    path.write_text("answer\n" + "yes\n" * 300 + "no\n" * 700, encoding="utf-8")
    repetitions = 400
    (of,) = evaluate(
        path, "--mechanisms=krr", "--epsilons=2", f"--repetitions={repetitions}", "--reports=5000", "--seed=1"
    )
    low, _ = binomial_limits(np.array(repetitions), np.array(0.94))
    _, high = binomial_limits(np.array(repetitions), np.array(0.96))
    assert low <= of["covered"] * repetitions <= high
    normal = stats.norm.ppf(0.975)
    assert math.isclose(of["half_width"], normal * of["raw_error"], rel_tol=0.3)


def test_every_mechanism_of_the_registry_is_tried_or_says_why_not(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is added is here without a line of code."""
    options = ["--epsilons=1", "--repetitions=1", "--reports=50"]
    for more in ([], ["--sensitive", str(people.with_name("sensitive.txt"))], ["--open"]):
        outcomes = evaluate(people, *options, *more)
        lines = capsys.readouterr().out.splitlines()
        assert [of["mechanism"] for of in outcomes] == list(MECHANISMS)
        for of in outcomes:
            assert (of["reason"] is None) == (of["error"] is not None)
            assert of["reason"] is None or f"{of['mechanism']}: not tried, {of['reason']}" in lines
        not_tried = {of["mechanism"] for of in outcomes if of["reason"] is not None}
        some = (
            {name for name, cls in ((name, MECHANISMS[name]) for name in MECHANISMS) if not cls.protects_all}
            if "--sensitive" not in more
            else set()
        )
        assert not_tried == (set(MECHANISMS) - set(ANY_VALUES)) | some
    assert evaluate(people, *options, "--mechanisms=urr")[0]["reason"] is None  # as krr, where it is asked for


def test_several_estimators_judge_the_same_reports(people: Path) -> None:
    """Raw errors are the same; a projection is never further from the truth; a limit of an estimator is a reason."""
    options = ["--mechanisms=krr,ss", "--epsilons=0.1", "--repetitions=5", "--reports=30", "--seed=2"]
    outcomes = evaluate(people, *options, "--estimators=empirical,projected,ml")
    assert [(of["mechanism"], of["estimator"]) for of in outcomes] == [
        (name, estimator) for name in ("krr", "ss") for estimator in ("empirical", "projected", "ml")
    ]
    for first, second, third in zip(*[iter(outcomes)] * 3):
        assert first["raw_error"] == first["error"] == second["raw_error"] > second["error"]
        assert (third["reason"] is None) == (third["mechanism"] == "krr")
    alone = evaluate(people, *options, "--estimators=projected")
    assert [of["error"] for of in alone] == [of["error"] for of in outcomes if of["estimator"] == "projected"]


def test_open_alphabets_have_the_errors_that_the_planner_forecasts(tmp_path: Path) -> None:
    """Candidates of which some are unlisted, some public and one is held by nobody; l2 is S times the mean square."""
    words = [f"w{rank}" for rank in range(1, 41) for _ in range(400 // rank)]
    (tmp_path / "people.csv").write_text("answer\n" + "\n".join(words), encoding="utf-8")
    candidates, sensitive = tmp_path / "candidates.txt", tmp_path / "sensitive.txt"
    candidates.write_text("\n".join([*(f"w{rank}" for rank in range(1, 41) if rank != 7), "nobody"]), encoding="utf-8")
    sensitive.write_text("\n".join([*(f"w{rank}" for rank in range(2, 30)), "nobody"]), encoding="utf-8")
    repetitions, n = 60, 2000
    options = ["--open", "--candidates", str(candidates), "--sensitive", str(sensitive), f"--reports={n}", "--seed=4"]
    options += ["--epsilons=2", f"--repetitions={repetitions}", "--mechanisms=krr,urr", "--estimators=empirical"]
    outcomes = evaluate(tmp_path / "people.csv", *options)
    counted = Counter(words)
    asked = set(candidates.read_text("utf-8").split())
    first = sorted(asked & set(sensitive.read_text("utf-8").split()))
    shares = np.array([counted[word] for word in (*first, *sorted(asked - set(first)))])
    share = counted["w7"] / len(words)
    question = OpenQuestion(
        num_candidates=len(first),
        num_non_sensitive=len(asked) - len(first),
        frequencies=tuple((shares / shares.sum()).tolist()),
        unlisted_share=share,
        heaviest_unlisted=share,
    )
    low, high = chi_square_limits(repetitions, comparisons=len(outcomes))
    for of in outcomes:
        setup = question.setups(n)[of["mechanism"]](2)
        assert setup is not None
        mean = repetitions * of["raw_error"] ** 2 * len(asked) / setup.l2(n)
        assert 0.9 * low <= mean <= 1.1 * high, of["mechanism"]  # forecasts are within 10 %
        assert of["payload_bytes"] == setup.mechanism.payload_size


def test_an_epsilon_without_a_signal_is_refused() -> None:
    with pytest.raises(SpecError, match=r"^--epsilons must be at least 0\.000001, got 1e-300$"):
        configure(["--values", "people.csv", "--epsilons=1,1e-300"])


def test_a_picture(people: Path) -> None:
    evaluate(
        people, "--repetitions=1", "--epsilons=1", "--estimators=eb,projected", "--png", str(people.with_name("p.png"))
    )
    content = people.with_name("p.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n") and len(content) > 10_000
