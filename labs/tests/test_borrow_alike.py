"""Small groups that are alike: what the experiment prints, and that the small ones gain what pooling gains."""

from __future__ import annotations

import numpy as np
import pytest

from labs.experiments import borrow_alike
from tests.support.tolerance import student_limit


@pytest.mark.parametrize(("small", "large", "epsilon"), [(3, 1, 1.0), (3, 1, 4.0)])
def test_several_small_groups_that_are_alike_use_the_reports_of_all(small: int, large: int, epsilon: float) -> None:
    """Their error is at most 1.5 times the pooled one on average, and far below their own."""
    rng, runs = np.random.default_rng([77, int(epsilon)]), 12
    alone, pooled, borrowed = np.array(
        [borrow_alike.errors_of_small(small, large, epsilon, rng) for _ in range(runs)]
    ).T
    excess = borrowed - 1.5 * pooled
    assert excess.mean() <= student_limit(runs) * excess.std(ddof=1) / np.sqrt(runs)
    assert borrowed.mean() < alone.mean() / 2


def test_the_table_has_every_setting(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["borrow_alike", "--runs", "1"])
    monkeypatch.setattr(borrow_alike, "GROUPS", ((1, 1), (2, 0)))
    borrow_alike.main()
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("| groups of 200 + of 5,000 | epsilon |")
    assert [line.split(" | ")[:2] for line in lines] == [[f"| {name}", e] for name in ("1 + 1", "2 + 0") for e in "14"]
