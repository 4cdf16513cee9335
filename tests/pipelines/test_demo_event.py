"""The demo on all of its days: the alarm rings when the storm comes, with the settings that everybody has."""

from __future__ import annotations

import datetime
from pathlib import Path

from uldp_transforms.pipelines import demo

STORM = datetime.date(2001, 3, 5)
"""Of 384 departures from BOS on a usual day 100 are left, of 351 from LGA 52."""


def test_the_alarm_rings_on_the_day_of_the_storm(tmp_path: Path) -> None:
    """The shares of both airports fall by 9 standard errors of a day; before that day, nothing happened."""
    assert demo.main(["--output", str(tmp_path), "--seed", "1"]) == 0
    changes = demo.read_changes(tmp_path, "us-flights-sensitive")
    assert min(changes) == STORM
    assert "'BOS' -" in changes[STORM] and "'LGA' -" in changes[STORM]
