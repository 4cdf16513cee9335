"""Levels of confidence: windows of several levels are compared, and texts name each level."""

from __future__ import annotations

import numpy as np

from uldp_transforms_report.differences import PanelRows, reach_of
from uldp_transforms_report.levels import Levels


def test_windows_of_two_levels_are_compared_at_the_higher_one() -> None:
    """Intervals of both sides become those of the higher level; the page names it, and both levels of the rows."""
    entry = {"value": "a", "raw_frequency": 0.5, "standard_error": 0.1}
    panels = []
    for levels in ((0.8, 0.99), (0.99, 0.99)):
        rows = PanelRows(2, ["a"])
        for side, level in enumerate(levels):
            half = reach_of(1, level) * 0.1
            rows.add(side, [entry | {"ci_low": 0.5 - half, "ci_high": 0.5 + half}], level)
        panel = rows.panel(["x", "y"], 1, 100)
        assert panel is not None and str(panel.levels) == "99 %"
        panels.append(panel)
    np.testing.assert_allclose(panels[0].low, panels[1].low)
    np.testing.assert_allclose(panels[0].high, panels[1].high)
    both = Levels.of([{"confidence": 0.99}, {"confidence": 0.8}, {"confidence": None}, {}, None])
    assert str(both) == "80 % or 95 % or 99 %" and (both.misses, both.q_values) == (
        "1 % or 5 % or 20 %",
        ".01 or .05 or .2",
    )
    assert Levels((0.95,)).holds_of_largest == 60
